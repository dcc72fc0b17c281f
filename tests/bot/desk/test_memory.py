"""Tests of the conversation before a question: in order, complete, and without unreadable turns."""

import asyncio
import logging
from dataclasses import replace

import pytest

from bot.desk.memory import recall_conversation
from bot.desk.platform_port import PlatformUnavailable
from storage.types import EntryKind, LogEntry
from tests.bot.desk.corpora_app import (
    MARKS,
    FakeHistory,
    RecordedConversation,
    make_message,
    open_corpora_app,
    settings,
)


@pytest.fixture
async def app(tmp_path):
    async with open_corpora_app(tmp_path) as app:
        yield app


@pytest.fixture
def conversation(app):
    return RecordedConversation(app)


async def before(conversation, platform=None, text="And on Sunday?", **changes):
    question, row = await conversation.take(text, **changes)
    return await recall_conversation(conversation.app, platform or FakeHistory(), question, row)


def lines(turns):
    return [(turn.speaker, turn.text) for turn in turns]


async def test_earlier_turns_are_remembered_in_order(conversation):
    _, first = await conversation.ask("Wann öffnet der samovar?")
    _, second = await conversation.ask("Is the quayside open?")

    turns = await before(conversation)

    assert lines(turns) == [
        ("user", "Wann öffnet der samovar?"),
        ("bot", first.text),
        ("user", "Is the quayside open?"),
        ("bot", second.text),
    ]
    assert [turn.language for turn in turns[:2]] == ["de", "de"]
    assert turns[1].titles == ("The samovar",)
    assert [turn.query.text for turn in turns if turn.query] == ["Wann öffnet der samovar?", "Is the quayside open?"]
    assert turns[1].corpora == tuple(sorted(MARKS))


async def test_other_conversations_are_not_remembered(app, conversation):
    await RecordedConversation(app, name="slack:T1/C1/2").ask("Is the merger open?")
    question, row = await conversation.take("First?")
    await conversation.ask("Is the quayside open?")

    assert await recall_conversation(app, FakeHistory(), question, row) == ()


async def test_messages_of_others_are_merged_by_time(conversation):
    _, done = await conversation.ask("Is the quayside open?")
    platform = FakeHistory(
        (
            make_message("x1", "Has anybody been there?", 1),
            make_message("slack:T1/C1/1/q1", "Is the quayside open?", 10),
            make_message("x2", "I wonder.", 10.5),
            make_message("slack:T1/C1/1/a1", "as posted", 11, user=""),
            make_message("x3", "  ", 12),
            make_message("slack:T1/C1/1/q2", "And on Sunday?", 20),
            make_message("x4", "Later", 21),
        )
    )

    turns = await before(conversation, platform)

    assert lines(turns) == [
        ("user", "Has anybody been there?"),
        ("user", "Is the quayside open?"),
        ("bot", done.text),
        ("user", "I wonder."),
    ]


@pytest.mark.parametrize("outcome", ["stopped", "retracted"])
async def test_withdrawn_turns_are_not_remembered(conversation, outcome):
    await conversation.ask("Is the quayside open?", outcome=outcome)
    platform = FakeHistory(
        (
            make_message("slack:T1/C1/1/q1", "Is the quayside open?", 10),
            make_message("slack:T1/C1/1/a1", "It is.", 11, user=""),
        )
    )

    assert await before(conversation, platform) == ()


async def test_retracted_answer_is_not_remembered(app, conversation):
    _, done = await conversation.ask("Is the quayside open?")
    await app.audit.append(LogEntry(done.answer_id, EntryKind.EDITED, {"retracted": True}))

    assert await before(conversation) == ()


@pytest.mark.parametrize("way", [{"system": "failing"}, {"outcome": "undeliverable"}, {"outcome": "silent"}])
async def test_question_without_a_shown_answer_is_remembered(conversation, way):
    await conversation.ask("Is the quayside open?", **way)

    assert lines(await before(conversation)) == [("user", "Is the quayside open?")]


async def test_question_without_a_turn_is_remembered(app, conversation):
    _, row = await conversation.take("Is the quayside open?")
    await app.queue.finish(row.ticket, "delivered")

    assert lines(await before(conversation)) == [("user", "Is the quayside open?")]


async def test_private_answer_is_remembered_only_for_its_asker(conversation):
    _, done = await conversation.ask("Is the quayside open?", only_asker=True)

    mine = await before(conversation)
    theirs = await before(conversation, asker=replace(conversation.asker, user="U2"))

    assert lines(mine) == [("user", "Is the quayside open?"), ("bot", done.text)]
    assert lines(theirs) == [("user", "And on Sunday?")]


