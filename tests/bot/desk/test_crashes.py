"""Tests that after a crash at any moment, exactly one answer is posted, or an uncertain one is reported.

Every call that reaches outside the process burns the fuse twice, before and after it. Each test runs once for every
length of fuse, until one is long enough for everything to be done.
"""

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.desk.jobs.scheduler import ConcurrencyLimit
from storage.types import EntryKind
from tests.bot.desk.fake_desk import Fuse, World, make_desk, question, wait_until
from tests.thorough import sample

WAYS = {
    "edits": {"edits": True, "reads_back": True},
    "blind edits": {"edits": True, "reads_back": False},
    "once": {"edits": False, "reads_back": True},
    "blind": {"edits": False, "reads_back": False},
}


async def quick(seconds):
    await asyncio.sleep(seconds / 1000)


async def hand_in(setup):
    """Ask two questions in a thread and one elsewhere, with the platform's repeated deliveries."""
    for number, thread in ((1, "t"), (2, "t"), (3, "u"), (1, "t")):
        await setup.desk.take(question(number, thread=thread))


async def delete(setup):
    await setup.desk.take(question(1))
    await setup.desk.delete_question(question(1).key)


def edit_after(turns):
    """Ask, and edit the question after some turns of the loop, when it may be partly answered."""

    async def edit(setup):
        await setup.desk.take(question(1))
        for _ in range(turns):
            await asyncio.sleep(0)
        await setup.desk.edit_question(question(1).key, "Other words?")

    return edit


def live(world, fuse, doing, **traits):
    """Run until all is done or the process dies; return whether all is done."""

    async def life():
        setup = make_desk(world, sleep=quick, room=ConcurrencyLimit(2, 2), **traits)
        async with setup.desk.running():
            await doing(setup)
            await wait_until(world, lambda: all(row.state == "done" for row in world.rows.values()))

    async def until_dead():
        world.fuse = fuse
        living, dying = asyncio.ensure_future(life()), asyncio.ensure_future(fuse.dead.wait())
        await asyncio.wait({living, dying}, return_when=asyncio.FIRST_COMPLETED)
        if living.done():
            living.result()
        fuse.buried = True
        return not fuse.dead.is_set()

    with asyncio.Runner() as runner:
        return runner.run(until_dead())


def lives(doing, **traits):
    """Yield the world after two processes, for every moment at which the first can die."""
    for most in range(1, 1_000):
        world = World()
        whole = live(world, Fuse(most), doing, **traits)
        yield most, world
        live(world, Fuse(), doing, **traits)
        yield most, world
        if whole:
            return
    raise AssertionError("it never ended")


@pytest.mark.parametrize("ways", ["edits", "once"])
def test_crash_leaves_exactly_one_answer_if_the_bot_can_read_its_posts(ways):
    for place, (most, world) in enumerate(lives(hand_in, **WAYS[ways])):
        if place % 2 == 0:
            continue
        for number in (1, 2, 3):
            shown = world.read(number)
            assert [view.done for view in shown] == [True], (most, number, shown)
            assert shown[0].sentences[0].text == f"About: Question {number}?", most
        assert {row.outcome for row in world.rows.values()} == {"delivered"}, most
        assert not any(row.handle for row in world.rows.values())


@settings(max_examples=sample(60), deadline=None)
@given(st.lists(st.integers(1, 80), min_size=2, max_size=5))
def test_many_crashes_leave_exactly_one_answer(fuses):
    world = World()
    for most in fuses:
        live(world, Fuse(most), hand_in)
    live(world, Fuse(), hand_in)

    for number in (1, 2, 3):
        (view,) = world.read(number)
        assert view.done
        assert view.sentences[0].text == f"About: Question {number}?"


@pytest.mark.parametrize("ways", ["blind edits", "blind"])
def test_crash_leaves_at_most_one_answer_if_the_bot_cannot_read_its_posts(ways):
    doubts = 0
    for place, (most, world) in enumerate(lives(hand_in, **WAYS[ways])):
        if place % 2 == 0:
            continue
        said = {entry.body["ticket"]: entry.body["outcome"] for entry in world.entries(EntryKind.DELIVERED)}
        for number, row in world.rows.items():
            shown = [view for view in world.read(number) if view.done]
            assert len(shown) <= 1, (most, number)
            assert row.outcome == said[number]
            assert row.outcome == "uncertain" or len(shown) == 1, (most, number)
            doubts += row.outcome == "uncertain"
    assert doubts


def test_crash_leaves_every_turn_closed_and_delivered_once():
    for place, (most, world) in enumerate(lives(hand_in, **WAYS["edits"])):
        if place % 2 == 0:
            continue
        opened = [entry.turn_id for entry in world.entries(EntryKind.TURN_OPENED)]
        closed = [entry.turn_id for entry in world.entries(EntryKind.TURN_CLOSED)]
        delivered = [entry.turn_id for entry in world.entries(EntryKind.DELIVERED)]
        assert sorted(opened) == sorted(closed), most
        assert len(delivered) == len(set(delivered)) == 3, most


def test_crash_during_a_deletion_leaves_no_post():
    for place, (most, world) in enumerate(lives(delete, **WAYS["edits"])):
        if place % 2:
            assert world.read() == [], most
            assert world.rows[1].outcome == "retracted", most


@pytest.mark.parametrize("turns", [0, 3, 12, 40])
def test_crash_during_an_edit_leaves_one_answer_to_the_new_text(turns):
    for place, (most, world) in enumerate(lives(edit_after(turns), **WAYS["edits"])):
        if place % 2:
            (view,) = world.read()
            assert view.sentences[0].text == "About: Other words?", most


PATIENCE = 60


class Reworded(World):
    """A world in which a question is edited, unnoticed by the job, just before its end is stored."""

    async def reach(self, name):
        row = self.rows.get(1)
        if name == "finish" and row and row.body["text"] != "Other words?":
            self.rows[1] = replace(row, body={**row.body, "text": "Other words?"})
        await super().reach(name)


async def test_question_edited_while_its_answer_ends_is_answered_after_the_next_start():
    world = Reworded()
    setup, again = make_desk(world), make_desk(world)
    async with setup.desk.running(), asyncio.timeout(PATIENCE):
        await setup.desk.take(question(1))
        await wait_until(world, lambda: world.entries(EntryKind.DELIVERED) and world.rows[1].state == "waiting")
    async with again.desk.running(), asyncio.timeout(PATIENCE):
        await again.desk.edit_question(question(1).key, "Other words?")
        await wait_until(world, lambda: world.rows[1].state == "done")

    (view,) = world.read()
    assert view.sentences[0].text == "About: Other words?"
    assert len(world.entries(EntryKind.DELIVERED)) == 2
