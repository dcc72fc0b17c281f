"""Tests of the queue of questions: each is stored once, claimed by one owner, and never lost."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from storage.database.engine import Database
from storage.database.queue import Queue
from storage.types import NewQuestion
from tests.storage.stores import open_home_database

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
PLACE = "slack:T1/C1"


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def queue(database: Database, clock: Clock) -> Queue:
    return Queue(database, clock=clock)


def asked(key: str, **more: Any) -> NewQuestion:
    question = NewQuestion(key, PLACE, f"{PLACE}/1", "slack:T1/U1", f"m-{key}", {"text": f"What is {key}?"}, "secret")
    return replace(question, **more)


async def put(queue: Queue, *keys: str, **more: Any) -> list[int]:
    return [(await queue.put(asked(key, **more)))[0].ticket for key in keys]


async def test_stored_question_is_read_unchanged(queue: Queue) -> None:
    row, new = await queue.put(asked("a", body={"text": "Größe? 🎉 \udce4", "deep": {"list": [1, None]}}))

    assert new
    assert row == await queue.get(row.ticket) == await queue.by_key("a")
    assert (row.body, row.taken_at) == ({"text": "Größe? 🎉 \udce4", "deep": {"list": [1, None]}}, NOON)
    assert (row.state, row.outcome, row.turn_id, row.sending, row.posted) == ("waiting", "", "", False, ())
    assert (row.owner, row.lease_until, row.handle) == ("", None, "secret")


async def test_reply_handle_is_not_in_the_repr_of_a_question(queue: Queue) -> None:
    row, _ = await queue.put(asked("a"))

    assert "secret" not in f"{row!r} {asked('a')!r}"


async def test_question_put_many_times_at_once_is_new_once(tmp_path: Path) -> None:
    with open_home_database(tmp_path) as one, open_home_database(tmp_path) as other:
        taken = await asyncio.gather(*(Queue(database).put(asked("a")) for database in (one, other) for _ in range(20)))

    assert (sum(new for _, new in taken), len({row.ticket for row, _ in taken})) == (1, 1)


async def test_question_with_values_outside_json_is_refused(queue: Queue) -> None:
    with pytest.raises(TypeError):
        await queue.put(asked("a", body={"text": object()}))

    assert await queue.by_key("a") is None


async def test_one_of_many_claims_succeeds(tmp_path: Path) -> None:
    with open_home_database(tmp_path) as one, open_home_database(tmp_path) as other:
        (ticket,) = await put(Queue(one), "a")
        claims = [
            Queue(database).claim(ticket, f"{name}{number}", NOON + MINUTE, now=NOON)
            for name, database in (("one", one), ("other", other))
            for number in range(10)
        ]
        assert sum(await asyncio.gather(*claims)) == 1


async def test_lease_lasts_while_renewed_then_expires(queue: Queue) -> None:
    ticket, other = await put(queue, "a", "b")
    assert await queue.claim(ticket, "one", NOON + MINUTE, now=NOON)
    assert await queue.renew("one", NOON + 3 * MINUTE) == {ticket}

    early = await queue.claim(ticket, "two", NOON + 4 * MINUTE, now=NOON + 2 * MINUTE)
    free_early = [row.ticket for row in await queue.open("two", NOON + 2 * MINUTE)]
    free_late = [row.ticket for row in await queue.open("two", NOON + 4 * MINUTE)]
    late = await queue.claim(ticket, "two", NOON + 5 * MINUTE, now=NOON + 4 * MINUTE)

    assert (early, free_early, free_late, late) == (False, [other], [ticket, other], True)
    assert await queue.renew("one", NOON + 9 * MINUTE) == frozenset()
    row = await queue.get(ticket)
    assert row
    assert (row.owner, row.lease_until) == ("two", NOON + 5 * MINUTE)


async def test_released_question_waits_with_its_progress(queue: Queue) -> None:
    (ticket,) = await put(queue, "a")
    await queue.claim(ticket, "one", NOON + MINUTE, now=NOON)
    await queue.note(ticket, turn_id="t1", sending=True, posted=("p1",))

    await queue.release(ticket)

    row = await queue.get(ticket)
    assert row
    assert (row.state, row.owner, row.lease_until) == ("waiting", "", None)
    assert (row.turn_id, row.sending, row.posted, row.handle) == ("t1", True, ("p1",), "secret")


async def test_done_question_stays_done_without_its_handle(tmp_path: Path) -> None:
    with open_home_database(tmp_path) as database:
        queue = Queue(database, clock=Clock())
        (ticket,) = await put(queue, "a", handle="a-token-of-an-interaction")
        await queue.claim(ticket, "one", NOON + MINUTE, now=NOON)
        await queue.finish(ticket, "delivered")
        await queue.release(ticket)

        row = await queue.get(ticket)
        assert row
        assert (row.state, row.outcome, row.handle, row.owner) == ("done", "delivered", "", "")
        assert await queue.open("two", NOON + 9 * MINUTE, sole=True) == ()
        assert not await queue.claim(ticket, "two", NOON + MINUTE, now=NOON, sole=True)


async def test_noting_fields_of_a_question_changes_only_those(queue: Queue) -> None:
    ticket, other = await put(queue, "a", "b")
    await queue.note(ticket, turn_id="t1", posted=("p1", "p2"))
    await queue.note(ticket, sending=True, text="In other words?")
    await queue.note(ticket)
    row = await queue.get(ticket)
    assert row
    assert (row.turn_id, row.sending, row.posted) == ("t1", True, ("p1", "p2"))
    assert row.body == {"text": "In other words?"}

    await queue.note(ticket, turn_id="", sending=False, posted=("p2",))
    await queue.note(999, posted=("p1",), text="Nobody asked.")

    row = await queue.get(ticket)
    assert row
    assert (row.turn_id, row.sending, row.posted) == ("", False, ("p2",))
    assert await queue.get(other) == (await queue.put(asked("b")))[0]
    assert await queue.get(999) is None


async def test_possibly_answered_questions_are_read_newest_first(queue: Queue, clock: Clock) -> None:
    await put(queue, "old")
    clock.now += MINUTE
    tickets = await put(queue, *"abcd")
    await put(queue, "command", message="")
    await put(queue, "x", channel="discord:1/2")
    for ticket, outcome in zip(tickets, ("delivered", "retracted", "silent"), strict=False):
        await queue.finish(ticket, outcome)

    rows = await queue.standing("slack", since=NOON + MINUTE, limit=9)
    assert [row.ticket for row in rows] == [tickets[3], tickets[0]]
    assert len(await queue.standing("slack", since=NOON, limit=1)) == 1


async def test_conversation_is_read_in_pages_newest_last(queue: Queue) -> None:
    tickets = await put(queue, *"abcde")
    await put(queue, "x", conversation="slack:T1/C1/2")

    last = await queue.conversation(f"{PLACE}/1", limit=2)
    before = await queue.conversation(f"{PLACE}/1", before=last[0].ticket, limit=9)

    assert [row.ticket for row in before + last] == tickets
    assert await queue.conversation("nowhere", limit=9) == ()


async def test_questions_are_counted_by_user_and_channel(queue: Queue, clock: Clock) -> None:
    await put(queue, "old")
    clock.now += MINUTE
    await put(queue, "a", "b")
    await put(queue, "c", user="slack:T1/U2")
    await put(queue, "d", channel="slack:T1/C2")
    since = NOON + MINUTE

    counts = [
        await queue.asked(since=since),
        await queue.asked(since=since, user="slack:T1/U1"),
        await queue.asked(since=since, channel=PLACE),
        await queue.asked(since=since, user="slack:T1/U1", channel=PLACE),
        await queue.asked(since=NOON),
    ]

    assert counts == [4, 3, 3, 2, 5]


async def test_last_questions_of_a_channel_are_listed(queue: Queue) -> None:
    await put(queue, "a", "b", user="slack:T1/U1")
    await put(queue, "c", user="slack:T1/U2")
    await put(queue, "d", channel="slack:T1/C2")

    assert [row.key for row in await queue.recent(PLACE, limit=2)] == ["c", "b"]
    assert [row.key for row in await queue.recent(PLACE, user="slack:T1/U1", limit=1)] == ["b"]
    assert await queue.recent("slack:T1/C3", limit=1) == ()


async def test_earlier_questions_of_a_user_in_a_channel_are_read(queue: Queue, clock: Clock) -> None:
    await put(queue, "old")
    clock.now += MINUTE
    await put(queue, "a")
    await put(queue, "b", user="slack:T1/U2")
    await put(queue, "c", channel="slack:T1/C2")
    question, _ = await queue.put(asked("d"))
    await put(queue, "e")

    assert await queue.bodies_before(question, since=NOON + MINUTE) == ({"text": "What is a?"},)


async def test_question_is_found_by_its_message_and_each_answer(queue: Queue) -> None:
    ticket, other = await put(queue, "a", "b")
    await queue.note(ticket, posted=("p1", "p2"))
    await queue.note(other, posted=("p3",))
    await put(queue, "c", message="")

    async def found(message: str, channel: str = PLACE) -> int | None:
        row = await queue.by_message(channel, message)
        return row and row.ticket

    assert [await found(message) for message in ("m-a", "p1", "p2", "m-b", "p3")] == [ticket] * 3 + [other] * 2
    assert [await found("p1", "slack:T1/C2"), await found("m-a", "slack:T1/C2"), await found(""), await found("x")] == [
        None
    ] * 4
    await queue.note(ticket, posted=("p2",))
    assert (await found("p1"), await found("p2")) == (None, ticket)


async def test_message_that_is_an_answer_belongs_to_the_answered_question(queue: Queue) -> None:
    answered, _ = await put(queue, "a", "b")
    await queue.note(answered, posted=("p1",))
    await put(queue, "check", message="p1")

    row = await queue.by_message(PLACE, "p1")

    assert row
    assert row.ticket == answered


async def test_hundreds_of_open_questions_are_read_with_their_posts(queue: Queue) -> None:
    tickets = await put(queue, *(f"{number}" for number in range(600)))
    for ticket in tickets[::100]:
        await queue.note(ticket, posted=(f"p{ticket}", f"q{ticket}"))

    rows = await queue.open("one", NOON)

    assert [row.ticket for row in rows] == tickets
    assert {row.ticket: row.posted for row in rows if row.posted} == {
        ticket: (f"p{ticket}", f"q{ticket}") for ticket in tickets[::100]
    }


async def test_retracted_question_is_done_once_removed(queue: Queue) -> None:
    (ticket,) = await put(queue, "a")
    assert await queue.claim(ticket, "one", NOON + MINUTE, now=NOON)
    await queue.note(ticket, turn_id="t", posted=["p"])
    running = await queue.retract(ticket, by="U1", why="deleted")
    delivered = await queue.finish(ticket, "delivered")
    (waiting,) = await queue.open("two", NOON)
    again = await queue.retract(ticket, by="U2", why="later")

    assert running is not None
    assert again is not None
    assert (running.state, delivered, waiting.state, waiting.turn_id) == ("running", False, "waiting", "t")
    assert (waiting.handle, waiting.posted, again.body["taken_back"]) == (
        "secret",
        ("p",),
        {"by": "U1", "why": "deleted"},
    )
    assert await queue.finish(ticket, "retracted", gone=True)
    assert await queue.retract(ticket, by="U1", why="deleted") is None
    assert not await queue.open("two", NOON)


async def test_done_question_waits_again_for_its_retraction(queue: Queue) -> None:
    (ticket,) = await put(queue, "a")
    await queue.note(ticket, turn_id="t", posted=["p"])
    await queue.finish(ticket, "delivered")
    row = await queue.retract(ticket, by="U1", why="deleted")

    assert row
    assert (row.state, row.outcome, row.turn_id, row.posted) == ("waiting", "", "t", ("p",))
    assert await queue.retract(99, by="U1", why="deleted") is None


async def test_question_reworded_since_its_answer_waits_again(queue: Queue) -> None:
    (ticket,) = await put(queue, "a")
    await queue.claim(ticket, "one", NOON + MINUTE, now=NOON)
    await queue.note(ticket, text="Other words?")

    assert not await queue.finish(ticket, "delivered", text="First words?")
    (row,) = await queue.open("two", NOON)
    assert (row.ticket, row.body["text"], row.outcome) == (ticket, "Other words?", "")
    assert await queue.finish(ticket, "delivered", text="Other words?")
