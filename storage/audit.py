"""The audit log: append entries and read them, sum up spending, keep channel overrides, verify a turn's record.

Entries are only ever added; the database refuses the rest. The manifest holds what is indexed now, the log what was so
then.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select

from storage.database.engine import Database, decode_json, encode_json
from storage.database.schema import entries, overrides, spending
from storage.types import EntryKind, LogEntry, SpendingTotal, hash_passage


@dataclass(frozen=True, slots=True)
class Clocks:
    """Other clocks than this process's own, as far as there are any."""

    server: datetime | None
    """The database server's, now; None for SQLite, which has none."""
    newest: datetime | None
    """When the last entry of the log was written; None where there is none."""


async def read_clocks(database: Database) -> Clocks:
    """Read the clocks that a database knows of. Raises `StorageError`."""
    return await database.read(_fetch_clocks)


def _fetch_clocks(connection: Connection) -> Clocks:
    newest = connection.execute(select(entries.c.at).order_by(entries.c.seq.desc()).limit(1)).scalar()
    if connection.dialect.name == "sqlite":
        return Clocks(None, newest)
    server: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return Clocks(server.astimezone(UTC), newest)


_Row = Row[*tuple[Any, ...]]
_CHUNK = 500


class AuditLog:
    """Appends entries and reads them. Every method is one transaction, and raises `StorageError`."""

    def __init__(self, database: Database, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self._clock = clock

    async def append(self, *added: LogEntry) -> tuple[int, ...]:
        """Add entries, all or none, in order, and return their numbers. They are on the disk when this returns.

        Raises:
            TypeError, ValueError: A body holds what JSON cannot, such as a number that is not finite.
        """
        rows = encode_entries(added, self._clock())
        return await self._database.write(lambda connection: insert_entries(connection, rows))

    async def turn(self, turn_id: str) -> tuple[LogEntry, ...]:
        """Return all that is recorded of one turn, oldest first; empty when there is none of that id."""
        query = select(entries).where(entries.c.turn_id == turn_id).order_by(entries.c.seq)
        return await self._database.read(lambda connection: tuple(map(_parse_entry, connection.execute(query))))

    async def find(self, prefix: str, *, limit: int = 10) -> tuple[str, ...]:
        """Return the ids, at most `limit`, of turns that begin with `prefix`."""
        query = (
            select(entries.c.turn_id)
            .where(entries.c.turn_id.startswith(prefix, autoescape=True))
            .distinct()
            .order_by(entries.c.turn_id)
            .limit(limit)
        )
        return await self._database.read(lambda connection: tuple(connection.execute(query).scalars()))

    async def turns(self, limit: int, *, before: int | None = None) -> tuple[tuple[LogEntry, LogEntry | None], ...]:
        """Return the last turns, newest first: how each was opened, and how it was closed if it was.

        Args:
            limit: How many at most.
            before: The number of an opening entry; only turns opened before it. For the next page.
        """
        return await self._database.read(lambda connection: _fetch_turns(connection, limit, before))


def encode_entries(added: Iterable[LogEntry], at: datetime) -> list[Mapping[str, Any]]:
    """Turn entries into rows of the table; `at` is when those happened that do not say. Raises as `append` does."""
    return [
        {"turn_id": entry.turn_id, "kind": entry.kind.value, "at": entry.at or at, "body": encode_json(entry.body)}
        for entry in added
    ]


def insert_entries(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Add rows within a transaction of somebody's, with what is counted from them, and return their numbers."""
    numbers = [connection.execute(insert(entries).returning(entries.c.seq), row).scalar_one() for row in rows]
    record_spending(connection, numbers)
    return tuple(numbers)


def _fetch_turns(
    connection: Connection, limit: int, before: int | None
) -> tuple[tuple[LogEntry, LogEntry | None], ...]:
    newest = select(entries).where(entries.c.kind == EntryKind.TURN_OPENED.value).order_by(entries.c.seq.desc())
    if before is not None:
        newest = newest.where(entries.c.seq < before)
    opened = [_parse_entry(row) for row in connection.execute(newest.limit(limit))]
    closed: dict[str, LogEntry] = {}
    for start in range(0, len(opened), _CHUNK):
        ids = [entry.turn_id for entry in opened[start : start + _CHUNK]]
        query = select(entries).where(entries.c.turn_id.in_(ids), entries.c.kind == EntryKind.TURN_CLOSED.value)
        closed |= {row.turn_id: _parse_entry(row) for row in connection.execute(query)}
    return tuple((entry, closed.get(entry.turn_id)) for entry in opened)


def _parse_entry(row: _Row) -> LogEntry:
    return LogEntry(row.turn_id, EntryKind(row.kind), decode_json(row.body), row.seq, row.at)


class Spending:
    """Adds up what turns took. Raises `StorageError`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def total(self, *, since: datetime, platform_user: str = "", channel: str = "") -> SpendingTotal:
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
        return SpendingTotal(turns, int(tokens), float(cost))


def record_spending(connection: Connection, numbers: Sequence[int]) -> None:
    """Count those of these entries of the log that close a turn, within the transaction that added them."""
    for start in range(0, len(numbers), _CHUNK):
        chosen = entries.c.seq.in_(numbers[start : start + _CHUNK])
        closings = connection.execute(
            select(entries).where(chosen, entries.c.kind == EntryKind.TURN_CLOSED.value)
        ).all()
        askers = _fetch_askers(connection, {row.turn_id for row in closings})
        for row in closings:
            about = {"seq": row.seq, "turn_id": row.turn_id, "at": row.at}
            counted = measure_spending(askers.get(row.turn_id, {}), decode_json(row.body))
            connection.execute(insert(spending), about | counted)


def _fetch_askers(connection: Connection, turns: Iterable[str]) -> dict[str, Mapping[str, Any]]:
    query = select(entries.c.turn_id, entries.c.body).where(entries.c.turn_id.in_(list(turns)))
    opened = connection.execute(query.where(entries.c.kind == EntryKind.TURN_OPENED.value))
    return {row.turn_id: decode_json(row.body).get("asker") or {} for row in opened}


def measure_spending(asker: Mapping[str, Any], closed: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a turn took, from who is on record for asking and the body of its closing entry. Pure.

    Where a record does not say, nothing is counted: a turn is never left unrecorded for want of a figure.
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


class ChannelOverrides:
    """Keeps them by the channel's name, such as `slack:T1/C1`. Every method raises `StorageError`."""

    def __init__(self, database: Database, *, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._database = database
        self._clock = clock

    async def of(self, channel: str) -> Mapping[str, Any]:
        """Return what is set for a channel, by key; empty where nothing is."""
        query = select(overrides.c.key, overrides.c.value).where(overrides.c.channel == channel)
        rows = await self._database.read(lambda connection: connection.execute(query).all())
        return {row.key: decode_json(row.value) for row in rows}

    async def set(self, channel: str, key: str, value: Any | None, *, by: str, was: Any) -> None:
        """Set a key for a channel, or with None remove it, and put on record who did and what was in effect before.

        Raises:
            TypeError, ValueError: JSON has no place for a value.
        """
        body = {"key": key, "was": was, "now": value, "by": by}
        rows = encode_entries([LogEntry(channel, EntryKind.SETTING, body)], self._clock())
        text = None if value is None else encode_json(value)

        def change(connection: Connection) -> None:
            connection.execute(delete(overrides).where(overrides.c.channel == channel, overrides.c.key == key))
            if text is not None:
                connection.execute(insert(overrides), {"channel": channel, "key": key, "value": text})
            insert_entries(connection, rows)

        await self._database.write(change)


QUOTE_JOIN = " … "
"""What stands between the sentences of one quote that do not follow each other in the passage."""

_ENDS = ".!?:;…؟۔।"
_CLOSERS = "\"'”’»)\\]\\d"
_TIGHT_ENDS = "。！？"
"""After these the next sentence follows without a blank."""


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """Something in the record of a turn that should not be there."""

    turn_id: str
    what: str


def verify_turn(record: Sequence[LogEntry]) -> tuple[AuditFinding, ...]:
    """Return what is wrong with the entries of one turn; a turn that was never closed has said nothing.

    Every sentence must cite a citation that is there, every quote must stand verbatim in its passage's text, and that
    text, title and section must have the hash that was recorded. What `extractive` said must be what it quotes.
    """
    closed = (entry for entry in record if entry.kind is EntryKind.TURN_CLOSED)
    return tuple(AuditFinding(entry.turn_id, what) for entry in closed for what in _turn_faults(entry.body))


def _turn_faults(body: Mapping[str, Any]) -> Iterator[str]:
    citations = {citation.get("number"): citation for citation in body.get("citations", ())}
    for citation in citations.values():
        yield from _citation_faults(citation)
    for sentence in body.get("sentences", ()):
        yield from _sentence_faults(sentence, citations, verbatim=body.get("system") == "extractive")


def _citation_faults(citation: Mapping[str, Any]) -> Iterator[str]:
    name = f"citation {citation.get('number')}"
    title, section, text = (str(citation.get(part, "")) for part in ("title", "section", "passage_text"))
    if not _is_verbatim(str(citation.get("quote", "")), text):
        yield f"{name}: its quote does not stand in its passage"
    if citation.get("passage_hash") != hash_passage(title, section, text):
        yield f"{name}: its passage does not have the hash that was recorded"


def _sentence_faults(
    sentence: Mapping[str, Any], citations: Mapping[Any, Mapping[str, Any]], *, verbatim: bool
) -> Iterator[str]:
    text, numbers = str(sentence.get("text", "")), sentence.get("citations", ())
    if not numbers:
        yield f"{text!r} cites nothing"
    for number in numbers:
        if number not in citations:
            yield f"{text!r} cites {number}, which is not there"
    cited = [str(citations[number].get("quote", "")) for number in numbers if number in citations]
    if verbatim and cited and not any(_is_whole_sentence(text, quote) for quote in cited):
        yield f"{text!r} is not what it quotes"


def _is_verbatim(quote: str, text: str) -> bool:
    pieces = quote.split(QUOTE_JOIN)
    return all(piece.strip() for piece in pieces) and (quote in text or all(piece in text for piece in pieces))


def _is_whole_sentence(sentence: str, quote: str) -> bool:
    """Return whether a sentence stands whole in a quote: from the end of another sentence or line to its own end."""
    start = rf"(?:^|{QUOTE_JOIN}|\n\s*|[{_ENDS}][{_CLOSERS}]*\s+|[{_TIGHT_ENDS}])"
    end = rf"(?:$|{QUOTE_JOIN}|\s|(?<=[{_TIGHT_ENDS}]))"
    return bool(sentence) and bool(re.search(f"{start}{re.escape(sentence)}{end}", quote))
