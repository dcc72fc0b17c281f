"""Rows of the queue's tables, read back as questions with the messages that show their answers."""

from collections import defaultdict
from typing import Any

from sqlalchemy import Connection, Row, Select, select

from storage.schema import posts
from storage.storable import decoded
from storage.types import QueuedQuestion

_CHUNK = 500


def found(connection: Connection, query: Select[Any]) -> tuple[QueuedQuestion, ...]:
    """Return the questions that a query over their table finds, in its order."""
    rows = connection.execute(query).all()
    posted = defaultdict[int, list[str]](list)
    for start in range(0, len(rows), _CHUNK):
        tickets = [row.ticket for row in rows[start : start + _CHUNK]]
        by_place = select(posts).where(posts.c.ticket.in_(tickets)).order_by(posts.c.ticket, posts.c.position)
        for post in connection.execute(by_place):
            posted[post.ticket].append(post.message)
    return tuple(question(row, tuple(posted[row.ticket])) for row in rows)


def question(row: Row[*tuple[Any, ...]], posted: tuple[str, ...]) -> QueuedQuestion:
    """Return a row of the table, and the messages of its answer, as a question."""
    return QueuedQuestion(
        ticket=row.ticket,
        key=row.key,
        channel=row.channel,
        conversation=row.conversation,
        user=row.asker,
        message=row.message,
        body=decoded(row.body),
        handle=row.handle,
        state=row.state,
        outcome=row.outcome,
        taken_at=row.taken_at,
        turn_id=row.turn_id,
        sending=row.sending,
        posted=posted,
        owner=row.owner,
        lease_until=row.lease_until,
    )
