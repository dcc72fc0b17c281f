"""Call the model behind a server: wait for a slot, try, retry, and count usage.

`open_model` opens a model at once, `LazyModel` at its first call; a process that calls no model never imports `openai`.
"""

import asyncio
import math
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from pipeline.errors import ModelUnavailable, PipelineError, ReplyBroken, SchemaNotOffered
from pipeline.llm.chat_request import SCHEMA_ARGUMENT, ModelRequest, QuirkMemory, ServerQuirks, compose_request
from pipeline.llm.model import BudgetMeter, ModelCall, ModelReply, ReplyPiece
from pipeline.llm.model_reply import ReplyAccumulator, build_reply, find_objection, update_quirks
from pipeline.llm.model_settings import OPENAI_URL, ModelSettings
from pipeline.llm.server_errors import (
    MAX_WAIT_SECONDS,
    ServerRefusal,
    TransientError,
    backoff_seconds,
    describe_error,
    interpret_refusal,
)
from pipeline.llm.server_load import CallSample
from pipeline.llm.usage import deadline_error, remaining_seconds, reserve_budget

if TYPE_CHECKING:
    from pipeline.llm.server_connection import ServerResponse, Transport

PostRequest = Callable[[Mapping[str, Any]], AbstractAsyncContextManager["ServerResponse"]]
"""Sends arguments to a server; raises `ServerRefusal` and `TransientError`."""
ReplyParts = AsyncGenerator[ReplyPiece | ModelReply]
_FIRST_CHECK_SECONDS = 0.001


@dataclass(slots=True)
class CallTally:
    tries: int = 0
    faults: int = 0
    tokens: int = 0
    passed_on: bool = False  # whether a piece was passed on, after which the call cannot be retried
    sent: float | None = None  # when the last try was sent
    waiting: float = 0.0  # when the wait for the server began
    first: float | None = None  # seconds that the last try waited for the first piece
    reading: float = 0.0  # seconds that it waited for later pieces
    reply: int = 0  # tokens of its reply

    def send(self, now: float) -> None:
        self.sent = self.waiting = now
        self.first, self.reading, self.reply = None, 0.0, 0

    def receive(self, now: float) -> None:
        if self.first is None:
            self.first = now - self.waiting
        else:
            self.reading += now - self.waiting

    def count(self, reply: ModelReply) -> None:
        self.tokens += reply.prompt_tokens + reply.completion_tokens
        self.reply = reply.completion_tokens

    def sample(self, started: float, now: float) -> CallSample:
        waited, refused = (now if self.sent is None else self.sent) - started, min(self.faults, self.tries)
        if self.sent is None:
            return CallSample(waited, tries=self.tries, refused=refused)
        silent = self.first is None
        first = now - self.sent if self.first is None else self.first
        return CallSample(waited, first, silent, self.reading, self.reply, self.tries, refused)


class QuirkDiscovered(Exception):
    def __init__(self, quirks: ServerQuirks) -> None:
        super().__init__()
        self.quirks = quirks


_CallFault = SchemaNotOffered | ServerRefusal | TransientError | QuirkDiscovered
_Consequence = ServerQuirks | TransientError | PipelineError
"""The consequence of a fault: other arguments, another try, or the caller's error."""