async def test_turn_is_not_remembered_if_a_corpus_that_its_search_found_is_unreadable(app, conversation, tmp_path):
    await conversation.ask("Is the merger open?", system="abstaining")
    open_still = await before(conversation)
    narrow = replace(app, settings_source=settings(tmp_path, {"board": ()}))
    closed = await before(RecordedConversation(narrow, asked=conversation.asked))

    assert len(open_still) == 2
    assert [turn for turn in closed if "merger" in turn.text] == []


async def test_corpora_of_earlier_answers_are_inherited(app, conversation, tmp_path):
    await conversation.ask("Is the merger open?", within=("board",))
    earlier = await before(conversation)
    await conversation.ask("Is the quayside open?", within=("handbook",), earlier=earlier)
    narrow = replace(app, settings_source=settings(tmp_path, {"board": ()}))

    turns = await before(RecordedConversation(narrow, asked=conversation.asked))

    assert lines(turns) == [("user", "And on Sunday?")]


async def test_narrowed_channel_does_not_remember_other_corpora(app, conversation):
    _, first = await conversation.ask("Is the merger open?", within=("board",))
    await conversation.ask("Is the quayside open?", within=("handbook",))
    await app.overrides.set("slack:T1/C1", "corpora", ["handbook"], by="slack:T1/U1", was=None)
    platform = FakeHistory(
        (
            make_message("slack:T1/C1/1/q1", "Is the merger open?", 10),
            make_message("slack:T1/C1/1/a1", first.text, 11, user=""),
            make_message("own", "The merger is on.", 12, user=""),
        )
    )

    turns = await before(conversation, platform)

    assert [turn.text for turn in turns if "merger" in turn.text] == []
    assert len(turns) == 2


async def test_unlogged_messages_of_the_bot_are_remembered_if_all_corpora_are_readable(conversation):
    platform = FakeHistory((make_message("old", "The quayside was closed.", 1, user=""),))

    assert lines(await before(conversation, platform)) == [("bot", "The quayside was closed.")]


async def test_recorded_answer_is_not_fetched_from_the_platform(app):
    conversation, other = RecordedConversation(app), RecordedConversation(app, name="slack:T1/C1/2")
    await other.ask("Is the merger open?")
    platform = FakeHistory((make_message("slack:T1/C1/2/a1", "The merger is open.", 1, user=""),))

    assert await before(conversation, platform) == ()


async def test_logged_turns_are_remembered_although_the_platform_fails(conversation, caplog):
    await conversation.ask("Is the quayside open?")

    with caplog.at_level(logging.WARNING):
        turns = await before(conversation, FakeHistory(fault=PlatformUnavailable("It is away.")))

    assert len(turns) == 2
    assert "cannot fetch the conversation" in caplog.text


async def test_logged_turns_are_remembered_although_the_platform_does_not_reply(app, conversation):
    class Silent:
        async def heard(self, *_):
            await asyncio.Event().wait()

    await conversation.ask("Is the quayside open?")
    question, row = await conversation.take("And on Sunday?")

    assert len(await recall_conversation(app, Silent(), question, row, patience=0.01)) == 2


async def test_memory_is_limited_to_twenty_turns(conversation):
    platform = FakeHistory(
        tuple(make_message(f"x{number}", f"{number} " + "very " * 2_000, 1 + number / 100) for number in range(50))
    )
    await conversation.ask("Is the quayside open?")

    turns = await before(conversation, platform)

    assert len(turns) == 20
    assert platform.asked == [20]
    assert [turn.speaker for turn in turns[-2:]] == ["user", "bot"]
    assert max(len(turn.text) for turn in turns) <= 4_000


async def test_unreadable_turn_is_not_remembered(app, conversation, caplog):
    await conversation.ask("Is the quayside open?")
    _, row = await conversation.take("Is the samovar open?")
    await app.audit.append(
        LogEntry("odd", EntryKind.TURN_OPENED, {"question": "?", "asker": {"platform": 7, "kind": 7}})
    )
    await app.queue.note(row.ticket, turn_id="odd")

    turns = await before(conversation)

    assert [turn.text for turn in turns if "samovar" in turn.text] == []
    assert len(turns) == 2
    assert "cannot read an earlier turn" in caplog.text
