"""Read PDF files: PDFium finds the text on the pages, and `pdf_layout` builds paragraphs and tables from it."""

import ctypes
import math
import re
import statistics
import threading
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

from pypdfium2 import PdfDocument, PdfiumError, raw  # type: ignore[import-untyped]  # it ships no types

from ingest.readers import external_programs, pdf_direction, pdf_layout, value_parsers
from ingest.readers.external_programs import NO_PROGRAMS, ReaderPrograms, RecognizedWord
from ingest.readers.parsed_document import ContentItem, Heading, ParsedDocument
from ingest.readers.pdf_direction import PdfChar
from ingest.readers.pdf_layout import TextSegment
from ingest.types import Block, UnreadableDocument
from storage.language.lazy_pattern import lazy_compile

_PDFIUM_LOCK = threading.Lock()  # PDFium is not thread-safe
_BOLD = 600
_MOST_PAGES = 10_000
_SAME_LINE = 0.25
"""Vertical distance allowed between two characters of a segment, in heights of a character."""
_SAME_CELL = 0.8
"""Widest gap between two words of a segment, in heights of a character."""
_NO_TITLE = lazy_compile(
    r"\(?(?:anonymous|untitled|unspecified)\)?.*|.*\.(?:docx?|pptx?|xlsx?|indd|tex|pdf)|.*\S_\S.*", re.IGNORECASE
)
_BY_WORD = lazy_compile(r"^Microsoft (?:Word|PowerPoint|Excel) - ")
_SCAN_DENSITY = 300 / 72  # pixels per point
_MOST_PIXELS = 25_000_000
_SCAN_LEVEL = 2
_READ_BULLET = lazy_compile(r"^[*°¢«=»+] ")  # misread bullets
_SCAN_CELL = 1.0  # widest gap between two words of a cell, in heights of a letter
_ACCENTS = {
    "`": "\u0300", "´": "\u0301", "ˆ": "\u0302", "˜": "\u0303", "¯": "\u0304", "˘": "\u0306", "˙": "\u0307",
    "¨": "\u0308", "˚": "\u030a", "˝": "\u030b", "ˇ": "\u030c", "¸": "\u0327", "˛": "\u0328",
}  # fmt: skip
_OVER = 0.5
"""Least part of an accent's width above its letter."""
_UNPRINTABLE = lazy_compile("[\x00-\x01\x03-\x1f\ufffe\uffff]+")
_HYPHEN_AT_LINE_END = "\x02"


def read_pdf(content: bytes, programs: ReaderPrograms = NO_PROGRAMS) -> ParsedDocument:
    """Read a PDF. Scanned pages are read by tesseract, if that is enabled.

    Raises `UnreadableDocument` if the PDF is protected, broken, or has only pictures.
    """
    with _PDFIUM_LOCK:
        try:
            document = PdfDocument(content)
        except PdfiumError as error:
            if any(word in str(error).lower() for word in ("password", "security")):
                raise UnreadableDocument("is protected by a password: save it without one") from error
            raise UnreadableDocument("is broken, or not a valid PDF file") from error
        try:
            metadata = document.get_metadata_dict()
            if len(document) > _MOST_PAGES:
                raise UnreadableDocument(f"has more than {_MOST_PAGES:,} pages: split it")
            pages = [list(_segments(page)) for page in document]
            scanned = [at for at, page in enumerate(pages) if not page] if programs.ocr else []
            recognized = _recognize_pages(document, scanned, programs, needed=len(scanned) == len(pages))
        finally:
            document.close()
    if not any(pages) and not programs.ocr:
        raise UnreadableDocument("holds no text: scanned pages need text recognition (ocr = true in [ingest])")
    title = _BY_WORD.sub("", " ".join(metadata.get("Title", "").split()))
    return ParsedDocument(
        items=(*pdf_layout.read_layout(pages), *recognized),
        untitled=not any(pages),
        fallback_title="" if _NO_TITLE.fullmatch(title) else title,
        date=value_parsers.parse_pdf_date(metadata.get("ModDate", ""))
        or value_parsers.parse_pdf_date(metadata.get("CreationDate", "")),
    )


def _recognize_pages(
    document: Any, scanned: Sequence[int], programs: ReaderPrograms, *, needed: bool
) -> list[ContentItem]:
    try:
        return [item for at in scanned for item in _recognize_page(document[at], at + 1, programs)]
    except UnreadableDocument:
        if needed:
            raise
        return []  # the other pages can be read


def _recognize_page(page: Any, number: int, programs: ReaderPrograms) -> Iterator[ContentItem]:
    """Recognize the text of a scanned page, under a heading such as "Page 3 (OCR)". Yield nothing for a blank page."""
    try:
        if next(iter(page.get_objects(max_depth=1)), None) is None:
            return
        scale = min(_SCAN_DENSITY, math.sqrt(_MOST_PIXELS / max(page.get_width() * page.get_height(), 1.0)))
        pixels = page.render(scale=scale, grayscale=True).to_numpy()
    finally:
        page.close()
    height, width = pixels.shape[:2]
    picture = b"P5 %d %d 255\n" % (width, height) + pixels.tobytes()
    words = external_programs.recognize_words(picture, programs.ocr_languages)
    items = pdf_layout.read_layout([list(_word_segments(words, height))])
    if items:
        yield Heading(_SCAN_LEVEL, f"Page {number} (OCR)")
        # Sizes are guesses, so larger letters do not make a heading.
        yield from (Block(item.text) if isinstance(item, Heading) else item for item in items)


