"""Tests that erased texts are in no byte of the home, everything else is kept, and the record verifies."""

from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import LargeBinary, Text

from storage.database.engine import Database
from storage.database.queue import Queue
from storage.database.schema import metadata
from storage.record.admin_choices import ApprovedExamples
from storage.record.audit_log import AuditLog
from storage.record.erasure import ErasureTarget, RecordErasure
from storage.record.proof.checkpoints import Checkpoints
from storage.record.proof.receipts import make_receipt
from storage.record.proof.record_check import verify_record
from storage.record.record_search import RETRACTED, RecordFilter, RecordSearch
from storage.record.turn_index import rebuild_index
from storage.types import RECORD, ApprovedExample, EntryKind, LogEntry, NewQuestion
from tests.storage.record.tampering import KEY, make_turn
from tests.storage.stores import open_home_database

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECRET = "Zwiebelkuchen"  # a word that only Ann uses
ANN, BEN = "slack:T1/UANN", "slack:T1/UBEN"
PERSON = ErasureTarget(person=ANN)


COLUMNS = {
    "words": {  # texts of people or derived from them: erased
        "entries": "body",
        "questions": "body handle",
        "turns": "question",
        "turn_words": "terms",
        "examples": "body",
        "claims": "text reason",
        "claim_passages": "quote",
        "feedback": "comment",
    },
    "operation": {  # states, kinds, own ids, hashes, errors of the machine
        "entries": "turn_id kind salt commitment leaf",
        "checkpoints": "note",
        "questions": "state outcome turn_id owner",
        "spending": "turn_id",
        "turns": "turn_id task status system model outcome",
        "examples": "turn_id",
        "claims": "origin verdict",
        "feedback": "what",
        "overrides": "key",
        "followers": "name",
        "pending": "follower",
        "leases": "name owner",
        "runs": "corpus state doing fault edition owner",
        "nights": "owner outcome lines",
    },
    "names": {  # names and ids of people: erased
        "questions": "asker",
        "spending": "asker",
        "turns": "asker asker_name",
        "feedback": "person",
    },
    "places": {  # platform ids of channels, conversations and messages
        "questions": "key channel conversation message",
        "posts": "channel message",
        "spending": "platform channel",
        "turns": "platform workspace channel channel_name",
        "overrides": "channel",
    },
    "documents": {  # contents of sources, which `footnote forget` removes
        "turn_documents": "corpus document",
        "document_titles": "corpus document title",
        "claim_passages": "passage corpus document revision",
        "corpora": "name mark mark_of edition dense",
        "documents": "corpus key title url revision language fingerprint aliases",
        "bodies": "body seal",
        "pending": "corpus key",
        "vector_uses": "corpus id document",
        "failures": "corpus key reason",
        "forgotten": "corpus key title url",
    },
    "office": {  # people acting as admins: not erased
        "examples": "by",
        "overrides": "value",
    },
}
"""Which columns of text hold people's words or names. Erasing must reach "words" and "names"."""


def test_every_column_of_text_is_classified() -> None:
    """A new column has to be entered in `COLUMNS`, so that its author considers erasing."""
    texts = {
        f"{table.name}.{column.name}"
        for table in metadata.tables.values()
        for column in table.columns
        if isinstance(column.type, Text | LargeBinary)
    }

    assert {
        f"{of}.{name}" for group in COLUMNS.values() for of, names in group.items() for name in names.split()
    } == texts


def turn(turn_id: str, who: str, question: str, **opened: Any) -> list[LogEntry]:
    """Make a turn in C1 whose every entry contains its question."""
    asker = {"platform": "slack", "kind": "channel", "workspace": "T1", "channel": "C1", "user": who.split("/")[1]}
    first, step, closed, delivered = make_turn(turn_id)
    return [
        LogEntry(turn_id, first.kind, {"asker": asker, "question": question, **opened}),
        LogEntry(turn_id, step.kind, {**step.body, "query": question}),
        LogEntry(turn_id, closed.kind, {**closed.body, "said_of": question}),
        LogEntry(turn_id, delivered.kind, {**delivered.body, "asked": question}),
    ]


async def ask(queue: Queue, turn_id: str, who: str, question: str) -> int:
    asker = {"platform": "slack", "user": who, "principals": [f"slack:T1/{who}"]}
    body = {"text": question, "asker": asker, "taken_back": {"by": ANN, "why": f"No {SECRET}!"}}
    new = NewQuestion(f"key-{turn_id}", "slack:T1/C1", "slack:T1/C1/1", who, f"m-{turn_id}", body, "handle")
    row, _ = await queue.put(new)
    await queue.note(row.ticket, turn_id=turn_id)
    await queue.finish(row.ticket, "delivered", gone=True)
    return row.ticket


