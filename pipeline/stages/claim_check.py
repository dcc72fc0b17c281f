"""Check a statement, or every statement of a text, against passages found for it.

A check is a system: it reports the verdict as an event and says the sentences that it rests on through the gate, so
that it is recorded like an answer. The rules need no model; the local check can overrule a model's verification.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pipeline.errors import NotAClaim
from pipeline.kit import Ask, Kit, System
from pipeline.replies.verdict_replies import verification_format
from pipeline.stages.concurrency import gather_all
from pipeline.stages.findings import collect_sentences, passage_ids
from pipeline.stages.question_analysis import detect_small_talk
from pipeline.support.comparison.contradictions import find_lone_conflict
from pipeline.support.scorer import select_closest
from pipeline.support.support_check import MAX_CHARACTERS, drop_false_absences, is_statement
from pipeline.support.verdict_look import Verification, hold_to_look
from pipeline.types import CitedSentence, ClaimChecked, Conversation, Status, Support
from storage.language.lazy_pattern import lazy_compile
from storage.language.sentences import sentence_spans
from storage.language.words import content_terms, words
from storage.types import CheckedClaim, Claim, Evidence, Hit, SearchQuery, Verdict, VerdictReason

MAX_PASSAGES = 5  # how many of the passages found a claim is compared with
MAX_EVIDENCE = 3  # how many sentences are shown at most for a verdict
LEAST_COVERAGE = 0.4  # the share of a claim's words needed in a sentence and its title to support it without a model
LEAST_COVERAGE_DOUBTFUL = 0.6  # the same if the local check doubts the claim
LEAST_RELATED = 0.5  # the same share, of the nearest sentence to be shown if nothing decides
NO_EVIDENCE = "No passage was found to check it against."
_QUESTION_MARKS = "?？؟"
_QUOTED = lazy_compile("“([^“”]+)”")


@dataclass(frozen=True, slots=True)
class Judgement:
    verdict: Verdict
    reasoning: str
    evidence: tuple[Evidence, ...] = ()  # that the verdict rests on
    nearest: tuple[Evidence, ...] = ()  # the nearest, if it rests on none
    because: tuple[VerdictReason, ...] = ()


@dataclass(frozen=True, slots=True)
class PassageSupport:
    """The local check's result for a claim and some passages, and the passages' sentences nearest to the claim."""

    support: Support
    nearest: tuple[Evidence, ...]
    coverage: float = 1.0  # the share of the claim's words in the first of them and in its page's title
    sentences: tuple[Evidence, ...] = ()  # all of the passages

    @property
    def supports(self) -> bool:
        """Whether the check holds, the claim is not `changed`, and the nearest sentence has enough of its words."""
        least = LEAST_COVERAGE_DOUBTFUL if self.support.doubtful else LEAST_COVERAGE
        return self.support.holds and not self.changed and self.coverage >= least

    @property
    def changed(self) -> bool:
        """Whether the claim alters an obligation or limit, or copies the passages except for a replaced part."""
        return self.support.altered or self.support.replaced

    @property
    def explanation(self) -> str:
        return " ".join(self.support.reasons)


ClaimJudge = Callable[[Conversation, Sequence[Hit], Kit], Awaitable[Judgement]]


async def _check_claims(
    split: Callable[[str], Sequence[str]], judge: ClaimJudge, talk: Conversation, kit: Kit
) -> Status:
    # A limit of 0 means only claims by a model.
    claims = split(talk.question.text)[: max(1, kit.limits.claims)]
    talks = (Conversation((*talk.earlier, replace(talk.question, text=claim))) for claim in claims)
    judgements = await gather_all(judge_conversation(talk, kit, judge) for talk in talks)
    statuses = [await report_judgement(claim, found, kit) for claim, found in zip(claims, judgements, strict=True)]
    return Status.ANSWERED if Status.ANSWERED in statuses else Status.ABSTAINED


def validate_claim(text: str) -> None:
    """Raise `NotAClaim` with the reason unless the text is a single statement."""
    hint = "State one thing in one sentence."
    if not words(text):
        raise NotAClaim("There are no words in the claim.", hint=hint)
    if len(text) > MAX_CHARACTERS:
        raise NotAClaim(f"The claim has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read.", hint=hint)
    if text.rstrip("\"'”’» )")[-1] in _QUESTION_MARKS:
        raise NotAClaim(
            "That is a question, not a claim.", hint="State what you believe to be true, or use `footnote ask`."
        )
    if (count := len(sentence_spans(text))) > 1:
        raise NotAClaim(f"That is {count} sentences; one claim at a time is checked.", hint=hint)
    if not is_statement(text):
        raise NotAClaim(
            "That does not state anything yet.", hint="State what you believe to be true, in a whole sentence."
        )


def _single_claim(text: str) -> tuple[str, ...]:
    validate_claim(text)
    return (text,)


def extract_statements(text: str) -> tuple[str, ...]:
    """Return the sentences of a text that state something, each once. Raises `NotAClaim` if there is none."""
    sentences = [text[start:end].strip() for start, end in sentence_spans(text)]
    stated = [sentence for sentence in sentences if not detect_small_talk(sentence) and _is_checkable(sentence)]
    if not stated:
        validate_claim(sentences[0] if sentences else text)
    return tuple(dict.fromkeys(stated))


def _is_checkable(sentence: str) -> bool:
    try:
        validate_claim(sentence)
    except NotAClaim:
        return False
    return True


def decide_verdict(alone: Sequence[PassageSupport], together: PassageSupport) -> Judgement:
    """Return the verdict by each passage alone, best first, and by all passages together. Pure.

    One of several passages may seem to support a claim by chance. So all passages together must support it, too, and no
    passage that has more of the claim's words may contradict a part of it.
    """
    holding = [place for place, held in enumerate(alone) if held.supports and together.support.holds]
    supporting = [alone[place] for place in holding if not _is_outdone(alone, place)]
    against = [held for held in alone if held.support.contradicted]
    if supporting:
        return _add_objection(_build_judgement(Verdict.SUPPORTS, supporting), against)
    if against:
        return _build_judgement(Verdict.REFUTES, against)
    changed = next((held for held in alone if held.support.holds and held.changed), None)
    why, scattered = changed or together, (VerdictReason("scattered"),)
    together_only = not changed and together.support.holds
    reasoning = f"No single passage says all of it. {why.explanation}" if together_only else why.explanation
    near = why.coverage >= LEAST_RELATED
    reasons = [one for one in why.support.because if not together_only and (near or one.kind != "nearest")]
    because = drop_false_absences(reasons, (piece.text for piece in together.sentences)) or scattered
    return Judgement(Verdict.NOT_ENOUGH_INFO, reasoning, nearest=why.nearest if near else (), because=because)


def _build_judgement(verdict: Verdict, held: Sequence[PassageSupport]) -> Judgement:
    """Return a judgement with the reasons of the first passage, and the sentence of each passage that decides."""
    pieces = held[0].nearest if len(held) == 1 and held[0].supports else map(_find_differing, held)
    return Judgement(verdict, held[0].explanation, tuple(pieces)[:MAX_EVIDENCE], because=held[0].support.because)


def _is_outdone(alone: Sequence[PassageSupport], place: int) -> bool:
    """Return whether other passages speak against the passage at `place`, which supports the claim alone.

    That is so if an earlier one with at least as many of the claim's words lacks a detail, or if one with more of them
    contradicts or alters the claim.
    """
    own = alone[place].coverage
    lacking = (held for held in alone[:place] if not (held.support.holds or held.support.appealable))
    before = any(held.coverage >= own for held in lacking)
    return before or any(held.coverage > own and (held.support.contradicted or held.support.altered) for held in alone)


def _add_objection(found: Judgement, against: Sequence[PassageSupport]) -> Judgement:
    """Add the first contradicting passage, if there is one, with its sentence as the last evidence."""
    if not against:
        return found
    other = _find_differing(against[0])
    reasoning = f"{found.reasoning} Yet a passage of “{other.document.title}” differs: {against[0].explanation}"
    shown = [piece for piece in found.evidence if piece != other][: MAX_EVIDENCE - 1]
    because = (*found.because, VerdictReason("differs", (other.document.title,)), *against[0].support.because)
    return replace(found, reasoning=reasoning, evidence=(*shown, other), because=because)


def _find_differing(held: PassageSupport) -> Evidence:
    """Return the nearest sentence with the words that a reason quotes last; if there is none, the nearest one."""
    quoted = [quote for reason in held.support.reasons for quote in _QUOTED.findall(reason)[-1:]]
    pieces = (*held.nearest, *held.sentences)
    return next((piece for piece in pieces if any(quote in piece.text for quote in quoted)), pieces[0])


async def judge_conversation(talk: Conversation, kit: Kit, judge: ClaimJudge) -> Judgement:
    """Judge the conversation's last turn, one statement, by passages found for it. Raises any `PipelineError`."""
    hits = await kit.search(SearchQuery(talk.question.text), kit.limits.passages)
    readable = [hit for hit in hits if collect_sentences([hit])][:MAX_PASSAGES]
    if not readable:
        return Judgement(Verdict.NOT_ENOUGH_INFO, NO_EVIDENCE, because=(VerdictReason("nothing"),))
    return await judge(talk, readable, kit)


