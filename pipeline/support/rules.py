"""Check the numbers, dates, names and negations of a sentence by rule: found, absent or contradicted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pipeline.support.analysis.date_parser import Date
from pipeline.support.analysis.parsed_sentence import ParsedSentence, choose_language, detect_language, parse_sentence
from pipeline.support.analysis.proper_names import ProperName, find_names
from pipeline.support.analysis.quantity_parser import Number, is_equal_quantity, is_same_dimension, is_same_unit
from pipeline.support.comparison.alignment import Alignment, align, is_attribute_name, is_same_subject
from pipeline.support.comparison.contradictions import (
    LEAST_COVERAGE,
    compare_number,
    find_only_value,
    find_other_cell,
    find_other_name,
    find_other_rate,
    find_other_unit,
    find_other_value,
    find_referring_word,
    find_row_mix,
    is_pronoun,
)
from pipeline.support.comparison.doubts import find_absent_rate, find_doubts
from pipeline.support.comparison.misreadings import find_misreadings
from pipeline.support.comparison.polarity import (
    count_negations,
    find_denials,
    find_missing_negation,
    find_permission_conflict,
)
from pipeline.support.comparison.swaps import (
    find_exception_swap,
    find_misdescription,
    find_role_swap,
    find_value_swap,
    is_described_by,
)
from pipeline.support.passage_facts import (
    PassageFacts,
    can_be_reckoned,
    collect_facts,
    find_speaker,
    has_date,
    has_name,
    has_number,
    is_list_count,
    is_name_ordinal,
    is_own_name,
    is_reached,
    is_same_number,
    is_within_bound,
)
from storage.types import VerdictReason

_MOSTLY_SAID = 0.7  # the share of a sentence's other words that a source must have for a number to be surely absent
_LONGEST_JOINT = 2  # tokens between two weekdays of one list: ", and"
_Said = Number | Date | ProperName


class FindingKind(StrEnum):
    NUMBER = "number"
    DATE = "date"
    UNIT = "unit"
    NAME = "name"
    NEGATION = "negation"
    COMPARATIVE = "comparative"
    WORDING = "wording"


class FindingOutcome(StrEnum):
    """The outcome of a check. `CONTRADICTED`: a passage states something else in its place.

    `UNNAMED`: a name that is absent, but may be meant by "she" or "the film" in a passage. `ASKED`: stated by the
    asker, but by no passage. `DISPUTED`: seems absent or contradicted, but may be true: the asker's own value, a number
    that can be computed, a denial in other words, "she" on a page of another title. `CHANGED`: words that may mean
    something else in the passage.
    """

    FOUND = "found"
    ABSENT = "absent"
    CONTRADICTED = "contradicted"
    UNNAMED = "unnamed"
    ASKED = "asked"
    DISPUTED = "disputed"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """One part of a sentence, and whether the passages state it, or what they state instead."""

    kind: FindingKind
    said: str
    outcome: FindingOutcome
    instead: str = ""
    elsewhere: bool = False  # whether `instead` may be about something else
    binding: bool = False  # whether it changes an obligation or limit: "may" for "must"
    miscopied: bool = False  # whether the rest is copied
    grave: bool = False  # whether the passage is better quoted, even if a model accepts the sentence

    @property
    def reason(self) -> str:
        by_outcome = {
            FindingOutcome.FOUND: f"the passages say “{self.said}”",
            FindingOutcome.UNNAMED: f"no passage names “{self.said}”, unless it is meant by “{self.instead}”",
            FindingOutcome.ASKED: f"“{self.said}” is what was asked about; no passage mentions it",
            FindingOutcome.ABSENT: f"no passage mentions “{self.said}”",
        }
        if self.outcome in by_outcome:
            return by_outcome[self.outcome]
        if not self.said:
            return f"leaves out “{self.instead}”"
        if self.elsewhere:
            return f"no passage says “{self.said}” of it; its “{self.instead}” may be about something else"
        if not self.instead and self.outcome is FindingOutcome.CHANGED:
            return f"it is not sure that a passage says “{self.said}” in this sense"
        if not self.instead:
            return f"no passage mentions “{self.said}”"
        return f"says “{self.said}”; the passage says “{self.instead}”"

    @property
    def because(self) -> VerdictReason:
        if self.outcome in {FindingOutcome.DISPUTED, FindingOutcome.CHANGED}:
            return replace(self, outcome=_of_value(self.instead)).because
        key = (
            "elsewhere" if self.elsewhere else "absent" if self.outcome is FindingOutcome.ASKED else self.outcome.value
        )
        return VerdictReason(key, (self.said, self.instead) if self.instead else (self.said,))


def _of_value(instead: str) -> FindingOutcome:
    return FindingOutcome.CONTRADICTED if instead else FindingOutcome.ABSENT


def check_rules(
    sentence: str,
    passages: Sequence[str],
    *,
    context: Sequence[str] = (),
    asked: Sequence[str] = (),
    own: Sequence[str] = (),
) -> tuple[RuleFinding, ...]:
    """Look up a sentence's numbers, dates, units and names in the passages, and compare its negations with theirs.

    `context` holds words from outside the passages that count as stated in them: the titles of their pages, aliases.
    `asked` is what the asker said: the sentence may repeat it, but it is not evidence. `own` are the names of the
    passages' collections, as a page seldom names its owner.
    """
    facts = collect_facts(passages, context, detect_language(sentence))
    read = parse_sentence(sentence, choose_language(sentence, facts.passages))
    alignment = align(read, facts)
    question = collect_facts(asked, (), read.language) if asked else None
    counted = tuple(question.numbers) if question else ()
    found: tuple[tuple[_Said, RuleFinding], ...] = (
        *(
            (number, finding)
            for number in read.numbers
            for finding in _check_number(number, read, facts, alignment, counted)
        ),
        *((date, finding) for date in read.dates for finding in _check_date(date, facts, alignment)),
        *((name, finding) for name in find_names(read) for finding in _check_name(name, read, facts, alignment, own)),
    )
    allowed = frozenset[str]().union(*(part.stems for part in question.passages)) if question else frozenset[str]()
    other_unit = any(one.kind is FindingKind.UNIT and one.outcome is not FindingOutcome.FOUND for _, one in found)
    known = [*facts.everything, *(question.passages if question else ())]
    unit = "" if other_unit or not facts.passages else find_absent_rate(read, known)
    others = (
        *([_build_finding(FindingKind.UNIT, unit, "", found=False)] if unit else []),
        *(_check_denials(alignment) if alignment and alignment.coverage >= LEAST_COVERAGE else ()),
        *(_check_permission(facts, alignment) if alignment else ()),
        *(_check_misplaced(facts, alignment) if alignment else ()),
        *(_check_wording(facts, alignment, allowed, refuted=other_unit) if alignment else ()),
        *(_check_misreadings(alignment, question) if alignment else ()),
    )
    return (
        *(
            _mark_elsewhere(
                _excuse_asked(one, finding, question, alignment) if question else finding, facts, alignment, one
            )
            for one, finding in found
        ),
        *(_mark_elsewhere(finding, facts, alignment) for finding in others),
    )


def _mark_elsewhere(
    finding: RuleFinding, facts: PassageFacts, alignment: Alignment | None, value: _Said | None = None
) -> RuleFinding:
    """Mark a contradiction as `elsewhere` if the passage may state it of something else."""
    if finding.outcome is not FindingOutcome.CONTRADICTED:
        return finding
    about = alignment is not None and is_same_subject(alignment, facts, finding.said, finding.instead)
    if about and alignment and isinstance(value, ProperName):
        about = is_attribute_name(alignment.sentence, value)
    if alignment and isinstance(value, Date) and value.weekday:
        finding = replace(finding, instead=_find_all_days(alignment.source, finding.instead))
    return finding if about else replace(finding, elsewhere=True)


def _find_all_days(source: ParsedSentence, instead: str) -> str:
    """Return a weekday of a source with the rest of its list or range: "Tuesdays and Fridays"."""
    days = [date for date in source.dates if date.weekday]
    runs = list[list[Date]]()
    for day in days:
        joined = bool(runs) and 0 < day.first - runs[-1][-1].last <= _LONGEST_JOINT
        runs = [*runs[:-1], [*runs[-1], day]] if joined else [*runs, [day]]
    within = next((run for run in runs if any(day.said == instead for day in run)), None)
    return source.text.said(within[0].first, within[-1].last) if within else instead


def _check_number(
    number: Number,
    sentence: ParsedSentence,
    facts: PassageFacts,
    alignment: Alignment | None,
    asked: Sequence[Number] = (),
) -> Iterator[RuleFinding]:
    """Look up a number; "one", "first" and "half" are too common to count as missing."""
    claim = number.values not in {(1.0,), (0.5,), (0.0,)} or bool(number.units)
    compared = compare_number(alignment, facts, number) if alignment else None
    if compared:
        yield _build_finding(FindingKind.NUMBER, number.said, "" if compared[0] else compared[1], found=True)
        return
    is_found = not claim or has_number(facts, number)
    is_found = is_found or is_name_ordinal(facts, number, sentence) or is_list_count(number, sentence)
    instead = _find_other_value(alignment, facts, number, found=is_found)
    if any(other.said == instead and is_reached(other, number) for other in facts.numbers):
        instead = ""
    if is_found and instead and alignment and _is_said_elsewhere(number, alignment, facts):
        instead = ""
    replaced = bool(instead) or (alignment is not None and alignment.is_near_copy)
    other = _find_other_unit(number, facts, alignment) if is_found and number.units else ""
    other = other or (find_other_rate(alignment, number) if alignment and is_found else "")
    if other and not instead:
        yield _build_contradiction(FindingKind.UNIT, number.said, other)
    elif facts.passages and not is_found and can_be_reckoned(number, sentence, facts, asked, changed=replaced):
        yield RuleFinding(FindingKind.NUMBER, number.said, FindingOutcome.DISPUTED, instead)
    elif facts.passages and not (
        is_found or replaced or number.units or _is_comparable(number, sentence, facts, alignment)
    ):
        yield RuleFinding(FindingKind.NUMBER, number.said, FindingOutcome.DISPUTED, grave=True)
    elif claim or instead:
        yield _build_finding(FindingKind.NUMBER, number.said, instead, found=is_found)


def _is_comparable(number: Number, sentence: ParsedSentence, facts: PassageFacts, alignment: Alignment | None) -> bool:
    """Return whether a passage should state a number: it states the rest, or another count of the same things.

    A quantity with a unit may be computed from others.
    """
    if alignment and alignment.coverage_without(number.first, number.last) >= _MOSTLY_SAID:
        return True
    counted = "" if number.units or number.last == len(sentence.text) else sentence.stems[number.last]
    counts = ((source, other) for source in facts.sentences for other in source.numbers)
    return bool(counted) and any(source.stems[one.last : one.last + 1] == (counted,) for source, one in counts)


def _find_other_value(alignment: Alignment | None, facts: PassageFacts, said: Number | Date, *, found: bool) -> str:
    if not alignment:
        return ""
    other = find_other_value(alignment, said, elsewhere=found) or find_only_value(alignment, said)
    return other or (find_other_cell(alignment.sentence, facts, said) if isinstance(said, Number) else "")


def _find_other_unit(number: Number, facts: PassageFacts, alignment: Alignment | None) -> str:
    """Return the quantity that the source has instead, or all passages if they give this number other units."""
    instead = find_other_unit(alignment, number) if alignment else ""
    same = [other for other in facts.numbers if not other.ordinal and not set(other.values).isdisjoint(number.values)]
    if instead or not same or any(not other.units or is_same_unit(other.units, number.units) for other in same):
        return instead
    kin = [other for other in same if is_same_dimension(other.units, number.units)]
    return kin[0].said if kin and not any(is_equal_quantity(other, number) for other in facts.numbers) else ""


def _check_date(date: Date, facts: PassageFacts, alignment: Alignment | None) -> Iterator[RuleFinding]:
    is_found = has_date(facts, date)
    instead = _find_other_value(alignment, facts, date, found=is_found)
    yield _build_finding(FindingKind.DATE, date.said, instead, found=is_found)


def _check_name(
    name: ProperName, sentence: ParsedSentence, facts: PassageFacts, alignment: Alignment | None, own: Sequence[str]
) -> Iterator[RuleFinding]:
    """Look up a name; a pronoun may refer to it if earlier sentences name nobody, surely if the page has no title.

    It may also be the name of the page's authors, who write "we".
    """
    is_found = has_name(facts, name) or is_own_name(name, sentence, own)
    instead = find_other_name(alignment, name, elsewhere=is_found) if alignment else ""
    meant = ""
    if alignment and name.sure and not is_found and not instead:
        within = next(part.sentences for part in facts.passages if alignment.source in part.sentences)
        meant = find_referring_word(alignment, name, within[: within.index(alignment.source)])
    if meant and not facts.context.words:
        yield RuleFinding(FindingKind.NAME, name.said, FindingOutcome.UNNAMED, meant)
    elif meant and is_pronoun(meant):
        yield RuleFinding(FindingKind.NAME, name.said, FindingOutcome.DISPUTED, meant)
    elif name.sure and not is_found and not instead and (speaker := find_speaker(facts, name, sentence)):
        yield RuleFinding(FindingKind.NAME, name.said, FindingOutcome.DISPUTED, speaker)
    elif is_found and instead and alignment and is_described_by(alignment.source, name.said, instead):
        yield RuleFinding(FindingKind.NAME, name.said, FindingOutcome.DISPUTED, instead)
    elif name.sure or instead:
        yield _build_finding(FindingKind.NAME, name.said, instead, found=is_found)


def _check_denials(alignment: Alignment) -> Iterator[RuleFinding]:
    denying = count_negations(alignment.sentence)
    differ = not denying or denying != count_negations(alignment.source)
    for denial in find_denials(alignment):
        kind = FindingKind.COMPARATIVE if denial.comparative else FindingKind.NEGATION
        sure = not denial.said_too and (denial.comparative or (alignment.is_near_copy and differ))
        outcome = FindingOutcome.CONTRADICTED if sure else FindingOutcome.DISPUTED
        yield RuleFinding(kind, denial.said, outcome, denial.instead, grave=True)
    turned = find_role_swap(alignment)
    if turned:
        yield _build_contradiction(FindingKind.NAME, *turned)


def _check_permission(facts: PassageFacts, alignment: Alignment) -> Iterator[RuleFinding]:
    conflict = find_permission_conflict(alignment, facts.sentences)
    if conflict:
        outcome = FindingOutcome.CONTRADICTED if conflict[2] else FindingOutcome.DISPUTED
        yield RuleFinding(FindingKind.NEGATION, conflict[0], outcome, conflict[1], grave=True)


def _check_misplaced(facts: PassageFacts, alignment: Alignment) -> Iterator[RuleFinding]:
    """Yield statements of the passages that the sentence attributes to something else."""
    swaps = (
        (FindingKind.NAME, find_row_mix(alignment, facts)),
        (FindingKind.NAME, find_misdescription(alignment)),
        (FindingKind.NEGATION, find_missing_negation(alignment)),
        (FindingKind.NUMBER, find_exception_swap(alignment, facts)),
    )
    yield from (_build_contradiction(kind, *one) for kind, one in swaps if one)
    swapped = find_value_swap(alignment)
    if swapped:
        kind = FindingKind.DATE if isinstance(swapped[0], Date) else FindingKind.NUMBER
        yield _build_contradiction(kind, swapped[0].said, swapped[1])


def _is_said_elsewhere(number: Number, alignment: Alignment, facts: PassageFacts) -> bool:
    """Return whether another passage sentence states all of a sentence, except for words of the page's name."""
    content = alignment.sentence.content - facts.context.stems
    others = (sentence for sentence in facts.sentences if sentence is not alignment.source)
    return any(
        content <= other.content and any(is_same_number(number, given) for given in other.numbers) for other in others
    )


