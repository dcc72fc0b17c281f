"""`footnote serve`, composed: the home, the sockets, the desk, the nights, the platforms that are configured.

All of them are blocks that are entered in order and left in the reverse: first nothing more is taken, then what is
under way, at the desk and at the sockets, is finished or put back, then everything is closed.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from bot import http
from bot.abreast import abreast
from bot.app import App, open_app
from bot.arriving import Arrivals, Opened, OpenPlatform
from bot.control.server import controlled
from bot.desk.desk import Desk
from bot.desk.opening import open_desk
from bot.lagging import watched
from bot.local_home import LocalHome
from bot.nights.nightly import nights
from bot.nights.telling import NightTelling
from bot.nights.watch import NightWatch
from bot.noticing import noticed
from bot.platform import Platform
from bot.redacting import redactor, secrets_in
from bot.refreshing.history import history_of
from bot.settings import Settings
from bot.settings_faults import lacking
from bot.stopping import Stopping, stoppable
from ingest.schedule import clock
from storage.examining import free_bytes
from storage.leases import new_owner

log = logging.getLogger(__name__)

LEAST_BYTES = 10_000_000
"""With less free space a turn's record may not find room."""


class Connecting(Protocol):
    """What says whether it is connected."""

    @property
    def ready(self) -> str:
        """Why it is not; empty where it is."""
        ...


async def serve(settings: Settings, platforms: Mapping[str, OpenPlatform]) -> None:
    """Serve until a signal asks to stop.

    Args:
        settings: What is configured.
        platforms: All that there are, by name; those that are not configured are passed over, and those that cannot
            be reached are tried until they can.

    Raises:
        SettingsError: A platform that is configured lacks something.
        HomeLocked: Another process owns the home.
        CannotListen: Another program listens at the address of `[http]`.
        PlatformError: A platform refuses us for good.
        StorageError: Something of the home cannot be used.
    """
    if fault := lacking(settings):
        raise fault
    with stoppable() as stopping:
        async with _serving(settings, platforms, stopping) as arrivals:
            await _until(stopping.asked, arrivals.failed)
            if arrivals.failure:
                raise arrivals.failure
            log.info("stopping")
    log.info("stopped")


@asynccontextmanager
async def _serving(
    settings: Settings, platforms: Mapping[str, OpenPlatform], stopping: Stopping
) -> AsyncIterator[Arrivals]:
    """Serve within the block, and give what is on its way. Commands are served first, and wait for no network."""
    async with AsyncExitStack() as stack:
        app = _considerate(await stack.enter_async_context(open_app(settings)))
        await stack.enter_async_context(watched())
        home, there = LocalHome(app), dict[str, Platform]()
        desk = open_desk(app, there)
        arrivals = Arrivals(app, desk, platforms)
        await stack.enter_async_context(arrivals.kept())
        await stack.enter_async_context(_hurrying(desk, stopping.hurried))
        holds, redact = checks(app, {one.name: one for one in arrivals.all}), redactor(secrets_in(settings))
        answers = http.application(holds, redact)
        control = controlled(home, settings.home, grace=settings.desk.grace_seconds, hurried=stopping.hurried)
        listening = http.listening(settings.http, answers, stopping.hurried)
        _, address, _ = await stack.enter_async_context(abreast(control, listening, desk.running()))

        async def arrived(opened: Opened) -> None:
            there[opened.platform.name] = opened.platform
            answers.router.routes.extend(opened.routes)
            await desk.take_up()

        told, watch, corpora = NightTelling(settings.schedule, there), watching(app), await home.corpora()
        await stack.enter_async_context(nights(settings, home.refresh, told, watch=watch, corpora=corpora))
        await stack.enter_async_context(arrivals.arriving(arrived))
        await _until(stopping.asked, arrivals.failed, arrivals.all_tried)
        if not arrivals.failure:
            # Whatever level is logged, that it serves, and where, is told.
            log.log(max(logging.INFO, log.getEffectiveLevel()), _ready(settings, address, arrivals))
            await stack.enter_async_context(noticed(http.Readiness(holds, redact)))
        yield arrivals


async def _until(*events: asyncio.Event) -> None:
    """Wait for the first of some events."""
    waiting = {asyncio.ensure_future(event.wait()) for event in events}
    try:
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()


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


def checks(app: App, platforms: Mapping[str, Connecting]) -> Mapping[str, http.Check]:
    """Return what must hold for questions to be answered, by the names under which `/readyz` tells what does not."""
    file = None if app.settings.database else app.settings.home / "footnote.db"
    begun = _identity(file)

    async def database() -> str:
        if file and _identity(file) != begun:
            return f"{file} is not the file any more that was opened: put it back, and start the server again."
        await app.queue.try_writing()
        return ""

    async def disk() -> str:
        free = await asyncio.to_thread(free_bytes, app.settings.home)
        return "" if free >= LEAST_BYTES else f"The disk that holds {app.settings.home} is full: free some space on it."

    async def index() -> str:
        store = app.passages
        await store.threads.read.run(store.lexical.count)
        await store.threads.read.run(store.dense.corpora)
        return ""

    async def model() -> str:
        if app.system != "extractive" and not app.model:
            return f"The system that answers, {app.system}, needs a model, and none is configured."
        return ""

    own = {"database": database, "disk": disk, "index": index, "model": model}
    return {**own, **{name: _connection(platform) for name, platform in platforms.items()}}


def _identity(file: Path | None) -> tuple[int, int] | None:
    """Return what tells a file from another one of its name; None where there is none."""
    try:
        found = file.stat() if file else None
    except OSError:
        return None
    return (found.st_dev, found.st_ino) if found else None


def _connection(platform: Connecting) -> http.Check:
    async def connected() -> str:
        return platform.ready

    return connected


def _considerate(app: App) -> App:
    """Return the app with refreshes that leave a core for questions."""
    return replace(app, passages=replace(app.passages, polite=True))


def _ready(settings: Settings, address: str, arrivals: Arrivals) -> str:
    where = f"ready: {address}, commands reach it through {settings.home}"
    there = [one.name for one in arrivals.all if one.connected]
    late = [one.name for one in arrivals.all if one.ready and not one.connected]
    said = (f"connected to {', '.join(there)}" if there else "", f"waiting for {', '.join(late)}" if late else "")
    connected = ", ".join(filter(None, said)) or "no platform is configured"
    nightly = settings.schedule.nightly
    return f"{where}; {connected}; " + (f"sources are read in at {nightly}" if nightly else "no nights are set")


def watching(app: App) -> NightWatch:
    """Return the nights as this process keeps them."""
    history = history_of(app.manifest.database)
    return NightWatch(history.nights, history.leases, new_owner(), clock)
