"""Tests that each day of the record is signed, delivered and cleaned, with retries after failures."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bot.desk.platform_port import PlatformUnavailable
from bot.server.http_server import serve_http
from bot.server.record_upkeep import RecordUpkeep, build_outlets
from bot.settings.tables.network_settings import HttpSettings
from bot.settings.tables.record_settings import RecordSettings
from bot.settings.tables.settings_tables import ScheduleSettings, Settings
from storage.database.engine import Database
from storage.record.audit_log import AuditLog
from storage.record.proof.checkpoints import Checkpoints
from storage.record.proof.record_check import split_heads, verify_record
from storage.record.proof.signed_notes import create_key
from tests.bot.server.watchman import Clock
from tests.storage.record.tampering import make_turn
from tests.storage.stores import open_empty_database

DAY = timedelta(days=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@dataclass
class Channel:
    """A platform that can be unreachable."""

    away: bool = False
    posted: list[tuple[Any, str]] = field(default_factory=list)

    async def call(self, place: Any, text: str, people: Any) -> None:  # noqa: ARG002 - as a platform has it
        if self.away:
            raise PlatformUnavailable("away")
        self.posted.append((place.channel, text))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_empty_database(tmp_path / "home") as opened:
        yield opened


def build(database: Database, folder: Path, clock: Clock, channel: Channel, **record: Any) -> RecordUpkeep:
    settings = Settings(
        record=RecordSettings(key_path=folder / "record.key", **record),
        schedule=ScheduleSettings(admin_channel="slack:T1/C1"),
    )
    return RecordUpkeep(database, lambda: settings, lambda: build_outlets(settings, {"slack": channel}), "me", clock)


async def test_checkpoint_is_delivered_once_a_day(database: Database, tmp_path: Path) -> None:
    clock, channel = Clock(NOON), Channel(away=True)
    create_key(tmp_path / "record.key")
    facts = {"heads_path": tmp_path / "away" / "heads.txt", "heads_channel": True}
    upkeep = build(database, tmp_path, clock, channel, **facts)
    await AuditLog(database).append(*make_turn("a"))
    await upkeep.look()
    channel.away = False
    await upkeep.look()
    await upkeep.look()
    assert [place for place, _ in channel.posted] == ["C1"]

    clock.now += DAY / 2
    restarted = build(database, tmp_path, clock, channel, **facts)
    await restarted.look()
    clock.now += DAY / 2
    await AuditLog(database).append(*make_turn("b"))
    await restarted.look()

    notes = split_heads((tmp_path / "away" / "heads.txt").read_text(encoding="utf-8"))
    assert [note for _, note in channel.posted] == notes
    assert len(notes) == 2
    assert (await verify_record(database, notes)).findings == ()


async def test_upkeep_is_done_by_one_process(database: Database, tmp_path: Path) -> None:
    create_key(tmp_path / "record.key")
    first, second = (build(database, tmp_path, Clock(NOON), Channel()) for _ in range(2))
    second.owner = "another"
    await first.look()
    await second.look()

    assert (first.last, second.last) == (first.clock(), None)


async def test_old_texts_are_erased_daily_without_a_key(
    database: Database, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock, log = Clock(NOON), AuditLog(database, Clock(NOON))
    await log.append(*make_turn("old"))
    upkeep = build(database, tmp_path, clock, Channel(), keep_days=30)
    for days, erased in ((29, False), (2, True)):
        clock.now += days * DAY
        await upkeep.look()
        assert all(entry.erased for entry in await log.turn("old")) == erased

    assert await Checkpoints(database).latest() is None
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize("status", [200, 500])
async def test_checkpoint_is_posted_to_an_address(database: Database, tmp_path: Path, status: int) -> None:
    got: list[str] = []

    async def take(request: Request) -> Response:
        got.append((await request.body()).decode())
        return Response(status_code=status)

    create_key(tmp_path / "record.key")
    app = Starlette(routes=[Route("/heads", take, methods=["POST"])])
    async with serve_http(HttpSettings(port=0), app, asyncio.Event()) as address:
        upkeep = build(database, tmp_path, Clock(NOON), Channel(), heads_url=f"{address}/heads")
        await upkeep.look()

    assert got == [await Checkpoints(database).latest()]
    assert list(upkeep.pending) == ([] if status == 200 else ["address"])


async def test_failed_write_is_retried(database: Database, tmp_path: Path) -> None:
    create_key(tmp_path / "record.key")
    (tmp_path / "file").write_text("no folder")
    upkeep = build(database, tmp_path, Clock(NOON), Channel(), heads_path=tmp_path / "file" / "heads.txt")
    await upkeep.look()

    assert list(upkeep.pending) == ["file"]
