"""Have the model judge each sentence of an answer while the next is written; sentences that wait share one call."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pipeline.errors import UnreadableReply
from pipeline.gate import Coming
from pipeline.kit import Stream
from pipeline.replies.verdict_replies import VerdictSplitter
from pipeline.stages.concurrency import close_stream
from pipeline.stages.findings import collect_sentences, passage_ids, select_context
from pipeline.stages.model_claims import split_passage_ids
from pipeline.stages.question_analysis import leans_back
from pipeline.support.verdict_look import Verification, hold_to_look
from pipeline.types import Conversation
from storage.language.detection import detect_language
from storage.types import CheckedClaim, Claim, Evidence, Verdict

GATHER_SECONDS = 0.02  # how long a sentence waits for others to be judged with it, repeatedly
GATHERINGS = 10
TOGETHER = 2  # sentences that share a call, and do not wait for the end of a running one


@dataclass(slots=True, eq=False)
class _Case:
    sentence: str
    evidence: tuple[Evidence, ...]  # sentences of its cited passages that can decide
    verdict: asyncio.Future[Verification]
    before: str = ""  # the sentence that explains its pronoun
    place: int = 0
    call: asyncio.Task[None] | None = None
    together: Sequence["_Case"] = field(default=())  # those that share the call


class SentenceJudge:
    """Judges the sentences of one turn by the passages they cite: `await judge(sentence, evidence)`."""

    def __init__(self, stream: Stream, talk: Conversation, *, gather: float = GATHER_SECONDS) -> None:
        self._stream = stream
        self._talk, self._asked = talk, [turn.text for turn in talk.turns]
        self._gather = gather
        self._waiting: list[_Case] = []
        self._calls = 0
        self._coming: Callable[[], Coming] = lambda: Coming.NEVER

    async def __call__(
        self,
        sentence: str,
        evidence: Sequence[Evidence],
        *,
        coming: Callable[[], Coming],
        before: str = "",
        place: int = 0,
    ) -> CheckedClaim | None:
        """Return the model's verdict; None if the passages have no sentence to judge by. Raises any `PipelineError`."""
        sentences = select_context(sentence, evidence)
        if not sentences:
            return None
        unbound = leans_back(sentence, detect_language(sentence))
        verdict = asyncio.get_running_loop().create_future()
        case = _Case(sentence, sentences, verdict, before if unbound else "", place)
        self._waiting.append(case)
        self._coming = coming
        try:
            await asyncio.sleep(self._gather)
            for _ in range(GATHERINGS):
                if coming() is not Coming.AT_ONCE:
                    break
                await asyncio.sleep(self._gather)
            self._send_waiting(enough=1 if coming() is Coming.NEVER else TOGETHER)
            ruled = await case.verdict
        finally:
            case.verdict.cancel()  # also if this was cancelled before waiting
            await _end_call(case)
        named, others = split_passage_ids(sentences, ruled)
        return CheckedClaim(Claim(sentence, origin="retrieved"), ruled.verdict, named, ruled.reasoning, others)

    def _send_waiting(self, enough: int = TOGETHER) -> None:
        """Judge all waiting sentences. While another call runs, wait for `enough` of them."""
        self._waiting = [case for case in self._waiting if not case.verdict.done()]  # drop cancelled ones
        if self._waiting and (not self._calls or len(self._waiting) >= enough):
            waiting, self._waiting = sorted(self._waiting, key=lambda case: case.place), []
            for first in range(0, len(waiting), TOGETHER):
                self._send(tuple(waiting[first : first + TOGETHER]))

    def _send(self, cases: Sequence[_Case]) -> None:
        self._calls += 1
        call = asyncio.create_task(self._judge_together(cases))
        for case in cases:
            case.call, case.together = call, cases

    async def _judge_together(self, cases: Sequence[_Case]) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        fault: BaseException = UnreadableReply("the reply has no verdict on it")
        try:
            await self._read_verdicts(cases)
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - those waiting for a verdict raise it
            fault = error
        finally:
            self._end_or_linger(loop.time() - began)
        left = [case for case in cases if not case.verdict.done()]
        if len(cases) > 1 and isinstance(fault, UnreadableReply):
            for case in left:
                self._send((case,))
        else:
            for case in left:
                case.verdict.set_exception(fault)
        self._send_waiting()

    def _end_or_linger(self, took: float) -> None:
        """End a call that took `took` seconds.

        If more sentences may come, end it only after the same time again, so that these sentences share the next call.
        """
        if self._coming() is Coming.NEVER:
            self._calls -= 1
        else:
            asyncio.get_running_loop().call_later(took, self._end_call)

    def _end_call(self) -> None:
        self._calls -= 1
        self._send_waiting()

    async def _read_verdicts(self, cases: Sequence[_Case]) -> None:
        """Give each case its verdict when it arrives, a refusal only with its reason. End the call after the last."""
        shown = {(piece.passage.id, piece.span) for case in cases for piece in case.evidence}
        whole = collect_sentences(piece for case in cases for piece in case.evidence)
        sentences = tuple(sentence for sentence in whole if (sentence.passage.id, sentence.span) in shown)
        splitter = VerdictSplitter(len(cases), len(sentences))
        facts = {"talk": self._talk, "sentences": sentences, "claims": tuple(case.sentence for case in cases)}
        facts["before"] = tuple(case.before for case in cases)
        async with close_stream(self._stream("verdicts", splitter, stage="verify", **facts)) as rulings:
            async for ruling in rulings:
                case = cases[ruling.claim - 1]
                verification = hold_to_look(case.sentence, sentences, ruling.found, self._asked)
                supported = verification.verdict is Verdict.SUPPORTS
                if case.verdict.done() or not (ruling.whole or supported):
                    continue
                named = tuple(sentences[number - 1] for number in verification.sentences)
                if supported and not set(passage_ids(named)) <= set(passage_ids(case.evidence)):
                    continue  # the verdict rests on another sentence's passages: this one is judged alone
                # If the verdict rests on a sentence shown for another case, our own sentences of its passage count.
                numbered, passages = list(enumerate(case.evidence, start=1)), passage_ids(named)
                own = tuple(place for place, one in numbered if one in named)
                own = own or tuple(place for place, one in numbered if one.passage.id in passages)
                if supported and not verification.look:  # such a verdict costs nothing: the local check decides
                    case.verdict.set_exception(UnreadableReply("the verdict does not show what the sentences say"))
                else:
                    case.verdict.set_result(Verification(verification.verdict, own, verification.reasoning))
                if all(case.verdict.done() for case in cases):
                    return


async def _end_call(case: _Case) -> None:
    """Wait for the end of a call that no case needs any more, so that it is recorded with the turn."""
    if case.call and all(sharing.verdict.done() for sharing in case.together):
        if case.verdict.cancelled():
            case.call.cancel()
        await asyncio.wait([case.call])
