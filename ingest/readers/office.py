"""Read Word documents, presentations and e-books: zip archives of markup, which may unpack to huge sizes.

Mammoth turns Word documents into HTML. A presentation becomes one section per slide, each with its speaker notes last.
A book becomes its chapters in reading order.
"""

import io
import posixpath
import re
import zipfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from ingest.readers import external_programs, html_tree, table_rows, value_parsers, web_page
from ingest.readers.external_programs import ReaderPrograms
from ingest.readers.parsed_document import ContentItem, Heading, ParsedDocument
from ingest.readers.value_parsers import Element
from ingest.types import Block, UnreadableDocument
from storage.language.lazy_pattern import lazy_compile

LARGEST_UNPACKED = 512 * 1024 * 1024
"""Bytes of all parts together; zipfile reads no part beyond the size that the archive states."""
LARGEST_MARKUP = 64 * 1024 * 1024
"""Bytes of all parts of markup together; their trees take several times that in memory."""
_MOST_PARTS = 10_000
_TIGHTEST = 200  # largest ratio of unpacked to packed size; that of markup is 10 to 50
_SMALL_PART = 1 << 20  # bytes; the ratio of smaller parts does not matter
_MARKUP_ENDINGS = (".xml", ".rels", ".xhtml", ".html", ".htm", ".opf", ".vml")

_OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def open_package(
    content: bytes, *, largest: int = LARGEST_UNPACKED, markup: int = LARGEST_MARKUP, parts: int = _MOST_PARTS
) -> zipfile.ZipFile:
    """Open a zip archive. Raises `UnreadableDocument` if it is invalid, or exceeds the limits in bytes or parts."""
    if content.startswith(_OLE_MAGIC):
        raise UnreadableDocument("is protected by a password, or in an older format: save it again without a password")
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except zipfile.BadZipFile as error:
        raise UnreadableDocument("is broken: it cannot be unpacked") from error
    members = archive.infolist()
    if sum(part.file_size for part in members) > largest:
        raise UnreadableDocument(f"unpacks to more than {largest // 2**20} MB")
    if len(members) > parts:
        raise UnreadableDocument(f"holds more than {parts:,} parts")
    if any(part.file_size > max(_SMALL_PART, _TIGHTEST * part.compress_size) for part in members):
        raise UnreadableDocument("is compressed more than any real document: it may be an attack")
    if sum(part.file_size for part in members if part.filename.lower().endswith(_MARKUP_ENDINGS)) > markup:
        raise UnreadableDocument(f"holds more than {markup // 2**20} MB of markup: split it")
    return archive


def read_properties(archive: zipfile.ZipFile, part: str = "docProps/core.xml") -> tuple[str, datetime | None]:
    """Return the title and the date of the last change that the metadata of an office file state."""
    try:
        metadata = value_parsers.parse_xml(archive.read(part))
    except (KeyError, ValueError):
        return "", None
    stated = {value_parsers.local_name(field): (field.text or "").strip() for field in metadata.iter()}
    dates = (stated.get(name) for name in ("modified", "created", "date", "creation-date"))
    return stated.get("title", ""), value_parsers.parse_date(next(filter(None, dates), None))


_STYLES = """
p[style-name='Title'] => h1:fresh
p[style-name='Subtitle'] => p:fresh
"""
_BOX = lazy_compile(r'<input\b[^>]*\btype="checkbox"[^>]*>')
_WORD_BODY = "word/document.xml"
_WORD_NAMESPACE = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MATH_NAMESPACE = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_FUNCTION_APPLICATION = "\u2061"
_LARGE_OPERATOR = "∫"  # the default operator


