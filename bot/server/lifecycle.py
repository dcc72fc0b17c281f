"""Compose and run `footnote serve`: the service, the sockets, the desk, nightly refreshes, the configured platforms.

Each part is a context manager; they are entered in order and left in reverse. At the end, the server first stops
accepting work. Then work in progress at the desk and at the sockets is finished or released, and everything is closed.
"""

import asyncio
import importlib
import logging
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

from starlette.applications import Starlette

from bot.answering.question_answering import close_abandoned
from bot.app import App
from bot.desk.desk import Desk
from bot.desk.platform_port import Platform
from bot.desk.supervisor import exit_in_parallel, run_beside, wait_for_first
from bot.desk.turn_policy import open_desk
from bot.platforms.shared.platform_connection import OpenedPlatform, OpenPlatform, PlatformConnections
from bot.server import http_server
from bot.server.control.control_server import serve_control
from bot.server.idle_embedding import IdleEmbedding, embed_when_idle
from bot.server.mcp.call_limits import CallLimits
from bot.server.monitoring.health import Readiness, build_readiness_checks, watch_event_loop, watch_readiness
from bot.server.monitoring.model_health import WatchedModel
from bot.server.monitoring.server_log import build_live_redactor
from bot.server.monitoring.systemd import READY, STOPPING, build_notify, keep_alive
from bot.server.monitoring.telemetry import StateReader, Telemetry, open_telemetry
from bot.server.record_upkeep import RecordUpkeep, build_outlets, keep_record
from bot.server.refresh.citation_recheck import CitationRecheck, keep_citations
from bot.server.refresh.nightly import NightLease, NightNotifier, schedule_nights
from bot.server.refresh.run_history import build_history
from bot.server.service import LocalService, load_ahead
from bot.server.settings_reload import SettingsReload
from bot.settings.errors import join_errors
from bot.settings.live.live_settings import LiveSettings
from bot.settings.live.scope_record import ScopeRecord
from bot.settings.settings_errors import find_serving_faults
from bot.settings.tables.settings_tables import Settings
from bot.wiring import build_records, open_app
from pipeline.llm.model import LLM
from storage.clock import utc_now
from storage.database.refresh_log import make_owner_id
from storage.errors import StorageError
from storage.passages import PassageStore

FOLLOW_SECONDS = 15.0
STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class StopRequest:
    """Stop signals received so far."""

    asked: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the first signal: accept nothing more, and let work in progress finish for a while."""
    hurried: asyncio.Event = field(default_factory=asyncio.Event)
    """Set by the second signal: put work in progress back and stop at once."""

    def hear(self) -> None:
        if self.asked.is_set():
            self.hurried.set()
        self.asked.set()


@contextmanager
def handle_stop_signals() -> Iterator[StopRequest]:
    """Yield the stop signals received within the block. During the block, they do not end the process."""
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
    has_terminal: Callable[[], bool] = lambda: sys.stderr.isatty(),  # noqa: PLW0108 - read at each call
) -> Iterator[asyncio.Event]:
    """Yield an event that is set whenever SIGHUP asks to read the settings again.

    SIGHUP also arrives when the terminal that started the server is closed; the server then stops.
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


