"""Parse a sentence once into tokens, stems, dates, numbers and clauses; a passage into its sentences.

Results are cached, as each sentence of an answer is compared with the same passages.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache

from pipeline.support.analysis.date_parser import Date, find_dates
from pipeline.support.analysis.quantity_parser import Number, find_numbers
from pipeline.support.analysis.tokenizer import (
    Tokens,
    find_stem,
    is_letter_label,
    is_mark,
    load_function_words,
    load_table,
    tokenize,
)
from storage.language import detection
from storage.language.lazy_pattern import lazy_compile
from storage.language.sentences import sentence_spans
from storage.language.words import stop_words

_LANGUAGE_SAMPLE = 200  # characters of a passage by which its language is detected
_LONGEST_STRETCH = 15  # tokens of an exception, a condition or a contrast
_ROW = lazy_compile(r"\s*[^:;\n]{1,60}: [^;\n]*(?:; [^:;\n]{1,60}: [^;\n]*)+")
_LINE = lazy_compile(r"[^\n]+")
_CLAUSE_JOINS = frozenset({",", ";", ":", "(", ")", "and", "or", "but", "while", "whereas", "—", "–"})
_RELATIVES = frozenset({"which", "who", "whom", "whose", "where"})
_RELATIVE_WORDS = frozenset({"where", "which", "who", "because", "as", "then"})
"""Words that open the statement about an exception."""


@dataclass(frozen=True, slots=True, eq=False)
class ParsedSentence:
    """One parsed sentence. `stems` has one stem per token; those of marks are empty."""

    text: Tokens
    language: str
    stems: tuple[str, ...]
    dates: tuple[Date, ...]
    numbers: tuple[Number, ...]
    capitals: frozenset[int]  # the places of capitalised words
    content: frozenset[str]  # the stems of its content words and numbers
    places: Mapping[str, int]  # the last place of each stem
    valued: frozenset[int]  # the places of dates and numbers
    is_row: bool  # whether it is a row of a table, each value behind its column's label: "Label: value; Label: value"

    @property
    def values(self) -> tuple[Number | Date, ...]:
        return (*self.numbers, *self.dates)

    def stems_in(self, first: int, last: int) -> frozenset[str]:
        return self.content.intersection(self.stems[first:last])

    @property
    def clauses(self) -> list[tuple[int, int]]:
        """Return start and end of each clause; a relative clause belongs to the one before."""
        joins = (at for at, low in enumerate(self.text.low) if low in _CLAUSE_JOINS and at not in self.valued)
        ends = [at for at in joins if self.text.at(at + 1) not in _RELATIVES]
        return list(zip([0, *(end + 1 for end in ends)], [*ends, len(self.text)], strict=True))


@dataclass(frozen=True, slots=True, eq=False)
class ParsedPassage:
    """The sentences of a passage, and the words, dates and numbers of all of them."""

    sentences: tuple[ParsedSentence, ...]
    words: frozenset[str]
    stems: frozenset[str]
    capitals: frozenset[str]  # capitalised words, in plain lower case
    acronyms: frozenset[str]  # words all in capitals, in lower case without periods
    dates: tuple[Date, ...]
    numbers: tuple[Number, ...]
    joined: str  # all tokens in plain lower case between blanks


@lru_cache(maxsize=4096)
def parse_sentence(text: str, language: str) -> ParsedSentence:
    """Parse one sentence in a language (ISO 639-1)."""
    tokens, empty = tokenize(text), load_function_words(language)
    dates = find_dates(tokens)
    numbers = find_numbers(tokens, dates, language)
    stems = tuple([find_stem(low, language) if low[0].isalnum() else "" for low in tokens.low])
    return ParsedSentence(
        tokens,
        language,
        stems,
        dates,
        numbers,
        capitals=frozenset([place for place, word in enumerate(tokens.words) if word[0].isupper()]),
        content=frozenset(
            [
                key
                for place, (low, key) in enumerate(zip(tokens.low, stems, strict=True))
                if key and (low not in empty or is_letter_label(tokens, place))
            ]
        ),
        places={key: place for place, key in enumerate(stems) if key},
        valued=frozenset([place for value in (*dates, *numbers) for place in value.places]),
        is_row=_is_row(tokens.text),
    )


def parse_passage(text: str, language: str = "") -> ParsedPassage:
    """Parse a passage sentence by sentence, in its own language or, if that is unknown, in the given one."""
    return _parse_passage_in(text, detect_language(text[:_LANGUAGE_SAMPLE]) or language)


@lru_cache(maxsize=1024)
def _parse_passage_in(text: str, language: str) -> ParsedPassage:
    read = tuple(parse_sentence(text[start:end], language) for start, end in _find_sentence_spans(text))
    capitals = {(part.text.words[place], part.text.low[place]) for part in read for place in part.capitals}
    return ParsedPassage(
        sentences=read,
        words=frozenset(map(strip_possessive, {low for sentence in read for low in sentence.text.low})),
        stems=frozenset().union(*(sentence.places for sentence in read)),
        capitals=frozenset(strip_possessive(low) for _, low in capitals),
        acronyms=frozenset(low.replace(".", "") for word, low in capitals if word.isupper() and len(word) > 1),
        dates=tuple(date for sentence in read for date in sentence.dates),
        numbers=tuple(number for sentence in read for number in sentence.numbers),
        joined=" ".join(["", *(low for sentence in read for low in sentence.text.low), ""]),
    )


def _find_sentence_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each sentence of a passage; each row of a table is a sentence."""
    for start, end in sentence_spans(text):
        lines = [line.span() for line in _LINE.finditer(text, start, end)] if "; " in text[start:end] else []
        rows = [line for line in lines if _is_row(text[slice(*line)])]
        if rows and rows[0][0] > start:
            yield start, rows[0][0] - 1
        yield from rows or [(start, end)]
        if rows and rows[-1][1] < end:
            yield rows[-1][1] + 1, end


