"""Tests of retracting an answer, and of stops and edits that arrive late or twice."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from bot.desk.jobs.scheduler import ConcurrencyLimit
from bot.desk.platform_port import CannotPost, PlatformUnavailable
from storage.types import EntryKind
from tests.bot.desk.fake_desk import (
    DeskSetup,
    World,
    make_desk,
    question,
    running_desk,
    settle,
    wait_until,
    wait_until_done,
)

AWAY = [PlatformUnavailable("away") for _ in range(1_000)]


def edits(world: World) -> list[Any]:
    return [entry.body for entry in world.entries(EntryKind.EDITED)]


@asynccontextmanager
async def answered(**traits: Any) -> AsyncIterator[DeskSetup]:
    async with running_desk(**traits) as setup:
        await setup.desk.take(question())
        await wait_until_done(setup.world)
        setup.world.faults["remove"] = list(AWAY)
        yield setup


@pytest.mark.parametrize("way", ["deleted", "retracted"])
async def test_retraction_is_completed_at_the_next_start(way: str) -> None:
    async with answered() as setup:
        wish = (
            setup.desk.delete_question(question().key) if way == "deleted" else setup.desk.retract(1, question().asker)
        )
        request = asyncio.create_task(wish)
        await settle()
        request.cancel()
        await settle()
        before, state = edits(setup.world), setup.world.rows[1].state
    remaining = setup.world.read()
    setup.world.faults.clear()
    async with running_desk(setup.world):
        row = await wait_until_done(setup.world)

    assert ([sorted(body) for body in before], state) == ([["by", "retracted", "why"]], "running")
    assert len(remaining) == 1
    assert (row.outcome, setup.world.read()) == ("retracted", [])
    assert [body.get("removed") for body in edits(setup.world)] == [None, list(row.posted)]


async def test_retraction_is_retried_until_the_platform_is_reachable() -> None:
    async with answered() as setup:
        request = asyncio.create_task(setup.desk.delete_question(question().key))
        for _ in range(5):
            await setup.clock.move(61.0)
        tried, remaining = setup.world.calls.count("remove"), len(setup.world.read())
        setup.world.faults.clear()
        await setup.clock.move(61.0)
        await request

    assert (tried > 3, remaining, setup.world.read()) == (True, 1, [])
    assert setup.world.rows[1].outcome == "retracted"


async def test_refused_deletion_is_recorded() -> None:
    async with answered() as setup:
        setup.world.faults["remove"] = [CannotPost("The channel is archived.")]
        await setup.desk.delete_question(question().key)
        row = await wait_until_done(setup.world)

    assert row.outcome == "retracted"
    assert edits(setup.world)[1] == {"removed": [], "standing": [*setup.world.posts], "why": "The channel is archived."}


async def test_retraction_by_another_process_is_executed() -> None:
    async with running_desk() as setup:
        await setup.desk.take(question())
        await wait_until_done(setup.world)
        await setup.queue.retract(1, by="terminal", why="erased")
        await setup.clock.move(21.0)
        await setup.clock.move(0.1)

        assert (setup.world.rows[1].outcome, setup.world.read()) == ("retracted", [])


async def test_retraction_waits_for_the_record() -> None:
    async with running_desk() as setup:
        await setup.desk.take(question())
        await wait_until_done(setup.world)
        shown = setup.world.read()
        setup.world.broken |= {"append", "claim"}
        request = asyncio.create_task(setup.desk.delete_question(question().key))
        await setup.clock.move(5.0)
        remaining = setup.world.read()
        setup.world.broken.clear()
        for _ in range(3):
            await setup.clock.move(61.0)
        await request

    assert (shown, setup.world.read()) == (remaining, [])


async def test_retraction_at_the_end_of_delivery_is_executed() -> None:
    setup = make_desk()
    await setup.desk.take(question())
    world = setup.world
    async with running_desk(world) as first:
        await wait_until(world, lambda: bool(world.rows[1].posted))
        await first.desk.delete_question(question().key)
        row = await wait_until_done(world)

    assert (row.outcome, world.read()) == ("retracted", [])


async def test_pending_retraction_does_not_block_answers() -> None:
    async with answered(room=ConcurrencyLimit(1, 1)) as setup:
        request = asyncio.create_task(setup.desk.delete_question(question().key))
        await settle()
        await setup.desk.take(question(2))
        row = await wait_until_done(setup.world, 2)
        setup.world.faults.clear()
        await setup.clock.move(61.0)
        await request

    assert row.outcome == "delivered"


async def test_question_deleted_before_its_turn_is_recorded() -> None:
    async with running_desk() as setup:
        gate = await setup.hold(question(1, thread="t"), question(2, thread="t"))
        await setup.desk.delete_question(question(2, thread="t").key)
        row = await wait_until_done(setup.world, 2)
        gate.set()
        await wait_until_done(setup.world, 1)

    kinds = [entry.kind.value for entry in setup.world.log if entry.turn_id == row.turn_id]
    (closed,) = (entry for entry in setup.world.entries(EntryKind.TURN_CLOSED) if entry.turn_id == row.turn_id)
    assert kinds == ["turn_opened", "turn_closed", "edited", "edited"]
    assert closed.body["status"] == "cancelled"


@pytest.mark.parametrize("steps", range(12))
async def test_stop_is_recorded_only_if_the_question_was_stopped(steps: int) -> None:
    async with running_desk() as setup:
        gate = await setup.hold(question())
        gate.set()
        for _ in range(steps):
            await asyncio.sleep(0)
        stopped = await setup.desk.stop(1, question().asker)
        row = await wait_until_done(setup.world)

    assert any(body.get("stopped") for body in edits(setup.world)) == stopped == (row.outcome == "stopped")


async def test_last_of_two_simultaneous_edits_counts() -> None:
    async with running_desk() as setup:
        await setup.desk.take(question())
        await wait_until_done(setup.world)
        first = asyncio.Event()
        looked = setup.queue.by_key
        calls = iter([first])

        async def slowly(key: str) -> Any:
            if gate := next(calls, None):
                await gate.wait()
            return await looked(key)

        setup.queue.by_key = slowly
        older = asyncio.create_task(setup.desk.edit_question(question().key, "Older words?"))
        await settle()
        newer = asyncio.create_task(setup.desk.edit_question(question().key, "Newer words?"))
        await settle()
        first.set()
        await asyncio.gather(older, newer)
        await settle()
        await wait_until_done(setup.world)

    assert [view.sentences[0].text for view in setup.world.read()] == ["About: Newer words?"]


async def test_queue_positions_of_many_questions_are_posted_a_few_at_a_time() -> None:
    async with running_desk(room=ConcurrencyLimit(1, 1)) as setup:
        gate = await setup.hold(question(1))
        setup.platform.gate = asyncio.Event()
        for number in range(2, 60):
            await setup.desk.take(question(number))
        before = setup.world.calls.count("show")
        await setup.clock.move(21.0)
        at_once = setup.world.calls.count("show") - before
        setup.platform.gate.set()
        for _ in range(20):
            await setup.clock.move(0.1)
        posted = sum("before" in view.status for view in setup.world.views)
        gate.set()
        await wait_until_done(setup.world, 59)

    assert (at_once <= 5, posted) == (True, 58)


async def test_failed_lookup_of_channel_readers_is_reported_to_the_asker() -> None:
    async with running_desk() as setup:
        setup.world.faults["asker"] = [PlatformUnavailable("away"), PlatformUnavailable("away", seconds=3_600.0)]
        await setup.desk.take(question())
        await setup.clock.move(1.0)
        await wait_until_done(setup.world)

    (view,) = setup.world.read()
    assert "could not look up who can read this channel" in view.text
    assert setup.system.asked == []
    assert [entry.body["status"] for entry in setup.world.entries(EntryKind.TURN_CLOSED)] == ["refused"]
