"""Open the home once for all calls in progress, and close it between calls, so that other processes can use it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

from bot.access import Asker
from bot.desk.supervisor import TaskSupervisor
from bot.server.service import BotService


class SharedHome:
    """Lends the service of a home. The first call opens the home; it is closed when the last call in progress ends."""

    def __init__(self, open_home: "Callable[[], AbstractAsyncContextManager[BotService]]") -> None:
        self._open_home = open_home
        self._turn = asyncio.Lock()  # held while the home is opened or closed
        self._calls = 0
        self._opened: tuple[BotService, AsyncExitStack] | None = None
        self._closing = TaskSupervisor()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Allow lending within the block; at its end, wait until the home is closed."""
        async with self._closing.kept():
            yield

    @asynccontextmanager
    async def lend(self, _: Asker) -> AsyncIterator[BotService]:
        """Yield the service within the block. Raises whatever opening the home raises."""
        self._calls += 1
        try:
            yield await self._open()
        finally:
            self._calls -= 1
            # In its own task, as a cancelled caller could not wait for it.
            self._closing.spawn(self._close_unused())

    async def _open(self) -> BotService:
        async with self._turn:
            if self._opened is None:
                async with AsyncExitStack() as stack:
                    service = await stack.enter_async_context(self._open_home())
                    self._opened = service, stack.pop_all()
            return self._opened[0]

    async def _close_unused(self) -> None:
        async with self._turn:
            if self._opened and not self._calls:
                _, stack = self._opened
                self._opened = None
                await stack.aclose()
