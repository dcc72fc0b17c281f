"""Decode text of any encoding, and split plain text into paragraphs."""

import codecs
import re
from collections.abc import Sequence

from ingest.readers import front_matter
from ingest.readers.parsed_document import ContentItem, Heading, ParsedDocument
from ingest.types import Block, UnreadableDocument
from storage.language.lazy_pattern import lazy_compile

_RUN = lazy_compile(rb"[A-Za-z]?[\x80-\xff]+[A-Za-z]?")
_KANA = lazy_compile("[\u3041-\u30ff]")
_MISPLACED = lazy_compile(r"(?<=[a-zà-ÿ])[¡-©«¬®¯±-³¶¸¹»-¿‰†‡](?=[a-zà-ÿ])|£(?=[^\W\d_])|(?<=[a-zß-öø-ÿ])[À-ÖØ-ÞŠŒŽŸ]")
"""A sign within a word, a pound sign before one, or a capital after a lower-case letter."""
_CASE = lazy_compile(r"(?<=[a-zа-яёα-ω])[А-ЯЁΑ-Ω]|[\uff61-\uff9f]")
_HANGUL, _HAN = lazy_compile("[\uac00-\ud7a3]"), lazy_compile("[\u4e00-\u9fff]")

_LATIN = ("cp1250", "iso8859_2", "cp1252", "cp1254", "cp1257")
_OTHER = (
    *("cp932", "euc_jp", "gb18030", "big5", "cp949"),
    *("cp1251", "koi8_r", "cp1253", "cp1256", "cp1255", "iso8859_5", "cp874"),
)
"""The more common first, which is chosen if two fit equally."""


def guess_encoding(sample: bytes) -> str:
    """Return Python's name of the most likely encoding; empty if none fits."""
    if _is_latin_script(sample):
        western = _try_decode(sample, "cp1252")
        if western and not _MISPLACED.search(western):
            return "cp1252"
        return _best_encoding(sample, _LATIN) or _best_encoding(sample, _OTHER) or _best_encoding(sample, ())
    return _best_encoding(sample, _OTHER) or _best_encoding(sample, ())


def _is_latin_script(sample: bytes) -> bool:
    runs = _RUN.findall(sample)
    accents = sum(run[:1].isascii() or run[-1:].isascii() or len(run) == 1 for run in runs)
    return accents * 2 > len(runs) and not _KANA.search(_try_decode(sample, "cp932"))


def _best_encoding(sample: bytes, among: Sequence[str]) -> str:
    from charset_normalizer import from_bytes

    matches = from_bytes(sample, cp_isolation=list(among) or None)
    if not among:
        best = matches.best()
        return best.encoding if best else ""
    ranked = sorted(
        (match.chaos + _measure_errors(str(match)), among.index(match.encoding), match.encoding) for match in matches
    )
    return ranked[0][2] if ranked else ""


def _measure_errors(text: str) -> float:
    """Return the share of characters typical of a wrong encoding.

    These are signs within words, half-width kana, and Chinese characters in Korean text.
    """
    mixed = min(len(_HANGUL.findall(text)), len(_HAN.findall(text)))
    return (len(_CASE.findall(text)) + len(_MISPLACED.findall(text)) + mixed) / max(len(text), 1)


def _try_decode(sample: bytes, encoding: str) -> str:
    try:
        return sample.decode(encoding)
    except UnicodeDecodeError as error:
        return sample[: error.start].decode(encoding) if error.start > len(sample) - 2 else ""


_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = lazy_compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufeff\ufffe\uffff\ud800-\udfff]")
_MOST_REPEATS = 500
_REPEATED = lazy_compile(rf"^(.*\n(?:[ \t]*\n)?)\1{{{_MOST_REPEATS},}}", re.MULTILINE)
_PARAGRAPH = lazy_compile(r"\n[ \t]*\n\s*")
_LIST_ITEM = lazy_compile(r"\s*(?:[-•*]|\d{1,3}[.)])\s")
_LONGEST_TITLE, _MOST_TITLE_WORDS = 60, 8
_NO_TITLE = lazy_compile(r"[.!?:;,…。！？：；，、؟।-]$|: |：|://|@|^\d{1,3}[.)]\s|^[\d\W]+$")
_SAMPLE = 1 << 18  # bytes for guessing the encoding


def decode_text(content: bytes) -> str:
    """Decode text by its byte-order mark, as UTF-8, or by a guess, and clean it. Raises `UnreadableDocument`."""
    return strip_control_characters(_decode(content))


def read_plain_text(text: str) -> ParsedDocument:
    """Read plain text: blank lines separate paragraphs; the lines of a paragraph are joined unless they are a list."""
    return front_matter.read_with_fields(text, _read_body, any_fields=False, date_line=True)


def _read_body(text: str) -> ParsedDocument:
    items = split_paragraphs(text)
    if len(items) > 1 and _is_title(items[0].text) and not _is_title(items[1].text):
        items[0] = Heading(1, items[0].text)
    return ParsedDocument(tuple(items))


def _is_title(line: str) -> bool:
    """Return whether a paragraph looks like a title: it is short, and neither a sentence, a field nor a list item."""
    short = len(line) <= _LONGEST_TITLE and "\n" not in line and len(line.split()) <= _MOST_TITLE_WORDS
    return short and line[:1].isalnum() and not _NO_TITLE.search(line)


def split_paragraphs(text: str) -> list[ContentItem]:
    return [Block(text_lines) for part in _PARAGRAPH.split(text.strip()) if (text_lines := _unwrap_lines(part))]


def strip_control_characters(text: str) -> str:
    """Normalize line ends, and drop control characters and repetitions of a line beyond 500.

    A megabyte of repetitions adds nothing, and takes parsers of markup seconds.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0c", "\n\n")
    return _REPEATED.sub(lambda lines: lines[1] * _MOST_REPEATS, _CONTROL.sub("", text))


def _decode(content: bytes) -> str:
    for mark, encoding in _BYTE_ORDER_MARKS:
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    try:
        return content.decode()
    except UnicodeDecodeError:
        pass
    if b"\x00" in content[:_SAMPLE]:
        raise UnreadableDocument("holds no text: it is binary")
    encoding = guess_encoding(content[:_SAMPLE])
    if not encoding:
        raise UnreadableDocument("is in an unknown character encoding: save it as UTF-8")
    return content.decode(encoding, "replace")


def _unwrap_lines(paragraph: str) -> str:
    pieces: list[str] = []
    for line in paragraph.split("\n"):
        text = " ".join(line.split())
        if pieces and text:
            pieces.append("\n" if _LIST_ITEM.match(line) else " ")
        pieces.append(text)
    return "".join(pieces)
