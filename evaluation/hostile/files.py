"""Files that are made to exhaust whoever reads them, each written when it is asked for. None is larger than 100 MB."""

import io
import json
import zipfile
from collections.abc import Callable, Mapping

MB = 1 << 20
_DEEP = 100_000
_WORD = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
_SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_RELATION = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_LAUGHS = "<!DOCTYPE x [<!ENTITY a0 'ha'>" + "".join(
    f"<!ENTITY a{n + 1} '{f'&a{n};' * 10}'>" for n in range(9)
) + "]>"  # fmt: skip


def zipped(parts: Mapping[str, bytes | str]) -> bytes:
    """An archive of these parts."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return made.getvalue()


def docx(document: bytes | str) -> bytes:
    """A Word document whose body is this."""
    types = f'<Types xmlns="{_PACKAGE}/content-types"><Default Extension="xml" ContentType="application/xml"/></Types>'
    target = f'<Relationship Id="r1" Type="{_RELATION}/officeDocument" Target="word/document.xml"/>'
    links = f'<Relationships xmlns="{_PACKAGE}/relationships">{target}</Relationships>'
    return zipped({"[Content_Types].xml": types, "_rels/.rels": links, "word/document.xml": document})


def _paragraphs(inside: str) -> str:
    return f"<w:document {_WORD}><w:body>{inside}</w:body></w:document>"


def bomb(megabytes: int) -> bytes:
    """A Word document that unpacks to so much, nearly all of it blanks."""
    made = io.BytesIO(docx(_paragraphs("")))
    before, after = _paragraphs("<w:p><w:r><w:t>@</w:t></w:r></w:p>").encode().split(b"@")
    with zipfile.ZipFile(made) as given:
        parts = {name: given.read(name) for name in given.namelist() if name != "word/document.xml"}
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
        with archive.open("word/document.xml", "w", force_zip64=True) as document:
            document.write(before)
            for _ in range(megabytes):
                document.write(b" " * MB)
            document.write(after)
    return made.getvalue()


def xlsx(rows: str, *, strings: str = "") -> bytes:
    """A workbook of one sheet."""
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
    return zipped({
        "[Content_Types].xml": f'<Types xmlns="{_PACKAGE}/content-types">{types}</Types>',
        "_rels/.rels": f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r1" '
        f'Type="{_RELATION}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook {_SHEET} xmlns:r="{_RELATION}"><sheets><sheet name="S" sheetId="1" r:id="r1"/>'
        "</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>',
        "xl/worksheets/sheet1.xml": f"<worksheet {_SHEET}><sheetData>{rows}</sheetData></worksheet>",
        "xl/sharedStrings.xml": f"<sst {_SHEET}>{strings}</sst>",
    })  # fmt: skip


def epub(spine: int, chapter: str) -> bytes:
    """A book whose one chapter is read so many times."""
    container = '<container><rootfiles><rootfile full-path="b.opf"/></rootfiles></container>'
    item = '<item id="c" href="c.xhtml" media-type="application/xhtml+xml"/>'
    items = "<itemref idref='c'/>" * spine
    book = f"<package><manifest>{item}</manifest><spine>{items}</spine></package>"
    return zipped(
        {"META-INF/container.xml": container, "b.opf": book, "c.xhtml": f"<html><body>{chapter}</body></html>"}
    )


def pdf(kids: str, count: int, *, more: str = "") -> bytes:
    """A PDF whose tree of pages is this."""
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


MADE: Mapping[str, Callable[[], bytes | str]] = {
    "bomb.docx": lambda: bomb(600),
    "small-bomb.docx": lambda: bomb(300),
    "entities.docx": lambda: docx(
        f"<?xml version='1.0'?>{_LAUGHS}" + _paragraphs("<w:p><w:r><w:t>&a9;</w:t></w:r></w:p>")
    ),
    "deep.docx": lambda: docx(_paragraphs("<w:ins>" * _DEEP + "</w:ins>" * _DEEP)),
    "members.docx": lambda: zipped({f"{n}": "" for n in range(60_000)}),
    "traversal.docx": lambda: zipped({"../../../../tmp/traversal": "x", "/etc/traversal": "x"}),
    "far-cell.xlsx": lambda: xlsx('<row r="1048576"><c r="XFD1048576" t="n"><v>1</v></c></row>'),
    "repeated.xlsx": lambda: xlsx(
        "<row>"
        + '<c t="s"><v>0</v></c>' * 200
        + "</row>"
        + ("<row>" + '<c t="s"><v>0</v></c>' * 200 + "</row>") * 2_000,
        strings=f"<si><t>{'word ' * 2_000}</t></si>",
    ),
    "again.epub": lambda: epub(20_000, "<p>" + "Some words. " * 5_000 + "</p>"),
    "pages.pdf": lambda: pdf("3 0 R", 1_000_000),
    "same-page.pdf": lambda: pdf(
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
"""Contents by name. Those that end in `.wiki` are read as wikitext, all others by their suffix."""
