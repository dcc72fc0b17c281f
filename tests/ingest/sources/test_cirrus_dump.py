"""Dumps of CirrusSearch: pages as plain text, in one or several files, packed or not, some of them damaged."""

import bz2
import gzip
import json

import pytest

from ingest.sources.dumps.cirrus_dump import CirrusDump
from ingest.sources.dumps.dump_file import DumpError
from ingest.types import SingleReadUnsupported, Unreadable, UnreadableDocument
from ingest.wikitext.wiki_site import describe_database, resolve_database

ADA = {
    "title": "Ada Lovelace",
    "namespace": 0,
    "wiki": "simplewiki",
    "language": "en",
    "version": 77,
    "timestamp": "2026-10-31T10:00:00Z",
    "opening_text": "Ada was a  mathematician.",
    "text": "Ada was a mathematician. Born in London, she wrote programs.",
    "heading": ["Life"],
    "redirect": [{"namespace": 0, "title": "Countess"}, {"namespace": 2, "title": "Me"}, "odd"],
    "template": ["Template:Infobox person"],
}


def lines(*pages):
    """Write pages in bulk format: an action, then the page."""
    pairs = [({"index": {"_type": "page", "_id": key}}, page) for key, page in pages]
    return "".join(json.dumps(line) + "\n" for pair in pairs for line in pair).encode()


def loaded(source, known=None):
    items = list(source.documents(known or {}))
    pages = {item.key: item.load() for item in items if not isinstance(item, Unreadable)}
    return pages, [(item.key, item.reason) for item in items if isinstance(item, Unreadable)]


@pytest.mark.parametrize(("ending", "pack"), [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
def test_cirrus_pages_have_aliases_and_metadata(tmp_path, ending, pack):
    first, second = tmp_path / f"a.json{ending}", tmp_path / f"b.json{ending}"
    first.write_bytes(pack(lines(("1", ADA), ("2", {**ADA, "namespace": 10}))))
    second.write_bytes(pack(lines((3, {**ADA, "title": "Ada", "template": ["Template:Disambiguation"]}), ("1", ADA))))
    pages, failures = loaded(CirrusDump(first, second))

    assert (list(pages), failures) == (["1", "3"], [])
    ada = pages["1"]
    assert (ada.title, ada.aliases, ada.language, ada.revision) == ("Ada Lovelace", ("Countess",), "en", "77")
    assert ada.url == "https://simple.wikipedia.org/w/index.php?title=Ada_Lovelace&oldid=77"
    assert ada.date.isoformat() == "2026-10-31T10:00:00+00:00"
    assert [block.text for block in ada.sections[0].blocks] == [
        "Ada was a mathematician.",
        "Born in London, she wrote programs.",
    ]
    assert [pages[key].disambiguation for key in pages] == [False, True]


def test_namespaces_are_selected(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(lines(("1", ADA), ("2", {**ADA, "namespace": 4})))
    assert list(loaded(CirrusDump(path, namespaces=(4,)))[0]) == ["2"]


@pytest.mark.parametrize("change", [{"version": 78}, {"redirect": []}, {"version": None, "timestamp": "2026-11-01"}])
def test_fingerprints_change_with_revision_and_aliases(tmp_path, change):
    path = tmp_path / "a.json"
    path.write_bytes(lines(("1", ADA)))
    (before,) = CirrusDump(path).documents()
    (same,) = CirrusDump(path).documents()
    path.write_bytes(lines(("1", {**ADA, **change})))
    (after,) = CirrusDump(path).documents()
    assert before.fingerprint == same.fingerprint != after.fingerprint


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress])
def test_truncated_file_keeps_known_pages(tmp_path, pack):
    whole = pack(lines(("1", ADA), ("2", {**ADA, "text": "x" * 9_999})))
    path = tmp_path / "a.json"
    path.write_bytes(
        whole[: len(whole) * 2 // 3] if pack is not bytes else lines(("1", ADA)) + b'{"index": {"_id": 2}}'
    )
    items = list(CirrusDump(path).documents({"2": "known", "9": "known"}))

    failures = [item for item in items if isinstance(item, Unreadable)]
    assert [item.key for item in failures if "the file is damaged" in item.reason] == ["a.json"]
    unchanged = [item for item in items if not isinstance(item, Unreadable) and item.fingerprint == "known"]
    assert [item.key for item in unchanged] == ["2", "9"]
    with pytest.raises(UnreadableDocument):
        unchanged[0].load()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"<html>Please log in</html>\n", "line 1 does not name the next page"),
        (b'{"title": "Ada"}\n{}\n', "line 1 does not name the next page"),
        (b'{"index": {"_id": "1"}}\n{"title": "A\n', "line 2 of a.json is broken"),
        (b'{"index": {"_id": "1"}}\n' + b"[" * 200_000 + b"\n", "line 2 of a.json is broken"),
        (b'{"index": {"_id": "1"}}\n{"namespace": 0}\n', "the page has no title"),
    ],
)
def test_damage_is_reported_with_its_position(tmp_path, content, message):
    path = tmp_path / "a.json"
    path.write_bytes(content)
    _, failures = loaded(CirrusDump(path))
    assert len(failures) == 1
    assert message in failures[0][1]


def test_page_without_text_is_unreadable(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(lines(("1", {**ADA, "text": " ", "opening_text": None})))
    (item,) = CirrusDump(path).documents()
    with pytest.raises(UnreadableDocument, match="no text"):
        item.load()


def test_missing_file_is_reported_immediately(tmp_path):
    with pytest.raises(DumpError, match="There is no file"):
        CirrusDump(tmp_path / "none.json").documents()
    with pytest.raises(SingleReadUnsupported, match="read as a whole"):
        CirrusDump(tmp_path / "none.json").one("x", {})


@pytest.mark.parametrize(
    ("written", "name", "origin", "language"),
    [
        ("simple", "simplewiki", "https://simple.wikipedia.org", "en"),
        ("EN", "enwiki", "https://en.wikipedia.org", "en"),
        ("zh-yue", "zh_yuewiki", "https://zh-yue.wikipedia.org", "zh"),
        ("dewiktionary", "dewiktionary", "https://de.wiktionary.org", "de"),
        ("commonswiki", "commonswiki", "https://commons.wikimedia.org", ""),
        ("wikidatawiki", "wikidatawiki", "https://www.wikidata.org", ""),
    ],
)
def test_database_names_identify_wikis(written, name, origin, language):
    assert resolve_database(written) == name
    assert (describe_database(name).origin, describe_database(name).language) == (origin, language)


@pytest.mark.parametrize("name", ["", "../x", "en/wiki", "en wiki", "é", "x" * 80, "1wiki"])
def test_invalid_wiki_database_names_are_refused(name):
    with pytest.raises(ValueError, match="name of a wiki"):
        resolve_database(name)