def _is_row(text: str) -> bool:
    return "; " in text and bool(_ROW.fullmatch(text))


@lru_cache(maxsize=4096)
def detect_language(text: str) -> str:
    return detection.detect_language(text)


def choose_language(text: str, passages: Iterable[ParsedPassage]) -> str:
    """Return the language to parse a sentence in: its passages', unless it has more function words of another."""
    tokens = tokenize(text)
    low = [low for word, low in zip(tokens.words, tokens.low, strict=True) if len(word) > 1 or not word.isupper()]
    languages = [sentence.language for passage in passages for sentence in passage.sentences[:1]]
    return max(
        [*filter(None, languages), detect_language(text)],
        key=lambda language: sum(word in stop_words(language) for word in low),
    )


def strip_possessive(word: str) -> str:
    return word.removesuffix("'s")


@dataclass(frozen=True, slots=True)
class Clauses:
    """The places of words in exceptions, conditions and contrasts, without the words that open these.

    A negation in such a clause does not negate the whole ("if nobody answers, the request is granted"), and one outside
    does not reach into it ("not paid, except when somebody leaves").
    """

    excepted: frozenset[int] = frozenset()
    conditional: frozenset[int] = frozenset()
    contrasted: frozenset[int] = frozenset()
    limited: bool = False  # whether it restricts something by "only"

    def inverts(self, other: "Clauses") -> bool:
        """Return whether one sentence says "only when" of the case that the other excludes by "except when"."""
        return self.limited != other.limited and bool(other.excepted if self.limited else self.excepted)

    @property
    def hedged(self) -> frozenset[int]:
        return self.excepted | self.conditional | self.contrasted


@lru_cache(maxsize=4096)
def find_clauses(sentence: ParsedSentence) -> Clauses:
    """Find clauses by their opening words; in a language without a list of these, there are none."""
    excepted, conditional, contrasted, limits = (
        frozenset(at for stretch in _find_stretches(sentence, kind) for at in range(*stretch))
        for kind in ("exceptions", "conditions", "contrasts", "limits")
    )
    return Clauses(excepted, conditional, contrasted, limited=bool(limits))


def _find_stretches(sentence: ParsedSentence, kind: str) -> list[tuple[int, int]]:
    """Return start and end of the words after each opening phrase of a kind, up to a mark or relative word."""
    low, stretches = sentence.text.low, []
    for phrase in _load_openers(sentence.language).get(kind, ()):
        for at, word in enumerate(low):
            start = at + len(phrase)
            if word == phrase[0] and low[at:start] == phrase:
                last = min(len(low), start + _LONGEST_STRETCH)
                ends = (place for place in range(start, last) if low[place] in _RELATIVE_WORDS or is_mark(low[place]))
                stretches.append((start, next((place for place in ends if low[place] != '"'), last)))
    return stretches


@cache
def _load_openers(language: str) -> Mapping[str, Iterable[tuple[str, ...]]]:
    data = load_table("polarity.json")
    own = data.get(language) if len(language) == len("en") else data["en"]
    if not own or "exceptions" not in own:
        return {}
    phrases = {**own, "limits": own["limits"].split()}
    kinds = ("exceptions", "conditions", "contrasts", "limits")
    return {kind: tuple(tuple(phrase.split()) for phrase in phrases[kind]) for kind in kinds}
