"""What became of a dump's text: sentences that another program kept, markup left over, facts of tables. Pure."""

import json
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from pathlib import Path

from ingest.types import Page
from storage.language.sentences import sentence_spans

LEFT_OVER = re.compile(r"\{\{|\[\[|\]\]|<ref|\|-|&nbsp;|\( ,|\(\)| \.(?=\s|$)")
"""Markup, and holes where markup was."""

_DOCUMENT = re.compile(r"<doc id=\"(\d+)\"[^>]*>\n[^\n]*\n(.*?)\n</doc>", re.DOTALL)
_PLACEHOLDER = re.compile(r"(?:formula|codice)_\d+")
_WORD = re.compile(r"[^\W_]+")
_ENDED = re.compile(r"[.!?。！？؟]['\"”»’)\]]*$")
_FEWEST_WORDS = 5
_WIDEST = 3
"""How many times as long as the sentence a stretch may be that has all its words: what templates say is more."""


@dataclass(frozen=True)
class Kept:
    """Of another program's sentences: how many there are, stand in ours as they are, or with more words between."""

    sentences: int
    literally: int
    kept: int
    lost: tuple[str, ...]


def extracted(folder: Path) -> dict[str, str]:
    """The texts that wikiextractor wrote, by page id."""
    files = sorted(path for path in folder.rglob("wiki_*") if path.is_file())
    found = (match for path in files for match in _DOCUMENT.finditer(path.read_text(encoding="utf-8")))
    return {match[1]: unescape(match[2]) for match in found}


def kept(theirs: Mapping[str, str], ours: Mapping[str, Page]) -> Kept:
    """Look for their sentences in our pages, by letters and digits alone.

    They drop templates where we keep what these say, so a sentence is kept, too, if its words stand in ours in their
    order and close together.
    """
    total = literally = 0
    filled: list[str] = []
    lost: list[str] = []
    for key, text in theirs.items():
        words = _words(_whole(ours[key])) if key in ours else []
        glued = "".join(words)
        places: dict[str, list[int]] = {}
        for place, word in enumerate(words):
            places.setdefault(word, []).append(place)
        for sentence in _prose(text):
            sought = _words(_PLACEHOLDER.sub("", sentence))
            total += 1
            if "".join(sought) in glued:
                literally += 1
            else:
                (filled if _stand_together(sought, places) else lost).append(sentence)
    return Kept(total, literally, literally + len(filled), tuple(lost))


def _whole(page: Page) -> str:
    parts = [
        part for section in page.sections for part in (*section.path[-1:], *(block.text for block in section.blocks))
    ]
    return "\n".join(parts)


def _prose(text: str) -> Iterator[str]:
    """Sentences that end as sentences do, of five words at least; no list items."""
    for line in text.split("\n"):
        if line[:1] not in ("*", "#", "-", ""):
            for start, end in sentence_spans(line):
                sentence = line[start:end]
                if _ENDED.search(sentence) and len(sentence.split()) >= _FEWEST_WORDS:
                    yield sentence


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return _WORD.findall("".join(char for char in plain if not unicodedata.combining(char)))


def _stand_together(sought: Sequence[str], places: Mapping[str, Sequence[int]]) -> bool:
    """Whether the words stand in their order within a stretch not much longer than they are."""
    if not sought:
        return True
    return any(_reach(sought, places, start) for start in places.get(sought[0], ()))


def _reach(sought: Sequence[str], places: Mapping[str, Sequence[int]], start: int) -> bool:
    place, limit = start, start + _WIDEST * len(sought) + 20
    for word in sought[1:]:
        later = places.get(word, ())
        following = bisect_right(later, place)
        if following == len(later) or later[following] > limit:
            return False
        place = later[following]
    return True


def left_over(texts: Iterable[str]) -> list[str]:
    """Around each first piece of markup or hole in a text, some characters."""
    found = ((text, LEFT_OVER.search(text)) for text in texts)
    return [text[max(0, match.start() - 40) : match.end() + 40] for text, match in found if match]


@dataclass(frozen=True)
class Fact:
    """Something that an infobox or a table of a page says."""

    title: str
    label: str
    value: str


def read_facts(path: Path) -> tuple[Fact, ...]:
    """Read a list of facts: `{"facts": [{"title", "label", "value"}]}`."""
    listed = json.loads(path.read_text(encoding="utf-8"))["facts"]
    return tuple(Fact(each["title"], each["label"], each["value"]) for each in listed)


def says(text: str, fact: Fact) -> bool:
    """Whether a text holds a fact's value, letters and digits compared."""
    return f" {' '.join(_words(fact.value))} " in f" {' '.join(_words(text))} "
