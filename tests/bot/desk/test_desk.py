"""The desk with a platform, a queue and a record in memory: one question, and what may happen to it."""

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
from tests.bot.desk.desked import DAY, MemoryQueue, World, at_work, done, office, question, settle

STRANGER = Asker("slack", "channel", "T1", "C1", "U2")
ADMIN = Asker("slack", "channel", "T1", "C1", "UADMIN")


async def test_a_question_is_answered_once():
    """The same question, handed in five times, has one row, one turn, one answer and one entry of its delivery."""
    async with at_work() as at:
        taken = await asyncio.gather(*(at.desk.take(question()) for _ in range(5)))
        row = await done(at.world)

    (view,) = at.world.read()
    (entry,) = at.world.entries(EntryKind.DELIVERED)
    assert sorted(taken) == [IntakeStatus.KNOWN] * 4 + [IntakeStatus.NEW]
    assert (row.outcome, row.handle) == ("delivered", "")
    assert view.sentences[0].text == "About: Question 1?"
    assert len(at.system.asked) == 1
    assert entry.turn_id == row.turn_id
    assert entry.body["messages"] == [*at.world.posts]
    assert entry.body["text"] == "About: Question 1? [1]"


async def test_what_is_taken_before_it_runs_is_answered_when_it_does():
    """A question that is taken while the desk is closed waits on the disk."""
    at = office()
    await at.desk.take(question())

    async with at_work(at.world):
        row = await done(at.world)

    assert row.outcome == "delivered"


async def test_a_question_that_cannot_be_stored_is_refused_once(caplog):
    """The asker is told once for each question, however often the platform delivers it; the cause is in the log."""
    async with at_work() as at:
        at.world.broken.add("put")
        taken = [await at.desk.take(question()) for _ in range(3)]
        await settle()

    assert taken == [IntakeStatus.REFUSED] * 3
    assert [record.levelname for record in caplog.records] == ["ERROR"] * 3
    assert at.world.told == [translate("unrecorded", "en")]


async def test_questions_of_a_conversation_wait_for_each_other():
    """The second question in a thread starts when the first is shown; another thread does not wait."""
    async with at_work() as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        for asked in (question(1, thread="t"), question(2, channel="C2")):
            await at.desk.take(asked)
        await at.desk.take(question(3, thread="t"))
        await done(at.world, 2)
        first = [asked.text for asked in at.system.asked]
        gate.set()
        await done(at.world, 3)

    assert first == ["Question 1?", "Question 2?"]
    assert [asked.text for asked in at.system.asked] == ["Question 1?", "Question 2?", "Question 3?"]


async def test_who_waits_long_is_told_how_many_are_before_him():
    """After the time of patience a status stands there, which the answer replaces."""
    async with at_work() as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        await at.desk.take(question(1, thread="t"))
        await at.desk.take(question(2, thread="t"))
        await at.waits.move(19.0)
        early = at.world.read(2)
        await at.waits.move(2.0)
        (late,) = at.world.read(2)
        gate.set()
        await done(at.world, 2)

    assert early == []
    assert "1" in late.status
    assert [view.done for view in at.world.read(2)] == [True]


async def test_a_slow_platform_holds_no_turn_up():
    """A turn ends although no view of it could be shown yet; then the last one is, and none of those between."""
    async with at_work(gate=asyncio.Event()) as at:
        await at.desk.take(question())
        await settle()
        closed = at.world.entries(EntryKind.TURN_CLOSED)
        at.platform.gate.set()
        await done(at.world)

    assert len(closed) == 1
    assert [view.done for view in at.world.views] == [False, True]


async def test_views_come_at_the_platforms_pace():
    """Between two changes lies the platform's pace; the last one waits for nothing."""
    async with at_work(pace=1.0) as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        await at.desk.take(question())
        await settle()
        before = len(at.world.views)
        await at.waits.move(1.5)
        after = len(at.world.views)
        gate.set()
        await done(at.world)

    assert (before, after, len(at.world.views)) == (1, 2, 3)


