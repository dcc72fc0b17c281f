"""Find the value that the source has in place of the sentence's: a number, date, name, rate or table cell."""

from collections.abc import Sequence
from difflib import SequenceMatcher

from pipeline.support.analysis.date_parser import Date, implies_date
from pipeline.support.analysis.parsed_sentence import (
    ParsedSentence,
    detect_language,
    parse_sentence,
    strip_possessive,
)
from pipeline.support.analysis.proper_names import (
    ProperName,
    find_name_forms,
    find_name_root,
    find_names,
    is_abbreviation,
    is_demonym,
    is_ordinary_word,
    load_name_tables,
)
from pipeline.support.analysis.quantity_parser import (
    Bound,
    Number,
    Units,
    find_units_at,
    is_same_dimension,
    is_same_unit,
)
from pipeline.support.analysis.table_parser import CellRow, parse_cells
from pipeline.support.analysis.tokenizer import TokenSpan
from pipeline.support.comparison.alignment import Alignment, Gap, load_general_words
from pipeline.support.comparison.polarity import find_negation_scopes
from pipeline.support.comparison.swaps import may_change_roles
from pipeline.support.passage_facts import PER_WORDS, PRONOUNS, PassageFacts, is_same_number, is_within_bound
from storage.types import Evidence, VerdictReason

LEAST_COVERAGE = 0.6  # the share of a sentence's words that the source must have to contradict an absent value
LEAST_COVERAGE_ELSEWHERE = 0.8  # the same, to contradict a value that the passages have elsewhere
LEAST_REST = 0.75  # the share of a statement's other words from which a sentence's lone amount refutes it
_LEAST_WORDS, _RANGE = 2, 4  # words of the rest, and of a range: "three to four weeks"
_NEAR = 10
"""How many tokens may separate a value of the source from the nearest words that the sentence shares."""
_SHORT_FORM = 3
_ALIKE = 0.75  # the share of letters in order that two spellings of one word have in common
_DEFINITE = frozenset({"the", "this", "these"})
_LIMITS = frozenset({"to", "within", "most", "maximum"})  # "up to 50" states a limit, not a fact

Value = Number | Date


def find_other_unit(alignment: Alignment, number: Number) -> str:
    """Return the source's quantity with the same number in another unit of the same dimension; empty if none."""
    start, end = alignment.place_of(number.first, number.last).given
    within = [given for given in alignment.source.numbers if start <= given.first and given.last <= end]
    same = [given for given in within if given.values[0] == number.values[0] and given.units]
    close = alignment.coverage_without(number.first, number.last) >= LEAST_COVERAGE_ELSEWHERE
    return same[0].said if same and close and all(_is_other_unit(other.units, number.units) for other in same) else ""


def _is_other_unit(given: Units, said: Units) -> bool:
    return is_same_dimension(given, said) and not is_same_unit(given, said)


def compare_number(alignment: Alignment, facts: PassageFacts, number: Number) -> tuple[bool, str] | None:
    """Return whether a bounded number is true of the source's numbers of the same thing, and the first of these.

    "Fewer than 50 people" is true of 31 of them. None if the sentence sets a limit ("up to 50"), or the source has no
    exact number of that kind, or they lie on both sides of the bound.
    """
    ours, theirs = alignment.sentence, alignment.source
    if number.bound not in {Bound.OVER, Bound.UNDER} or _LIMITS.intersection(
        ours.text.low[max(0, number.first - 3) : number.first]
    ):
        return None
    sources = [source for source in (theirs, facts.find_follower(theirs)) if source]
    kin = [other for source in sources for other in source.numbers if _is_same_kind(source, other, ours, number)]
    inside = {is_within_bound(number, other) for other in kin}
    exact = all(other.bound is Bound.EXACTLY for other in kin)
    return (inside.pop(), kin[0].said) if exact and len(inside) == 1 else None


def _is_same_kind(theirs: ParsedSentence, one: Number, ours: ParsedSentence, other: Number) -> bool:
    """Return whether two numbers count the same: in units that convert, or things of one name or of none."""
    if one.ordinal or one.label or one.units or other.units:
        return is_same_dimension(one.units, other.units) and not one.ordinal
    behind, other_behind = ("".join(read.stems[at.last : at.last + 1]) for read, at in ((theirs, one), (ours, other)))
    return behind == other_behind or behind not in theirs.content


