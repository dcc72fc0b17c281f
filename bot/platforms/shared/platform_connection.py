"""Open and connect the platforms of a server concurrently; retry those that are unreachable."""

import asyncio
import itertools
import logging
import pkgutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from starlette.routing import BaseRoute

from bot.app import App
from bot.desk.desk import Desk
from bot.desk.platform_port import Platform, PlatformError, PlatformUnavailable
from bot.desk.supervisor import compute_backoff, run_beside, wait_for_first
from bot.settings.live.channel_names import ListChannels
from bot.settings.platform_registry import PlatformEntry

log = logging.getLogger(__name__)

T = TypeVar("T")

AGAIN_SECONDS, LONGEST_SECONDS = 5.0, 60.0  # the first and the longest wait before a retry
STARTUP_SECONDS = 5.0  # before a server reports that it serves without some platforms


@dataclass(frozen=True, slots=True)
class OpenedPlatform:
    """An opened platform, its HTTP routes, and what it can do for the server."""

    platform: Platform
    routes: tuple[BaseRoute, ...] = ()
    channels: ListChannels | None = None
    """Lists the bot's channels, to resolve channel names in the settings; None if unsupported."""
    refused: Callable[[], Awaitable[PlatformError]] | None = None
    """Waits until the opened platform refuses us permanently, and returns why; None if unsupported."""


OpenPlatform = Callable[[App, Desk], AbstractAsyncContextManager[OpenedPlatform | None]]
"""Opens a platform that passes its events to the desk; None if it is not configured."""


@asynccontextmanager
async def open_platform(entry: PlatformEntry, app: App, desk: Desk) -> AsyncIterator[OpenedPlatform | None]:
    """Open a platform for `footnote serve`; yield None if it is not configured. Raises what its opener raises."""
    if not entry.read(app.settings).configured:
        yield None
        return
    opener: OpenPlatform = pkgutil.resolve_name(entry.opener)
    async with opener(app, desk) as opened:
        yield opened


ConnectedPlatform = Callable[[OpenedPlatform], Awaitable[None]]
Sleep = Callable[[float], Awaitable[object]]


