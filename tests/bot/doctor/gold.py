"""Scripted models that know the gold cases and reply as the case expects, or as a test scripts."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from itertools import product
from typing import Any

from bot.doctor.call_kinds import CALL_KINDS, CallKind, GoldCase, read_cases
from pipeline.llm.model import LLM, BudgetMeter, ModelCall, ModelReply, ReplyPiece
from pipeline.llm.model_settings import ModelSettings
from pipeline.prompts.prompt_templates import PromptMode, render_prefix
from pipeline.support.verdict_look import LOOK_FIELDS

NOW = datetime(2026, 8, 1, 12, tzinfo=UTC)
BY_KIND = {kind.name: kind for kind in CALL_KINDS}
_KEYS: dict[str, Callable[[GoldCase], list[str]]] = {
    "query": lambda case: [turn.text for turn in case.facts["talk"].turns],
    "web_query": lambda case: [turn.text for turn in case.facts["talk"].turns],
    "generate": lambda case: [turn.text for turn in case.facts["talk"].turns],
    "summarise": lambda case: [f"Query: {case.facts['query']}", _line(case.facts["sentences"][0].text)],
    "split": lambda case: [case.facts["reply_text"]],
    "verify": lambda case: [f"Claim: {case.facts['claim']}"],
    "draft": lambda case: [case.facts["talk"].question.text, case.facts["findings"][0].text],
    "feedback": lambda case: [case.facts["draft"]],
    "refine": lambda case: [case.facts["draft"]],
    "bullets": lambda case: [f"Query: {case.facts['query']}", _line(case.facts["sentences"][0].text)],
    "claims": lambda case: [turn.text for turn in case.facts["talk"].turns],
    "verdicts": lambda case: [f"Claim 1: {case.facts['claim']}"],
    "answer": lambda case: [case.facts["talk"].question.text, case.facts["findings"][0].text],
}

Speak = Callable[[CallKind, GoldCase, ModelCall], "str | Exception | ModelReply"]


@cache
def cases(kind: CallKind) -> tuple[GoldCase, ...]:
    return tuple(case for case in read_cases(kind.file, NOW.date()) if kind.name != "refine" or case.expected)


def asked(messages: Sequence[str]) -> tuple[CallKind, GoldCase]:
    prompt = "\n".join(messages[1:])
    (kind,) = {kind for begin, kind in _by_instruction().items() if messages[0].startswith(begin)}
    known = [case for case in cases(kind) if all(key in prompt for key in _KEYS[kind.name](case))]
    return kind, max(known, key=lambda case: sum(map(len, _KEYS[kind.name](case))))


@cache
def _by_instruction() -> dict[str, CallKind]:
    modes = [
        PromptMode(structured=structured, student=student) for structured, student in product((False, True), repeat=2)
    ]
    return {render_prefix(name, mode)[0].text: kind for name, kind in BY_KIND.items() for mode in modes}


def right(kind: CallKind, case: GoldCase, *, schema: bool, student: bool = False) -> str:
    if kind.name == "generate":
        return "I would say so, but I am not sure."
    if kind.name in {"draft", "refine", "answer"}:
        return case.reply
    if kind.name == "verdicts":
        return _ruling(case)
    reply = _OBJECTS[kind.name](case)
    if student:
        reply.pop("reasoning", None)
    return json.dumps(reply, ensure_ascii=False) if schema else _TEXTS[kind.name](reply)


def _ruling(case: GoldCase) -> str:
    reply = _verdict(case)
    numbers = f"[{', '.join(map(str, reply['sentences']))}] " if reply["sentences"] else ""
    return f"1. {numbers}who: {reply['who'] or '-'}; if: -; {reply['verdict']}"


def perfect(kind: CallKind, case: GoldCase, call: ModelCall) -> str:
    student = kind.name == "verify" and "easoning" not in call.messages[0].text
    return right(kind, case, schema=call.schema is not None, student=student)


@dataclass
class GoldLLM:
    """A model that recognises each case and replies with a script."""

    speak: Speak = perfect
    schemas: bool = False
    calls: list[tuple[str, str]] = field(default_factory=list)
    """The kind and the case of each call."""
    stopped_after: int | None = None
    """The number of calls before Ctrl-C; later calls never return."""
    stopped: bool = False
    running: int = 0
    most: int = 0
    """The most calls that ran at once."""

    def structured(self, stage: str) -> bool:
        del stage
        return self.schemas

    def busy(self) -> bool:
        return False

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        spent.calls += 1
        kind, case = asked([message.text for message in call.messages])
        self.calls.append((kind.name, case.name))
        place = len(self.calls)
        self.running += 1
        self.most = max(self.most, self.running)
        await asyncio.sleep(0)
        if self.stopped_after is not None and place > self.stopped_after:
            await self._stop()
        self.running -= 1
        reply = self.speak(kind, case, call)
        if isinstance(reply, Exception):
            raise reply
        counts: dict[str, Any] = {"prompt_tokens": 1_400, "completion_tokens": 10, "cost": 0.002}
        return reply if isinstance(reply, ModelReply) else ModelReply(reply, "scripted", **counts)

    async def _stop(self) -> None:
        if not self.stopped:
            self.stopped = True
            signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()

    async def stream(self, call: ModelCall, spent: BudgetMeter) -> AsyncIterator[ReplyPiece | ModelReply]:
        reply = await self.complete(call, spent)
        yield ReplyPiece(reply.text)
        yield reply


def opens(*llms: GoldLLM) -> Callable[[ModelSettings], AbstractAsyncContextManager[LLM]]:
    left = list(llms)

    @asynccontextmanager
    async def open_model(settings: ModelSettings) -> AsyncIterator[LLM]:
        del settings
        yield left.pop(0) if len(left) > 1 else left[0]

    return open_model


def _line(text: str) -> str:
    return " ".join(text.split())


def _query(case: GoldCase) -> dict[str, Any]:
    expected = case.expected
    if not expected["search"]:
        return {"search": False, "query": "", "time": "none"}
    words = " ".join(term.split("|")[0] for term in expected["terms"])
    return {"search": True, "query": words, "time": expected["time"].replace("any", "none")}


def _verdict(case: GoldCase) -> dict[str, Any]:
    verdict, sentences = case.expected["verdict"], case.expected["sentences"]
    look = {"who": " ".join(case.facts["sentences"][number - 1].text for number in sentences)}
    look |= dict.fromkeys(LOOK_FIELDS[1:], "")
    return {"sentences": sentences, **look, "reasoning": "So it is written.", "verdict": verdict}


_OBJECTS: dict[str, Callable[[GoldCase], dict[str, Any]]] = {
    "query": _query,
    "summarise": lambda case: {
        "bullets": [
            {"text": _line(case.facts["sentences"][number - 1].text), "sentences": [number]}
            for number in case.expected["must"]
        ]
    },
    "split": lambda case: {
        "claims": [{"text": fact["text"], "time": fact.get("time", "none")} for fact in case.expected["claims"]]
    },
    "verify": _verdict,
    "feedback": lambda case: {
        point.criterion.replace("-", "_").replace(" ", "_"): {"remark": point.remark, "score": point.score}
        for point in case.facts["feedback"].points
    },
}
_OBJECTS |= {"web_query": _query, "bullets": _OBJECTS["summarise"], "claims": _OBJECTS["split"]}
_TEXTS: dict[str, Callable[[dict[str, Any]], str]] = {
    "query": lambda reply: (
        f"Search: yes\nQuery: {reply['query']}\nTime: {reply['time']}" if reply["search"] else "Search: no"
    ),
    "summarise": lambda reply: (
        "\n".join(f"- {bullet['text']} [{bullet['sentences'][0]}]" for bullet in reply["bullets"]) or "None"
    ),
    "split": lambda reply: "\n".join(f"- {claim['text']} | {claim['time']}" for claim in reply["claims"]) or "Nothing",
    "verify": lambda reply: (
        f"Sentences: {', '.join(map(str, reply['sentences'])) or '-'}\nWho: {reply['who'] or '-'}\n"
        + (f"Reasoning: {reply['reasoning']}\n" if "reasoning" in reply else "")
        + f"Verdict: {reply['verdict']}"
    ),
    "feedback": lambda reply: "\n".join(
        f"{name}: {reply[name.lower().replace('-', '_').replace(' ', '_')]['remark']} "
        f"{reply[name.lower().replace('-', '_').replace(' ', '_')]['score']}/100"
        for name in ("Relevant", "Natural", "Non-repetitive", "Temporally correct")
    ),
}
_TEXTS |= {"web_query": _TEXTS["query"], "bullets": _TEXTS["summarise"], "claims": _TEXTS["split"]}
