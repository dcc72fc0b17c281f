"""The Discord platform before a strict server: what its reader ends with, whatever happens on the way."""

from dataclasses import replace
from random import Random

import pytest

from bot.desk.platform_port import CannotPost, PlatformUnavailable, PostGone
from bot.platforms.discord.messages import render_messages
from bot.types import PostedMessages
from bot.views.turn_view import View
from bot.views.view_reducer import simplify_view
from tests.bot.discord.adapter import DiscordAdapter, question
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


async def test_answer_is_one_message_until_complete(adapter: DiscordAdapter) -> None:
    asked, posted = await adapter.asked(), PostedMessages()
    for view in WAY:
        posted = await adapter.shown(asked, view, posted)
        await adapter.clock.advance(2)
    (message,) = adapter.ours(asked)

    assert (message.reference or {})["message_id"] == asked.message
    assert message.flags & V2
    assert "Writing …" in adapter.said(message.id)
    assert await adapter.shown(asked, FINAL, posted) == posted
    adapter.whole(asked, FINAL, posted)
    assert adapter.discord.posts == 1
    assert adapter.discord.refused == []


async def test_too_frequent_views_are_skipped(adapter: DiscordAdapter) -> None:
    asked, other = await adapter.asked(), await adapter.asked()
    posted = await adapter.told(asked, *WAY), await adapter.told(other, *WAY)
    assert len(adapter.discord.calls("edit_message")) < len(WAY)
    await adapter.shown(asked, FINAL, posted[0])
    await adapter.shown(other, FINAL, posted[1])
    assert adapter.discord.limited == []


async def test_typing_is_shown_while_answering(adapter: DiscordAdapter) -> None:
    asked = await adapter.asked()
    posted = await adapter.told(asked, *WAY)
    assert len(adapter.discord.calls("typing")) == 1
    await adapter.clock.advance(9)
    await adapter.shown(asked, WAY[1], posted)
    assert len(adapter.discord.calls("typing")) == 2


async def test_a_long_answer_takes_several_messages_and_gives_them_back(adapter: DiscordAdapter) -> None:
    asked = await adapter.asked()
    posted = await adapter.told(asked, BEGUN, LONG)
    adapter.whole(asked, LONG, posted)
    assert await adapter.platform.find(asked) == posted
    shorter = await adapter.shown(asked, FINAL, posted)
    adapter.whole(asked, FINAL, shorter)
    assert list(adapter.deliveries.deleted) == list(posted.messages[1:])


async def test_an_answer_that_grows_again_within_the_nonce_s_minutes(adapter: DiscordAdapter) -> None:
    asked = await adapter.asked()
    posted = await adapter.told(asked, BEGUN, LONG, FINAL, LONG)
    adapter.whole(asked, LONG, posted)


@pytest.mark.parametrize("cut", [*CUTS, "page"])
@pytest.mark.parametrize("method", METHODS)
async def test_every_method_fails_once(adapter: DiscordAdapter, method: str, cut: str) -> None:
    asked = await adapter.asked()
    adapter.discord.faults[method] = [CUTS.get(cut, Fault(200))]
    posted = await adapter.told(asked, *WAY, LONG)
    adapter.whole(asked, LONG, posted)
    assert adapter.discord.posts == PAGES


@pytest.mark.parametrize("place", range(PAGES))
@pytest.mark.parametrize("cut", CUTS)
async def test_every_post_of_a_long_answer_fails_many_times(adapter: DiscordAdapter, place: int, cut: str) -> None:
    asked = await adapter.asked()
    healthy = Fault()
    adapter.discord.faults["create_message"] = [*([healthy] * place), *([CUTS[cut]] * 5)]
    posted = await adapter.told(asked, LONG)
    adapter.whole(asked, LONG, posted)
    assert adapter.discord.posts == PAGES


