"""Compose and run `footnote serve`: the service, the sockets, the desk, the nights, the configured platforms.

All are blocks that are entered in order and left in reverse: first nothing more is accepted, then work in progress, at
the desk and at the sockets, is finished or put back, then everything is closed.
"""

import asyncio
import importlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from starlette.routing import BaseRoute

from bot.answering.question_answering import close_abandoned
from bot.app import App
from bot.desk.desk import Desk
from bot.desk.platform_port import Platform
from bot.desk.supervisor import run_beside, wait_for_first
from bot.desk.turn_policy import open_desk
from bot.platforms.shared.platform_connection import OpenedPlatform, OpenPlatform, PlatformConnections
from bot.server import http_server
from bot.server.control.control_server import serve_control
from bot.server.idle_embedding import IdleEmbedding, embed_when_idle
from bot.server.monitoring.health import Readiness, build_readiness_checks, watch_event_loop, watch_readiness
from bot.server.monitoring.model_health import WatchedModel
from bot.server.monitoring.server_log import build_live_redactor
from bot.server.monitoring.systemd import READY, STOPPING, build_notify, keep_alive
from bot.server.monitoring.telemetry import StateReader, open_telemetry
from bot.server.record_upkeep import RecordUpkeep, build_outlets, keep_record
from bot.server.refresh.citation_recheck import CitationRecheck, keep_citations
from bot.server.refresh.following import keep_following
from bot.server.refresh.nightly import NightLease, NightNotifier, schedule_nights
from bot.server.refresh.run_history import build_history
from bot.server.service import LocalService, load_ahead
from bot.server.settings_reload import SettingsReload
from bot.settings.errors import join_errors
from bot.settings.live.live_settings import LiveSettings, SettingsSource
from bot.settings.live.scope_record import ScopeRecord
from bot.settings.settings_errors import find_serving_faults
from bot.settings.tables.settings_tables import Settings
from bot.wiring import build_records, open_app
from ingest.refresh.night_schedule import system_clock
from pipeline.llm.model import LLM
from storage.database.refresh_log import make_owner_id


@asynccontextmanager
async def exit_in_parallel(*blocks: AbstractAsyncContextManager[Any]) -> AsyncIterator[tuple[Any, ...]]:
    """Enter blocks in order, and exit them concurrently; give what each gives.

    Raises what entering one raises; what was entered before is left then. Of what leaving raises, the first.
    """
    stacks = [AsyncExitStack() for _ in blocks]
    try:
        yield tuple([await stack.enter_async_context(block) for stack, block in zip(stacks, blocks, strict=True)])
    finally:
        left = await asyncio.gather(*(stack.aclose() for stack in stacks), return_exceptions=True)
        for error in left:
            if isinstance(error, BaseException):
                raise error


STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)


