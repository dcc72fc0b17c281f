"""A model that opens its connection at the first call, so that wrong settings stop only the calls."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing

from pipeline.llm.model_client import OpenAIModel, open_model
from pipeline.llm.model_settings import ModelSettings
from pipeline.llm.server_load import CallSample
from pipeline.model import BudgetMeter, ModelCall, ModelReply, ReplyPiece


class LazyModel:
    """An `LLM` whose first call reports faults of its settings; everything else works without it."""

    def __init__(
        self, settings: ModelSettings, stack: AsyncExitStack, observe: Callable[[CallSample], None] = lambda _: None
    ) -> None:
        """Take the settings, the stack that closes the connection, and an observer of each call's cost."""
        self._settings = settings
        self._stack = stack
        self._observe = observe
        self._opening = asyncio.Lock()
        self._opened: OpenAIModel | None = None

    def structured(self, stage: str) -> bool:
        """Return whether calls of a stage may carry a schema, as far as is known now."""
        return self._opened.structured(stage) if self._opened else self._settings.plan(stage).structured != "text"

    def busy(self) -> bool:
        """Return whether a call would have to wait for its place now."""
        return self._opened is not None and self._opened.busy()

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        return await (await self.open()).complete(call, spent)

    async def stream(self, call: ModelCall, spent: BudgetMeter) -> AsyncGenerator[ReplyPiece | ModelReply, None]:
        async with aclosing((await self.open()).stream(call, spent)) as parts:
            async for part in parts:
                yield part

    async def open(self) -> OpenAIModel:
        """Open it unless it is open; nothing is sent. Raises `ModelUnavailable`."""
        async with self._opening:
            if self._opened is None:
                self._opened = await self._stack.enter_async_context(open_model(self._settings, observe=self._observe))
            return self._opened
