"""Read files that are made to exhaust a reader, each in a process of its own, and measure time and memory."""

import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated

import typer

from ingest import page_cleanup
from ingest.chunking import split_page
from ingest.readers import file_formats
from ingest.sources.folder import FolderSource
from ingest.types import ChangedDocument, Unreadable, UnreadableDocument
from ingest.wikitext.wikitext_parser import make_sections, parse_wikitext

MB = 1 << 20
_DEEP = 100_000
_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_LAUGHS = "<!DOCTYPE x [<!ENTITY a0 'ha'>" + "".join(
    f"<!ENTITY a{n + 1} '{f'&a{n};' * 10}'>" for n in range(9)
) + "]>"  # fmt: skip


def make_zip(parts: Mapping[str, bytes | str]) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return made.getvalue()


def make_docx(document: bytes | str) -> bytes:
    types = f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/></Types>'
    target = f'<Relationship Id="r1" Type="{_RELATION}/officeDocument" Target="word/document.xml"/>'
    links = f'<Relationships xmlns="{_PACKAGE}/relationships">{target}</Relationships>'
    return make_zip({"[Content_Types].xml": types, "_rels/.rels": links, "word/document.xml": document})


def _paragraphs(inside: str) -> str:
    return f"<w:document {_WORD}><w:body>{inside}</w:body></w:document>"


def make_bomb(megabytes: int) -> bytes:
    """Return a Word document that unpacks to this many megabytes, nearly all of them spaces."""
    made = io.BytesIO(make_docx(_paragraphs("")))
    before, after = _paragraphs("<w:p><w:r><w:t>@</w:t></w:r></w:p>").encode().split(b"@")
    with zipfile.ZipFile(made) as archive_read:
        parts = {name: archive_read.read(name) for name in archive_read.namelist() if name != "word/document.xml"}
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
        with archive.open("word/document.xml", "w", force_zip64=True) as document:
            document.write(before)
            for _ in range(megabytes):
                document.write(b" " * MB)
            document.write(after)
    return made.getvalue()


def make_xlsx(rows: str, *, strings: str = "") -> bytes:
    main = "application/vnd.openxmlformats-officedocument.spreadsheetml"
    types = "".join(
        f'<Override PartName="/xl/{name}.xml" ContentType="{main}.{kind}+xml"/>'
        for name, kind in (
            ("workbook", "sheet.main"),
            ("worksheets/sheet1", "worksheet"),
            ("sharedStrings", "sharedStrings"),
        )
    )
    links = "".join(
        f'<Relationship Id="r{n}" Type="{_RELATION}/{kind}" Target="{target}"/>'
        for n, (kind, target) in enumerate(
            (("worksheet", "worksheets/sheet1.xml"), ("sharedStrings", "sharedStrings.xml")), 1
        )
    )
    return make_zip({
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">{types}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{_RELATION}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {_SHEET} xmlns:r="{_RELATION}"><sheets><sheet name="S" sheetId="1" r:id="r1"/>'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>',
        "xl/worksheets/sheet1.xml": f"<worksheet {_SHEET}><sheetData>{rows}</sheetData></worksheet>",
        "xl/sharedStrings.xml": f"<sst {_SHEET}>{strings}</sst>",
    })  # fmt: skip


def make_epub(spine: int, chapter: str) -> bytes:
    """Return an e-book with a single chapter, which its list of chapters names `spine` times."""
    container = '<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>'
    item = '<item id="c" href="c.xhtml" media-type="application/xhtml+xml"/>'
    items = "<itemref idref='c'/>" * spine
    book = f"<package><manifest>{item}</manifest><spine>{items}</spine></package>"
    return make_zip(
        {"META-INF/container.xml": container, "b.opf": book, "c.xhtml": f"<html><body>{chapter}</body></html>"}
    )


def make_pdf(kids: str, count: int, *, more: str = "") -> bytes:
    """Return a PDF with the given page tree."""
    page = "<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>"
    text = "BT /F 12 Tf 20 100 Td (Text on a page.) Tj ET"
    objects = [
        "<</Type/Catalog/Pages 2 0 R>>",
        f"<</Type/Pages/Count {count}/Kids[{kids}]>>",
        page,
        f"<</Length {len(text)}>>stream\n{text}\nendstream",
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
        *([more] if more else []),
    ]
    body = "%PDF-1.4\n"
    places = []
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += f"{number} 0 obj{content}endobj\n"
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    size = len(objects) + 1
    return (
        f"{body}xref\n0 {size}\n0000000000 65535 f \n{table}trailer<</Size {size}/Root 1 0 R>>\n"
        f"startxref\n{len(body)}\n%%EOF"
    ).encode()


def _yaml_laughs(merge: str) -> str:
    lines = ["a0: &a0 {x: y}"] + [f"a{n + 1}: &a{n + 1} {merge.format(', '.join([f'*a{n}'] * 9))}" for n in range(9)]
    return "\n".join(lines)


