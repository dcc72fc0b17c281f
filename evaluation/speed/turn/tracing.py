"""Notes what a turn does, step by step, and which step each one waited for.

A system is given a kit whose every way out is watched. What a step waited for is known from the task it runs in: the
last step that ended there, or in the task that began it, before it began.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from pipeline.forms import Form, Splitter, T
from pipeline.kit import Ask, Kit, Search, Stream, Supports
from pipeline.model import LLM, Message, ModelCall, ModelReply, Piece, Spent
from pipeline.streams import closing
from storage.types import Hit, SearchQuery

Kind = Literal["model", "search", "prompt", "check", "think"]
"""A call of a model; a search; making a prompt of facts; the local check of a sentence; other long computing."""


@dataclass(frozen=True, slots=True)
class Cause:
    """What a step waited for: another one, or what that had brought by then."""

    step: int
    at: float


@dataclass(slots=True)
class Step:
    """One step of a turn. Times are seconds on `time.perf_counter()`."""

    id: int
    kind: Kind
    name: str
    began: float
    cause: Cause | None
    ended: float = 0.0
    pieces: list[float] = field(default_factory=list)
    """When each piece of a streamed reply came."""
    messages: tuple[Message, ...] = ()
    """Of a call of a model."""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """How many of them the server had in its cache."""
    tokens: int = 0
    """Of its reply."""
    found: tuple[Hit, ...] = ()
    """By a search."""


_last: ContextVar[Cause | None] = ContextVar("last", default=None)
_making: ContextVar[Step | None] = ContextVar("making", default=None)


class Trace:
    """The steps of one turn, in the order in which they began."""

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self.clock = clock
        self.steps: list[Step] = []

    def begin(self, kind: Kind, name: str) -> Step:
        """Note that a step begins."""
        step = Step(len(self.steps), kind, name, self.clock(), _last.get())
        self.steps.append(step)
        return step

    def reach(self, step: Step) -> None:
        """Note that a step has brought something, or its end: what comes next in this task waited for it."""
        step.ended = self.clock()
        _last.set(Cause(step.id, step.ended))

    @contextmanager
    def step(self, kind: Kind, name: str) -> Iterator[Step]:
        """Note what happens within."""
        step = self.begin(kind, name)
        try:
            yield step
        finally:
            self.reach(step)

    def cause(self) -> Cause | None:
        """Return what who asks has waited for so far."""
        return _last.get()


def untraced() -> None:
    """Forget what was waited for: a new turn begins."""
    _last.set(None)


@dataclass(frozen=True, slots=True)
class TracedModel:
    """An `LLM` that notes each call."""

    llm: LLM
    trace: Trace

    def structured(self, stage: str) -> bool:
        """Return what the model does."""
        return self.llm.structured(stage)

    def busy(self) -> bool:
        """Return what the model does."""
        return self.llm.busy()

    async def complete(self, call: ModelCall, spent: Spent) -> ModelReply:
        """Ask, and note it."""
        self._made()
        with self.trace.step("model", call.stage) as step:
            step.messages = call.messages
            reply = await self.llm.complete(call, spent)
            _count(step, reply)
            return reply

    async def stream(self, call: ModelCall, spent: Spent) -> AsyncIterator[Piece | ModelReply]:
        """Ask, and note it and when its pieces come."""
        self._made()
        with self.trace.step("model", call.stage) as step:
            step.messages = call.messages
            async with closing(self.llm.stream(call, spent)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, ModelReply):
                        _count(step, piece)
                    else:
                        self.trace.reach(step)
                        step.pieces.append(step.ended)
                    yield piece

    def _made(self) -> None:
        """Note that the prompt is made, if somebody noted that it was begun."""
        making = _making.get()
        if making:
            _making.set(None)
            self.trace.reach(making)


def _count(step: Step, reply: ModelReply) -> None:
    step.prompt_tokens, step.cached_tokens, step.tokens = (
        reply.prompt_tokens,
        reply.cached_tokens,
        reply.completion_tokens,
    )


def traced_kit(kit: Kit, trace: Trace, least_search: float) -> Kit:
    """Return a kit that notes what is done with it.

    Args:
        kit: The kit.
        trace: Where it is noted.
        least_search: Seconds that a search takes at least, as if the index were elsewhere.
    """
    return replace(
        kit,
        ask=_ask(kit.ask, trace),
        stream=_stream(kit.stream, trace),
        search=_search(kit.search, trace, least_search),
        beside=_beside(kit.beside, trace),
    )


def traced_check(supports: Supports, trace: Trace) -> Supports:
    """Return a local check that is noted, wherever it is asked from."""

    async def check(sentence: str, evidence: Any) -> Any:
        with trace.step("check", "check"):
            return await supports(sentence, evidence)

    return check


def _ask(ask: Ask, trace: Trace) -> Ask:
    async def traced(template: str, form: Form[T], *, stage: str, **facts: object) -> T:
        _making.set(trace.begin("prompt", stage))
        return await ask(template, form, stage=stage, **facts)

    return traced


def _stream(stream: Stream, trace: Trace) -> Stream:
    async def traced(template: str, splitter: Splitter[T], *, stage: str, **facts: object) -> AsyncIterator[T]:
        _making.set(trace.begin("prompt", stage))
        async with closing(stream(template, splitter, stage=stage, **facts)) as values:
            async for value in values:
                yield value

    return traced


def _search(search: Search, trace: Trace, least: float) -> Search:
    async def traced(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        with trace.step("search", "search") as step:
            _, step.found = await asyncio.gather(asyncio.sleep(least), search(query, k))
            return step.found

    return traced


def _beside(beside: Callable[..., Awaitable[Any]], trace: Trace) -> Callable[..., Awaitable[Any]]:
    async def traced(work: Callable[..., Any], *arguments: Any) -> Any:
        with trace.step("think", getattr(work, "__name__", "work")):
            return await beside(work, *arguments)

    return traced
