"""Measure a server's turns, calls and state, and export them: `/metrics` for Prometheus, traces for a collector."""

import asyncio
import logging
import platform
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot import read_version
from bot.app import App
from bot.server.http_server import METRICS
from bot.server.monitoring.health import Readiness
from bot.server.monitoring.metrics import ServerMetrics, ServerState, StateCollector
from bot.server.monitoring.turn_spans import open_tracer
from bot.settings.tables.network_settings import HttpSettings
from storage.database.schema import REVISION
from storage.errors import StorageError
from storage.home.home_folder import free_bytes, used_bytes
from storage.types import LogEntry

log = logging.getLogger(__name__)

_SIZES_SECONDS = 30.0  # how long measured sizes are cached, as every file is looked at
_PROXIED = ("forwarded", "via", "x-forwarded-for")
_NOT_FOUND = 404


class EntryObserver(Protocol):
    def observe(self, entries: Iterable[LogEntry]) -> None: ...


@dataclass(frozen=True)
class Telemetry:
    """Metrics and traces. The methods never raise and never block: failures are logged."""

    metrics: ServerMetrics | None = None
    tracer: EntryObserver | None = None
    routes: Callable[["StateReader"], tuple[Route, ...]] = lambda _: ()

    def observe(self, entries: Sequence[LogEntry]) -> None:
        for one in (self.metrics, self.tracer):
            try:
                if one:
                    one.observe(entries)
            except Exception:
                log.exception("counting record entries failed")

    def observe_call(self, name: str, method: object, outcome: str, seconds: float) -> None:
        if self.metrics:
            self.metrics.observe_call(name, method, outcome, seconds)

    def observe_lag(self, seconds: float) -> None:
        if self.metrics:
            self.metrics.observe_lag(seconds)


@asynccontextmanager
async def open_telemetry(settings: HttpSettings, environ: Mapping[str, str]) -> AsyncIterator[Telemetry]:
    """Yield the metrics and traces that the settings enable. Raises `TracingUnavailable`."""
    async with open_tracer(settings.traces, environ) as tracer:
        if not settings.metrics:
            yield Telemetry(tracer=tracer)
            return
        registry, collector = CollectorRegistry(), StateCollector()
        metrics = ServerMetrics(registry)
        registry.register(collector)
        yield Telemetry(metrics, tracer, lambda reader: (_build_route(registry, collector, reader),))


@dataclass
class StateReader:
    """Reads the server's state. Reads that overlap wait for each other."""

    app: App
    count_jobs: Callable[[], Mapping[str, int]]
    readiness: Readiness
    checks: tuple[str, ...]
    clock: Callable[[], float] = time.monotonic
    _sizes: Mapping[str, int] = field(default_factory=dict)
    _until: float = float("-inf")
    _reading: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def read(self) -> ServerState:
        async with self._reading:
            reasons = await self.readiness.reasons()
            state = ServerState(
                {
                    "version": read_version(),
                    "python": platform.python_version(),
                    "database": "postgresql" if self.app.settings.database else "sqlite",
                    "schema": REVISION,
                },
                self.count_jobs(),
                {name: name not in reasons for name in self.checks},
                sizes=await self._measure(),
                free=await asyncio.to_thread(free_bytes, self.app.settings.home),
            )
            with suppress(StorageError):  # the readiness checks report it
                corpora, runs = await self.app.manifest.corpora(), await self.app.passages.runs.totals()
                state = replace(state, corpora=corpora, runs=runs)
            return state

    async def _measure(self) -> Mapping[str, int]:
        if self.clock() >= self._until:
            home = self.app.settings.home
            stores = {"words": home / "lexical"}
            stores |= {} if self.app.settings.chroma.url else {"vectors": home / "chroma"}
            sizes = {name: await asyncio.to_thread(used_bytes, folder) for name, folder in stores.items()}
            if not self.app.settings.database:
                files = [home / f"footnote.db{end}" for end in ("", "-wal")]
                sizes["database"] = await asyncio.to_thread(lambda: sum(map(_file_size, files)))
            self._sizes, self._until = sizes, self.clock() + _SIZES_SECONDS
        return self._sizes


def _file_size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _build_route(registry: CollectorRegistry, collector: StateCollector, reader: StateReader) -> Route:
    """Build the route of `/metrics`, which refuses requests that a proxy forwarded."""

    async def show(request: Request) -> Response:
        if any(name in request.headers for name in _PROXIED):
            return Response(status_code=_NOT_FOUND)
        collector.state = await reader.read()
        encode, content_type = choose_encoder(request.headers.get("accept", ""))
        return Response(encode(registry), headers={"content-type": content_type})

    return Route(METRICS, show)
