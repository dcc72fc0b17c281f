"""Answers to commands: as replies to the interaction for a quarter of an hour, later as messages or notices."""

from dataclasses import replace

import pytest

from bot.desk.platform_port import CannotPost, PlatformUnavailable, PostGone
from bot.platforms.discord.messages import render_messages
from bot.types import PostedMessages
from tests.bot.discord.adapter import DiscordAdapter, bare, plain
from tests.bot.views.moments import BEGUN, FINAL, LONG, WAY
from tests.platforms.discord.state import EPHEMERAL
from tests.platforms.fake_server import BROKEN, LOST, LOST_500

LATE = 15 * 60.0


async def test_public_answer_replaces_the_reply_to_its_interaction(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke()
    posted = await adapter.show_all(question, *WAY, LONG)
    adapter.check_shown(question, LONG, posted)
    assert await adapter.platform.find(question) == posted
    assert adapter.discord.calls("typing") == []
    await adapter.platform.remove(question, posted)
    assert adapter.ours(question) == []


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("cut", [LOST, LOST_500, BROKEN])
async def test_failed_edits_of_a_reply_are_repeated(adapter: DiscordAdapter, cut: object, *, private: bool) -> None:
    question = await adapter.invoke(private=private)
    adapter.discord.faults["edit_response"] = [cut] * 5  # type: ignore[list-item]
    posted = await adapter.show_all(question, BEGUN, FINAL)
    adapter.check_shown(question, FINAL, posted)
    assert adapter.discord.posts == 1


async def test_private_answer_of_several_pages_is_ephemeral(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke(private=True)
    posted = await adapter.show_all(question, *WAY, LONG)
    adapter.check_shown(question, LONG, posted)
    assert {one.only for one in adapter.ours(question)} == {"101"}
    assert all(one.flags & EPHEMERAL for one in adapter.ours(question))
    assert (await adapter.platform.find(question)).messages == posted.messages[:1]
    shorter = await adapter.show(question, FINAL, posted)
    adapter.check_shown(question, FINAL, shorter)
    await adapter.platform.remove(question, shorter)
    assert adapter.ours(question) == []


async def test_lost_follow_up_leaves_an_empty_message(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke(private=True)
    adapter.discord.faults["follow_up"] = [LOST]
    posted = await adapter.show_all(question, BEGUN, LONG)
    found = [plain(one) for one in adapter.ours(question) if one.id in posted.messages]
    assert found == [bare(message.components) for message in render_messages(LONG)]
    (stray,) = (one for one in adapter.ours(question) if one.id not in posted.messages)
    assert adapter.read_text(stray.id) == "…"


async def test_public_answer_is_edited_as_a_message_once_its_token_expired(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke()
    posted = await adapter.show_all(question, BEGUN)
    await adapter.clock.advance(LATE)
    assert await adapter.platform.find(question) == posted
    posted = await adapter.show(question, LONG, posted)
    adapter.check_shown(question, LONG, posted)
    assert adapter.discord.refused == []
    await adapter.platform.remove(question, posted)
    assert adapter.ours(question) == []


async def test_answer_after_the_token_expired_is_a_channel_message(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke()
    await adapter.clock.advance(LATE)
    (number,) = (await adapter.show_all(question, FINAL)).messages
    assert "Sentence 1 of the answer." in adapter.read_text(number)


async def test_early_expired_token_moves_the_answer_to_the_channel(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke()
    posted = await adapter.show_all(question, BEGUN)
    adapter.discord.token_seconds = 0
    await adapter.clock.advance(1)
    adapter.check_shown(question, FINAL, await adapter.show(question, FINAL, posted))
    await adapter.platform.remove(question, posted)
    assert adapter.ours(question) == []


@pytest.mark.parametrize("early", [True, False])
async def test_late_private_answer_becomes_a_notice_by_dm(adapter: DiscordAdapter, *, early: bool) -> None:
    question = await adapter.invoke(private=True)
    posted = await adapter.show_all(question, BEGUN)
    if early:
        adapter.discord.token_seconds = 0
    await adapter.clock.advance(1 if early else LATE)
    for _ in range(2):
        with pytest.raises(CannotPost) as error:
            await adapter.platform.show(question, FINAL, posted)
    assert "alone" in str(error.value)
    (told,) = (one for one in adapter.discord.state.ours() if one.channel == adapter.discord.state.dm("101").id)
    assert "Please ask again" in adapter.read_text(told.id)
    assert "Sentence" not in adapter.read_text(told.id)
    assert not adapter.platform.ways(question).reads_back
    assert await adapter.platform.find(question) == PostedMessages()
    await adapter.platform.remove(question, posted)


async def test_late_private_answer_without_dm_is_not_shown(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke(private=True)
    adapter.discord.state.users["101"].closed = True
    await adapter.clock.advance(LATE)
    with pytest.raises(CannotPost):
        await adapter.platform.show(question, FINAL, PostedMessages())


async def test_private_answer_to_a_message_points_to_the_command(adapter: DiscordAdapter) -> None:
    question = await adapter.ask(only_asker=True)
    assert await adapter.platform.show(question, BEGUN, PostedMessages()) == PostedMessages()
    with pytest.raises(CannotPost):
        await adapter.platform.show(question, FINAL, PostedMessages())
    (told,) = adapter.ours(question)
    assert "/ask" in adapter.read_text(told.id)
    assert not adapter.platform.ways(question).edits


async def test_deleted_answer_is_not_edited(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke()
    posted = await adapter.show_all(question, BEGUN)
    await adapter.discord.people.delete(posted.messages[0])
    with pytest.raises(PostGone):
        await adapter.platform.show(question, FINAL, posted)
    assert await adapter.platform.find(question) == PostedMessages()


async def test_command_in_a_read_only_channel_is_answered_by_follow_ups(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke(channel="205")
    posted = await adapter.show_all(question, BEGUN, LONG, LONG)
    adapter.check_shown(question, LONG, posted)
    assert len(adapter.discord.calls("follow_up")) == len(render_messages(LONG)) - 1
    adapter.check_shown(question, FINAL, await adapter.show(question, FINAL, posted))


async def test_answer_to_a_command_is_edited_in_an_archived_thread(adapter: DiscordAdapter) -> None:
    thread = await adapter.discord.people.thread("Opening hours")
    question = await adapter.invoke(channel=thread)
    question = replace(question, place=replace(question.place, channel="201", thread=thread))
    posted = await adapter.show_all(question, BEGUN, LONG)
    await adapter.discord.people.archive(thread)
    posted = await adapter.show(question, LONG, posted)
    adapter.check_shown(question, LONG, posted)
    await adapter.discord.people.archive(thread)
    with pytest.raises(CannotPost):
        await adapter.platform.remove(question, posted)


async def test_deferred_response_without_an_answer_is_not_found_as_an_answer(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke()
    assert await adapter.platform.find(question) == PostedMessages()
    assert await adapter.platform.find(await adapter.invoke(defer=False)) == PostedMessages()


@pytest.mark.parametrize("private", [True, False])
async def test_notice_replaces_the_deferral(adapter: DiscordAdapter, *, private: bool) -> None:
    question = await adapter.invoke(private=private)
    await adapter.platform.tell(question, "I cannot keep this question.")
    (message,) = adapter.ours(question)
    assert adapter.read_text(message.id) == "I cannot keep this question."


async def test_errors_contain_no_interaction_token(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke()
    adapter.discord.faults["edit_response"] = [BROKEN] * 9
    with pytest.raises(PlatformUnavailable) as error:
        await adapter.platform.show(question, FINAL, PostedMessages())
    assert "NEVERLOGGED" not in f"{error.value} {error.value.__cause__} {error.value.hint}"
    assert question.handle not in str(error.value)
