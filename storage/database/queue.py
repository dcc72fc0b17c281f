"""The queue of questions: durable, each question exactly once.

A question is *waiting* until a process claims it, *running* while that process keeps its lease, then *done*, unless it
is asked again after an edit. Its key is an idempotency key: a question that arrives twice is accepted once.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    Select,
    and_,
    bindparam,
    delete,
    exists,
    func,
    insert,
    or_,
    select,
    update,
)

from storage.clock import Clock, utc_now
from storage.database.engine import INSERTS, Database, decode_json, encode_json, split_chunks
from storage.database.schema import posts, questions, rewordings
from storage.database.worker_threads import WritePriority
from storage.types import NewQuestion, QueuedQuestion

WAITING, RUNNING, DONE = "waiting", "running", "done"
RETRACTION_KEY = "taken_back"
"""Key of a question's body: who requested the removal of its answer, and why, until all messages are removed."""
_NO_OWNER: Mapping[str, Any] = {"owner": "", "lease_until": None}
_NEW_STATE: Mapping[str, Any] = {"state": WAITING, "outcome": "", "turn_id": "", "sending": False, **_NO_OWNER}

T = TypeVar("T")


@dataclass(frozen=True)
class Queue:
    """The queue. Every method is one durable transaction, and raises `StorageError`."""

    database: Database
    clock: Clock = utc_now

    async def put(self, question: NewQuestion) -> tuple[QueuedQuestion, bool]:
        """Store a question unless its key already exists. Return the question in the queue, and whether it is new."""
        taken_over = ("key", "channel", "conversation", "message", "handle", "sending")
        named = {name: getattr(question, name) for name in taken_over}
        stored = {"asker": question.user, "body": encode_json(question.body), "taken_at": self.clock()}
        row = {**_NEW_STATE, **named, **stored}
        # Before all other waiting writes.
        return await self.database.write(lambda connection: _insert_question(connection, row), WritePriority.QUESTION)

    async def open(self, owner: str, now: datetime, *, sole: bool = False) -> tuple[QueuedQuestion, ...]:
        """Return all questions that `owner` may claim, oldest first: waiting ones, and those with a lapsed lease.

        The name of `owner` must never have been used by another process. `sole` means that no other process exists:
        then questions that other processes ran can be claimed even if their leases have not lapsed.
        """
        claimable = select(questions).where(_is_claimable(owner, now, sole=sole))
        return await self._all(claimable.order_by(questions.c.ticket))

    async def claim(
        self,
        ticket: int,
        owner: str,
        until: datetime,
        *,
        now: datetime,
        sole: bool = False,
        turn_id: str | None = None,
        sending: bool | None = None,
    ) -> bool:
        """Lease a question to `owner` if `open` would return it, and record progress; return whether it was claimed."""
        change = update(questions).where(questions.c.ticket == ticket, _is_claimable(owner, now, sole=sole))
        known = _drop_unset(turn_id=turn_id, sending=sending)
        claimed = change.values(state=RUNNING, owner=owner, lease_until=until, **known)
        return await self._write(lambda connection: connection.execute(claimed).rowcount == 1)

    async def renew(self, owner: str, until: datetime) -> frozenset[int]:
        """Renew all leases of `owner`, and return the tickets; a missing ticket was taken over by another process."""
        own = update(questions).where(questions.c.state == RUNNING, questions.c.owner == owner)
        renewed = own.values(lease_until=until).returning(questions.c.ticket)
        return await self._write(lambda connection: frozenset(connection.execute(renewed).scalars()))

    async def check_writable(self) -> None:
        await self.database.check_writable()

    async def release(self, ticket: int) -> None:
        """Make a running question wait again; its progress stays recorded."""
        running = update(questions).where(questions.c.ticket == ticket, questions.c.state == RUNNING)
        await self._write(lambda connection: connection.execute(running.values(state=WAITING, **_NO_OWNER)))

    async def note(
        self,
        ticket: int,
        *,
        turn_id: str | None = None,
        sending: bool | None = None,
        posted: Sequence[str] | None = None,
        text: str | None = None,
    ) -> None:
        """Record the progress of a question, whatever its state. A value that is None stays unchanged.

        `turn_id` is the turn that answers it; empty removes it. `sending` says whether its first post was started but
        may not have ended. `posted` are all messages that show its answer, in order. `text` is its new text; if the
        question is running, such an edit counts as one more question.
        """
        known, now = _drop_unset(turn_id=turn_id, sending=sending), self.clock()

        def note(connection: Connection) -> None:
            _update_progress(connection, ticket, known, posted, text)
            running = exists().where(questions.c.ticket == ticket, questions.c.state == RUNNING)
            if text is not None and connection.execute(select(running)).scalar_one():
                connection.execute(insert(rewordings).values(ticket=ticket, at=now))

        await self._write(note)

    async def finish(
        self,
        ticket: int,
        outcome: str,
        *,
        text: str | None = None,
        gone: bool = False,
        posted: Sequence[str] | None = None,
        record: Callable[[Connection], None] | None = None,
    ) -> bool:
        """Finish a question, forget its handle, and call `record` in the same transaction.

        If the answer is to be retracted, or if `text`, which was answered, is no longer the question's text, the
        question waits again, and this returns False. A question that is `gone` finishes anyway. `posted` is as for
        `note`.
        """

        def finish(connection: Connection) -> bool:
            if record is not None:
                record(connection)
            if posted is not None:
                _update_progress(connection, ticket, {}, posted, None)
            return _finish_question(connection, ticket, outcome, text, gone=gone)

        return await self._write(finish)

    async def retract(self, ticket: int, *, by: str, why: str) -> QueuedQuestion | None:
        """Request that the answer to a question be removed. A finished question waits again, so that this is done.

        Return the question; None if it is unknown or its answer is already removed. Of several requests, the first is
        kept.
        """
        await self._write(lambda connection: mark_retracted(connection, ticket, {"by": by, "why": why}))
        row = await self.get(ticket)
        return row if row is not None and row.state != DONE else None

    async def reopen(self, ticket: int, text: str) -> bool:
        """Make a finished question wait again after an edit, keeping its posts. Returns False if not finished."""
        again = update(questions).where(questions.c.ticket == ticket, questions.c.state == DONE).values(_NEW_STATE)
        now = self.clock()

        def reopen(connection: Connection) -> bool:
            if done := connection.execute(again).rowcount == 1:
                _update_progress(connection, ticket, {}, None, text)
                connection.execute(insert(rewordings).values(ticket=ticket, at=now))
            return done

        return await self._write(reopen)

    async def get(self, ticket: int) -> QueuedQuestion | None:
        return await self._one(select(questions).where(questions.c.ticket == ticket))

    async def by_key(self, key: str) -> QueuedQuestion | None:
        return await self._one(select(questions).where(questions.c.key == key))

    async def conversation(
        self, conversation: str, *, before: int | None = None, limit: int
    ) -> tuple[QueuedQuestion, ...]:
        """Return the last `limit` questions of a conversation, newest last: only those before the ticket `before`."""
        query = select(questions).where(questions.c.conversation == conversation)
        earlier = query if before is None else query.where(questions.c.ticket < before)
        return (await self._all(earlier.order_by(questions.c.ticket.desc()).limit(limit)))[::-1]

    async def asked(
        self,
        *,
        since: datetime,
        user: str = "",
        channel: str = "",
        upto: int | None = None,
        excluded: Collection[str] = (),
    ) -> int:
        """Count the questions since a moment: all, or those of a user or in a channel.

        Each edit of a started question counts once more. With the ticket `upto`, later questions do not count, unless
        the question `upto` was edited: it then counts as the newest. Questions with `excluded` outcomes never count.
        """
        where: list[ColumnElement[bool]] = [questions.c.outcome.not_in(list(excluded))] if excluded else []
        where += [questions.c.asker == user] if user else []
        where += [questions.c.channel == channel] if channel else []
        taken = select(func.count()).select_from(questions).where(questions.c.taken_at >= since, *where)
        again = select(func.count()).select_from(rewordings.join(questions)).where(rewordings.c.at >= since, *where)

        def count(connection: Connection) -> int:
            reworded = select(exists().where(rewordings.c.ticket == upto))
            is_last = upto is None or connection.execute(reworded).scalar_one()
            counted = () if is_last else (questions.c.ticket <= upto,)
            return sum(int(connection.execute(each.where(*counted)).scalar_one()) for each in (taken, again))

        return await self.database.read(count)

    async def recent(self, channel: str, *, user: str = "", limit: int) -> tuple[QueuedQuestion, ...]:
        """Return the last questions of a channel, or of one `user` in it, newest first."""
        query = select(questions).where(questions.c.channel == channel)
        theirs = query.where(questions.c.asker == user) if user else query
        return await self._all(theirs.order_by(questions.c.ticket.desc()).limit(limit))

    async def bodies_before(self, question: QueuedQuestion, *, since: datetime) -> tuple[Mapping[str, Any], ...]:
        """Return the bodies of the asker's earlier questions in the same channel, since a moment."""
        place = questions.c.asker == question.user, questions.c.channel == question.channel
        earlier = questions.c.taken_at >= since, questions.c.ticket < question.ticket
        query = select(questions.c.body).where(*place, *earlier)
        return await self.database.read(lambda it: tuple(map(decode_json, it.execute(query).scalars())))

    async def newest(self, platform: str) -> QueuedQuestion | None:
        """Return the last question of a platform, such as `slack`; None if there is none."""
        query = select(questions).where(questions.c.channel.startswith(f"{platform}:", autoescape=True))
        return await self._one(query.order_by(questions.c.ticket.desc()).limit(1))

    async def standing(self, platform: str, *, since: datetime, limit: int) -> tuple[QueuedQuestion, ...]:
        """Return the questions since a moment that were asked by a message and may have an answer, newest first."""
        here = questions.c.channel.startswith(f"{platform}:", autoescape=True)
        open_yet = and_(questions.c.message != "", questions.c.outcome.in_(["", "delivered"]))
        query = select(questions).where(here, questions.c.taken_at >= since, open_yet)
        return await self._all(query.order_by(questions.c.ticket.desc()).limit(limit))

    async def by_message(self, channel: str, message: str) -> QueuedQuestion | None:
        """Return the newest question that this message answers; if there is none, the newest one that it asks."""
        answers = select(posts.c.ticket).where(posts.c.channel == channel, posts.c.message == message)
        asks = (questions.c.channel == channel, questions.c.message == message, questions.c.message != "")
        newest = select(questions).order_by(questions.c.ticket.desc()).limit(1)
        return await self._one(newest.where(questions.c.ticket.in_(answers))) or await self._one(newest.where(*asks))

    async def _write(self, function: Callable[[Connection], T]) -> T:
        return await self.database.write(function)

    async def _all(self, query: Select[Any]) -> tuple[QueuedQuestion, ...]:
        return await self.database.read(lambda connection: fetch_questions(connection, query))

    async def _one(self, query: Select[Any]) -> QueuedQuestion | None:
        rows = await self._all(query)
        return rows[0] if rows else None


