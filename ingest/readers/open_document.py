"""Read OpenDocument files: texts (.odt) by converting them to HTML, slides (.odp) and sheets (.ods) as sections."""

import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from html import escape

from ingest.readers import html_tree, office, spreadsheet, value_parsers
from ingest.readers.parsed_document import ContentItem, ParsedDocument
from ingest.readers.value_parsers import Element
from ingest.types import UnreadableDocument
from storage.language.lazy_pattern import lazy_compile

_OASIS = "{urn:oasis:names:tc:opendocument:xmlns:"
_OFFICE, _TEXT, _TABLE, _DRAW, _SHOW, _STYLE, _SVG = (
    f"{_OASIS}{name}:1.0}}"
    for name in ("office", "text", "table", "drawing", "presentation", "style", "svg-compatible")
)
_LINK = "{http://www.w3.org/1999/xlink}href"
_UNSEEN = frozenset({
    *(f"{_TEXT}{name}" for name in ("tracked-changes", "table-of-content", "alphabetical-index", "sequence-decls")),
    *(f"{_OFFICE}{name}" for name in ("annotation", "forms", "event-listeners")),
    f"{_TEXT}ruby-text",
    f"{_TEXT}note-citation",
    f"{_SHOW}notes",
    f"{_SVG}title",
    f"{_SVG}desc",
})  # fmt: skip
_MOST_SPACES = 100
_MOST_REPEATED = 1000
"""Repetitions of a cell or row with text that are read; further ones add nothing."""
_HEADING_STYLE = lazy_compile(r"Heading_20_([1-6])")
_LENGTH = lazy_compile(r"(-?[\d.]+)(cm|mm|in|pt)?")
_UNITS = {"cm": 10.0, "mm": 1.0, "in": 25.4, "pt": 0.353}


def read_text_document(content: bytes) -> ParsedDocument:
    document = _open(content, "text")
    items = html_tree.read_html(_HtmlWriter(document).write(document.body))
    return ParsedDocument(items=items, fallback_title=document.title, date=document.modified)


def read_presentation(content: bytes) -> ParsedDocument:
    document = _open(content, "presentation")
    writer = _HtmlWriter(document)
    pages = document.body.iterchildren(f"{_DRAW}page")
    slides = [list(_read_slide(page, number, writer)) for number, page in enumerate(pages, 1)]
    return office.join_slides(slides, fallback_title=document.title, date=document.modified)


def read_ods(content: bytes) -> ParsedDocument:
    document = _open(content, "spreadsheet", markup=office.LARGEST_UNPACKED)
    hidden = {
        style.get(f"{_STYLE}name")
        for style in document.styles()
        if any(part.get(f"{_TABLE}display") == "false" for part in style)
    }
    sheets = (
        (sheet.get(f"{_TABLE}name", ""), _sheet_rows(sheet))
        for sheet in document.body.iterchildren(f"{_TABLE}table")
        if sheet.get(f"{_TABLE}style-name") not in hidden
    )
    items = spreadsheet.read_sheets(sheets)
    return ParsedDocument(items=items, fallback_title=document.title, date=document.modified)


@dataclass(frozen=True, slots=True)
class _Document:
    archive: zipfile.ZipFile
    root: Element
    body: Element
    title: str
    modified: datetime | None

    def styles(self) -> Iterator[Element]:
        return self.root.iter(f"{_STYLE}style")  # type: ignore[no-any-return]


def _open(content: bytes, kind: str, *, markup: int = office.LARGEST_MARKUP) -> _Document:
    archive = office.open_package(content, markup=markup)
    manifest = "META-INF/manifest.xml"
    if manifest in archive.namelist() and b"encryption-data" in archive.read(manifest):
        raise UnreadableDocument("is protected by a password: save it without one")
    title, modified = office.read_properties(archive, "meta.xml")
    root = value_parsers.parse_xml(archive.read("content.xml"))
    body = root.find(f"{_OFFICE}body/{_OFFICE}{kind}")
    if body is None:
        raise UnreadableDocument(f"holds no {kind}")
    return _Document(archive, root, body, title, modified)


