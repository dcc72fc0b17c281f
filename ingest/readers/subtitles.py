"""Read subtitles and transcripts (.srt, .vtt). A new speaker or a pause begins a paragraph."""

import itertools
from collections.abc import Iterator
from html import unescape

from ingest.readers.parsed_document import ParsedDocument
from ingest.types import Block, UnreadableDocument
from storage.language.lazy_pattern import lazy_compile

_TIMES = lazy_compile(r"\s*(?:(\d+):)?(\d\d?):(\d\d)[.,](\d{1,3})\s+-->\s+(?:(\d+):)?(\d\d?):(\d\d)[.,](\d{1,3})")
_SPEAKER = lazy_compile(r"<v(?:\.[^\s>]*)?\s+([^>]*)>")
_MARKUP = lazy_compile(r"</?(?:[a-z]+|\d\d:[\d:.]+)(?:[.\s][^<>]*)?>|\{\\[^{}]*\}")
_PAUSE = 3.0  # seconds
_LONGEST_PARAGRAPH = 600
"""Characters after which a paragraph ends with the next sentence, for speakers who never pause."""
_ENDS = (".", "!", "?", "…", "。", "！", "？")


def read_subtitles(text: str) -> ParsedDocument:
    paragraphs: list[str] = []
    speaker, ended = "", float("-inf")
    for begins, ends, cue in _cues(text):
        named = _SPEAKER.search(cue)
        name = unescape(named[1]).strip() if named else ""
        line = " ".join(unescape(_MARKUP.sub("", _SPEAKER.sub("", cue))).split())
        if not line:
            continue
        length = len(paragraphs[-1]) if paragraphs else 0
        full = length > 2 * _LONGEST_PARAGRAPH or (length > _LONGEST_PARAGRAPH and paragraphs[-1].endswith(_ENDS))
        if not paragraphs or full or name != speaker or begins - ended >= _PAUSE:
            paragraphs.append(f"{name}: {line}" if name and name != speaker else line)
        elif not paragraphs[-1].endswith(line):  # rolling captions repeat each line
            paragraphs[-1] += f" {line}"
        speaker, ended = name, ends
    if not paragraphs:
        raise UnreadableDocument("contains no subtitles")
    return ParsedDocument(tuple(map(Block, paragraphs)))


def _cues(text: str) -> Iterator[tuple[float, float, str]]:
    """Yield start and end of each cue, in seconds, and its text."""
    lines = iter(text.split("\n"))
    for line in lines:
        if times := _TIMES.match(line):
            text_lines = itertools.takewhile(str.strip, lines)
            yield _seconds(*times.groups()[:4]), _seconds(*times.groups()[4:]), "\n".join(text_lines)


def _seconds(hours: str | None, minutes: str, seconds: str, parts: str) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + int(parts.ljust(3, "0")) / 1000