@pytest.mark.parametrize("seed", range(30))
async def test_anything_fails_at_any_time(adapter: DiscordAdapter, seed: int) -> None:
    chance = Random(seed)
    kinds = [*CUTS.values(), *([Fault()] * 5)]
    for method in (*METHODS, "delete_message", "create_thread", "edit_response", "get_response", "get_messages"):
        adapter.discord.faults[method] = chance.choices(kinds, k=12)
    asked = await (adapter.invoked() if chance.random() < 0.3 else adapter.asked())
    if asked.message and chance.random() < 0.5:
        asked = replace(asked, place=replace(asked.place, thread=asked.message))
    last = chance.choice([FINAL, LONG])
    posted = PostedMessages()
    for view in (*WAY[: chance.randrange(len(WAY))], *chance.choices([FINAL, LONG], k=2), last):
        posted = await adapter.shown(asked, view, posted)
    adapter.whole(asked, last, posted)


@pytest.mark.parametrize("view", [BEGUN, FINAL, LONG])
async def test_post_of_a_crashed_process_is_found_and_completed(adapter: DiscordAdapter, view: View) -> None:
    asked = await adapter.asked()
    adapter.discord.faults["create_message"] = [LOST] * 4
    with pytest.raises(PlatformUnavailable) as error:
        await adapter.platform.show(asked, view, PostedMessages())
    assert error.value.seconds is None
    await adapter.clock.advance(3_600)
    for n in range(250):
        await adapter.discord.people.say(f"Meanwhile {n}")
    found = await adapter.found(asked)
    assert len(found.messages) == 1
    posted = await adapter.shown(asked, LONG, found)
    adapter.whole(asked, LONG, posted)
    assert adapter.discord.posts == PAGES


async def test_repeated_nonce_returns_the_first_post(adapter: DiscordAdapter) -> None:
    asked = await adapter.asked()
    adapter.discord.faults["create_message"] = [LOST] * 4
    with pytest.raises(PlatformUnavailable):
        await adapter.platform.show(asked, BEGUN, PostedMessages())
    posted = await adapter.platform.show(asked, FINAL, PostedMessages())
    adapter.whole(asked, FINAL, posted)


async def test_long_wait_is_raised_with_its_seconds(adapter: DiscordAdapter) -> None:
    asked = await adapter.asked()
    adapter.discord.faults["create_message"] = [replace(LIMITED, retry_after=90.0)]
    with pytest.raises(PlatformUnavailable) as error:
        await adapter.platform.show(asked, FINAL, PostedMessages())
    assert error.value.seconds == 90.0
    assert adapter.discord.posts == 0
    adapter.whole(asked, FINAL, await adapter.shown(asked, FINAL))


async def test_limit_after_an_error_is_in_doubt(adapter: DiscordAdapter) -> None:
    asked = await adapter.asked()
    adapter.discord.faults["create_message"] = [LOST_500, replace(LIMITED, retry_after=90.0)]
    with pytest.raises(PlatformUnavailable) as error:
        await adapter.platform.show(asked, FINAL, PostedMessages())
    assert error.value.seconds is None
    assert len((await adapter.platform.find(asked)).messages) == 1


async def test_partly_posted_answer_is_in_doubt(adapter: DiscordAdapter) -> None:
    asked = await adapter.asked()
    adapter.discord.faults["create_message"] = [Fault(), replace(LIMITED, retry_after=90.0)]
    with pytest.raises(PlatformUnavailable) as error:
        await adapter.platform.show(asked, LONG, PostedMessages())
    assert error.value.seconds is None
    adapter.whole(asked, LONG, await adapter.shown(asked, LONG, await adapter.platform.find(asked)))


async def test_deleted_answer_is_not_posted_again(adapter: DiscordAdapter) -> None:
    asked = await adapter.asked()
    posted = await adapter.told(asked, BEGUN)
    await adapter.discord.people.delete(posted.messages[0])
    with pytest.raises(PostGone):
        await adapter.platform.show(asked, FINAL, posted)
    with pytest.raises(PostGone):
        await adapter.platform.show(asked, FINAL, PostedMessages())
    assert adapter.ours(asked) == []


