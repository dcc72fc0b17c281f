"""A sentence read once: its tokens, stems, dates and numbers; a passage read as its sentences, and their union.

What was read is kept for the next question about it: the passages of a turn are asked about every sentence of its
answer.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from pipeline.support.calendar import Date
from pipeline.support.dates import dates
from pipeline.support.numbers import Number, numbers
from pipeline.support.tokens import Tokens, function_words, stem, tokens
from storage.language.detect import detect
from storage.language.sentences import sentence_spans
from storage.language.words import stop_words

_TELLING = 200
"""Characters of a passage that tell its language."""
_ROW = re.compile(r"\s*[^:;\n]{1,60}: [^;\n]*(?:; [^:;\n]{1,60}: [^;\n]*)+")
_LINE = re.compile(r"[^\n]+")


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """One sentence. `stems` has one stem a token; those of marks are empty."""

    text: Tokens
    language: str
    stems: tuple[str, ...]
    dates: tuple[Date, ...]
    numbers: tuple[Number, ...]
    capitals: frozenset[int]
    """The places of capitalised words."""
    content: frozenset[str]
    """The stems of its words of substance and its numbers."""
    places: Mapping[str, int]
    """The last place of each stem."""


@dataclass(frozen=True, slots=True, eq=False)
class PassageReading:
    """The sentences of a passage and what they hold together."""

    sentences: tuple[Reading, ...]
    words: frozenset[str]
    stems: frozenset[str]
    capitals: frozenset[str]
    """Capitalised words, in plain lower case."""
    acronyms: frozenset[str]
    """Words all in capitals, in lower case without periods."""
    dates: tuple[Date, ...]
    numbers: tuple[Number, ...]
    joined: str
    """All tokens in plain lower case between blanks."""


@lru_cache(maxsize=4096)
def read_sentence(text: str, language: str) -> Reading:
    """Read one sentence in a language (ISO 639-1)."""
    cut = tokens(text)
    found = dates(cut)
    stems = tuple([stem(low, language) if low[0].isalnum() else "" for low in cut.low])
    capitals = frozenset([place for place, word in enumerate(cut.words) if word[0].isupper()])
    empty = function_words(language)
    content = frozenset([key for low, key in zip(cut.low, stems, strict=True) if key and low not in empty])
    places = {key: place for place, key in enumerate(stems) if key}
    return Reading(cut, language, stems, found, numbers(cut, found, language), capitals, content, places)


def read_passage(text: str, language: str = "") -> PassageReading:
    """Read a passage sentence by sentence, in its own language or, where that cannot be told, in the one given."""
    return _read_in(text, language_of(text[:_TELLING]) or language)


@lru_cache(maxsize=1024)
def _read_in(text: str, language: str) -> PassageReading:
    read = tuple(read_sentence(text[start:end], language) for start, end in _spans(text))
    return PassageReading(
        sentences=read,
        words=frozenset(map(without_possessive, {low for sentence in read for low in sentence.text.low})),
        stems=frozenset().union(*(sentence.places for sentence in read)),
        capitals=frozenset(
            map(without_possessive, {sentence.text.low[place] for sentence in read for place in sentence.capitals})
        ),
        acronyms=frozenset(
            sentence.text.low[place].replace(".", "")
            for sentence in read
            for place in sentence.capitals
            if sentence.text.words[place].isupper() and len(sentence.text.words[place]) > 1
        ),
        dates=tuple(date for sentence in read for date in sentence.dates),
        numbers=tuple(number for sentence in read for number in sentence.numbers),
        joined=" ".join(["", *(low for sentence in read for low in sentence.text.low), ""]),
    )


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence of a passage; each row of a table is one."""
    for start, end in sentence_spans(text):
        lines = [line.span() for line in _LINE.finditer(text, start, end)] if "; " in text[start:end] else []
        rows = [line for line in lines if is_row(text[slice(*line)])]
        if rows and rows[0][0] > start:
            yield start, rows[0][0] - 1
        yield from rows or [(start, end)]
        if rows and rows[-1][1] < end:
            yield rows[-1][1] + 1, end


def is_row(text: str) -> bool:
    """Whether a line is a row of a table, each value behind its column's label: "Label: value; Label: value"."""
    return bool(_ROW.fullmatch(text))


@lru_cache(maxsize=4096)
def language_of(text: str) -> str:
    """Return the language of a text; empty where it cannot be told."""
    return detect(text)


def language_among(text: str, passages: Iterable[PassageReading]) -> str:
    """Return the language of a sentence about passages: theirs, unless it has more function words of another."""
    low = tokens(text).low
    languages = [sentence.language for passage in passages for sentence in passage.sentences[:1]]
    return max(
        [*filter(None, languages), language_of(text)],
        key=lambda language: sum(word in stop_words(language) for word in low),
    )


def without_possessive(word: str) -> str:
    """Return a word in lower case without "'s"."""
    return word.removesuffix("'s")