def _nested_mail() -> str:
    head = "".join(f'Content-Type: multipart/mixed; boundary="b{n}"\n\n--b{n}\n' for n in range(3_000))
    return f"Subject: Deep\n{head}Content-Type: text/plain\n\nText."


def _make_sheet(times: int) -> str:
    """Return an OpenDocument sheet with one cell, which is repeated `times` times in columns and in rows."""
    oasis = "urn:oasis:names:tc:opendocument:xmlns"
    names = " ".join(f'xmlns:{name}="{oasis}:{name}:1.0"' for name in ("office", "table", "text"))
    cell = f'<table:table-cell table:number-columns-repeated="{times}"><text:p>word</text:p></table:table-cell>'
    row = f'<table:table-row table:number-rows-repeated="{times}">{cell}</table:table-row>'
    table = f'<table:table table:name="A">{row * 50}</table:table>'
    inside = f"<office:body><office:spreadsheet>{table}</office:spreadsheet></office:body>"
    return f"<office:document-content {names}>{inside}</office:document-content>"


HOSTILE_FILES: Mapping[str, Callable[[], bytes | str]] = {
    "bomb.docx": lambda: make_bomb(600),
    "small-bomb.docx": lambda: make_bomb(300),
    "entities.docx": lambda: make_docx(
        f"<?xml version='1.0'?>{_LAUGHS}" + _paragraphs("<w:p><w:r><w:t>&a9;</w:t></w:r></w:p>")
    ),
    "deep.docx": lambda: make_docx(_paragraphs("<w:ins>" * _DEEP + "</w:ins>" * _DEEP)),
    "members.docx": lambda: make_zip({f"{n}": "" for n in range(60_000)}),
    "traversal.docx": lambda: make_zip({"../../../../tmp/traversal": "x", "/etc/traversal": "x"}),
    "repeated.ods": lambda: make_zip({"content.xml": _make_sheet(1_000_000)}),
    "lists.tex": lambda: "\\begin{itemize}\\item a " * 2_500,
    "dollars.tex": lambda: "$" * 64_000,
    "cells.adoc": lambda: "|===\n" + "|a\n" * 20_000,
    "far-cell.xlsx": lambda: make_xlsx('<row r="1048576"><c r="XFD1048576" t="n"><v>1</v></c></row>'),
    "repeated.xlsx": lambda: make_xlsx(
        "<row>"
        + '<c t="s"><v>0</v></c>' * 200
        + "</row>"
        + ("<row>" + '<c t="s"><v>0</v></c>' * 200 + "</row>") * 2_000,
        strings=f"<si><t>{'word ' * 2_000}</t></si>",
    ),
    "again.epub": lambda: make_epub(20_000, "<p>" + "Some words. " * 5_000 + "</p>"),
    "pages.pdf": lambda: make_pdf("3 0 R", 1_000_000),
    "same-page.pdf": lambda: make_pdf(
        "6 0 R " * 1_000, 1_000_000, more=f"<</Type/Pages/Count 1000/Kids[{'3 0 R ' * 1_000}]>>"
    ),
    "large.txt": lambda: "Some words, and some more of them.\n\n" * (100 * MB // 36),
    "one-line.txt": lambda: "word " * (20 * MB),
    "large.md": lambda: "Some *words*, and some more of them.\n\n" * (100 * MB // 38),
    "large.html": lambda: "<p>Some words, and some more of them.</p>" * (100 * MB // 41),
    "deep.html": lambda: "<div>" * _DEEP + "Text.",
    "deep-table.html": lambda: "<table><tr><td>" * 5_000 + "Text.",
    "deep-list.html": lambda: "<ul><li>" * 5_000 + "Text.",
    "spans.html": lambda: "<table>" + '<tr><td colspan="1000" rowspan="65534">x</td></tr>' * 2_000 + "</table>",
    "quotes.md": lambda: ">" * _DEEP + " Text.",
    "brackets.md": lambda: "[" * _DEEP + "Text.",
    "pictures.md": lambda: "![" * _DEEP + "Text.",
    "stars.md": lambda: "*a **b " * _DEEP + "Text.",
    "ticks.md": lambda: "".join("`" * n + " " for n in range(1, 1_500)) + "Text.",
    "tags.md": lambda: "<a " * _DEEP + "Text.",
    "lists.md": lambda: "".join(" " * 2 * n + "- x\n" for n in range(1_500)),
    "links.md": lambda: "[a](" * _DEEP + "Text.",
    "references.md": lambda: "".join(f"[{n}]: /x\n" for n in range(_DEEP)) + "Text.",
    "shortcodes.md": lambda: "{{< " * _DEEP + "Text.",
    "laughs.md": lambda: f"---\n{_yaml_laughs('[{}]')}\n---\nText.",
    "merges.md": lambda: f"---\n{_yaml_laughs('{{<<: [{}]}}')}\n---\nText.",
    "deep-front.md": lambda: f"---\na: {'[' * 50_000}\n---\nText.",
    "merges.yaml": lambda: _yaml_laughs("{{<<: [{}]}}"),
    "laughs.yaml": lambda: _yaml_laughs("[{}]"),
    "deep.yaml": lambda: "[" * 50_000,
    "deep.json": lambda: "[" * _DEEP + "]" * _DEEP,
    "deep-objects.json": lambda: '{"a":' * 900 + "1" + "}" * 900,
    "large.json": lambda: json.dumps([{"name": f"n{n}", "text": "Some words"} for n in range(1_500_000)]),
    "deep.toml": lambda: "a = " + "[" * 50_000,
    "laughs.xml": lambda: (
        f"<?xml version='1.0'?>{_LAUGHS}<rss><channel><item><title>&a9;</title></item></channel></rss>"
    ),
    "outside.xml": lambda: (
        "<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><rss><channel><title>&e;</title></channel></rss>"
    ),
    "deep.xml": lambda: "<a>" * _DEEP + "</a>" * _DEEP,
    "laughs.svg": lambda: f"{_LAUGHS}<svg>&a9;</svg>",
    "substitutions.rst": lambda: "\n".join(
        [".. |a0| replace:: ha", *(f".. |a{n + 1}| replace:: {f' |a{n}| ' * 10}" for n in range(9)), "", "|a9|"]
    ),
    "include.rst": lambda: ".. include:: /etc/passwd\n\n.. csv-table::\n   :file: /etc/passwd\n\nText.",
    "nested.eml": _nested_mail,
    "cells.csv": lambda: "a,b\n" + "x" * (20 * MB) + ",1\n",
    "templates.wiki": lambda: "{{a|" * 50_000 + "Text." + "}}" * 50_000,
    "links.wiki": lambda: "[[a|" * 50_000 + "Text.",
    "tables.wiki": lambda: "{|\n|\n" * 5_000 + "Text.",
}
"""The contents by file name. Files that end in `.wiki` are read as wikitext, all others by their suffix."""


def read_hostile_file(path: Path) -> None:
    file_formats.read_file(b"# A\n\nText.", "warm.md")
    before = _peak_memory()
    started = time.perf_counter()
    count, reason = 0, ""
    try:
        count = _count_passages(path)
    except UnreadableDocument as error:
        reason = str(error)
    except Exception as error:  # noqa: BLE001 - a refresh does the same, and continues with the next document
        reason = f"({type(error).__name__})"
    seconds = time.perf_counter() - started
    # The peak memory of a child process that read documents for this one; 0 without one.
    reader = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    memory = {"mb": _peak_memory(), "before": before, "reader": reader}
    print(json.dumps({"passages": count, "reason": reason, "seconds": seconds, **memory}))


def _count_passages(path: Path) -> int:
    if path.suffix == ".wiki":
        text = path.read_text(encoding="utf-8")
        return sum(len(section.blocks) for section in make_sections(parse_wikitext(text)))
    for item in FolderSource(path.parent, include=[path.name]).documents():
        if isinstance(item, Unreadable):
            raise UnreadableDocument(item.reason)
        if isinstance(item, ChangedDocument):
            return len(split_page("hostile", item.key, page_cleanup.clean_page(item.load())))
    return 0


def _peak_memory() -> float:
    """Return the peak memory of this process in MB, as Linux counts it."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


MOST_SECONDS = 300.0


def hostile(
    only: Annotated[str, typer.Option(help="Only files whose names contain this.")] = "",
    seconds: Annotated[float, typer.Option(help="The time limit of one file.")] = MOST_SECONDS,
) -> None:
    """Print the outcome of each hostile file, its seconds, and the peak memory of its process."""
    load = os.getloadavg()[0]
    print(f"Load {load:.1f}. MB: peak of the process; reader: peak of the child process that read the file, if any.\n")
    print(f"{'file':<22} {'size':>8} {'seconds':>8} {'MB':>6} {'reader':>6}  outcome")
    for name in filter(lambda name: only in name, HOSTILE_FILES):
        _measure_file(name, seconds)


def _measure_file(name: str, seconds: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        made = HOSTILE_FILES[name]()
        path.write_bytes(made.encode() if isinstance(made, str) else made)
        size = path.stat().st_size / MB
        del made
        command = [sys.executable, "-m", "evaluation.robustness.hostile", str(path)]
        figures = ("", "", "")
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
        except subprocess.TimeoutExpired:
            became = f"NOT DONE after {seconds:.0f} s"
        else:
            became = f"THE PROCESS DIED ({done.returncode})"
            if not done.returncode:
                document = json.loads(done.stdout)
                reader = f"{document['reader']:.0f}" if document["reader"] else ""
                figures = (f"{document['seconds']:.2f}", f"{document['mb']:.0f}", reader)
                became = document["reason"] or f"{document['passages']:,} passages"
    print(f"{name:<22} {size:>7.1f}M {figures[0]:>8} {figures[1]:>6} {figures[2]:>6}  {became}", flush=True)


if __name__ == "__main__":
    read_hostile_file(Path(sys.argv[1]))