async def test_answer_to_a_deleted_question_is_posted_without_reply(adapter: DiscordAdapter) -> None:
    asked = await adapter.asked()
    await adapter.discord.people.delete(asked.message)
    posted = await adapter.told(asked, BEGUN, FINAL)
    adapter.whole(asked, FINAL, posted)
    assert await adapter.platform.find(asked) == posted


@pytest.mark.parametrize("channel", ["204", "205", "999"])
async def test_unwritable_channel_raises_with_a_hint(adapter: DiscordAdapter, channel: str) -> None:
    asked = question(channel, "1", at=adapter.clock.now())
    with pytest.raises(CannotPost) as error:
        await adapter.platform.show(asked, FINAL, PostedMessages())
    assert error.value.hint
    assert "/channels/{channel}/messages" in str(error.value)


async def test_a_history_that_is_hidden_from_us(adapter: DiscordAdapter) -> None:
    asked = await adapter.asked()
    await adapter.discord.people.deny("201", 1 << 16)
    (number,) = (await adapter.told(asked, FINAL)).messages
    assert adapter.discord.people.find(number).reference is None


async def test_a_thread_is_opened_on_the_question(adapter: DiscordAdapter) -> None:
    asked = await adapter.asked("@everyone when? " * 20)
    asked = replace(asked, text="@everyone when? " * 20, place=replace(asked.place, thread=asked.message))
    adapter.discord.faults["create_thread"] = [LOST, BROKEN]
    posted = await adapter.told(asked, *WAY, LONG)
    adapter.whole(asked, LONG, posted)
    thread = adapter.discord.state.channels[asked.message]
    assert UNSEEN.sub("", thread.name).startswith("@everyone when?")
    assert not thread.name.startswith("@everyone")
    assert await adapter.platform.find(asked) == posted


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("fault", [None, Fault(400, code=160006)], ids=["no right", "too many"])
async def test_answer_is_in_the_channel_if_no_thread_may_be_opened(
    adapter: DiscordAdapter, fault: Fault | None, *, restarts: bool
) -> None:
    asked = await adapter.asked()
    there = replace(asked, place=replace(asked.place, thread=asked.message))
    if fault:
        adapter.discord.faults["create_thread"] = [fault] * 2
    else:
        await adapter.discord.people.deny("201", PUBLIC_THREADS)
    posted = await adapter.told(there, BEGUN)
    if restarts:
        adapter.restart()
    assert await adapter.platform.find(there) == posted
    posted = await adapter.shown(there, LONG, posted)
    adapter.whole(asked, LONG, posted)
    assert (adapter.discord.people.find(posted.messages[0]).reference or {})["message_id"] == asked.message
    await adapter.platform.remove(there, posted)
    assert adapter.ours(asked) == []


async def test_an_archived_thread_that_is_ours_is_opened_again(adapter: DiscordAdapter) -> None:
    asked = await adapter.asked()
    asked = replace(asked, place=replace(asked.place, thread=asked.message))
    posted = await adapter.told(asked, BEGUN)
    await adapter.discord.people.archive(asked.message)
    posted = await adapter.shown(asked, FINAL, posted)
    adapter.whole(asked, FINAL, posted)
    assert adapter.discord.posts == 1


async def test_an_archived_thread_that_is_not_ours(adapter: DiscordAdapter) -> None:
    thread = await adapter.discord.people.thread("Opening hours")
    asked = await adapter.asked(thread=thread)
    posted = await adapter.told(asked, BEGUN)
    await adapter.discord.people.archive(thread)
    assert await adapter.shown(asked, WAY[1], posted) == posted
    posted = await adapter.shown(asked, LONG, posted)
    adapter.whole(asked, LONG, posted)


