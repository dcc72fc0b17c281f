"""Files that are made to exhaust their reader are refused with a reason, or read within limits."""

import os
import time
from contextlib import suppress

import pytest

from evaluation.robustness.hostile import HOSTILE_FILES, make_bomb, make_epub, make_pdf, make_xlsx
from ingest.readers import file_formats, html_tree, markdown_reader, office, plain_text, template_tags
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
        ("merges.yaml", "broken YAML"),
        ("laughs.yaml", "grows too large|nested too deeply|broken YAML"),
        ("deep.toml", "is broken"),
        ("deep.json", "is broken"),
        ("deep.xml", "is broken"),
        ("laughs.svg", "pictures are not read"),
    ],
)
def test_hostile_file_is_refused_with_a_reason(name, reason):
    hostile = HOSTILE_FILES[name]()

    with pytest.raises(UnreadableDocument, match=reason):
        file_formats.read_file(hostile.encode() if isinstance(hostile, str) else hostile, name)


def test_front_matter_that_merges_too_much_is_ignored():
    assert "Text." in str(file_formats.read_file(HOSTILE_FILES["merges.md"]().encode(), "merges.md"))


@pytest.mark.parametrize("name", ["outside.xml", "include.rst"])
def test_files_cannot_include_others(name):
    try:
        read = file_formats.read_file(HOSTILE_FILES[name]().encode(), name)
    except UnreadableDocument:
        return
    assert "root:" not in str(read)


def test_archive_is_checked_before_unpacking():
    content = make_bomb(3)
    for limits, reason in (
        ({}, "compressed more"),
        ({"largest": 1 << 20}, "unpacks to more than 1 MB"),
        ({"parts": 2}, "more than 2 parts"),
    ):
        with pytest.raises(UnreadableDocument, match=reason):
            office.open_package(content, **limits)
    loose = make_epub(1, "".join(f"<p>{number:x}</p>" for number in range(200_000)))
    with pytest.raises(UnreadableDocument, match="1 MB of markup"):
        office.open_package(loose, markup=1 << 20)


def test_repeated_chapter_is_read_once():
    read = file_formats.read_file(make_epub(500, "<p>Some words.</p>"), "a.epub")

    assert [block.text for section in read.sections for block in section.blocks] == ["Some words."]


def test_repeated_text_in_a_workbook_is_limited():
    text = "".join(f"{number:05}x" for number in range(1_600))
    row = "<row>" + '<c t="s"><v>0</v></c>' * 100 + "</row>"

    with pytest.raises(UnreadableDocument, match="MB of text: split it"):
        file_formats.read_file(make_xlsx(row * 40, strings=f"<si><t>{text}</t></si>"), "a.xlsx")
    assert file_formats.read_file(make_xlsx(row.replace("100", "1"), strings="<si><t>One</t></si>"), "a.xlsx").sections


def test_pdf_with_false_page_count_is_read():
    assert file_formats.read_file(make_pdf("3 0 R", 1), "a.pdf").sections


def test_too_large_text_is_refused():
    with pytest.raises(UnreadableDocument, match="more than 32 MB of text"):
        file_formats.read_file(b"x" * (file_formats.LARGEST_TEXT + 1), "a.txt")


def read_as(suffix):
    """Return the reader of a format, which may refuse the text."""

    def read(text):
        with suppress(UnreadableDocument):
            file_formats.read_file(text.encode(), f"a{suffix}")

    return read


LINES = ("- a\n", "![\n", "{% x\n", "{\n", "a\n\n")
REPEATED = [
    *(("", line, "", 1_000_000, read_as(name)) for name in (".md", ".mdx", ".html", ".txt", ".rst") for line in LINES),
    *(("", unit, "][", 20_000, markdown_reader.read_mdx) for unit in (
        "{{x}} ", "{% x ", "{{< ", "[a]({% x %}", "[](x) ", "[ab", "<A b='", "![", "{x", "[a]: {{ ",
    )),
    *(("", unit, "", 60_000, markdown_reader.read_mdx) for unit in (
        "{% comment %}", "{% comment %}\n\n", "{# \n", "{# a\n\n", "{{/* a\n\nb",
    )),
    *(("", unit, "{{", 300_000, template_tags.replace_tags) for unit in (
        "{{ x", "{% x ", "{% comment %}", "<a b='", "<pre>", "{{x}}", "<a {{", "<!--", "{% a '",
    )),
    *(("{{Infobox\n", unit, "", 200_000, parse_wikitext) for unit in (
        "{{", "[[", "{{a|", "[[{{x]]", "<ref>", "<!--", "{|\n", "|rowspan=500|a\n", "[http://", "(;", "{{{a|",
        "<nowiki>", "\n==", "{{x}}", "({{x}}", "{{x}} in ", "\n|a={{x}}", "{{#expr:1+",
    )),
    *(("<p>", f"{gap} a ", "</p>", 100_000, html_tree.read_html) for gap in (
        "<img>", "<img alt=a>", "<a href=x></a>", "<s></s>",
    )),
    *(("", unit, "", 200_000, read_as(".tex")) for unit in ("$", "\\verb|", "\\begin{tabular}{l}\n")),
    *(("", unit, "", 200_000, read_as(".adoc")) for unit in ("|a\n", "<<")),
    *(("", unit, "", 900_000, storage_format.convert_to_html) for unit in ("<![CDATA[", "<!--", "<a ")),
    ("", "a\n", "", 2_000_000, plain_text.read_plain_text),
    ("", "{", "", 100_000, read_as(".md")),
    ("", "\n", "", 200_000, lambda text: RobotsRules(text.encode())),
    ("</", "l", "", 200_000, parse_wikitext),
    ("", "=", "x", 200_000, parse_wikitext),
]  # fmt: skip


@pytest.mark.parametrize(("before", "unit", "after", "length", "read"), REPEATED, ids=range(len(REPEATED)))
def test_repeated_and_unclosed_marks_are_read_quickly(before, unit, after, length, read):
    text = before + unit * (length // len(unit)) + after
    started = time.process_time()
    read(text)

    assert time.process_time() - started < 3


@pytest.mark.parametrize("opening", ["<table><tr><td>", "<div>", "<ul><li>", "<table><tr><td colspan=50 rowspan=50>"])
def test_deep_markup_is_read(opening):
    read = file_formats.read_file(("<p>Before.</p>" + opening * 60 + "Text.").encode(), "a.html")

    assert "Text." in str(read)


def test_too_deep_folder_is_reported(tmp_path, monkeypatch):
    (tmp_path / "a.md").write_text("Text.")
    monkeypatch.chdir(tmp_path)
    for _ in range(folders.DEEPEST_FOLDER + 2):
        os.mkdir("x")  # noqa: PTH102 - the whole path would be too long
        os.chdir("x")

    first, second = FolderSource(tmp_path).documents()

    assert isinstance(first, ChangedDocument)
    assert isinstance(second, Unreadable)
    assert second.reason == "is more than 350 folders deep"
    assert second.key.endswith("/")