def read_word(content: bytes) -> ParsedDocument:
    import mammoth  # type: ignore[import-untyped]  # it ships no types

    archive = open_package(content)
    title, modified = read_properties(archive)
    with io.BytesIO(_write_equations(archive, content)) as file:
        markup = mammoth.convert_to_html(
            file, style_map=_STYLES, convert_image=mammoth.images.img_element(lambda _image: {})
        )
    signed = _BOX.sub(lambda box: "✓ " if "checked=" in box[0] else "☐ ", markup.value)
    return ParsedDocument(items=html_tree.read_html(signed), fallback_title=title, date=modified)


def read_older_word(content: bytes, programs: ReaderPrograms) -> ParsedDocument:
    """Read a Word file from before 2007, or rich text, after LibreOffice has converted it."""
    del programs  # `explain_refusal` checked that LibreOffice is enabled
    return read_word(external_programs.convert_document(content, ".doc", ".docx"))


def read_older_slides(content: bytes, programs: ReaderPrograms) -> ParsedDocument:
    del programs
    return read_slides(external_programs.convert_document(content, ".ppt", ".pptx"))


def _write_equations(archive: zipfile.ZipFile, content: bytes) -> bytes:
    if _WORD_BODY not in archive.namelist() or b"oMath" not in archive.read(_WORD_BODY):
        return content
    body = value_parsers.parse_xml(archive.read(_WORD_BODY))
    for equation in list(body.iter(f"{_MATH_NAMESPACE}oMath")):
        run = value_parsers.add_child(equation.getparent(), f"{_WORD_NAMESPACE}r", before=equation)
        value_parsers.add_child(run, f"{_WORD_NAMESPACE}t").text = f" {format_equation(equation).strip()} "
        equation.getparent().remove(equation)
    for paragraph in list(body.iter(f"{_MATH_NAMESPACE}oMathPara")):
        for run in list(paragraph):
            paragraph.addprevious(run)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as copy:
        for part in archive.namelist():
            copy.writestr(part, value_parsers.serialize_xml(body) if part == _WORD_BODY else archive.read(part))
    return file.getvalue()


def format_equation(math: Element) -> str:
    """Write an equation of Office on one line, as people type it: `x = (-b ± √(b^2 - 4ac))/(2a)`."""
    tag = math.tag.removeprefix(_MATH_NAMESPACE)
    if tag == "t":
        return (math.text or "").replace(_FUNCTION_APPLICATION, " ")
    if shape := _SHAPES.get(tag):
        parts = {part.tag.removeprefix(_MATH_NAMESPACE): _EquationPart(format_equation(part)) for part in math}
        return shape.format_map(defaultdict(_EquationPart, parts, n=_sign(math)))
    return "".join(format_equation(part) for part in math)


_SHAPES = {
    "f": "{num:one}/{den:one}",
    "sSup": "{e:one}^{sup:one}",
    "sSub": "{e:one}_{sub:one}",
    "sSubSup": "{e:one}_{sub:one}^{sup:one}",
    "rad": "{deg}√{e:one}",
    "nary": "{n}_{sub:one}^{sup:one} {e}",
    "d": "({e})",
    "func": "{fName} {e}",
}


class _EquationPart(str):
    """The text of a part of an equation. `f"{part:one}"` adds brackets unless it is a single word or number."""

    __slots__ = ()

    def __format__(self, spec: str) -> str:
        return f"({self})" if spec and not re.fullmatch(r"[\w.]*|\(.*\)", self) else str(self)


def _sign(math: Element) -> str:
    sign = math.find(f"{_MATH_NAMESPACE}naryPr/{_MATH_NAMESPACE}chr")
    return _LARGE_OPERATOR if sign is None else str(sign.get(f"{_MATH_NAMESPACE}val", _LARGE_OPERATOR))


_SLIDE_LEVEL = 2  # level 1 is the title of the presentation
_DIAGRAM = "{http://schemas.openxmlformats.org/drawingml/2006/diagram}relIds"
_DIAGRAM_DATA = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}dm"
_PLACEHOLDERS = frozenset({"DATE", "FOOTER", "HEADER", "SLIDE_NUMBER", "SLIDE_IMAGE"})


