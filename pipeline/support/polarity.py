"""Compare what a sentence and its source negate, and find words that one turned into their opposite."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import resources
from itertools import product
from typing import Any

from pipeline.support.alignment import Alignment
from pipeline.support.analysis.parsed_sentence import ParsedSentence, find_clauses
from pipeline.support.analysis.tokenizer import find_stem, is_mark, load_function_words

_REACH = 6
"""How many words of substance a negation reaches."""
_UNTIL = 8
"""Tokens between a negation and an "until" that takes it back, or a "than" that makes it a bound."""
_FEWEST, _NEARLY_ALL = 2, 0.7
"""Words that a negation must reach, and the share of the sentence that the source must have, in whatever order."""
_PLAIN = frozenset({"not", "never", "cannot"})
_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non", "mis")
_LEAST_STEM = 4


@dataclass(frozen=True, slots=True)
class PolarityDifference:
    """Two places at which a sentence and its source disagree, as texts."""

    said: str
    instead: str
    comparative: bool = False


def find_denials(alignment: Alignment) -> tuple[PolarityDifference, ...]:
    """Return what only one of two aligned sentences denies, and words of one that are opposites of the other's."""
    ours, theirs = find_negation_scopes(alignment.sentence), find_negation_scopes(alignment.source)
    return (*_find_denied(alignment, ours, theirs), *_find_opposites(alignment, ours, theirs))


class NegationScopes:
    """The negations of a sentence and the words that each reaches, nearest first."""

    def __init__(self, reading: ParsedSentence) -> None:
        known = _load_polarity_words(reading.language)
        self.reached = {
            place: _find_reach(reading, place, known)
            for place, low in enumerate(reading.text.low)
            if (low in known.negations or low.endswith("n't")) and not _is_idiom(reading, place, known)
        }

    def denies(self, place: int) -> bool:
        """Whether a word is denied: an odd number of negations reaches it."""
        return sum(place in reached for reached in self.reached.values()) % 2 == 1


@lru_cache(maxsize=4096)
def find_negation_scopes(reading: ParsedSentence) -> NegationScopes:
    """Return the negations of a sentence, found once."""
    return NegationScopes(reading)


def _find_denied(alignment: Alignment, ours: NegationScopes, theirs: NegationScopes) -> Iterator[PolarityDifference]:
    here, there = find_clauses(alignment.sentence), find_clauses(alignment.source)
    if here.inverts(there):
        return
    forward = dict(alignment.pairs)
    backward = {other: place for place, other in alignment.pairs}
    for place, reached in ours.reached.items():
        found = [forward[one] for one in reached if one in forward]
        if _is_bound(alignment.sentence, place) and "than" not in alignment.source.text.low:
            continue
        apart = any((one in here.hedged) != (forward[one] in there.hedged) for one in reached if one in forward)
        if (
            not apart
            and not _is_from_exception(alignment)
            and reached
            and len(found) == len(reached)
            and ours.denies(reached[0]) != theirs.denies(found[0])
        ):
            yield PolarityDifference(
                _quote_around(alignment.sentence, place, reached), _quote_plain(alignment.source, found[0])
            )
            return
        turned = None if theirs.reached else _find_reordered(alignment, place, reached)
        if turned is not None:
            yield PolarityDifference(
                _quote_around(alignment.sentence, place, reached), _quote_plain(alignment.source, turned)
            )
            return
    for place, reached in theirs.reached.items():
        denied = backward.get(reached[0]) if reached else None
        if _is_bound(alignment.source, place) and "than" not in alignment.sentence.text.low:
            continue
        if denied is None or (reached[0] in there.hedged) != (denied in here.hedged) or _is_from_exception(alignment):
            continue
        if ours.denies(denied) != theirs.denies(reached[0]):
            yield PolarityDifference(
                _quote_plain(alignment.sentence, denied), _quote_around(alignment.source, place, reached)
            )
            return


def _is_bound(reading: ParsedSentence, place: int) -> bool:
    """Whether a negation turns a comparison into a bound: "not take more than 200" is "take at most 200"."""
    return "than" in reading.text.low[place : place + _UNTIL]


