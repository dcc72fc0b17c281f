"""Tests that unanswered questions and unshown answers are recorded with the reason."""

import asyncio
from dataclasses import replace

import pytest

from bot.access import Asker, Exclusion
from bot.answering.turn_record import read_turn_record
from bot.desk.jobs.job import EXCLUDED, encode_question
from bot.desk.platform_port import PlatformUnavailable
from bot.types import Failure
from bot.views.view_reducer import build_notice_view
from storage.types import EntryKind
from tests.bot.desk.fake_desk import MemoryQueue, World, question, running_desk, settle, wait_until_done

NARROWED = "The documents that I may read here changed while I was answering. Please ask again."


def turns(world):
    ids = [entry.turn_id for entry in world.entries(EntryKind.TURN_OPENED)]
    return [read_turn_record([entry for entry in world.log if entry.turn_id == turn_id]) for turn_id in ids]


async def test_refused_question_is_recorded_with_the_reason():
    world = World(refused=Failure("over_budget", "Enough for today.", "The limit is set by [limits] tokens."))
    async with running_desk(world) as setup:
        await setup.desk.take(question())
        row = await wait_until_done(world)

    (turn,) = turns(world)
    (view,) = world.read()
    (entry,) = world.entries(EntryKind.DELIVERED)
    assert (turn.question, turn.ticket, turn.turn_id) == ("Question 1?", 1, row.turn_id)
    assert (turn.result.answer.status, turn.result.failure) == ("refused", world.refused)
    assert (view.text, entry.turn_id) == ("Enough for today.", row.turn_id)
    assert setup.system.asked == []


@pytest.mark.parametrize("shown", [True, False])
async def test_asker_excluded_while_waiting_sees_a_notice_only_if_a_post_exists(shown: bool):  # noqa: FBT001 - a parameter
    world, asked = World(refused=Failure(EXCLUDED, "I do not answer questions here.", "")), question(2)
    row, _ = await MemoryQueue(world).put(encode_question(asked))
    world.rows[row.ticket] = replace(row, sending=True)
    if shown:
        world.posts["p0"] = (row.key, build_notice_view(row.ticket, "en", "Searching"))
    async with running_desk(world, exclusion=Exclusion.DENIED):
        row = await wait_until_done(world)

    assert row.outcome == ("delivered" if shown else "silent")
    assert [view.text for _, view in world.posts.values()] == ["I do not answer questions here."] * shown


async def test_answer_is_repeated_if_its_scope_was_narrowed():
    world = World(readable=[False])
    async with running_desk(world) as setup:
        await setup.desk.take(question())
        row = await wait_until_done(world)

    first, second = turns(world)
    (entry,) = world.entries(EntryKind.EDITED)
    (view,) = world.read()
    assert second.turn_id == row.turn_id != first.turn_id == entry.turn_id
    assert entry.body["withheld"]
    assert first.delivered == ()
    assert view.sentences
    assert [shown.done for shown in world.views].count(True) == 1


async def test_repeated_answer_replaces_shown_progress():
    world = World(readable=[False])
    async with running_desk(world) as setup:
        gate = setup.system.gates["Question 1?"] = asyncio.Event()
        await setup.desk.take(question())
        await setup.system.begun.wait()
        setup.system.begun.clear()
        gate.set()
        gate = setup.system.gates["Question 1?"] = asyncio.Event()
        await setup.system.begun.wait()
        await settle()
        between = world.read()
        gate.set()
        await wait_until_done(world)

    assert [(view.sentences, view.quote, view.done) for view in between] == [((), None, False)]


async def test_question_is_refused_if_its_scope_is_narrowed_during_both_answers():
    world = World(readable=[False, False])
    async with running_desk(world) as setup:
        await setup.desk.take(question())
        await wait_until_done(world)

    *shown, last = turns(world)
    (view,) = world.read()
    assert (view.text, view.sentences) == (NARROWED, ())
    assert len(setup.system.asked) == len(shown) == 2
    assert (last.result.answer.status, last.result.failure.kind) == ("refused", "scope_narrowed")


async def test_question_stopped_before_its_turn_is_recorded():
    async with running_desk() as setup:
        gate = setup.system.gates["Question 1?"] = asyncio.Event()
        for number in (1, 2):
            await setup.desk.take(question(number, thread="t"))
        await setup.desk.stop(2, Asker("slack", "channel", "T1", "C1", "U1"))
        await wait_until_done(setup.world, 2)
        gate.set()
        await wait_until_done(setup.world)

    stopped = next(turn for turn in turns(setup.world) if turn.ticket == 2)
    assert stopped.question == "Question 2?"
    assert stopped.result.answer.status == "cancelled"


async def test_answer_is_posted_although_its_progress_post_may_not_have_arrived():
    world = World(faults={"after_show": [PlatformUnavailable("no answer")]})
    async with running_desk(world, reads_back=False) as setup:
        await setup.desk.take(question())
        row = await wait_until_done(world)

    assert row.outcome == "delivered"
    assert [view.done for view in world.read()] == [False, True]


async def test_answer_that_may_have_arrived_is_not_posted_again_after_a_failure():
    world = World()
    async with running_desk(world, reads_back=False) as setup:
        gate = await setup.hold(question())
        world.faults["show"] = [PlatformUnavailable("busy", seconds=1.0), PlatformUnavailable("no answer")]
        gate.set()
        for _ in range(4):
            await setup.clock.move(60.0)
        row = await wait_until_done(world)

    (entry,) = world.entries(EntryKind.DELIVERED)
    assert row.outcome == entry.body["outcome"] == "uncertain"
    assert row.posted
    assert world.faults["show"] == []