async def fill(database: Database, *, at: datetime = NOON) -> int:
    """Ann asks, Ben asks without being quoted, Ann rates his answer; return Ben's ticket."""
    log, queue = AuditLog(database, clock=lambda: at), Queue(database, clock=lambda: at)
    for ticket in ("a", "b"):
        await ask(queue, ticket, *((ANN, f"Why {SECRET}?") if ticket == "a" else (BEN, "And the rent?")))
    await log.append(*turn("a", ANN, f"Why {SECRET}?"))
    await log.append(*turn("b", BEN, "And the rent?", earlier=[f"Why {SECRET}?", "So."]))
    await log.append(
        LogEntry("b", EntryKind.FEEDBACK, {"what": "down", "by": ANN, "comment": f"No {SECRET}!"}),
        LogEntry("a", EntryKind.FEEDBACK, {"what": "up", "by": BEN}),
        LogEntry("a", EntryKind.READ, {"by": "pages:/admin"}),
    )
    example = ApprovedExample("a", BEN, {"question": f"Why {SECRET}?"})
    await ApprovedExamples(database).add(example, LogEntry("a", EntryKind.FEEDBACK, {"what": "example", "by": BEN}))
    return (await queue.by_key("key-b")).ticket


def bytes_of(home: Path) -> bytes:
    return b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file()).lower()


async def test_erased_person_leaves_no_texts_and_the_record_verifies(database: Database, tmp_path: Path) -> None:
    (tmp_path / "footnote.db.before-0006").write_text(SECRET)
    ben = await fill(database)
    checkpoint = await Checkpoints(database).make(KEY)
    assert SECRET.lower().encode() in bytes_of(tmp_path)

    done = await RecordErasure(database).erase(PERSON, why="asked", by="terminal")
    left = bytes_of(tmp_path)
    checked = await verify_record(database, [checkpoint])
    await rebuild_index(database)
    bens = await Queue(database).get(ben)
    log = AuditLog(database)
    receipt = await make_receipt(database, "b", KEY)
    again = await RecordErasure(database).plan(PERSON)
    (erasure,) = [entry.body for entry in await log.turn(RECORD) if entry.kind is EntryKind.ERASURE]
    about_ben = [(entry.kind, entry.erased) for entry in await log.turn("b")]
    read = [entry for entry in await log.turn("a") if not entry.erased]

    for word in (SECRET[:8].lower(), "uann"):
        assert word.encode() not in left
    assert (done.turns, done.questions, done.backups, done.compacted) == (1, 1, ("footnote.db.before-0006",), True)
    assert (checked.findings, checked.erased, done.entries) == ((), done.entries, done.entries)
    assert {entry.kind for entry in read} == {EntryKind.READ}
    assert bens is not None
    assert (bens.user, bens.body["text"], bens.outcome) == (BEN, "And the rent?", "delivered")
    assert bens.body["taken_back"] == {"by": "", "why": ""}
    assert about_ben == [
        (EntryKind.TURN_OPENED, True),
        (EntryKind.STEP, True),
        (EntryKind.TURN_CLOSED, False),
        (EntryKind.DELIVERED, False),
        (EntryKind.FEEDBACK, True),
    ]
    assert (erasure["what"], erasure["why"], erasure["entries"]) == ("person", "asked", done.entries)
    assert (again.turns, again.entries) == ((), ())
    assert '"salt": ""' in receipt


async def test_retraction_survives_the_erasure_of_who_made_it(database: Database) -> None:
    await fill(database)
    search, pool = RecordSearch(database), ApprovedExamples(database)
    example = LogEntry("b", EntryKind.FEEDBACK, {"what": "example", "by": BEN})
    await pool.add(ApprovedExample("b", BEN, {"question": "And the rent?"}), example)
    await AuditLog(database).append(LogEntry("b", EntryKind.EDITED, {"retracted": True, "by": ANN, "why": SECRET}))
    await RecordErasure(database).erase(PERSON, why="asked", by="terminal")
    await rebuild_index(database)
    examples = await pool.all()
    checked = await verify_record(database)
    *_, erased, last = await AuditLog(database).turn("b")

    assert [turn.turn_id for turn in await search.find(RecordFilter(status=RETRACTED))] == ["b"]
    assert (examples, checked.findings) == ((), ())
    assert (erased.kind, erased.erased, last.kind, last.body) == ("edited", True, "edited", {"retracted": True})
    assert (await RecordErasure(database).plan(PERSON)).entries == ()


