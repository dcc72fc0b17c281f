"""Fact-checking: one statement that somebody brings, held against what is found for it.

Shaped as a system is: the verdict is told, and the sentences that it rests on are said through the gate, so that a
check leaves the record that an answer leaves. `by_rules` needs no model; `by_model` asks one, and lets the rules of the
local check overrule it where they know better.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace

from pipeline.errors import NotAClaim
from pipeline.findings import sentences_of
from pipeline.kit import Kit
from pipeline.parsing.verdict import Verification
from pipeline.stages.verifying import NOTHING, ids_of, verification_of
from pipeline.support.likeness import closest
from pipeline.supporting import LONGEST
from pipeline.types import CitedSentence, ClaimChecked, Conversation, Status, Support
from storage.language.scripts import is_unspaced
from storage.language.sentences import sentence_spans
from storage.language.words import content_terms, content_words, words
from storage.types import CheckedClaim, Claim, Evidence, Hit, Reason, SearchQuery, Verdict

CONSIDERED = 5
"""How many of the passages found a claim is held against."""
SHOWN = 3
"""How many sentences are shown at most for a verdict."""
_TELLING = 2
"""How many words a statement has at least that tell something: what it is about, and what it says of that."""
_QUESTION_MARKS = "?？؟"
_QUOTED = re.compile("“([^“”]+)”")


@dataclass(frozen=True, slots=True)
class Judged:
    """A verdict, why, and the sentences that show it."""

    verdict: Verdict
    reasoning: str
    evidence: tuple[Evidence, ...] = ()
    """Those that the verdict stands on."""
    nearest: tuple[Evidence, ...] = ()
    """Those that come nearest, where it stands on none."""
    because: tuple[Reason, ...] = ()


@dataclass(frozen=True, slots=True)
class Held:
    """What the local check says of a claim by some passages, and their sentences that come nearest to it."""

    support: Support
    nearest: tuple[Evidence, ...]
    coverage: float = 1.0
    """The share of the claim's words in the first of them and in its page's title."""


Judge = Callable[[Conversation, Sequence[Hit], Kit], Awaitable[Judged]]


async def by_rules(talk: Conversation, kit: Kit) -> Status:
    """Check the conversation's last turn by the local check alone. Raises `NotAClaim` and `SearchUnavailable`."""
    return await _check(talk, kit, judged_by_rules)


async def by_model(talk: Conversation, kit: Kit) -> Status:
    """Check the conversation's last turn by the model's verification. Raises any `PipelineError`."""
    return await _check(talk, kit, judged_by_model)


def refuse_unclaimed(text: str) -> None:
    """Return if a text is one statement that can be checked. Raises `NotAClaim`, which says what it is instead."""
    hint = "State one thing in one sentence."
    if not words(text):
        raise NotAClaim("There are no words in the claim.", hint=hint)
    if len(text) > LONGEST:
        raise NotAClaim(f"The claim has {len(text):,} characters; at most {LONGEST:,} are read.", hint=hint)
    if text.rstrip("\"'”’» )")[-1] in _QUESTION_MARKS:
        raise NotAClaim("That is a question, not a claim.", hint="State what you take for true, or use `footnote ask`.")
    if (count := len(sentence_spans(text))) > 1:
        raise NotAClaim(f"That is {count} sentences; one claim at a time is checked.", hint=hint)
    if not _states(text):
        raise NotAClaim("That says nothing of anything yet.", hint="State what you take for true, in a whole sentence.")


def _states(text: str) -> bool:
    """Return whether a text has two content words, four characters without spaces, or a name and another word."""
    found = words(text)
    telling = [word for word in content_words(text) if not is_unspaced(word[0])]
    unspaced = sum(len(word) for word in found if is_unspaced(word[0]))
    named = any(word[0].isupper() for word in telling)
    return len(telling) + unspaced // 2 >= _TELLING or (named and len(found) > 1)


def judged(alone: Sequence[Held], together: Held) -> Judged:
    """Decide by what single passages say, best first, and by what they say together. Pure.

    Of several passages one may seem to support a claim by chance: only what they say together, too, is supported, and
    only where no passage that says more of the claim has something else in the place of a part of it.
    """
    holding = [place for place, held in enumerate(alone) if held.support.holds and together.support.holds]
    supporting = [alone[place] for place in holding if not _outdone(alone, place)]
    against = [held for held in alone if held.support.contradicted]
    if supporting:
        return _despite(_found(Verdict.SUPPORTS, supporting), against)
    if against:
        return _found(Verdict.REFUTES, against)
    scattered = "no single passage says all of it; together, " if together.support.holds else ""
    because = (Reason("scattered"),) if scattered else together.support.because
    return Judged(Verdict.NOT_ENOUGH_INFO, scattered + _why(together), nearest=together.nearest, because=because)


def _found(verdict: Verdict, held: Sequence[Held]) -> Judged:
    """Return a verdict with the first passage's reasons, and the nearest sentence of each of several."""
    shown = tuple(one.nearest[0] for one in held)[:SHOWN] if len(held) > 1 else held[0].nearest
    return Judged(verdict, _why(held[0]), shown, because=held[0].support.because)


