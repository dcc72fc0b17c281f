"""Stages 3 to 5: claims from the model's memory, verified against passages, in several calls or while they stream."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline.errors import BudgetExceeded, ModelRefused, PipelineError, SearchUnavailable, UnreadableReply
from pipeline.kit import Kit, Limits
from pipeline.replies.reply_format import ReplyFormat
from pipeline.replies.stage_replies import ClaimSplitter, TimedClaim, claims_format
from pipeline.replies.verdict_replies import ClaimRuling, VerdictSplitter
from pipeline.stages.claim_check import NO_EVIDENCE, request_verification
from pipeline.stages.concurrency import capture_outcome, close_stream, gather_successes, select_successes
from pipeline.stages.findings import SourcedFinding, bind_finding, collect_sentences, passage_ids
from pipeline.stages.passage_retrieval import retrieve_evidence
from pipeline.stages.turn_context import TurnContext
from pipeline.support.verdict_look import Verification, hold_to_look
from pipeline.types import ClaimChecked, ClaimExplained
from storage.types import CheckedClaim, Claim, Evidence, SearchQuery, Verdict, VerdictReason


async def stream_claims(context: TurnContext, kit: Kit) -> AsyncIterator[TimedClaim]:
    """Yield the claims with which the model would answer, up to the limit; none if it declines."""
    left = kit.limits.claims
    requested = kit.limits.asked_claims
    if not left:
        return
    facts: dict[str, Any] = {"talk": context.talk, "reading": context.reading}
    if requested != Limits().asked_claims:  # the default is in its instructions
        left = facts["most"] = min(left, requested)
    try:
        async with close_stream(kit.stream("claims", ClaimSplitter(), stage="generate", **facts)) as claims:
            async for claim in claims:
                left -= 1
                yield claim
                if not left:
                    return  # a model that never ends is cut off
    except (UnreadableReply, ModelRefused):
        return


MAX_GENERATED = 4_000  # characters of a generated reply that are read
_PLAIN_REPLY: ReplyFormat[str] = ReplyFormat(None, from_json=str, from_text=lambda text: text.strip()[:MAX_GENERATED])


async def generate_reply(context: TurnContext, kit: Kit) -> str:
    """Return the model's own reply to the user; empty if it declines."""
    try:
        return await kit.ask("generate", _PLAIN_REPLY, stage="generate", talk=context.talk, reading=context.reading)
    except (UnreadableReply, ModelRefused):
        return ""


async def split_claims(context: TurnContext, reply: str, kit: Kit) -> tuple[TimedClaim, ...]:
    """Return the self-contained claims of a reply, up to the limit."""
    if not reply:
        return ()
    try:
        claims = await kit.ask("split", claims_format(), stage="split", talk=context.talk, reply_text=reply)
    except (UnreadableReply, ModelRefused):
        return ()
    return claims[: kit.limits.claims]


async def verify_claims(context: TurnContext, claims: Sequence[TimedClaim], kit: Kit) -> tuple[SourcedFinding, ...]:
    """Return the claims that passages support, with their sentences. Raises only if no claim could be verified."""
    verified = await gather_successes(_verify_claim(context, claim, kit) for claim in claims)
    return tuple(finding for findings in verified for finding in findings)


def seek_claim(claim: TimedClaim) -> SearchQuery:
    return SearchQuery(claim.text, claim.time, unchecked=True)


async def _verify_claim(context: TurnContext, claim: TimedClaim, kit: Kit) -> tuple[SourcedFinding, ...]:
    sentences = await retrieve_evidence(seek_claim(claim), kit)
    if not sentences:
        report_undecided(kit, claim.text, (), NO_EVIDENCE, "nothing")
        return ()
    try:
        checked = await request_verification(claim.text, sentences, context.talk, kit.ask, student=kit.limits.student)
    except PipelineError as error:
        report_undecided(kit, claim.text, sentences, f"It could not be verified: {error}")
        raise
    kit.tell(ClaimChecked(record_claim(claim.text, sentences, checked)))
    return await _bind_claim(claim.text, checked, sentences, kit, context.asked)


