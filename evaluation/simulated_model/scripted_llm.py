"""Stand in for a language model within the process: replies are made by stage from the prompt."""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass

from pipeline.model import BudgetMeter, ModelCall, ModelReply, ReplyPiece


@dataclass(frozen=True, slots=True)
class StagedLLM:
    """An `LLM` for one conversation."""

    name: str
    speech: Mapping[str, Callable[[str], str]]
    """What is said at each stage, by the turn's part of the prompt."""
    piece: int
    """Characters that come together in a stream: few enough to tear words and marks apart."""

    def structured(self, stage: str) -> bool:
        del stage
        return False

    def busy(self) -> bool:
        return False

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        spent.calls += 1
        return ModelReply(self.speech[call.stage](call.messages[-1].text), self.name)

    async def stream(self, call: ModelCall, spent: BudgetMeter) -> AsyncIterator[ReplyPiece | ModelReply]:
        reply = await self.complete(call, spent)
        for start in range(0, len(reply.text), self.piece):
            yield ReplyPiece(reply.text[start : start + self.piece])
        yield reply
