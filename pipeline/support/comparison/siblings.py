"""Find words for who, which or when that a sentence takes from another sentence, item or clause than its statement.

"Ten days for extended family" is such a mix of "ten days for immediate family" and "five days for extended family".
"""

from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise

from pipeline.support.analysis.date_parser import Date
from pipeline.support.analysis.parsed_sentence import ParsedSentence
from pipeline.support.analysis.proper_names import ProperName, find_names, is_demonym
from pipeline.support.analysis.quantity_parser import Number, is_same_dimension
from pipeline.support.comparison.alignment import Alignment, load_general_words
from pipeline.support.comparison.polarity import are_opposites, find_negation_scopes
from pipeline.support.passage_facts import PassageFacts, is_same_value

_HALF_COPIED = 0.5
_ITEM = 8  # words with a meaning of their own that an item of a list has at most
_LEAD = 3  # tokens of a clause within which its subject's name begins
_DETERMINERS = frozenset({"a", "an", "the", "our", "your", "their", "its", "his", "her", "my", "per", "each", "every"})
_EARLIER, _LATER = frozenset({"after", "once"}), frozenset({"then", "afterwards"})
Value = Number | Date
Anchor = Value | ProperName


def find_siblings(alignment: Alignment, facts: PassageFacts) -> Iterator[tuple[str, str]]:
    """Yield what a sentence says, and what its source says instead."""
    scope = _find_scope(alignment)
    yield from _find_opposites(alignment, facts, scope)
    yield from _find_other_kinds(alignment, facts, scope)
    yield from _find_other_things(alignment, facts)
    yield from _find_other_order(alignment.sentence, alignment.source)
    if not alignment.source.is_row:
        yield from _find_other_counts(alignment.sentence, alignment.source)
        yield from _find_other_clauses(alignment.sentence, alignment.source)
        yield from _find_exchanged(alignment.sentence, alignment.source)


def _find_scope(alignment: Alignment) -> range:
    """Return the places of the source's clause with all of the sentence's values if another has values, too."""
    ours, theirs = alignment.sentence, alignment.source
    same = [value.first for value in theirs.values if any(is_same_value(value, said) for said in ours.values)]
    for first, last in theirs.clauses if len(same) < len(theirs.values) else ():
        if same and all(first <= at < last for at in same):
            return range(first, last)
    return range(len(theirs.text))


def _find_opposites(alignment: Alignment, facts: PassageFacts, scope: range) -> Iterator[tuple[str, str]]:
    ours, theirs = alignment.sentence, alignment.source
    here, there = find_negation_scopes(ours), find_negation_scopes(theirs)
    known = {theirs.stems[at] for at in scope} | facts.context.stems
    places = [(theirs, at) for at in scope] + [
        (title, at) for title in facts.context.sentences for at in range(len(title.text))
    ]
    unsaid = [
        (source, at)
        for source, at in places
        if source.stems[at] in source.content - ours.content and at not in source.valued
    ]
    for place, stem in enumerate(ours.stems):
        for source, at in unsaid if stem in ours.content - known and place not in ours.valued else ():
            opposite = are_opposites(ours.text.low[place], source.text.low[at]) is not None
            if opposite and here.denies(place) == (source is theirs and there.denies(at)):
                yield ours.text.words[place], source.text.words[at]


def _find_other_kinds(alignment: Alignment, facts: PassageFacts, scope: range) -> Iterator[tuple[str, str]]:
    """Yield "extended family" if the source has "immediate family", and the passages have both."""
    ours, theirs = alignment.sentence, alignment.source
    known = {theirs.stems[at] for at in scope}
    kinds = {pair for sentence in facts.sentences for pair in pairwise(sentence.stems)}
    for at, (kind, thing) in enumerate(pairwise(ours.stems)):
        if {kind, thing} <= ours.content and thing in known and kind not in known and (kind, thing) in kinds:
            before = [place - 1 for place in scope if theirs.stems[place] == thing and place > scope.start]
            named = at in ours.capitals and theirs.capitals.issuperset(before)
            if before and not named and all(theirs.stems[place] in theirs.content - ours.content for place in before):
                yield ours.text.said(at, at + 2), theirs.text.said(before[0], before[0] + 2)