async def serve(
    source: Settings | LiveSettings, platforms: Mapping[str, OpenPlatform], read: Callable[[], Settings] | None = None
) -> None:
    """Serve until a signal asks to stop. Unreachable platforms are retried until they answer.

    `read` reads the settings again for a reload; it blocks.

    Raises `SettingsError`, `HomeLocked`, `CannotListen`, `StorageError`, and `PlatformError` if a platform refuses us.
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


@dataclass(frozen=True, slots=True)
class _Server:
    """The parts that the services of a running server share."""

    app: App
    service: LocalService
    settings: Settings  # as they were at the start
    reloading: SettingsReload
    reload_asked: asyncio.Event
    stopping: StopRequest
    desk: Desk
    platforms: PlatformConnections
    connected: dict[str, Platform]  # the platforms that have connected, by name
    readiness: Readiness
    http: Starlette
    addresses: dict[str, str] = field(default_factory=dict)  # of "http" and "pages", once they are served

    async def welcome(self, opened: OpenedPlatform) -> None:
        """Serve a platform that was just connected."""
        await self.reloading.meet(opened.platform.name, opened.channels)
        self.connected[opened.platform.name] = opened.platform
        self.http.router.routes.extend(opened.routes)
        await self.desk.resume_questions()


def _build_server(
    app: App,
    reloading: SettingsReload,
    telemetry: Telemetry,
    platforms: Mapping[str, OpenPlatform],
    stopping: StopRequest,
    reload_asked: asyncio.Event,
) -> _Server:
    connected = dict[str, Platform]()
    desk = open_desk(app, connected)
    connections = PlatformConnections(app, desk, platforms)
    checks = build_readiness_checks(app, {connection.name: connection for connection in connections.all})
    readiness = Readiness(checks, build_live_redactor(lambda: app.settings))
    metrics = telemetry.routes(StateReader(app, desk.count_jobs, readiness, tuple(checks)))
    http = http_server.build_http_app(checks, readiness.redact, metrics)
    service = LocalService(app, reloading.reload)
    return _Server(
        app, service, app.settings, reloading, reload_asked, stopping, desk, connections, connected, readiness, http
    )


@asynccontextmanager
async def _run_server(
    live: LiveSettings,
    read: Callable[[], Settings],
    platforms: Mapping[str, OpenPlatform],
    stopping: StopRequest,
    asked: asyncio.Event,
) -> AsyncIterator[PlatformConnections]:
    """Serve within the block, and yield the platform connections. The control socket is served first."""
    notify = build_notify(os.environ)
    async with (
        keep_alive(notify, os.environ),
        open_telemetry(live.current.http, os.environ) as telemetry,
        _open_observed_app(live, telemetry) as app,
        AsyncExitStack() as stack,
    ):
        reloading = SettingsReload(live, read, ScopeRecord(app.audit))
        await reloading.begin()
        server = _build_server(app, reloading, telemetry, platforms, stopping, asked)
        for name, open_service in _SERVICES.items():
            await stack.enter_async_context(open_service(server))
            log.debug("started: %s", name)
        connections = server.platforms
        await wait_for_first(stopping.asked.wait(), connections.failed.wait(), connections.all_tried.wait())
        if not connections.failure:
            # Logged at every level, so that the log always shows that the server runs, and where.
            log.log(max(logging.INFO, log.getEffectiveLevel()), _ready_message(server))
            await stack.enter_async_context(watch_readiness(server.readiness))
            # Imports and the opening of indexes block the loop while the server starts, which delays no question.
            await stack.enter_async_context(watch_event_loop(observe=telemetry.observe_lag))
            notify(READY)
            stack.callback(notify, STOPPING)
        yield connections


@asynccontextmanager
async def _open_observed_app(live: LiveSettings, telemetry: Telemetry) -> AsyncIterator[App]:
    """Open the application with telemetry, load what questions need, and close turns that a crash left open."""
    async with open_app(live) as opened, _watch_model(opened) as model:
        app = replace(
            opened,
            passages=replace(opened.passages, polite=True),  # leaves a core for questions
            audit=replace(opened.audit, observe=telemetry.observe),
            observe_call=telemetry.observe_call,
            llm=model,
        )
        async with run_beside(load_ahead(opened), name="loading ahead"):
            try:
                await close_abandoned(app, utc_now())
                yield app
            finally:
                await app.passages.flush()


@asynccontextmanager
async def _watch_model(app: App) -> AsyncIterator[LLM | None]:
    """Yield the model, watched within the block if the answering system calls it."""
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
                log.exception("reloading the settings failed, keeping current ones")

    async with run_beside(watch(), name="reload"):
        yield


@asynccontextmanager
async def keep_following(passages: PassageStore, *, pulse: float = FOLLOW_SECONDS) -> AsyncIterator[None]:
    """Within the block, apply changes by other servers of the same database, and let them know that this one runs."""

    async def watch() -> None:
        while True:
            await asyncio.sleep(pulse)
            try:
                await passages.tidy()
            except StorageError as error:
                log.warning("cannot follow other servers' changes, retrying", extra={"cause": str(error)})
            except Exception:
                log.exception("following other servers' changes failed, retrying")

    async with run_beside(watch(), name="following"):
        yield


@asynccontextmanager
async def _forward_hurry(desk: Desk, hurried: asyncio.Event) -> AsyncIterator[None]:
    """Within the block, stop the desk immediately once `hurried` is set."""

    async def hurry() -> None:
        await hurried.wait()
        desk.stop_now()

    async with run_beside(hurry(), name="hurry"):
        yield


@asynccontextmanager
async def _serve_pages(app: App, service: LocalService, hurried: asyncio.Event) -> AsyncIterator[str]:
    """Serve the pages within the block, and yield their address; serve none and yield "" if they are disabled."""
    if not app.settings.pages.enabled:
        yield ""
        return
    from bot.pages.pages_server import serve_pages, share_service  # imports jinja2

    records, history = build_records(app.manifest.database), build_history(app.manifest.database)
    async with serve_pages(app.settings_source, records, history, share_service(service), hurried) as address:
        yield address


@asynccontextmanager
async def _open_mcp(service: LocalService, http: Starlette) -> AsyncIterator[None]:
    """Serve MCP under `http` within the block if it is enabled."""
    if not service.app.settings.mcp.enabled:
        yield
        return
    mcp_server = await asyncio.to_thread(importlib.import_module, "bot.server.mcp.mcp_server")  # takes half a second
    async with mcp_server.open_mcp_route(CallLimits(service).lend, lambda: service.app.settings) as route:
        http.router.routes.append(route)
        yield


@asynccontextmanager
async def _accept_questions(server: _Server) -> AsyncIterator[None]:
    """Answer at the control socket, over HTTP, on the pages and at the desk; all stop at the same time."""
    settings, hurried = server.settings, server.stopping.hurried
    async with exit_in_parallel(
        serve_control(server.service, settings.home, grace=settings.desk.grace_seconds, hurried=hurried),
        http_server.serve_http(settings.http, server.http, hurried),
        _serve_pages(server.app, server.service, hurried),
        server.desk.running(),
    ) as (_, server.addresses["http"], server.addresses["pages"], _):
        yield


@asynccontextmanager
async def _refresh_nightly(server: _Server) -> AsyncIterator[None]:
    app, history = server.app, build_history(server.app.manifest.database)
    notifier = NightNotifier(lambda: app.settings.schedule, server.connected)
    watch, corpora = (
        NightLease(history.nights, history.leases, make_owner_id(), utc_now),
        await server.service.corpora(),
    )
    async with schedule_nights(lambda: app.settings, server.service.refresh, notifier, watch=watch, corpora=corpora):
        yield


def _keep_record(server: _Server) -> AbstractAsyncContextManager[None]:
    app = server.app
    return keep_record(
        RecordUpkeep(
            app.manifest.database,
            lambda: app.settings,
            lambda: build_outlets(app.settings, server.connected),
            make_owner_id(),
            utc_now,
        )
    )


_SERVICES: Mapping[str, Callable[[_Server], AbstractAsyncContextManager[Any]]] = MappingProxyType({
    "reload of settings": lambda server: _reload_when_asked(server.reloading, server.reload_asked),
    "platform connections": lambda server: server.platforms.kept(),
    "hurried stop": lambda server: _forward_hurry(server.desk, server.stopping.hurried),
    "MCP": lambda server: _open_mcp(server.service, server.http),
    "sockets and desk": _accept_questions,
    "nightly refresh": _refresh_nightly,
    "record upkeep": _keep_record,
    # Only a server that shares its database has other servers' changes to follow.
    "other servers": lambda server: (
        keep_following(server.app.passages) if server.settings.database else nullcontext()
    ),
    "idle embedding": lambda server: embed_when_idle(
        IdleEmbedding(server.app.passages, lambda: server.service.refreshing)
    ),
    "citations": lambda server: keep_citations(
        CitationRecheck(server.app, server.connected, make_owner_id(), utc_now)
    ),
    "connecting platforms": lambda server: server.platforms.arriving(server.welcome),
})  # fmt: skip
"""The services of a server by name: started in this order, and stopped in reverse."""


def _ready_message(server: _Server) -> str:
    settings, pages, platforms = server.settings, server.addresses["pages"], server.platforms.all
    served = f"ready: {server.addresses['http']}, commands reach it through {settings.home}"
    present = [connection.name for connection in platforms if connection.connected]
    late = [connection.name for connection in platforms if connection.ready and not connection.connected]
    states = (f"connected to {', '.join(present)}" if present else "", f"waiting for {', '.join(late)}" if late else "")
    connections = ", ".join(filter(None, states)) or "no platform is configured"
    nightly = settings.schedule.nightly
    refresh = f"sources are refreshed at {nightly}" if nightly else "no nightly refresh is set"
    return f"{served}{f'; pages at {pages}' if pages else ''}; {connections}; {refresh}"