def read_slides(content: bytes) -> ParsedDocument:
    from pptx import Presentation

    title, modified = read_properties(open_package(content))
    slides = [
        list(_read_slide(slide, number)) for number, slide in enumerate(Presentation(io.BytesIO(content)).slides, 1)
    ]
    return join_slides(slides, fallback_title=title, date=modified)


def join_slides(
    slides: Iterable[Sequence[ContentItem]], *, fallback_title: str, date: datetime | None
) -> ParsedDocument:
    """Make a document from the content of all slides. Its title is the title of the first slide that has one."""
    items = tuple(item for items in slides for item in items)
    titles = [item.text for item in items if isinstance(item, Heading)]
    if len(items) == len(titles):
        # Titles of slides without other text are text, not headings.
        items = tuple(Block(title) for title in titles)
    return ParsedDocument(items=items, title=titles[0] if titles else "", fallback_title=fallback_title, date=date)


def _read_slide(slide: Any, number: int) -> Iterator[ContentItem]:
    title = slide.shapes.title
    heading = _one_line(title.text_frame.text) if title is not None and title.has_text_frame else ""
    content = [
        item
        for shape in _in_order(slide.shapes)
        if not (title is not None and shape.shape_id == title.shape_id)
        for item in _read_shape(shape)
    ]
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    notes = frame.text.split("\n") if frame is not None else ()
    yield from make_slide(number, heading, content, notes)


def make_slide(
    number: int, heading: str, content: Sequence[ContentItem], notes: Iterable[str]
) -> Iterator[ContentItem]:
    """Make a section from a slide: its content, then the lines of its speaker notes."""
    lines = list(filter(None, map(_one_line, notes)))
    if heading or content or lines:
        yield Heading(_SLIDE_LEVEL, heading or f"Slide {number}")
        yield from content
        yield from (Block(f"Notes: {line}" if at == 0 else line) for at, line in enumerate(lines))


def _in_order(shapes: Iterable[Any]) -> list[Any]:
    """Sort shapes from top to bottom, then from left to right. Shapes without a position come first."""
    return sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0))


def _read_shape(shape: Any) -> Iterator[ContentItem]:
    if shape.is_placeholder and shape.placeholder_format.type.name in _PLACEHOLDERS:
        return
    if hasattr(shape, "shapes"):
        for inner in _in_order(shape.shapes):
            yield from _read_shape(inner)
    elif getattr(shape, "has_table", False):
        grid = [[_one_line(cell.text) for cell in row.cells] for row in shape.table.rows]
        yield from (
            table_rows.make_row_blocks(*table_rows.merge_columns(grid[0], grid[1:]))
            if len(grid) > 1
            else table_rows.make_row_blocks((), grid)
        )
    elif getattr(shape, "has_chart", False):
        yield from read_chart(value_parsers.parse_xml(shape.chart_part.blob))
    elif shape.shape_type is None and (names := next(shape.element.iter(_DIAGRAM), None)) is not None:
        yield from _read_diagram(shape.part.related_part(names.get(_DIAGRAM_DATA)).blob)
    elif shape.has_text_frame:
        yield from _frame_text(shape.text_frame)


def _frame_text(frame: Any) -> Iterator[ContentItem]:
    """Read a text frame. Several paragraphs become the items of a list."""
    lines = [(paragraph.level, _one_line(paragraph.text)) for paragraph in frame.paragraphs]
    lines = [(level, text) for level, text in lines if text]
    if len(lines) > 1:
        yield Block("\n".join(f"{'  ' * level}- {text}" for level, text in lines))
    elif lines:
        yield Block(lines[0][1])


