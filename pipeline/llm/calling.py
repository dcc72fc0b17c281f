"""The language model behind a server: waits its turn, tries again, and keeps count; `trying` is each try."""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from random import Random

from pipeline.errors import ModelUnavailable, PipelineError, ReplyBroken, SchemaNotOffered
from pipeline.llm.budgeting import out_of_time, reserve, seconds_left, settle, waive
from pipeline.llm.composing import Asked, compose
from pipeline.llm.manners import SCHEMA, Manners, Memory
from pipeline.llm.refusals import Refusal, meaning
from pipeline.llm.retrying import PATIENCE_SECONDS, Passing, backoff
from pipeline.llm.saying import said_by
from pipeline.llm.settings import ModelSettings
from pipeline.llm.trying import Learned, Parts, Post, Tally, Tries
from pipeline.model import ModelCall, ModelReply, Spent


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
        self._random = random
        self._clock = clock
        self._sleep = sleep
        self._slots = asyncio.Semaphore(settings.max_concurrency)
        self._memory = Memory()
        self._tries = Tries(settings, post, self._memory, clock)

    def structured(self, stage: str) -> bool:
        """Return whether calls of a stage may carry a schema, as far as is known now."""
        plan = self._settings.plan(stage)
        return plan.structured != "text" and self._memory.of(plan.model).schema

    def busy(self) -> bool:
        """Return whether all places are taken by calls under way."""
        return self._slots.locked()

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
        started, tally = self._clock(), Tally()
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

    async def _tried(self, call: ModelCall, spent: Spent, tally: Tally, *, streamed: bool) -> Parts:
        while True:
            asked = self._composed(call, streamed=streamed)
            tally.tries += 1
            try:
                async with self._slot(spent), aclosing(self._tries.once(asked, spent, tally)) as parts:
                    async for part in parts:
                        tally.given = True
                        yield part
            except SchemaNotOffered as error:
                raise self._unschooled(error, asked) from None
            except (Refusal, Passing, Learned) as fault:
                seconds = self._wait(fault, asked, spent, tally)
            else:
                return
            if seconds:
                await self._sleep(seconds)

    def _wait(self, fault: Refusal | Passing | Learned, asked: Asked, spent: Spent, tally: Tally) -> float:
        """Return how many seconds to wait before the next try. Raises what the caller gets, if there is none."""
        found = self._found(fault, asked, tally)
        if isinstance(found, Manners):
            self._memory.learn(asked.plan.model, found)
            return 0.0
        if isinstance(found, SchemaNotOffered):
            raise self._unschooled(found, asked) from None
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
        self, fault: Refusal | Passing | Learned, asked: Asked, tally: Tally
    ) -> Manners | Passing | PipelineError:
        if isinstance(fault, Learned):
            return fault.manners
        if isinstance(fault, Passing):
            return fault
        if tally.given:
            said = said_by(fault.body, self._settings.unspoken)
            message = f"the model server at {self._settings.server} broke off its reply: {said}"
            return Passing(message, hint="try again later")
        return meaning(fault, asked, self._settings)

    def _unschooled(self, error: SchemaNotOffered, asked: Asked) -> PipelineError:
        """Return the error for a server without schemas, and remember it; where they are a must, it is for good."""
        if asked.plan.structured == "schema":
            return ModelUnavailable(str(error), hint='set structured = "auto" for the model')
        self._memory.learn(asked.plan.model, asked.manners.without(SCHEMA))
        return error

    def _composed(self, call: ModelCall, *, streamed: bool) -> Asked:
        manners = self._memory.of(self._settings.plan(call.stage).model)
        return compose(call, self._settings, manners, streamed=streamed)

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

    def _timed(self, whole: ModelReply, tally: Tally, started: float) -> ModelReply:
        return replace(whole, milliseconds=(self._clock() - started) * 1000, attempts=tally.tries)


def _final(fault: Passing, tally: Tally, why: str = "") -> ModelUnavailable:
    tries = "" if tally.tries == 1 else f" ({tally.tries} tries)"
    kind = ReplyBroken if tally.given else ModelUnavailable
    return kind(f"{fault}{why}{tries}", hint=fault.hint)
