"""Find signs that a paraphrase misreads its source.

None of these decides against a sentence. But if one is found, the passage is quoted even if a model accepts the
sentence, as the model may have overlooked it.
"""

from collections.abc import Iterator, Sequence

from pipeline.support.analysis.date_parser import Date
from pipeline.support.analysis.parsed_sentence import ParsedSentence, find_clauses, strip_possessive
from pipeline.support.analysis.proper_names import find_names, is_demonym
from pipeline.support.analysis.quantity_parser import Bound, Number, is_same_dimension
from pipeline.support.comparison.alignment import Alignment
from pipeline.support.comparison.doubts import Doubt
from pipeline.support.comparison.polarity import find_negation_scopes
from pipeline.support.passage_facts import is_same_value

_HALF_SAID = 0.5
_CLAUSE_JOINS = frozenset({",", ";", ":", "(", ")", "and", "or", "but", "while", "whereas", "—", "–"})
_RELATIVES = frozenset({"which", "who", "whom", "whose", "where"})
_ARTICLES = frozenset({"a", "an"})
_BEING = frozenset({"is", "are", "was", "were", "be", "been", "being", "gets", "get"})
_CONTRASTS = frozenset({"while", "whereas", "unlike", "only"})
_DENIALS = frozenset({
    "not", "no", "never", "none", "nobody", "nothing", "neither", "nor", "cannot", "unlike", "hardly",
})  # fmt: skip
_SINGLE = frozenset({"the", "its", "his", "her", "their", "our"})
_NEAREST = 3  # words that a denial reaches first
_BEFORE_BY = 5  # tokens before "by" in which a passive has its "was"
_AGENT = 5  # tokens behind "by" in which the agent is named
Value = Number | Date


def find_misreadings(alignment: Alignment, asked: Sequence[Value] = ()) -> Iterator[Doubt]:
    """Yield what a sentence may have misread; `asked` are values of the question, which it may repeat."""
    ours, theirs = alignment.sentence, alignment.source
    if theirs.is_row:
        return
    yield from _find_dropped_denial(ours, theirs)
    yield from _find_more_than_one(ours, theirs)
    if alignment.coverage >= _HALF_SAID:
        yield from _find_other_values(ours, theirs, asked)
    yield from _find_values_of_other_clauses(ours, theirs)
    yield from _find_other_subject(ours, theirs)
    yield from _find_other_agents(ours, theirs)


def _find_dropped_denial(ours: ParsedSentence, theirs: ParsedSentence) -> Iterator[Doubt]:
    """Yield the negations of the source if the sentence has no negation and no bound."""
    clauses = find_clauses(ours)
    bounded = any(number.bound in {Bound.OVER, Bound.UNDER} for number in ours.numbers)
    contrasted = not _CONTRASTS.isdisjoint(ours.text.low)
    if find_negation_scopes(ours).reached or clauses.hedged or clauses.limited or bounded or contrasted:
        return
    for at, reached in find_negation_scopes(theirs).reached.items():
        denied = (theirs.stems[place] for place in reached[:_NEAREST])
        if _is_plain_denial(theirs, at) and not ours.content.isdisjoint(denied):
            yield Doubt("", theirs.text.said(at, reached[0] + 1))


def _find_more_than_one(ours: ParsedSentence, theirs: ParsedSentence) -> Iterator[Doubt]:
    """Yield "one of the copies" if the source has "the only copy"."""
    for at in range(len(ours.text) - 1):
        if ours.text.low[at : at + 2] == ("one", "of"):
            counted = {stem for stem in ours.stems[at + 2 : at + 2 + _NEAREST + 1] if stem in ours.content}
            for place, low in enumerate(theirs.text.low):
                if low == "only" and theirs.text.at(place - 1) in _SINGLE:
                    end = place + 1 + _NEAREST
                    if not counted.isdisjoint(theirs.stems[place + 1 : end]):
                        yield Doubt(ours.text.said(at, at + 2), theirs.text.said(place - 1, place + 1))


def _is_plain_denial(sentence: ParsedSentence, place: int) -> bool:
    low = sentence.text.low[place]
    opens = place == 0 and not sentence.text.at(1).isalpha()  # a leading "No,"
    return (low in _DENIALS or low.endswith("n't")) and not opens and sentence.text.at(place + 1) != "longer"


def _find_other_values(ours: ParsedSentence, theirs: ParsedSentence, asked: Sequence[Value]) -> Iterator[Doubt]:
    """Yield a value that the source lacks, if it has another of that kind that the sentence does not have."""
    given: tuple[Value, ...] = (
        *theirs.numbers,
        *(date for date in theirs.dates if theirs.text.at(date.first - 1) != "("),
    )
    for value in ours.values:
        if not any(is_same_value(known, value) or is_same_value(value, known) for known in (*given, *asked)):
            for other in given:
                if _is_kin(other, theirs, value, ours) and not any(is_same_value(other, own) for own in ours.values):
                    yield Doubt(value.said, other.said)
                    break


def _is_kin(given: Value, theirs: ParsedSentence, said: Value, ours: ParsedSentence) -> bool:
    """Return whether two values may replace each other: dates, one dimension, or counts of the same."""
    counted = isinstance(given, Number) and not given.units
    same = not counted or theirs.stems[given.last : given.last + 1] == ours.stems[said.last : said.last + 1]
    return same and _is_same_kind(given, said)


