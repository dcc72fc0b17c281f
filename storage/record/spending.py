"""What turns cost, counted from the entries that close them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select

from storage.database.engine import Database, decode_json, split_chunks
from storage.database.schema import entries, spending
from storage.types import EntryKind, SpendingTotal


@dataclass(frozen=True)
class Spending:
    """What turns cost. Raises `StorageError`."""

    database: Database

    async def total(self, *, since: datetime, platform_user: str = "", channel: str = "") -> SpendingTotal:
        """Sum up the turns closed since then, of a user, in a channel, or all; names are like `slack:T1/U1`."""
        sums = func.coalesce(func.sum(spending.c.tokens), 0), func.coalesce(func.sum(spending.c.cost), 0.0)
        query = select(func.count(), *sums).select_from(spending).where(spending.c.at >= since)
        if platform_user:
            query = query.where(spending.c.asker == platform_user)
        if channel:
            query = query.where(spending.c.channel == channel)
        turns, tokens, cost = await self.database.read(lambda connection: connection.execute(query).one())
        return SpendingTotal(turns, int(tokens), float(cost))


def record_spending(connection: Connection, numbers: Sequence[int]) -> None:
    """Record what the turns cost that these entries close, within the transaction that inserted them."""
    for chunk in split_chunks(numbers):
        chosen = entries.c.seq.in_(chunk), entries.c.kind == EntryKind.TURN_CLOSED.value
        closings = connection.execute(select(entries).where(*chosen)).all()
        askers = _fetch_askers(connection, {row.turn_id for row in closings})
        for row in closings:
            about = {"seq": row.seq, "turn_id": row.turn_id, "at": row.at}
            counted = measure_spending(askers.get(row.turn_id, {}), decode_json(row.body))
            connection.execute(insert(spending), about | counted)


def _fetch_askers(connection: Connection, turns: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    query = select(entries.c.turn_id, entries.c.body).where(entries.c.turn_id.in_(list(turns)))
    opened = connection.execute(query.where(entries.c.kind == EntryKind.TURN_OPENED.value))
    return {row.turn_id: decode_json(row.body).get("asker") or {} for row in opened if row.body}


def measure_spending(asker: Mapping[str, Any], closed: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a turn cost, from its asker on record and the body of its closing entry. Pure.

    A missing figure counts as nothing: it never keeps a turn from being recorded.
    """
    platform, workspace = str(asker.get("platform", "")), str(asker.get("workspace", ""))
    usage = closed.get("usage") or {}
    return {
        "platform": platform,
        "channel": _platform_id(platform, workspace, asker.get("channel")),
        "asker": _platform_id(platform, workspace, asker.get("user")),
        "tokens": (usage.get("prompt_tokens") or 0) + (usage.get("completion_tokens") or 0),
        "cost": usage.get("cost") or 0.0,
    }


def _platform_id(platform: str, workspace: str, name: str | None) -> str:
    return f"{platform}:{workspace}/{name}" if name else ""