@dataclass(frozen=True, slots=True)
class StopRequest:
    """What signals have asked for."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """To stop: accept nothing more, and let work in progress finish for a while."""
    hurried: asyncio.Event = field(default_factory=asyncio.Event)
    """To finish nothing any more: work in progress is put back."""

    def hear(self) -> None:
        if self.asked.is_set():
            self.hurried.set()
        self.asked.set()


@contextmanager
def handle_stop_signals() -> Iterator[StopRequest]:
    """Collect stop signals within the block; they do nothing else."""
    loop, stopping = asyncio.get_running_loop(), StopRequest()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stopping.hear)
    try:
        yield stopping
    finally:
        for number in STOP_SIGNALS:
            loop.remove_signal_handler(number)


@contextmanager
def handle_reload_signals(
    stopping: StopRequest,
    has_terminal: Callable[[], bool] = lambda: sys.stderr.isatty(),  # noqa: PLW0108 - of now
) -> Iterator[asyncio.Event]:
    """Give an event within the block that is set whenever a signal asks to read the settings again.

    The same signal says that the terminal was closed which the server was started from: it stops then.
    """
    loop, asked, had_terminal = asyncio.get_running_loop(), asyncio.Event(), has_terminal()

    def hear() -> None:
        if had_terminal and not has_terminal():
            stopping.hear()
        else:
            asked.set()

    loop.add_signal_handler(signal.SIGHUP, hear)
    try:
        yield asked
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


log = logging.getLogger(__name__)


async def serve(
    source: SettingsSource,
    platforms: Mapping[str, OpenPlatform],
    read: Callable[[], Settings] | None = None,
) -> None:
    """Serve until a signal asks to stop. Platforms that cannot be reached are tried until they can.

    `read` reads the settings again when somebody asks for that; it blocks.

    Raises `SettingsError`, `HomeLocked`, `CannotListen`, `StorageError`, and `PlatformError` where one refuses us.
    """
    live = source if isinstance(source, LiveSettings) else LiveSettings(source)
    if faults := find_serving_faults(live.current):
        raise join_errors(faults)
    start = live.current
    with handle_stop_signals() as stopping, handle_reload_signals(stopping) as asked:
        async with _run_server(live, read or (lambda: start), platforms, stopping, asked) as arrivals:
            await wait_for_first(stopping.asked.wait(), arrivals.failed.wait())
            if arrivals.failure:
                raise arrivals.failure
            log.info("stopping")
    log.info("stopped")


@asynccontextmanager
async def _run_server(
    live: LiveSettings,
    read: Callable[[], Settings],
    platforms: Mapping[str, OpenPlatform],
    stopping: StopRequest,
    asked: asyncio.Event,
) -> AsyncIterator[PlatformConnections]:
    """Serve within the block, and give the connections. Commands are served first, and wait for no network."""
    settings = live.current
    async with AsyncExitStack() as stack:
        notify = build_notify(os.environ)
        await stack.enter_async_context(keep_alive(notify, os.environ))
        telemetry = await stack.enter_async_context(open_telemetry(settings.http, os.environ))
        opened_app = await stack.enter_async_context(open_app(live))
        app = replace(
            opened_app,
            passages=replace(opened_app.passages, polite=True),  # leaves a core for questions
            audit=replace(opened_app.audit, observe=telemetry.observe),
            observe_call=telemetry.observe_call,
            llm=await stack.enter_async_context(_watch_model(opened_app)),
        )
        await stack.enter_async_context(run_beside(load_ahead(opened_app), name="loading ahead"))
        stack.push_async_callback(app.passages.lazy.flush)
        await close_abandoned(app, system_clock())
        reloading = SettingsReload(live, read, ScopeRecord(app.audit))
        await reloading.begin()
        await stack.enter_async_context(_reload_when_asked(reloading, asked))
        home, there = LocalService(app, reloading.reload), dict[str, Platform]()
        desk = open_desk(app, there)
        arrivals = PlatformConnections(app, desk, platforms)
        await stack.enter_async_context(arrivals.kept())
        await stack.enter_async_context(_forward_hurry(desk, stopping.hurried))
        holds, redact = (
            build_readiness_checks(app, {one.name: one for one in arrivals.all}),
            build_live_redactor(lambda: live.current),
        )
        readiness = Readiness(holds, redact)
        scraped = telemetry.routes(StateReader(app, desk.count_jobs, readiness, tuple(holds)))
        answers = http_server.build_http_app(holds, redact, scraped)
        control = serve_control(home, settings.home, grace=settings.desk.grace_seconds, hurried=stopping.hurried)
        answers.router.routes.extend(await stack.enter_async_context(_open_mcp(home)))
        listening = http_server.serve_http(settings.http, answers, stopping.hurried)
        pages = _serve_pages(app, home, stopping.hurried)
        blocks = exit_in_parallel(control, listening, pages, desk.running())
        _, address, shown, _ = await stack.enter_async_context(blocks)

        async def arrived(opened: OpenedPlatform) -> None:
            await reloading.meet(opened.platform.name, opened.channels)
            there[opened.platform.name] = opened.platform
            answers.router.routes.extend(opened.routes)
            await desk.resume_questions()

        told, watch, corpora = (
            NightNotifier(lambda: app.settings.schedule, there),
            build_night_watch(app),
            await home.corpora(),
        )
        await stack.enter_async_context(
            schedule_nights(lambda: app.settings, home.refresh, told, watch=watch, corpora=corpora)
        )
        await stack.enter_async_context(keep_record(build_record_upkeep(app, there)))
        if settings.database:  # who has one to himself follows what he writes
            await stack.enter_async_context(keep_following(app.passages))
        await stack.enter_async_context(embed_when_idle(IdleEmbedding(app.passages, lambda: home.refreshing)))
        await stack.enter_async_context(keep_citations(CitationRecheck(app, there, make_owner_id(), system_clock)))
        await stack.enter_async_context(arrivals.arriving(arrived))
        await wait_for_first(stopping.asked.wait(), arrivals.failed.wait(), arrivals.all_tried.wait())
        if not arrivals.failure:
            # Whatever level is logged, that it serves, and where, is told.
            log.log(max(logging.INFO, log.getEffectiveLevel()), _ready_message(settings, address, shown, arrivals))
            await stack.enter_async_context(watch_readiness(readiness))
            # Imports and the opening of indexes block the loop while the server starts, which harms no question.
            await stack.enter_async_context(watch_event_loop(observe=telemetry.observe_lag))
            notify(READY)
            stack.callback(notify, STOPPING)
        yield arrivals


@asynccontextmanager
async def _watch_model(app: App) -> AsyncIterator[LLM | None]:
    """Give the model, watched within the block if the system that answers calls it."""
    entry = app.systems.get(app.system)
    if app.llm is None or not (entry and entry.calls):
        yield app.llm
        return
    watched = WatchedModel(app.llm)
    async with run_beside(watched.watch(), name="model watch"):
        yield watched


@asynccontextmanager
async def _reload_when_asked(reloading: SettingsReload, asked: asyncio.Event) -> AsyncIterator[None]:
    """Read the settings again within the block whenever a signal asks for it."""

    async def watch() -> None:
        while True:
            await asked.wait()
            asked.clear()
            try:
                await reloading.reload()
            except Exception:
                log.exception("the settings could not be taken, and the old ones go on")

    async with run_beside(watch(), name="reload"):
        yield


@asynccontextmanager
async def _forward_hurry(desk: Desk, hurried: asyncio.Event) -> AsyncIterator[None]:
    """Hurry the desk as soon as the server is hurried."""

    async def hurry() -> None:
        await hurried.wait()
        desk.stop_now()

    async with run_beside(hurry(), name="hurry"):
        yield


@asynccontextmanager
async def _serve_pages(app: App, home: LocalService, hurried: asyncio.Event) -> AsyncIterator[str]:
    """Serve the pages within the block where settings want them, and give their address; empty where they do not."""
    if not app.settings.pages.enabled:
        yield ""
        return
    from bot.pages.pages_server import serve_pages, share_service  # imports jinja2

    records, history = build_records(app.manifest.database), build_history(app.manifest.database)
    shown = serve_pages(app.settings_source, records, history, share_service(home), hurried)
    async with shown as address:
        yield address


@asynccontextmanager
async def _open_mcp(home: LocalService) -> AsyncIterator[Sequence[BaseRoute]]:
    """Give the routes by which programs ask, within the block; none where settings do not want it."""
    if not home.app.settings.mcp.enabled:
        yield ()
        return
    from bot.server.mcp.call_limits import CallLimits

    speaker = await asyncio.to_thread(
        importlib.import_module, "bot.server.mcp.mcp_server"
    )  # imports mcp: half a second
    async with speaker.open_mcp_route(CallLimits(home).lend, lambda: home.app.settings) as route:
        yield (route,)


def _ready_message(settings: Settings, address: str, pages: str, arrivals: PlatformConnections) -> str:
    where = f"ready: {address}, commands reach it through {settings.home}" + (f"; pages at {pages}" if pages else "")
    there = [one.name for one in arrivals.all if one.connected]
    late = [one.name for one in arrivals.all if one.ready and not one.connected]
    said = (f"connected to {', '.join(there)}" if there else "", f"waiting for {', '.join(late)}" if late else "")
    connected = ", ".join(filter(None, said)) or "no platform is configured"
    nightly = settings.schedule.nightly
    return f"{where}; {connected}; " + (f"sources are read in at {nightly}" if nightly else "no nights are set")


def build_record_upkeep(app: App, platforms: Mapping[str, Platform]) -> RecordUpkeep:
    database, outlets = app.manifest.database, lambda: build_outlets(app.settings, platforms)
    return RecordUpkeep(database, lambda: app.settings, outlets, make_owner_id(), system_clock)


def build_night_watch(app: App) -> NightLease:
    history = build_history(app.manifest.database)
    return NightLease(history.nights, history.leases, make_owner_id(), system_clock)