class OpenAIModel:
    """An `LLM` behind one server, shared by all turns of a process."""

    def __init__(
        self,
        settings: ModelSettings,
        post: PostRequest,
        *,
        random: Random,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        observe: Callable[[CallSample], None] = lambda _: None,
    ) -> None:
        self._settings = settings
        self._observe = observe
        self._post = post
        self._random = random
        self._clock = clock
        self._sleep = sleep
        self._slots = asyncio.Semaphore(settings.max_concurrency)
        self._memory = QuirkMemory()

    def structured(self, stage: str) -> bool:
        plan = self._settings.plan(stage)
        return plan.structured != "text" and self._memory.of(plan.model).schema

    def busy(self) -> bool:
        return self._slots.locked()

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        async with aclosing(self._call_within_budget(call, spent, shown=False)) as parts:
            return [part async for part in parts if isinstance(part, ModelReply)][-1]

    async def stream(self, call: ModelCall, spent: BudgetMeter) -> ReplyParts:
        """Close the iterator to close the connection. A stream that breaks off after a piece is not retried."""
        async with aclosing(self._call_within_budget(call, spent, shown=True)) as parts:
            async for part in parts:
                yield part

    async def _call_within_budget(self, call: ModelCall, spent: BudgetMeter, *, shown: bool) -> ReplyParts:
        started, tally = self._clock(), CallTally()
        if call.schema is not None and not self.structured(call.stage):
            raise SchemaNotOffered(f"no schema is sent for stage {call.stage!r}")
        request = self._compose(call, shown=shown)
        reserved = request.prompt_tokens + (request.plan.max_tokens or call.max_tokens)
        reserve_budget(spent, reserved, started)
        try:
            async with aclosing(self._call_with_retries(call, spent, tally, shown=shown)) as parts:
                async for part in parts:
                    if isinstance(part, ModelReply):
                        taken = (self._clock() - started) * 1000
                        yield replace(part, milliseconds=taken, attempts=tally.tries)
                    else:
                        yield part
        except SchemaNotOffered:
            spent.calls -= 1  # it was never counted
            raise
        finally:
            spent.tokens += tally.tokens - reserved
            self._observe(tally.sample(started, self._clock()))

    async def _call_with_retries(
        self, call: ModelCall, spent: BudgetMeter, tally: CallTally, *, shown: bool
    ) -> ReplyParts:
        while True:
            request = self._compose(call, shown=shown)
            tally.tries += 1
            try:
                async with self._slot(spent), aclosing(self._attempt(request, spent, tally, call.note_lost)) as parts:
                    async for part in parts:
                        tally.passed_on = True
                        yield part
            except (SchemaNotOffered, ServerRefusal, TransientError, QuirkDiscovered) as fault:
                seconds = self._wait(self._interpret(fault, request, tally), request, spent, tally)
            else:
                return
            if seconds:
                await self._sleep(seconds)

    def _wait(self, consequence: _Consequence, request: ModelRequest, spent: BudgetMeter, tally: CallTally) -> float:
        """Return the seconds to wait before the next try. Raises the final error if there is none."""
        if isinstance(consequence, ServerQuirks):
            self._memory.learn(request.plan.model, consequence)
            return 0.0
        if isinstance(consequence, SchemaNotOffered):
            if request.plan.structured == "schema":
                raise ModelUnavailable(str(consequence), hint='set structured = "auto" for the model') from None
            self._memory.learn(request.plan.model, request.quirks.without(SCHEMA_ARGUMENT))
        if not isinstance(consequence, TransientError):
            raise consequence from None
        tally.faults += 1
        if tally.passed_on or tally.faults > min(self._settings.retries, consequence.tries or math.inf):
            raise _final_model_error(consequence, tally) from None
        seconds = backoff_seconds(tally.faults, self._random) if consequence.after is None else consequence.after
        if seconds > MAX_WAIT_SECONDS or seconds >= remaining_seconds(spent, self._clock()):
            why = f"; a retry would take {seconds:.0f} s, longer than is left"
            raise _final_model_error(consequence, tally, why) from None
        return seconds

    def _interpret(self, fault: _CallFault, request: ModelRequest, tally: CallTally) -> _Consequence:
        if isinstance(fault, QuirkDiscovered):
            return fault.quirks
        if not isinstance(fault, ServerRefusal):
            return fault
        if tally.passed_on:
            reason = describe_error(fault.body, self._settings.unspoken)
            message = f"the model server at {self._settings.server} broke off its reply: {reason}"
            return TransientError(message, hint="try again later")
        return interpret_refusal(fault, request, self._settings)

    def _compose(self, call: ModelCall, *, shown: bool) -> ModelRequest:
        quirks = self._memory.of(self._settings.plan(call.stage).model)
        return compose_request(call, self._settings, quirks, shown=shown)

    @asynccontextmanager
    async def _slot(self, spent: BudgetMeter) -> AsyncGenerator[None]:
        left = remaining_seconds(spent, self._clock())
        try:
            async with asyncio.timeout(None if math.isinf(left) else left):
                await self._slots.acquire()
        except TimeoutError:
            raise deadline_error(spent) from None
        try:
            yield
        finally:
            self._slots.release()

    async def _attempt(
        self,
        request: ModelRequest,
        spent: BudgetMeter,
        tally: CallTally,
        note_lost: Callable[[ModelReply], None] | None,
    ) -> ReplyParts:
        """Send a request once and yield its reply. Raises `ServerRefusal`, `TransientError`, `QuirkDiscovered`."""
        got = ReplyAccumulator(hold=request.hold)
        tally.send(self._clock())
        try:
            async with aclosing(self._payloads(request, spent)) as payloads:
                async for payload in payloads:
                    tally.receive(self._clock())
                    ready = got.add(payload)
                    self._stop_reasoning(got, request)
                    if ready and request.shown:
                        yield ReplyPiece(ready)
                    if got.detect_loop():
                        break  # closes the connection, which ends the server's work
                    tally.waiting = self._clock()
            rest = got.end()
            self._validate_reply(got, request)
            if rest and request.shown:
                yield ReplyPiece(rest)
        except BaseException as error:
            refused = isinstance(error, ServerRefusal) or (isinstance(error, TransientError) and not error.taken)
            if got.text or not refused:  # else it cost nothing
                lost = build_reply(got, request, self._settings)
                tally.count(lost)
                if note_lost:
                    note_lost(replace(lost, attempts=tally.tries))
            raise
        whole = build_reply(got, request, self._settings)
        tally.count(whole)
        yield whole

    async def _payloads(self, request: ModelRequest, spent: BudgetMeter) -> AsyncGenerator[Any]:
        """Yield the server's payloads; silence is a transient fault unless the turn's deadline has passed."""
        from pipeline.llm.server_connection import SilenceLimits, read_payloads  # imports openai

        settings, now = self._settings, self._clock()
        end = now + min(settings.timeout_seconds, remaining_seconds(spent, now))
        first = settings.first_token_seconds if request.shown else math.inf
        pace = SilenceLimits(self._clock, end, first, settings.idle_seconds)
        try:
            async with AsyncExitStack() as stack:
                async with asyncio.timeout(pace.allowed(first)):
                    response = await stack.enter_async_context(self._post(request.arguments))
                values = read_payloads(response, tokens=request.reply_tokens, pace=pace, server=settings.server)
                async for value in await stack.enter_async_context(aclosing(values)):
                    yield value
        except TimeoutError:
            if spent.deadline is not None and self._clock() >= spent.deadline - _FIRST_CHECK_SECONDS:
                raise deadline_error(spent) from None
            hint = "raise timeout_seconds of the model, or set a faster one"
            raise TransientError(f"the model server at {settings.server} fell silent", hint=hint, tries=1) from None

    def _stop_reasoning(self, got: ReplyAccumulator, request: ModelRequest) -> None:
        if got.filter.late:  # an end tag shows that the pieces passed on were reasoning
            self._memory.learn(request.plan.model, update_quirks(got, request.quirks))
            raise TransientError(f"the reasoning of {request.plan.model} came as its reply", hint="ask again")

    def _validate_reply(self, got: ReplyAccumulator, request: ModelRequest) -> None:
        self._memory.learn(request.plan.model, update_quirks(got, request.quirks))
        if not got.complete:
            raise TransientError(
                f"the model server at {self._settings.server} broke off its reply", hint="try again later"
            )
        verdict = find_objection(got, request, self._settings)
        if isinstance(verdict, ServerQuirks):
            raise QuirkDiscovered(verdict)
        if verdict is not None:
            raise verdict


