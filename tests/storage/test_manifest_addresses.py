"""Tests of finding a document by the names that people use."""

import pytest

from storage.database.bodies import pack_passages
from storage.database.document_versions import VersionChange
from storage.database.manifest_tx import normalize_url
from storage.manifest import Manifest
from storage.types import Document, DocumentRef
from tests.storage.stores import open_empty_database

ROWS = [
    ("wiki", "7", "Tübingen", "https://de.example.org/wiki/T%C3%BCbingen?oldid=99"),
    ("wiki", "8", "Tübingen (Kreis)", "https://de.example.org/wiki/T%C3%BCbingen_(Kreis)"),
    ("team", "42", "Leave", "https://wiki.example.com/pages/viewpage.action?pageId=42"),
    ("team", "43", "Leave, old", "https://wiki.example.com/pages/viewpage.action?pageId=43&version=3"),
    ("site", "/docs/", "Docs", "https://example.com/docs/"),
    ("folder", "a%b_c.md", "Odd", ""),
    ("folder", "leave.md", "Leave", ""),
]


@pytest.fixture
async def manifest(tmp_path):
    with open_empty_database(tmp_path) as database:
        opened = Manifest(database)
        for corpus, key, title, url in ROWS:
            await opened.commit([VersionChange(corpus, key, Document(corpus, key, title, url), 0, pack_passages([]))])
        yield opened


@pytest.mark.parametrize(
    ("address", "keys"),
    [
        ("https://de.example.org/wiki/T%C3%BCbingen?oldid=99", ["7"]),
        ("https://de.example.org/wiki/Tübingen", ["7"]),
        ("https://DE.example.org/wiki/T%C3%BCbingen/#Geschichte", ["7"]),
        ("https://de.example.org/wiki/T%C3%BCbingen?oldid=1", ["7"]),
        ("https://de.example.org/wiki/Tübingen_(Kreis)", ["8"]),
        ("https://de.example.org/wiki/T", []),
        ("https://wiki.example.com/pages/viewpage.action?pageId=42", ["42"]),
        ("https://wiki.example.com/pages/viewpage.action?pageId=43", ["43"]),
        ("https://wiki.example.com/pages/viewpage.action", []),
        ("https://example.com/docs", ["/docs/"]),
        ("https://example.com/", []),
        ("  leave.md ", ["leave.md"]),
        ("Leave", ["leave.md", "42"]),
        ("leave", []),
        ("a%b_c.md", ["a%b_c.md"]),
        ("https://[", []),
        ("", []),
    ],
)
async def test_document_is_found_by_its_address_key_or_exact_title(manifest, address, keys):
    assert [found.key for found in await manifest.find(address)] == keys


async def test_found_document_has_all_its_names(manifest):
    assert await manifest.find("Tübingen") == (DocumentRef(*ROWS[0]),)


def test_text_that_is_not_an_address_is_unchanged():
    assert [normalize_url(text) for text in ("Leave", "mailto:a@b", "https://[")] == [
        "Leave",
        "mailto:a@b",
        "https://[",
    ]


async def test_forgotten_document_is_found_by_its_names(manifest):
    await manifest.forget("wiki", ["7"])
    await manifest.commit([VersionChange("wiki", "7", None)])
    await manifest.forget("wiki", ["7"])

    for address in ("7", "Tübingen", "https://de.example.org/wiki/Tübingen/#Geschichte"):
        assert await manifest.find_forgotten(address) == (DocumentRef(*ROWS[0]),)
        assert await manifest.find(address) == ()
    assert await manifest.find_forgotten("Leave") == ()
    assert await manifest.all_forgotten() == (DocumentRef(*ROWS[0]),)
