"""Parse a sentence once into tokens, stems, dates, numbers and clauses; a passage into its sentences.

Results are cached: the passages of a turn are asked about every sentence of its answer.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources

from pipeline.support.analysis.date_parser import Date, find_dates
from pipeline.support.analysis.quantity_parser import Number, find_numbers
from pipeline.support.analysis.tokenizer import Tokens, find_stem, is_mark, load_function_words, tokenize
from storage.language.detection import detect_language as detection_detect_language
from storage.language.lazy_pattern import lazy_compile
from storage.language.sentences import sentence_spans
from storage.language.words import stop_words

_LANGUAGE_SAMPLE = 200
"""Characters of a passage that tell its language."""
_ROW = lazy_compile(r"\s*[^:;\n]{1,60}: [^;\n]*(?:; [^:;\n]{1,60}: [^;\n]*)+")
_LINE = lazy_compile(r"[^\n]+")


@dataclass(frozen=True, slots=True, eq=False)
class ParsedSentence:
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
class ParsedPassage:
    """The sentences of a passage and what they hold together."""

    sentences: tuple[ParsedSentence, ...]
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
def parse_sentence(text: str, language: str) -> ParsedSentence:
    """Read one sentence in a language (ISO 639-1)."""
    cut = tokenize(text)
    found = find_dates(cut)
    stems = tuple([find_stem(low, language) if low[0].isalnum() else "" for low in cut.low])
    capitals = frozenset([place for place, word in enumerate(cut.words) if word[0].isupper()])
    empty = load_function_words(language)
    content = frozenset([key for low, key in zip(cut.low, stems, strict=True) if key and low not in empty])
    places = {key: place for place, key in enumerate(stems) if key}
    return ParsedSentence(cut, language, stems, found, find_numbers(cut, found, language), capitals, content, places)


def parse_passage(text: str, language: str = "") -> ParsedPassage:
    """Read a passage sentence by sentence, in its own language or, where that cannot be told, in the one given."""
    return _parse_passage_in(text, detect_language(text[:_LANGUAGE_SAMPLE]) or language)


@lru_cache(maxsize=1024)
def _parse_passage_in(text: str, language: str) -> ParsedPassage:
    read = tuple(parse_sentence(text[start:end], language) for start, end in _find_sentence_spans(text))
    return ParsedPassage(
        sentences=read,
        words=frozenset(map(strip_possessive, {low for sentence in read for low in sentence.text.low})),
        stems=frozenset().union(*(sentence.places for sentence in read)),
        capitals=frozenset(
            map(strip_possessive, {sentence.text.low[place] for sentence in read for place in sentence.capitals})
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


def _find_sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence of a passage; each row of a table is one."""
    for start, end in sentence_spans(text):
        lines = [line.span() for line in _LINE.finditer(text, start, end)] if "; " in text[start:end] else []
        rows = [line for line in lines if is_table_row(text[slice(*line)])]
        if rows and rows[0][0] > start:
            yield start, rows[0][0] - 1
        yield from rows or [(start, end)]
        if rows and rows[-1][1] < end:
            yield rows[-1][1] + 1, end


def is_table_row(text: str) -> bool:
    """Whether a line is a row of a table, each value behind its column's label: "Label: value; Label: value"."""
    return bool(_ROW.fullmatch(text))


@lru_cache(maxsize=4096)
def detect_language(text: str) -> str:
    """Return the language of a text; empty where it cannot be told."""
    return detection_detect_language(text)


def choose_language(text: str, passages: Iterable[ParsedPassage]) -> str:
    """Return the language of a sentence about passages: theirs, unless it has more function words of another."""
    low = tokenize(text).low
    languages = [sentence.language for passage in passages for sentence in passage.sentences[:1]]
    return max(
        [*filter(None, languages), detect_language(text)],
        key=lambda language: sum(word in stop_words(language) for word in low),
    )


def strip_possessive(word: str) -> str:
    """Return a word in lower case without "'s"."""
    return word.removesuffix("'s")