def find_other_rate(alignment: Alignment, number: Number) -> str:
    """Return the source's rate if the sentence gives the same amount for another period; else empty."""
    period = _find_period(alignment.sentence, number)
    if not period or alignment.coverage_without(number.first, number.last + 2) < LEAST_COVERAGE:
        return ""
    numbers = alignment.source.numbers
    same = [other for other in numbers if is_same_number(other, number) and is_same_unit(other.units, number.units)]
    if not same or not all(_is_other_unit(_find_period(alignment.source, other), period) for other in same):
        return ""
    return alignment.source.text.said(same[0].first, same[0].last + 2)


def _find_period(sentence: ParsedSentence, number: Number) -> Units:
    """Return the period of a rate, such as a day in "45 euros a day"; empty if it has none."""
    text, at = sentence.text, number.last
    if not number.units or text.at(at) not in PER_WORDS or not text.at(at + 1):
        return ()
    units, last = find_units_at(text, at, at + 1)
    return units if last == at + 2 and any(unit.measures == "time" for unit in units) else ()


def find_other_name(alignment: Alignment, name: ProperName, *, elsewhere: bool) -> str:
    """Return the name that the source has in place of a name, if they share no word; else empty.

    Rows of tables are skipped: their values have no order, and their labels are not names.
    """
    ours, theirs = alignment.sentence, alignment.source
    place = None if theirs.is_row else _find_place(alignment, name, elsewhere=elsewhere, phrase=True)
    if place is None or not place.tight:
        return ""
    if not theirs.content.isdisjoint(ours.stems[name.first : name.last]) and not may_change_roles(alignment):
        return ""
    place_words = _find_name_words(alignment, name, place)
    shortened = {
        at
        for at in place_words
        if theirs.text.at(at + 1) == "." and any(is_abbreviation(theirs.text.low[at], part) for part in name.parts)
    }
    words = [strip_possessive(theirs.text.low[at]) for at in place_words if at not in shortened]
    if not words or "".join(part[0] for part in name.parts) in words:
        return ""
    new = any(not any(_is_same_word(word, other) for other in words) for word in name.parts)
    old = any(not any(_is_same_word(word, other) for other in name.parts) for word in words)
    return theirs.text.said(place_words[0], place_words[-1] + 1) if new and old else ""


def _find_name_words(alignment: Alignment, name: ProperName, place: Gap) -> list[int]:
    """Return the places of the name that the source has there; other content words rule it out.

    A demonym in place of another is enough, whatever else is there: "a French film", "a 1980 Danish film".
    """
    ours, theirs = alignment.sentence, alignment.source
    substance = _find_substance(theirs, *place.given)
    capitalised = [at for at in substance if at in theirs.capitals and (at or not is_ordinary_word(theirs.text.low[0]))]
    peoples = [at for at in capitalised if is_demonym(theirs.text.low[at])] if is_demonym(name.parts[-1]) else []
    more = [at for at in _find_substance(ours, *place.said) if at not in name.places and at not in ours.capitals]
    return peoples or ([] if more or capitalised != substance else capitalised)


def _is_same_word(one: str, two: str) -> bool:
    """Return whether two words of names may be the same, spelt differently or shortened: "Aleksandr", "Con"."""
    if not find_name_forms(one).isdisjoint(find_name_forms(two)) or find_name_root(one) == find_name_root(two):
        return True
    shorter, longer = sorted((one, two), key=len)
    if len(shorter) >= _SHORT_FORM and longer.startswith(shorter):
        return True
    return one[0] == two[0] and SequenceMatcher(None, one, two).ratio() >= _ALIKE


def find_referring_word(alignment: Alignment, name: ProperName, earlier: Sequence[ParsedSentence]) -> str:
    """Return the source's word that may refer to a name that no passage has: "she", "the film"; else empty.

    Only if the sentences before it, `earlier`, contain no name that the word could refer to.
    """
    theirs = alignment.source.text
    first, last = alignment.place_of(name.first, name.last).given
    if any(find_names(sentence) for sentence in earlier) or first >= len(theirs):
        return ""
    pronoun = next((low for low in theirs.low[first:last] if low in PRONOUNS), "")
    if pronoun or first > 0 or theirs.low[0] not in _DEFINITE or 1 in alignment.source.capitals:
        return pronoun
    return theirs.said(0, min(2, len(theirs)))


