"""Replace a language model in this process by functions that make a reply from the prompt.

If a script has no reply for a prompt, the simulated model answers.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass

from evaluation.simulated_model.model_pace import count_tokens
from evaluation.simulated_model.model_replies import reply_unscripted
from pipeline.llm.model import BudgetMeter, ModelCall, ModelReply, ReplyPiece

WORDS = r"\S+\s*"
WHOLE = r"(?s).+"


@dataclass(frozen=True, slots=True)
class ScriptedLLM:
    """An `LLM` whose replies are made by a function. Tokens are estimated from the length of the texts."""

    name: str
    write: Callable[[ModelCall], Awaitable[str]]
    pieces: str = WHOLE
    """The pattern of the pieces of a stream. With one piece a run does not depend on the clock."""

    def structured(self, stage: str) -> bool:
        del stage
        return False

    def busy(self) -> bool:
        return False

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        spent.calls += 1
        text = await self.write(call)
        read, written = sum(count_tokens(message.text) for message in call.messages), count_tokens(text)
        spent.tokens += read + written
        return ModelReply(text, self.name, prompt_tokens=read, completion_tokens=written, estimated=True)

    async def stream(self, call: ModelCall, spent: BudgetMeter) -> AsyncIterator[ReplyPiece | ModelReply]:
        reply = await self.complete(call, spent)
        for piece in re.findall(self.pieces, reply.text):
            yield ReplyPiece(piece)
        yield reply


def script_stages(name: str, replies: Mapping[str, Callable[[str], str]], pieces: str = WORDS) -> ScriptedLLM:
    """Return a model for one conversation. `replies` maps a stage to a function of the prompt's last message."""

    async def write(call: ModelCall) -> str:
        await asyncio.sleep(0)  # other calls can start, as with a remote model
        return reply_unscripted(call.messages) or replies[call.stage](call.messages[-1].text)

    return ScriptedLLM(name, write, pieces)