@pytest.mark.parametrize("status", [Status.ABSTAINED, Status.CHATTED, Status.FAILED])
async def test_nothing_is_posted_unasked(status):
    """Where nobody addressed the bot, only an answer is posted; the record says that it was silent."""
    async with at_work() as at:
        at.system.statuses["Question 1?"] = status
        await at.desk.take(question(1, unasked=True))
        await at.desk.take(question(2, unasked=True))
        first, second = await done(at.world, 1), await done(at.world, 2)

    assert (first.outcome, second.outcome) == ("silent", "delivered")
    assert at.world.read(1) == []
    assert [view.done for view in at.world.views] == [True]


async def test_what_cannot_be_edited_is_posted_once_whole():
    """Without edits nothing is shown on the way."""
    async with at_work(edits=False, reads_back=False) as at:
        await at.desk.take(question())
        await done(at.world)

    assert [view.done for view in at.world.views] == [True]


@pytest.mark.parametrize("moment", ["show", "after_show"])
async def test_a_platform_that_is_away_gets_the_answer_later(moment):
    """Whether a post failed before or after it was made, one whole answer stands there in the end."""
    async with at_work() as at:
        at.world.faults[moment] = [PlatformUnavailable("away") for _ in range(3)]
        await at.desk.take(question())
        for _ in range(10):
            await at.waits.move(10.0)
        row = await done(at.world)

    assert row.outcome == "delivered"
    assert [view.done for view in at.world.read()] == [True]


async def test_a_limit_is_waited_out():
    """A platform that says how long to wait is asked again after that, and not before."""
    async with at_work(edits=False, reads_back=False) as at:
        at.world.faults["show"] = [PlatformUnavailable("slow down", seconds=30)]
        await at.desk.take(question())
        await at.waits.move(29.0)
        early = at.world.read()
        await at.waits.move(2.0)
        row = await done(at.world)

    assert early == []
    assert row.outcome == "delivered"


async def test_what_was_perhaps_posted_is_not_posted_again():
    """Where the platform cannot be asked, an answer whose post broke off is left, and the record says so."""
    async with at_work(edits=False, reads_back=False) as at:
        at.world.faults["after_show"] = [PlatformUnavailable("away")]
        await at.desk.take(question())
        await at.waits.move(60.0)
        row = await done(at.world)

    (entry,) = at.world.entries(EntryKind.DELIVERED)
    assert row.outcome == entry.body["outcome"] == "uncertain"
    assert len(at.world.read()) == 1
    assert entry.body["why"]


async def test_an_answer_that_is_refused_for_good_is_undeliverable():
    """The record says why nobody saw it."""
    async with at_work() as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        await at.desk.take(question())
        await at.system.begun.wait()
        await settle()
        at.world.faults["show"] = [CannotPost("The channel is archived.")]
        gate.set()
        row = await done(at.world)

    (entry,) = at.world.entries(EntryKind.DELIVERED)
    assert row.outcome == "undeliverable"
    assert entry.body["why"] == "The channel is archived."


@pytest.mark.parametrize("fault", [CannotPost("no"), TypeError("no such argument")])
async def test_a_view_on_the_way_that_cannot_be_shown_decides_nothing(fault):
    """No other is tried, and the answer is posted all the same."""
    async with at_work() as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        at.world.faults["show"] = [fault]
        await at.desk.take(question())
        await at.system.begun.wait()
        await settle()
        assert not at.world.faults["show"]
        gate.set()
        row = await done(at.world)

    (view,) = at.world.read()
    assert row.outcome == "delivered"
    assert view.sentences


@pytest.mark.parametrize("refusals", [1, 2, 3])
async def test_what_is_refused_for_what_it_is_made_of_is_posted_as_plain_text(refusals, caplog):
    """Else that something failed; where not even that is taken, nothing is left that promises an answer."""
    async with at_work() as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        await at.desk.take(question())
        await at.system.begun.wait()
        await settle()
        begun = at.world.read()
        at.world.faults["show"] = [ContentRefused("Slack refused chat.update: invalid_blocks.")] * refusals
        gate.set()
        row = await done(at.world)

    shown = {1: "About: Question 1? [1]", 2: translate("failed", "en")}
    (entry,) = at.world.entries(EntryKind.DELIVERED)
    assert [view.done for view in begun] == [False]
    assert [(view.text, view.plain) for view in at.world.read()] == [(shown[n], True) for n in (refusals,) if n < 3]
    assert (row.outcome, entry.body["text"]) == (
        ("delivered", shown[refusals]) if refusals < 3 else ("undeliverable", shown[1])
    )
    assert "invalid_blocks" in str([getattr(record, "cause", "") for record in caplog.records])


