"""Stage 5 while claims still arrive: evidence for each is sought at once, and each is verified as soon as it has any.

Unlike `recalling.verify`, which is given all claims. A claim has a call of its own, but those that have to wait for a
place at the server wait together and are put into one; what gets no verdict there is asked again alone. A verdict
counts from when it is said; its reason may come while the reply is drafted already.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from pipeline.errors import BudgetExceeded, PipelineError, SearchUnavailable, UnreadableReply
from pipeline.findings import Finding, sentences_of
from pipeline.kit import Kit
from pipeline.parsing.claims import TimedClaim
from pipeline.parsing.verdicts import Ruling, VerdictSplitter
from pipeline.stages.looking_up import retrieve
from pipeline.stages.scene import Scene
from pipeline.stages.together import outcome, working
from pipeline.stages.verifying import bound, stated, unfounded, unverified
from pipeline.streams import closing
from pipeline.types import ClaimChecked, ClaimExplained
from storage.types import Evidence, SearchQuery, Verdict

REASON_SECONDS = 1.0
"""For so long a reason may still be written when the reply is whole: it is a few words."""
Settled = asyncio.Future[tuple[Evidence, ...] | PipelineError]


@dataclass(frozen=True, slots=True)
class _Case:
    """A claim that has evidence, and what will be known of it: the sentences that support it, or why it has none."""

    claim: str
    sentences: tuple[Evidence, ...]
    settled: Settled


class Scales:
    """The claims of one turn; what it begins ends with `tasks` at the latest."""

    def __init__(self, scene: Scene, kit: Kit, tasks: asyncio.TaskGroup) -> None:
        """Take what verification needs to know."""
        self._scene = scene
        self._kit = kit
        self._tasks = tasks
        self._waiting: list[_Case] = []
        self._calls: list[asyncio.Task[None]] = []
        self._coming = 0
        """How many may still come to wait: claims without evidence yet, and the stream of claims itself."""

    async def weighed(self, claims: AsyncIterator[TimedClaim]) -> tuple[Finding, ...] | None:
        """Return those claims that passages support, in their order, bound to the sentences that say so.

        None where nothing is claimed. All verdicts are told. Where claims break off, those that came are verified.

        Raises:
            SearchUnavailable, BudgetExceeded: at once.
            PipelineError: claims broke off, or not one could be verified, and nothing was found.
        """
        self._coming, begun, fault = 1, list[asyncio.Task[tuple[Finding, ...] | PipelineError]](), None
        try:
            async with closing(claims):
                async for claim in claims:
                    self._coming += 1
                    begun.append(self._tasks.create_task(self._outcome(claim)))
        except (SearchUnavailable, BudgetExceeded):
            raise
        except PipelineError as error:
            fault = error
        self._came()
        kept = working([await task for task in begun])
        if fault and not any(kept):
            raise fault
        return tuple(finding for findings in kept for finding in findings) if begun else None

    async def explained(self) -> None:
        """Wait for reasons that are still being written, though not for long: the reply is whole without them."""
        if self._calls:
            _, late = await asyncio.wait(self._calls, timeout=REASON_SECONDS)
            for call in late:
                call.cancel()

    async def _outcome(self, claim: TimedClaim) -> tuple[Finding, ...] | PipelineError:
        return await outcome(self._weighed(claim))  # begun here: a task may be ended before it begins

    async def _weighed(self, claim: TimedClaim) -> tuple[Finding, ...]:
        case = await self._case(claim)
        if not case.sentences:
            self._kit.tell(ClaimChecked(unfounded(claim.text)))
            return ()
        settled = await case.settled
        if isinstance(settled, PipelineError):
            raise settled
        return await bound(claim.text, settled, self._kit.supports) if settled else ()

    async def _case(self, claim: TimedClaim) -> _Case:
        """Seek evidence for a claim, and let it wait for its verification where there is any."""
        query = SearchQuery(claim.text, claim.time, unchecked=True)
        sentences = sentences_of(await retrieve(query, self._kit.limits.evidence, self._kit))
        case = _Case(claim.text, sentences, asyncio.get_running_loop().create_future())
        if sentences:
            self._waiting.append(case)
        self._came()
        return case

    def _came(self) -> None:
        self._coming -= 1
        self._send()

    def _send(self) -> None:
        """Put to the model all that waits, if there is a place for it or nothing more will join it."""
        if self._waiting and not (self._coming and self._kit.busy()):
            together, self._waiting = tuple(self._waiting), []
            self._ask(together)

    def _ask(self, cases: Sequence[_Case]) -> None:
        self._calls.append(self._tasks.create_task(self._verify(cases)))

    async def _verify(self, cases: Sequence[_Case]) -> None:
        sentences = sentences_of(one for case in cases for one in case.sentences)
        claims = tuple(case.claim for case in cases)
        splitter = VerdictSplitter(len(claims), len(sentences), reasoned=not self._kit.limits.student)
        facts = {"talk": self._scene.talk, "sentences": sentences, "claims": claims}
        fault: PipelineError = UnreadableReply("the reply has no verdict on it")
        try:
            async with closing(self._kit.stream("verdicts", splitter, stage="verify", **facts)) as rulings:
                async for ruling in rulings:
                    self._ruled(cases[ruling.claim - 1], ruling, sentences)
        except (SearchUnavailable, BudgetExceeded):
            raise
        except PipelineError as error:
            fault = error
        left = tuple(case for case in cases if not case.settled.done())
        if len(cases) > 1 and isinstance(fault, UnreadableReply):
            for case in left:
                self._ask((case,))
        else:
            self._unsettled(left, fault)
        self._send()

    def _unsettled(self, cases: Sequence[_Case], fault: PipelineError) -> None:
        for case in cases:
            self._kit.tell(ClaimChecked(unverified(case.claim, case.sentences, fault)))
            case.settled.set_result(fault)

    def _ruled(self, case: _Case, ruling: Ruling, sentences: Sequence[Evidence]) -> None:
        found = ruling.found
        checked = stated(case.claim, sentences, found)
        if ruling.whole:
            self._kit.tell(ClaimExplained(checked))
            return
        self._kit.tell(ClaimChecked(checked))
        supporting = found.sentences if found.verdict is Verdict.SUPPORTS else ()
        if not case.settled.done():  # where the turn has just failed, nobody waits for it any more
            case.settled.set_result(tuple(sentences[number - 1] for number in supporting))