def _find_values_of_other_clauses(ours: ParsedSentence, theirs: ParsedSentence) -> Iterator[Doubt]:
    """Yield a value of one clause of the source, said with words that only a rival value's clause has."""
    clauses = _split_clauses(theirs)
    for value in ours.values:
        own = [_find_clause(clauses, given) for given in theirs.values if is_same_value(given, value)]
        if len(own) != 1:
            continue
        words, numerals = theirs.stems_in(*own[0]), {theirs.stems[at] for at in theirs.valued}
        rivals = (given for given in theirs.values if not any(is_same_value(given, other) for other in ours.values))
        for rival in rivals:
            others = theirs.stems_in(*_find_clause(clauses, rival))
            alone = words - others - numerals
            if _is_same_kind(rival, value) and (others - words) & ours.content and not alone & ours.content:
                yield Doubt(value.said, rival.said)
                break


def _is_same_kind(given: Value, said: Value) -> bool:
    if isinstance(given, Number) and isinstance(said, Number):
        same = is_same_dimension(given.units, said.units) if given.units and said.units else given.units == said.units
        return same and not (given.ordinal or said.ordinal)
    return isinstance(given, Date) and isinstance(said, Date)


def _split_clauses(sentence: ParsedSentence) -> list[tuple[int, int]]:
    """Return start and end of each clause; relative clauses and appositions belong to the clause before."""
    low = sentence.text.low
    joins = (at for at, word in enumerate(low) if word in _CLAUSE_JOINS and at not in sentence.valued)
    return sentence.split_at(
        at
        for at in joins
        if sentence.text.at(at + 1) not in _RELATIVES
        and not (low[at] == "," and at - 1 in sentence.capitals and sentence.text.at(at + 1) in _ARTICLES)
    )


def _find_clause(clauses: Sequence[tuple[int, int]], value: Value) -> tuple[int, int]:
    return next((clause for clause in clauses if clause[0] <= value.first < clause[1]), (0, 0))


def _find_other_subject(ours: ParsedSentence, theirs: ParsedSentence) -> Iterator[Doubt]:
    """Yield the name that begins a sentence if the source says the rest in a clause about another name."""
    names = [name for name in find_names(ours) if name.first <= 1]
    if not names:
        return
    subject, known = names[0], {strip_possessive(low) for low in ours.text.low}
    places = [at for at in theirs.capitals if strip_possessive(theirs.text.low[at]) in subject.parts]
    clauses = _split_clauses(theirs)
    own = [clause_span for clause_span in clauses if any(clause_span[0] <= at < clause_span[1] for at in places)]
    rest = ours.content.difference(ours.stems[subject.first : subject.last])
    within = frozenset[str]().union(*(theirs.stems_in(*clause_span) for clause_span in own)) & rest
    for clause in clauses if own else ():
        others = [
            name
            for name in find_names(theirs)
            if clause[0] <= name.first < clause[1]
            and (
                name.first < clause[0] + _NEAREST or "by" in theirs.text.low[name.first - 2 : name.first]
            )  # who does it
            and name.sure
            and known.isdisjoint(name.parts)
            and not all(map(is_demonym, name.parts))
        ]
        if clause not in own and others and len((theirs.stems_in(*clause) & rest) - within) > len(within):
            yield Doubt(subject.said, others[0].said)


def _find_other_agents(ours: ParsedSentence, theirs: ParsedSentence) -> Iterator[Doubt]:
    """Yield a verb that is passive in only one of both, unless the same agent precedes it in the other."""
    our_agents, their_agents = _find_agents(ours), _find_agents(theirs)
    if len(our_agents) == len(their_agents):
        return
    passive, active = (theirs, ours) if len(their_agents) > len(our_agents) else (ours, theirs)
    for by, verb, agent in _find_agents(passive):
        at = active.places.get(passive.stems[verb], len(active.text))
        led = agent.intersection(active.stems[:at])
        if at < len(active.text) and (not led or _find_first(passive, by, agent) in active.stems[at + 1 :]):
            shown = passive.text.said(verb, by + 2), active.text.words[at]
            yield Doubt(*(shown if passive is ours else shown[::-1]))


def _find_first(sentence: ParsedSentence, start: int, stems: frozenset[str]) -> str:
    return next(stem for stem in sentence.stems[start:] if stem in stems)


def _find_agents(sentence: ParsedSentence) -> list[tuple[int, int, frozenset[str]]]:
    """Return each "by" of a passive and its verb, by place, and the stems of its agent."""
    low, agents = sentence.text.low, []
    for by in (at for at, word in enumerate(low) if word == "by"):
        near = range(by - 1, max(-1, by - _BEFORE_BY), -1)
        verb = next((at for at in near if sentence.stems[at] in sentence.content), None)
        agent = sentence.stems_in(by + 1, by + 1 + _AGENT)
        if verb is not None and agent and not _BEING.isdisjoint(low[max(0, by - _BEFORE_BY) : by]):
            agents.append((by, verb, agent))
    return agents