def _list_values(sentence: ParsedSentence, kind: Value) -> Sequence[Value]:
    """Return the dates or numbers of a sentence, as `kind` is one or the other, without item marks."""
    numbers = [number for number in sentence.numbers if not number.named and (number.first or not number.label)]
    return sentence.dates if isinstance(kind, Date) else numbers


def find_other_value(alignment: Alignment, said: Value, *, elsewhere: bool) -> str:
    """Return the number or date that the source has in place of `said`; empty if it has none, or one that agrees."""
    ours, theirs = alignment.sentence, alignment.source
    values = _list_values(theirs, said)
    place = None if elsewhere and theirs.is_row else _find_place(alignment, said, elsewhere=elsewhere)
    if place is None or (elsewhere and not place.tight) or not _is_anchored(alignment, said):
        return ""
    start, end = place.given
    within = [value for value in values if start <= value.first and value.last <= end]
    if not within or not all(are_conflicting(value, said) for value in within):
        return ""
    more = set(_find_substance(ours, *place.said)) - {*said.places}
    more_given = set(_find_substance(theirs, start, end)) - {*within[0].places}
    if (more or more_given) and not all(are_conflicting(value, said) for value in values):
        return ""
    near = within[0].first - start <= _NEAR or end - within[-1].last <= _NEAR
    return within[0].said if near else ""


def _is_anchored(alignment: Alignment, said: TokenSpan) -> bool:
    """Return whether the source has the content word before a value, or the word directly after it.

    For a value that begins the sentence, the next content word.
    """
    matched = {place for place, _ in alignment.pairs}
    words = _find_substance(alignment.sentence, 0, len(alignment.sentence.text))
    before = [at for at in words if at < said.first] or [at for at in words if at >= said.last][:1]
    return said.last in matched or not before or before[-1] in matched


def _find_place(alignment: Alignment, said: TokenSpan, *, elsewhere: bool, phrase: bool = False) -> Gap | None:
    """Return the tokens of the source that correspond to a value; None if the alignment is too loose.

    The source must have most of the sentence's uncapitalised words: the action, not only names and places.
    """
    ours, theirs = alignment.sentence, alignment.source
    if alignment.coverage_without(said.first, said.last) < (LEAST_COVERAGE_ELSEWHERE if elsewhere else LEAST_COVERAGE):
        return None
    words = [
        ours.stems[at] for at in _find_substance(ours, 0, len(ours.text)) if at not in ours.capitals | {*said.places}
    ]
    words = [word for word in words if word[0].isalpha()]
    if sum(word in theirs.content for word in words) < LEAST_COVERAGE * len(words):
        return None
    place = alignment.place_of(said.first, said.last, phrase=phrase)
    denied = find_negation_scopes(ours).denies(said.first)
    return None if denied and not any(map(find_negation_scopes(theirs).denies, range(*place.given))) else place


def _find_substance(sentence: ParsedSentence, first: int, last: int) -> list[int]:
    """Return the places of the content words in a stretch, without titles such as "Dr"."""
    low, stems, titles = sentence.text.low, sentence.stems, load_name_tables().titles
    return [at for at in range(first, last) if stems[at] in sentence.content and low[at] not in titles]


def are_conflicting(given: Value, said: Value) -> bool:
    """Return whether two values cannot both be true; dates conflict if a part that both have differs."""
    if isinstance(given, Number) and isinstance(said, Number):
        if given.ordinal != said.ordinal or is_same_number(given, said):
            return False
        return not given.units or not said.units or is_same_dimension(given.units, said.units)
    if (
        not isinstance(given, Date)
        or not isinstance(said, Date)
        or implies_date(given, said)
        or implies_date(said, given)
    ):
        return False
    one, two = given.reach, said.reach
    apart = one is not None and two is not None and (one[1] < two[0] or two[1] < one[0])
    parts = ((given.month, said.month), (given.day, said.day), (given.weekday, said.weekday))
    return apart or any(a is not None and b is not None and a != b for a, b in parts)


