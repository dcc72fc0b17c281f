"""The audit log: append entries and read them, sum up spending, keep what admins set, verify a turn's record.

Entries are only ever added; the database refuses the rest. The manifest holds what is indexed now, the log what was so
then.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, delete, func, insert, select, update

from storage.database.engine import Database, decode_json, encode_json, split_chunks, utc_now
from storage.database.schema import entries, examples, overrides, spending
from storage.types import ApprovedExample, EntryKind, LogEntry, SpendingTotal, hash_passage


@dataclass(frozen=True)
class AuditLog:
    """The entries. Every method is one transaction, and raises `StorageError`."""

    database: Database
    clock: Callable[[], datetime] = utc_now

    async def append(self, *added: LogEntry) -> tuple[int, ...]:
        """Append entries, all or none, and return their numbers. They are on the disk when this returns.

        Raises `TypeError` or `ValueError` for a body that is no strict JSON.
        """
        rows = encode_entries(added, self.clock())
        return await self.database.write(lambda connection: insert_entries(connection, rows))

    async def turn(self, turn_id: str) -> tuple[LogEntry, ...]:
        """Return the entries of one turn, oldest first."""
        query = select(entries).where(entries.c.turn_id == turn_id).order_by(entries.c.seq)
        return await self.database.read(lambda connection: tuple(map(_parse_entry, connection.execute(query))))

    async def unfinished(self, before: datetime | None = None) -> tuple[LogEntry, ...]:
        """Return how each turn was opened, oldest first, that was never closed; of those opened `before` then."""
        closings = func.count().filter(entries.c.kind == EntryKind.TURN_CLOSED.value)
        # A turn's first entry opens it. So the index alone tells: this is asked at every start, and records are long.
        left = select(func.min(entries.c.seq)).group_by(entries.c.turn_id).having(closings == 0)
        query = select(entries).where(entries.c.kind == EntryKind.TURN_OPENED.value, entries.c.seq.in_(left))
        query = query if before is None else query.where(entries.c.at < before)
        ordered = query.order_by(entries.c.seq)
        return await self.database.read(lambda connection: tuple(map(_parse_entry, connection.execute(ordered))))

    async def find(self, prefix: str, *, limit: int = 10) -> tuple[str, ...]:
        """Return the ids, at most `limit`, of turns that begin with `prefix`."""
        matching = select(entries.c.turn_id).where(entries.c.turn_id.startswith(prefix, autoescape=True))
        query = matching.distinct().order_by(entries.c.turn_id).limit(limit)
        return await self.database.read(lambda connection: tuple(connection.execute(query).scalars()))

    async def turns(self, limit: int, *, before: int | None = None) -> tuple[tuple[LogEntry, LogEntry | None], ...]:
        """Return the last turns, newest first: how each was opened, and how it was closed if it was.

        `before` is the number of an opening entry, for the next page: only turns opened before it.
        """
        return await self.database.read(lambda connection: _fetch_turns(connection, limit, before))


def encode_entries(added: Iterable[LogEntry], at: datetime) -> list[Mapping[str, Any]]:
    """Turn entries into rows; `at` is the moment of those that do not state one. Raises as `append` does."""
    return [
        {"turn_id": entry.turn_id, "kind": entry.kind.value, "at": entry.at or at, "body": encode_json(entry.body)}
        for entry in added
    ]


def insert_entries(connection: Connection, rows: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
    """Insert rows within a transaction, record the spending of closed turns, and return the rows' numbers."""
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
    for ids in split_chunks([entry.turn_id for entry in opened]):
        query = select(entries).where(entries.c.turn_id.in_(ids), entries.c.kind == EntryKind.TURN_CLOSED.value)
        closed |= {row.turn_id: _parse_entry(row) for row in connection.execute(query)}
    return tuple((entry, closed.get(entry.turn_id)) for entry in opened)


def _parse_entry(row: Row[*tuple[Any, ...]]) -> LogEntry:
    return LogEntry(row.turn_id, EntryKind(row.kind), decode_json(row.body), row.seq, row.at)


@dataclass(frozen=True, slots=True)
class Clocks:
    """Clocks other than this process's own."""

    server: datetime | None  # the database server's, now; None for SQLite, which has none
    newest: datetime | None  # when the last entry of the log was written; None where there is none


async def read_clocks(database: Database) -> Clocks:
    return await database.read(_fetch_clocks)


def _fetch_clocks(connection: Connection) -> Clocks:
    newest = connection.execute(select(entries.c.at).order_by(entries.c.seq.desc()).limit(1)).scalar()
    if connection.dialect.name == "sqlite":
        return Clocks(None, newest)
    server: datetime = connection.execute(select(func.clock_timestamp())).scalar_one()
    return Clocks(server.astimezone(UTC), newest)


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
    return {row.turn_id: decode_json(row.body).get("asker") or {} for row in opened}


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


