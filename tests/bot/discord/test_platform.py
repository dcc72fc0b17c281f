"""The Discord platform before a strict server: what its reader ends with, whatever happens on the way."""

from dataclasses import replace
from random import Random

import pytest

from bot.desk.platform_port import CannotPost, PlatformUnavailable, PostGone
from bot.platforms.discord.messages import render_messages
from bot.types import PostedMessages
from bot.views.turn_view import View
from bot.views.view_reducer import simplify_view
from tests.bot.discord.stall import Stall, question
from tests.bot.views.moments import BEGUN, FINAL, LONG, WAY
from tests.platforms.discord.state import LOADING, PUBLIC_THREADS, V2
from tests.platforms.fake_server import (
    BROKEN,
    LIMITED,
    LIMITED_EVERYWHERE,
    LOST,
    LOST_500,
    RESET,
    UNAVAILABLE,
    Fault,
)
from tests.platforms.markup import UNSEEN

PAGES = len(render_messages(LONG))
assert PAGES > 1
CUTS = {
    "limited": LIMITED,
    "limited everywhere": LIMITED_EVERYWHERE,
    "broken": BROKEN,
    "unavailable": UNAVAILABLE,
    "reset": RESET,
    "lost": LOST,
    "lost 500": LOST_500,
}
METHODS = ("create_message", "edit_message", "typing")


async def test_an_answer_is_one_message_until_it_is_whole(stall: Stall) -> None:
    """It replies to what was asked, changes as things happen, and ends as it stays."""
    asked, posted = await stall.asked(), PostedMessages()
    for view in WAY:
        posted = await stall.shown(asked, view, posted)
        await stall.clock.advance(2)
    (message,) = stall.ours(asked)

    assert (message.reference or {})["message_id"] == asked.message
    assert message.flags & V2
    assert "Writing …" in stall.said(message.id)
    assert await stall.shown(asked, FINAL, posted) == posted
    stall.whole(asked, FINAL, posted)
    assert stall.discord.posts == 1
    assert stall.discord.refused == []


async def test_views_that_come_too_fast_are_left_out(stall: Stall) -> None:
    """Half of what Discord takes stays for what cannot be: no call ever comes too soon."""
    asked, other = await stall.asked(), await stall.asked()
    posted = await stall.told(asked, *WAY), await stall.told(other, *WAY)
    assert len(stall.discord.calls("edit_message")) < len(WAY)
    await stall.shown(asked, FINAL, posted[0])
    await stall.shown(other, FINAL, posted[1])
    assert stall.discord.limited == []


async def test_that_we_are_at_it_is_shown_meanwhile(stall: Stall) -> None:
    """As typing, and not more often than is of use."""
    asked = await stall.asked()
    posted = await stall.told(asked, *WAY)
    assert len(stall.discord.calls("typing")) == 1
    await stall.clock.advance(9)
    await stall.shown(asked, WAY[1], posted)
    assert len(stall.discord.calls("typing")) == 2


async def test_a_long_answer_takes_several_messages_and_gives_them_back(stall: Stall) -> None:
    """All of them are marked; those that a shorter one does not need are deleted."""
    asked = await stall.asked()
    posted = await stall.told(asked, BEGUN, LONG)
    stall.whole(asked, LONG, posted)
    assert await stall.platform.find(asked) == posted
    shorter = await stall.shown(asked, FINAL, posted)
    stall.whole(asked, FINAL, shorter)
    assert list(stall.deliveries.deleted) == list(posted.messages[1:])


async def test_an_answer_that_grows_again_within_the_nonce_s_minutes(stall: Stall) -> None:
    """Its further messages are posted anew: Discord would return those that we have deleted."""
    asked = await stall.asked()
    posted = await stall.told(asked, BEGUN, LONG, FINAL, LONG)
    stall.whole(asked, LONG, posted)


@pytest.mark.parametrize("cut", [*CUTS, "page"])
@pytest.mark.parametrize("method", METHODS)
async def test_every_method_fails_once(stall: Stall, method: str, cut: str) -> None:
    """In every way: the reader ends with the whole answer, once, and nothing was posted twice."""
    asked = await stall.asked()
    stall.discord.faults[method] = [CUTS.get(cut, Fault(200))]
    posted = await stall.told(asked, *WAY, LONG)
    stall.whole(asked, LONG, posted)
    assert stall.discord.posts == PAGES