def _outdone(alone: Sequence[Held], place: int) -> bool:
    """Return whether a passage found before has as much of the claim but lacks a detail, or any contradicts more."""
    own = alone[place].coverage
    before = any(
        held.coverage >= own and not held.support.holds and not held.support.appealable for held in alone[:place]
    )
    return before or any(held.coverage > own and held.support.contradicted for held in alone)


def _despite(found: Judged, against: Sequence[Held]) -> Judged:
    """Return a verdict that names the first passage which says otherwise, if any does, and shows its sentence last."""
    if not against:
        return found
    other = _differing(against[0])
    reasoning = f"{found.reasoning}; yet a passage of “{other.document.title}” differs: {_why(against[0])}"
    shown = [one for one in found.evidence if one != other][: SHOWN - 1]
    because = (*found.because, Reason("differs", (other.document.title,)), *against[0].support.because)
    return replace(found, reasoning=reasoning, evidence=(*shown, other), because=because)


def _differing(held: Held) -> Evidence:
    """Return the sentence, of those nearest, that has what the reasons quote of the passage last; else the nearest."""
    quoted = [quote for reason in held.support.reasons for quote in _QUOTED.findall(reason)[-1:]]
    return next((one for one in held.nearest if any(quote in one.text for quote in quoted)), held.nearest[0])


def overruled(found: Verification, support: Support) -> Verification:
    """Return what a model says, unless it takes for supported what the rules know to be missing or contradicted."""
    if found.verdict is not Verdict.SUPPORTS or support.holds or support.appealable:
        return found
    verdict = Verdict.REFUTES if support.contradicted else Verdict.NOT_ENOUGH_INFO
    reasons = "; ".join(support.reasons)
    return replace(found, verdict=verdict, reasoning=f"The model takes it for supported; but {reasons}.")


async def _check(talk: Conversation, kit: Kit, judge: Judge) -> Status:
    refuse_unclaimed(talk.question.text)
    return await told(talk.question.text, await verdict_on(talk, kit, judge), kit)


async def verdict_on(talk: Conversation, kit: Kit, judge: Judge) -> Judged:
    """Hold the conversation's last turn, one statement, against what is found for it. Raises any `PipelineError`."""
    hits = await kit.search(SearchQuery(talk.question.text), kit.limits.passages)
    readable = [hit for hit in hits if sentences_of([hit])][:CONSIDERED]
    return await judge(talk, readable, kit) if readable else _NOTHING


_NOTHING = Judged(Verdict.NOT_ENOUGH_INFO, NOTHING, because=(Reason("nothing"),))


async def told(claim: str, verdict: Judged, kit: Kit) -> Status:
    """Tell a verdict, and say the sentences that it rests on through the gate."""
    named, others = ids_of(verdict.evidence), ids_of(verdict.nearest)
    stated = Claim(claim, origin="user")
    kit.tell(ClaimChecked(CheckedClaim(stated, verdict.verdict, named, verdict.reasoning, others, verdict.because)))
    shown = (*verdict.evidence, *verdict.nearest)
    said = [await kit.say(CitedSentence(one.text, (one,))) for one in shown]
    return Status.ANSWERED if any(said) else Status.ABSTAINED


async def judged_by_rules(talk: Conversation, hits: Sequence[Hit], kit: Kit) -> Judged:
    """Judge by the local check alone."""
    claim = talk.question.text
    alone = [await _held(claim, [hit], kit) for hit in hits]
    return judged(alone, await _held(claim, hits, kit))


async def judged_by_model(talk: Conversation, hits: Sequence[Hit], kit: Kit) -> Judged:
    """Judge by the model's verification, unless the rules know better. Raises any `PipelineError`."""
    claim, sentences = talk.question.text, sentences_of(hits)
    found = await verification_of(claim, sentences, talk, kit.ask, student=kit.limits.student)
    named = tuple(sentences[number - 1] for number in found.sentences)
    because: tuple[Reason, ...] = ()
    if found.verdict is Verdict.SUPPORTS:
        support = await kit.supports(claim, named)
        ruled = overruled(found, support)
        because = () if ruled is found else (Reason("overruled"), *support.because)
        found = ruled
    shown = named[:SHOWN] or _nearest(claim, sentences)
    settled = bool(named) and found.verdict is not Verdict.NOT_ENOUGH_INFO
    evidence, nearest = (shown, ()) if settled else ((), shown)
    return Judged(found.verdict, found.reasoning, evidence, nearest, because)


async def _held(claim: str, hits: Sequence[Hit], kit: Kit) -> Held:
    sentences = sentences_of(hits)
    nearest = _nearest(claim, sentences)
    return Held(await kit.supports(claim, sentences), nearest, _coverage(claim, nearest))


def _coverage(claim: str, nearest: Sequence[Evidence]) -> float:
    wanted = set(content_terms(claim))
    said = {term for one in nearest[:1] for term in content_terms(f"{one.document.title} {one.text}")}
    return len(wanted & said) / len(wanted) if wanted else 0.0


def _nearest(claim: str, sentences: Sequence[Evidence]) -> tuple[Evidence, ...]:
    """Return the few sentences that hold most of a claim's words."""
    places = {one.text: one for one in reversed(sentences)}
    return tuple(places[text] for text in closest(claim, [[one.text for one in sentences]]))


def _why(held: Held) -> str:
    return "; ".join(held.support.reasons)
