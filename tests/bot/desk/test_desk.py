"""Tests of the desk with a platform, a queue and a record in memory."""

import asyncio
import itertools
import logging
from dataclasses import replace
from datetime import timedelta

import pytest

from bot.access import Asker, Exclusion
from bot.desk.platform_port import CannotPost, ContentRefused, PlatformUnavailable, PostGone
from bot.types import IntakeStatus
from bot.views.catalog import translate
from pipeline.types import Status
from storage.types import EntryKind
from tests.bot.desk.fake_desk import DAY, MemoryQueue, World, make_desk, question, running_desk, settle, wait_until_done

STRANGER = Asker("slack", "channel", "T1", "C1", "U2")
ADMIN = Asker("slack", "channel", "T1", "C1", "UADMIN")


async def test_repeated_question_is_answered_once():
    async with running_desk() as setup:
        taken = await asyncio.gather(*(setup.desk.take(question()) for _ in range(5)))
        row = await wait_until_done(setup.world)

    (view,) = setup.world.read()
    (entry,) = setup.world.entries(EntryKind.DELIVERED)
    assert sorted(taken) == [IntakeStatus.KNOWN] * 4 + [IntakeStatus.NEW]
    assert (row.outcome, row.handle) == ("delivered", "")
    assert view.sentences[0].text == "About: Question 1?"
    assert len(setup.system.asked) == 1
    assert entry.turn_id == row.turn_id
    assert entry.body["messages"] == [*setup.world.posts]
    assert entry.body["text"] == "About: Question 1? [1]"


async def test_question_stored_before_the_start_is_answered():
    setup = make_desk()
    await setup.desk.take(question())

    async with running_desk(setup.world):
        row = await wait_until_done(setup.world)

    assert row.outcome == "delivered"


async def test_unstorable_question_is_refused_once(caplog):
    async with running_desk() as setup:
        setup.world.broken.add("put")
        taken = [await setup.desk.take(question()) for _ in range(3)]
        await settle()

    assert taken == [IntakeStatus.REFUSED] * 3
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 3
    assert setup.world.notices == [translate("unrecorded", "en")]


async def test_questions_of_a_conversation_are_answered_in_order():
    async with running_desk() as setup:
        gate = setup.system.gates["Question 1?"] = asyncio.Event()
        for asked in (question(1, thread="t"), question(2, channel="C2")):
            await setup.desk.take(asked)
        await setup.desk.take(question(3, thread="t"))
        await wait_until_done(setup.world, 2)
        first = [asked.text for asked in setup.system.asked]
        gate.set()
        await wait_until_done(setup.world, 3)

    assert first == ["Question 1?", "Question 2?"]
    assert [asked.text for asked in setup.system.asked] == ["Question 1?", "Question 2?", "Question 3?"]


async def test_long_wait_posts_the_position():
    async with running_desk() as setup:
        gate = setup.system.gates["Question 1?"] = asyncio.Event()
        await setup.desk.take(question(1, thread="t"))
        await setup.desk.take(question(2, thread="t"))
        await setup.clock.move(19.0)
        early = setup.world.read(2)
        await setup.clock.move(2.0)
        (late,) = setup.world.read(2)
        gate.set()
        await wait_until_done(setup.world, 2)

    assert early == []
    assert "1" in late.status
    assert [view.done for view in setup.world.read(2)] == [True]


async def test_slow_platform_does_not_delay_the_turn():
    async with running_desk(gate=asyncio.Event()) as setup:
        await setup.desk.take(question())
        await settle()
        closed = setup.world.entries(EntryKind.TURN_CLOSED)
        setup.platform.gate.set()
        await wait_until_done(setup.world)

    assert len(closed) == 1
    assert [view.done for view in setup.world.views] == [False, True]


async def test_progress_views_are_posted_no_faster_than_the_platforms_pace():
    async with running_desk(pace=1.0) as setup:
        gate = await setup.hold(question())
        before = len(setup.world.views)
        await setup.clock.move(1.5)
        after = len(setup.world.views)
        gate.set()
        await wait_until_done(setup.world)

    assert (before, after, len(setup.world.views)) == (1, 2, 3)


@pytest.mark.parametrize("status", [Status.ABSTAINED, Status.CHATTED, Status.FAILED])
async def test_unaddressed_message_is_answered_or_silent(status):
    async with running_desk() as setup:
        setup.system.statuses["Question 1?"] = status
        await setup.desk.take(question(1, unasked=True))
        await setup.desk.take(question(2, unasked=True))
        first, second = await wait_until_done(setup.world, 1), await wait_until_done(setup.world, 2)

    assert (first.outcome, second.outcome) == ("silent", "delivered")
    assert setup.world.read(1) == []
    assert [view.done for view in setup.world.views] == [True]


