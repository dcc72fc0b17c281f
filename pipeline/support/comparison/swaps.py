"""Find names and agents that a sentence exchanged, and periods whose count it dropped."""

from collections.abc import Iterator
from itertools import combinations, product

from pipeline.support.analysis.parsed_sentence import ParsedSentence, strip_possessive
from pipeline.support.analysis.proper_names import ProperName, find_names
from pipeline.support.comparison.alignment import Alignment

Span = tuple[int, int]
_LEAST_COVERAGE = 0.8
_MOST_NAMES = 10
_PERIOD_LEADS = frozenset({"every", "each", "per"})
_MOST_BETWEEN = 8  # tokens between two names, beyond which they are unrelated
_ARTICLES = frozenset({"a", "an", "the"})
_TURNING = frozenset({
    "by", "of", "from", "to", "in", "into", "on", "at", "for", "with", "than", "as", "under", "over", "against",
    "that", "which", "who", "whom", "'s",
})  # fmt: skip
BEING = frozenset({"is", "are", "was", "were", "be", "been", "being", "gets", "get"})
_AGENT = 5  # tokens before "by" in which a passive has its "was", and behind it in which the agent is named
_BOTH_WAYS = frozenset({
    "meet", "marri", "wed", "marriag", "and", "or", "nor", "with", "between", "versus", "vs", "equal", "differ",
    "resembl", "border", "neighbor", "neighbour", "cooper", "collabor", "share", "friend", "sibl", "cousin", "twin",
    "twinn", "tie", "drew", "draw", "together", "both", "either", ",", ";", "(", ")",
})  # fmt: skip


def find_dropped_count(alignment: Alignment) -> tuple[str, str] | None:
    """Return "every year" if the source has "every five years"."""
    ours, theirs = alignment.sentence, alignment.source
    for number in theirs.numbers:
        unit = theirs.stems[number.last - 1]
        if not number.units or number.values == (1.0,) or theirs.text.at(number.first - 1) not in _PERIOD_LEADS:
            continue
        for at in range(len(ours.text) - 1):
            if ours.text.low[at] in _PERIOD_LEADS and ours.stems[at + 1] == unit:
                return ours.text.said(at, at + 2), theirs.text.said(number.first - 1, number.last)
    return None


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
    dated = {at for date in sentence.dates for at in range(date.first - 1, date.last)}
    places = [at for at in range(start, end) if at not in dated]
    low = [sentence.text.low[at] for at in places]
    stems = frozenset(sentence.stems[at] for at in places if at not in sentence.capitals) & sentence.content
    if not stems or len(low) > _MOST_BETWEEN or not _BOTH_WAYS.isdisjoint({*stems, *low}):
        return None
    possessive = ("'s",) if sentence.text.at(start - 1).endswith("'s") else ()
    return stems, (*possessive, *(word for word in low if word in _TURNING))


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


def find_other_agents(ours: ParsedSentence, theirs: ParsedSentence) -> Iterator[tuple[str, str]]:
    """Yield a verb that is passive in only one of both, unless the same agent precedes it in the other."""
    our_agents, their_agents = _find_agents(ours), _find_agents(theirs)
    if len(our_agents) == len(their_agents):
        for (by, verb, agent), (there, _, other) in zip(our_agents, their_agents, strict=True):
            if agent.isdisjoint(other) and not other.isdisjoint(ours.content):
                yield ours.text.said(verb, by + 2), theirs.text.said(there, there + 2)
        return
    more = len(their_agents) > len(our_agents)
    passive, active, agents = (theirs, ours, their_agents) if more else (ours, theirs, our_agents)
    for by, verb, agent in agents:
        at = active.places.get(passive.stems[verb], len(active.text))
        led = agent.intersection(active.stems[:at])
        first = next(stem for stem in passive.stems[by:] if stem in agent)
        reduced = active.text.at(at + 1) == "by" and not agent.isdisjoint(active.stems[at + 2 :])  # "run by Vik"
        if at < len(active.text) and not reduced and (not led or first in active.stems[at + 1 :]):
            shown = passive.text.said(verb, by + 2), active.text.words[at]
            yield shown if passive is ours else shown[::-1]


def _find_agents(sentence: ParsedSentence) -> list[tuple[int, int, frozenset[str]]]:
    """Return each "by" of a passive and its verb, by place, and the stems of its agent."""
    low, agents = sentence.text.low, []
    for by in (at for at, word in enumerate(low) if word == "by"):
        verb = by - 1 if sentence.stems[by - 1] in sentence.content else None
        agent = sentence.stems_in(by + 1, by + 1 + _AGENT) if by + 1 not in sentence.valued else None
        if verb is not None and agent and not BEING.isdisjoint(low[max(0, by - _AGENT) : by]):
            agents.append((by, verb, agent))
    return agents