async def report_judgement(claim: str, verdict: Judgement, kit: Kit) -> Status:
    named, others = passage_ids(verdict.evidence), passage_ids(verdict.nearest)
    stated = Claim(claim, origin="user")
    kit.tell(ClaimChecked(CheckedClaim(stated, verdict.verdict, named, verdict.reasoning, others, verdict.because)))
    shown = (*verdict.evidence, *verdict.nearest)
    passed = [await kit.say(CitedSentence(piece.text, (piece,))) for piece in shown]
    return Status.ANSWERED if any(passed) else Status.ABSTAINED


async def judge_by_rules(talk: Conversation, hits: Sequence[Hit], kit: Kit) -> Judgement:
    claim = talk.question.text
    alone = [await _check_support(claim, [hit], kit) for hit in hits]
    together = await _check_support(claim, hits, kit)
    decided, conflict = decide_verdict(alone, together), find_lone_conflict(claim, together.sentences)
    if decided.verdict is not Verdict.NOT_ENOUGH_INFO or not conflict:
        return decided
    reasoning = "It says “{}”, but the passage says “{}”.".format(*conflict[1].facts)
    return Judgement(Verdict.REFUTES, reasoning, conflict[:1], because=conflict[1:])


async def request_verification(
    claim: str, sentences: Sequence[Evidence], talk: Conversation, ask: Ask, *, student: bool
) -> Verification:
    """Ask the model for its verdict on a claim by these sentences alone, numbered from 1 in their order."""
    form = verification_format(len(sentences), reasoned=not student)
    found = await ask("verify", form, stage="verify", talk=talk, sentences=tuple(sentences), claim=claim)
    return hold_to_look(claim, sentences, found, [turn.text for turn in talk.turns])


