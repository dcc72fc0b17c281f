"""Maintain the record: every day, erase old entries, sign the head of its hash tree, and deliver the head.

A failed delivery is retried; a later head covers everything that an earlier one did. If several processes share the
database, only one of them maintains the record.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from bot.desk.platform_port import Platform, PlatformError, PlatformUnavailable
from bot.desk.supervisor import run_beside
from bot.settings.tables.settings_tables import Settings
from bot.types import Place
from storage.clock import Clock
from storage.database.engine import Database
from storage.database.refresh_log import Leases
from storage.errors import StorageError
from storage.record.erasure import ErasureTarget, RecordErasure
from storage.record.proof.checkpoints import Checkpoints, read_head_moment
from storage.record.proof.signed_notes import KeyUnusable, load_key

log = logging.getLogger(__name__)

LOOK_SECONDS = 600.0
_LEASE = "record"
_DAY = timedelta(days=1)
_POST_SECONDS = 30.0

Outlet = Callable[[str], Awaitable[None]]
"""Delivers a checkpoint. Raises `NotDelivered`."""


class NotDelivered(Exception):
    """A checkpoint could not be delivered."""


@dataclass
class RecordUpkeep:
    """The daily maintenance of the record, and the deliveries that are still pending."""

    database: Database
    read: Callable[[], Settings]  # returns the current settings
    outlets: Callable[[], Mapping[str, Outlet]]  # receivers of checkpoints by name
    owner: str
    clock: Clock
    last: datetime | None = None  # the time of the last maintenance
    pending: dict[str, str] = field(default_factory=dict)  # the checkpoint that each outlet still lacks

    async def look(self) -> None:
        """Do the work that is due. Failures are logged, and retried at the next check."""
        try:
            if await Leases(self.database).take(_LEASE, self.owner, self.clock(), 3 * LOOK_SECONDS):
                await self._work()
        except StorageError as error:
            log.warning("maintaining the record failed, retrying", extra={"cause": f"{error} {error.hint}"})
        except Exception:
            log.exception("maintaining the record failed, retrying")
        outlets = self.outlets()
        self.pending = {name: note for name, note in self.pending.items() if name in outlets}
        for name, note in list(self.pending.items()):
            try:
                await outlets[name](note)
            except NotDelivered as error:
                log.warning("delivering a checkpoint failed, retrying: %s", name, extra={"cause": str(error)})
            else:
                del self.pending[name]

    async def _work(self) -> None:
        now, heads = self.clock(), Checkpoints(self.database, self.clock)
        if self.last is None and (note := await heads.latest()):
            self.last = read_head_moment(note)
        if self.last and now - self.last < _DAY:
            return
        record = self.read().record
        if record.keep_days:
            await self._erase_old(now)
        try:
            key = await asyncio.to_thread(load_key, record.key_path)
        except KeyUnusable as error:
            # Without a key, a daily warning would be noise.
            level = logging.WARNING if self.outlets() or record.key_path.exists() else logging.INFO
            log.log(level, "the record is not signed", extra={"cause": f"{error} {error.hint}"})
        else:
            self.pending = dict.fromkeys(self.outlets(), await heads.make(key))
        self.last = now

    async def _erase_old(self, now: datetime) -> None:
        record = self.read().record
        erasure = RecordErasure(self.database, record.hold, self.clock)
        before, why = now - timedelta(days=record.keep_days), f"kept for {record.keep_days} days"
        done = await erasure.erase(ErasureTarget(before=before), why=why, by="settings", whole=False)
        if done.entries:
            log.info("erased the texts of %d turns older than [record] keep_days", done.turns)


@asynccontextmanager
async def keep_record(upkeep: RecordUpkeep, *, pulse: float = LOOK_SECONDS) -> AsyncIterator[None]:
    async def watch() -> None:
        while True:
            await upkeep.look()
            await asyncio.sleep(pulse)

    async with run_beside(watch(), name="record"):
        yield


def build_outlets(settings: Settings, platforms: Mapping[str, Platform]) -> dict[str, Outlet]:
    """Return the configured receivers of the signed heads of the hash tree. `platforms`: those connected so far."""
    record, channel = settings.record, settings.schedule.admin_channel
    outlets: dict[str, Outlet] = {}
    if record.heads_path:
        outlets["file"] = partial(_append_to_file, record.heads_path)
    if record.heads_url:
        outlets["address"] = partial(_post_to_address, record.heads_url)
    if record.heads_channel and channel:
        outlets["channel"] = partial(_post_to_channel, channel, platforms)
    return outlets


async def _append_to_file(path: Path, note: str) -> None:
    def append() -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(f"{note}\n")

    try:
        await asyncio.to_thread(append)
    except OSError as error:
        raise NotDelivered(str(error)) from error


async def _post_to_address(url: str, note: str) -> None:
    import httpx

    try:
        async with httpx.AsyncClient(timeout=_POST_SECONDS) as client:
            answer = await client.post(url, content=note, headers={"Content-Type": "text/plain; charset=utf-8"})
            answer.raise_for_status()
    except httpx.HTTPStatusError as error:
        raise NotDelivered(f"it answered {error.response.status_code}") from error
    except httpx.HTTPError as error:
        raise NotDelivered(type(error).__name__) from error


async def _post_to_channel(channel: str, platforms: Mapping[str, Platform], note: str) -> None:
    name, _, rest = channel.partition(":")
    workspace, _, place = rest.partition("/")
    if name not in platforms:
        raise NotDelivered(f"{name} is not connected")
    try:
        await platforms[name].call(Place(name, workspace, place), note, people=())
    except (PlatformError, PlatformUnavailable) as error:
        raise NotDelivered(str(error)) from error
