"""Redirects by their target."""

from ingest.sources.dumps.dump_survey import DumpSurvey, StreamContent


def surveyed(*redirects):
    """Return a survey of one stream with these redirects."""
    survey = DumpSurvey()
    survey.put("1", b"", StreamContent((), tuple((str(key), *pair) for key, pair in enumerate(redirects))))
    survey.finish()
    return survey


def test_titles_that_lead_to_a_page():
    """Sorted, each once."""
    with surveyed(("B", "Ada"), ("A", "Ada"), ("A", "Ada"), ("C", "Bob")) as survey:
        assert survey.find_aliases(["Ada", "Nobody", "Bob"]) == {"Ada": ("A", "B"), "Bob": ("C",)}


def test_redirects_to_redirects_lead_to_the_page():
    """Over some hops; a circle leads nowhere and does no harm."""
    with surveyed(("A", "B"), ("B", "C"), ("C", "Ada"), ("X", "Y"), ("Y", "X"), ("Z", "Z")) as survey:
        assert survey.find_aliases(["Ada", "Y", "Z"]) == {"Ada": ("A", "B", "C"), "Y": ("X",)}


def test_none_at_all():
    """A dump may have none."""
    with surveyed() as survey:
        assert survey.find_aliases(["Ada"]) == {}
