"""Compare the negations of a sentence and its source, and find words that were replaced by their opposites."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import product

from pipeline.support.analysis.parsed_sentence import ParsedSentence, find_clauses
from pipeline.support.analysis.tokenizer import find_stem, is_mark, load_function_words, load_table
from pipeline.support.comparison.alignment import Alignment

_REACH = 6  # how many content words a negation reaches
_UNTIL = 8  # tokens between a negation and an "until" that cancels it, or a "than" that makes it a bound
_FEWEST, _NEARLY_ALL = 2, 0.7
"""Words that a negation must reach, and the share of the sentence that the source must have, in whatever order."""
_PLAIN = frozenset({"not", "never", "cannot"})
_PREFIXES = ("un", "in", "im", "il", "ir", "dis", "non", "mis")
_LEAST_STEM = 4
_BESIDE = 4  # tokens from a word that permits to its negation: "nobody on call may", "may not"
_PHRASE = 3  # tokens: "before the 18th"


_PERMISSION_WORDS = frozenset({"may", "can", "cannot", "allowed", "permitted", "forbidden", "prohibited", "banned"})
_PERMISSION_STEMS = frozenset({"allow", "permit", "forbid", "forbidden", "prohibit", "ban", "enter"})


@dataclass(frozen=True, slots=True)
class PolarityDifference:
    said: str
    instead: str
    comparative: bool = False
    said_too: bool = False  # whether the source says it as well, of the same word: "before the 18th"


class NegationScopes:
    """The negations of a sentence and the places of the words that each reaches, nearest first."""

    def __init__(self, sentence: ParsedSentence) -> None:
        known = _load_polarity_words(sentence.language)
        self.reached = {
            place: _find_reach(sentence, place, known)
            for place, low in enumerate(sentence.text.low)
            if (low in known.negations or low.endswith("n't")) and not _is_idiom(sentence, place, known)
        }

    def denies(self, place: int) -> bool:
        """Return whether a word is negated: an odd number of negations reaches it."""
        return sum(place in reached for reached in self.reached.values()) % 2 == 1


@lru_cache(maxsize=4096)
def find_negation_scopes(sentence: ParsedSentence) -> NegationScopes:
    return NegationScopes(sentence)


def count_negations(sentence: ParsedSentence) -> int:
    return len(find_negation_scopes(sentence).reached)


def find_denials(alignment: Alignment) -> tuple[PolarityDifference, ...]:
    """Return what only one of two aligned sentences negates, and opposites in the same place."""
    denied = None if _is_about_exception(alignment) else _find_denied(alignment) or _find_dropped(alignment)
    return (*([denied] if denied else []), *_find_opposites(alignment))


def _is_about_exception(alignment: Alignment) -> bool:
    """Return whether a sentence has words that its source has only in an exception."""
    ours, theirs = alignment.sentence, alignment.source
    excepted = find_clauses(theirs).excepted
    plain = {stem for at, stem in enumerate(theirs.stems) if at not in excepted}
    return not find_clauses(ours).excepted and any(theirs.stems[at] in ours.content - plain for at in excepted)


def _find_denied(alignment: Alignment) -> PolarityDifference | None:
    """Return a negation of the sentence that its source does not have, or None."""
    ours, theirs = alignment.sentence, alignment.source
    here, there, forward = find_clauses(ours), find_clauses(theirs), dict(alignment.pairs)
    if here.inverts(there):
        return None
    denying, denied = find_negation_scopes(ours), find_negation_scopes(theirs)
    for place, reached in denying.reached.items():
        if _is_bound(ours, place) and "than" not in theirs.text.low:
            continue
        matched = [(at, forward[at]) for at in reached if at in forward]
        if matched and _is_negated_in_both(theirs, ours, matched[0][1]):
            continue
        apart = any((one in here.hedged) != (other in there.hedged) for one, other in matched)
        first = matched[0][1] if matched and not apart and len(matched) == len(reached) else None
        if first is None or denying.denies(reached[0]) == denied.denies(first):
            first = None if denied.reached else _find_reordered(alignment, place, reached)
        if first is not None:
            return PolarityDifference(_quote(ours, place, reached[0]), _quote(theirs, first))
    return None


def _find_dropped(alignment: Alignment) -> PolarityDifference | None:
    """Return a negation of the source that the sentence does not have, or None."""
    ours, theirs = alignment.sentence, alignment.source
    our_clauses, their_clauses = find_clauses(ours), find_clauses(theirs)
    backward = {other: place for place, other in alignment.pairs}
    once = {stem for stem in theirs.places if theirs.stems.count(stem) == 1 and not find_negation_scopes(ours).reached}
    elsewhere = {stem: place for stem, place in ours.places.items() if stem in once}
    if our_clauses.inverts(their_clauses):
        return None
    denying = find_negation_scopes(theirs)
    for place, reached in denying.reached.items():
        matched = backward.get(reached[0], elsewhere.get(theirs.stems[reached[0]])) if reached else None
        if matched is None or (_is_bound(theirs, place) and "than" not in ours.text.low):
            continue
        same = (reached[0] in their_clauses.hedged) == (matched in our_clauses.hedged)
        if _is_negated_in_both(ours, theirs, matched):
            continue
        if same and find_negation_scopes(ours).denies(matched) != denying.denies(reached[0]):
            return PolarityDifference(_quote(ours, matched), _quote(theirs, place, reached[0]))
    return None


def _is_negated_in_both(one: ParsedSentence, other: ParsedSentence, place: int) -> bool:
    """Return whether two sentences have equally many negations, one of which reaches a word of the first."""
    reached = find_negation_scopes(one).reached
    return count_negations(one) == count_negations(other) and any(place in ends for ends in reached.values())


def _is_bound(sentence: ParsedSentence, place: int) -> bool:
    """Return whether a negation turns a comparison into a bound: "not take more than 200" means "take at most 200"."""
    return "than" in sentence.text.low[place : place + _UNTIL]


def _find_reordered(alignment: Alignment, place: int, reached: tuple[int, ...]) -> int | None:
    """Return where the source has the words that a negation reaches, in another order; None if unsure.

    A word or two may be new, but no name or number. Words of an exception must be in the source's exception.
    """
    ours, theirs = alignment.sentence, alignment.source
    here, there, low = find_clauses(ours), find_clauses(theirs), ours.text.low[place]
    places = [theirs.places[ours.stems[at]] for at in reached if ours.stems[at] in theirs.places]
    new = [at for at in reached if ours.stems[at] not in theirs.places]
    if low not in _PLAIN and not low.endswith("n't"):
        return None
    if len(places) < max(_FEWEST, 2 * len(new)) or reached[0] in new or alignment.coverage < _NEARLY_ALL:
        return None
    numbered = {at for number in ours.numbers for at in number.places}
    if here.hedged or here.limited or not (ours.capitals | numbered).isdisjoint(new):
        return None
    if {number.bound for number in ours.numbers} != {number.bound for number in theirs.numbers}:
        return None
    set_apart = not there.hedged.isdisjoint(places)
    return None if set_apart and places[0] < max(there.hedged) else places[0]


def _is_idiom(sentence: ParsedSentence, place: int, known: "_PolarityWords") -> bool:
    """Return whether a negation word negates nothing: "not only", "no more than", "No. 1", "did not open until"."""
    low = sentence.text.low
    if "until" in low[place : place + _UNTIL] or low[place : place + 2] == ("no", "."):
        return True
    word = "not" if low[place].endswith("n't") else low[place]
    return any(
        (*low[place - at : place], word, *low[place + 1 : place - at + len(idiom)]) == idiom
        for idiom in known.idioms
        for at, part in enumerate(idiom)
        if part == word and place >= at and (at == 0 or word == low[place])
    )


def _find_reach(sentence: ParsedSentence, place: int, known: "_PolarityWords") -> tuple[int, ...]:
    reached: list[int] = []
    enclosed = False
    for at in range(place + 1, len(sentence.text)):
        low = sentence.text.low[at]
        enclosed = low == "(" or (enclosed and low != ")")
        if enclosed or low == ")":
            continue
        if (is_mark(low) and low != '"') or (low in known.ends and at > place + 1) or len(reached) == _REACH:
            break
        if sentence.stems[at] and low not in load_function_words(sentence.language):
            reached.append(at)
    return tuple(reached) or ((place + 1,) if sentence.stems[place + 1 : place + 2] > ("",) else ())


def _quote(sentence: ParsedSentence, place: int, last: int | None = None) -> str:
    """Return a word with the one before it; for a negation, up to the first word that it reaches."""
    first = place - 1 if place and sentence.stems[place - 1] else place
    return sentence.text.said(first, (place if last is None else last) + 1)


def _find_opposites(alignment: Alignment) -> Iterator[PolarityDifference]:
    """Yield opposites in the same place, unless one of them is negated: "did not lose" means "won"."""
    ours, theirs = alignment.sentence, alignment.source
    here, there, low = find_negation_scopes(ours), find_negation_scopes(theirs), theirs.text.low
    phrases = [low[at : at + _PHRASE] for at in range(len(low) - _PHRASE + 1)]
    for gap in (gap for gap in alignment.gaps if gap.tight):
        for place, other in product(range(*gap.said), range(*gap.given)):
            if ours.stems[place] and theirs.stems[other]:
                comparative = are_opposites(ours.text.low[place], theirs.text.low[other])
                if comparative is not None and here.denies(place) == there.denies(other):
                    too = any(ours.text.low[place : place + _PHRASE] == near for near in phrases)
                    yield PolarityDifference(ours.text.words[place], theirs.text.words[other], comparative, too)


@lru_cache(maxsize=16_384)
def are_opposites(one: str, other: str) -> bool | None:
    """Return True for opposite comparatives, False for other opposites, and None for other words."""
    known = _load_polarity_words("en")
    for found in (frozenset((one, other)), frozenset((find_stem(one, "en"), find_stem(other, "en")))):
        if found in known.comparatives or found in known.opposites:
            return found in known.comparatives
    shorter, longer = sorted((one, other), key=len)
    opposite = len(shorter) >= _LEAST_STEM and longer.endswith(shorter) and longer.removesuffix(shorter) in _PREFIXES
    return False if opposite else None


@dataclass(frozen=True, slots=True)
class _PolarityWords:
    negations: frozenset[str]
    idioms: tuple[tuple[str, ...], ...]
    ends: frozenset[str]
    opposites: frozenset[frozenset[str]]
    comparatives: frozenset[frozenset[str]]


@cache
def _load_polarity_words(language: str) -> _PolarityWords:
    data = load_table("polarity.json")
    own = data.get(language if len(language) == len("en") else "en") or data["en"]
    return _PolarityWords(
        negations=frozenset(own["negations"].split()),
        idioms=tuple(tuple(idiom.split()) for idiom in own["not_negations"]),
        ends=frozenset(own["ends"].split()),
        opposites=_pair_opposites(data["opposites"]),
        comparatives=_pair_opposites(data["comparatives"]),
    )


def _pair_opposites(lines: Iterable[str]) -> frozenset[frozenset[str]]:
    words = [line.split() for line in lines]
    return frozenset(map(frozenset, words)) | {frozenset(find_stem(word, "en") for word in pair) for pair in words}


def find_permission_conflict(alignment: Alignment) -> tuple[str, str, bool] | None:
    """Return a permission that the source denies in other words, or vice versa, and whether that is sure. English."""
    (ours, mine), (theirs, other) = ((one, _read_permission(one)) for one in (alignment.sentence, alignment.source))
    bounds = [{number.bound for number in one.numbers} for one in (ours, theirs)]
    if not mine or not other or mine[1] == other[1] or (all(bounds) and bounds[0] != bounds[1]):
        return None
    rest = ours.content - _PERMISSION_STEMS
    sure = rest <= theirs.content and not (find_clauses(ours).limited or find_clauses(theirs).limited)
    return (mine[0], other[0], sure) if 2 * len(rest & theirs.content) > len(rest) else None


def _read_permission(sentence: ParsedSentence) -> tuple[str, bool] | None:
    """Return the only word of a sentence that permits or forbids, with its neighbours, and whether it permits."""
    low, valued = sentence.text.low, sentence.valued
    words = [at for at, word in enumerate(low) if word in _PERMISSION_WORDS and at not in valued]
    if len(words) != 1 or find_clauses(sentence).hedged:
        return None
    near = range(words[0] - _BESIDE, words[0] + _BESIDE)
    denied = sum(place in near for place in find_negation_scopes(sentence).reached)
    return sentence.text.said(max(0, words[0] - 2), min(words[0] + 2, len(low))), denied % 2 == 0
