"""Read subtitles and transcripts (.srt, .vtt): a paragraph for each speaker, or until nobody speaks for a while."""

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
"""Characters after which a paragraph ends with the next sentence, as who speaks without a pause says many things."""
_ENDS = (".", "!", "?", "…", "。", "！", "？")


def read_subtitles(text: str) -> ParsedDocument:
    paragraphs: list[str] = []
    speaker, ended = "", float("-inf")
    for begins, ends, said in _cues(text):
        named = _SPEAKER.search(said)
        who = unescape(named[1]).strip() if named else ""
        line = " ".join(unescape(_MARKUP.sub("", _SPEAKER.sub("", said))).split())
        if not line:
            continue
        length = len(paragraphs[-1]) if paragraphs else 0
        full = length > 2 * _LONGEST_PARAGRAPH or (length > _LONGEST_PARAGRAPH and paragraphs[-1].endswith(_ENDS))
        if not paragraphs or full or who != speaker or begins - ended >= _PAUSE:
            paragraphs.append(f"{who}: {line}" if who and who != speaker else line)
        elif not paragraphs[-1].endswith(line):  # captions that roll say each line twice
            paragraphs[-1] += f" {line}"
        speaker, ended = who, ends
    if not paragraphs:
        raise UnreadableDocument("has no subtitles in it")
    return ParsedDocument(tuple(map(Block, paragraphs)))


def _cues(text: str) -> Iterator[tuple[float, float, str]]:
    """Yield when each cue begins and ends, in seconds, and its text."""
    lines = iter(text.split("\n"))
    for line in lines:
        found = _TIMES.match(line)
        if found:
            said: list[str] = []
            for below in lines:
                if not below.strip():
                    break
                said.append(below)
            yield _seconds(*found.groups()[:4]), _seconds(*found.groups()[4:]), "\n".join(said)


def _seconds(hours: str | None, minutes: str, seconds: str, parts: str) -> float:
    return int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds) + int(parts.ljust(3, "0")) / 1000