async def test_platform_without_edits_gets_one_complete_post():
    async with running_desk(edits=False, reads_back=False) as setup:
        await setup.desk.take(question())
        await wait_until_done(setup.world)

    assert [view.done for view in setup.world.views] == [True]


@pytest.mark.parametrize("moment", ["show", "after_show"])
async def test_unreachable_platform_gets_one_complete_answer_later(moment):
    async with running_desk() as setup:
        setup.world.faults[moment] = [PlatformUnavailable("away") for _ in range(3)]
        await setup.desk.take(question())
        for _ in range(10):
            await setup.clock.move(10.0)
        row = await wait_until_done(setup.world)

    assert row.outcome == "delivered"
    assert [view.done for view in setup.world.read()] == [True]


async def test_rate_limit_is_waited_out():
    async with running_desk(edits=False, reads_back=False) as setup:
        setup.world.faults["show"] = [PlatformUnavailable("slow down", seconds=30)]
        await setup.desk.take(question())
        await setup.clock.move(29.0)
        early = setup.world.read()
        await setup.clock.move(2.0)
        row = await wait_until_done(setup.world)

    assert early == []
    assert row.outcome == "delivered"


async def test_answer_that_may_have_arrived_is_not_posted_again():
    async with running_desk(edits=False, reads_back=False) as setup:
        setup.world.faults["after_show"] = [PlatformUnavailable("away")]
        await setup.desk.take(question())
        await setup.clock.move(60.0)
        row = await wait_until_done(setup.world)

    (entry,) = setup.world.entries(EntryKind.DELIVERED)
    assert row.outcome == entry.body["outcome"] == "uncertain"
    assert len(setup.world.read()) == 1
    assert entry.body["why"]


async def test_refused_answer_is_undeliverable():
    async with running_desk() as setup:
        gate = await setup.hold(question())
        setup.world.faults["show"] = [CannotPost("The channel is archived.")]
        gate.set()
        row = await wait_until_done(setup.world)

    (entry,) = setup.world.entries(EntryKind.DELIVERED)
    assert row.outcome == "undeliverable"
    assert entry.body["why"] == "The channel is archived."


@pytest.mark.parametrize("fault", [CannotPost("no"), TypeError("no such argument")])
async def test_refused_progress_view_does_not_prevent_the_answer(fault):
    async with running_desk() as setup:
        gate = setup.system.gates["Question 1?"] = asyncio.Event()
        setup.world.faults["show"] = [fault]
        await setup.desk.take(question())
        await setup.system.begun.wait()
        await settle()
        assert not setup.world.faults["show"]
        gate.set()
        row = await wait_until_done(setup.world)

    (view,) = setup.world.read()
    assert row.outcome == "delivered"
    assert view.sentences


@pytest.mark.parametrize("refusals", [1, 2, 3])
async def test_refused_content_is_posted_as_plain_text(refusals, caplog):
    async with running_desk() as setup:
        gate = await setup.hold(question())
        begun = setup.world.read()
        setup.world.faults["show"] = [ContentRefused("Slack refused chat.update: invalid_blocks.")] * refusals
        gate.set()
        row = await wait_until_done(setup.world)

    shown = {1: "About: Question 1? [1]", 2: translate("failed", "en")}
    (entry,) = setup.world.entries(EntryKind.DELIVERED)
    assert [view.done for view in begun] == [False]
    assert [(view.text, view.plain) for view in setup.world.read()] == [(shown[n], True) for n in (refusals,) if n < 3]
    assert (row.outcome, entry.body["text"]) == (
        ("delivered", shown[refusals]) if refusals < 3 else ("undeliverable", shown[1])
    )
    assert "invalid_blocks" in str([getattr(record, "cause", "") for record in caplog.records])


async def test_deleted_post_is_not_posted_again():
    async with running_desk() as setup:
        gate = await setup.hold(question())
        setup.world.posts.clear()
        gate.set()
        row = await wait_until_done(setup.world)

    requested, deleted = setup.world.entries(EntryKind.EDITED)
    assert row.outcome == "retracted"
    assert requested.body["retracted"] is True
    assert deleted.body["removed"]
    assert setup.world.read() == []


async def test_post_deleted_during_progress_ends_the_turn():
    async with running_desk() as setup:
        setup.system.gates["Question 1?"] = asyncio.Event()
        setup.world.faults["show"] = [PostGone("deleted")]
        await setup.desk.take(question())
        row = await wait_until_done(setup.world)

    assert row.outcome == "retracted"


async def test_asker_stops_a_turn():
    async with running_desk() as setup:
        await setup.hold(question())
        await setup.desk.stop(1, STRANGER)
        await settle()
        still = setup.world.rows[1].state
        await setup.desk.stop(1, question().asker)
        row = await wait_until_done(setup.world)

    (view,) = setup.world.read()
    (closed,) = setup.world.entries(EntryKind.TURN_CLOSED)
    assert still == "running"
    assert (row.outcome, closed.body["status"]) == ("stopped", "cancelled")
    assert view.done
    assert view.text
    assert not view.sentences