class _HtmlWriter:
    """Writes the content of a document as HTML."""

    def __init__(self, document: _Document) -> None:
        self._archive = document.archive
        self._base_styles = {s.get(f"{_STYLE}name"): s.get(f"{_STYLE}parent-style-name") for s in document.styles()}
        self._numbered = {
            (style.get(f"{_STYLE}name"), int(level.get(f"{_TEXT}level", "1")))
            for style in document.root.iter(f"{_TEXT}list-style")
            for level in style.iterchildren(f"{_TEXT}list-level-style-number")
        }
        self._notes: list[str] = []
        self._handlers = {
            f"{_TEXT}h": self._heading,
            f"{_TEXT}p": self._paragraph,
            f"{_TEXT}list": self._list,
            f"{_TEXT}a": lambda link: f'<a href="{escape(link.get(_LINK, ""))}">{self._inside(link)}</a>',
            f"{_TEXT}note": self._note,
            f"{_TEXT}s": lambda space: " " * min(int(space.get(f"{_TEXT}c", "1")), _MOST_SPACES),
            f"{_TEXT}tab": lambda _tab: "\t",
            f"{_TEXT}line-break": lambda _break: "<br>",
            f"{_TABLE}table": self._table,
            f"{_DRAW}object": self._object,
        }

    def write(self, element: Element) -> str:
        markup = self._inside(element)
        notes, self._notes = self._notes, []
        return markup + (f"<ol>{''.join(f'<li>{note}</li>' for note in notes)}</ol>" if notes else "")

    def _inside(self, element: Element) -> str:
        parts = [escape(element.text or "", quote=False)]
        for child in element:
            parts += [self._element(child), escape(child.tail or "", quote=False)]
        return "".join(parts)

    def _element(self, element: Element) -> str:
        if element.tag in _UNSEEN:
            return ""
        handler = self._handlers.get(element.tag)
        return handler(element) if handler else self._inside(element)

    def _heading(self, element: Element) -> str:
        level = min(int(element.get(f"{_TEXT}outline-level", "1")), 6)
        return f"<h{level}>{self._inside(element)}</h{level}>"

    def _paragraph(self, element: Element) -> str:
        style = element.get(f"{_TEXT}style-name")
        base = self._base_styles.get(style) or style or ""
        tag = {"Title": "h1", "Preformatted_20_Text": "pre"}.get(base, "p")
        if found := _HEADING_STYLE.fullmatch(base):
            tag = f"h{found[1]}"
        return f"<{tag}>{self._inside(element)}</{tag}>"

    def _list(self, element: Element) -> str:
        above = [element, *element.iterancestors(f"{_TEXT}list")]
        style = next((name for parent in above if (name := parent.get(f"{_TEXT}style-name"))), None)
        tag = "ol" if (style, len(above)) in self._numbered else "ul"
        items: list[str] = []
        for item in element:
            # A deeper list is in an item without text of its own.
            if items and len(item) and all(part.tag == f"{_TEXT}list" for part in item):
                items[-1] += self._inside(item)
            else:
                items.append(self._inside(item))
        return f"<{tag}>{''.join(f'<li>{item}</li>' for item in items)}</{tag}>"

    def _note(self, element: Element) -> str:
        self._notes.append(self._inside(element))
        return ""

    def _table(self, element: Element) -> str:
        return f"<table>{''.join(self._rows(element))}</table>"

    def _rows(self, table: Element, tag: str = "td") -> Iterator[str]:
        for child in table:
            if child.tag == f"{_TABLE}table-header-rows":
                yield from self._rows(child, "th")
            elif child.tag in (f"{_TABLE}table-row-group", f"{_TABLE}table-rows"):
                yield from self._rows(child, tag)
            elif child.tag == f"{_TABLE}table-row":
                yield f"<tr>{''.join(self._cell(cell, tag) for cell in child.iterchildren(f'{_TABLE}table-cell'))}</tr>"

    def _cell(self, cell: Element, tag: str) -> str:
        spans = "".join(
            f' {name}="{number}"'
            for name, key in (("colspan", "number-columns-spanned"), ("rowspan", "number-rows-spanned"))
            if (number := cell.get(f"{_TABLE}{key}", "1")).isdecimal() and number != "1"
        )
        return f"<{tag}{spans}>{self._inside(cell)}</{tag}>"

    def _object(self, element: Element) -> str:
        """Write an embedded equation as its author typed it, or an embedded chart as a table of its values."""
        path = f"{element.get(_LINK, '').removeprefix('./').rstrip('/')}/content.xml"
        if path not in self._archive.namelist():
            return ""
        root = value_parsers.parse_xml(self._archive.read(path))
        formula = next(root.iter("{*}annotation"), None)
        if formula is not None:
            return f" {escape(' '.join((formula.text or '').split()), quote=False)} "
        for value in root.iter(f"{_TEXT}p"):
            value.text = "" if value.text == "NaN" else value.text
        return "".join(self._table(table) for table in root.iter(f"{_TABLE}table"))