def find_lone_conflict(said: str, pieces: Sequence[Evidence]) -> tuple[Evidence, VerdictReason] | None:
    """Return a sentence that refutes an amount by another, and the reason; None if none does.

    It has most of the rest of what is said, at least `LEAST_REST`, in part in its page's title, and one amount of that
    kind, or a range, negated if that of the statement is. No sentence with as much of the rest has the amount itself.
    """
    language = detect_language(said)
    ours, parsed = parse_sentence(said, language), [parse_sentence(piece.text, language) for piece in pieces]
    titles = [parse_sentence(piece.document.title, language).content for piece in pieces]
    rest = ours.content - {ours.stems[at] for at in ours.valued} - load_general_words(language)
    known = [
        theirs.content | (title if len(rest & theirs.content) >= _LEAST_WORDS else frozenset())
        for theirs, title in zip(parsed, titles, strict=True)
    ]
    shares = [len(rest & words) / max(len(rest), 1) for words in known]
    if len(rest) < _LEAST_WORDS:
        return None
    near = [at for at, share in enumerate(shares) if share >= LEAST_REST and not parsed[at].is_row]
    denied = find_negation_scopes(ours)
    for number in reversed(ours.numbers):
        kin = {at: [one for one in parsed[at].numbers if _is_same_kind(parsed[at], one, ours, number)] for at in near}
        at = max((at for at in near if kin[at]), key=lambda at: shares[at], default=-1)
        if at < 0 or not all(are_conflicting(one, number) for numbers in kin.values() for one in numbers):
            continue
        (first, *_), last = kin[at], kin[at][-1]
        instead = first.said if first.values == last.values else parsed[at].text.said(first.first, last.last)
        negated = find_negation_scopes(parsed[at])
        same = denied.denies(number.first) == negated.denies(first.first) and bool(denied.reached) <= bool(
            negated.reached
        )
        if len(instead.split()) <= _RANGE and same:
            return pieces[at], VerdictReason("contradicted", (number.said, instead))
    return None


def find_row_mix(alignment: Alignment, facts: PassageFacts) -> tuple[str, str] | None:
    """Return a cell that the sentence joins with another row's cell, and the right row's cell; None if there is none.

    A sentence that has two cells of one column, or a negation, is about several rows, and is skipped.
    """
    sentence = alignment.sentence
    if not alignment.source.is_row or find_negation_scopes(sentence).reached:
        return None
    labels = [cell.label for cell in parse_cells(alignment.source)]
    rows = [row for row in facts.sentences if row.is_row and [cell.label for cell in parse_cells(row)] == labels]
    known = frozenset().union(*(row.content for row in rows))
    if len(sentence.content & known) < LEAST_COVERAGE * len(sentence.content):
        return None
    table = [parse_cells(row) for row in rows]
    columns = [
        frozenset(at for at, row in enumerate(table) if any(_has_item(sentence, item) for item in row[column].items))
        for column in range(len(labels))
    ]
    several = any(len({table[row][at].said for row in rows}) > 1 for at, rows in enumerate(columns))
    return None if several else _find_apart(table, columns)


def _find_apart(table: Sequence[CellRow], columns: Sequence[frozenset[int]]) -> tuple[str, str] | None:
    """Return the second of two cells that share no row, and the cell in its place in the first one's row."""
    mentioned = [(at, rows) for at, rows in enumerate(columns) if rows]
    for place, (_, rows) in enumerate(mentioned):
        for at, others in mentioned[place + 1 :]:
            if rows.isdisjoint(others):
                return table[min(others)][at].said, table[min(rows)][at].said
    return None


def _has_item(sentence: ParsedSentence, item: ParsedSentence) -> bool:
    """Return whether a sentence has all numbers, dates and words of an item; of a name, the surname is enough."""
    words = [at for at in range(len(item.text)) if at not in item.valued and item.stems[at] in item.content]
    if not words and not item.dates and not any(number.units or ":" in number.said for number in item.numbers):
        return False
    if not all(any(_is_same_quantity(number, other) for other in sentence.numbers) for number in item.numbers):
        return False
    if not all(any(implies_date(date, other) for other in sentence.dates) for date in item.dates):
        return False
    named = bool(words) and not item.valued and item.capitals.issuperset(words)
    return all(item.stems[at] in sentence.content for at in (words[-1:] if named else words))


def _is_same_quantity(one: Number, other: Number) -> bool:
    """Return whether two numbers may be the same quantity: not in other units, and not a least against a most."""
    if one.ordinal != other.ordinal and (one.units or other.units):
        return False
    if {one.bound, other.bound} == {Bound.OVER, Bound.UNDER}:
        return False
    return is_same_number(one, other) and (is_same_unit(one.units, other.units) or not (one.units and other.units))