async def judge_by_model(talk: Conversation, hits: Sequence[Hit], kit: Kit) -> Judgement:
    """Judge by the model. If the model accepts a claim that the rules do not support, the rules decide."""
    claim, sentences = talk.question.text, collect_sentences(hits)
    verification = await request_verification(claim, sentences, talk, kit.ask, student=kit.limits.student)
    named = tuple(sentences[number - 1] for number in verification.sentences)
    if verification.verdict is Verdict.SUPPORTS:
        support = await kit.supports(claim, named)
        if not (support.holds or (support.appealable and verification.look)):
            return _overrule(await judge_by_rules(talk, hits, kit))
    shown = named[:MAX_EVIDENCE] or _nearest_sentences(claim, sentences)
    settled = bool(named) and verification.verdict is not Verdict.NOT_ENOUGH_INFO
    evidence, nearest = (shown, ()) if settled else ((), shown)
    return Judgement(verification.verdict, verification.reasoning, evidence, nearest)


def _overrule(ruled: Judgement) -> Judgement:
    """Return the rules' judgement. If they reject the claim, it remarks that the model had accepted the claim."""
    if ruled.verdict is Verdict.SUPPORTS:
        return ruled
    reasoning = f"The model accepts the claim, but the rules do not: {ruled.reasoning}"
    return replace(ruled, reasoning=reasoning, because=(VerdictReason("overruled"), *ruled.because))


async def _check_support(claim: str, hits: Sequence[Hit], kit: Kit) -> PassageSupport:
    sentences = collect_sentences(hits)
    nearest = _nearest_sentences(claim, sentences)
    terms = set(content_terms(claim))
    nearest_terms = {term for piece in nearest[:1] for term in content_terms(f"{piece.document.title} {piece.text}")}
    coverage = len(terms & nearest_terms) / len(terms) if terms else 0.0
    return PassageSupport(await kit.supports(claim, sentences), nearest, coverage, tuple(sentences))


def _nearest_sentences(claim: str, sentences: Sequence[Evidence]) -> tuple[Evidence, ...]:
    places = {sentence.text: sentence for sentence in reversed(sentences)}
    return tuple(places[text] for text in select_closest(claim, [[sentence.text for sentence in sentences]]))


check_claim_by_rules: System = partial(_check_claims, _single_claim, judge_by_rules)
"""Checks the conversation's last turn by the local check alone. Raises `NotAClaim` and `SearchUnavailable`."""
check_claim_by_model: System = partial(_check_claims, _single_claim, judge_by_model)
"""Checks the conversation's last turn by the model's verification. Raises any `PipelineError`."""
check_text_by_rules: System = partial(_check_claims, extract_statements, judge_by_rules)
"""Checks each statement of the last turn by the local check alone."""
check_text_by_model: System = partial(_check_claims, extract_statements, judge_by_model)
"""Checks each statement of the last turn by the model's verification, several at once."""
