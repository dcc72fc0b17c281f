"""Answers to commands: the interaction's own message for a quarter of an hour, and then what is possible."""

from dataclasses import replace

import pytest

from bot.desk.platform_port import CannotPost, PlatformUnavailable, PostGone
from bot.platforms.discord.messages import render_messages
from bot.types import PostedMessages
from tests.bot.discord.stall import Stall, bare, plain
from tests.bot.views.moments import BEGUN, FINAL, LONG, WAY
from tests.platforms.discord.state import EPHEMERAL
from tests.platforms.fake_server import BROKEN, LOST, LOST_500

LATE = 15 * 60.0


async def test_a_public_answer_is_the_interaction_s(stall: Stall) -> None:
    """What does not fit there stands in the channel; all of it is found."""
    asked = await stall.invoked()
    posted = await stall.told(asked, *WAY, LONG)
    stall.whole(asked, LONG, posted)
    assert await stall.platform.find(asked) == posted
    assert stall.discord.calls("typing") == []
    await stall.platform.remove(asked, posted)
    assert stall.ours(asked) == []


@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("cut", [LOST, LOST_500, BROKEN])
async def test_edits_of_it_fail(stall: Stall, cut: object, *, private: bool) -> None:
    """The reader ends with the whole answer, once."""
    asked = await stall.invoked(private=private)
    stall.discord.faults["edit_response"] = [cut] * 5  # type: ignore[list-item]
    posted = await stall.told(asked, BEGUN, FINAL)
    stall.whole(asked, FINAL, posted)
    assert stall.discord.posts == 1


async def test_a_private_answer_is_seen_by_its_asker_alone(stall: Stall) -> None:
    """All of it, though it takes follow-ups; it is found by the interaction."""
    asked = await stall.invoked(private=True)
    posted = await stall.told(asked, *WAY, LONG)
    stall.whole(asked, LONG, posted)
    assert {one.only for one in stall.ours(asked)} == {"101"}
    assert all(one.flags & EPHEMERAL for one in stall.ours(asked))
    assert (await stall.platform.find(asked)).messages == posted.messages[:1]
    shorter = await stall.shown(asked, FINAL, posted)
    stall.whole(asked, FINAL, shorter)
    await stall.platform.remove(asked, shorter)
    assert stall.ours(asked) == []


async def test_a_follow_up_that_arrived_unheard(stall: Stall) -> None:
    """Leaves an empty line at worst: no word of the answer stands there twice."""
    asked = await stall.invoked(private=True)
    stall.discord.faults["follow_up"] = [LOST]
    posted = await stall.told(asked, BEGUN, LONG)
    found = [plain(one) for one in stall.ours(asked) if one.id in posted.messages]
    assert found == [bare(message.components) for message in render_messages(LONG)]
    (stray,) = (one for one in stall.ours(asked) if one.id not in posted.messages)
    assert stall.said(stray.id) == "…"


async def test_a_public_answer_after_a_quarter_of_an_hour(stall: Stall) -> None:
    """What stands there is edited as a message of the channel, and found as one."""
    asked = await stall.invoked()
    posted = await stall.told(asked, BEGUN)
    await stall.clock.advance(LATE)
    assert await stall.platform.find(asked) == posted
    posted = await stall.shown(asked, LONG, posted)
    stall.whole(asked, LONG, posted)
    assert stall.discord.refused == []
    await stall.platform.remove(asked, posted)
    assert stall.ours(asked) == []


async def test_an_answer_of_which_nothing_was_shown_in_time(stall: Stall) -> None:
    """It arrives as a message of the channel."""
    asked = await stall.invoked()
    await stall.clock.advance(LATE)
    (number,) = (await stall.told(asked, FINAL)).messages
    assert "Sentence 1 of the answer." in stall.said(number)


async def test_a_token_that_ends_before_its_time(stall: Stall) -> None:
    """Nobody asked for it, but it happens: the channel's way is taken from then on."""
    asked = await stall.invoked()
    posted = await stall.told(asked, BEGUN)
    stall.discord.token_seconds = 0
    await stall.clock.advance(1)
    stall.whole(asked, FINAL, await stall.shown(asked, FINAL, posted))
    await stall.platform.remove(asked, posted)
    assert stall.ours(asked) == []


