"""Find values and names that a sentence exchanged: of rule and exception, parallel clauses, agent and object."""

import re
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import NamedTuple

from pipeline.support.analysis.date_parser import Date
from pipeline.support.analysis.parsed_sentence import ParsedSentence, find_clauses, find_exception, strip_possessive
from pipeline.support.analysis.proper_names import ProperName, find_names
from pipeline.support.analysis.quantity_parser import Number, is_same_unit
from pipeline.support.analysis.tokenizer import is_mark
from pipeline.support.comparison.alignment import Alignment
from pipeline.support.comparison.polarity import find_negation_scopes, is_plain
from pipeline.support.passage_facts import PassageFacts, is_reached, is_same_number, is_same_value

SaidNumber = tuple[ParsedSentence, Number]  # a number, and the sentence of a passage that has it
SwapValue = Number | Date
Span = tuple[int, int]
_ALMOST_ALL = 0.8  # the share of a sentence's content words that a rule must have to cover it
_INCLUDING = frozenset({"includ", "even", "also", "peopl", "everybodi", "everyon", "well"})
"""Stems by which a sentence includes the exception."""
_PERIOD_LEADS = frozenset({"every", "each", "per"})
_VAGUE = frozenset({
    "there", "then", "that", "those", "this", "these", "such", "some", "sometimes", "certain", "otherwise", "elsewhere",
    "instead", "than", "usual", "usually", "normal", "normally", "standard", "more", "additional", "additionally",
    "extra", "exception", "exceptions", "special", "depending", "case", "cases", "former", "latter", "most", "both",
})  # fmt: skip
"""Words by which a sentence may mean the exception, or compare it with the rule."""
_CLAUSE_JOINS = frozenset({",", ";", "and", "but", "while", "whereas"})
_COMPARING = frozenset({
    "than", "twice", "as", "like", "unlike", "both", "before", "after", "later", "earlier", "until", "between", "from",
    "to", "through", "ago", "already", "still", "once", "former", "other", "since", "with", "together",
})  # fmt: skip
"""Words by which a sentence may speak of two clauses at once."""
_LEAST_COVERAGE = 0.8
_MOST_NAMES = 10
_MOST_DESCRIBING = 4  # words of a title before the name in it
_MOST_BETWEEN = 8  # tokens between two names, beyond which they are unrelated
_ARTICLES = frozenset({"a", "an", "the"})
_TURNING = frozenset({
    "by", "of", "from", "to", "in", "into", "on", "at", "for", "with", "than", "as", "under", "over", "against",
    "that", "which", "who", "whom", "'s",
})  # fmt: skip
_BOTH_WAYS = frozenset({
    "meet", "marri", "wed", "marriag", "and", "or", "nor", "with", "between", "versus", "vs", "equal", "differ",
    "resembl", "border", "neighbor", "neighbour", "cooper", "collabor", "share", "friend", "sibl", "cousin", "twin",
    "twinn", "tie", "drew", "draw", "together", "both", "either", ",", ";", "(", ")",
})  # fmt: skip


def find_exception_swap(alignment: Alignment, facts: PassageFacts) -> tuple[str, str] | None:
    """Return a number that the source has for something else, and what it has in its place; else None.

    "27 days, except in Hamburg, where it is 30" has a rule, an exception, and a statement about the exception.
    """
    dropped, stretch, ours = _find_dropped_count(alignment), find_exception(alignment.source), alignment.sentence
    if dropped or not stretch or not _VAGUE.isdisjoint(ours.text.low) or not is_plain(ours):
        return dropped
    if any(is_reached(known, number) for known, number in product(alignment.source.numbers, ours.numbers)):
        return None
    return _find_exchanged(alignment, facts, *stretch) or _find_included(alignment, *stretch)