def _find_other_things(alignment: Alignment, facts: PassageFacts) -> Iterator[tuple[str, str]]:
    """Yield "the fee" if the source has "the award" there, and the sentence has not.

    Two words for one may mean the same ("new hire") if no passage has them. The sentence may join two sentences of the
    passages, if that of the fee has more of its words.
    """
    ours, theirs = alignment.sentence, alignment.source
    shared = [(sentence.content & ours.content) - theirs.content for sentence in facts.sentences]
    for gap in alignment.gaps if alignment.copied >= _HALF_COPIED else ():
        said, given = ours.stems_in(*gap.said) - theirs.content, theirs.stems_in(*gap.given) - ours.content
        said -= {ours.stems[at] for at in ours.capitals if at}  # names have their own rule
        led = _is_led(ours, gap.said[0]) and _is_led(theirs, gap.given[0])
        more = [words - said for words in shared if said <= words]
        timed = not (_EARLIER | _LATER).isdisjoint(ours.text.low[slice(*gap.said)])
        if led and gap.tight and said and given and not timed and (more or len(said) == len(given)) and not any(more):
            yield ours.text.said(*gap.said), theirs.text.said(*gap.given)


def _is_led(sentence: ParsedSentence, place: int) -> bool:
    return not {sentence.text.at(place - 1), sentence.text.at(place)}.isdisjoint(_DETERMINERS)


def find_other_items(ours: ParsedSentence, facts: PassageFacts) -> Iterator[tuple[str, str]]:
    """Yield the amount of one short item of a list that is said of the thing of another."""
    items = [sentence for sentence in facts.sentences if sentence.numbers and len(sentence.content) <= _ITEM]
    free = load_general_words(ours.language) | facts.context.stems
    for first, last in ours.clauses:
        words = ours.stems_in(first, last) - free - {ours.stems[at] for at in ours.valued}
        amounts = [number for number in ours.numbers if first <= number.first < last and number.units]
        if len(amounts) != 1:
            continue
        amount = amounts[0]
        same = [item for item in items if any(is_same_value(number, amount) for number in item.numbers)]
        others = [item for item in items if item not in same and 2 * len(words & item.content) > len(words)]
        rivals = [number for item in others for number in item.numbers if are_rivals(number, amount)]
        if same and rivals and all(words.isdisjoint(item.content) for item in same):
            yield amount.said, rivals[0].said


def _find_other_order(ours: ParsedSentence, theirs: ParsedSentence) -> Iterator[tuple[str, str]]:
    """Yield "A after B" if the source has "A before B"."""
    (at, earlier, later), (place, first, second) = _split_by_time(ours), _split_by_time(theirs)
    if earlier & second and later & first and not (earlier & first and later & second):
        yield ours.text.said(max(0, at - 1), at + 2), theirs.text.said(max(0, place - 1), place + 2)


def _split_by_time(sentence: ParsedSentence) -> tuple[int, frozenset[str], frozenset[str]]:
    """Return the place of a sentence's "before", "after" or "then", and the content of what is earlier and later."""
    low, end = sentence.text.low[:-2], len(sentence.text)
    words = (place for place, word in enumerate(low) if word in _EARLIER | _LATER | {"before"})
    clause = (place for place in words if low[place] in _LATER or sentence.text.at(place - 1) not in {"and", "but"})
    at = next(clause, end)
    turn = low.index(",") if at == 0 and "," in low else at
    first, second = sentence.stems_in(0, turn), sentence.stems_in(turn, end)
    then = sentence.text.at(at) in _LATER or sentence.text.at(at + 1) in {"that", "which"}
    swapped = not then and (sentence.text.at(at) in _EARLIER) != (at == 0)
    one, other = (second, first) if swapped else (first, second)
    return at, one - other, other - one


def _find_other_counts(ours: ParsedSentence, theirs: ParsedSentence) -> Iterator[tuple[str, str]]:
    """Yield "two lamps" if the source has "one lamp and two oars"."""
    given = _list_counts(theirs)
    for number, thing in _list_counts(ours):
        others = [other for other, counted in given if counted == thing]
        counting = any(is_same_value(other, number) and counted != thing for other, counted in given)
        if counting and others and not any(is_same_value(other, number) for other in others):
            yield ours.text.said(number.first, number.last + 1), theirs.text.said(others[0].first, others[0].last + 1)


