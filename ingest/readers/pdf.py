"""Read PDF files: PDFium says where the text stands on the pages, `pdf_layout` makes paragraphs and tables of it."""

import math
import re
import threading
from collections.abc import Iterator
from typing import Any, NamedTuple

from ingest.readers import pdf_layout, value_parsers
from ingest.readers.parsed_document import ParsedDocument
from ingest.readers.pdf_layout import TextSegment
from ingest.types import UnreadableDocument
from storage.language.lazy_pattern import lazy_compile

_ONE_AT_A_TIME = threading.Lock()  # PDFium may not be called by two threads at once
_BOLD = 600
_MOST_PAGES = 10_000
_SAME_LINE = 0.25
"""Of a character's height: how far two characters of one stretch may differ in where they stand."""
_SAME_CELL = 0.8
"""Of a character's height: how wide the gap between two words of one stretch may be."""
_NO_TITLE = lazy_compile(
    r"\(?(?:anonymous|untitled|unspecified)\)?.*|.*\.(?:docx?|pptx?|xlsx?|indd|tex|pdf)|.*\S_\S.*", re.IGNORECASE
)
_BY_WORD = lazy_compile(r"^Microsoft (?:Word|PowerPoint|Excel) - ")
_UNPRINTABLE = lazy_compile("[\x00-\x01\x03-\x1f\ufffe\uffff]+")
_HYPHEN_AT_LINE_END = "\x02"


def read_pdf(content: bytes) -> ParsedDocument:
    """Read a PDF's bytes. Raises `UnreadableDocument` if it is protected, broken, or pictures of pages."""
    from pypdfium2 import PdfDocument, PdfiumError  # type: ignore[import-untyped]  # it ships no types

    with _ONE_AT_A_TIME:
        try:
            document = PdfDocument(content)
        except PdfiumError as error:
            if any(word in str(error).lower() for word in ("password", "security")):
                raise UnreadableDocument("is protected by a password: save it without one") from error
            raise UnreadableDocument("is broken, or no PDF file") from error
        try:
            metadata = document.get_metadata_dict()
            if len(document) > _MOST_PAGES:
                raise UnreadableDocument(f"has more than {_MOST_PAGES:,} pages: split it")
            pages = [list(_segments(page)) for page in document]
        finally:
            document.close()
    if not any(pages):
        raise UnreadableDocument("holds no text: scanned pages need text recognition (OCR) first")
    title = _BY_WORD.sub("", " ".join(metadata.get("Title", "").split()))
    return ParsedDocument(
        items=tuple(pdf_layout.read_layout(pages)),
        fallback_title="" if _NO_TITLE.fullmatch(title) else title,
        date=value_parsers.parse_pdf_date(metadata.get("ModDate", ""))
        or value_parsers.parse_pdf_date(metadata.get("CreationDate", "")),
    )


def _segments(page: Any) -> Iterator[TextSegment]:
    """Yield the stretches of text that stand together on one line, in the order in which the file draws them."""
    from pypdfium2 import raw

    text_page = page.get_textpage()
    try:
        run: list[_Char] = []
        for at in range(text_page.count_chars()):
            char = chr(raw.FPDFText_GetUnicode(text_page, at))
            box = raw.FS_RECTF()
            raw.FPDFText_GetLooseCharBox(text_page, at, box)
            here = _Char(at, char, box.left, box.bottom, box.right, box.top)
            if run and (char in "\r\n" or not _continues_run(run, here)):
                yield from _segment(text_page, run)
                run = []
            if char not in "\r\n":
                run.append(here)
        yield from _segment(text_page, run)
    finally:
        text_page.close()
        page.close()


class _Char(NamedTuple):
    at: int
    char: str
    left: float
    bottom: float
    right: float
    top: float


def _continues_run(run: list[_Char], here: _Char) -> bool:
    """Tell whether a character stands on the line of those before it, close to the last; spaces may have no place."""
    if here.char.isspace():
        return True
    last = next((char for char in reversed(run) if not char.char.isspace()), None)
    if last is None:
        return False
    height = max(last.top - last.bottom, here.top - here.bottom)
    return (
        abs(here.bottom - last.bottom) < _SAME_LINE * height
        and abs(here.top - last.top) < _SAME_LINE * height
        # The letters of a ligature stand in one place.
        and here.left >= last.left
        and here.left - last.right < _SAME_CELL * height
    )


def _segment(text_page: Any, run: list[_Char]) -> Iterator[TextSegment]:
    from pypdfium2 import raw

    drawn = [char for char in run if not char.char.isspace()]
    text = _UNPRINTABLE.sub(" ", "".join(char.char for char in run).replace(_HYPHEN_AT_LINE_END, pdf_layout.HYPHEN))
    if not drawn or not text.strip():
        return
    middle = drawn[len(drawn) // 2].at
    # The size of a font as it stands on the page: many files scale a font of size 1.
    matrix = raw.FS_MATRIX()
    raw.FPDFText_GetMatrix(text_page, middle, matrix)
    size: float = raw.FPDFText_GetFontSize(text_page, middle)
    yield TextSegment(
        left=drawn[0].left,
        bottom=min(char.bottom for char in drawn),
        right=drawn[-1].right,
        top=max(char.top for char in drawn),
        text=text,
        size=round(size * math.hypot(matrix.c, matrix.d), 1),
        bold=raw.FPDFText_GetFontWeight(text_page, middle) >= _BOLD,
    )
