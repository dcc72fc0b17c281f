"""Run the doctor's checks; an exception in a check becomes a result, too."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Literal

from bot.server.control.control_socket import connect_service
from bot.settings.live.scope_record import ScopeRecord
from bot.settings.tables.settings_tables import Settings
from bot.views.error_messages import explain_error
from pipeline.llm.model import LLM
from pipeline.llm.model_settings import ModelSettings
from storage.database.engine import open_database
from storage.database.manifest_tx import Follower
from storage.errors import contain_panics
from storage.home.home_folder import DatabaseFileState, find_lock_owner, inspect_database_file
from storage.indexes.index_state import find_foreign, find_probe
from storage.manifest import Manifest
from storage.record.audit_log import AuditLog, Clocks, read_clocks
from storage.types import CorpusInfo

CHECK_TIMEOUT = 60.0

Level = Literal["ok", "warn", "fail", "skip"]  # skip: not checked, and the line states why
OpenModel = Callable[[ModelSettings], AbstractAsyncContextManager[LLM]]


@dataclass(frozen=True, slots=True)
class CheckResult:
    level: Level
    what: str  # one plain line
    hint: str = ""  # what to do, unless the level is ok


@dataclass(frozen=True, slots=True)
class Inspection:
    """The facts that checks inspect. A value that could not be determined is None, and its own check reports why."""

    settings: Settings
    now: datetime
    open_model: OpenModel
    owner: str | None = None  # the process that has the home open; None if none has
    serving: bool = False  # whether that is a server that responds
    file: DatabaseFileState | None = None  # SQLite's; None if it does not exist yet, or is another database
    fault: Exception | None = None  # why the database cannot be read
    clocks: Clocks | None = None
    corpora: tuple[CorpusInfo, ...] | None = None
    probe: str = ""  # a query that finds something in the corpora
    foreign: tuple[str, ...] = ()  # the corpora that are not in English
    followers: tuple[Follower, ...] = ()  # how far the homes of the database have followed it
    names: Mapping[str, str] = field(default_factory=dict)  # the channel of each name


HealthCheck = Callable[[Inspection], Awaitable[Sequence[CheckResult]]]
"""Checks one subject; returns nothing if that is not configured. An exception is reported as a failure."""


async def run_checks(
    checks: Sequence[HealthCheck], scene: Inspection, *, seconds: float = CHECK_TIMEOUT
) -> tuple[CheckResult, ...]:
    """Run all checks concurrently, and return their results in order, without duplicates."""
    results = await asyncio.gather(*(_run_guarded(check, scene, seconds) for check in checks))
    return tuple(dict.fromkeys(result for each in results for result in each))


def report_error(error: Exception) -> tuple[CheckResult, ...]:
    fault = explain_error(error)
    return tuple(CheckResult("fail", each.message, each.hint) for each in (fault, *fault.others))


async def _run_guarded(check: HealthCheck, scene: Inspection, seconds: float) -> Sequence[CheckResult]:
    try:
        with contain_panics():
            async with asyncio.timeout(seconds):
                return await check(scene)
    except TimeoutError:
        subject = getattr(check, "__name__", "a check").removeprefix("check_").replace("_", " ")
        return (
            CheckResult(
                "warn",
                f"Checking {subject} took longer than {seconds:g} s.",
                "Try again when the machine is less busy.",
            ),
        )
    except Exception as error:  # noqa: BLE001 - the doctor reports everything that is broken
        return report_error(error)


QUICK_CHECK_SECONDS = 20.0  # how long SQLite may check its file


async def inspect_home(settings: Settings, open_model: OpenModel, *, now: datetime | None = None) -> Inspection:
    """Inspect the home and its database once, for all checks. Nothing is created or changed."""
    plain = Inspection(settings, now or datetime.now(UTC), open_model)
    owner, serving = await _find_owner(settings)
    return replace(await _inspect_database(plain), owner=owner, serving=serving)


async def _find_owner(settings: Settings) -> tuple[str | None, bool]:
    try:
        owner = await asyncio.to_thread(find_lock_owner, settings.home)
    except Exception:  # noqa: BLE001 - the check of the home reports it
        return None, False
    if not owner:
        return owner, False
    try:
        async with connect_service(settings.home) as served:
            return owner, served is not None
    except Exception:  # noqa: BLE001 - a server of another version answers too, and its owner is shown
        return owner, False


async def _inspect_database(scene: Inspection) -> Inspection:
    settings, file = scene.settings, scene.settings.home / "footnote.db"
    try:
        if not settings.database:
            if not file.exists():
                return scene
            scene = replace(
                scene, file=await asyncio.to_thread(inspect_database_file, file, seconds=QUICK_CHECK_SECONDS)
            )
            if scene.file and scene.file.revision != "fits":
                return scene
        with open_database(settings.database, home=settings.home, read_only=True) as database:
            manifest = Manifest(database)
            scene = replace(scene, clocks=await read_clocks(database), probe=await find_probe(manifest))
            names, foreign = await ScopeRecord(AuditLog(database)).load_names(), await find_foreign(manifest)
            scene = replace(scene, names=names, foreign=foreign)
            return replace(scene, corpora=await manifest.corpora(), followers=await manifest.followers())
    except Exception as error:  # noqa: BLE001 - the check of the database reports it
        return replace(scene, fault=error)
