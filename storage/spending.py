"""What turns took of the model, by when, where and for whom: counted from the log, in the transaction that closes them.

The log has it all; asked for a month's sum before every question, it would have to be read whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, func, insert, select

from storage.database import Database
from storage.schema import entries, spending
from storage.storable import decoded
from storage.types import EntryKind, Spent

_Row = Row[*tuple[Any, ...]]
_CHUNK = 500


class Spending:
    """Adds up what turns took. Raises `StorageError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def total(self, *, since: datetime, platform_user: str = "", channel: str = "") -> Spent:
        """Return what the turns took that were closed since then: of a user, in a channel, or all of them.

        Users and channels are named with their platform: `slack:T1/U1`, `slack:T1/C1`.
        """
        sums = func.coalesce(func.sum(spending.c.tokens), 0), func.coalesce(func.sum(spending.c.cost), 0.0)
        query = select(func.count(), *sums).select_from(spending).where(spending.c.at >= since)
        if platform_user:
            query = query.where(spending.c.asker == platform_user)
        if channel:
            query = query.where(spending.c.channel == channel)
        turns, tokens, cost = await self._database.read(lambda connection: connection.execute(query).one())
        return Spent(turns, int(tokens), float(cost))


def note_spending(connection: Connection, numbers: Sequence[int]) -> None:
    """Count those of these entries of the log that close a turn, within the transaction that added them."""
    for start in range(0, len(numbers), _CHUNK):
        chosen = entries.c.seq.in_(numbers[start : start + _CHUNK])
        closings = connection.execute(
            select(entries).where(chosen, entries.c.kind == EntryKind.TURN_CLOSED.value)
        ).all()
        askers = _askers(connection, {row.turn_id for row in closings})
        for row in closings:
            about = {"seq": row.seq, "turn_id": row.turn_id, "at": row.at}
            counted = spent(askers.get(row.turn_id, {}), decoded(row.body))
            connection.execute(insert(spending), about | counted)


def _askers(connection: Connection, turns: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    query = select(entries.c.turn_id, entries.c.body).where(entries.c.turn_id.in_(list(turns)))
    opened = connection.execute(query.where(entries.c.kind == EntryKind.TURN_OPENED.value))
    return {row.turn_id: decoded(row.body).get("asker") or {} for row in opened}


def spent(asker: Mapping[str, Any], closed: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a turn took, from who is on record for asking and the body of its closing entry. Pure.

    Where a record does not say, nothing is counted: a turn is never left unrecorded for want of a figure.
    """
    platform, workspace = str(asker.get("platform", "")), str(asker.get("workspace", ""))
    usage = closed.get("usage") or {}
    return {
        "platform": platform,
        "channel": _named(platform, workspace, asker.get("channel")),
        "asker": _named(platform, workspace, asker.get("user")),
        "tokens": (usage.get("prompt_tokens") or 0) + (usage.get("completion_tokens") or 0),
        "cost": usage.get("cost") or 0.0,
    }


def _named(platform: str, workspace: str, name: str | None) -> str:
    return f"{platform}:{workspace}/{name}" if name else ""