class PlatformConnection:
    """One platform, from the first attempt to open it until it is closed."""

    def __init__(
        self,
        name: str,
        opening: Callable[[], AbstractAsyncContextManager[OpenedPlatform | None]],
        failed: asyncio.Event,
    ) -> None:
        self.name, self._opening, self._failed = name, opening, failed
        self._platform: Platform | None = None
        self._reason = f"{name.capitalize()} has not answered yet."
        self._is_alone: Callable[[], bool] = bool
        self._refused = False
        self.tried = asyncio.Event()
        """Set once the first attempt to open it has ended: it is connected, unreachable, failed or not configured."""
        self.connected = False
        self.failure: Exception | None = None
        self._leaving, self._left, self._closing = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def ready(self) -> str:
        """Why no events arrive from the platform now; empty if they arrive, or if the platform is not configured."""
        return self._platform.ready if self.connected and self._platform else self._reason

    @property
    def is_hopeful(self) -> bool:
        return not self._refused and (self.connected or bool(self._reason))

    def begin(self, arrived: ConnectedPlatform, sleep: Sleep, alone: Callable[[], bool]) -> None:
        """Start to open the platform in the background. `alone` returns whether it is the only platform served."""
        self._is_alone = alone
        self._task = asyncio.create_task(self._run(arrived, sleep), name=f"platform {self.name}")

    async def leave(self) -> None:
        """Stop accepting events. What was opened stays open until `close`."""
        self._leaving.set()
        if self._task:
            if not (self.connected or self._left.is_set()):
                self._task.cancel()
            await wait_for_first(self._left.wait(), self._task)

    async def close(self) -> None:
        self._closing.set()
        if self._task:
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self, arrived: ConnectedPlatform, sleep: Sleep) -> None:
        async with AsyncExitStack() as stack:
            try:
                if opened := await self._open(stack, sleep):
                    await arrived(opened)
                    await self._hold(opened)
            except asyncio.CancelledError:
                # Leaving cancels an unfinished opening; an opened platform may still be posted to.
                if not self._leaving.is_set():
                    raise
            except Exception as error:  # noqa: BLE001 - any error ends the server
                self.failure, self._reason = error, str(error)
                self._failed.set()
            self.tried.set()
            self._left.set()
            await self._closing.wait()

    async def _open(self, stack: AsyncExitStack, sleep: Sleep) -> OpenedPlatform | None:
        for attempt in itertools.count():
            try:
                opened = await stack.enter_async_context(self._opening())
            except PlatformUnavailable as error:
                wait = compute_backoff(attempt, first=AGAIN_SECONDS, longest=LONGEST_SECONDS)
                self._reason = str(error)
                log.warning("cannot reach %s; retrying", self.name, extra={"cause": str(error), "again": wait})
                self.tried.set()
                await sleep(wait)
            else:
                self._reason = f"The connection to {self.name.capitalize()} is not open." if opened else ""
                return opened
        raise AssertionError

    async def _hold(self, opened: OpenedPlatform) -> None:
        self._platform = platform = opened.platform
        async with platform.connected():
            late, self.connected = self.tried.is_set(), True
            self.tried.set()
            if late:
                log.info("connected to %s", self.name)
            try:
                await self._wait_until_left(opened)
            finally:
                self.connected, self._reason = False, ""

    async def _wait_until_left(self, opened: OpenedPlatform) -> None:
        """Wait until `leave` is called. If the platform refuses the bot and is the only one served, raise its error."""
        if opened.refused:
            async with run_beside(_await(opened.refused), name="platform refusal") as refusal:
                await wait_for_first(self._leaving.wait(), refusal)
                if refusal.done() and not self._leaving.is_set():
                    self._refused = True
                    if self._is_alone():
                        raise refusal.result()
                    log.error("%s refuses the bot; other platforms continue", self.name)
        await self._leaving.wait()


async def _await(work: Callable[[], Awaitable[T]]) -> T:
    return await work()


class PlatformConnections:
    def __init__(self, app: App, desk: Desk, platforms: Mapping[str, OpenPlatform]) -> None:
        self.failed = asyncio.Event()  # a platform refuses us permanently, or its opening failed
        self.all_tried = asyncio.Event()  # each platform was tried, or is late
        self.all = tuple(
            PlatformConnection(name, partial(open_platform, app, desk), self.failed)
            for name, open_platform in platforms.items()
        )

    @property
    def failure(self) -> Exception | None:
        return next((connection.failure for connection in self.all if connection.failure), None)

    @asynccontextmanager
    async def kept(self) -> AsyncIterator[None]:
        """Close the opened platforms at the end of the block."""
        try:
            yield
        finally:
            await asyncio.gather(*(connection.close() for connection in self.all))

    @asynccontextmanager
    async def arriving(self, arrived: ConnectedPlatform, *, sleep: Sleep = asyncio.sleep) -> AsyncIterator[None]:
        """Open and connect the platforms within the block; `failed` is set if one fails permanently.

        `arrived` is called with each opened platform before it accepts events.
        """
        for connection in self.all:
            connection.begin(arrived, sleep, partial(self._is_alone, connection))
        try:
            async with run_beside(self._wait_until_tried(), name="platforms tried"):
                yield
        finally:
            await asyncio.gather(*(connection.leave() for connection in self.all))

    def _is_alone(self, connection: PlatformConnection) -> bool:
        return not any(other.is_hopeful for other in self.all if other is not connection)

    async def _wait_until_tried(self) -> None:
        """Set `all_tried` once each platform was tried, or after a short wait."""
        with suppress(TimeoutError):
            async with asyncio.timeout(STARTUP_SECONDS):
                await asyncio.gather(*(connection.tried.wait() for connection in self.all))
        self.all_tried.set()