def _find_exchanged(alignment: Alignment, facts: PassageFacts, start: int, end: int) -> tuple[str, str] | None:
    """Return a number of the rule that a sentence gives for the exception, or vice versa."""
    ours, theirs = alignment.sentence, alignment.source
    rule = [(theirs, number) for number in theirs.numbers if number.last < start]
    tail = [(theirs, number) for number in theirs.numbers if number.first >= end]
    head = theirs.stems_in(start, end).difference(theirs.stems[: start - 1])
    named = head & (ours.content | facts.context.stems)
    if not head or not tail:
        return None
    if named and not any(at in theirs.capitals and theirs.stems[at] in ours.content for at in range(start, end)):
        return None
    wrong, right = (rule, tail) if named else (tail, rule)
    if _has_any(ours, [number for _, number in right]):
        return None
    others = [(source, number) for source in facts.sentences if source is not theirs for number in source.numbers]
    for number in ours.numbers:
        if _is_among(ours, number, wrong) and not _is_among(ours, number, [*right, *others]):
            instead = next((one for _, one in right if _is_same_measure(ours, number, (theirs, one))), None)
            if instead:
                return number.said, instead.said
            quoted = ours.text.said(number.first, max(number.last, number.first + 2))
            return None if named else (quoted, theirs.text.said(start - 1, end))
    return None


def _find_included(alignment: Alignment, start: int, end: int) -> tuple[str, str] | None:
    """Return the exception if a sentence applies the rule, with its numbers, to the excepted thing."""
    ours, theirs = alignment.sentence, alignment.source
    rule = theirs.stems_in(0, start - 1)
    head, tail = theirs.stems_in(start, end) - rule, theirs.stems_in(end, len(theirs.text)) - rule
    content = ours.content - head - _INCLUDING
    numbers = [number for number in theirs.numbers if number.last < start]
    if not head or not head <= ours.content or content & tail:
        return None
    if find_clauses(ours).limited or find_negation_scopes(theirs).reached:
        return None
    if (numbers and not _has_any(ours, numbers)) or len(content & rule) < max(2, _ALMOST_ALL * len(content)):
        return None
    at = next(at for at in range(len(ours.text)) if ours.stems[at] in head)
    return ours.text.said(at, at + 1), theirs.text.said(start - 1, end)


def _has_any(ours: ParsedSentence, numbers: Iterable[Number]) -> bool:
    return any(is_same_number(known, number) for known, number in product(numbers, ours.numbers))


def _is_among(ours: ParsedSentence, number: Number, known: Sequence[SaidNumber]) -> bool:
    return any(is_same_number(other[1], number) and _is_same_measure(ours, number, other) for other in known)


def _is_same_measure(ours: ParsedSentence, said: Number, known: SaidNumber) -> bool:
    """Return whether a number of the sentence and one of the source have one unit, or count the same things.

    A number that ends its clause has the unit before it: "it lasts six months, theirs lasts three".
    """
    theirs, other = known
    if said.units and not other.units:
        return is_mark(theirs.text.at(other.last))
    if said.units or other.units:
        return is_same_unit(said.units, other.units)
    if said.last >= len(ours.text) or other.last >= len(theirs.text):
        return False
    return bool(ours.stems[said.last]) and ours.stems[said.last] == theirs.stems[other.last]


def _find_dropped_count(alignment: Alignment) -> tuple[str, str] | None:
    """Return "every year" if the source has "every five years"."""
    ours, theirs = alignment.sentence, alignment.source
    for number in theirs.numbers:
        unit = theirs.stems[number.last - 1]
        if not number.units or number.values == (1.0,) or theirs.text.at(number.first - 1) not in _PERIOD_LEADS:
            continue
        for at in range(len(ours.text) - 1):
            if ours.text.low[at] in _PERIOD_LEADS and ours.stems[at + 1] == unit and not _has_any(ours, [number]):
                return ours.text.said(at, at + 2), theirs.text.said(number.first - 1, number.last)
    return None


class _ValueClause(NamedTuple):
    """A clause with one value, and the stems of its content words in order."""

    value: SwapValue
    words: tuple[str, ...]


