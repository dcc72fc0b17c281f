"""`footnote serve`, composed: the home, the desk, the platforms that are configured, the nights, the sockets.

All of them are blocks that are entered in order and left in the reverse: first nothing more is taken, then what is
under way is finished or put back, then everything is closed.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from starlette.routing import BaseRoute

from bot import http
from bot.app import App, open_app
from bot.control.server import controlled
from bot.desk.desk import Desk
from bot.desk.opening import open_desk
from bot.desk.types import Place
from bot.lagging import watched
from bot.local_home import LocalHome
from bot.nightly import Night, nights
from bot.platform import Platform
from bot.redacting import redactor, secrets_in
from bot.settings import Settings
from bot.stopping import stoppable

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Opened:
    """A platform that is configured, and what of it the HTTP server serves."""

    platform: Platform
    routes: tuple[BaseRoute, ...] = ()


OpenPlatform = Callable[[App, Desk], AbstractAsyncContextManager[Opened | None]]
"""Opens a platform that hands what happens there to the desk; None where it is not configured."""


async def serve(settings: Settings, platforms: Sequence[OpenPlatform]) -> None:
    """Serve until a signal asks to stop.

    Args:
        settings: What is configured.
        platforms: All that there are; those that are not configured are passed over.

    Raises:
        HomeLocked: Another process owns the home.
        CannotListen: Another program listens at the address of `[http]`.
        PlatformError: A platform refuses us.
        StorageError: Something of the home cannot be used.
    """
    with stoppable() as stopping:
        async with _serving(settings, platforms, stopping.hurried) as ready:
            # Whatever level is logged, that it serves, and where, is told.
            log.log(max(logging.INFO, log.getEffectiveLevel()), ready)
            await stopping.asked.wait()
            log.info("stopping")
    log.info("stopped")


@asynccontextmanager
async def _serving(settings: Settings, platforms: Sequence[OpenPlatform], hurried: asyncio.Event) -> AsyncIterator[str]:
    """Serve within the block, and give a line that says where."""
    async with AsyncExitStack() as stack:
        app = _considerate(await stack.enter_async_context(open_app(settings)))
        await stack.enter_async_context(watched())
        home, there = LocalHome(app), dict[str, Platform]()
        desk = open_desk(app, there)
        opened = [await stack.enter_async_context(open_platform(app, desk)) for open_platform in platforms]
        configured = [one for one in opened if one]
        there |= {one.platform.name: one.platform for one in configured}
        await stack.enter_async_context(_hurrying(desk, hurried))
        await stack.enter_async_context(desk.running())
        routes = [route for one in configured for route in one.routes]
        answers = http.application(checks(app, there.values()), redactor(secrets_in(settings)), routes)
        address = await stack.enter_async_context(http.listening(settings.http, answers, hurried))
        await stack.enter_async_context(controlled(home, settings.home, hurried))
        told, corpora = telling(settings, there), await home.corpora()
        await stack.enter_async_context(nights(settings, home.refresh, told, corpora=corpora))
        for platform in there.values():
            await stack.enter_async_context(platform.connected())
        yield _ready(settings, address, [*there])


@asynccontextmanager
async def _hurrying(desk: Desk, hurried: asyncio.Event) -> AsyncIterator[None]:
    """Hurry the desk within the block as soon as we are."""

    async def hurry() -> None:
        await hurried.wait()
        desk.hurry()

    task = asyncio.create_task(hurry(), name="hurry")
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def checks(app: App, platforms: Iterable[Platform]) -> Mapping[str, http.Check]:
    """Return what must hold for questions to be answered, by the names under which `/readyz` tells what does not."""

    async def database() -> str:
        # Renews nobody's questions: it writes nothing, and yet fails where nothing can be written.
        await app.queue.renew("", datetime.now(UTC))
        return ""

    async def index() -> str:
        store = app.passages
        await store.threads.read.run(store.lexical.count)
        await store.threads.read.run(store.dense.corpora)
        return ""

    async def model() -> str:
        if app.system != "extractive" and not app.model:
            return f"The system that answers, {app.system}, needs a model, and none is configured."
        return ""

    return {"database": database, "index": index, "model": model, **{p.name: _connection(p) for p in platforms}}


def _connection(platform: Platform) -> http.Check:
    async def connected() -> str:
        return platform.ready

    return connected


def _considerate(app: App) -> App:
    """Return the app with refreshes that leave a core for questions."""
    return replace(app, passages=replace(app.passages, polite=True))


def _ready(settings: Settings, address: str, platforms: Sequence[str]) -> str:
    where = f"ready: {address}, commands reach it through {settings.home}"
    connected = f"connected to {', '.join(platforms)}" if platforms else "no platform is configured"
    nightly = settings.schedule.nightly
    return f"{where}; {connected}; " + (f"sources are read in at {nightly}" if nightly else "no nights are set")


def telling(settings: Settings, platforms: Mapping[str, Platform]) -> Callable[[Night], Awaitable[None]]:
    """Return what hears of a night: the log, and the channel of the admins."""

    async def told(night: Night) -> None:
        lines = [*night.lines()]
        for line in lines:
            log.info("last night: %s", line)
        name, _, rest = settings.schedule.admin_channel.partition(":")
        if platform := platforms.get(name):
            workspace, _, channel = rest.partition("/")
            await platform.call(Place(name, workspace, channel), "\n".join(lines), people=())

    return told
