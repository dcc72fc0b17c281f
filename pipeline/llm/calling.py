"""The language model behind a server: asks, waits its turn, tries again, and keeps count."""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from pipeline.errors import ModelUnavailable, PipelineError, SchemaNotOffered
from pipeline.llm.budgeting import out_of_time, reserve, seconds_left, settle, waive
from pipeline.llm.composing import Asked, compose
from pipeline.llm.judging import objection, reply, seen, used_so_far
from pipeline.llm.manners import SCHEMA, Manners
from pipeline.llm.reading import Pace, Response, payloads
from pipeline.llm.refusals import Refusal, meaning
from pipeline.llm.replies import Gathering
from pipeline.llm.retrying import PATIENCE_SECONDS, Passing, backoff
from pipeline.llm.saying import said_by
from pipeline.llm.settings import ModelSettings
from pipeline.model import ModelCall, ModelReply, Piece, Spent

Post = Callable[[Mapping[str, Any]], AbstractAsyncContextManager[Response]]
Parts = AsyncGenerator[Piece | ModelReply]
_AN_INSTANT = 0.001


@dataclass(slots=True)
class _Tally:
    """What one call took so far, over all its tries."""

    tries: int = 0
    faults: int = 0
    tokens: int = 0
    given: bool = False
    """Whether a piece was passed on, after which nothing can be tried again."""


class _Learned(Exception):
    """A reply that shows another way to ask for it."""

    def __init__(self, manners: Manners) -> None:
        super().__init__()
        self.manners = manners


