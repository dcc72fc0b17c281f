"""Pages that only tell apart what shares their title."""

import pytest

from ingest.wikitext.wiki_site import is_disambiguation


@pytest.mark.parametrize(
    ("title", "wikitext"),
    [
        ("Ada", "'''Ada''' may be:\n* a\n{{disambiguation}}"),
        ("Ada", "x {{Disambig|surname}}"),
        ("Ada", "x {{hndis}}"),
        ("Ada", "x {{town disambiguation}}"),
        ("Ada", "x {{Begriffsklärung}}"),
        ("Ada", "x {{homonymie}}"),
        ("エイダ", "x {{曖昧さ回避}}"),
        ("Ada", "x __DISAMBIG__"),
        ("Ada (disambiguation)", "x"),
        ("Ada (Begriffsklärung)", "x"),
    ],
)
def test_it_is_told_by_template_word_or_title(title, wikitext):
    """In many languages."""
    assert is_disambiguation(title, wikitext)


@pytest.mark.parametrize(
    "wikitext",
    [
        "x {{about|a|b|Ada (disambiguation)}}",
        "x {{disambiguation needed}}",
        "disambiguation",
        "",
        "x {{set index article}}",
        "x {{SIA|mountains}}",
        "x {{surname}}",
        "x {{given name}}",
        "x {{shipindex}}",
    ],
)
def test_an_article_is_none(wikitext):
    """Nor if it points to such a page, or lists things of one kind that share a name."""
    assert not is_disambiguation("Ada", wikitext)
