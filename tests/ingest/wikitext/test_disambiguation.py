"""Disambiguation pages are recognized."""

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
def test_disambiguation_is_recognized_by_template_word_or_title(title, wikitext):
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
def test_article_is_not_a_disambiguation_page(wikitext):
    assert not is_disambiguation("Ada", wikitext)