class OpenAIModel:
    """An `LLM` that asks one server, for all turns of a process at once."""

    def __init__(
        self,
        settings: ModelSettings,
        post: Post,
        *,
        random: Random,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Take what it asks with.

        Args:
            settings: The model, and how patiently it is asked.
            post: Sends arguments to the server.
            random: Spreads the waits between tries.
            clock: Tells seconds, as `Spent.deadline` does.
            sleep: Waits for seconds.
        """
        self._settings = settings
        self._post = post
        self._random = random
        self._clock = clock
        self._sleep = sleep
        self._slots = asyncio.Semaphore(settings.max_concurrency)
        self._manners: dict[str, Manners] = {}

    def structured(self, stage: str) -> bool:
        """Return whether calls of a stage may carry a schema, as far as is known now."""
        plan = self._settings.plan(stage)
        return plan.structured != "text" and self._known(plan.model).schema

    async def complete(self, call: ModelCall, spent: Spent) -> ModelReply:
        """Ask once and wait for the whole reply. Raises as `LLM` says."""
        async with aclosing(self._counted(call, spent, streamed=False)) as parts:
            return [part async for part in parts if isinstance(part, ModelReply)][-1]

    async def stream(self, call: ModelCall, spent: Spent) -> Parts:
        """Ask once: pieces as they arrive, and last the whole reply. Raises as `LLM` says.

        Closing the iterator closes the connection. A stream that breaks off after a piece is not tried again.
        """
        async with aclosing(self._counted(call, spent, streamed=True)) as parts:
            async for part in parts:
                yield part

    async def _counted(self, call: ModelCall, spent: Spent, *, streamed: bool) -> Parts:
        started, tally = self._clock(), _Tally()
        if call.schema is not None and not self.structured(call.stage):
            raise SchemaNotOffered(f"no schema is sent for stage {call.stage!r}")
        asked = self._composed(call, streamed=streamed)
        reserved = asked.prompt_tokens + (asked.plan.max_tokens or call.max_tokens)
        reserve(spent, reserved, started)
        try:
            async with aclosing(self._tried(call, spent, tally, streamed=streamed)) as parts:
                async for part in parts:
                    yield self._timed(part, tally, started) if isinstance(part, ModelReply) else part
        except SchemaNotOffered:
            waive(spent)
            raise
        finally:
            settle(spent, reserved, tally.tokens)

    async def _tried(self, call: ModelCall, spent: Spent, tally: _Tally, *, streamed: bool) -> Parts:
        while True:
            asked = self._composed(call, streamed=streamed)
            tally.tries += 1
            try:
                async with self._slot(spent), aclosing(self._once(asked, spent, tally)) as parts:
                    async for part in parts:
                        tally.given = True
                        yield part
            except (Refusal, Passing, _Learned) as fault:
                seconds = self._wait(fault, asked, spent, tally)
            else:
                return
            if seconds:
                await self._sleep(seconds)

    async def _once(self, asked: Asked, spent: Spent, tally: _Tally) -> Parts:
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
                values = payloads(response, tokens=asked.reply_tokens, pace=pace, server=settings.server)
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
            self._learn(asked, seen(got, asked.manners))
            raise Passing(f"the thoughts of {asked.plan.model} came as its reply", hint="ask again")

    def _judge(self, got: Gathering, asked: Asked) -> None:
        self._learn(asked, seen(got, asked.manners))
        if not got.complete:
            raise Passing(f"the model server at {self._settings.server} broke off its reply", hint="try again later")
        verdict = objection(got, asked, self._settings)
        if isinstance(verdict, Manners):
            raise _Learned(verdict)
        if isinstance(verdict, SchemaNotOffered):
            raise self._unschooled(verdict, asked)
        if verdict is not None:
            raise verdict

    def _wait(self, fault: Refusal | Passing | _Learned, asked: Asked, spent: Spent, tally: _Tally) -> float:
        """Return how many seconds to wait before the next try. Raises what the caller gets, if there is none."""
        found = self._found(fault, asked, tally)
        if isinstance(found, Manners):
            self._learn(asked, found)
            return 0.0
        if not isinstance(found, Passing):
            raise found from None
        tally.faults += 1
        if tally.given or tally.faults > min(self._settings.retries, found.tries or math.inf):
            raise _final(found, tally) from None
        seconds = backoff(tally.faults, self._random) if found.after is None else found.after
        if seconds > PATIENCE_SECONDS or seconds >= seconds_left(spent, self._clock()):
            raise _final(found, tally, f"; to try again takes {seconds:.0f} s, longer than there is") from None
        return seconds

    def _found(
        self, fault: Refusal | Passing | _Learned, asked: Asked, tally: _Tally
    ) -> Manners | Passing | PipelineError:
        if isinstance(fault, _Learned):
            return fault.manners
        if isinstance(fault, Passing):
            return fault
        if tally.given:
            said = said_by(fault.body, self._settings.secrets)
            return Passing(f"the model server at {self._settings.server} broke off its reply: {said}")
        found = meaning(fault, asked, self._settings)
        return self._unschooled(found, asked) if isinstance(found, SchemaNotOffered) else found

    def _unschooled(self, error: SchemaNotOffered, asked: Asked) -> PipelineError:
        """Return the error for a server without schemas, and remember it; where they are a must, it is for good."""
        if asked.plan.structured == "schema":
            return ModelUnavailable(str(error), hint='set structured = "auto" for the model')
        self._learn(asked, asked.manners.without(SCHEMA))
        return error

    def _composed(self, call: ModelCall, *, streamed: bool) -> Asked:
        manners = self._known(self._settings.plan(call.stage).model)
        return compose(call, self._settings, manners, streamed=streamed)

    def _known(self, model: str) -> Manners:
        return self._manners.get(model, Manners())

    def _learn(self, asked: Asked, found: Manners) -> None:
        if found != asked.manners:
            self._manners[asked.plan.model] = self._known(asked.plan.model).joined(found)

    @asynccontextmanager
    async def _slot(self, spent: Spent) -> AsyncGenerator[None]:
        """Wait for one of the places of those who call at once, first come first served."""
        left = seconds_left(spent, self._clock())
        try:
            async with asyncio.timeout(None if math.isinf(left) else left):
                await self._slots.acquire()
        except TimeoutError:
            raise out_of_time(spent) from None
        try:
            yield
        finally:
            self._slots.release()

    def _timed(self, whole: ModelReply, tally: _Tally, started: float) -> ModelReply:
        return replace(whole, milliseconds=(self._clock() - started) * 1000, attempts=tally.tries)


def _was_taken(error: BaseException) -> bool:
    """Return whether a server may have worked on a call that ended so: a refused one cost nothing."""
    return not isinstance(error, Refusal) and (not isinstance(error, Passing) or error.taken)


def _final(fault: Passing, tally: _Tally, why: str = "") -> ModelUnavailable:
    tries = "" if tally.tries == 1 else f" ({tally.tries} tries)"
    return ModelUnavailable(f"{fault}{why}{tries}", hint=fault.hint)
