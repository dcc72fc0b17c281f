"""Erase the texts of a person, a conversation or old entries from the record, and log the erasure.

Bodies are erased with their salts. The entries and their leaves stay, so every proof remains valid. The rest does not
reveal the texts.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from sqlalchemy import ColumnElement, Connection, and_, delete, or_, select, update

from storage.clock import Clock, utc_now
from storage.database.engine import Database, decode_json, encode_json, split_chunks
from storage.database.queue import DONE, RETRACTION_KEY, mark_retracted
from storage.database.schema import entries, examples, posts, questions, spending, turns
from storage.database.worker_threads import WritePriority
from storage.record.audit_log import encode_entries, insert_entries, lock_record
from storage.record.entry_rows import read_body, refresh_claims
from storage.record.turn_index import blank_turns
from storage.types import RECORD, EntryKind, LogEntry

_BY_ACT = (EntryKind.FEEDBACK, EntryKind.EDITED)  # entries of users' actions on their own and others' answers
_POSTING = (EntryKind.RECHECK, EntryKind.FEEDBACK)  # entries with messages other than those of the answer
_GONE = "retracted"  # the outcome of questions whose texts were erased, so that they are not asked again


@dataclass(frozen=True, slots=True)
class ErasureTarget:
    """The target of an erasure; exactly one field is set."""

    person: str = ""  # such as `slack:T1/U1`
    conversation: str = ""  # such as `slack:T1/C1/1700000000.000100`; or the id of one answer
    before: datetime | None = None  # all questions before then

    @property
    def what(self) -> str:
        """The kind of the target. The record gets only this: it must not name the target itself."""
        return "person" if self.person else "conversation" if self.conversation else "age"


@dataclass(frozen=True, slots=True)
class StandingMessages:
    """The messages still shown in a channel about a question whose text is erased."""

    ticket: int
    own: int  # the number of messages that show its answer
    others: tuple[str, ...]  # notes beneath it, calls for people, and shared copies


@dataclass(frozen=True, slots=True)
class ErasurePlan:
    """The rows that an erasure would change."""

    turns: tuple[str, ...] = ()  # turns that are erased completely
    entries: tuple[int, ...] = ()  # the numbers of all entries, within and outside of these turns
    tickets: tuple[int, ...] = ()  # of questions of the queue
    held: int = 0  # turns that are on hold, and are not erased
    standing: tuple[StandingMessages, ...] = ()  # messages to remove from channels, if requested
    retracted: tuple[int, ...] = ()  # tickets of others' questions, whose answer the person retracted

    @property
    def messages(self) -> int:
        return sum(messages.own + len(messages.others) for messages in self.standing)


@dataclass(frozen=True, slots=True)
class ErasureDone:
    """The result of an erasure."""

    turns: int
    entries: int
    questions: int
    messages: int  # messages that the desk removes from now on
    backups: tuple[str, ...]  # names of the removed copies of the database
    compacted: bool  # whether the file has no trace any more; False while another process reads it


@dataclass(frozen=True)
class RecordErasure:
    """Erases texts from the record, except those of people, channels and answers `held` by the settings."""

    database: Database
    held: Collection[str] = ()
    clock: Clock = utc_now

    async def plan(self, target: ErasureTarget, *, messages: bool = False) -> ErasurePlan:
        """Return what an erasure would change; with `messages`, also the messages to remove. Raises `StorageError`."""
        return await self.database.read(
            lambda connection: _plan(connection, target, self._holds(connection), messages=messages)
        )

    async def holds(self) -> frozenset[str]:
        """Return the names that are on hold, by the settings or by the record."""
        return await self.database.read(self._holds)

    async def hold(self, name: str, *, on: bool, why: str, by: str) -> None:
        """Put a person, channel, conversation or answer on hold, or end its hold, and log that."""
        body = {"what": name, "on": on, "why": why, "by": by}
        rows = encode_entries([LogEntry(RECORD, EntryKind.HOLD, body)], self.clock())
        await self.database.write(lambda connection: insert_entries(connection, rows))

    async def erase(
        self, target: ErasureTarget, *, why: str, by: str, whole: bool = True, messages: bool = False
    ) -> ErasureDone:
        """Erase the target's texts, and database copies of older versions; entries on hold stay. Raises `StorageError`.

        With `messages`, the answers to erased questions are marked for retraction, in the transaction that blanks the
        questions and before any entry that names messages is blanked. So the desk removes them even if this is
        interrupted. A turn that is still being answered is erased next time. With `whole`, the database file is
        rewritten: otherwise, pages freed before SQLite overwrote removed data still contain old data.
        """
        plan = await self.plan(target, messages=messages)
        about: dict[str, Any] = {"what": target.what, "why": why, "by": by}
        about |= {"before": target.before} if target.before else {}
        wish = {"by": by, "why": why or "its words were erased"}
        wishes = {messages.ticket: wish | {"messages": messages.others} for messages in plan.standing}
        blank = partial(_blank_questions, tickets=plan.tickets, wishes=wishes, retracted=plan.retracted)
        await self.database.write(blank, WritePriority.BATCH)
        for numbers in split_chunks(plan.entries):
            erase = partial(self._blank, numbers=numbers, about=about, gone=frozenset(plan.turns))
            await self.database.write(erase, WritePriority.BATCH)
        for chosen in split_chunks(plan.turns):
            await self.database.write(partial(_blank_turns, turn_ids=chosen), WritePriority.BATCH)
        backups = await self.database.remove_copies()
        compacted = await self.database.compact(whole=whole)
        counts = len(plan.turns), len(plan.entries), len(plan.tickets), plan.messages
        return ErasureDone(*counts, backups, compacted)

    def _holds(self, connection: Connection) -> frozenset[str]:
        query = select(entries.c.body).where(entries.c.kind == EntryKind.HOLD.value).order_by(entries.c.seq)
        holds = dict.fromkeys(self.held, True)
        for body in map(read_body, connection.execute(query).scalars()):
            holds[str(body.get("what"))] = bool(body.get("on"))
        return frozenset(name for name, on in holds.items() if on or name in self.held)

    def _blank(
        self, connection: Connection, numbers: Sequence[int], about: dict[str, Any], gone: AbstractSet[str]
    ) -> None:
        """Blank these entries, after adding an entry that names them; the database allows no other change.

        A retraction in a turn that is not `gone` stays in force: an entry without a name is added for it.
        """
        body = {**about, "entries": len(numbers), "erased": _join_ranges(numbers)}
        chosen = entries.c.seq.in_(numbers), entries.c.kind == EntryKind.EDITED.value
        edits = connection.execute(select(entries.c.turn_id, entries.c.body).where(*chosen)).all()
        lasting = [row.turn_id for row in edits if row.turn_id not in gone and read_body(row.body).get("retracted")]
        added = [LogEntry(turn_id, EntryKind.EDITED, {"retracted": True}) for turn_id in lasting]
        added.append(LogEntry(RECORD, EntryKind.ERASURE, body))  # the last one: the database checks that
        insert_entries(connection, encode_entries(added, self.clock()))
        connection.execute(update(entries).where(entries.c.seq.in_(numbers)).values(body="", salt=b""))
        theirs = select(entries.c.turn_id).where(entries.c.seq.in_(numbers)).distinct()
        refresh_claims(connection, connection.execute(theirs).scalars().all())


def _plan(connection: Connection, target: ErasureTarget, holds: frozenset[str], *, messages: bool) -> ErasurePlan:
    chosen = _choose_turns(connection, target)
    rows = connection.execute(select(turns.c.turn_id, turns.c.asker, turns.c.channel).where(chosen)).all()
    held_turns = {row.turn_id for row in rows if holds & {row.turn_id, row.asker, row.channel}}
    if holds & {target.person, target.conversation}:
        return ErasurePlan(held=len(rows))
    gone = [row.turn_id for row in rows if row.turn_id not in held_turns]
    numbers = {*_list_entries(connection, gone), *_list_elsewhere(connection, target, gone, holds)}
    tickets = _list_tickets(connection, target, gone, holds)
    standing = tuple(_list_standing(connection, tickets)) if messages else ()
    retracted = tuple(_list_retracted(connection, target.person, holds)) if target.person else ()
    return ErasurePlan(tuple(gone), tuple(sorted(numbers)), tickets, len(held_turns), standing, retracted)


def _choose_turns(connection: Connection, target: ErasureTarget) -> ColumnElement[bool]:
    ended = or_(turns.c.status != "", turns.c.erased)
    if target.person:
        return (turns.c.asker == target.person) & ended
    if target.before:
        return (turns.c.at < target.before) & ended
    queued = select(questions.c.turn_id).where(questions.c.conversation == target.conversation)
    tickets = set(
        connection.execute(select(questions.c.ticket).where(questions.c.conversation == target.conversation)).scalars()
    )
    channel = "/".join(target.conversation.split("/")[:2])
    again = [
        turn_id
        for turn_id, _, body in _read_openings(connection, turns.c.channel == channel)
        if tickets and body.get("ticket") in tickets
    ]
    named = or_(turns.c.turn_id.in_(queued), turns.c.turn_id == target.conversation, turns.c.turn_id.in_(again))
    return named & ended


def _read_openings(connection: Connection, where: ColumnElement[bool]) -> Iterator[tuple[str, int, Any]]:
    query = select(entries.c.turn_id, entries.c.seq, entries.c.body).join(turns, turns.c.seq == entries.c.seq)
    for turn_id, seq, body in connection.execute(query.where(where)):
        yield turn_id, seq, read_body(body)


def _list_entries(connection: Connection, turn_ids: Collection[str]) -> Iterator[int]:
    """Yield the entries of turns that still have texts, except entries about who read them."""
    read = EntryKind.READ.value
    for chunk in split_chunks(turn_ids):
        theirs = entries.c.turn_id.in_(chunk), entries.c.body != "", entries.c.kind != read
        query = select(entries.c.seq).where(*theirs)
        yield from connection.execute(query).scalars()


def _list_elsewhere(
    connection: Connection, target: ErasureTarget, gone: Collection[str], holds: frozenset[str]
) -> Iterator[int]:
    """Yield the entries to erase outside of the target's own turns.

    These are actions by the person on others' answers, others' turns that quote the person, and old entries about
    readers.
    """
    if target.before:
        read = entries.c.kind == EntryKind.READ.value, entries.c.at < target.before, entries.c.body != ""
        yield from connection.execute(select(entries.c.seq).where(*read)).scalars()
    if not target.person:
        return
    acts = select(entries.c.seq, entries.c.body).join(turns, turns.c.turn_id == entries.c.turn_id)
    acts = acts.where(entries.c.kind.in_([kind.value for kind in _BY_ACT]), _is_free(holds))
    words = set(_list_texts(connection, gone))
    for seq, body in connection.execute(acts):
        feedback = read_body(body)
        if feedback.get("by") == target.person:
            words |= {str(feedback[name]) for name in ("comment", "text") if feedback.get(name)}
            yield seq
    yield from _list_quoting(connection, target.person, words, holds)


def _list_texts(connection: Connection, turn_ids: Collection[str]) -> Iterator[str]:
    for chunk in split_chunks(turn_ids):
        rows = connection.execute(select(turns.c.question).where(turns.c.turn_id.in_(chunk), turns.c.question != ""))
        yield from rows.scalars()


def _list_quoting(connection: Connection, person: str, words: AbstractSet[str], holds: frozenset[str]) -> Iterator[int]:
    """Yield the entries of others' turns, in the person's channels, that quote any of these texts."""
    channels = select(turns.c.channel).where(turns.c.asker == person, turns.c.channel != "")
    theirs = turns.c.channel.in_(channels) & (turns.c.asker != person) & _is_free(holds)
    openings = _read_openings(connection, theirs)
    quoting = [turn_id for turn_id, _, body in openings if not words.isdisjoint(body.get("earlier") or ())]
    made = (EntryKind.TURN_OPENED.value, EntryKind.STEP.value)
    for turn_id in quoting:
        rows = select(entries.c.seq, entries.c.kind, entries.c.body).where(entries.c.turn_id == turn_id)
        for seq, kind, body in connection.execute(rows.where(entries.c.body != "")):
            if kind in made or any(encode_json(text)[1:-1] in body for text in words):
                yield seq


def _is_free(holds: frozenset[str]) -> ColumnElement[bool]:
    return and_(*(column.not_in(holds) for column in (turns.c.turn_id, turns.c.asker, turns.c.channel)))


def _list_tickets(
    connection: Connection, target: ErasureTarget, gone: Collection[str], holds: frozenset[str]
) -> tuple[int, ...]:
    """Return the tickets of finished questions whose texts are to be erased."""
    if target.person:
        chosen = questions.c.asker == target.person
    elif target.before:
        chosen = questions.c.taken_at < target.before
    else:
        chosen = or_(questions.c.conversation == target.conversation, questions.c.turn_id == target.conversation)
    rows = connection.execute(
        select(questions.c.ticket, questions.c.turn_id).where(
            chosen, questions.c.state == DONE, questions.c.asker.not_in(holds), questions.c.channel.not_in(holds)
        )
    ).all()
    known = set(gone)
    return tuple(row.ticket for row in rows if not row.turn_id or row.turn_id in known)


def _list_retracted(connection: Connection, person: str, holds: frozenset[str]) -> Iterator[int]:
    """Yield the tickets of others' finished questions that name the person who retracted their answer."""
    named = questions.c.body.contains(encode_json(person), autoescape=True), questions.c.asker != person
    free = questions.c.state == DONE, questions.c.asker.not_in(holds), questions.c.channel.not_in(holds)
    for ticket, body in connection.execute(select(questions.c.ticket, questions.c.body).where(*named, *free)):
        if (decode_json(body).get(RETRACTION_KEY) or {}).get("by") == person:
            yield ticket


