"""Addresses of Wikipedia's articles in every spelling that search engines return."""

from datetime import UTC, datetime

import pytest

from ingest.web.search_engines.wiki_address import WikiAddress, is_article, parse_wiki_address
from storage.types import Document, QueryTime


@pytest.mark.parametrize(("url", "host", "title"), [
    ("https://en.wikipedia.org/wiki/Ada_Lovelace", "en.wikipedia.org", "Ada Lovelace"),
    ("http://EN.wikipedia.org/wiki/ada__Lovelace", "en.wikipedia.org", "Ada Lovelace"),
    ("https://en.m.wikipedia.org/wiki/Ada_Lovelace#Work", "en.wikipedia.org", "Ada Lovelace"),
    ("https://fr.wikipedia.org/wiki/%C3%89mile_Zola?wprov=sfla1", "fr.wikipedia.org", "Émile Zola"),
    ("https://zh-classical.wikipedia.org/wiki/文", "zh-classical.wikipedia.org", "文"),
    ("https://simple.wikipedia.org/wiki/AC/DC", "simple.wikipedia.org", "AC/DC"),
    ("https://en.wikipedia.org/wiki/What%3F", "en.wikipedia.org", "What?"),
    ("https://en.wikipedia.org/w/index.php?title=Ada_Lovelace", "en.wikipedia.org", "Ada Lovelace"),
])  # fmt: skip
def test_article_has_the_host_and_the_title(url: str, host: str, title: str) -> None:
    assert parse_wiki_address(url) == WikiAddress(host, title)


def test_old_revision_is_named() -> None:
    address = parse_wiki_address("https://en.wikipedia.org/w/index.php?title=Ada&oldid=100")
    assert address == WikiAddress("en.wikipedia.org", "Ada", "100")


@pytest.mark.parametrize("url", [
    "https://en.wikipedia.org/",
    "https://en.wikipedia.org/wiki/",
    "https://en.wikipedia.org/wiki/Ada?action=history",
    "https://en.wikipedia.org/w/index.php?curid=12",
    "https://en.wikipedia.org/w/index.php?search=Ada&title=Special:Search",
    "https://www.wikipedia.org/wiki/Ada",
    "https://m.wikipedia.org/wiki/Ada",
    "https://wikipedia.org/wiki/Ada",
    "https://en.wikipedia.org.example.com/wiki/Ada",
    "https://zh.wikipedia.org/zh-cn/Ada",
    "https://[broken/wiki/Ada",
    "Ada",
])  # fmt: skip
def test_other_addresses_are_no_articles(url: str) -> None:
    assert parse_wiki_address(url) is None


ADA = Document(
    "wikipedia",
    "1",
    "Ada",
    "https://en.wikipedia.org/w/index.php?title=Ada&oldid=100",
    "100",
    datetime(2016, 4, 22, tzinfo=UTC),
)


@pytest.mark.parametrize(("address", "time", "is_it"), [
    (WikiAddress("en.wikipedia.org", "Ada"), None, True),
    (WikiAddress("en.wikipedia.org", "Ada", "100"), 2016, True),
    (WikiAddress("en.wikipedia.org", "Ada", "101"), None, False),
    (WikiAddress("de.wikipedia.org", "Ada"), None, False),
    (WikiAddress("en.wikipedia.org", "Ada"), 2017, False),
    (WikiAddress("en.wikipedia.org", "Ada"), "recent", False),
])  # fmt: skip
def test_stored_revision_must_be_of_that_wiki_and_new_enough(
    address: WikiAddress, time: QueryTime, *, is_it: bool
) -> None:
    assert is_article(ADA, address, time) is is_it
