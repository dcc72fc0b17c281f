"""What turns cost, counted from the entries that close them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, select

from storage.database.engine import Database, decode_json
from storage.database.schema import spending, turns
from storage.types import SpendingTotal


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


def record_spending(connection: Connection, closings: Sequence[Mapping[str, Any]]) -> None:
    """Record what turns cost, within the transaction that inserted and indexed the entries that close them."""
    asked = {row.turn_id: row for row in connection.execute(_FIND, {"turns": [row["turn_id"] for row in closings]})}
    connection.execute(_SPEND, [_describe(row, asked.get(row["turn_id"])) for row in closings])


_FIND = select(turns.c.turn_id, turns.c.platform, turns.c.channel, turns.c.asker).where(
    turns.c.turn_id.in_(bindparam("turns", expanding=True))
)
_SPEND = insert(spending)


def _describe(row: Mapping[str, Any], asked: Row[str, str, str, str] | None) -> dict[str, Any]:
    where = asked._asdict() if asked else dict.fromkeys(("platform", "channel", "asker"), "")
    about = {name: row[name] for name in ("seq", "turn_id", "at")}
    return {**where, **about, **measure_spending(decode_json(row["body"]))}


def measure_spending(closed: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a turn cost, from the body of its closing entry. Pure.

    A missing figure counts as nothing: it never keeps a turn from being recorded.
    """
    usage = closed.get("usage") or {}
    tokens = (usage.get("prompt_tokens") or 0) + (usage.get("completion_tokens") or 0)
    return {"tokens": tokens, "cost": usage.get("cost") or 0.0}