async def test_a_deleted_post_is_not_posted_again():
    """Somebody who deletes what stands there wants no answer there."""
    async with at_work() as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        await at.desk.take(question())
        await settle()
        at.world.posts.clear()
        gate.set()
        row = await done(at.world)

    wanted, gone = at.world.entries(EntryKind.EDITED)
    assert row.outcome == "retracted"
    assert wanted.body["retracted"] is True
    assert gone.body["removed"]
    assert at.world.read() == []


async def test_a_post_gone_while_a_view_is_on_its_way():
    """The turn ends at once where a view on the way finds no post."""
    async with at_work() as at:
        at.system.gates["Question 1?"] = asyncio.Event()
        at.world.faults["show"] = [PostGone("deleted")]
        await at.desk.take(question())
        row = await done(at.world)

    assert row.outcome == "retracted"


async def test_the_asker_stops_a_turn():
    """The turn is recorded as cancelled, its post says that it was stopped, and nothing of it is left."""
    async with at_work() as at:
        at.system.gates["Question 1?"] = asyncio.Event()
        await at.desk.take(question())
        await settle()
        await at.desk.stop(1, STRANGER)
        await settle()
        still = at.world.rows[1].state
        await at.desk.stop(1, question().asker)
        row = await done(at.world)

    (view,) = at.world.read()
    (closed,) = at.world.entries(EntryKind.TURN_CLOSED)
    assert still == "running"
    assert (row.outcome, closed.body["status"]) == ("stopped", "cancelled")
    assert view.done
    assert view.text
    assert not view.sentences


async def test_an_admin_stops_what_waits():
    """Who rules the channel may stop a question that has not started; it is never answered."""
    async with at_work() as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        await at.desk.take(question(1, thread="t"))
        await at.desk.take(question(2, thread="t"))
        await settle()
        await at.desk.stop(2, ADMIN)
        row = await done(at.world, 2)
        gate.set()
        await done(at.world, 1)

    assert row.outcome == "stopped"
    assert [asked.text for asked in at.system.asked] == ["Question 1?"]


@pytest.mark.parametrize("when", ["waiting", "running", "done"])
async def test_a_deleted_question_takes_its_answer_along(when):
    """Whenever its asker deletes a question, nothing of it stands there, and the record says so."""
    async with at_work() as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        await at.desk.take(question(1, thread="t"))
        await at.desk.take(question(2, thread="t"))
        await settle()
        if when == "done":
            gate.set()
            await done(at.world, 1)
            await done(at.world, 2)
        number = 2 if when == "waiting" else 1
        await at.desk.delete_question(question(number, thread="t").key)
        row = await done(at.world, number)
        gate.set()
        await done(at.world, 3 - number)

    assert row.outcome == "retracted"
    assert at.world.read(number) == []
    wanted, gone = at.world.entries(EntryKind.EDITED)
    assert (wanted.body["retracted"], len(gone.body["removed"])) == (True, int(when != "waiting"))
    assert {entry.turn_id for entry in at.world.entries(EntryKind.TURN_CLOSED)} >= {wanted.turn_id, gone.turn_id}


async def test_the_asker_takes_an_answer_back():
    """The answer is removed for its asker, for nobody else, and not for one who is denied by now."""
    async with at_work() as at:
        await at.desk.take(question())
        await done(at.world)
        await at.desk.retract(1, STRANGER)
        await at.desk.retract(1, replace(question().asker, exclusion=Exclusion.DENIED))
        still = len(at.world.read())
        await at.desk.retract(1, question().asker)

    assert still == 1
    assert at.world.read() == []
    assert at.world.rows[1].outcome == "retracted"