async def test_admin_stops_a_waiting_question():
    async with running_desk() as setup:
        gate = await setup.hold(question(1, thread="t"), question(2, thread="t"))
        await setup.desk.stop(2, ADMIN)
        row = await wait_until_done(setup.world, 2)
        gate.set()
        await wait_until_done(setup.world, 1)

    assert row.outcome == "stopped"
    assert [asked.text for asked in setup.system.asked] == ["Question 1?"]


@pytest.mark.parametrize("when", ["waiting", "running", "done"])
async def test_deleting_a_question_removes_its_answer(when):
    async with running_desk() as setup:
        gate = await setup.hold(question(1, thread="t"), question(2, thread="t"))
        if when == "done":
            gate.set()
            await wait_until_done(setup.world, 1)
            await wait_until_done(setup.world, 2)
        number = 2 if when == "waiting" else 1
        await setup.desk.delete_question(question(number, thread="t").key)
        row = await wait_until_done(setup.world, number)
        gate.set()
        await wait_until_done(setup.world, 3 - number)

    assert row.outcome == "retracted"
    assert setup.world.read(number) == []
    requested, deleted = setup.world.entries(EntryKind.EDITED)
    assert (requested.body["retracted"], len(deleted.body["removed"])) == (True, int(when != "waiting"))
    assert {entry.turn_id for entry in setup.world.entries(EntryKind.TURN_CLOSED)} >= {
        requested.turn_id,
        deleted.turn_id,
    }


async def test_only_the_asker_retracts_an_answer():
    async with running_desk() as setup:
        await setup.desk.take(question())
        await wait_until_done(setup.world)
        await setup.desk.retract(1, STRANGER)
        await setup.desk.retract(1, replace(question().asker, exclusion=Exclusion.DENIED))
        still = len(setup.world.read())
        await setup.desk.retract(1, question().asker)

    assert still == 1
    assert setup.world.read() == []
    assert setup.world.rows[1].outcome == "retracted"


@pytest.mark.parametrize("when", ["waiting", "running", "done"])
async def test_edited_question_is_answered_again_in_the_same_post(when):
    async with running_desk() as setup:
        gate = await setup.hold(question(1, thread="t"), question(2, thread="t"))
        if when == "done":
            gate.set()
            await wait_until_done(setup.world, 2)
        number = 2 if when == "waiting" else 1
        await setup.desk.edit_question(question(number, thread="t").key, "Other words?")
        gate.set()
        await settle()
        await wait_until_done(setup.world, 1)
        await wait_until_done(setup.world, 2)

    (view,) = setup.world.read(number)
    assert view.sentences[0].text == "About: Other words?"
    assert "Other words?" in setup.world.rows[number].body["text"]


async def test_edit_without_changed_text_is_ignored():
    async with running_desk() as setup:
        await setup.desk.take(question())
        await wait_until_done(setup.world)
        await setup.desk.edit_question(question().key, "Question 1?")
        await settle()

    assert len(setup.system.asked) == 1


async def test_unexpected_error_is_apologised_for_and_logged(caplog):
    caplog.set_level(logging.ERROR, "bot.desk")
    async with running_desk() as setup:
        setup.system.errors["Question 1?"] = ValueError("broken at xoxb-secret")
        await setup.desk.take(question(1, thread="t"))
        await setup.desk.take(question(2, thread="t"))
        row = await wait_until_done(setup.world, 1)
        await wait_until_done(setup.world, 2)

    (view,) = setup.world.read(1)
    (record,) = caplog.records
    assert row.outcome == "delivered"
    assert view.text == translate("failed", "en")
    assert not view.sentences
    assert "ValueError: broken at …" in record.cause
    assert "xoxb" not in record.cause


async def test_broken_platform_does_not_end_the_desk():
    async with running_desk() as setup:
        setup.world.faults["show"] = [TypeError("no such argument") for _ in range(3)]
        await setup.desk.take(question(1, thread="t"))
        row = await wait_until_done(setup.world, 1)
        setup.world.faults.clear()
        await setup.desk.take(question(2, thread="t"))
        await wait_until_done(setup.world, 2)

    assert row.outcome in {"undeliverable", "delivered"}
    assert len(setup.world.read(2)) == 1


@pytest.mark.parametrize("method", ["note", "append", "claim"])
async def test_unrecordable_question_is_not_answered(method):
    async with running_desk() as setup:
        setup.world.broken.add(method)
        await setup.desk.take(question())
        await settle()
        texts = setup.world.notices + [view.text for view in setup.world.read()]
        setup.world.broken.clear()
        for _ in range(10):
            await setup.clock.move(60.0)
        row = await wait_until_done(setup.world)

    assert texts == [translate("unrecorded", "en")]
    assert not any(view.sentences for view in setup.world.read())
    assert row.outcome == "undeliverable"