def find_value_swap(alignment: Alignment) -> tuple[SwapValue, str] | None:
    """Return a value that the source has in another clause, and the value that it has instead; else None.

    In "Jupiter in 1979 and Saturn in 1980" each year belongs to one clause. A sentence with a value, all the words that
    only another clause has, and none of its own clause, attributes the value wrongly.
    """
    ours, theirs = alignment.sentence, alignment.source
    if not _COMPARING.isdisjoint(ours.text.low) or not is_plain(ours) or find_exception(theirs):
        return None
    for values, given in ((ours.dates, theirs.dates), (ours.numbers, theirs.numbers)):
        if len(values) == 1 and len(given) > 1:
            instead = _find_elsewhere(ours, values[0], _find_parallel_clauses(theirs, given, values[0]))
            if instead:
                return values[0], instead.said
    return None


def _find_elsewhere(ours: ParsedSentence, said: SwapValue, listed: Sequence[_ValueClause]) -> SwapValue | None:
    own = [clause for clause in listed if is_same_value(clause.value, said)]
    if len(own) != 1:
        return None
    known = _find_distinct_words(own[0], listed)
    hit = ours.content.intersection(known)
    if not known or not hit <= set(known[:1]) or hit == set(known):
        return None
    others = [(clause.value, _find_distinct_words(clause, listed)) for clause in listed if clause is not own[0]]
    return next((value for value, words in others if words and ours.content.issuperset(words)), None)


def _find_distinct_words(clause: _ValueClause, listed: Sequence[_ValueClause]) -> list[str]:
    others = {key for other in listed if other is not clause for key in other.words}
    return [key for key in clause.words if key not in others]


def _find_parallel_clauses(theirs: ParsedSentence, given: Sequence[SwapValue], said: SwapValue) -> list[_ValueClause]:
    """Return the clauses of a sentence that have exactly one value of the kind of `said`."""
    valued = theirs.valued
    joins = (at for at, word in enumerate(theirs.text.low) if word in _CLAUSE_JOINS and at not in valued)
    clauses = []
    for start, end in theirs.split_at(joins):
        within = [value for value in given if start <= value.first < end and _is_same_kind(value, said)]
        if len(within) == 1:
            words = [theirs.stems[at] for at in range(start, end) if at not in valued]
            clauses.append(_ValueClause(within[0], tuple(dict.fromkeys(key for key in words if key in theirs.content))))
    return clauses


def _is_same_kind(one: SwapValue, said: SwapValue) -> bool:
    if isinstance(one, Number) and isinstance(said, Number):
        return bool(said.units) and is_same_unit(one.units, said.units)
    return isinstance(one, Date) and isinstance(said, Date) and one.reach is not None and said.reach is not None


def find_role_swap(alignment: Alignment) -> tuple[str, str] | None:
    """Return two stretches, of the sentence and of its source, in which two names are exchanged; else None."""
    if alignment.coverage < _LEAST_COVERAGE:
        return None
    ours, theirs = alignment.sentence, alignment.source
    for one, two in combinations(find_names(ours)[:_MOST_NAMES], 2):
        turned = _find_turned(ours, one, two, theirs) if set(one.parts).isdisjoint(two.parts) else None
        if turned:
            return ours.text.said(one.first, two.last), theirs.text.said(*turned)
    return None


def _find_turned(ours: ParsedSentence, one: ProperName, two: ProperName, theirs: ParsedSentence) -> Span | None:
    """Return where the source has two names in the other order: around the same words, or each after the same word.

    None if it also has them in this order.
    """
    between = _collect_between(ours, one.last, two.first)
    leads = (_find_lead(ours, one.first), _find_lead(ours, two.first))
    led = leads[0] != leads[1] and "" not in leads and _BOTH_WAYS.isdisjoint(leads)
    span = None
    for there, here in product(_find_places(theirs, one), _find_places(theirs, two)):
        first, second = sorted((there, here))
        if first == second:
            continue
        same = between is not None and between == _collect_between(theirs, first[1], second[0])
        if same or (led and leads == (_find_lead(theirs, first[0]), _find_lead(theirs, second[0]))):
            if first == there:
                return None
            span = (first[0], second[1])
    return span