@pytest.mark.parametrize("when", ["waiting", "running", "done"])
async def test_an_edited_question_is_answered_anew_in_the_same_post(when):
    """Whenever its asker edits a question, one post stands there, and it answers the new words."""
    async with at_work() as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        await at.desk.take(question(1, thread="t"))
        await at.desk.take(question(2, thread="t"))
        await settle()
        if when == "done":
            gate.set()
            await done(at.world, 2)
        number = 2 if when == "waiting" else 1
        await at.desk.edit_question(question(number, thread="t").key, "Other words?")
        gate.set()
        await settle()
        await done(at.world, 1)
        await done(at.world, 2)

    (view,) = at.world.read(number)
    assert view.sentences[0].text == "About: Other words?"
    assert "Other words?" in at.world.rows[number].body["text"]


async def test_the_same_words_are_not_answered_anew():
    """An edit that leaves the words as they are, such as a link that was unfurled, changes nothing."""
    async with at_work() as at:
        await at.desk.take(question())
        await done(at.world)
        await at.desk.edit_question(question().key, "Question 1?")
        await settle()

    assert len(at.system.asked) == 1


async def test_a_fault_of_the_code_is_said_and_logged(caplog):
    """The asker gets one plain sentence, the log the cause without the handle, and the desk goes on."""
    caplog.set_level(logging.ERROR, "bot.desk")
    async with at_work() as at:
        at.system.errors["Question 1?"] = ValueError("broken at xoxb-secret")
        await at.desk.take(question(1, thread="t"))
        await at.desk.take(question(2, thread="t"))
        row = await done(at.world, 1)
        await done(at.world, 2)

    (view,) = at.world.read(1)
    (record,) = caplog.records
    assert row.outcome == "delivered"
    assert view.text == translate("failed", "en")
    assert not view.sentences
    assert "ValueError: broken at …" in record.cause
    assert "xoxb" not in record.cause


async def test_a_platforms_fault_of_code_ends_nothing():
    """An adapter that breaks at every post leaves a record, and the desk goes on."""
    async with at_work() as at:
        at.world.faults["show"] = [TypeError("no such argument") for _ in range(3)]
        await at.desk.take(question(1, thread="t"))
        row = await done(at.world, 1)
        at.world.faults.clear()
        await at.desk.take(question(2, thread="t"))
        await done(at.world, 2)

    assert row.outcome in {"undeliverable", "delivered"}
    assert len(at.world.read(2)) == 1


@pytest.mark.parametrize("method", ["note", "append", "claim"])
async def test_without_a_record_nothing_is_answered(method):
    """Where the record cannot be written, the asker is told that, and reads nothing of an answer."""
    async with at_work() as at:
        at.world.broken.add(method)
        await at.desk.take(question())
        await settle()
        said = at.world.told + [view.text for view in at.world.read()]
        at.world.broken.clear()
        for _ in range(10):
            await at.waits.move(60.0)
        row = await done(at.world)

    assert said == [translate("unrecorded", "en")]
    assert not any(view.sentences for view in at.world.read())
    assert row.outcome == "undeliverable"


async def test_a_record_that_fails_in_mid_turn():
    """Sentences that were shown on the way go when the turn cannot be closed in the record."""
    async with at_work() as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        await at.desk.take(question())
        await settle()
        at.world.broken.add("append")
        gate.set()
        await settle()
        (view,) = at.world.read()

    assert view.text == translate("unrecorded", "en")
    assert not view.sentences


async def test_a_clean_end_finishes_what_ends_in_time():
    """An answer that comes within the grace is delivered before the desk closes."""
    at = office()
    gate = at.system.gates["Question 1?"] = asyncio.Event()
    async with at.desk.running():
        await at.desk.take(question())
        await settle()
        asyncio.get_running_loop().call_later(0.01, gate.set)

    assert at.world.rows[1].outcome == "delivered"