async def test_a_locked_thread(adapter: DiscordAdapter) -> None:
    thread = await adapter.discord.people.thread("Opening hours")
    asked = await adapter.asked(thread=thread)
    await adapter.discord.people.archive(thread, lock=True)
    with pytest.raises(CannotPost):
        await adapter.platform.show(asked, FINAL, PostedMessages())


async def test_a_thread_that_was_deleted(adapter: DiscordAdapter) -> None:
    thread = await adapter.discord.people.thread("Opening hours")
    asked = await adapter.asked(thread=thread)
    await adapter.discord.people.remove_channel(thread)
    with pytest.raises(CannotPost):
        await adapter.platform.show(asked, FINAL, PostedMessages())
    assert await adapter.platform.find(asked) == PostedMessages()
    await adapter.platform.remove(asked, PostedMessages(("5",)))


async def test_removal_tolerates_missing_messages(adapter: DiscordAdapter) -> None:
    asked = await adapter.asked()
    posted = await adapter.told(asked, BEGUN, LONG)
    await adapter.discord.people.delete(posted.messages[0])
    adapter.discord.faults["delete_message"] = [LOST]
    await adapter.platform.remove(asked, posted)
    assert adapter.ours(asked) == []


async def test_a_sentence_is_said_without_an_answer(adapter: DiscordAdapter) -> None:
    asked = await adapter.asked()
    adapter.discord.faults["create_message"] = [LOST]
    await adapter.platform.tell(asked, "Please @everyone wait.")
    (message,) = adapter.ours(asked)
    assert adapter.said(message.id) == "Please @everyone wait."
    assert message.notified == []
    assert await adapter.platform.find(asked) == PostedMessages()


async def test_people_are_called(adapter: DiscordAdapter) -> None:
    asked = await adapter.asked()
    adapter.discord.faults["create_message"] = [LOST] * 4
    posted = await adapter.platform.call(asked.place, "Who knows, <@103> @here?", ["101", "102"])
    (number,) = posted.messages
    assert sorted(adapter.discord.people.find(number).notified) == ["101", "102"]
    assert adapter.discord.posts == 1


async def test_a_call_that_never_arrived_fails(adapter: DiscordAdapter) -> None:
    asked = await adapter.asked()
    adapter.discord.faults["create_message"] = [BROKEN] * 4
    with pytest.raises(PlatformUnavailable):
        await adapter.platform.call(asked.place, "Who knows?", ["101"])
    assert adapter.discord.posts == 0


async def test_answer_is_found_over_many_pages(adapter: DiscordAdapter) -> None:
    adapter.discord.page = 3
    asked = await adapter.asked()
    posted = await adapter.told(asked, BEGUN)
    for n in range(10):
        await adapter.discord.people.say(f"Meanwhile {n}")
    posted = await adapter.shown(asked, LONG, posted)
    assert await adapter.platform.find(asked) == posted


async def test_two_answers_in_one_channel(adapter: DiscordAdapter) -> None:
    one, two = await adapter.asked(), await adapter.asked()
    posted = await adapter.told(one, FINAL), await adapter.told(two, LONG)
    assert (await adapter.platform.find(one), await adapter.platform.find(two)) == posted


async def test_a_message_that_waits_for_its_answer_is_no_longer_loading(adapter: DiscordAdapter) -> None:
    asked = await adapter.invoked()
    (message,) = adapter.ours(asked)
    assert message.flags & LOADING
    adapter.whole(asked, LONG, await adapter.told(asked, *WAY, LONG))


async def test_plain_text_replaces_refused_content(adapter: DiscordAdapter) -> None:
    asked, (plain, _) = await adapter.asked(), simplify_view(LONG)
    posted = await adapter.told(asked, BEGUN, plain)

    adapter.whole(asked, plain, posted)
    assert " ".join(map(adapter.said, posted.messages)).split() == plain.text.split()
    assert adapter.discord.refused == []
