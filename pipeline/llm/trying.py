"""One try of a call: sends it, reads what comes, judges it, and counts what it used.

Apart from `calling`, which decides what follows when a try fails.
"""

import asyncio
import math
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from dataclasses import dataclass
from typing import Any

from pipeline.llm.budgeting import out_of_time, seconds_left
from pipeline.llm.composing import Asked
from pipeline.llm.judging import objection, reply, seen, used_so_far
from pipeline.llm.manners import Manners, Memory
from pipeline.llm.reading import Pace, Response, payloads
from pipeline.llm.refusals import Refusal
from pipeline.llm.replies import Gathering
from pipeline.llm.retrying import Passing
from pipeline.llm.settings import ModelSettings
from pipeline.model import ModelReply, Piece, Spent

Post = Callable[[Mapping[str, Any]], AbstractAsyncContextManager[Response]]
"""Sends arguments to a server; raises `Refusal` and `Passing`."""
Parts = AsyncGenerator[Piece | ModelReply]
_AN_INSTANT = 0.001


@dataclass(slots=True)
class Tally:
    """What one call took so far, over all its tries."""

    tries: int = 0
    faults: int = 0
    tokens: int = 0
    given: bool = False
    """Whether a piece was passed on, after which nothing can be tried again."""


class Learned(Exception):
    """A reply that shows another way to ask for it."""

    def __init__(self, manners: Manners) -> None:
        super().__init__()
        self.manners = manners


class Tries:
    """Tries calls on one server."""

    def __init__(self, settings: ModelSettings, post: Post, memory: Memory, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._post = post
        self._memory = memory
        self._clock = clock

    async def once(self, asked: Asked, spent: Spent, tally: Tally) -> Parts:
        """Send a call and yield what is said; last the whole reply.

        Raises:
            Refusal: The server answered with an error.
            Passing: A fault that may pass.
            Learned: What came shows how to ask instead.
            PipelineError: As `LLM` says.
        """
        got = Gathering(hold=asked.hold, streamed=asked.streamed)
        try:
            async with aclosing(self._payloads(asked, spent)) as said:
                async for payload in said:
                    ready = got.add(payload)
                    self._guard(got, asked)
                    if ready and asked.streamed:
                        yield Piece(ready)
            rest = got.end()
            self._judge(got, asked)
        except BaseException as error:
            if got.text or _was_taken(error):
                tally.tokens += used_so_far(got, asked)
            raise
        whole = reply(got, asked, self._settings)
        tally.tokens += whole.prompt_tokens + whole.completion_tokens
        if rest and asked.streamed:
            yield Piece(rest)
        yield whole

    async def _payloads(self, asked: Asked, spent: Spent) -> AsyncGenerator[Any]:
        """Yield what the server sends; its silence is a fault that may pass, unless it is the turn's end."""
        settings, now = self._settings, self._clock()
        end = now + min(settings.timeout_seconds, seconds_left(spent, now))
        first = settings.first_token_seconds if asked.streamed else math.inf
        pace = Pace(self._clock, end, first, settings.idle_seconds)
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(pace.allowed(first)):
                    response = await stack.enter_async_context(self._post(asked.arguments))
                values = payloads(
                    response,
                    streamed=asked.streamed,
                    tokens=asked.reply_tokens,
                    pace=pace,
                    server=settings.server,
                )
                async for value in await stack.enter_async_context(aclosing(values)):
                    yield value
        except TimeoutError:
            if spent.deadline is not None and self._clock() >= spent.deadline - _AN_INSTANT:
                raise out_of_time(spent) from None
            hint = "raise timeout_seconds of the model, or set a faster one"
            raise Passing(f"the model server at {settings.server} fell silent", hint=hint, tries=1) from None

    def _guard(self, got: Gathering, asked: Asked) -> None:
        """Stop a stream whose pieces so far were thoughts, as only their end could tell."""
        if got.filter.late:
            self._memory.learn(asked.plan.model, seen(got, asked.manners))
            raise Passing(f"the thoughts of {asked.plan.model} came as its reply", hint="ask again")

    def _judge(self, got: Gathering, asked: Asked) -> None:
        self._memory.learn(asked.plan.model, seen(got, asked.manners))
        if not got.complete:
            raise Passing(f"the model server at {self._settings.server} broke off its reply", hint="try again later")
        verdict = objection(got, asked, self._settings)
        if isinstance(verdict, Manners):
            raise Learned(verdict)
        if verdict is not None:
            raise verdict


def _was_taken(error: BaseException) -> bool:
    """Return whether a server may have worked on a call that ended so: a refused one cost nothing."""
    return not isinstance(error, Refusal) and (not isinstance(error, Passing) or error.taken)
