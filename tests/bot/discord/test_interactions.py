"""Answers to commands: the interaction's own message for a quarter of an hour, and then what is possible."""

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
    asked = await adapter.invoked()
    posted = await adapter.told(asked, *WAY, LONG)
    adapter.whole(asked, LONG, posted)
    assert await adapter.platform.find(asked) == posted
    assert adapter.discord.calls("typing") == []
    await adapter.platform.remove(asked, posted)
    assert adapter.ours(asked) == []


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("cut", [LOST, LOST_500, BROKEN])
async def test_edits_of_it_fail(adapter: DiscordAdapter, cut: object, *, private: bool) -> None:
    asked = await adapter.invoked(private=private)
    adapter.discord.faults["edit_response"] = [cut] * 5  # type: ignore[list-item]
    posted = await adapter.told(asked, BEGUN, FINAL)
    adapter.whole(asked, FINAL, posted)
    assert adapter.discord.posts == 1


async def test_a_private_answer_is_seen_by_its_asker_alone(adapter: DiscordAdapter) -> None:
    asked = await adapter.invoked(private=True)
    posted = await adapter.told(asked, *WAY, LONG)
    adapter.whole(asked, LONG, posted)
    assert {one.only for one in adapter.ours(asked)} == {"101"}
    assert all(one.flags & EPHEMERAL for one in adapter.ours(asked))
    assert (await adapter.platform.find(asked)).messages == posted.messages[:1]
    shorter = await adapter.shown(asked, FINAL, posted)
    adapter.whole(asked, FINAL, shorter)
    await adapter.platform.remove(asked, shorter)
    assert adapter.ours(asked) == []


async def test_a_follow_up_that_arrived_unheard(adapter: DiscordAdapter) -> None:
    asked = await adapter.invoked(private=True)
    adapter.discord.faults["follow_up"] = [LOST]
    posted = await adapter.told(asked, BEGUN, LONG)
    found = [plain(one) for one in adapter.ours(asked) if one.id in posted.messages]
    assert found == [bare(message.components) for message in render_messages(LONG)]
    (stray,) = (one for one in adapter.ours(asked) if one.id not in posted.messages)
    assert adapter.said(stray.id) == "…"


async def test_a_public_answer_after_a_quarter_of_an_hour(adapter: DiscordAdapter) -> None:
    asked = await adapter.invoked()
    posted = await adapter.told(asked, BEGUN)
    await adapter.clock.advance(LATE)
    assert await adapter.platform.find(asked) == posted
    posted = await adapter.shown(asked, LONG, posted)
    adapter.whole(asked, LONG, posted)
    assert adapter.discord.refused == []
    await adapter.platform.remove(asked, posted)
    assert adapter.ours(asked) == []


async def test_answer_after_the_token_expired_is_a_channel_message(adapter: DiscordAdapter) -> None:
    asked = await adapter.invoked()
    await adapter.clock.advance(LATE)
    (number,) = (await adapter.told(asked, FINAL)).messages
    assert "Sentence 1 of the answer." in adapter.said(number)


async def test_a_token_that_ends_before_its_time(adapter: DiscordAdapter) -> None:
    asked = await adapter.invoked()
    posted = await adapter.told(asked, BEGUN)
    adapter.discord.token_seconds = 0
    await adapter.clock.advance(1)
    adapter.whole(asked, FINAL, await adapter.shown(asked, FINAL, posted))
    await adapter.platform.remove(asked, posted)
    assert adapter.ours(asked) == []


@pytest.mark.parametrize("early", [True, False])
async def test_a_private_answer_that_comes_too_late(adapter: DiscordAdapter, *, early: bool) -> None:
    asked = await adapter.invoked(private=True)
    posted = await adapter.told(asked, BEGUN)
    if early:
        adapter.discord.token_seconds = 0
    await adapter.clock.advance(1 if early else LATE)
    for _ in range(2):
        with pytest.raises(CannotPost) as error:
            await adapter.platform.show(asked, FINAL, posted)
    assert "alone" in str(error.value)
    (told,) = (one for one in adapter.discord.state.ours() if one.channel == adapter.discord.state.dm("101").id)
    assert "Please ask again" in adapter.said(told.id)
    assert "Sentence" not in adapter.said(told.id)
    assert not adapter.platform.ways(asked).reads_back
    assert await adapter.platform.find(asked) == PostedMessages()
    await adapter.platform.remove(asked, posted)


