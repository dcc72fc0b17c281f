"""Aliases of a page from the redirects that lead to it."""

from ingest.sources.dumps.dump_survey import DumpSurvey, StreamContent


def surveyed(*redirects):
    survey = DumpSurvey()
    survey.put("1", b"", StreamContent((), tuple((str(key), *pair) for key, pair in enumerate(redirects))))
    survey.finish()
    return survey


def test_aliases_are_sorted_and_unique():
    with surveyed(("B", "Ada"), ("A", "Ada"), ("A", "Ada"), ("C", "Bob")) as survey:
        assert survey.find_aliases(["Ada", "Nobody", "Bob"]) == {"Ada": ("A", "B"), "Bob": ("C",)}


def test_chained_redirects_are_followed_and_circles_ignored():
    with surveyed(("A", "B"), ("B", "C"), ("C", "Ada"), ("X", "Y"), ("Y", "X"), ("Z", "Z")) as survey:
        assert survey.find_aliases(["Ada", "Y", "Z"]) == {"Ada": ("A", "B", "C"), "Y": ("X",)}


def test_survey_without_redirects_has_no_aliases():
    with surveyed() as survey:
        assert survey.find_aliases(["Ada"]) == {}
