"""Parsing the XML of a page: head, redirect, text."""

import pytest

from ingest.sources.dumps.page_xml import parse_head, parse_page_id, parse_site, parse_text
from ingest.wikitext.wiki_site import WikiSite
from tests.ingest.sources.dumps import HEADER, page

SITE = parse_site(HEADER.encode())


def test_head_is_read_without_xml_parsing():
    parsed = parse_head(page(7, "R&amp;D", "x").encode(), SITE)

    assert (parsed.id, parsed.key, parsed.title, parsed.namespace, parsed.revision) == ("7", "7", "R&D", 0, "700")
    assert parsed.redirect is None


@pytest.mark.parametrize(
    ("title", "namespace"), [("Ada", 0), ("Talk:Ada", 1), ("Category:Ada", 14), ("Star Trek: Voyager", 0)]
)
def test_namespace_falls_back_to_the_title(title, namespace):
    assert parse_head(page(1, title, "x", ns=None).encode(), SITE).namespace == namespace


@pytest.mark.parametrize(
    ("xml", "target"),
    [
        (page(1, "A", "#REDIRECT [[Ada]]", redirect="Ada"), "Ada"),
        (page(1, "A", "#REDIRECT [[Ada#Life|x]]", redirect=""), "Ada#Life"),
        (page(1, "A", "#REDIRECT [[Ada]]"), "Ada"),
        (page(1, "A", "#WEITERLEITUNG: [[Ada]]"), "Ada"),
        (page(1, "A", "#перенаправление [[Ada]]"), "Ada"),
        (page(1, "A", "#転送[[Ada]]"), "Ada"),
        (page(1, "A", "nothing", redirect=""), ""),
        (page(1, "A", "#Note [[Ada]]"), None),
        (page(1, "A", "# [[Ada]]"), None),
        (page(1, "A", "Text. #REDIRECT [[Ada]]"), None),
    ],
)
def test_redirects_of_all_schemas_are_found(xml, target):
    assert parse_head(xml.encode(), SITE).redirect == target


def test_titles_are_normalized():
    assert SITE.title("ada_lovelace  x#Life") == "Ada lovelace x"
    assert WikiSite(first_letter=False).title("ada") == "ada"


def test_addresses_name_the_revision():
    assert SITE.url("C++ (Sprache)", "12") == "https://en.wikipedia.org/w/index.php?title=C%2B%2B_(Sprache)&oldid=12"
    assert SITE.url("Ada", "") == "https://en.wikipedia.org/wiki/Ada"
    assert WikiSite().url("Ada", "12") == ""


@pytest.mark.parametrize(
    ("xml", "reason"),
    [
        (page(1, "A", "x").replace("<text", "<texts").replace("</text", "</texts"), "no <text> element"),
        (page(1, "A", ""), "empty"),
        (page(1, "A", "  \n"), "empty"),
        (page(1, "A", "x").replace("wikitext", "json"), "not wikitext but json"),
        (page(1, "A", "x").replace("<text", '<text deleted="deleted"'), "deleted"),
        (page(1, "A", "a & b"), "XML is broken"),
        ("<page><title>A</title></page>", "no revision"),
    ],
)
def test_page_without_text_has_a_reason(xml, reason):
    assert reason in parse_text(xml.encode()).reason


def test_text_and_date_are_read():
    parsed = parse_text(page(1, "A", "a &lt;b&gt; &amp;nbsp;").encode())

    assert (parsed.wikitext, parsed.timestamp, parsed.reason) == ("a <b> &nbsp;", "2016-04-22T10:19:33Z", "")


def test_page_without_title_has_an_id():
    xml = page(13, "", "x").replace("<title></title>", "").encode()

    assert parse_head(xml, SITE) is None
    assert parse_page_id(xml) == "13"


def test_missing_revision_numbers_are_replaced_by_a_hash():
    bare = "<page><title>Ada</title><revision><text>{}</text></revision></page>"
    one, other = (parse_head(bare.format(said).encode(), SITE) for said in ("x", "y"))

    assert one.key == "Ada"
    assert one.stamp != other.stamp


def test_broken_header_gives_an_unknown_wiki():
    assert parse_site(b"<mediawiki><siteinfo>") == WikiSite()
    assert (
        parse_site(b'<mediawiki xml:lang="de"></mediawiki>'.removesuffix(b"</mediawiki>")).origin
        == "https://de.wikipedia.org"
    )