async def test_a_private_answer_too_late_for_somebody_who_takes_no_messages(adapter: DiscordAdapter) -> None:
    asked = await adapter.invoked(private=True)
    adapter.discord.state.users["101"].closed = True
    await adapter.clock.advance(LATE)
    with pytest.raises(CannotPost):
        await adapter.platform.show(asked, FINAL, PostedMessages())


async def test_a_private_answer_to_a_message(adapter: DiscordAdapter) -> None:
    asked = await adapter.asked(only_asker=True)
    assert await adapter.platform.show(asked, BEGUN, PostedMessages()) == PostedMessages()
    with pytest.raises(CannotPost):
        await adapter.platform.show(asked, FINAL, PostedMessages())
    (told,) = adapter.ours(asked)
    assert "/ask" in adapter.said(told.id)
    assert not adapter.platform.ways(asked).edits


async def test_an_answer_that_somebody_deleted(adapter: DiscordAdapter) -> None:
    asked = await adapter.invoked()
    posted = await adapter.told(asked, BEGUN)
    await adapter.discord.people.delete(posted.messages[0])
    with pytest.raises(PostGone):
        await adapter.platform.show(asked, FINAL, posted)
    assert await adapter.platform.find(asked) == PostedMessages()


async def test_interaction_is_answered_without_the_right_to_write(adapter: DiscordAdapter) -> None:
    asked = await adapter.invoked(channel="205")
    posted = await adapter.told(asked, BEGUN, LONG, LONG)
    adapter.whole(asked, LONG, posted)
    assert len(adapter.discord.calls("follow_up")) == len(render_messages(LONG)) - 1
    adapter.whole(asked, FINAL, await adapter.shown(asked, FINAL, posted))


async def test_a_command_in_a_thread_that_is_archived_meanwhile(adapter: DiscordAdapter) -> None:
    thread = await adapter.discord.people.thread("Opening hours")
    asked = await adapter.invoked(channel=thread)
    asked = replace(asked, place=replace(asked.place, channel="201", thread=thread))
    posted = await adapter.told(asked, BEGUN, LONG)
    await adapter.discord.people.archive(thread)
    posted = await adapter.shown(asked, LONG, posted)
    adapter.whole(asked, LONG, posted)
    await adapter.discord.people.archive(thread)
    with pytest.raises(CannotPost):
        await adapter.platform.remove(asked, posted)


async def test_deferral_alone_is_not_found_as_an_answer(adapter: DiscordAdapter) -> None:
    asked = await adapter.invoked()
    assert await adapter.platform.find(asked) == PostedMessages()
    assert await adapter.platform.find(await adapter.invoked(defer=False)) == PostedMessages()


@pytest.mark.parametrize("private", [True, False])
async def test_notice_replaces_the_deferral(adapter: DiscordAdapter, *, private: bool) -> None:
    asked = await adapter.invoked(private=private)
    await adapter.platform.tell(asked, "I cannot keep this question.")
    (message,) = adapter.ours(asked)
    assert adapter.said(message.id) == "I cannot keep this question."


async def test_no_token_is_in_an_error(adapter: DiscordAdapter) -> None:
    asked = await adapter.invoked()
    adapter.discord.faults["edit_response"] = [BROKEN] * 9
    with pytest.raises(PlatformUnavailable) as error:
        await adapter.platform.show(asked, FINAL, PostedMessages())
    assert "NEVERLOGGED" not in f"{error.value} {error.value.__cause__} {error.value.hint}"
    assert asked.handle not in str(error.value)