@pytest.mark.parametrize("early", [True, False])
async def test_a_private_answer_that_comes_too_late(stall: Stall, *, early: bool) -> None:
    """It is shown to nobody; the asker is told by a DM, once, without a word of it, and without a mention."""
    asked = await stall.invoked(private=True)
    posted = await stall.told(asked, BEGUN)
    if early:
        stall.discord.token_seconds = 0
    await stall.clock.advance(1 if early else LATE)
    for _ in range(2):
        with pytest.raises(CannotPost) as error:
            await stall.platform.show(asked, FINAL, posted)
    assert "alone" in str(error.value)
    (told,) = (one for one in stall.discord.state.ours() if one.channel == stall.discord.state.dm("101").id)
    assert "Please ask again" in stall.said(told.id)
    assert "Sentence" not in stall.said(told.id)
    assert not stall.platform.ways(asked).reads_back
    assert await stall.platform.find(asked) == PostedMessages()
    await stall.platform.remove(asked, posted)


async def test_a_private_answer_too_late_for_somebody_who_takes_no_messages(stall: Stall) -> None:
    """They cannot be told; it fails all the same, and says why in the log alone."""
    asked = await stall.invoked(private=True)
    stall.discord.state.users["101"].closed = True
    await stall.clock.advance(LATE)
    with pytest.raises(CannotPost):
        await stall.platform.show(asked, FINAL, PostedMessages())


async def test_a_private_answer_to_a_message(stall: Stall) -> None:
    """There is no way to show it; nothing of it is shown on the way, and the asker is told of the command."""
    asked = await stall.asked(only_asker=True)
    assert await stall.platform.show(asked, BEGUN, PostedMessages()) == PostedMessages()
    with pytest.raises(CannotPost):
        await stall.platform.show(asked, FINAL, PostedMessages())
    (told,) = stall.ours(asked)
    assert "/ask" in stall.said(told.id)
    assert not stall.platform.ways(asked).edits


async def test_an_answer_that_somebody_deleted(stall: Stall) -> None:
    """Stays deleted."""
    asked = await stall.invoked()
    posted = await stall.told(asked, BEGUN)
    await stall.discord.people.delete(posted.messages[0])
    with pytest.raises(PostGone):
        await stall.platform.show(asked, FINAL, posted)
    assert await stall.platform.find(asked) == PostedMessages()


async def test_where_we_may_not_write_interactions_answer_all_the_same(stall: Stall) -> None:
    """A long answer's further messages are follow-ups there."""
    asked = await stall.invoked(channel="205")
    posted = await stall.told(asked, BEGUN, LONG, LONG)
    stall.whole(asked, LONG, posted)
    assert len(stall.discord.calls("follow_up")) == len(render_messages(LONG)) - 1
    stall.whole(asked, FINAL, await stall.shown(asked, FINAL, posted))


async def test_a_command_in_a_thread_that_is_archived_meanwhile(stall: Stall) -> None:
    """Its further messages stand in the thread, which is opened again by posting them anew."""
    thread = await stall.discord.people.thread("Opening hours")
    asked = await stall.invoked(channel=thread)
    asked = replace(asked, place=replace(asked.place, channel="201", thread=thread))
    posted = await stall.told(asked, BEGUN, LONG)
    await stall.discord.people.archive(thread)
    posted = await stall.shown(asked, LONG, posted)
    stall.whole(asked, LONG, posted)
    await stall.discord.people.archive(thread)
    with pytest.raises(CannotPost):
        await stall.platform.remove(asked, posted)


async def test_nothing_was_begun_before_a_crash(stall: Stall) -> None:
    """The deferral alone is no answer of ours."""
    asked = await stall.invoked()
    assert await stall.platform.find(asked) == PostedMessages()
    assert await stall.platform.find(await stall.invoked(defer=False)) == PostedMessages()


@pytest.mark.parametrize("private", [True, False])
async def test_a_sentence_is_said_to_who_invoked(stall: Stall, *, private: bool) -> None:
    """In the place of the answer."""
    asked = await stall.invoked(private=private)
    await stall.platform.tell(asked, "I cannot keep this question.")
    (message,) = stall.ours(asked)
    assert stall.said(message.id) == "I cannot keep this question."


async def test_no_token_is_in_an_error(stall: Stall) -> None:
    """Nor in what caused it, as far as it is told."""
    asked = await stall.invoked()
    stall.discord.faults["edit_response"] = [BROKEN] * 9
    with pytest.raises(PlatformUnavailable) as error:
        await stall.platform.show(asked, FINAL, PostedMessages())
    assert "NEVERLOGGED" not in f"{error.value} {error.value.__cause__} {error.value.hint}"
    assert asked.handle not in str(error.value)