@pytest.mark.parametrize("arrived", [True, False])
async def test_a_clean_end_releases_the_rest(arrived):
    """What does not end in time says so at its post, also one on its way; the next start completes it there."""
    async with at_work(gate=asyncio.Event()) as at:
        at.system.gates["Question 1?"] = asyncio.Event()
        await at.desk.take(question())
        if arrived:
            at.platform.gate.set()
        await settle()
        asyncio.get_running_loop().call_later(0.01, at.platform.gate.set)
    (between,), state = at.world.read(), at.world.rows[1].state

    async with at_work(at.world):
        await done(at.world)

    (view,) = at.world.read()
    assert state == "waiting"
    assert "restarted" in between.status
    assert view.sentences[0].text == "About: Question 1?"


async def test_an_edit_while_the_answer_is_being_delivered():
    """The answer to the first words is shown, and the same post then answers the new ones."""
    async with at_work(edits=True, gate=asyncio.Event()) as at:
        await at.desk.take(question())
        await settle()
        editing = asyncio.create_task(at.desk.edit_question(question().key, "Other words?"))
        await settle()
        at.platform.gate.set()
        await editing
        await done(at.world)

    (view,) = at.world.read()
    assert view.sentences[0].text == "About: Other words?"
    assert len(at.world.entries(EntryKind.DELIVERED)) == 2


async def test_a_moved_clock_breaks_nothing():
    """Where one process works alone, a date that jumps by years back and forth keeps nobody from his answer."""
    jumps = itertools.cycle([DAY, DAY + timedelta(days=4_000), DAY - timedelta(days=4_000)])
    async with at_work(now=lambda: next(jumps)) as at:
        gate = at.system.gates["Question 1?"] = asyncio.Event()
        await at.desk.take(question())
        for _ in range(5):
            await at.waits.move(21.0)
        gate.set()
        row = await done(at.world)

    assert row.outcome == "delivered"
    assert len(at.system.asked) == 1


async def test_what_another_process_left_is_taken_over_when_its_lease_lapsed():
    """Of several processes, one takes up what another claimed only after that one has not renewed it for long."""
    world, now = World(), DAY
    async with at_work(world, sole=False) as first:
        first.system.gates["Question 1?"] = asyncio.Event()
        await first.desk.take(question())
        await first.waits.move(1.0)
        async with at_work(world, sole=False, now=lambda: now) as second:
            await second.waits.move(25.0)
            early = len(second.system.asked)
            now = DAY + timedelta(seconds=61)
            await second.waits.move(25.0)
            row = await done(world)
            await first.waits.move(25.0)
            given_up = not first.world.rows[1].owner

    assert early == 0
    assert row.outcome == "delivered"
    assert given_up
    assert [view.sentences[0].text for view in world.read()] == ["About: Question 1?"]


async def test_leases_are_renewed():
    """While the desk runs, what it claimed stays its own."""
    now = DAY
    async with at_work(now=lambda: now) as at:
        at.system.gates["Question 1?"] = asyncio.Event()
        await at.desk.take(question())
        await settle()
        before = at.world.rows[1].lease_until
        now = DAY + timedelta(seconds=20)
        await at.waits.move(21.0)
        after = at.world.rows[1].lease_until

    assert after - before == timedelta(seconds=20)


async def test_taking_part():
    """The bot takes part where it was asked or spoke, and not where it only listened or was sent away."""
    async with at_work() as at:
        at.system.statuses["Question 2?"] = Status.ABSTAINED
        await at.desk.take(question(1))
        await at.desk.take(question(2, unasked=True))
        await at.desk.take(question(3))
        for ticket in (1, 2, 3):
            await done(at.world, ticket)
        await at.desk.delete_question(question(3).key)
        part = [await at.desk.participates(question(number).conversation) for number in (1, 2, 3, 4)]
        first, user = question(1).conversation, at.world.rows[1].user
        because = [await at.desk.participates(first, one) for one in (user, "slack:T1/U77")]

    assert part == [True, False, False, False]
    assert because == [True, False]


def test_the_queue_of_the_tests_is_like_the_real_one():
    """The stand-in has no method that the queue has not."""
    from storage.database.queue import Queue

    assert {name for name in vars(MemoryQueue) if not name.startswith("_")} - {"world"} <= set(dir(Queue))
    assert World().rows == {}
