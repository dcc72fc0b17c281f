"""A language model that is opened when it is first asked: who asks none does not wait for its client to be imported."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing

from pipeline.llm.calling import OpenAIModel
from pipeline.llm.opening import open_model
from pipeline.llm.settings import ModelSettings
from pipeline.model import ModelCall, ModelReply, Piece, Spent


class LazyModel:
    """An `LLM`. What is wrong with its settings is said by the first call, so that all else works without it."""

    def __init__(self, settings: ModelSettings, stack: AsyncExitStack) -> None:
        """Take what is set, and the stack that closes the model in the end."""
        self._settings = settings
        self._stack = stack
        self._opening = asyncio.Lock()
        self._opened: OpenAIModel | None = None

    def structured(self, stage: str) -> bool:
        """Return whether calls of a stage may carry a schema, as far as is known now."""
        return self._opened.structured(stage) if self._opened else self._settings.plan(stage).structured != "text"

    def busy(self) -> bool:
        """Return whether a call would have to wait for its place now."""
        return self._opened is not None and self._opened.busy()

    async def complete(self, call: ModelCall, spent: Spent) -> ModelReply:
        """Ask once and wait for the whole reply. Raises as `LLM` says."""
        return await (await self._model()).complete(call, spent)

    async def stream(self, call: ModelCall, spent: Spent) -> AsyncGenerator[Piece | ModelReply, None]:
        """Ask once: pieces as they arrive, and last the whole reply. Raises as `LLM` says."""
        async with aclosing((await self._model()).stream(call, spent)) as parts:
            async for part in parts:
                yield part

    async def _model(self) -> OpenAIModel:
        async with self._opening:
            if self._opened is None:
                self._opened = await self._stack.enter_async_context(open_model(self._settings))
            return self._opened