def _list_standing(connection: Connection, tickets: Collection[int]) -> Iterator[StandingMessages]:
    """Yield the removable messages of these questions. Messages that only the asker saw disappear by themselves."""
    for chunk in split_chunks(tickets):
        own = Counter(connection.execute(select(posts.c.ticket).where(posts.c.ticket.in_(chunk))).scalars())
        others = defaultdict[int, list[str]](list)
        named = select(questions.c.ticket, entries.c.body).join(entries, entries.c.turn_id == questions.c.turn_id)
        named = named.where(questions.c.ticket.in_(chunk), entries.c.kind.in_([kind.value for kind in _POSTING]))
        for ticket, body in connection.execute(named.order_by(entries.c.seq)):
            messages = read_body(body).get("messages")
            others[ticket] += map(str, messages) if isinstance(messages, list) else ()
        for ticket, body in connection.execute(
            select(questions.c.ticket, questions.c.body).where(questions.c.ticket.in_(chunk))
        ):
            question = decode_json(body)
            standing = StandingMessages(ticket, 0 if question.get("only_asker") else own[ticket], tuple(others[ticket]))
            if RETRACTION_KEY not in question and (standing.own or standing.others):
                yield standing


def _blank_turns(connection: Connection, turn_ids: Sequence[str]) -> None:
    lock_record(connection)
    blank_turns(connection, turn_ids)
    connection.execute(update(spending).where(spending.c.turn_id.in_(turn_ids)).values(asker=""))
    connection.execute(delete(examples).where(examples.c.turn_id.in_(turn_ids)))