@dataclass(frozen=True)
class ChannelOverrides:
    """What admins set for channels, by names such as `slack:T1/C1`. Every method raises `StorageError`."""

    database: Database
    clock: Callable[[], datetime] = utc_now

    async def of(self, channel: str) -> Mapping[str, Any]:
        query = select(overrides.c.key, overrides.c.value).where(overrides.c.channel == channel)
        rows = await self.database.read(lambda connection: connection.execute(query).all())
        return {row.key: decode_json(row.value) for row in rows}

    async def set(self, channel: str, key: str, value: Any | None, *, by: str, was: Any) -> None:
        """Set a key for a channel, or remove it with None, and record who did and what was in effect before."""
        body = {"key": key, "was": was, "now": value, "by": by}
        rows = encode_entries([LogEntry(channel, EntryKind.SETTING, body)], self.clock())
        text = None if value is None else encode_json(value)

        def change(connection: Connection) -> None:
            connection.execute(delete(overrides).where(overrides.c.channel == channel, overrides.c.key == key))
            if text is not None:
                connection.execute(insert(overrides), {"channel": channel, "key": key, "value": text})
            insert_entries(connection, rows)

        await self.database.write(change)


@dataclass(frozen=True)
class ApprovedExamples:
    """The answers that admins approved as examples; changes are on record. Every method raises `StorageError`."""

    database: Database
    clock: Callable[[], datetime] = utc_now

    async def all(self) -> tuple[ApprovedExample, ...]:
        """Return all of them, the newest first."""
        query = select(examples).order_by(examples.c.at.desc(), examples.c.turn_id)
        rows = await self.database.read(lambda connection: connection.execute(query).all())
        return tuple(ApprovedExample(row.turn_id, row.by, decode_json(row.body), row.at, row.pinned) for row in rows)

    async def add(self, example: ApprovedExample, entry: LogEntry) -> bool:
        """Keep an example; return whether it was new. One that is kept stays as it was approved."""
        row = {"turn_id": example.turn_id, "by": example.by, "at": self.clock(), "pinned": example.pinned}
        row["body"] = encode_json(example.body)

        def change(connection: Connection) -> bool:
            known = select(examples.c.turn_id).where(examples.c.turn_id == example.turn_id)
            new = connection.execute(known).first() is None
            return new and bool(connection.execute(insert(examples), row).rowcount)

        return await self._change(change, entry)

    async def drop(self, turn_id: str, entry: LogEntry) -> bool:
        """Remove an example; return whether there was one."""
        gone = delete(examples).where(examples.c.turn_id == turn_id)
        return await self._change(lambda connection: bool(connection.execute(gone).rowcount), entry)

    async def pin(self, turn_id: str, entry: LogEntry, *, pinned: bool) -> bool:
        """Pin an example, or unpin it; return whether there is one that was not so before."""
        chosen = examples.c.turn_id == turn_id, examples.c.pinned != pinned
        changed = update(examples).where(*chosen).values(pinned=pinned)
        return await self._change(lambda connection: bool(connection.execute(changed).rowcount), entry)

    async def _change(self, change: Callable[[Connection], bool], entry: LogEntry) -> bool:
        rows = encode_entries([entry], self.clock())

        def record(connection: Connection) -> bool:
            changed = change(connection)
            if changed:
                insert_entries(connection, rows)
            return changed

        return await self.database.write(record)


QUOTE_JOIN = " … "  # joins the sentences of one quote that do not follow each other in the passage

_ENDS = ".!?:;…؟۔।"
_CLOSERS = "\"'”’»)\\]\\d"
_TIGHT_ENDS = "。！？"  # after these the next sentence follows without a blank


@dataclass(frozen=True, slots=True)
class AuditFinding:
    """An inconsistency in the record of a turn."""

    turn_id: str
    what: str


def verify_turn(record: Sequence[LogEntry]) -> tuple[AuditFinding, ...]:
    """Check the entries of one turn; one that was never closed has said nothing.

    Every sentence must cite a citation that is there, every quote must stand verbatim in its passage's text, and that
    text, title and section must have the recorded hash. What `extractive` said must be what it quotes.
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
    """Return whether a quote contains the whole sentence, from the end of the one before to its own end."""
    start = rf"(?:^|{QUOTE_JOIN}|\n\s*|[{_ENDS}][{_CLOSERS}]*\s+|[{_TIGHT_ENDS}])"
    end = rf"(?:$|{QUOTE_JOIN}|\s|(?<=[{_TIGHT_ENDS}]))"
    return bool(sentence) and bool(re.search(f"{start}{re.escape(sentence)}{end}", quote))