def _word_segments(words: Sequence[RecognizedWord], page: int) -> Iterator[TextSegment]:
    """Yield recognized words as text segments of one size. `page` is the height of the page in pixels.

    A right-to-left page is mirrored, as in `_segments`.
    """
    if not words:
        return
    if pdf_direction.is_rtl("".join(word.text for word in words)):
        words = [word._replace(left=-word.left - word.width) for word in words]
    size = float(statistics.median(word.height for word in words))
    for _, line in groupby(words, key=lambda word: word.line):
        run: list[RecognizedWord] = []
        for word in line:
            # In a line from right to left, words from left to right may begin before their predecessors.
            if run and word.left - max(before.left + before.width for before in run) > _SCAN_CELL * size:
                yield _join_words(run, page, size)
                run = []
            run.append(word)
        yield _join_words(run, page, size)


def _join_words(run: Sequence[RecognizedWord], page: int, size: float) -> TextSegment:
    text = _READ_BULLET.sub("• ", " ".join(word.text for word in run))
    parted = text.endswith("-") and text[-2:-1].isalpha()
    return TextSegment(
        left=min(word.left for word in run),
        bottom=page - max(word.top + word.height for word in run),
        right=max(word.left + word.width for word in run),
        top=page - min(word.top for word in run),
        text=text[:-1] + pdf_layout.HYPHEN if parted else text,
        size=size,
        bold=False,
    )


def _segments(page: Any) -> Iterator[TextSegment]:
    """Yield the segments of text of each line, in the order in which the file draws them.

    A right-to-left page is mirrored, so that its lines begin on the left.
    """
    text_page = page.get_textpage()
    try:
        chars = [_char_at(text_page, at) for at in range(text_page.count_chars())]
        chars = _compose_accents(chars)
        if not pdf_direction.has_rtl_letters(chars):
            for run in _runs(chars):
                yield from _segment(text_page, run, "".join(char.char for char in run))
            return
        rtl = pdf_direction.is_rtl(char.char for char in chars)
        for row in pdf_direction.split_rows(chars):
            for run, text in _row_cells(row, rtl=rtl):
                for segment in _segment(text_page, run, text):
                    yield replace(segment, left=-segment.right, right=-segment.left) if rtl else segment
    finally:
        text_page.close()
        page.close()


def _char_at(text_page: Any, at: int) -> PdfChar:
    char = chr(raw.FPDFText_GetUnicode(text_page, at))
    box = raw.FS_RECTF()
    raw.FPDFText_GetLooseCharBox(text_page, at, box)
    if char.isascii() or not unicodedata.combining(char):
        return PdfChar(at, char, box.left, box.bottom, box.right, box.top)
    # The width that a font gives for a mark does not locate it: the letter may be anywhere within.
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    raw.FPDFText_GetCharBox(text_page, at, left, right, bottom, top)
    return PdfChar(at, char, left.value, box.bottom, right.value, box.top)


def _compose_accents(chars: list[PdfChar]) -> list[PdfChar]:
    """Join each accent that is drawn as a separate character, as TeX does, with its letter."""
    composed: list[PdfChar] = []
    for char in chars:
        accent = composed[-1] if composed and composed[-1].char in _ACCENTS else None
        if accent and char.left < accent.right - _OVER * (accent.right - accent.left) and accent.left < char.right:
            both = unicodedata.normalize("NFC", char.char + _ACCENTS[accent.char])
            if len(both) == 1:
                composed[-1] = char._replace(char=both)
                continue
        composed.append(char)
    return composed


def _row_cells(row: list[PdfChar], *, rtl: bool) -> Iterator[tuple[list[PdfChar], str]]:
    if rtl or pdf_direction.has_rtl_letters(row):
        yield from pdf_direction.read_cells(row, _SAME_CELL, rtl=rtl or pdf_direction.is_rtl(char.char for char in row))
    else:
        yield from ((run, "".join(char.char for char in run)) for run in _runs(row))


def _runs(chars: Iterable[PdfChar]) -> Iterator[list[PdfChar]]:
    run: list[PdfChar] = []
    for here in chars:
        if run and (here.char in "\r\n" or not _continues_run(run, here)):
            yield run
            run = []
        if here.char not in "\r\n":
            run.append(here)
    yield run


def _continues_run(run: list[PdfChar], here: PdfChar) -> bool:
    """Return whether a character closely follows a run on its line. A space always does, as it may have no position."""
    if here.char.isspace():
        return True
    last = next((char for char in reversed(run) if not char.char.isspace()), None)
    if last is None:
        return False
    height = max(last.height, here.height)
    return (
        abs(here.bottom - last.bottom) < _SAME_LINE * height
        and abs(here.top - last.top) < _SAME_LINE * height
        # The letters of a ligature have the same position.
        and here.left >= last.left
        and here.left - last.right < _SAME_CELL * height
    )


def _segment(text_page: Any, run: list[PdfChar], text: str) -> Iterator[TextSegment]:
    drawn = [char for char in run if not char.char.isspace()]
    text = _UNPRINTABLE.sub(" ", text.replace(_HYPHEN_AT_LINE_END, pdf_layout.HYPHEN))
    if not drawn or not text.strip():
        return
    middle = drawn[len(drawn) // 2].at
    # The size on the page: many files scale a font of size 1.
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