def _final_model_error(fault: TransientError, tally: CallTally, why: str = "") -> ModelUnavailable:
    tries = "" if tally.tries == 1 else f" ({tally.tries} tries)"
    kind = ReplyBroken if tally.passed_on else ModelUnavailable
    return kind(f"{fault}{why}{tries}", hint=fault.hint)


@asynccontextmanager
async def open_model(
    settings: ModelSettings,
    *,
    random: Random | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    observe: Callable[[CallSample], None] = lambda _: None,
) -> AsyncGenerator[OpenAIModel]:
    """Open a model with complete settings; its connections are closed on exit. Nothing is sent yet.

    `random` spreads the waits between tries; `clock` is that of `BudgetMeter.deadline`; `observe` receives each call's
    measurements. Raises `ModelUnavailable`.
    """
    validate_settings(settings)
    transport = (await asyncio.to_thread(_prepare_transport, settings))()
    try:
        chance = random or Random()  # noqa: S311 - it spreads waits, and keeps no secret
        yield OpenAIModel(settings, transport.post, random=chance, clock=clock, sleep=sleep, observe=observe)
    finally:
        await transport.close()


class LazyModel:
    """An `LLM` that is opened by its first call, so that faulty settings affect only turns that call it."""

    def __init__(
        self, settings: ModelSettings, stack: AsyncExitStack, observe: Callable[[CallSample], None] = lambda _: None
    ) -> None:
        self._settings = settings
        self._stack = stack
        self._observe = observe
        self._opening = asyncio.Lock()
        self._opened: OpenAIModel | None = None

    def structured(self, stage: str) -> bool:
        return self._opened.structured(stage) if self._opened else self._settings.plan(stage).structured != "text"

    def busy(self) -> bool:
        return self._opened is not None and self._opened.busy()

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        return await (await self.open()).complete(call, spent)

    async def stream(self, call: ModelCall, spent: BudgetMeter) -> AsyncGenerator[ReplyPiece | ModelReply, None]:
        async with aclosing((await self.open()).stream(call, spent)) as parts:
            async for part in parts:
                yield part

    async def open(self) -> OpenAIModel:
        """Open the model once; nothing is sent. Raises `ModelUnavailable`."""
        async with self._opening:
            if self._opened is None:
                self._opened = await self._stack.enter_async_context(open_model(self._settings, observe=self._observe))
            return self._opened


