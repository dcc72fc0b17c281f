"""Read blind comparisons of two systems from the record: the compared answers, and what people think of them.

A compared turn names both systems in its closing entry, under `study`.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from storage.database.engine import Database
from storage.database.schema import entries, feedback, turns
from storage.record.entry_rows import read_body, read_object
from storage.types import EntryKind

RATED, LEFT = "rated", "left_study"  # acts of feedback: a rating from 1 to 5; leaving comparisons until the next rating


@dataclass(frozen=True, slots=True)
class ComparedAnswer:
    turn: int  # `turns.seq`
    at: datetime
    channel: str
    asker: str
    system: str
    systems: tuple[str, ...]  # both of its comparison
    status: str
    seconds: float
    retracted: bool
    quoted: bool  # whether the model failed, so that only quotations were looked for


@dataclass(frozen=True, slots=True)
class Rating:
    """A rating; 0 if the person left."""

    turn: int
    person: str
    rating: int
    comment: str


@dataclass(frozen=True)
class Comparisons:
    """Every method raises `StorageError`."""

    database: Database

    async def answers(self, channel: str = "", since: datetime | None = None) -> tuple[ComparedAnswer, ...]:
        """Return the compared answers, oldest first; erased ones are no longer known."""
        named = entries.c.kind == EntryKind.TURN_CLOSED.value, entries.c.body.contains('"study":', autoescape=True)
        query = select(*_COLUMNS, entries.c.body).join(entries, entries.c.turn_id == turns.c.turn_id).where(*named)
        query = query.where(turns.c.channel == channel) if channel else query
        query = query.where(turns.c.at >= since) if since else query

        def fetch(connection: Connection) -> tuple[ComparedAnswer, ...]:
            found = map(_parse_answer, connection.execute(query.order_by(turns.c.seq)))
            return tuple(answer for answer in found if answer.systems)

        return await self.database.read(fetch)

    async def ratings(self) -> tuple[Rating, ...]:
        """Return all ratings in the order in which they were given, also those that a later one replaces."""
        columns = feedback.c.turn, feedback.c.person, feedback.c.rating, feedback.c.comment
        query = select(*columns).where(feedback.c.what.in_((RATED, LEFT))).order_by(feedback.c.seq)
        return await self.database.read(lambda it: tuple(Rating(*row) for row in it.execute(query)))

    async def has_left(self, person: str) -> bool:
        """Return whether a person left comparisons, and rated nothing since."""
        acts = feedback.c.person == person, feedback.c.what.in_((RATED, LEFT))
        query = select(feedback.c.what).where(*acts).order_by(feedback.c.seq.desc()).limit(1)
        return await self.database.read(lambda it: it.execute(query).scalar()) == LEFT


_TURN = "seq", "at", "channel", "asker", "system", "status", "seconds", "retracted"
_COLUMNS = [turns.c[name] for name in _TURN]


def _parse_answer(row: Row[*tuple[Any, ...]]) -> ComparedAnswer:
    closed = read_body(row.body)
    systems = read_object(closed.get("study")).get("systems")
    names = tuple(map(str, systems)) if isinstance(systems, list) else ()
    seq, at, channel, asker, system, status, seconds, retracted = row[: len(_TURN)]
    return ComparedAnswer(
        seq, at, channel, asker, system, names, status, seconds, retracted, bool(closed.get("quoted_because"))
    )
