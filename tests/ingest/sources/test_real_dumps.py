"""Real dumps in ten languages and seven schemas, some of them broken, are read or explained."""

import bz2
import os
import re
from functools import cache
from pathlib import Path

import pytest

from ingest.chunking import split_page
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from ingest.types import Unreadable

DATA = Path(os.environ.get("FOOTNOTE_DATA", Path(__file__).parents[4] / "shared" / "data")) / "wikipedia_dumps"
LEFT_OVER = re.compile(r"\{\{|\[\[|\]\]|<ref|\|-|&nbsp;|\( ,|\(\)| \.(?=\s|$)")

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="FOOTNOTE_DATA can name the folder of data sets")


@cache
def read(path):
    items = list(WikipediaDump(path, processes=1).documents())
    pages = {item.key: item.load() for item in items if not isinstance(item, Unreadable)}
    return pages, [(item.key, item.reason) for item in items if isinstance(item, Unreadable)]


@pytest.mark.parametrize(
    ("name", "number", "language"),
    [
        ("bgwiki-utf16.xml.bz2", 1, "bg"),
        ("enwiki-2016-shortened.xml.bz2", 106, "en"),
        ("enwiki-2017-table-markup.xml.bz2", 5, "en"),
        ("itwiki-2011-schema0.5.xml.bz2", 3, "it"),
        ("minidump-2021-ar.xml.bz2", 3, "en"),
        ("minidump-2021-de.xml.bz2", 2, "en"),
        ("minidump-2021-es.xml.bz2", 1, "en"),
        ("minidump-2021-fa.xml.bz2", 1, "en"),
        ("minidump-2021-fr.xml.bz2", 3, "en"),
        ("minidump-2021-he.xml.bz2", 1, "en"),
        ("minidump-2021-ja.xml.bz2", 1, "en"),
        ("minidump-2021-ko.xml.bz2", 1, "en"),
        ("minidump-2021-zh.xml.bz2", 1, "en"),
        ("zhwiki-2018-broken-2.xml", 1, "zh"),
    ],
)
def test_every_article_is_read(name, number, language):
    pages, failures = read(DATA / name)

    assert (len(pages), failures) == (number, [])
    assert {page.language for page in pages.values()} == {language}
    assert all(page.date and page.revision and f"&oldid={page.revision}" in page.url for page in pages.values())


@pytest.mark.parametrize(
    ("name", "key", "reason_part"),
    [
        ("aawiki-20260101-pages-meta-current-schema0.11.xml.bz2", "1269", "its text is empty"),
        ("zhwiki-2018-broken-1.xml", "13", "the page has no title"),
        ("zhwiki-2018-broken-3.xml", "13", "it has no <text> element"),
        ("zhwiki-2018-broken-4.xml", "13", "its text is empty"),
    ],
)
def test_pages_without_text_are_reported_with_their_position(name, key, reason_part):
    pages, [(failed, reason)] = read(DATA / name)

    assert (pages, failed) == ({}, key)
    assert reason_part in reason
    assert re.search(r"line [\d,]+, byte [\d,]+ of the XML", reason)


def test_small_wikipedia_is_read_completely():
    pages, failures = read(DATA / "ltgwiki-2017-full.xml")

    assert (len(pages), len(failures)) == (902, 1)
    assert sum(len(page.aliases) for page in pages.values()) > 100
    assert sum(page.disambiguation for page in pages.values()) > 5


def test_truncated_dump_keeps_the_pages_before(tmp_path):
    cut = tmp_path / "cut.xml.bz2"
    cut.write_bytes((DATA / "enwiki-2016-shortened.xml.bz2").read_bytes()[:1_000_000])
    pages, [(key, reason)] = read(cut)

    assert len(pages) == 60
    assert key == "cut.xml.bz2"
    assert "within the page “Alkali metal” (line 24,207" in reason


def test_passages_rarely_contain_markup_or_gaps():
    texts = [
        passage.text
        for path in sorted(DATA.glob("*.xml*"))
        for key, page in read(path)[0].items()
        for passage in split_page("wikipedia", key, page)
    ]
    bad = [text for text in texts if LEFT_OVER.search(text)]

    assert len(texts) > 5000
    assert len(bad) < len(texts) / 1000


def test_utf_16_dump_reads_like_utf_8(tmp_path):
    packed = DATA / "bgwiki-utf16.xml.bz2"
    plain = tmp_path / "bgwiki.xml"
    plain.write_bytes(bz2.decompress(packed.read_bytes()).decode("utf-16").encode())

    assert read(plain) == read(packed)
