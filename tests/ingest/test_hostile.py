"""Files that are made to exhaust their reader: each is told with its reason, or read for what it says."""

import os
import time

import pytest

from evaluation.robustness.hostile import HOSTILE_FILES, make_bomb, make_epub, make_pdf, make_xlsx
from ingest.readers import file_formats, office, plain_text
from ingest.sources import folder as folders
from ingest.sources.confluence import storage_format
from ingest.sources.folder import FolderSource
from ingest.sources.sites.sitemap import RobotsRules
from ingest.types import ChangedDocument, Unreadable, UnreadableDocument
from ingest.wikitext.wikitext_parser import parse_wikitext


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("entities.docx", "is broken"),
        ("traversal.docx", "is broken"),
        ("pages.pdf", "more than 10,000 pages"),
        ("repeated.ods", "5,000,000 cells"),
        ("merges.md", "ok"),
        ("merges.yaml", "broken YAML"),
        ("laughs.yaml", "grows too large|nested too deeply|broken YAML"),
        ("deep.toml", "is broken"),
        ("deep.json", "is broken"),
        ("deep.xml", "is broken"),
        ("laughs.svg", "pictures are not read"),
    ],
)
def test_what_is_refused(name, reason):
    """In a line that says why."""
    made = HOSTILE_FILES[name]()
    content = made.encode() if isinstance(made, str) else made

    try:
        said = " ".join(b.text for s in file_formats.read_file(content, name).sections for b in s.blocks)
    except UnreadableDocument as error:
        said = str(error)
        assert any(part in said for part in reason.split("|")), said
    else:
        assert reason == "ok"
        assert "Text." in said


@pytest.mark.parametrize("name", ["outside.xml", "include.rst"])
def test_nothing_else_of_this_machine_is_read(name):
    """Whatever a file asks to have put in its place."""
    try:
        read = file_formats.read_file(HOSTILE_FILES[name]().encode(), name)
    except UnreadableDocument:
        return
    assert "root:" not in str(read)


def test_an_archive_is_looked_at_before_it_is_unpacked():
    """How much it holds, how tightly, and in how many parts."""
    content = make_bomb(3)
    for limits, reason in (
        ({}, "more tightly"),
        ({"largest": 1 << 20}, "unpacks to more than 1 MB"),
        ({"parts": 2}, "more than 2 parts"),
    ):
        with pytest.raises(UnreadableDocument, match=reason):
            office.open_package(content, **limits)
    loose = make_epub(1, "".join(f"<p>{number:x}</p>" for number in range(200_000)))
    with pytest.raises(UnreadableDocument, match="1 MB of markup"):
        office.open_package(loose, markup=1 << 20)


def test_a_chapter_is_read_once():
    """However often the book names it."""
    read = file_formats.read_file(make_epub(500, "<p>Some words.</p>"), "a.epub")

    assert [block.text for section in read.sections for block in section.blocks] == ["Some words."]


def test_a_workbook_says_no_more_than_a_document():
    """A text that is stored once may stand in any number of cells."""
    text = "".join(f"{number:05}x" for number in range(1_600))
    row = "<row>" + '<c t="s"><v>0</v></c>' * 100 + "</row>"

    with pytest.raises(UnreadableDocument, match="MB of text: split it"):
        file_formats.read_file(make_xlsx(row * 40, strings=f"<si><t>{text}</t></si>"), "a.xlsx")
    assert file_formats.read_file(make_xlsx(row.replace("100", "1"), strings="<si><t>One</t></si>"), "a.xlsx").sections


def test_a_pdf_of_few_pages_is_read():
    """What it claims is not what counts."""
    assert file_formats.read_file(make_pdf("3 0 R", 1), "a.pdf").sections


def test_text_beyond_any_document_is_refused():
    """Reading it takes several times its size in memory."""
    with pytest.raises(UnreadableDocument, match="more than 32 MB of text"):
        file_formats.read_file(b"x" * (file_formats.LARGEST_TEXT + 1), "a.txt")


def read_markdown(text):
    return file_formats.read_file(text.encode(), "a.md")


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (plain_text.read_plain_text, "a\n" * 1_000_000),
        (read_markdown, "{" * 100_000),
        (storage_format.convert_to_html, "<![CDATA[" * 100_000),
        (storage_format.convert_to_html, "<!--" * 100_000),
        (storage_format.convert_to_html, "<a " * 100_000),
        (RobotsRules, b"\n" * 200_000),
        (parse_wikitext, f"</{'l' * 200_000}"),
        (parse_wikitext, f"{'=' * 200_000}x"),
    ],
    ids=range(8),
)
def test_what_begins_and_never_ends_is_quickly_read(read, text):
    """Time grows with the length of the text: what is quadratic would take half a minute here."""
    started = time.process_time()
    read(text)

    assert time.process_time() - started < 5


@pytest.mark.parametrize("opening", ["<table><tr><td>", "<div>", "<ul><li>", "<table><tr><td colspan=50 rowspan=50>"])
def test_deep_markup_is_read_for_its_text(opening):
    """No page can exhaust the stack, or be looked through again from each of its tables."""
    read = file_formats.read_file(("<p>Before.</p>" + opening * 60 + "Text.").encode(), "a.html")

    assert "Text." in str(read)


def test_folders_within_folders(tmp_path, monkeypatch):
    """What lies deeper than any handbook is told; all else is read."""
    (tmp_path / "a.md").write_text("Text.")
    monkeypatch.chdir(tmp_path)
    for _ in range(folders.DEEPEST_FOLDER + 2):
        os.mkdir("x")  # noqa: PTH102 - the whole path would be too long
        os.chdir("x")

    first, second = FolderSource(tmp_path).documents()

    assert isinstance(first, ChangedDocument)
    assert isinstance(second, Unreadable)
    assert second.reason == "lies more than 350 folders deep"
    assert second.key.endswith("/")