def _find_lead(sentence: ParsedSentence, place: int) -> str:
    """Return the stem of the word before a name, skipping articles; empty if there is none."""
    while sentence.text.at(place - 1) in _ARTICLES:
        place -= 1
    return sentence.stems[place - 1] if place else ""


def _collect_between(sentence: ParsedSentence, start: int, end: int) -> tuple[frozenset[str], tuple[str, ...]] | None:
    """Return the content stems between two places and the words that give the relation its direction.

    None if there are no such words, too many, or words of a relation that holds both ways.
    """
    end = _skip_description(sentence, start, end)
    dated = {at for date in sentence.dates for at in range(date.first - 1, date.last)}
    places = [at for at in range(start, end) if at not in dated]
    low = [sentence.text.low[at] for at in places]
    stems = frozenset(sentence.stems[at] for at in places if at not in sentence.capitals) & sentence.content
    if not stems or len(low) > _MOST_BETWEEN or not _BOTH_WAYS.isdisjoint({*stems, *low}):
        return None
    possessive = ("'s",) if sentence.text.at(start - 1).endswith("'s") else ()
    return stems, (*possessive, *(word for word in low if word in _TURNING))


def _skip_description(sentence: ParsedSentence, start: int, end: int) -> int:
    """Return where a description of the next name begins: "the footballer Vogt"; `end` if there is none."""
    low = sentence.text.low
    first = next((at for at in reversed(range(start + 1, end)) if sentence.stems[at] not in sentence.content), end)
    return first if first < end and low[first] in _ARTICLES else end


def _find_places(sentence: ParsedSentence, name: ProperName) -> list[Span]:
    """Return start and end of each mention of a name in a sentence, by its last word or in full."""
    found: list[Span] = []
    low = [strip_possessive(word) for word in sentence.text.low]
    for place in sorted(at for at in sentence.capitals if low[at] == name.parts[-1]):
        first = place
        while first and (low[first - 1] in name.parts or (first > 1 and low[first - 2] in name.parts)):
            first -= 1
        found.append((first, place + 1))
    return found


def may_change_roles(alignment: Alignment) -> bool:
    """Return whether the order of names matters: no sentence is passive alone, and no relation holds both ways."""
    ours, theirs = alignment.sentence, alignment.source
    return ours.content.isdisjoint(_BOTH_WAYS) and ours.text.low.count("by") == theirs.text.low.count("by")


def is_described_by(source: ParsedSentence, name: str, other: str) -> bool:
    """Return whether the words that describe a name in the source contain another: "Ada, Queen of Vik,"."""
    described = rf"\b{re.escape(name)}, (?:(?!and |or )\w+ ){{1,{_MOST_DESCRIBING}}}{re.escape(other)}(?=[,.;]|$)"
    return bool(re.search(described, source.text.text))


def find_misdescription(alignment: Alignment) -> tuple[str, str] | None:
    """Return a name with a description that the source gives another name, and that name's; else None.

    "Ebb, a clockmaker" misdescribes "Tolliver, a clockmaker, and Ebb, a pilot".
    """
    theirs = _find_descriptions(alignment.source)
    for name, words, said in _find_descriptions(alignment.sentence):
        same = [(other, there) for other, known, there in theirs if words <= known]
        named = any(not set(name.parts).isdisjoint(other.parts) for other, _ in same)
        other = any(not set(name.parts).isdisjoint(other.parts) for other, _, _ in theirs)
        if same and other and not named:
            return said, same[0][1]
    return None


def _find_descriptions(sentence: ParsedSentence) -> list[tuple[ProperName, frozenset[str], str]]:
    """Return each name with the stems of its description between commas, and the text of both."""
    descriptions = []
    low = sentence.text.low
    for name in find_names(sentence)[:_MOST_NAMES]:
        start = name.last + 1
        if sentence.text.at(name.last) != "," or sentence.text.at(start) not in _ARTICLES:
            continue
        end = next((at for at in range(start, len(low)) if low[at] in {",", ";", "."}), len(low))
        words = sentence.stems_in(start + 1, end)
        if words and end - start <= _MOST_BETWEEN:
            descriptions.append((name, words, sentence.text.said(name.first, end)))
    return descriptions