def _read_slide(page: Element, number: int, writer: _HtmlWriter) -> Iterator[ContentItem]:
    frames = sorted(page.iterchildren(f"{_DRAW}frame", f"{_DRAW}custom-shape", f"{_DRAW}g"), key=_place)
    titles = [frame for frame in frames if frame.get(f"{_SHOW}class") == "title"][:1]
    heading = " ".join(" ".join("".join(part.itertext()) for part in title.iter(f"{_TEXT}p")) for title in titles)
    content = [
        item
        for frame in frames
        if frame not in titles and frame.get(f"{_SHOW}class") not in ("date-time", "footer", "page-number")
        for item in html_tree.read_html(writer.write(frame))
    ]
    noted = [frame for frame in page.iterfind(f"{_SHOW}notes/{_DRAW}frame") if frame.get(f"{_SHOW}class") == "notes"]
    notes = ("".join(part.itertext()) for frame in noted for part in frame.iter(f"{_TEXT}p"))
    yield from office.make_slide(number, " ".join(heading.split()), content, notes)


def _place(frame: Element) -> tuple[float, float]:
    """Return the vertical and the horizontal position of a frame, or of the first part of a group of frames."""
    if frame.tag == f"{_DRAW}g":
        return min(map(_place, frame), default=(0.0, 0.0))
    return _length(frame.get(f"{_SVG}y", "")), _length(frame.get(f"{_SVG}x", ""))


def _length(written: str) -> float:
    length = _LENGTH.fullmatch(written)
    return float(length[1]) * _UNITS.get(length[2] or "", 1.0) if length else 0.0


def _sheet_rows(sheet: Element) -> Iterator[list[str]]:
    for row in sheet.iter(f"{_TABLE}table-row"):
        cells: list[str] = []
        for cell in row.iterchildren(f"{_TABLE}table-cell", f"{_TABLE}covered-table-cell"):
            value = _cell_value(cell)
            most = _MOST_REPEATED if value else spreadsheet.WIDEST_SHEET
            cells += [value] * min(_count(cell.get(f"{_TABLE}number-columns-repeated")), most)
        while cells and not cells[-1]:
            cells.pop()
        for _ in range(min(_count(row.get(f"{_TABLE}number-rows-repeated")), _MOST_REPEATED if cells else 1)):
            yield cells


def _count(written: str | None) -> int:
    return max(int(written), 1) if written and written.isdecimal() else 1


def _cell_value(cell: Element) -> str:
    """Return a cell's value as for `.xlsx` files: dates in ISO 8601, numbers without separators."""
    kind = cell.get(f"{_OFFICE}value-type", "")
    if kind == "date":
        day = cell.get(f"{_OFFICE}date-value", "")
        moment = value_parsers.parse_date(day)
        return spreadsheet.format_value(moment.replace(tzinfo=None) if moment else day)
    if kind == "boolean":
        return spreadsheet.format_value(cell.get(f"{_OFFICE}boolean-value") == "true")
    if kind == "float":
        return spreadsheet.format_value(float(cell.get(f"{_OFFICE}value", "nan")))
    return spreadsheet.format_value("\n".join("".join(part.itertext()) for part in cell.iterchildren(f"{_TEXT}p")))
