"""A scripted language model: the test defines the reply of each stage."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from evaluation.simulated_model.model_replies import CLAIM_LINE, reply_unscripted, write_verdicts
from pipeline.errors import SchemaNotOffered
from pipeline.llm.model import BudgetMeter, ModelCall, ModelReply, ReplyPiece

Line = str | Exception | ModelReply | Callable[[ModelCall], str]
Script = Mapping[str, Line | list[Line]]
"""The model's replies by stage: one line for every call, or a list whose last line is repeated."""


@dataclass
class ScriptedLLM:
    """Returns scripted lines by stage. Each takes one turn of the event loop, as a remote call would."""

    script: Script
    schemas: bool = False
    """Whether the model claims to follow a schema."""
    keeps: bool = True
    """Whether the server accepts a schema."""
    size: int = 7
    """The characters of a streamed piece."""
    waits: Mapping[str, asyncio.Event] = field(default_factory=dict)
    """The event that a stage's reply waits for, by stage or `continuation`."""
    calls: list[ModelCall] = field(default_factory=list)
    is_busy: bool = False
    """Whether the server counts as busy."""
    ended: list[str] = field(default_factory=list)
    """The stages of calls that were cancelled before they were read."""

    def structured(self, stage: str) -> bool:
        """Whether the model claims to follow a schema."""
        del stage
        return self.schemas

    def busy(self) -> bool:
        """Whether the server counts as busy."""
        return self.is_busy

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        """Return the stage's next line."""
        try:
            return await self._reply(call, spent)
        except asyncio.CancelledError:
            self.ended.append(call.stage)
            raise

    async def stream(self, call: ModelCall, spent: BudgetMeter) -> AsyncIterator[ReplyPiece | ModelReply]:
        """Stream the stage's next line in pieces."""
        try:
            reply = await self._reply(call, spent)
            for start in range(0, len(reply.text), self.size):
                await asyncio.sleep(0)
                yield ReplyPiece(reply.text[start : start + self.size])
            yield reply
        except (asyncio.CancelledError, GeneratorExit):
            self.ended.append(call.stage)
            raise

    def of(self, stage: str) -> list[ModelCall]:
        """Return the calls of a stage."""
        return [call for call in self.calls if call.stage == stage]

    def asked(self, stage: str) -> str:
        """Return the user message of the only call of a stage."""
        (call,) = self.of(stage)
        return call.messages[-1].text

    async def _reply(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        spent.calls += 1
        name = line_name(call)
        place = sum(line_name(earlier) == name for earlier in self.calls)
        self.calls.append(call)
        await asyncio.sleep(0)
        if name in self.waits:
            await self.waits[name].wait()
        if call.schema is not None and not self.keeps:
            raise SchemaNotOffered("this server keeps no schema")
        lines = self.script.get(name, "NOTHING") if name == "continuation" else self.script[name]
        line = lines[min(place, len(lines) - 1)] if isinstance(lines, list) else lines
        if isinstance(line, Exception):
            raise line
        if isinstance(line, ModelReply):
            return line
        text = line if isinstance(line, str) else line(call)
        return ModelReply(text, "scripted", prompt_tokens=100, completion_tokens=10)


def accept(*sentences: int) -> Callable[[ModelCall], str]:
    """Return a line that supports each claim by these sentences, and copies from them what they say."""

    def write(call: ModelCall) -> str:
        turn, named = call.messages[-1].text, ", ".join(map(str, sentences))
        rulings = [(claim, "SUPPORTS", named) for claim, _ in CLAIM_LINE.findall(turn)]
        return write_verdicts(rulings, turn)

    return write


def line_name(call: ModelCall) -> str:
    """Return the script's name for a call: its stage, or another name for the second wave of a draft."""
    return "continuation" if call.messages[0].text.startswith("You continue a reply") else call.stage


def quoting() -> "Following":
    """Return the lines of a model that queries with the question, and copies the passages that it is shown."""
    return Following(
        {
            "query": lambda call: f"Search: yes\nQuery: {_find_lines(r'User: (.*)', call)[-1]}\nTime: none",
            "summarise": lambda call: "\n".join(
                f"- {text} [{number}]" for number, text in _find_lines(r"(\d+): (.*)", call)
            ),
            "generate": "I would have to look it up.",
            "split": "Nothing",
            "verify": "Reasoning: I cannot tell.\nSentences: -\nVerdict: NOT ENOUGH INFO",
            "draft": lambda call: " ".join(
                f"{text} [{number}]." for number, text in _find_lines(r"\[(\d+)\] (.*?)[.](?: [(]from: .*)?", call)
            ),
            "refine": "\n".join(
                f"{name}: Good. 100/100" for name in ("Relevant", "Natural", "Non-repetitive", "Temporally correct")
            ),
        }
    )


class Following(dict[str, Line | list[Line]]):
    """Lines by stage, completed by the simulated model for prompts of other kinds."""

    def __init__(self, lines: Script) -> None:
        super().__init__(lines)
        for stage, line in lines.items():
            if isinstance(line, str) or callable(line):
                self[stage] = partial(_follow, line)

    def __missing__(self, stage: str) -> Line:
        return partial(_follow, "")


def _follow(line: str | Callable[[ModelCall], str], call: ModelCall) -> str:
    return reply_unscripted(call.messages) or (line if isinstance(line, str) else line(call))


def _find_lines(pattern: str, call: ModelCall) -> list[str]:
    return re.findall(rf"^{pattern}$", call.messages[-1].text, re.MULTILINE)