def _excuse_asked(
    said: _Said, finding: RuleFinding, question: PassageFacts, alignment: Alignment | None
) -> RuleFinding:
    """Return a finding against the asker's own words as one that a model may overrule.

    A number within the passage's bound does not contradict the passage: 100 is "over 80".
    """
    missed = finding.outcome in {FindingOutcome.ABSENT, FindingOutcome.CONTRADICTED}
    if not missed or not _is_asked(said, question):
        return finding
    source = alignment.source.numbers if alignment and isinstance(said, Number) else ()
    if isinstance(said, Number) and any(is_within_bound(known, said) for known in source):
        return replace(finding, outcome=FindingOutcome.ASKED, instead="")
    return replace(finding, outcome=FindingOutcome.DISPUTED if finding.instead else FindingOutcome.ASKED)


def _is_asked(said: _Said, question: PassageFacts) -> bool:
    if isinstance(said, Number):
        same = (number for number in question.numbers if is_same_number(number, said))
        return any(is_same_unit(number.units, said.units) or not (number.units and said.units) for number in same)
    return has_date(question, said) if isinstance(said, Date) else has_name(question, said)


def _check_wording(
    facts: PassageFacts, alignment: Alignment, allowed: frozenset[str], *, refuted: bool
) -> Iterator[RuleFinding]:
    for doubt in find_doubts(alignment, facts, allowed):
        outcome = _of_value(doubt.instead) if doubt.sure and not refuted else FindingOutcome.CHANGED
        marks = {"binding": doubt.binding, "miscopied": doubt.miscopied, "grave": doubt.grave}
        yield RuleFinding(FindingKind.WORDING, doubt.said, outcome, doubt.instead, **marks)


def _check_misreadings(alignment: Alignment, question: PassageFacts | None) -> Iterator[RuleFinding]:
    values = [value for sentence in question.sentences for value in sentence.values] if question else ()
    for doubt in find_misreadings(alignment, values):
        yield RuleFinding(FindingKind.WORDING, doubt.said, FindingOutcome.CHANGED, doubt.instead, grave=True)


def _build_contradiction(kind: FindingKind, said: str, instead: str) -> RuleFinding:
    return RuleFinding(kind, said, FindingOutcome.CONTRADICTED, instead)


def _build_finding(kind: FindingKind, said: str, instead: str, *, found: bool) -> RuleFinding:
    return RuleFinding(kind, said, FindingOutcome.FOUND if found and not instead else _of_value(instead), instead)
