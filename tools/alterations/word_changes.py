"""Change the names, roles, negation, comparisons or wording of a sentence, or use other values of its passage."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from random import Random
from types import MappingProxyType

from storage.language.words import fold_spelling, stop_words
from tools.alterations.sentence_changes import (
    Change,
    ChangeProposer,
    find_numbers,
    find_years,
    has_value,
    replace_span,
    shuffle,
    vocabulary,
)

_PLACE_PREPOSITIONS = frozenset({"in", "at", "near", "from", "around", "across", "throughout", "to"})
_ADJECTIVE = re.compile(r".{2,}(?:ian|ean|ish|ese|can|man|ic|ch)s?")
_NAME_END = re.compile(r"[.,;)]|['’]?\s(?!of\b|for\b)[a-z]+\s|\Z")
"""Matches after a name that is complete, not the start of a longer name."""
_MAX_PERSON_WORDS = 3
_LAST_WORD_SHARE = 0.3
"""The share of longer names of which only the last word is replaced."""


@dataclass(frozen=True, slots=True)
class NameMention:
    """A name in a text, with its span and probable kind."""

    span: tuple[int, int]
    text: str
    kind: str

    @property
    def words(self) -> list[str]:
        """The words of the name without particles."""
        return [word for word in self.text.split() if word[0].isupper()]


def find_names(text: str) -> list[NameMention]:
    """Return the names in a text, in order: runs of capitalised words, except one word at the start of the text."""
    names = []
    for match in _name_pattern().finditer(text):
        start, end = match.span()
        while " " in text[start:end] and _opens(text[start:end].partition(" ")[0]):
            start = text.index(" ", start) + 1
        end -= len("'s") * text[start:end].endswith(("'s", "’s"))
        name = text[start:end]
        other = any(char.isdigit() for char in name) or {*name.split()} & {*vocabulary()["months"]}
        if not other and name[0].isupper() and not _opens(name) and (start > 0 or " " in name):
            names.append(NameMention((start, end), name, _name_kind(text, start, end)))
    return names


def build_name_swapper(pool: Sequence[NameMention]) -> ChangeProposer:
    """Return a function that replaces a name by another from `pool` with the same kind and number of words."""
    by_kind: dict[tuple[str, int], list[NameMention]] = {}
    for name in {name.text: name for name in pool}.values():
        by_kind.setdefault((name.kind, len(name.words)), []).append(name)

    def swap_name(text: str, rng: Random) -> Iterator[Change]:
        for name in shuffle(find_names(text), rng):
            for other in shuffle(by_kind.get((name.kind, len(name.words)), []), rng):
                new = other.text
                if len(name.words) > 1 and rng.random() < _LAST_WORD_SHARE:
                    new = " ".join([*name.text.split()[:-1], other.words[-1]])
                changed = [word for word in new.split() if word[0].isupper() and word not in name.words]
                if changed:
                    yield replace_span(text, name.span, new, changed)

    return swap_name


def swap_roles(text: str, rng: Random) -> Iterator[Change]:
    """Swap two names that follow each other, such as subject and object, or start and destination."""
    for first, second in shuffle([*pairwise(find_names(text))], rng):
        between = text[first.span[1] : second.span[0]]
        moved = between == " to " and _moved_from().search(text[: first.span[0]])
        acted = _action().fullmatch(between) and first.kind == second.kind != "adjective"
        if (moved or acted) and _NAME_END.match(text[second.span[1] :]):
            yield replace_span(text, (first.span[0], second.span[1]), f"{second.text}{between}{first.text}")


def _opens(word: str) -> bool:
    """Return whether a word is capitalised only as the first of a sentence, or is the article of a name."""
    acronym = len(word) > 1 and word.isupper()
    return not acronym and (fold_spelling(word) in stop_words("en") or word.lower() in vocabulary()["openings"])


def _name_kind(text: str, start: int, end: int) -> str:
    words = text[start:end].split()
    before = text[:start].split()[-1:]
    if {*words} & {*vocabulary()["organisations"]}:
        return "organisation"
    if {*words} & {*vocabulary()["places"]}:
        return "place"
    if len(words) == 1 and _ADJECTIVE.fullmatch(words[0]) and re.match(r" [a-z]", text[end:]):
        return "adjective"
    if before and before[0].lower() in _PLACE_PREPOSITIONS:
        return "place"
    return "person" if 1 < len(words) <= _MAX_PERSON_WORDS else "other"


@lru_cache(maxsize=1)
def _name_pattern() -> re.Pattern[str]:
    capitalised = r"[^\W\d_a-zß-öø-ÿ](?:[\w’'-]*\w)?(?:(?<=\b\w)\.)?"
    particles = "|".join(vocabulary()["particles"])
    return re.compile(rf"(?<![\w.’'-]){capitalised}(?: (?:(?:{particles}) )*{capitalised})*")


@lru_cache(maxsize=1)
def _moved_from() -> re.Pattern[str]:
    """Return a pattern for the text before the origin of a move, such as "went from".

    In a mere range from A to B, swapping A and B would change nothing.
    """
    return re.compile(rf"\b(?:{'|'.join(vocabulary()['moves'])})\b(?: [\w’'-]+){{0,5}}? from(?: the)? \Z")


@lru_cache(maxsize=1)
def _action() -> re.Pattern[str]:
    verbs = "|".join(vocabulary()["deeds"])
    helpers = "had|has|have|later|also|then|was|were|is|been|twice|once"
    return re.compile(rf" (?:(?:{helpers}) ){{0,3}}(?:{verbs})(?: by)?(?: the)? ")


_NEGATED = re.compile(r"\b(?:not|never|cannot|no|nor|neither|without)\b|n['’]t\b", re.IGNORECASE)
_NOT = re.compile(r"(?<=\w)(?<!\bor) (?:not|never)(?= \w)(?! only)")
_OPENING_DATE = re.compile(r"(?:In|On|By|During) (?:[A-Z][a-z]+ )?(?:\d{1,2},? )?(?:[A-Z][a-z]+ )?[12]\d{3}, (?=\w)")
_TYPOGRAPHIC = str.maketrans({"“": '"', "”": '"', "’": "'", "‘": "'", "–": "-", "—": "-"})
_STRAIGHT = re.compile(r"(?<=\w)'(?=\w)")


def add_negation(text: str, rng: Random) -> Iterator[Change]:
    """Negate a sentence that has no negation."""
    if not _NEGATED.search(text):
        for match in shuffle([*_helper().finditer(text)], rng):
            negation = rng.choice(["not", "not", "never"])
            yield replace_span(text, match.span(), f"{match[0]} {negation}")


def remove_negation(text: str, rng: Random) -> Iterator[Change]:
    """Remove "not" or "never", or the "n't" of a contraction."""
    for match in shuffle([*_NOT.finditer(text)], rng):
        yield replace_span(text, match.span(), "")
    contracted = {short: long for long, short in vocabulary()["contractions"].items()}
    for match in shuffle([*re.finditer(r"\b\w+n['’]t\b", text)], rng):
        long = contracted.get(match[0].lower().replace("’", "'"))
        if long:
            yield replace_span(text, match.span(), long.removesuffix("not").strip())


def reverse_comparison(text: str, rng: Random) -> Iterator[Change]:
    """Reverse a comparison, an order or a direction."""
    matches = [(match, new) for pattern, new in _opposites() for match in pattern.finditer(text)]
    for match, new in shuffle(matches, rng):
        yield replace_span(text, match.span(), new.capitalize() if match[0][0].isupper() else new, (new,))


def drop_opening(text: str, rng: Random) -> Iterator[Change]:
    """Drop a date, or a linking word, with which the sentence begins."""
    del rng
    match = _OPENING_DATE.match(text) or _linking().match(text)
    if match:
        yield Change(_capitalise(text[match.end() :]), match[0], "")


def drop_article(text: str, rng: Random) -> Iterator[Change]:
    """Drop the article with which the sentence begins."""
    del rng
    if re.match(r"The (?=\w)", text):
        yield Change(_capitalise(text[len("The ") :]), "The", "")


def toggle_contraction(text: str, rng: Random) -> Iterator[Change]:
    """Contract "is not", or write out "isn't"."""
    for long, short in shuffle([*vocabulary()["contractions"].items()], rng):
        for old, new in ((long, short), (short, long)):
            for match in re.finditer(rf"\b{old}\b", text):
                yield replace_span(text, match.span(), new)


def retype_marks(text: str, rng: Random) -> Iterator[Change]:
    """Replace typographic quotation marks, apostrophes and dashes by plain ones, or plain apostrophes the other way."""
    del rng
    plain = text.translate(_TYPOGRAPHIC)
    if plain != text:
        yield Change(plain, text, plain)
    elif _STRAIGHT.search(text):
        yield Change(_STRAIGHT.sub("’", text), "'", "’")


@lru_cache(maxsize=1)
def _helper() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(vocabulary()['helpers'])})\b(?= [a-z])")


@lru_cache(maxsize=1)
def _opposites() -> tuple[tuple[re.Pattern[str], str], ...]:
    pairs = [pair for words in vocabulary()["opposites"] for pair in (words, words[::-1])]
    return tuple((re.compile(rf"(?<![\w-]){old}(?![\w-])", re.IGNORECASE), new) for old, new in pairs)


@lru_cache(maxsize=1)
def _linking() -> re.Pattern[str]:
    return re.compile(rf"(?:{'|'.join(vocabulary()['openings'])}), (?=\w)", re.IGNORECASE)


def _capitalise(text: str) -> str:
    return text[:1].upper() + text[1:]


NeighbourProposer = Callable[[str, str, Random], Iterator[Change]]
"""A function that changes a sentence (first argument) with values that only its passage (second argument) has."""


@dataclass(frozen=True, slots=True)
class _NeighbourValue:
    """A value in a text, with its span and kind."""

    span: tuple[int, int]
    text: str
    kind: str


_FindValues = Callable[[str], Sequence[_NeighbourValue]]


def _propose_from(values: _FindValues) -> NeighbourProposer:
    """Return a function that replaces a value by one of the same kind from the passage's other sentences."""

    def propose(text: str, passage: str, rng: Random) -> Iterator[Change]:
        others = list({value.text: value for value in values(passage) if not has_value(value.text, text)}.values())
        for value in shuffle(values(text), rng):
            for other in shuffle([other for other in others if other.kind == value.kind], rng):
                yield replace_span(text, value.span, other.text)

    return propose


def _number_values(text: str) -> list[_NeighbourValue]:
    """Return the numbers in a text. Words and digits are different kinds, and so are whole numbers and fractions."""
    return [
        _NeighbourValue(number.span, number.text, f"{number.in_words} {number.value == int(number.value)}")
        for number in find_numbers(text)
    ]


def _year_values(text: str) -> list[_NeighbourValue]:
    spans = [span for span in find_years(text) if not text[span[1] :].startswith("s")]
    return [_NeighbourValue(span, text[slice(*span)], "year") for span in spans]


def _name_values(text: str) -> list[_NeighbourValue]:
    """Return the names in a text. Two names that share a word are left out: they may mean the same."""
    names = find_names(text)
    return [
        _NeighbourValue(name.span, name.text, name.kind)
        for name in names
        if not any(other.text != name.text and {*name.words} & {*other.words} for other in names)
    ]


NEIGHBOURS: Mapping[str, NeighbourProposer] = MappingProxyType({
    "number of the same passage": _propose_from(_number_values),
    "date of the same passage": _propose_from(_year_values),
    "name of the same passage": _propose_from(_name_values),
})  # fmt: skip