async def test_unrecordable_answer_is_withdrawn():
    async with running_desk() as setup:
        gate = await setup.hold(question())
        setup.world.broken.add("append")
        gate.set()
        await settle()
        (view,) = setup.world.read()

    assert view.text == translate("unrecorded", "en")
    assert not view.sentences


async def test_shutdown_delivers_answers_within_the_grace():
    setup = make_desk()
    gate = setup.system.gates["Question 1?"] = asyncio.Event()
    async with setup.desk.running():
        await setup.desk.take(question())
        await settle()
        asyncio.get_running_loop().call_later(0.01, gate.set)

    assert setup.world.rows[1].outcome == "delivered"


@pytest.mark.parametrize("arrived", [True, False])
async def test_shutdown_leaves_unfinished_questions_to_the_next_start(arrived):
    async with running_desk(gate=asyncio.Event()) as setup:
        setup.system.gates["Question 1?"] = asyncio.Event()
        await setup.desk.take(question())
        if arrived:
            setup.platform.gate.set()
        await settle()
        asyncio.get_running_loop().call_later(0.01, setup.platform.gate.set)
    (between,), state = setup.world.read(), setup.world.rows[1].state

    async with running_desk(setup.world):
        await wait_until_done(setup.world)

    (view,) = setup.world.read()
    assert state == "waiting"
    assert "restarted" in between.status
    assert view.sentences[0].text == "About: Question 1?"


async def test_edit_during_delivery_is_answered_in_the_same_post():
    async with running_desk(edits=True, gate=asyncio.Event()) as setup:
        await setup.desk.take(question())
        await settle()
        editing = asyncio.create_task(setup.desk.edit_question(question().key, "Other words?"))
        await settle()
        setup.platform.gate.set()
        await editing
        await wait_until_done(setup.world)

    (view,) = setup.world.read()
    assert view.sentences[0].text == "About: Other words?"
    assert len(setup.world.entries(EntryKind.DELIVERED)) == 2


async def test_jumping_clock_delays_no_answer():
    jumps = itertools.cycle([DAY, DAY + timedelta(days=4_000), DAY - timedelta(days=4_000)])
    async with running_desk(now=lambda: next(jumps)) as setup:
        gate = setup.system.gates["Question 1?"] = asyncio.Event()
        await setup.desk.take(question())
        for _ in range(5):
            await setup.clock.move(21.0)
        gate.set()
        row = await wait_until_done(setup.world)

    assert row.outcome == "delivered"
    assert len(setup.system.asked) == 1


async def test_question_of_another_process_is_claimed_after_its_lease():
    world, now = World(), DAY
    async with running_desk(world, sole=False) as first:
        first.system.gates["Question 1?"] = asyncio.Event()
        await first.desk.take(question())
        await first.clock.move(1.0)
        async with running_desk(world, sole=False, now=lambda: now) as second:
            await second.clock.move(25.0)
            early = len(second.system.asked)
            now = DAY + timedelta(seconds=61)
            await second.clock.move(25.0)
            row = await wait_until_done(world)
            await first.clock.move(25.0)
            given_up = not first.world.rows[1].owner

    assert early == 0
    assert row.outcome == "delivered"
    assert given_up
    assert [view.sentences[0].text for view in world.read()] == ["About: Question 1?"]


async def test_leases_are_renewed():
    now = DAY
    async with running_desk(now=lambda: now) as setup:
        await setup.hold(question())
        before = setup.world.rows[1].lease_until
        now = DAY + timedelta(seconds=20)
        await setup.clock.move(21.0)
        after = setup.world.rows[1].lease_until

    assert after - before == timedelta(seconds=20)


async def test_bot_participates_in_a_conversation_only_after_an_addressed_question():
    async with running_desk() as setup:
        setup.system.statuses["Question 2?"] = Status.ABSTAINED
        await setup.desk.take(question(1))
        await setup.desk.take(question(2, unasked=True))
        await setup.desk.take(question(3))
        for ticket in (1, 2, 3):
            await wait_until_done(setup.world, ticket)
        await setup.desk.delete_question(question(3).key)
        part = [await setup.desk.participates(question(number).conversation) for number in (1, 2, 3, 4)]
        first, user = question(1).conversation, setup.world.rows[1].user
        because = [await setup.desk.participates(first, person) for person in (user, "slack:T1/U77")]

    assert part == [True, False, False, False]
    assert because == [True, False]


def test_fake_queue_has_only_methods_of_the_queue():
    from storage.database.queue import Queue

    assert {name for name in vars(MemoryQueue) if not name.startswith("_")} - {"world"} <= set(dir(Queue))
    assert World().rows == {}
