"""Watch whether the model can be called: by the outcome of calls, and by a short probe if that is unclear."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import aclosing, contextmanager

from bot.views.error_messages import explain_error
from pipeline.errors import ModelRefused, ModelUnavailable
from pipeline.llm.model import LLM, Budget, BudgetMeter, ChatMessage, ModelCall, ModelReply, ReplyPiece

PROBE_SECONDS = 60.0  # between two probes while it fails
_PATIENCE = 30.0
_PROBE = ModelCall("query", (ChatMessage("user", "Say yes."),), max_tokens=16)


class WatchedModel:
    """An `LLM` whose state is known: it is probed at the start, and after a failed call until it answers."""

    def __init__(self, llm: LLM) -> None:
        self._llm, self._doubted = llm, asyncio.Event()
        self._doubted.set()
        self.fault = "Its first check is not finished yet."
        """Why it cannot be called, in a line; empty if it can."""

    def structured(self, stage: str) -> bool:
        return self._llm.structured(stage)

    def busy(self) -> bool:
        return self._llm.busy()

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        with self._noting():
            return await self._llm.complete(call, spent)

    async def stream(self, call: ModelCall, spent: BudgetMeter) -> AsyncGenerator[ReplyPiece | ModelReply, None]:
        with self._noting():
            async with aclosing(self._llm.stream(call, spent)) as parts:  # type: ignore[type-var]
                async for part in parts:
                    yield part

    async def watch(self, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep) -> None:
        """Probe the model whenever its state is in doubt, until cancelled."""
        while True:
            await self._doubted.wait()
            await self._probe()
            if self._doubted.is_set():
                await sleep(PROBE_SECONDS)

    async def _probe(self) -> None:
        try:
            async with asyncio.timeout(_PATIENCE):
                await self._llm.complete(_PROBE, BudgetMeter(Budget()))
        except ModelRefused:  # a refusal is an answer
            self._trust()
        except TimeoutError:
            self.fault = f"The model does not answer within {_PATIENCE:g} seconds."
        except Exception as error:  # noqa: BLE001 - whatever it is, the model cannot be called
            self.fault = explain_error(error).line()
        else:
            self._trust()

    @contextmanager
    def _noting(self) -> Iterator[None]:
        try:
            yield
        except ModelRefused:
            self._trust()
            raise
        except ModelUnavailable:
            self._doubted.set()
            raise
        else:
            self._trust()

    def _trust(self) -> None:
        self._doubted.clear()
        self.fault = ""
