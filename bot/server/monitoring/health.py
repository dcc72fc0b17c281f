"""Check whether the server is ready, and watch it: readiness checks, their changes, and a blocked event loop."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bot.app import App
from bot.desk.supervisor import run_beside
from bot.server.monitoring.model_health import WatchedModel
from bot.server.monitoring.server_log import Redact
from bot.settings.tables.settings_tables import Settings
from bot.views.error_messages import explain_error
from storage.errors import contain_panics
from storage.home.home_folder import free_bytes
from storage.indexes.index_state import find_probe

MIN_FREE_BYTES = 10_000_000  # with less free space a turn's record might not fit


class Connectable(Protocol):
    @property
    def ready(self) -> str:
        """Why the platform is not connected; empty if it is."""
        ...


ReadinessCheck = Callable[[], Awaitable[str]]  # returns in one line why something is not ready; empty if it is
ADVISORY = {"corpora": "incomplete", "model": "degraded"}
"""Checks that do not make the server unready, with the word for it: other corpora, or quotations, answer."""


def build_readiness_checks(app: App, platforms: Mapping[str, Connectable]) -> Mapping[str, ReadinessCheck]:
    """Build the checks of everything that answering needs, by the names that `/readyz` shows."""
    file = None if app.settings.database else app.settings.home / "footnote.db"
    begun = _file_identity(file)

    async def database() -> str:
        if file and _file_identity(file) != begun:
            return f"{file} is no longer the file that was opened: put that file back, and restart the server."
        await app.queue.check_writable()
        return ""

    async def disk() -> str:
        free = await asyncio.to_thread(free_bytes, app.settings.home)
        full = f"The disk that holds {app.settings.home} is full: free some space on it."
        return "" if free >= MIN_FREE_BYTES else full

    async def index() -> str:
        await app.passages.probe()
        return ""

    own = {"database": database, "disk": disk, "index": index, **_build_answer_checks(app, served=bool(platforms))}
    return {**own, **{name: _connection_check(platform) for name, platform in platforms.items()}}


def _build_answer_checks(app: App, *, served: bool) -> Mapping[str, ReadinessCheck]:
    """Build the checks of the documents, the corpora and the model."""

    async def documents() -> str:
        if app.settings.search_engine.corpus or await find_probe(app.manifest):
            return ""
        return "Nothing is ingested, so nothing can be answered: run `footnote setup` or `footnote ingest`."

    async def corpora() -> str:
        read = [corpus.name for corpus in await app.manifest.catalogue() if corpus.refreshed]
        return " ".join(list_corpus_reasons(app.settings, read, served=served))

    async def model() -> str:
        entry = app.systems.get(app.system)
        if entry is not None and not entry.calls:
            return ""
        if not app.model:
            return f"The answering system, {app.system}, needs a model, but none is configured."
        return app.llm.fault if isinstance(app.llm, WatchedModel) else ""

    return {"documents": documents, "corpora": corpora, "model": model}


def list_corpus_reasons(settings: Settings, read: Sequence[str], *, served: bool) -> Iterator[str]:
    """Yield reasons why corpora are not ready: never completely ingested, or ingested but not configured.

    The second is a reason only if a platform is configured (`served`).
    """
    if unread := [corpus.name for corpus in settings.corpus if corpus.name not in read]:
        how = "`footnote ingest all` refreshes corpora that have a source"
        yield f"{', '.join(unread)}: in the settings, but never completely ingested: {how}."
    if served and (unnamed := [name for name in read if name not in settings.visible_to]):
        yield f"{', '.join(unnamed)}: ingested, but without a [[corpus]] in the settings: only the terminal reads it."


def _file_identity(file: Path | None) -> tuple[int, int] | None:
    """Return the device and inode of a file, which change if the file is replaced; None if it is missing."""
    try:
        status = file.stat() if file else None
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if status else None


def _connection_check(platform: Connectable) -> ReadinessCheck:
    async def connected() -> str:
        return platform.ready

    return connected


log = logging.getLogger(__name__)

READINESS_SECONDS = 30.0
CONFIRM_SECONDS = 10.0


class ReadinessSource(Protocol):
    async def reasons(self) -> Mapping[str, str]: ...


@asynccontextmanager
async def watch_readiness(
    readiness: ReadinessSource, *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
) -> AsyncIterator[None]:
    """Log checks that stay unready for a while, and when they are ready again."""
    async with run_beside(_log_readiness_changes(readiness, sleep), name="readiness"):
        yield


async def _log_readiness_changes(readiness: ReadinessSource, sleep: Callable[[float], Awaitable[object]]) -> None:
    known: Mapping[str, str] = {}
    while True:
        reasons = await readiness.reasons()
        if passing := reasons.keys() - known.keys():  # it may pass soon, such as a connection that is being opened
            await sleep(CONFIRM_SECONDS)
            again = await readiness.reasons()
            reasons = {name: again[name] for name in again if name in known or name in passing}
        for name in reasons.keys() - known.keys():
            log.warning("%s: %s", ADVISORY.get(name, "not ready"), name, extra={"cause": reasons[name]})
        for name in known.keys() - reasons.keys():
            log.info("ready again: %s", name)
        known = dict(reasons)
        await sleep(READINESS_SECONDS)


MAX_LAG_SECONDS = 1.0
LAG_SAMPLE_SECONDS = 0.25


@asynccontextmanager
async def watch_event_loop(
    *,
    tolerated: float = MAX_LAG_SECONDS,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    observe: Callable[[float], None] = lambda _: None,
) -> AsyncIterator[None]:
    """Log each time that the event loop is blocked for longer than `tolerated`; `observe` receives each lag."""
    async with run_beside(_log_lag(tolerated, clock, sleep, observe), name="lag watch"):
        yield


async def _log_lag(
    tolerated: float,
    clock: Callable[[], float],
    sleep: Callable[[float], Awaitable[object]],
    observe: Callable[[float], None],
) -> None:
    while True:
        before = clock()
        await sleep(LAG_SAMPLE_SECONDS)
        lag = clock() - before - LAG_SAMPLE_SECONDS
        observe(max(lag, 0.0))
        if lag > tolerated:
            log.warning("the event loop was blocked", extra={"seconds": round(lag, 3)})


CHECK_SECONDS = 3.0
FRESH_SECONDS = 1.0  # how long a result is cached: anyone may ask, and each check reads the disk


@dataclass
class Readiness:
    """Runs the checks, and caches their results for a second."""

    checks: Mapping[str, ReadinessCheck]
    redact: Redact
    clock: Callable[[], float] = time.monotonic
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _found: dict[str, str] = field(default_factory=dict)
    _until: float = float("-inf")

    async def reasons(self) -> Mapping[str, str]:
        """Return why checks fail, by their names."""
        async with self._looking:
            if self.clock() >= self._until:
                results = await asyncio.gather(*(_run_check(check) for check in self.checks.values()))
                by_check = dict(zip(self.checks, results, strict=True))
                self._found = {name: self.redact(reason) for name, reason in by_check.items() if reason}
                self._until = self.clock() + FRESH_SECONDS
            return self._found


async def _run_check(check: ReadinessCheck) -> str:
    try:
        with contain_panics():
            async with asyncio.timeout(CHECK_SECONDS):
                return await check()
    except TimeoutError:
        return f"It does not answer within {CHECK_SECONDS:g} seconds."
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a reason
        return explain_error(error).line()