def _list_counts(sentence: ParsedSentence) -> list[tuple[Number, str]]:
    """Return each number without a unit, and the stem of the word that it counts."""
    counts = (
        (number, sentence.stems[number.last : number.last + 1]) for number in sentence.numbers if not number.units
    )
    return [(number, stems[0]) for number, stems in counts if stems and stems[0] in sentence.content]


def _find_other_clauses(ours: ParsedSentence, theirs: ParsedSentence) -> Iterator[tuple[str, str]]:
    """Yield a value or subject of one clause of the source, said with words that only a rival one's clause has."""
    given = [(said, clause) for clause in theirs.clauses for said in _list_anchors(theirs, *clause)]
    taken = {theirs.stems[at] for said, _ in given for at in said.places}
    known = (*ours.values, *find_names(ours))
    unsaid = list_unsaid([said for said, _ in given], known)
    rivals = [(other, theirs.stems_in(*clause)) for other, clause in given if other in unsaid]
    plain = ours.content - {ours.stems[at] for at in ours.valued}
    for said in _list_anchors(ours, 0, len(ours.text)):
        same = [clause for other, clause in given if _is_same(other, said)]
        for other, words in rivals if len(same) == 1 else ():
            here = [stem for stem in theirs.stems[slice(*same[0])] if stem in theirs.content - taken - words]
            there, shared = words.difference(theirs.stems_in(*same[0])), ours.content.intersection(here)
            own = shared - {*here[:1]} or (shared and shared == {*here})
            if are_rivals(other, said) and there & plain and not own:
                yield said.said, other.said


def _find_exchanged(ours: ParsedSentence, theirs: ParsedSentence) -> Iterator[tuple[str, str]]:
    """Yield two values or names that exchanged their clauses."""
    here, there = (
        [(said, one.stems_in(*clause)) for clause in one.clauses for said in _list_anchors(one, *clause, len(one.text))]
        for one in (ours, theirs)
    )
    free = load_general_words(ours.language).union(ours.stems[at] for said, _ in here for at in said.places)
    for (one, left), (two, right) in combinations(here, 2):
        places = [[words for other, words in there if _is_same(other, said)] for said in (one, two)]
        if [len(words) for words in places] == [1, 1] and are_rivals(one, two):
            first, second = (places[at][0] - places[not at][0] - free for at in (0, 1))
            if left & second and right & first and not (left & first or right & second):
                yield one.said, two.said


def _list_anchors(sentence: ParsedSentence, first: int, last: int, lead: int = _LEAD) -> list[Anchor]:
    """Return the values of a clause, and the names in its first tokens, unless these are a people's."""
    led = (name for name in find_names(sentence) if first <= name.first < min(first + lead, last))
    values = (value for value in sentence.values if first <= value.first < last)
    return [*values, *(name for name in led if not is_demonym(name.parts[-1]))]


def list_unsaid(given: Sequence[Anchor], known: Sequence[Anchor]) -> list[Anchor]:
    """Return the values and names that are not among the known ones in either form: "two weeks (10 days)"."""
    said = {at for at, one in enumerate(given) if any(_is_same(one, other) for other in known)}
    restating = {at for at, one in enumerate(given) if isinstance(one, Number) and one.restates}
    said |= {at - 1 for at in restating & said} | {at for at in restating if at - 1 in said}
    return [one for at, one in enumerate(given) if at not in said]


def are_rivals(one: Anchor, other: Anchor) -> bool:
    """Return whether two values or names may be in each other's place: numbers only of one dimension."""
    if isinstance(one, Number) and isinstance(other, Number):
        same = is_same_dimension(one.units, other.units) if one.units and other.units else one.units == other.units
        return same and not (one.ordinal or other.ordinal)
    return type(one) is type(other)


def _is_same(one: Anchor, other: Anchor) -> bool:
    if isinstance(one, ProperName) and isinstance(other, ProperName):
        return not set(one.parts).isdisjoint(other.parts)
    return is_same_value(one, other)