@pytest.mark.parametrize("place", range(PAGES))
@pytest.mark.parametrize("cut", CUTS)
async def test_every_post_of_a_long_answer_fails_many_times(stall: Stall, place: int, cut: str) -> None:
    """More often than a call is repeated: what stands there is asked for, and completed."""
    asked = await stall.asked()
    healthy = Fault()
    stall.discord.faults["create_message"] = [*([healthy] * place), *([CUTS[cut]] * 5)]
    posted = await stall.told(asked, LONG)
    stall.whole(asked, LONG, posted)
    assert stall.discord.posts == PAGES


@pytest.mark.parametrize("seed", range(30))
async def test_anything_fails_at_any_time(stall: Stall, seed: int) -> None:
    """With a message or a command, in a thread or not: the reader ends with the whole answer, once."""
    chance = Random(seed)
    kinds = [*CUTS.values(), *([Fault()] * 5)]
    for method in (*METHODS, "delete_message", "create_thread", "edit_response", "get_response", "get_messages"):
        stall.discord.faults[method] = chance.choices(kinds, k=12)
    asked = await (stall.invoked() if chance.random() < 0.3 else stall.asked())
    if asked.message and chance.random() < 0.5:
        asked = replace(asked, place=replace(asked.place, thread=asked.message))
    last = chance.choice([FINAL, LONG])
    posted = PostedMessages()
    for view in (*WAY[: chance.randrange(len(WAY))], *chance.choices([FINAL, LONG], k=2), last):
        posted = await stall.shown(asked, view, posted)
    stall.whole(asked, last, posted)


@pytest.mark.parametrize("view", [BEGUN, FINAL, LONG])
async def test_a_post_that_arrived_unheard_before_a_crash(stall: Stall, view: View) -> None:
    """It is found beyond the minutes of its nonce, by its mark, and completed by edits."""
    asked = await stall.asked()
    stall.discord.faults["create_message"] = [LOST] * 4
    with pytest.raises(PlatformUnavailable) as error:
        await stall.platform.show(asked, view, PostedMessages())
    assert error.value.seconds is None
    await stall.clock.advance(3_600)
    for n in range(250):
        await stall.discord.people.say(f"Meanwhile {n}")
    found = await stall.found(asked)
    assert len(found.messages) == 1
    posted = await stall.shown(asked, LONG, found)
    stall.whole(asked, LONG, posted)
    assert stall.discord.posts == PAGES


async def test_a_post_that_arrived_unheard_and_is_not_looked_for(stall: Stall) -> None:
    """To its nonce Discord returns the first message, which is brought to what is to be shown now."""
    asked = await stall.asked()
    stall.discord.faults["create_message"] = [LOST] * 4
    with pytest.raises(PlatformUnavailable):
        await stall.platform.show(asked, BEGUN, PostedMessages())
    posted = await stall.platform.show(asked, FINAL, PostedMessages())
    stall.whole(asked, FINAL, posted)


async def test_who_has_to_wait_long_is_told_how_long(stall: Stall) -> None:
    """And nothing was posted: that is sure."""
    asked = await stall.asked()
    stall.discord.faults["create_message"] = [replace(LIMITED, retry_after=90.0)]
    with pytest.raises(PlatformUnavailable) as error:
        await stall.platform.show(asked, FINAL, PostedMessages())
    assert error.value.seconds == 90.0
    assert stall.discord.posts == 0
    stall.whole(asked, FINAL, await stall.shown(asked, FINAL))


async def test_who_is_limited_after_an_error_is_in_doubt(stall: Stall) -> None:
    """What came before may have been done."""
    asked = await stall.asked()
    stall.discord.faults["create_message"] = [LOST_500, replace(LIMITED, retry_after=90.0)]
    with pytest.raises(PlatformUnavailable) as error:
        await stall.platform.show(asked, FINAL, PostedMessages())
    assert error.value.seconds is None
    assert len((await stall.platform.find(asked)).messages) == 1


async def test_a_part_that_stands_there_puts_the_rest_in_doubt(stall: Stall) -> None:
    """Whoever comes again asks first what stands there."""
    asked = await stall.asked()
    stall.discord.faults["create_message"] = [Fault(), replace(LIMITED, retry_after=90.0)]
    with pytest.raises(PlatformUnavailable) as error:
        await stall.platform.show(asked, LONG, PostedMessages())
    assert error.value.seconds is None
    stall.whole(asked, LONG, await stall.shown(asked, LONG, await stall.platform.find(asked)))


