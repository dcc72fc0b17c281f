"""Say a reply in two waves: over the known findings, and over claims that are verified while the first wave is written.

The first wave holds back its first sentence until all claims are written, and those that contradict its notes are
verified. If one of these is true, the reply is drafted again over all findings, so that both versions appear. The
second wave is written during the first, from findings that its notes do not cover, and said after it.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from pipeline.errors import PipelineError
from pipeline.extraction.quote_selection import is_contradiction
from pipeline.kit import Kit
from pipeline.replies.cited_sentences import MarkedSentence, cite_sentence
from pipeline.stages.concurrency import close_stream, open_task_group
from pipeline.stages.draft.answer_draft import (
    MOSTLY_SAID,
    ReplySpeaker,
    SpokenStream,
    say_draft,
    split_draft,
    stream_draft,
)
from pipeline.stages.findings import (
    SourcedFinding,
    deduplicate_findings,
    find_disagreeing,
    has_same_words,
    order_rivals_by_date,
)
from pipeline.stages.model_claims import ClaimVerifier
from pipeline.stages.turn_context import TurnContext

LEAST_PATIENCE = 1.0  # the least seconds to wait for the second wave; the most are those that the first took
_Continued = tuple[tuple[MarkedSentence, ...], tuple[SourcedFinding, ...]]  # a second wave, and what it cites
MAX_CONTINUED = 2  # sentences of a second wave: more of them would be a second answer


async def say_in_waves(
    context: TurnContext,
    known: Sequence[SourcedFinding],
    claims: ClaimVerifier,
    verified: asyncio.Task[Any],
    kit: Kit,
) -> bool:
    """Say a reply over `known` findings, then over findings from claims that `verified` verifies meanwhile.

    Return whether a sentence passed. If the first wave says nothing, one reply over all findings is drafted. The second
    wave is skipped if it fails or takes longer than the first. Raises as `stream_draft` does.
    """
    written = list[str]()
    ended = set[str]()
    outcome = SpokenStream(said=False, received=False)
    clock = asyncio.get_running_loop().time
    began = clock()

    def end(wave: str) -> None:
        """End the draft once both waves have ended, because their last sentences may be judged together."""
        ended.add(wave)
        if len(ended) > 1:
            kit.end_draft()

    speaker = ReplySpeaker(context, known, (), replace(kit, end_draft=partial(end, "first")))
    try:
        async with open_task_group() as group:
            collect = partial(_collect_second, context, known, claims, verified, kit, written, group)
            second = _SecondWave(group, collect, partial(end, "second"))
            first = partial(_stream_first, context, known, claims, kit, written, second)
            outcome = await speaker.say_drafts(first)
            if outcome.said:
                await asyncio.wait([second.task], timeout=max(LEAST_PATIENCE, clock() - began))
                if second.task.done():
                    await speaker.say_more(*second.task.result())
            second.task.cancel()
    except _Overtaken:
        pass
    if outcome.said:
        return True
    await asyncio.wait([verified])
    findings = merge_findings(known, claims.kept)
    if not outcome.received or findings != tuple(known):  # its prompt announced more findings
        return await say_draft(context, findings, kit, refined=True)
    return False


def merge_findings(*found: Sequence[SourcedFinding]) -> tuple[SourcedFinding, ...]:
    """Return all findings, each once. Those that disagree are ordered by date."""
    return order_rivals_by_date(deduplicate_findings(finding for findings in found for finding in findings))


def select_late(known: Sequence[SourcedFinding], kept: Sequence[SourcedFinding]) -> tuple[SourcedFinding, ...]:
    """Return the findings of claims that the known findings do not state already, in whatever words."""
    new = [finding for finding in merge_findings(known, kept) if finding not in known]
    return tuple(finding for finding in new if not _is_stated(finding, known))


def _is_stated(finding: SourcedFinding, known: Sequence[SourcedFinding]) -> bool:
    """Return whether a known finding states `finding`, or if that is not negated, whether all together state it."""
    negated = finding.statement.negated
    alike = [other.text for other in known if other.statement.negated == negated]
    if any(has_same_words(finding.text, text) for text in alike):
        return True
    return not negated and has_same_words(finding.text, " ".join(alike), MOSTLY_SAID)


class _SecondWave:
    """The task that collects the second wave. If the first wave is drafted again, the task is started again."""

    def __init__(
        self, group: asyncio.TaskGroup, collect: Callable[[], Coroutine[Any, Any, _Continued]], end: Callable[[], None]
    ) -> None:
        self._group = group
        self._collect = collect
        self._end = end
        self.task = self._begin()

    def _begin(self) -> asyncio.Task[_Continued]:
        task = self._group.create_task(self._collect())
        task.add_done_callback(lambda done: self._end() if done is self.task else None)
        return task

    def restart(self) -> None:
        self.task.cancel()
        self.task = self._begin()


class _Overtaken(Exception):
    """A claim that contradicts the first wave's notes is verified, so the reply must be drafted over both."""


async def _stream_first(
    context: TurnContext,
    known: Sequence[SourcedFinding],
    claims: ClaimVerifier,
    kit: Kit,
    written: list[str],
    second: _SecondWave,
    *,
    refused: str = "",
) -> AsyncGenerator[MarkedSentence]:
    """Yield the first wave, and add its sentences to `written`. May raise `_Overtaken` before the first sentence."""
    if refused:
        written.clear()
        second.restart()
    async with close_stream(stream_draft(context, known, kit, refined=True, more=True, refused=refused)) as sentences:
        async for sentence in sentences:
            if not written:
                verified = await claims.settle(partial(_contradicts, known))
                if _disagree(known, verified):
                    raise _Overtaken
            written.append(sentence.text)
            yield sentence


def _disagree(known: Sequence[SourcedFinding], others: Sequence[SourcedFinding]) -> bool:
    return any(place >= len(known) for place in find_disagreeing((*known, *others)))


def _contradicts(known: Sequence[SourcedFinding], claim: str) -> bool:
    """Return whether a claim and a known finding give different values for the same thing."""
    return any(is_contradiction(replace(finding, text=claim).statement, finding.statement) for finding in known)


async def _collect_second(
    context: TurnContext,
    known: Sequence[SourcedFinding],
    claims: ClaimVerifier,
    verified: asyncio.Task[Any],
    kit: Kit,
    written: Sequence[str],
    judging: asyncio.TaskGroup,
) -> _Continued:
    """Return the second wave, and the findings that it cites. Its sentences are sent to be judged together."""
    await asyncio.wait([verified])  # unlike `await`, cancelling this does not cancel the task
    late = select_late(known, claims.kept)
    more = list[MarkedSentence]()
    if not late or _disagree(known, late):
        return (), ()
    facts = {"talk": context.talk, "told": tuple(known), "findings": late, "begun": " ".join(written)}
    splitter = split_draft(context, late)
    try:
        stream = kit.stream("continuation", splitter, stage="draft", language=context.language, **facts)
        async with close_stream(stream) as sentences:
            async for sentence in sentences:
                more.append(sentence)
                if len(more) == MAX_CONTINUED:
                    break
    except PipelineError:  # recorded with its call; the first wave is complete without it
        pass
    before = (" ".join(written[-1:]), *(sentence.text for sentence in more))
    for sentence, text in zip(more, before, strict=False):
        judging.create_task(kit.judge(cite_sentence(sentence, [finding.evidence for finding in late]), text))
    return tuple(more), late
