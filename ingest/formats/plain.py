"""Bytes -> text in the encoding they are in, and plain text -> paragraphs."""

import codecs
import re

from ingest.formats.reading import Item, Reading
from ingest.types import Block, UnreadableDocument

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufeff\ufffe\uffff\ud800-\udfff]")
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_ITEM = re.compile(r"\s*(?:[-•*]|\d{1,3}[.)])\s")
_SAMPLE = 1 << 18
"""Bytes that an encoding is guessed from."""


def decode(content: bytes) -> str:
    """Decode by byte-order mark, as UTF-8, or by guess; line ends become newlines. Raises `UnreadableDocument`."""
    return cleaned(_decoded(content))


def read(text: str) -> Reading:
    """Read plain text: paragraphs between blank lines; lines within one are joined, unless they are a list."""
    return Reading(tuple(paragraphs(text)))


def paragraphs(text: str) -> list[Item]:
    """The paragraphs of a text, in order."""
    return [Block(said) for part in _PARAGRAPH.split(text.strip()) if (said := _unwrapped(part))]


def cleaned(text: str) -> str:
    """Text with newlines for other line ends, and without control characters."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\x0c", "\n\n")
    return _CONTROL.sub("", text)


def _decoded(content: bytes) -> str:
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return content.decode(encoding, "replace")
    try:
        return content.decode()
    except UnicodeDecodeError:
        pass
    if b"\x00" in content[:_SAMPLE]:
        raise UnreadableDocument("holds no text: its bytes are binary")
    return _guessed(content)


def _guessed(content: bytes) -> str:
    from ingest.formats import encodings

    encoding = encodings.guessed(content[:_SAMPLE])
    if not encoding:
        raise UnreadableDocument("is in an unknown character encoding: save it as UTF-8")
    return content.decode(encoding, "replace")


def _unwrapped(paragraph: str) -> str:
    lines: list[str] = []
    for line in paragraph.split("\n"):
        said = " ".join(line.split())
        if lines and said and not _ITEM.match(line):
            lines[-1] += " " + said
        elif said:
            lines.append(said)
    return "\n".join(lines)