def _is_claimable(owner: str, now: datetime, *, sole: bool) -> ColumnElement[bool]:
    left = and_(questions.c.state == RUNNING, questions.c.owner != owner)
    return or_(questions.c.state == WAITING, left if sole else and_(left, questions.c.lease_until < now))


# Statements are built once, as building one takes longer than running it.
_THIS = questions.c.ticket == bindparam("number")
_LOCK = select(questions.c.channel, questions.c.body, questions.c.state).where(_THIS).with_for_update()
_CHANGE = update(questions).where(_THIS)
_FORGET_POSTS = delete(posts).where(posts.c.ticket == bindparam("number"))
_POST = insert(posts)
_ADD = {
    name: adding(questions).on_conflict_do_nothing(index_elements=["key"]).returning(*questions.c)
    for name, adding in INSERTS.items()
}


def _finish_question(connection: Connection, ticket: int, outcome: str, text: str | None, *, gone: bool) -> bool:
    question = connection.execute(_LOCK, {"number": ticket}).one_or_none()
    body = {} if question is None else decode_json(question.body)
    done = gone or (RETRACTION_KEY not in body and (text is None or body.get("text", text) == text))
    over = {"state": DONE, "outcome": outcome, "handle": ""} if done else {"state": WAITING}
    connection.execute(_CHANGE, {"number": ticket, **over, **_NO_OWNER})
    return done


