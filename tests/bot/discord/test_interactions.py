"""Answers to commands: by the interaction for a quarter of an hour, and later by other means."""

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


async def test_a_public_answer_is_the_interaction_s(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke()
    posted = await adapter.show_all(question, *WAY, LONG)
    adapter.check_shown(question, LONG, posted)
    assert await adapter.platform.find(question) == posted
    assert adapter.discord.calls("typing") == []
    await adapter.platform.remove(question, posted)
    assert adapter.ours(question) == []


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("cut", [LOST, LOST_500, BROKEN])
async def test_edits_of_it_fail(adapter: DiscordAdapter, cut: object, *, private: bool) -> None:
    question = await adapter.invoke(private=private)
    adapter.discord.faults["edit_response"] = [cut] * 5  # type: ignore[list-item]
    posted = await adapter.show_all(question, BEGUN, FINAL)
    adapter.check_shown(question, FINAL, posted)
    assert adapter.discord.posts == 1


async def test_a_private_answer_is_seen_by_its_asker_alone(adapter: DiscordAdapter) -> None:
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


async def test_a_follow_up_that_arrived_unheard(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke(private=True)
    adapter.discord.faults["follow_up"] = [LOST]
    posted = await adapter.show_all(question, BEGUN, LONG)
    found = [plain(one) for one in adapter.ours(question) if one.id in posted.messages]
    assert found == [bare(message.components) for message in render_messages(LONG)]
    (stray,) = (one for one in adapter.ours(question) if one.id not in posted.messages)
    assert adapter.read_text(stray.id) == "…"


async def test_a_public_answer_after_a_quarter_of_an_hour(adapter: DiscordAdapter) -> None:
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


async def test_a_token_that_ends_before_its_time(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke()
    posted = await adapter.show_all(question, BEGUN)
    adapter.discord.token_seconds = 0
    await adapter.clock.advance(1)
    adapter.check_shown(question, FINAL, await adapter.show(question, FINAL, posted))
    await adapter.platform.remove(question, posted)
    assert adapter.ours(question) == []


@pytest.mark.parametrize("early", [True, False])
async def test_a_private_answer_that_comes_too_late(adapter: DiscordAdapter, *, early: bool) -> None:
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


async def test_a_private_answer_to_a_message(adapter: DiscordAdapter) -> None:
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


async def test_interaction_is_answered_without_the_right_to_write(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke(channel="205")
    posted = await adapter.show_all(question, BEGUN, LONG, LONG)
    adapter.check_shown(question, LONG, posted)
    assert len(adapter.discord.calls("follow_up")) == len(render_messages(LONG)) - 1
    adapter.check_shown(question, FINAL, await adapter.show(question, FINAL, posted))


async def test_a_command_in_a_thread_that_is_archived_meanwhile(adapter: DiscordAdapter) -> None:
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


async def test_deferral_alone_is_not_found_as_an_answer(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke()
    assert await adapter.platform.find(question) == PostedMessages()
    assert await adapter.platform.find(await adapter.invoke(defer=False)) == PostedMessages()


@pytest.mark.parametrize("private", [True, False])
async def test_notice_replaces_the_deferral(adapter: DiscordAdapter, *, private: bool) -> None:
    question = await adapter.invoke(private=private)
    await adapter.platform.tell(question, "I cannot keep this question.")
    (message,) = adapter.ours(question)
    assert adapter.read_text(message.id) == "I cannot keep this question."


async def test_no_token_is_in_an_error(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke()
    adapter.discord.faults["edit_response"] = [BROKEN] * 9
    with pytest.raises(PlatformUnavailable) as error:
        await adapter.platform.show(question, FINAL, PostedMessages())
    assert "NEVERLOGGED" not in f"{error.value} {error.value.__cause__} {error.value.hint}"
    assert question.handle not in str(error.value)