def read_chart(chart: Element) -> Iterator[ContentItem]:
    """Read a chart of any kind as a table: a row for each category or point, with the values of all series."""
    title = chart.find("{*}chart/{*}title/{*}tx")
    if title is not None and (caption := _one_line(" ".join(part.text or "" for part in title.iter("{*}t", "{*}v")))):
        yield Block(f"{caption}:")
    names: list[str] = []
    rows: dict[str, dict[int, str]] = {}
    for at, series in enumerate(chart.iter("{*}ser")):
        name = " ".join(_read_points(series, "tx").values()) or series.findtext("{*}tx/{*}v") or ""
        names.append(_one_line(name))
        labels = _read_points(series, "cat") or _read_points(series, "xVal")
        for place, value in (_read_points(series, "val") or _read_points(series, "yVal")).items():
            rows.setdefault(labels.get(place, str(place + 1)), {})[at] = _format_number(value)
    grid = [[label, *(values.get(at, "") for at in range(len(names)))] for label, values in rows.items()]
    yield from table_rows.make_row_blocks(["", *names], grid)


def _read_points(series: Element, name: str) -> dict[int, str]:
    """Return the stored values or labels of a series by position. If labels are nested, return the innermost ones."""
    source = series.find(f"{{*}}{name}")
    cache = (
        None
        if source is None
        else next(source.iter("{*}lvl", "{*}strCache", "{*}numCache", "{*}strLit", "{*}numLit"), None)
    )
    if cache is not None and cache.find("{*}lvl") is not None:
        cache = cache.find("{*}lvl")
    points = [] if cache is None else list(cache.iter("{*}pt"))
    return {int(point.get("idx", 0)): (point.findtext("{*}v") or "").strip() for point in points}


def _format_number(value: str) -> str:
    try:
        return f"{float(value):.6g}"
    except ValueError:
        return value


def _read_diagram(content: bytes) -> Iterator[ContentItem]:
    """Read the texts of a SmartArt diagram."""
    points = map(value_parsers.element_text, value_parsers.parse_xml(content).iter("{*}pt"))
    lines = [text for text in points if text]
    if lines:
        yield Block("\n".join(f"- {text}" for text in lines))


def _one_line(text: str) -> str:
    return " ".join(text.replace("\v", " ").split())


_PAGE_TYPES = frozenset({"application/xhtml+xml", "text/html"})


def read_epub(content: bytes) -> ParsedDocument:
    archive = open_package(content)
    container = value_parsers.parse_xml(archive.read("META-INF/container.xml"))
    path = next(container.iter("{*}rootfile")).get("full-path")
    book = value_parsers.parse_xml(archive.read(path))
    marked = (meta for meta in book.iter("{*}meta") if meta.get("property") == "dcterms:modified")
    modified = next(((meta.text or "").strip() for meta in marked), "")
    return ParsedDocument(
        items=tuple(_chapters(archive, book, posixpath.dirname(path))),
        title=_metadata_text(book, "title"),
        date=value_parsers.parse_date(modified or _metadata_text(book, "date")),
        language=value_parsers.primary_language(_metadata_text(book, "language")),
    )


def _chapters(archive: zipfile.ZipFile, book: Element, folder: str) -> Iterator[ContentItem]:
    parts = {item.get("id"): item for item in book.iter("{*}item")}
    present = set(archive.namelist())
    read_any = False
    for reference in book.iter("{*}itemref"):
        part = parts.get(reference.get("idref"))
        if part is None or part.get("media-type") not in _PAGE_TYPES or "nav" in (part.get("properties") or "").split():
            continue
        path = posixpath.normpath(posixpath.join(folder, unquote(part.get("href", ""))))
        if path in present:
            # Each chapter is read once: a few lines can name it very often.
            present.discard(path)
            read_any = True
            yield from html_tree.read_html(web_page.decode_markup(archive.read(path)))
    if not read_any:
        raise UnreadableDocument("is a book without readable chapters")


def _metadata_text(book: Element, name: str) -> str:
    field = next(book.iter(f"{{*}}{name}"), None)
    return "" if field is None else value_parsers.element_text(field)