def _blank_questions(
    connection: Connection,
    tickets: Sequence[int],
    wishes: Mapping[int, Mapping[str, Any]],
    retracted: Sequence[int],
) -> None:
    """Blank the questions `tickets`, and in the questions `retracted` only who retracted the answer, and why."""
    for ticket, body in _lock_questions(connection, retracted):
        values = {"body": encode_json(_blank_retraction(body))}
        connection.execute(update(questions).where(questions.c.ticket == ticket).values(values))
    for ticket, body in _lock_questions(connection, tickets):
        nothing = {"asker": "", "handle": "", "outcome": _GONE, "body": encode_json(_blank_question(body))}
        connection.execute(update(questions).where(questions.c.ticket == ticket).values(nothing))
        if ticket in wishes:
            mark_retracted(connection, ticket, wishes[ticket])


def _lock_questions(connection: Connection, tickets: Sequence[int]) -> Iterator[tuple[int, str]]:
    for chunk in split_chunks(tickets):
        query = select(questions.c.ticket, questions.c.body).where(questions.c.ticket.in_(chunk)).with_for_update()
        yield from ((ticket, body) for ticket, body in connection.execute(query).all())


def _blank_retraction(body: str) -> dict[str, Any]:
    kept: dict[str, Any] = decode_json(body)
    return kept | {RETRACTION_KEY: {"by": "", "why": ""}} if RETRACTION_KEY in kept else kept


def _blank_question(body: str) -> dict[str, Any]:
    """Return a question's body without its text, its asker, and the name of the person who retracted its answer."""
    kept = _blank_retraction(body)
    asker = kept.get("asker")
    kept |= {"asker": {**asker, "user": "", "principals": []}} if isinstance(asker, dict) else {}
    return kept | {"text": ""}


def _join_ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Join ascending numbers to ranges, each as its first and last number."""
    joined: list[list[int]] = []
    for number in numbers:
        if joined and number == joined[-1][1] + 1:
            joined[-1][1] = number
        else:
            joined.append([number, number])
    return joined
