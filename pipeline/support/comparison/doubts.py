"""Find differences that make a sentence doubtful though no rule decides against it.

In a near copy of a passage's sentence, each changed content word counts. In other sentences these count: words that
bind or limit the statement (must, only, once, or, because), values of the same kind, and verbs that are passive in only
one of both. A difference is grave if it changes a fact; of mere wording, a model decides.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise
from typing import NamedTuple

from pipeline.support.analysis.parsed_sentence import ParsedSentence, find_clauses
from pipeline.support.analysis.quantity_parser import Bound, Number, is_equal_quantity
from pipeline.support.analysis.tokenizer import TokenSpan, load_table
from pipeline.support.comparison.alignment import Alignment, load_general_words
from pipeline.support.comparison.polarity import find_negation_scopes
from pipeline.support.comparison.siblings import Value, are_rivals, find_other_items, find_siblings, list_unsaid
from pipeline.support.comparison.swaps import BEING, find_other_agents, may_change_roles
from pipeline.support.passage_facts import PassageFacts, is_same_value
from storage.language.words import content_terms

_HALF_SAID, _MOSTLY_SAID = 0.5, 0.6
_ALL_SAID = 0.9  # the share of its words in the source from which their order decides agent and object
_LEAST_LEFT = 0.34  # the share of a condition's words below which the sentence leaves it out
_LEAD = 3  # tokens before a value among which its preposition is
_FEW_BETWEEN = 4
_CLAUSE = 3  # content words that make a clause
_OPENERS = frozenset({"for", "to", "if", "when", "in", "on", "at", "during", "with", "once", "after", "before", "as"})
_LIMITS = frozenset({"most", "least", "more", "less", "fewer", "maximum", "minimum"})
_NARROWING = ("who", "that", "which", "with")
_WHENEVER = frozenset({"if", "when", "where"})
_BOUNDS = frozenset({Bound.OVER, Bound.UNDER})

BindingWord = tuple[str, str, tuple[int, int]]
"""The kind and the class of a word or phrase, and its start and end."""


class Doubt(NamedTuple):
    """What a sentence says, and what its source says instead; either may be empty."""

    said: str
    instead: str = ""
    binding: bool = False  # whether it changes an obligation or limit: "may" for "must"
    sure: bool = False  # whether the sentence is surely false: the same words with another obligation or limit
    miscopied: bool = False  # whether the rest is copied
    grave: bool = False  # whether the source is better quoted, even if a model accepts the sentence


def find_doubts(alignment: Alignment, facts: PassageFacts, question: PassageFacts | None = None) -> Iterator[Doubt]:
    """Yield the doubts about a sentence, which may repeat words and values of the question."""
    ours, theirs = alignment.sentence, alignment.source
    asked = question.passages if question else ()
    allowed = frozenset[str]().union(*(part.stems for part in asked))
    near, half = alignment.is_near_copy, alignment.copied >= _HALF_SAID
    grave = alignment.coverage >= _HALF_SAID
    yield from _mark_miscopied(_find_added_bounds(alignment, facts, allowed), allowed, where=half)
    yield from (Doubt(ours.text.said(*place)) for _, name, place in find_binding_words(ours) if name == "cause")
    turned = (*_find_changed_joins(alignment), *_find_other_limits(ours, theirs), *_find_other_directions(ours, theirs))
    bound = (doubt._replace(sure=doubt.sure and near, grave=doubt.binding) for doubt in turned)
    turned = (*_find_changed_bindings(alignment), *bound)
    yield from _mark_miscopied((doubt._replace(grave=grave and doubt.grave) for doubt in turned), allowed, where=near)
    yield from _mark_miscopied(_find_dropped_condition(alignment, facts), allowed, where=near, wording=True)
    siblings = (*(find_siblings(alignment, facts) if grave else ()), *find_other_items(ours, facts))
    doubted = (Doubt(said, instead, grave=True) for said, instead in siblings)
    yield from _mark_miscopied(doubted, allowed, where=False)
    added = _find_added_end(alignment, facts, allowed)
    yield from _mark_miscopied(added, allowed, where=half, wording=True)
    if (near or alignment.coverage >= _ALL_SAID) and may_change_roles(alignment):
        moved, exchanged = _find_reordered(alignment)
        yield from _mark_miscopied(moved, allowed, where=exchanged and not theirs.is_row)
    if near:
        yield from _mark_miscopied(_find_edits(alignment, facts, allowed), allowed, where=True, wording=True)
    if not theirs.is_row:
        known = [value for part in asked for parsed in part.sentences for value in parsed.values]
        yield from _find_other_values(ours, theirs, known) if grave else ()
        yield from (Doubt(said, instead, grave=True) for said, instead in find_other_agents(ours, theirs))
        yield from _find_included(ours, theirs)


def _mark_miscopied(
    found: Iterable[Doubt], allowed: frozenset[str], *, where: bool, wording: bool = False
) -> Iterator[Doubt]:
    """Yield doubts, marked as miscopied if `where`, and as grave unless only `wording` may differ.

    Those about the asker's own words are neither.
    """
    for doubt in found:
        terms = content_terms(doubt.said)
        is_asked = bool(terms) and allowed.issuperset(terms)
        miscopied = where and not is_asked
        grave = (miscopied and not wording) or (doubt.grave and not is_asked)
        yield doubt._replace(miscopied=miscopied, grave=grave)


def _find_added_bounds(alignment: Alignment, facts: PassageFacts, allowed: frozenset[str]) -> Iterator[Doubt]:
    """Yield words such as "all", "only" and "because" that no related sentence of the passages has.

    "Only when" is fine if the source says "except": it says of the exception what that says of the rest.
    """
    ours, theirs = alignment.sentence, alignment.source
    most = len(ours.content & theirs.content)
    related = [source for source in facts.sentences if 2 * len(ours.content & source.content) >= max(most, 2)]
    known = {name for sentence in related for _, name, _ in find_binding_words(sentence)}
    known |= {"all" for sentence in related for number in sentence.numbers if number.said == "100%"}
    excepting = any(find_clauses(source).hedged or find_clauses(source).limited for source in related)
    denied = min(find_negation_scopes(ours).reached, default=len(ours.text))
    for kind, name, (first, last) in find_binding_words(ours):
        before = ours.text.at(first - 1)
        everything = ours.text.at(first) == "all" and ours.stems[last : last + 1] and ours.stems[last] in ours.content
        excused = before == "at" and not everything  # "at all dinners", not "at all"
        excused = excused or (name == "only" and (excepting or before == "but"))
        excused = excused or (ours.text.at(first).startswith("any") and denied < first)
        excused = excused or (ours.text.at(last) == "who" and "who" in theirs.text.low)
        excused = excused or ours.text.low[last : last + 2] == ("at", "once")
        excused = excused or (name == "cause" and _is_given(alignment, last))
        excused = excused or (name == "aim" and "so" in theirs.text.low)
        excused = excused or (name == "all" and _find_next(ours, last) in allowed)
        if kind == "added" and name not in known and not excused:
            limited = name == "all" and (not known.isdisjoint({"only", "most"}) or _is_narrowed(alignment, last))
            limited = limited or name == "cause"
            yield Doubt(ours.text.said(first, last), grave=limited and alignment.coverage >= _HALF_SAID)


def _is_narrowed(alignment: Alignment, place: int) -> bool:
    """Return whether the source narrows the things that a sentence has all of: "staff who passed their probation"."""
    ours, theirs = alignment.sentence, alignment.source
    thing = next((at for at in range(place, len(ours.text)) if ours.stems[at] in theirs.content), len(ours.text))
    behind = theirs.places[ours.stems[thing]] + 1 if thing < len(ours.text) else 0
    follows = theirs.text.at(behind)
    return follows.startswith(_NARROWING) and not ours.text.at(thing + 1).startswith(_NARROWING)


def _is_given(alignment: Alignment, place: int) -> bool:
    """Return whether the source has most of what is behind a word such as "because"."""
    behind = alignment.sentence.stems_in(place, len(alignment.sentence.text))
    return len(behind & alignment.source.content) >= _MOSTLY_SAID * len(behind)


def _find_changed_bindings(alignment: Alignment) -> Iterator[Doubt]:
    """Yield "must" if the source has "may", and "twice" if the source has "once".

    The doubt is sure in a near copy, or if both modals lead to the same word. "Should" is only milder than "must", and
    "must not" means "may not": these are not sure.
    """
    ours, theirs = alignment.sentence, alignment.source
    bound, own = find_binding_words(theirs), find_binding_words(ours)
    more = {kind for kind, *_ in own if _count_kind(own, kind) > _count_kind(bound, kind)}
    plain = not (find_negation_scopes(ours).reached or find_negation_scopes(theirs).reached)
    for kind, name, place in own:
        shared = {other for known, other, _ in own if known == kind in more}  # the sentence has it, too
        others = [(other, said) for known, other, said in bound if known == kind and other not in {name, *shared}]
        if kind in {"modal", "frequency"} and others and not any(entry[:2] == (kind, name) for entry in bound):
            other, span = others[0]
            next_word, other_word = _find_next(ours, place[1]), _find_next(theirs, span[1])
            same = bool(next_word) and next_word == other_word and plain
            sure = (same and (name, other) != ("should", "must")) or (kind != "modal" and alignment.is_near_copy)
            within = next(ours.stems[place[1] : last] for first, last in ours.clauses if place[0] < last)
            grave = kind != "modal" or alignment.is_near_copy or (other_word != "" and other_word in within)
            yield Doubt(ours.text.said(*place), theirs.text.said(*span), binding=True, sure=sure, grave=grave)


def _count_kind(words: Sequence[BindingWord], kind: str) -> int:
    return sum(known == kind for known, *_ in words)


def _find_next(sentence: ParsedSentence, place: int) -> str:
    """Return the stem of the first content word from a place on; empty if there is none."""
    return next((stem for stem in sentence.stems[place:] if stem in sentence.content), "")


def _find_changed_joins(alignment: Alignment) -> Iterator[Doubt]:
    """Yield "and" if the source has "or" between the same words, or vice versa."""
    ours, theirs = alignment.sentence, alignment.source
    own, others = _locate_joins(ours), _locate_joins(theirs)
    for (one, other), (two, another) in pairwise(alignment.pairs):
        left = {own[at]: at for at in range(one + 1, two) if at in own}
        right = {others[at]: at for at in range(other + 1, another) if at in others}
        if left and right and left.keys().isdisjoint(right) and max(two - one, another - other) <= _FEW_BETWEEN:
            yield Doubt(ours.text.said(one, two + 1), theirs.text.said(other, another + 1), binding=True, sure=True)


def _locate_joins(sentence: ParsedSentence) -> dict[int, str]:
    return {first: name for kind, name, (first, _) in find_binding_words(sentence) if kind == "join"}


def _find_other_limits(ours: ParsedSentence, theirs: ParsedSentence) -> Iterator[Doubt]:
    """Yield each limit that the source sets differently or not: "at least 14 days" for "up to 14 days" or "14 days".

    Nothing is yielded if either sentence has a negation.
    """
    if find_negation_scopes(ours).reached or find_negation_scopes(theirs).reached:
        return
    for said in ours.numbers:
        same = [number for number in theirs.numbers if _is_same_amount(number, said) and not number.ordinal]
        limited = said.bound in _BOUNDS and not said.ordinal
        if same and limited and all(number.bound is not said.bound for number in same):
            behind = theirs.text.low[same[0].last : same[0].last + _LEAD]  # "seven people at most"
            binding = not theirs.is_row and _LIMITS.isdisjoint(behind)
            turned = {said.bound, same[0].bound} == _BOUNDS
            yield Doubt(_quote_lead(ours, said), _quote_lead(theirs, same[0]), binding, binding and turned)


def _is_same_amount(one: Number, other: Number) -> bool:
    return not set(one.values).isdisjoint(other.values) or is_equal_quantity(one, other)


def _find_other_directions(ours: ParsedSentence, theirs: ParsedSentence) -> Iterator[Doubt]:
    """Yield "from 2 pm" if the source has "until 2 pm" and nowhere "from 2 pm".

    The doubt is sure except in a table row, or of a bare number, which is not a date: "after 10-man Vik".
    """
    for said in (*ours.dates, *ours.numbers):
        same = [value for value in theirs.values if is_same_value(value, said)]
        if isinstance(said, Number) and said.bound in _BOUNDS & {one.bound for one in same if isinstance(one, Number)}:
            continue  # "as many as" for "up to"
        own, leads = _find_direction(ours, said.first), [_find_direction(theirs, value.first) for value in same]
        others = [(one, name) for one, name in zip(same, leads, strict=True) if name and name != own]
        if own and others and own not in leads:
            vague = isinstance(said, Number) and not (said.units or said.ordinal or said.halves)
            binding = not theirs.is_row and not vague
            yield Doubt(_quote_lead(ours, said), _quote_lead(theirs, others[0][0]), binding, binding)


def _find_direction(sentence: ParsedSentence, place: int) -> str:
    known = _load_wording(sentence.language).directions
    before = sentence.text.low[max(0, place - _LEAD) : place][::-1]
    return next((known[low] for low in before if low in known), "")


def _quote_lead(sentence: ParsedSentence, value: TokenSpan) -> str:
    return sentence.text.said(max(0, value.first - 2), value.last)


def _find_dropped_condition(alignment: Alignment, facts: PassageFacts) -> Iterator[Doubt]:
    """Yield the condition or exception at the end of the source if the sentence omits it."""
    ours, theirs = alignment.sentence, alignment.source
    known = _load_wording(theirs.language).conditions
    low = theirs.text.low
    start = next((at for at, word in enumerate(low) if word in known and at > 1 and low[at + 1 : at + 2] != ("by",)), 0)
    if not start:
        return
    rule, condition = theirs.stems_in(0, start), theirs.stems_in(start, len(theirs.text))
    join = max((at for at in range(start) if theirs.text.low[at] in {"and", ";"}), default=0)
    if join and ours.content.isdisjoint(theirs.stems_in(join, start)):
        return  # it bounds another clause than the one that is said
    comma = max((at for at in range(start) if low[at] == ","), default=0)
    clause = theirs.stems_in(comma, start)
    before = len(ours.content & theirs.stems_in(0, comma))
    if before >= _MOSTLY_SAID * len(ours.content) and 2 * len(clause & ours.content) <= len(clause):
        return
    left = len(condition & ours.content) <= _LEAST_LEFT * len(condition)
    own = ours.content & theirs.content | ours.content.difference(*(part.stems for part in facts.passages))
    if condition and left and len(ours.content & rule) >= _MOSTLY_SAID * len(own):
        words = _WHENEVER if low[start] in _WHENEVER else {low[start]}
        reworded = 0 < sum(word in words for word in low) <= sum(word in words for word in ours.text.low)
        yield Doubt(
            "", theirs.text.said(start, len(theirs.text)), grave=alignment.coverage >= _HALF_SAID and not reworded
        )


def _find_added_end(alignment: Alignment, facts: PassageFacts, allowed: frozenset[str]) -> Iterator[Doubt]:
    """Yield the end of a sentence if no passage has a word of it: ", tax included"."""
    ours, theirs, joins = alignment.sentence, alignment.source, _load_wording(alignment.sentence.language).joins
    places = [at for at in range(len(ours.text)) if ours.stems[at] in ours.content and ours.text.low[at] not in joins]
    last = max((at for at, _ in alignment.pairs if at in places), default=-1)
    end = [at for at in places if at > last]
    known = allowed.union(*(part.stems for part in facts.everything))
    if end and alignment.coverage >= _HALF_SAID and not any(ours.stems[at] in known or at in ours.valued for at in end):
        left = theirs.stems_in(dict(alignment.pairs)[last] + 1, len(theirs.text)) if last >= 0 else frozenset()
        grave = alignment.copied >= _HALF_SAID and len(end) > 1 and left <= ours.content  # else it rewords that end
        yield Doubt(ours.text.said(end[0], end[-1] + 1), grave=grave)


def _find_reordered(alignment: Alignment) -> tuple[list[Doubt], bool]:
    """Return words that the source has in another place, and whether agent and object may be exchanged.

    They are not if the words keep their order, leading phrases aside, or if only one sentence is passive.
    """
    ours, theirs = alignment.sentence, alignment.source
    settled = ours.valued.union(place for place, _ in alignment.pairs)
    both = ours.content & theirs.content
    moved = [
        at for at, stem in enumerate(ours.stems) if at not in settled and stem in both and ours.stems.count(stem) == 1
    ]
    places = [theirs.places[ours.stems[at]] for at in moved]
    moved = [] if len(moved) >= _CLAUSE and places == sorted(places) else moved
    passive = {BEING.isdisjoint(one.text.low) for one in (ours, theirs)}
    start, other = map(_find_start, (ours, theirs))
    rest = [theirs.places[ours.stems[at]] for at in moved if at >= start and theirs.places[ours.stems[at]] >= other]
    exchanged = rest != sorted(rest) and len(passive) == 1 and len(rest) < _CLAUSE
    return [Doubt(ours.text.words[at]) for at in moved], exchanged


def _find_start(sentence: ParsedSentence) -> int:
    """Return where a sentence begins after a leading phrase or clause: "At weekends, …"."""
    low = sentence.text.low
    return 0 if low[0] not in _OPENERS else low.index(",") if "," in low else len(low)


def _find_edits(alignment: Alignment, facts: PassageFacts, allowed: frozenset[str]) -> Iterator[Doubt]:
    """Yield content words and values that the source does not have there, and bounding words that were dropped.

    A name may be completed as another sentence has it.
    """
    ours, theirs = alignment.sentence, alignment.source
    settled = ours.valued.union(place for place, _ in alignment.pairs)
    binding = {at for _, _, place in find_binding_words(ours) for at in range(*place)}
    wording = _load_wording(ours.language)
    directions, joins = wording.directions.keys(), wording.joins
    known = theirs.content | directions | facts.context.stems | allowed
    general = load_general_words(ours.language)
    elsewhere = frozenset[str]().union(*(other.content for other in facts.sentences if other is not theirs)) - general
    for gap in alignment.gaps:
        replaces = bool(theirs.stems_in(*gap.given) - ours.content)
        their_text = theirs.text.said(*gap.given).rstrip(" .") if gap.given[0] < gap.given[1] else ""
        for place in range(*gap.said):
            stem = ours.stems[place]
            low = ours.text.low[place]
            same = place in settled | binding or low in joins or low.endswith("n't")
            if not same and stem in ours.content - known:
                yield Doubt(ours.text.words[place], their_text, grave=replaces and stem in elsewhere)
    for value in (*ours.dates, *ours.numbers):
        new = not theirs.content.issuperset(ours.stems_in(value.first, value.last))
        if new and value.first not in binding and not any(is_same_value(known, value) for known in theirs.values):
            yield Doubt(value.said, grave=value.said.casefold() != "one")
    here = {name for _, name, _ in find_binding_words(ours)}
    ends = [place for _, place in alignment.pairs]
    for kind, name, (first, last) in find_binding_words(theirs):
        remark = name == "only" and any(number.first == last for number in theirs.numbers)  # "only seven" is seven
        remark = remark or theirs.text.at(first).startswith("any")
        if kind != "join" and name not in here and not remark and min(ends) < last and max(ends) >= first:
            yield Doubt("", theirs.text.said(first, last), grave=True)


@lru_cache(maxsize=4096)
def find_binding_words(sentence: ParsedSentence) -> tuple[BindingWord, ...]:
    """Return the words of a sentence that bind or limit its statement, in order."""
    low, known = sentence.text.low, _load_wording(sentence.language).phrases
    return tuple(
        (kind, name, (at, at + len(phrase)))
        for at, word in enumerate(low)
        for kind, name, phrase in known.get(word, ())
        if low[at : at + len(phrase)] == phrase and not (kind == "modal" and at in sentence.valued)
    )


class _Wording(NamedTuple):
    phrases: Mapping[str, tuple[tuple[str, str, tuple[str, ...]], ...]]  # by their first word
    directions: Mapping[str, str]
    conditions: frozenset[str]
    joins: frozenset[str]  # words that only connect a sentence to the one before


@cache
def _load_wording(language: str) -> _Wording:
    known = load_table("wording.json")
    data = known.get(language, known["en"])  # the language of a few words is often taken for another
    kinds = [*data["changed"].items(), ("added", data["added"])]
    listed = [(kind, name, phrase) for kind, classes in kinds for name, phrase in _split_phrases(classes)]
    phrases = {word: tuple(one for one in listed if one[2][0] == word) for word in {one[2][0] for one in listed}}
    directions = {word: name for name in ("start", "end") for word in data[name].split()}
    return _Wording(phrases, directions, frozenset(data["conditions"].split()), frozenset(data["joins"].split()))


def _split_phrases(classes: Mapping[str, str]) -> Iterable[tuple[str, tuple[str, ...]]]:
    return ((name, tuple(phrase.split())) for name, words in classes.items() for phrase in words.split("|"))


def _find_other_values(ours: ParsedSentence, theirs: ParsedSentence, asked: Sequence[Value]) -> Iterator[Doubt]:
    """Yield a value that the source lacks, if it has another of that kind that the sentence does not have."""
    dates = (date for date in theirs.dates if theirs.text.at(date.first - 1) != "(")
    given: tuple[Value, ...] = (*theirs.numbers, *dates)
    others = list_unsaid(given, ours.values)
    for value in ours.values:
        if not any(is_same_value(known, value) or is_same_value(value, known) for known in (*given, *asked)):
            counted = ours.stems[value.last : value.last + 1]
            for other in others:
                bare = isinstance(other, Number) and not other.units
                if are_rivals(value, other) and not (bare and theirs.stems[other.last : other.last + 1] != counted):
                    yield Doubt(value.said, other.said, grave=True)
                    break


def _find_included(ours: ParsedSentence, theirs: ParsedSentence) -> Iterator[Doubt]:
    """Yield an exception to which a sentence applies the rule."""
    clauses = find_clauses(ours)
    places = sorted(find_clauses(theirs).excepted | find_clauses(theirs).contrasted)
    if not places or clauses.excepted or clauses.contrasted or clauses.limited or find_negation_scopes(ours).reached:
        return
    rule, tail = theirs.stems_in(0, places[0]), theirs.stems_in(places[-1] + 1, len(theirs.text))
    head = theirs.stems_in(places[0], places[-1] + 1) - rule
    if head and head <= ours.content and not (tail - rule - head) & ours.content:
        yield Doubt("", theirs.text.said(max(places[0] - 1, 0), places[-1] + 1), grave=True)