async def test_what_somebody_deleted_stays_deleted(stall: Stall) -> None:
    """Whether it is edited, or posted again under its nonce."""
    asked = await stall.asked()
    posted = await stall.told(asked, BEGUN)
    await stall.discord.people.delete(posted.messages[0])
    with pytest.raises(PostGone):
        await stall.platform.show(asked, FINAL, posted)
    with pytest.raises(PostGone):
        await stall.platform.show(asked, FINAL, PostedMessages())
    assert stall.ours(asked) == []


async def test_what_was_asked_may_be_deleted_meanwhile(stall: Stall) -> None:
    """The answer stands there without replying to anything, and is found."""
    asked = await stall.asked()
    await stall.discord.people.delete(asked.message)
    posted = await stall.told(asked, BEGUN, FINAL)
    stall.whole(asked, FINAL, posted)
    assert await stall.platform.find(asked) == posted


@pytest.mark.parametrize("channel", ["204", "205", "999"])
async def test_channels_that_will_not_have_it(stall: Stall, channel: str) -> None:
    """It is said so, with what can be done, and without anything secret."""
    asked = question(channel, "1", at=stall.clock.now())
    with pytest.raises(CannotPost) as error:
        await stall.platform.show(asked, FINAL, PostedMessages())
    assert error.value.hint
    assert "/channels/{channel}/messages" in str(error.value)


async def test_a_history_that_is_hidden_from_us(stall: Stall) -> None:
    """Nothing can be replied to there; the answer is posted all the same."""
    asked = await stall.asked()
    await stall.discord.people.deny("201", 1 << 16)
    (number,) = (await stall.told(asked, FINAL)).messages
    assert stall.discord.people.find(number).reference is None


async def test_a_thread_is_opened_on_the_question(stall: Stall) -> None:
    """Once, however often that fails, and named after it; its name pings nobody."""
    asked = await stall.asked("@everyone when? " * 20)
    asked = replace(asked, text="@everyone when? " * 20, place=replace(asked.place, thread=asked.message))
    stall.discord.faults["create_thread"] = [LOST, BROKEN]
    posted = await stall.told(asked, *WAY, LONG)
    stall.whole(asked, LONG, posted)
    thread = stall.discord.state.channels[asked.message]
    assert UNSEEN.sub("", thread.name).startswith("@everyone when?")
    assert not thread.name.startswith("@everyone")
    assert await stall.platform.find(asked) == posted


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("fault", [None, Fault(400, code=160006)], ids=["no right", "too many"])
async def test_where_no_thread_may_be_opened_the_answer_stands_in_the_channel(
    stall: Stall, fault: Fault | None, *, restarts: bool
) -> None:
    """As a reply, whole and once, also where nobody remembers that; and it can be taken away."""
    asked = await stall.asked()
    there = replace(asked, place=replace(asked.place, thread=asked.message))
    if fault:
        stall.discord.faults["create_thread"] = [fault] * 2
    else:
        await stall.discord.people.deny("201", PUBLIC_THREADS)
    posted = await stall.told(there, BEGUN)
    if restarts:
        stall.restart()
    assert await stall.platform.find(there) == posted
    posted = await stall.shown(there, LONG, posted)
    stall.whole(asked, LONG, posted)
    assert (stall.discord.people.find(posted.messages[0]).reference or {})["message_id"] == asked.message
    await stall.platform.remove(there, posted)
    assert stall.ours(asked) == []


async def test_an_archived_thread_that_is_ours_is_opened_again(stall: Stall) -> None:
    """And what stands there is edited."""
    asked = await stall.asked()
    asked = replace(asked, place=replace(asked.place, thread=asked.message))
    posted = await stall.told(asked, BEGUN)
    await stall.discord.people.archive(asked.message)
    posted = await stall.shown(asked, FINAL, posted)
    stall.whole(asked, FINAL, posted)
    assert stall.discord.posts == 1


async def test_an_archived_thread_that_is_not_ours(stall: Stall) -> None:
    """The answer is posted anew, which opens it, and what stood there before is deleted."""
    thread = await stall.discord.people.thread("Opening hours")
    asked = await stall.asked(thread=thread)
    posted = await stall.told(asked, BEGUN)
    await stall.discord.people.archive(thread)
    assert await stall.shown(asked, WAY[1], posted) == posted
    posted = await stall.shown(asked, LONG, posted)
    stall.whole(asked, LONG, posted)