async def _bind_claim(
    claim: str, found: Verification, sentences: Sequence[Evidence], kit: Kit, asked: Sequence[str]
) -> tuple[SourcedFinding, ...]:
    """Return a claim as a finding if the model supports it; only if the local check agrees, if it copied nothing."""
    if found.verdict is not Verdict.SUPPORTS:
        return ()
    named = tuple(sentences[number - 1] for number in found.sentences)
    return await bind_finding(claim, named, kit.supports, checked=bool(found.look), asked=asked)


TOO_LATE = "The answer was whole before it was verified."


def record_claim(
    claim: str, sentences: Sequence[Evidence], found: Verification, *because: VerdictReason
) -> CheckedClaim:
    named, others = split_passage_ids(sentences, found)
    return CheckedClaim(Claim(claim, origin="model"), found.verdict, named, found.reasoning, others, because)


def report_undecided(kit: Kit, claim: str, sentences: Sequence[Evidence], why: str, kind: str = "unverified") -> None:
    """Report a claim of the model as undecided, because evidence or a model is missing."""
    undecided = Verification(Verdict.NOT_ENOUGH_INFO, reasoning=why)
    kit.tell(ClaimChecked(record_claim(claim, sentences, undecided, VerdictReason(kind))))


def split_passage_ids(sentences: Sequence[Evidence], found: Verification) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the ids of the passages on which a verdict rests, then those of the other passages."""
    settled = found.verdict is not Verdict.NOT_ENOUGH_INFO
    named = passage_ids(sentences[number - 1] for number in found.sentences) if settled else ()
    return named, tuple(id_ for id_ in passage_ids(sentences) if id_ not in named)


CLAIMS_PER_CALL = 4  # claims that share a call while others are written: usually all that the model is asked for


@dataclass(frozen=True, slots=True)
class _PendingClaim:
    claim: str
    sentences: tuple[Evidence, ...]
    settled: asyncio.Future[tuple[Verification, tuple[Evidence, ...]] | PipelineError]


class ClaimVerifier:
    """Verifies the claims of one turn as they arrive. Its tasks end with the task group."""

    def __init__(self, context: TurnContext, kit: Kit, tasks: asyncio.TaskGroup) -> None:
        self._context = context
        self._kit = kit
        self._tasks = tasks
        self.claims: list[TimedClaim] = []
        self._begun: list[asyncio.Task[tuple[SourcedFinding, ...] | PipelineError]] = []  # one for each claim
        self._written = asyncio.Event()
        self._waiting: list[_PendingClaim] = []
        self._calls: list[asyncio.Task[None]] = []
        self._coming = 0  # claims that may still be queued: those without evidence yet, and one for the stream

    async def verify_stream(self, claims: AsyncIterator[TimedClaim]) -> tuple[SourcedFinding, ...] | None:
        """Return the claims that passages support, in order, with their sentences; None if there are no claims.

        All verdicts are reported. If the stream of claims breaks off, the claims so far are verified.

        Raises:
            SearchUnavailable, BudgetExceeded: at once.
            PipelineError: the stream broke off and nothing was found, or no claim could be verified.
        """
        self._coming = 1
        fault = None
        try:
            async with close_stream(claims):
                async for claim in claims:
                    self._coming += 1
                    self.claims.append(claim)
                    self._begun.append(self._tasks.create_task(self._capture_claim(claim)))
        except (SearchUnavailable, BudgetExceeded):
            raise
        except PipelineError as error:
            fault = error
        self._written.set()
        self._count_arrival()
        verified = select_successes([await task for task in self._begun])
        if fault and not any(verified):
            raise fault
        return tuple(finding for findings in verified for finding in findings) if self._begun else None

    @property
    def kept(self) -> tuple[SourcedFinding, ...]:
        """The findings of the claims verified so far, in the order of the claims."""
        ended = (task.result() for task in self._begun if task.done())
        return tuple(finding for findings in ended if not isinstance(findings, PipelineError) for finding in findings)

    async def settle(self, wanted: Callable[[str], bool]) -> tuple[SourcedFinding, ...]:
        """Wait until all claims are written, and those that `wanted` selects are verified; return all findings."""
        await self._written.wait()
        for claim, task in zip(self.claims, self._begun, strict=True):
            if wanted(claim.text):
                await asyncio.wait([task])
        return self.kept

    def abandon(self) -> None:
        """Cancel the stream and all verification. Claims without a verdict are recorded as too late."""
        for claim, task in zip(self.claims, self._begun, strict=True):
            if not task.done():
                task.cancel()
                report_undecided(self._kit, claim.text, (), TOO_LATE)
        for call in self._calls:
            call.cancel()

    async def await_reasoning(self) -> None:
        """Wait a moment for reasoning that is still being written; what comes later is dropped."""
        if self._calls:
            _, late = await asyncio.wait(self._calls, timeout=1.0)
            for call in late:
                call.cancel()

    async def _capture_claim(self, claim: TimedClaim) -> tuple[SourcedFinding, ...] | PipelineError:
        return await capture_outcome(self._verify_claim_once(claim))  # created here: a cancelled task may never start

    async def _verify_claim_once(self, claim: TimedClaim) -> tuple[SourcedFinding, ...]:
        case = await self._queue_claim(claim)
        if not case.sentences:
            report_undecided(self._kit, claim.text, (), NO_EVIDENCE, "nothing")
            return ()
        settled = await case.settled
        if isinstance(settled, PipelineError):
            raise settled
        return await _bind_claim(claim.text, *settled, self._kit, self._context.asked)

    async def _queue_claim(self, claim: TimedClaim) -> _PendingClaim:
        """Retrieve evidence for a claim. If there is any, queue the claim for verification."""
        sentences = await retrieve_evidence(seek_claim(claim), self._kit)
        case = _PendingClaim(claim.text, sentences, asyncio.get_running_loop().create_future())
        if sentences:
            self._waiting.append(case)
        self._count_arrival()
        return case

    def _count_arrival(self) -> None:
        self._coming -= 1
        self._send_queued()

    def _send_queued(self) -> None:
        """Verify all queued claims if there are enough and the model is free, or if no more will come."""
        if self._waiting and not (self._coming and (self._kit.busy() or len(self._waiting) < CLAIMS_PER_CALL)):
            together, self._waiting = tuple(self._waiting), []
            self._calls.append(self._tasks.create_task(self._verify_together(together)))

    async def _verify_together(self, cases: Sequence[_PendingClaim]) -> None:
        sentences = collect_sentences(sentence for case in cases for sentence in case.sentences)
        claims = tuple(case.claim for case in cases)
        splitter = VerdictSplitter(len(claims), len(sentences))
        facts = {"talk": self._context.talk, "sentences": sentences, "claims": claims}
        fault: PipelineError = UnreadableReply("the reply has no verdict on it")
        try:
            async with close_stream(self._kit.stream("verdicts", splitter, stage="verify", **facts)) as rulings:
                async for ruling in rulings:
                    self._apply_ruling(cases[ruling.claim - 1], ruling, sentences)
        except (SearchUnavailable, BudgetExceeded):
            raise
        except PipelineError as error:
            fault = error
        left = tuple(case for case in cases if not case.settled.done())
        if len(cases) > 1 and isinstance(fault, UnreadableReply):
            self._calls += [self._tasks.create_task(self._verify_together((case,))) for case in left]
        else:
            for case in left:
                report_undecided(self._kit, case.claim, case.sentences, f"It could not be verified: {fault}")
                case.settled.set_result(fault)
        self._send_queued()

    def _apply_ruling(self, case: _PendingClaim, ruling: ClaimRuling, sentences: tuple[Evidence, ...]) -> None:
        verification = hold_to_look(case.claim, sentences, ruling.found, self._context.asked)
        checked = record_claim(case.claim, sentences, verification)
        if ruling.whole:
            self._kit.tell(ClaimExplained(checked))
            return
        self._kit.tell(ClaimChecked(checked))
        if not case.settled.done():  # a turn that has just failed cancels it
            case.settled.set_result((verification, sentences))
