"""Run one turn of any system with real prompts, recorder and gate, over the search and model that a measurement brings.

Also a stand-in for the model within the process: its replies are made by stage from what the prompt shows.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from random import Random

from pipeline.gate import Gate, Recorder
from pipeline.kit import Compare, Kit, Limits, Search, Supports, System, ask_unconfigured, stream_unconfigured
from pipeline.model import LLM, BudgetMeter, ModelCall, ModelReply, ReplyPiece
from pipeline.prompts.prompter import Prompter
from pipeline.stages.model_claims import build_second_opinion
from pipeline.support.support_check import SupportChecker
from pipeline.types import Answer, Conversation, Status
from storage.indexes.token_states import TokenStates, open_token_states


@dataclass(frozen=True, slots=True)
class StagedLLM:
    """An `LLM` for one conversation."""

    name: str
    replies: Mapping[str, Callable[[str], str]]
    """What is said at each stage, by the turn's part of the prompt."""
    piece: int = 0
    """Characters that come together in a stream: few enough to tear words and marks apart. 0: all."""

    def structured(self, stage: str) -> bool:
        del stage
        return False

    def busy(self) -> bool:
        return False

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        spent.calls += 1
        return ModelReply(self.replies[call.stage](call.messages[-1].text), self.name)

    async def stream(self, call: ModelCall, spent: BudgetMeter) -> AsyncIterator[ReplyPiece | ModelReply]:
        reply = await self.complete(call, spent)
        size = self.piece or len(reply.text) or 1
        for start in range(0, len(reply.text), size):
            yield ReplyPiece(reply.text[start : start + size])
        yield reply


def open_checker(home: Path) -> SupportChecker:
    """Return the check that stands at the gate, its model kept in `home`; it holds the event loop while it reads."""
    reader = open_token_states(home)

    async def read(texts: Sequence[str]) -> tuple[TokenStates, ...]:
        return reader.read(texts)

    return SupportChecker(read)


async def run_turn(
    system: System,
    talk: Conversation,
    *,
    search: Search,
    compare: Compare,
    supports: Supports,
    now: datetime,
    random: Random,
    llm: LLM | None = None,
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> Answer:
    """Run a system on a conversation. Raises `PipelineError`."""
    recorder = Recorder(search, tell=_ignore)
    ask, stream, verify = ask_unconfigured, stream_unconfigured, None
    if llm:
        prompter = Prompter(llm, BudgetMeter(), note=recorder.note, now=now, random=random, student=limits.student)
        ask, stream = prompter.ask, prompter.stream
        verify = build_second_opinion(ask, talk, turns=limits.turns, student=limits.student)
    gate = Gate(found=recorder.found, supports=supports, tell=_ignore, verify=verify)
    kit = Kit(
        ask=ask,
        stream=stream,
        search=recorder.search,
        compare=compare,
        supports=supports,
        say=gate.say,
        tell=recorder.tell,
        limits=limits,
        now=now,
        random=random,
    )
    status: Status = await system(talk, kit)
    return gate.answer(status, nearest=recorder.nearest(3), claims=recorder.claims)


def _ignore(_: object) -> None:
    """Nobody watches."""