def _find_reordered(alignment: Alignment, place: int, reached: tuple[int, ...]) -> int | None:
    """Return where the source says, in another order, what a negation reaches; None where that is not sure.

    A word or two may be new, but no name and no number. What the source excepts it must say of the exception itself.
    """
    ours, theirs, there = alignment.sentence, alignment.source, find_clauses(alignment.source)
    found = [theirs.places[ours.stems[at]] for at in reached if ours.stems[at] in theirs.places]
    new = [at for at in reached if ours.stems[at] not in theirs.places]
    if ours.text.low[place] not in _PLAIN and not ours.text.low[place].endswith("n't"):
        return None
    if len(found) < max(_FEWEST, 2 * len(new)) or reached[0] in new or alignment.coverage < _NEARLY_ALL:
        return None
    if (
        find_clauses(ours).hedged
        or find_clauses(ours).limited
        or any(at in ours.capitals or _is_numbered(ours, at) for at in new)
    ):
        return None
    if {number.bound for number in ours.numbers} != {number.bound for number in theirs.numbers}:
        return None
    set_apart = _is_from_exception(alignment) or any(at in there.hedged for at in found)
    return None if set_apart and found[0] < max(there.hedged) else found[0]


def _is_numbered(reading: ParsedSentence, place: int) -> bool:
    return any(number.first <= place < number.last for number in reading.numbers)


def _is_from_exception(alignment: Alignment) -> bool:
    """Whether a sentence has a word of substance that the source has only in an exception or a condition."""
    ours, theirs = alignment.sentence, alignment.source
    hedged = find_clauses(theirs).excepted | find_clauses(theirs).conditional
    if find_clauses(ours).excepted or find_clauses(ours).conditional:
        return False
    plain = {theirs.stems[at] for at in range(len(theirs.text)) if at not in hedged}
    return any(theirs.stems[at] in ours.content and theirs.stems[at] not in plain for at in hedged)


def _is_idiom(reading: ParsedSentence, place: int, known: "_PolarityWords") -> bool:
    """Whether a negation denies nothing: "not only", "no more than", "No. 1", "did not open until"."""
    low = reading.text.low
    if low[place] == "no" and low[place + 1 : place + 2] == (".",):
        return True
    word = "not" if low[place].endswith("n't") else low[place]
    if "until" in low[place : place + _UNTIL]:
        return True
    return any(
        (*low[place - at : place], word, *low[place + 1 : place - at + len(idiom)]) == idiom
        for idiom in known.idioms
        for at, part in enumerate(idiom)
        if part == word and place >= at and (at == 0 or word == low[place])
    )


def _find_reach(reading: ParsedSentence, place: int, known: "_PolarityWords") -> tuple[int, ...]:
    reached: list[int] = []
    enclosed = False
    for at in range(place + 1, len(reading.text)):
        low = reading.text.low[at]
        enclosed = low == "(" or (enclosed and low != ")")
        if enclosed or low == ")":
            continue
        if (is_mark(low) and low != '"') or (low in known.ends and at > place + 1) or len(reached) == _REACH:
            break
        if reading.stems[at] and low not in load_function_words(reading.language):
            reached.append(at)
    return tuple(reached)


def _quote_around(reading: ParsedSentence, place: int, reached: tuple[int, ...]) -> str:
    """A negation with the word before it and the first that it reaches."""
    first = place - 1 if place and reading.stems[place - 1] else place
    return reading.text.said(first, reached[0] + 1)


def _quote_plain(reading: ParsedSentence, place: int) -> str:
    """A word that is not denied, with the word before it."""
    first = place - 1 if place and reading.stems[place - 1] else place
    return reading.text.said(first, place + 1)