def mark_retracted(connection: Connection, ticket: int, wish: Mapping[str, Any]) -> None:
    """Store a request to remove the answer to a question: who requests it, why, and other messages to remove."""
    row = connection.execute(_LOCK, {"number": ticket}).one_or_none()
    if row is None or RETRACTION_KEY in (body := decode_json(row.body)):
        return
    again = {"state": WAITING, "outcome": ""} if row.state == DONE else {}
    body[RETRACTION_KEY] = wish
    connection.execute(_CHANGE, {"number": ticket, "body": encode_json(body), **again})


def _insert_question(connection: Connection, row: Mapping[str, Any]) -> tuple[QueuedQuestion, bool]:
    # Few statements: during an ingest, each may wait some milliseconds for the interpreter.
    new = connection.execute(_ADD[connection.dialect.name], row).one_or_none()
    if new is not None:
        return parse_question(new, ()), True
    (known,) = fetch_questions(connection, select(questions).where(questions.c.key == row["key"]))
    return known, False


def _drop_unset(**values: object) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _update_progress(
    connection: Connection, ticket: int, values: Mapping[str, Any], posted: Sequence[str] | None, text: str | None
) -> None:
    if posted is None and text is None:
        if values:
            connection.execute(_CHANGE, {"number": ticket, **values})
        return
    question = connection.execute(_LOCK, {"number": ticket}).one_or_none()
    if question is None:
        return
    changed = dict(values)
    if text is not None:
        changed["body"] = encode_json({**decode_json(question.body), "text": text})
    if changed:
        connection.execute(_CHANGE, {"number": ticket, **changed})
    if posted is not None:
        connection.execute(_FORGET_POSTS, {"number": ticket})
        shown = [{"position": position, "message": message} for position, message in enumerate(posted)]
        if shown:
            place = {"ticket": ticket, "channel": question.channel}
            connection.execute(_POST, [place | message for message in shown])


def fetch_questions(connection: Connection, query: Select[Any]) -> tuple[QueuedQuestion, ...]:
    """Return the questions that a query over the table of questions selects, in its order."""
    rows = connection.execute(query).all()
    posted = defaultdict[int, list[str]](list)
    for tickets in split_chunks([row.ticket for row in rows]):
        by_place = select(posts).where(posts.c.ticket.in_(tickets)).order_by(posts.c.ticket, posts.c.position)
        for post in connection.execute(by_place):
            posted[post.ticket].append(post.message)
    return tuple(parse_question(row, tuple(posted[row.ticket])) for row in rows)


def parse_question(row: Row[*tuple[Any, ...]], posted: tuple[str, ...]) -> QueuedQuestion:
    """Return the question of a row, with the messages of its answer."""
    fields = {column.name: getattr(row, column.name) for column in questions.c}
    user, body = fields.pop("asker"), decode_json(fields.pop("body"))
    return QueuedQuestion(user=user, body=body, posted=posted, **fields)
