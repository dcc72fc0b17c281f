"""An answer that somebody takes back goes, whatever happens meanwhile; and what else is wanted late, or twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bot.desk.jobs.scheduler import ConcurrencyLimit
from bot.desk.platform_port import CannotPost, PlatformUnavailable
from storage.types import EntryKind
from tests.bot.desk.desked import Office, World, at_work, done, office, question, settle, until

AWAY = [PlatformUnavailable("away") for _ in range(1_000)]


def edits(world: World) -> list[Any]:
    """Return what the record says was done to answers afterwards."""
    return [entry.body for entry in world.entries(EntryKind.EDITED)]


@asynccontextmanager
async def answered(**traits: Any) -> AsyncIterator[Office]:
    """Answer a question; the platform removes nothing from then on."""
    async with at_work(**traits) as at:
        await at.desk.take(question())
        await done(at.world)
        at.world.faults["remove"] = list(AWAY)
        yield at


@pytest.mark.parametrize("how", ["deleted", "retracted"])
async def test_retraction_is_completed_at_the_next_start(how: str) -> None:
    async with answered() as at:
        wish = at.desk.delete_question(question().key) if how == "deleted" else at.desk.retract(1, question().asker)
        wanted = asyncio.create_task(wish)
        await settle()
        wanted.cancel()
        await settle()
        before, state = edits(at.world), at.world.rows[1].state
    stood = at.world.read()
    at.world.faults.clear()
    async with at_work(at.world):
        row = await done(at.world)

    assert ([sorted(body) for body in before], state) == ([["by", "retracted", "why"]], "running")
    assert len(stood) == 1
    assert (row.outcome, at.world.read()) == ("retracted", [])
    assert [body.get("removed") for body in edits(at.world)] == [None, list(row.posted)]


async def test_retraction_is_retried_until_the_platform_is_reachable() -> None:
    async with answered() as at:
        wanted = asyncio.create_task(at.desk.delete_question(question().key))
        for _ in range(5):
            await at.waits.move(61.0)
        tried, stood = at.world.calls.count("remove"), len(at.world.read())
        at.world.faults.clear()
        await at.waits.move(61.0)
        await wanted

    assert (tried > 3, stood, at.world.read()) == (True, 1, [])
    assert at.world.rows[1].outcome == "retracted"


async def test_refused_deletion_is_recorded() -> None:
    async with answered() as at:
        at.world.faults["remove"] = [CannotPost("The channel is archived.")]
        await at.desk.delete_question(question().key)
        row = await done(at.world)

    assert row.outcome == "retracted"
    assert edits(at.world)[1] == {"removed": [], "standing": [*at.world.posts], "why": "The channel is archived."}


async def test_retraction_by_another_process_is_executed() -> None:
    async with at_work() as at:
        await at.desk.take(question())
        await done(at.world)
        await at.queue.retract(1, by="terminal", why="erased")
        await at.waits.move(21.0)
        await at.waits.move(0.1)

        assert (at.world.rows[1].outcome, at.world.read()) == ("retracted", [])


async def test_retraction_waits_for_the_record() -> None:
    async with at_work() as at:
        await at.desk.take(question())
        await done(at.world)
        shown = at.world.read()
        at.world.broken |= {"append", "claim"}
        wanted = asyncio.create_task(at.desk.delete_question(question().key))
        await at.waits.move(5.0)
        stood = at.world.read()
        at.world.broken.clear()
        for _ in range(3):
            await at.waits.move(61.0)
        await wanted

    assert (shown, at.world.read()) == (stood, [])


async def test_retraction_at_the_end_of_delivery_is_executed() -> None:
    at = office()
    await at.desk.take(question())
    world = at.world
    async with at_work(world) as first:
        await until(world, lambda: bool(world.rows[1].posted))
        await first.desk.delete_question(question().key)
        row = await done(world)

    assert (row.outcome, world.read()) == ("retracted", [])


async def test_pending_retraction_does_not_block_answers() -> None:
    async with answered(room=ConcurrencyLimit(1, 1)) as at:
        wanted = asyncio.create_task(at.desk.delete_question(question().key))
        await settle()
        await at.desk.take(question(2))
        row = await done(at.world, 2)
        at.world.faults.clear()
        await at.waits.move(61.0)
        await wanted

    assert row.outcome == "delivered"


async def test_question_deleted_before_its_turn_is_recorded() -> None:
    async with at_work() as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        await at.desk.take(question(1, thread="t"))
        await at.desk.take(question(2, thread="t"))
        await settle()
        await at.desk.delete_question(question(2, thread="t").key)
        row = await done(at.world, 2)
        gate.set()
        await done(at.world, 1)

    kinds = [entry.kind.value for entry in at.world.log if entry.turn_id == row.turn_id]
    (closed,) = (entry for entry in at.world.entries(EntryKind.TURN_CLOSED) if entry.turn_id == row.turn_id)
    assert kinds == ["turn_opened", "turn_closed", "edited", "edited"]
    assert closed.body["status"] == "cancelled"


@pytest.mark.parametrize("steps", range(12))
async def test_stop_is_recorded_only_if_it_stops(steps: int) -> None:
    async with at_work() as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        await at.desk.take(question())
        await settle()
        gate.set()
        for _ in range(steps):
            await asyncio.sleep(0)
        stopped = await at.desk.stop(1, question().asker)
        row = await done(at.world)

    assert any(body.get("stopped") for body in edits(at.world)) == stopped == (row.outcome == "stopped")


async def test_last_of_two_simultaneous_edits_counts() -> None:
    async with at_work() as at:
        await at.desk.take(question())
        await done(at.world)
        first = asyncio.Event()
        looked = at.queue.by_key
        calls = iter([first])

        async def slowly(key: str) -> Any:
            if gate := next(calls, None):
                await gate.wait()
            return await looked(key)

        at.queue.by_key = slowly
        older = asyncio.create_task(at.desk.edit_question(question().key, "Older words?"))
        await settle()
        newer = asyncio.create_task(at.desk.edit_question(question().key, "Newer words?"))
        await settle()
        first.set()
        await asyncio.gather(older, newer)
        await settle()
        await done(at.world)

    assert [view.sentences[0].text for view in at.world.read()] == ["About: Newer words?"]


async def test_positions_are_posted_a_few_at_a_time() -> None:
    async with at_work(room=ConcurrencyLimit(1, 1)) as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        await at.desk.take(question(1))
        await settle()
        at.platform.gate = asyncio.Event()
        for number in range(2, 60):
            await at.desk.take(question(number))
        before = at.world.calls.count("show")
        await at.waits.move(21.0)
        at_once = at.world.calls.count("show") - before
        at.platform.gate.set()
        for _ in range(20):
            await at.waits.move(0.1)
        told = sum("before" in view.status for view in at.world.views)
        gate.set()
        await done(at.world, 59)

    assert (at_once <= 5, told) == (True, 58)


async def test_unknown_place_is_reported_to_the_asker() -> None:
    async with at_work() as at:
        at.world.faults["asker"] = [PlatformUnavailable("away"), PlatformUnavailable("away", seconds=3_600.0)]
        await at.desk.take(question())
        await at.waits.move(1.0)
        await done(at.world)

    (view,) = at.world.read()
    assert "could not look up who can read this channel" in view.text
    assert at.system.asked == []
    assert [entry.body["status"] for entry in at.world.entries(EntryKind.TURN_CLOSED)] == ["refused"]