def _prepare_transport(settings: ModelSettings) -> "Callable[[], Transport]":
    """Return a function that opens a transport on the event loop. Blocks for a second: it imports `openai`."""
    from pipeline.llm.server_connection import Transport, find_server

    return partial(Transport, settings, find_server(settings))


def validate_settings(settings: ModelSettings) -> None:
    """Raise `ModelUnavailable` unless the settings name a model, its server and a key where one is needed."""
    azure = settings.api == "azure"
    needs_key = azure or (settings.base_url or OPENAI_URL).rstrip("/") == OPENAI_URL
    missing = (
        ("name", not settings.name, "OPENAI_MODEL"),
        ("base_url", azure and not settings.base_url, "AZURE_OPENAI_ENDPOINT"),
        ("api_version", azure and not settings.api_version, "OPENAI_API_VERSION"),
        ("api_key", needs_key and not settings.secrets, "AZURE_OPENAI_API_KEY" if azure else "OPENAI_API_KEY"),
    )
    for setting, is_missing, variable in missing:
        if is_missing:
            raise ModelUnavailable(
                f"no {setting} is set for the model", hint=f"set {setting} of the model, or {variable}"
            )
    if settings.base_url and not settings.base_url.startswith(("http://", "https://")):
        raise ModelUnavailable(
            "base_url of the model is not an address", hint='it must begin with "http://" or "https://"'
        )
    if not all(secret.isascii() and secret.isprintable() and " " not in secret for secret in settings.secrets):
        raise ModelUnavailable(
            "the key of the model is not a valid key", hint="it must be one line of ASCII, without blanks"
        )
