"""Tests of reading compared answers and their ratings from the record."""

from datetime import UTC, datetime, timedelta
from typing import Any

from storage.database.engine import Database
from storage.record.audit_log import AuditLog
from storage.record.comparisons import LEFT, RATED, Comparisons, Rating
from storage.record.erasure import ErasureTarget, RecordErasure
from storage.types import EntryKind, LogEntry

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
PAIR = ("wikichat", "extractive")
ANN, BEN = "slack:T1/UANN", "slack:T1/UBEN"


def make_answer(turn_id: str, channel: str = "C1", **closed: Any) -> list[LogEntry]:
    asker = {"platform": "slack", "workspace": "T1", "channel": channel, "user": "UANN"}
    opened = {"task": "ask", "asker": asker, "question": "Why?", "system": PAIR[0]}
    at = NOON if channel == "C1" else NOON + timedelta(days=1)
    ended = {"status": "answered", "seconds": 1.5, **closed}
    return [
        LogEntry(turn_id, EntryKind.TURN_OPENED, opened, at=at),
        LogEntry(turn_id, EntryKind.TURN_CLOSED, ended, at=at),
    ]


def act(turn_id: str, what: str, by: str, **facts: Any) -> LogEntry:
    return LogEntry(turn_id, EntryKind.FEEDBACK, {"what": what, "by": by, **facts}, at=NOON)


async def test_compared_answers_are_found_by_channel_and_time(database: Database) -> None:
    study, comparisons = {"system": PAIR[0], "systems": PAIR}, Comparisons(database)
    await AuditLog(database).append(
        *make_answer("a", study=study),
        *make_answer("b", "C2", study=study, quoted_because={"kind": "slow"}),
        *make_answer("c", text='It says "study": yes.'),
        *make_answer("d", study="yes"),
    )
    first, second = await comparisons.answers()

    assert (first.turn, first.channel, first.asker, first.system, first.systems) == (
        1,
        "slack:T1/C1",
        ANN,
        PAIR[0],
        PAIR,
    )
    assert (first.status, first.seconds, first.quoted, second.quoted) == ("answered", 1.5, False, True)
    assert (
        await comparisons.answers("slack:T1/C2")
        == await comparisons.answers(since=NOON + timedelta(hours=1))
        == (second,)
    )


async def test_ratings_are_returned_in_order_and_erased_with_their_person(database: Database) -> None:
    log, comparisons = AuditLog(database), Comparisons(database)
    await log.append(
        *make_answer("a"),
        act("a", RATED, BEN, rating=2, comment="Short."),
        act("a", "up", BEN),
        act("a", RATED, ANN, rating=5),
        act("a", LEFT, BEN),
    )

    assert await comparisons.ratings() == (Rating(1, BEN, 2, "Short."), Rating(1, ANN, 5, ""), Rating(1, BEN, 0, ""))
    assert (await comparisons.has_left(BEN), await comparisons.has_left(ANN)) == (True, False)
    await log.append(act("a", RATED, BEN, rating=3))
    assert not await comparisons.has_left(BEN)
    await RecordErasure(database).erase(ErasureTarget(person=BEN), why="asked", by="terminal")
    assert await comparisons.ratings() == (Rating(1, ANN, 5, ""),)