def _find_opposites(alignment: Alignment, ours: NegationScopes, theirs: NegationScopes) -> Iterator[PolarityDifference]:
    """Yield opposites in the same place, unless one of them is denied: "did not lose" is "won"."""
    known = _load_polarity_words(alignment.sentence.language)
    for gap in alignment.gaps:
        for place, other in product(
            _collect_content(alignment.sentence, gap.said), _collect_content(alignment.source, gap.given)
        ):
            one, two = alignment.sentence.text, alignment.source.text
            comparative = _are_opposites(one.low[place], two.low[other], known)
            if comparative is not None and gap.tight and ours.denies(place) == theirs.denies(other):
                yield PolarityDifference(one.words[place], two.words[other], comparative)


def _collect_content(reading: ParsedSentence, stretch: tuple[int, int]) -> list[int]:
    return [place for place in range(*stretch) if reading.stems[place]]


def _are_opposites(one: str, other: str, known: "_PolarityWords") -> bool | None:
    """Whether two words are opposites that compare, or only opposites; None where they are none."""
    pair = frozenset((find_stem(one, "en"), find_stem(other, "en")))
    for found in (frozenset((one, other)), pair):
        if found in known.comparatives or found in known.opposites:
            return found in known.comparatives
    longer, shorter = (one, other) if len(one) > len(other) else (other, one)
    if len(shorter) >= _LEAST_STEM and longer.endswith(shorter) and longer.removesuffix(shorter) in _PREFIXES:
        return False
    return None


@dataclass(frozen=True, slots=True)
class _PolarityWords:
    """One language's words."""

    negations: frozenset[str]
    idioms: tuple[tuple[str, ...], ...]
    ends: frozenset[str]
    opposites: frozenset[frozenset[str]]
    comparatives: frozenset[frozenset[str]]


@cache
def _load_polarity_words(language: str) -> _PolarityWords:
    data: dict[str, Any] = json.loads(
        resources.files("pipeline.support.analysis").joinpath("polarity.json").read_text(encoding="utf-8")
    )
    own = data.get(language if len(language) == len("en") else "en") or data["en"]
    return _PolarityWords(
        negations=frozenset(own["negations"].split()),
        idioms=tuple(tuple(idiom.split()) for idiom in own["not_negations"]),
        ends=frozenset(own["ends"].split()),
        opposites=_pair_opposites(data["opposites"]),
        comparatives=_pair_opposites(data["comparatives"]),
    )


def _pair_opposites(lines: list[str]) -> frozenset[frozenset[str]]:
    """Return pairs of opposites, as they are and as stems."""
    words = [line.split() for line in lines]
    return frozenset(frozenset(pair) for pair in words) | frozenset(
        frozenset(find_stem(word, "en") for word in pair) for pair in words
    )


_BEING_VERBS = frozenset({"has", "have", "had", "is", "are", "was", "were"})
_DEFINITE_WORDS = frozenset({"the", "its", "their", "our"})
"""Words that speak of something as of what is there."""


def find_missing_negation(alignment: Alignment) -> tuple[str, str] | None:
    """Return what a sentence says is not there, and the words of its source that say it is; English only."""
    ours, theirs = alignment.sentence, alignment.source
    if ours.language not in {"en", ""} or not ours.content <= theirs.content or find_negation_scopes(theirs).reached:
        return None
    for at in range(1, len(ours.text) - 1):
        if ours.text.low[at] == "no" and ours.text.low[at - 1] in _BEING_VERBS:
            end = _find_noun_phrase_end(ours, at + 1)
            start = _find_mention(theirs, ours.stems[at + 1 : end])
            if end > at + 1 and start is not None:
                return ours.text.said(at - 1, end), theirs.text.said(start, start + end - at)
    return None


def _find_noun_phrase_end(reading: ParsedSentence, start: int) -> int:
    """Return where the words of substance end that begin at a token."""
    ends = (at for at in range(start, len(reading.text)) if reading.stems[at] not in reading.content)
    return next(ends, len(reading.text))


def _find_mention(source: ParsedSentence, phrase: tuple[str, ...]) -> int | None:
    """Return the article with which the source speaks of a thing."""
    size = len(phrase)
    places = (at for at in range(len(source.text) - size) if source.text.low[at] in _DEFINITE_WORDS)
    return next((at for at in places if source.stems[at + 1 : at + 1 + size] == phrase), None)