async def test_a_locked_thread(stall: Stall) -> None:
    """Nothing can be said there."""
    thread = await stall.discord.people.thread("Opening hours")
    asked = await stall.asked(thread=thread)
    await stall.discord.people.archive(thread, lock=True)
    with pytest.raises(CannotPost):
        await stall.platform.show(asked, FINAL, PostedMessages())


async def test_a_thread_that_was_deleted(stall: Stall) -> None:
    """It is not opened again for a question that was asked within it; nothing is found there."""
    thread = await stall.discord.people.thread("Opening hours")
    asked = await stall.asked(thread=thread)
    await stall.discord.people.remove_channel(thread)
    with pytest.raises(CannotPost):
        await stall.platform.show(asked, FINAL, PostedMessages())
    assert await stall.platform.find(asked) == PostedMessages()
    await stall.platform.remove(asked, PostedMessages(("5",)))


async def test_removing_is_no_error_where_there_is_nothing(stall: Stall) -> None:
    """And whatever is there goes, though that may take more than one call."""
    asked = await stall.asked()
    posted = await stall.told(asked, BEGUN, LONG)
    await stall.discord.people.delete(posted.messages[0])
    stall.discord.faults["delete_message"] = [LOST]
    await stall.platform.remove(asked, posted)
    assert stall.ours(asked) == []


async def test_a_sentence_is_said_without_an_answer(stall: Stall) -> None:
    """Where it was asked, once; it is none of the answer."""
    asked = await stall.asked()
    stall.discord.faults["create_message"] = [LOST]
    await stall.platform.tell(asked, "Please @everyone wait.")
    (message,) = stall.ours(asked)
    assert stall.said(message.id) == "Please @everyone wait."
    assert message.notified == []
    assert await stall.platform.find(asked) == PostedMessages()


async def test_people_are_called(stall: Stall) -> None:
    """Those who are named, and nobody who is named by the text; once, though nobody heard that it arrived."""
    asked = await stall.asked()
    stall.discord.faults["create_message"] = [LOST] * 4
    posted = await stall.platform.call(asked.place, "Who knows, <@103> @here?", ["101", "102"])
    (number,) = posted.messages
    assert sorted(stall.discord.people.find(number).notified) == ["101", "102"]
    assert stall.discord.posts == 1


async def test_a_call_that_never_arrived_fails(stall: Stall) -> None:
    """Nothing is found of it."""
    asked = await stall.asked()
    stall.discord.faults["create_message"] = [BROKEN] * 4
    with pytest.raises(PlatformUnavailable):
        await stall.platform.call(asked.place, "Who knows?", ["101"])
    assert stall.discord.posts == 0


async def test_pages_of_what_stands_there(stall: Stall) -> None:
    """The question's answer is found, however few messages a page holds."""
    stall.discord.page = 3
    asked = await stall.asked()
    posted = await stall.told(asked, BEGUN)
    for n in range(10):
        await stall.discord.people.say(f"Meanwhile {n}")
    posted = await stall.shown(asked, LONG, posted)
    assert await stall.platform.find(asked) == posted


async def test_two_answers_in_one_channel(stall: Stall) -> None:
    """Are not taken for each other."""
    one, two = await stall.asked(), await stall.asked()
    posted = await stall.told(one, FINAL), await stall.told(two, LONG)
    assert (await stall.platform.find(one), await stall.platform.find(two)) == posted


async def test_a_message_that_waits_for_its_answer_is_no_longer_loading(stall: Stall) -> None:
    """A command's answer is what its asker waits for."""
    asked = await stall.invoked()
    (message,) = stall.ours(asked)
    assert message.flags & LOADING
    stall.whole(asked, LONG, await stall.told(asked, *WAY, LONG))


async def test_plain_text_takes_the_place_of_what_is_refused(stall: Stall) -> None:
    """Within all limits, whole, and first in the message that promised it."""
    asked, (plain, _) = await stall.asked(), simplify_view(LONG)
    posted = await stall.told(asked, BEGUN, plain)

    stall.whole(asked, plain, posted)
    assert " ".join(map(stall.said, posted.messages)).split() == plain.text.split()
    assert stall.discord.refused == []