_RELATIVE_WORDS = frozenset({"where", "which", "who", "because", "as", "then"})
"""Words that begin what is said of an exception."""
_LONGEST_STRETCH = 15
"""Tokens of such a stretch."""


@dataclass(frozen=True, slots=True)
class Clauses:
    """The places of the words of each kind, without the words that open a stretch."""

    excepted: frozenset[int]
    conditional: frozenset[int]
    contrasted: frozenset[int]
    limited: bool
    """Whether anything is said to hold "only" here."""

    def inverts(self, other: "Clauses") -> bool:
        """Whether one sentence says "only when" of what another denies "except when"."""
        return (self.limited and not other.limited and bool(other.excepted)) or (
            other.limited and not self.limited and bool(self.excepted)
        )

    @property
    def hedged(self) -> frozenset[int]:
        """All of these places."""
        return self.excepted | self.conditional | self.contrasted


@lru_cache(maxsize=4096)
def find_clauses(reading: ParsedSentence) -> Clauses:
    """Find them by their first words; in a language without a list of these, none are found."""
    known = _load_openers(reading.language)
    if known is None:
        return Clauses(frozenset(), frozenset(), frozenset(), limited=False)
    found = {
        kind: [stretch for phrase in phrases for stretch in _find_stretches(reading, phrase)] for kind, phrases in known
    }
    excepted, conditional, contrasted, limits = (
        frozenset(at for stretch in found[kind] for at in range(*stretch))
        for kind in ("exceptions", "conditions", "contrasts", "limits")
    )
    return Clauses(excepted, conditional, contrasted, limited=bool(limits))


def find_exception(reading: ParsedSentence) -> tuple[int, int] | None:
    """Return the first stretch that is excepted from what stands before it; None where there is none."""
    known = dict(_load_openers(reading.language) or ())
    found = sorted(stretch for phrase in known.get("exceptions", ()) for stretch in _find_stretches(reading, phrase))
    return next((stretch for stretch in found if stretch[0] > 1 + reading.text.words[0][0].isupper()), None)


def collect_clause_stems(reading: ParsedSentence, first: int, last: int) -> frozenset[str]:
    """Return the stems between the marks around a value's tokens; of one said of an exception, what is excepted too."""
    marks = [at for at, low in enumerate(reading.text.low) if is_mark(low)]
    start = max((at for at in marks if at < first), default=-1)
    end = min((at for at in marks if at >= last), default=len(reading.text))
    stretch = find_exception(reading)
    if stretch and stretch[1] <= first:
        start = min(start, stretch[0] - 1)
    return frozenset(reading.stems[start + 1 : end])


def _find_stretches(reading: ParsedSentence, phrase: tuple[str, ...]) -> list[tuple[int, int]]:
    """Return what follows each place of a phrase, up to the next mark or relative word."""
    low = reading.text.low
    if phrase[0] not in low:
        return []
    starts = [at for at, word in enumerate(low) if word == phrase[0] and low[at : at + len(phrase)] == phrase]
    return [(at + len(phrase), _find_stretch_end(reading, at + len(phrase))) for at in starts]


def _find_stretch_end(reading: ParsedSentence, start: int) -> int:
    low = reading.text.low
    last = min(len(low), start + _LONGEST_STRETCH)
    return next(
        (at for at in range(start, last) if (is_mark(low[at]) and low[at] != '"') or low[at] in _RELATIVE_WORDS), last
    )


@cache
def _load_openers(language: str) -> tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] | None:
    data = json.loads(resources.files(__package__).joinpath("polarity.json").read_text(encoding="utf-8"))
    own = data.get(language) if len(language) == len("en") else data["en"]
    if not own or "exceptions" not in own:
        return None
    phrases = {
        **{kind: own[kind] for kind in ("exceptions", "conditions", "contrasts")},
        "limits": own["limits"].split(),
    }
    return tuple((kind, tuple(tuple(phrase.split()) for phrase in listed)) for kind, listed in phrases.items())