class DyingDatabase:
    """A database whose process dies after some writes."""

    def __init__(self, database: Database, writes: int) -> None:
        self._database, self._writes = database, writes

    async def write(self, *arguments: Any) -> Any:
        self._writes -= 1
        if self._writes < 0:
            raise KeyboardInterrupt
        return await self._database.write(*arguments)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)


@pytest.mark.parametrize("writes", range(4))
async def test_messages_to_remove_survive_a_crash(database: Database, tmp_path: Path, writes: int) -> None:
    log, queue = AuditLog(database), Queue(database)
    body = {"text": f"Why {SECRET}?", "asker": {"user": "UANN"}}
    row, _ = await queue.put(NewQuestion("k", "slack:T1/C1", "slack:T1/C1/1", ANN, "m", body, "handle"))
    await log.append(*turn("a", ANN, f"Why {SECRET}?"), LogEntry("a", EntryKind.RECHECK, {"messages": ["n1"]}))
    await queue.note(row.ticket, turn_id="a", posted=["p1"])
    await queue.finish(row.ticket, "delivered")
    dying: Any = DyingDatabase(database, writes)
    planned = await RecordErasure(database).plan(PERSON)
    with pytest.raises(KeyboardInterrupt) if writes < 3 else nullcontext():
        await RecordErasure(dying).erase(PERSON, why="asked", by="terminal", messages=True)
    done = await RecordErasure(database).erase(PERSON, why="asked", by="terminal", messages=True)
    (waits,) = await queue.open("me", NOON)
    checked = await verify_record(database)

    assert (planned.messages, done.messages) == (0, 0 if writes else 2)
    assert waits.body["taken_back"] == {"by": "terminal", "why": "asked", "messages": ["n1"]}
    assert (waits.posted, waits.user, waits.turn_id, checked.findings) == (("p1",), "", "a", ())
    assert SECRET[:8].lower().encode() not in bytes_of(tmp_path)


async def test_conversation_is_erased_completely_and_an_answer_alone(database: Database) -> None:
    await fill(database)
    await AuditLog(database, clock=lambda: NOON).append(*turn("c", BEN, "Elsewhere?"))
    erasure = RecordErasure(database)
    whole = await erasure.plan(ErasureTarget(conversation="slack:T1/C1/1"))
    alone = await erasure.plan(ErasureTarget(conversation="c"))
    queued = await erasure.plan(ErasureTarget(conversation="a"))

    assert (sorted(whole.turns), len(whole.tickets)) == (["a", "b"], 2)
    assert (alone.turns, alone.tickets, len(alone.entries)) == (("c",), (), 4)
    assert (queued.turns, len(queued.tickets)) == (("a",), 1)


async def test_old_texts_are_erased_and_newer_ones_remain(database: Database, tmp_path: Path) -> None:
    await fill(database)
    await AuditLog(database, clock=lambda: NOON + timedelta(days=2)).append(*turn("c", BEN, "Later?"))
    target = ErasureTarget(before=NOON + timedelta(days=1))
    await RecordErasure(database).erase(target, why="365 days", by="terminal")
    later = await AuditLog(database).turn("c")
    (entry,) = [logged for logged in await AuditLog(database).turn(RECORD) if logged.kind is EntryKind.ERASURE]

    assert SECRET[:8].lower().encode() not in bytes_of(tmp_path)
    assert not any(logged.erased for logged in later)
    assert entry.body["before"] == "2026-03-02T12:00:00+00:00"


@pytest.mark.parametrize("held", [ANN, "a", "slack:T1/C1"])
async def test_entries_on_hold_are_not_erased(database: Database, held: str) -> None:
    await fill(database)
    settings, erasure = RecordErasure(database, [held]), RecordErasure(database)
    await erasure.hold(held, on=True, why="case 12", by="terminal")
    on_hold = await erasure.plan(PERSON)
    await erasure.hold(held, on=False, why="closed", by="terminal")
    free, by_settings = await erasure.plan(PERSON), await settings.plan(PERSON)

    for plan in (on_hold, by_settings):
        assert (plan.turns, plan.held, plan.tickets) == ((), 1, ())
        assert len(plan.entries) == (held == "a")  # a hold on her answer does not include her rating of another
    assert (free.turns, free.held) == (("a",), 0)


async def test_running_turn_is_not_erased(tmp_path: Path) -> None:
    with open_home_database(tmp_path) as database:
        await AuditLog(database).append(*turn("a", ANN, f"Why {SECRET}?")[:2])
        assert (await RecordErasure(database).plan(PERSON)).turns == ()
