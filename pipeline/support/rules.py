"""Check the numbers, dates, names and negations of a sentence by rule: found, absent or contradicted."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pipeline.support.analysis.date_parser import Date
from pipeline.support.analysis.parsed_sentence import ParsedSentence, choose_language, detect_language, parse_sentence
from pipeline.support.analysis.proper_names import ProperName, find_names, is_ordinary_word
from pipeline.support.analysis.quantity_parser import Number, is_equal_quantity, is_same_dimension, is_same_unit
from pipeline.support.comparison.alignment import Alignment, align, is_same_subject
from pipeline.support.comparison.contradictions import (
    LEAST_COVERAGE,
    compare_number,
    find_other_name,
    find_other_rate,
    find_other_unit,
    find_other_value,
    find_referring_word,
    find_row_mix,
)
from pipeline.support.comparison.doubts import find_doubts
from pipeline.support.comparison.polarity import count_negations, find_denials, find_permission_conflict
from pipeline.support.comparison.swaps import find_dropped_count, find_role_swap
from pipeline.support.passage_facts import (
    PRONOUNS,
    PassageFacts,
    can_be_reckoned,
    collect_facts,
    find_speaker,
    has_date,
    has_name,
    has_number,
    is_own_name,
    is_same_number,
    is_within_bound,
)
from storage.types import VerdictReason

_ATTRIBUTING = frozenset({"by", "is", "was", "are", "were", "via", "through", "using", ","})
"""Words before a name that its subject has once."""
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
        """A sentence for people: what the checked sentence says, and what the passages say."""
        said, instead = f"It says “{self.said}”", f"“{self.instead}”"
        absent = f"{said}, which no passage mentions."
        by_outcome = {
            FindingOutcome.FOUND: f"The passages say “{self.said}”.",
            FindingOutcome.UNNAMED: f"It names “{self.said}”, which no passage does, unless {instead} means it.",
            FindingOutcome.ASKED: f"{said}, as the question does, but no passage mentions that.",
            FindingOutcome.ABSENT: absent,
        }
        if self.outcome in by_outcome:
            return by_outcome[self.outcome]
        if not self.said:
            return f"It leaves out {instead}, which the passage says."
        if self.elsewhere:
            return f"{said}, but the passages say {instead}, perhaps of something else."
        if self.instead:
            return f"{said}, but the passage says {instead}."
        changed = f"{said}, perhaps in another sense than the passages."
        return changed if self.outcome is FindingOutcome.CHANGED else absent

    @property
    def because(self) -> VerdictReason:
        if self.outcome in {FindingOutcome.DISPUTED, FindingOutcome.CHANGED}:
            return replace(self, outcome=_of_value(self.instead)).because
        outcome = FindingOutcome.ABSENT if self.outcome is FindingOutcome.ASKED else self.outcome
        key = "elsewhere" if self.elsewhere else outcome.value
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
    numbers = [number for number in read.numbers if not number.named]
    found: tuple[tuple[_Said, RuleFinding], ...] = (
        *((said, finding) for said in numbers for finding in _check_number(said, read, facts, alignment, counted)),
        *((date, finding) for date in read.dates for finding in _check_date(date, facts, alignment)),
        *((name, finding) for name in find_names(read) for finding in _check_name(name, read, facts, alignment, own)),
    )
    other_unit = any(one.kind is FindingKind.UNIT and one.outcome is not FindingOutcome.FOUND for _, one in found)
    others = (
        *(_check_denials(alignment) if alignment and alignment.coverage >= LEAST_COVERAGE else ()),
        *(_check_permission(alignment) if alignment else ()),
        *(_check_exchanged(facts, alignment) if alignment else ()),
        *(_check_wording(facts, alignment, question, refuted=other_unit) if alignment else ()),
    )
    excused = ((_excuse_asked(said, each, question, alignment) if question else each, said) for said, each in found)
    return (
        *(_mark_elsewhere(finding, facts, alignment, said) for finding, said in excused),
        *(_mark_elsewhere(finding, facts, alignment) for finding in others),
    )


def _mark_elsewhere(
    finding: RuleFinding, facts: PassageFacts, alignment: Alignment | None, value: _Said | None = None
) -> RuleFinding:
    """Mark a contradiction as `elsewhere` if the passage may state it of something else."""
    if finding.outcome is not FindingOutcome.CONTRADICTED:
        return finding
    about = alignment is not None and is_same_subject(alignment, facts, finding.said, finding.instead)
    if alignment and isinstance(value, ProperName):  # any other name makes it a sentence about another subject
        about = about and alignment.sentence.text.at(value.first - 1) in _ATTRIBUTING
    return finding if about else replace(finding, elsewhere=True)


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
    instead = find_other_value(alignment, number, elsewhere=is_found) if alignment else ""
    replaced = bool(instead) or (alignment is not None and alignment.is_near_copy)
    other = _find_other_unit(number, facts, alignment) if is_found and number.units else ""
    other = other or (find_other_rate(alignment, number) if alignment and is_found else "")
    if other and not instead:
        yield RuleFinding(FindingKind.UNIT, number.said, FindingOutcome.CONTRADICTED, other)
    elif facts.passages and not is_found and can_be_reckoned(number, sentence, facts, asked, changed=replaced):
        yield RuleFinding(FindingKind.NUMBER, number.said, FindingOutcome.DISPUTED, instead)
    elif claim or instead:
        yield _build_finding(FindingKind.NUMBER, number.said, instead, found=is_found)


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
    instead = find_other_value(alignment, date, elsewhere=is_found) if alignment else ""
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
    elif meant and meant in PRONOUNS:
        yield RuleFinding(FindingKind.NAME, name.said, FindingOutcome.DISPUTED, meant)
    elif name.sure and not is_found and not instead and (speaker := find_speaker(facts, name, sentence)):
        yield RuleFinding(FindingKind.NAME, name.said, FindingOutcome.DISPUTED, speaker)
    elif not (is_found or instead) and len(name.parts) == 1 and is_ordinary_word(name.parts[0]):
        yield RuleFinding(FindingKind.NAME, name.said, FindingOutcome.DISPUTED)  # "the Moon": "lunar" may mean it
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


def _check_permission(alignment: Alignment) -> Iterator[RuleFinding]:
    conflict = find_permission_conflict(alignment)
    if conflict:
        outcome = FindingOutcome.CONTRADICTED if conflict[2] else FindingOutcome.DISPUTED
        yield RuleFinding(FindingKind.NEGATION, conflict[0], outcome, conflict[1], grave=True)


def _check_exchanged(facts: PassageFacts, alignment: Alignment) -> Iterator[RuleFinding]:
    """Yield cells and names that the sentence joins differently from the passages, and periods without their count."""
    exchanged = (
        (FindingKind.NAME, find_row_mix(alignment, facts)),
        (FindingKind.NAME, find_role_swap(alignment)),
        (FindingKind.NUMBER, find_dropped_count(alignment)),
    )
    yield from (_build_finding(kind, *pair, found=True) for kind, pair in exchanged if pair)


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
    facts: PassageFacts, alignment: Alignment, question: PassageFacts | None, *, refuted: bool
) -> Iterator[RuleFinding]:
    for doubt in find_doubts(alignment, facts, question):
        outcome = _of_value(doubt.instead) if doubt.sure and not refuted else FindingOutcome.CHANGED
        marks = {"binding": doubt.binding, "miscopied": doubt.miscopied, "grave": doubt.grave}
        yield RuleFinding(FindingKind.WORDING, doubt.said, outcome, doubt.instead, **marks)


def _build_finding(kind: FindingKind, said: str, instead: str, *, found: bool) -> RuleFinding:
    return RuleFinding(kind, said, FindingOutcome.FOUND if found and not instead else _of_value(instead), instead)
