"""The Discord platform at the strict fake server: after any fault, the asker ends with one whole answer."""

from dataclasses import replace
from random import Random

import pytest

from bot.desk.platform_port import CannotPost, PlatformUnavailable, PostGone
from bot.platforms.discord.messages import render_messages
from bot.types import PostedMessages
from bot.views.turn_view import View
from bot.views.view_reducer import simplify_view
from tests.bot.discord.adapter import DiscordAdapter, make_question
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
    question, posted = await adapter.ask(), PostedMessages()
    for view in WAY:
        posted = await adapter.show(question, view, posted)
        await adapter.clock.advance(2)
    (message,) = adapter.ours(question)

    assert (message.reference or {})["message_id"] == question.message
    assert message.flags & V2
    assert "Writing …" in adapter.read_text(message.id)
    assert await adapter.show(question, FINAL, posted) == posted
    adapter.check_shown(question, FINAL, posted)
    assert adapter.discord.posts == 1
    assert adapter.discord.refused == []


async def test_too_frequent_views_are_skipped(adapter: DiscordAdapter) -> None:
    question, other = await adapter.ask(), await adapter.ask()
    posted = await adapter.show_all(question, *WAY), await adapter.show_all(other, *WAY)
    assert len(adapter.discord.calls("edit_message")) < len(WAY)
    await adapter.show(question, FINAL, posted[0])
    await adapter.show(other, FINAL, posted[1])
    assert adapter.discord.limited == []


async def test_typing_is_shown_while_answering(adapter: DiscordAdapter) -> None:
    question = await adapter.ask()
    posted = await adapter.show_all(question, *WAY)
    assert len(adapter.discord.calls("typing")) == 1
    await adapter.clock.advance(9)
    await adapter.show(question, WAY[1], posted)
    assert len(adapter.discord.calls("typing")) == 2


async def test_shortened_answer_deletes_surplus_messages(adapter: DiscordAdapter) -> None:
    question = await adapter.ask()
    posted = await adapter.show_all(question, BEGUN, LONG)
    adapter.check_shown(question, LONG, posted)
    assert await adapter.platform.find(question) == posted
    shorter = await adapter.show(question, FINAL, posted)
    adapter.check_shown(question, FINAL, shorter)
    assert list(adapter.deliveries.deleted) == list(posted.messages[1:])


async def test_page_deleted_and_posted_again_is_not_deduplicated(adapter: DiscordAdapter) -> None:
    question = await adapter.ask()
    posted = await adapter.show_all(question, BEGUN, LONG, FINAL, LONG)
    adapter.check_shown(question, LONG, posted)


@pytest.mark.parametrize("cut", [*CUTS, "page"])
@pytest.mark.parametrize("method", METHODS)
async def test_answer_is_shown_once_although_any_method_fails_once(
    adapter: DiscordAdapter, method: str, cut: str
) -> None:
    question = await adapter.ask()
    adapter.discord.faults[method] = [CUTS.get(cut, Fault(200))]
    posted = await adapter.show_all(question, *WAY, LONG)
    adapter.check_shown(question, LONG, posted)
    assert adapter.discord.posts == PAGES


@pytest.mark.parametrize("place", range(PAGES))
@pytest.mark.parametrize("cut", CUTS)
async def test_long_answer_is_posted_once_although_any_post_fails_five_times(
    adapter: DiscordAdapter, place: int, cut: str
) -> None:
    question = await adapter.ask()
    healthy = Fault()
    adapter.discord.faults["create_message"] = [*([healthy] * place), *([CUTS[cut]] * 5)]
    posted = await adapter.show_all(question, LONG)
    adapter.check_shown(question, LONG, posted)
    assert adapter.discord.posts == PAGES


@pytest.mark.parametrize("seed", range(30))
async def test_answer_survives_random_failures_of_all_methods(adapter: DiscordAdapter, seed: int) -> None:
    chance = Random(seed)
    kinds = [*CUTS.values(), *([Fault()] * 5)]
    for method in (*METHODS, "delete_message", "create_thread", "edit_response", "get_response", "get_messages"):
        adapter.discord.faults[method] = chance.choices(kinds, k=12)
    question = await (adapter.invoke() if chance.random() < 0.3 else adapter.ask())
    if question.message and chance.random() < 0.5:
        question = replace(question, place=replace(question.place, thread=question.message))
    last = chance.choice([FINAL, LONG])
    posted = PostedMessages()
    for view in (*WAY[: chance.randrange(len(WAY))], *chance.choices([FINAL, LONG], k=2), last):
        posted = await adapter.show(question, view, posted)
    adapter.check_shown(question, last, posted)


@pytest.mark.parametrize("view", [BEGUN, FINAL, LONG])
async def test_post_of_a_crashed_process_is_found_and_completed(adapter: DiscordAdapter, view: View) -> None:
    question = await adapter.ask()
    adapter.discord.faults["create_message"] = [LOST] * 4
    with pytest.raises(PlatformUnavailable) as error:
        await adapter.platform.show(question, view, PostedMessages())
    assert error.value.seconds is None
    await adapter.clock.advance(3_600)
    for n in range(250):
        await adapter.discord.people.say(f"Meanwhile {n}")
    found = await adapter.find_posts(question)
    assert len(found.messages) == 1
    posted = await adapter.show(question, LONG, found)
    adapter.check_shown(question, LONG, posted)
    assert adapter.discord.posts == PAGES


async def test_repeated_nonce_returns_the_first_post(adapter: DiscordAdapter) -> None:
    question = await adapter.ask()
    adapter.discord.faults["create_message"] = [LOST] * 4
    with pytest.raises(PlatformUnavailable):
        await adapter.platform.show(question, BEGUN, PostedMessages())
    posted = await adapter.platform.show(question, FINAL, PostedMessages())
    adapter.check_shown(question, FINAL, posted)


LATER = replace(LIMITED, retry_after=90.0)


@pytest.mark.parametrize(
    ("faults", "view", "seconds", "posts"),
    [([LATER], FINAL, 90.0, 0), ([LOST_500, LATER], FINAL, None, 1), ([Fault(), LATER], LONG, None, 1)],
    ids=["limited", "limited after a lost post", "limited after the first page"],
)
async def test_rate_limit_error_has_its_wait_only_if_nothing_was_posted(
    adapter: DiscordAdapter, faults: list[Fault], view: View, seconds: float | None, posts: int
) -> None:
    question = await adapter.ask()
    adapter.discord.faults["create_message"] = faults
    with pytest.raises(PlatformUnavailable) as error:
        await adapter.platform.show(question, view, PostedMessages())
    assert error.value.seconds == seconds
    found = await adapter.platform.find(question)
    assert len(found.messages) == adapter.discord.posts == posts
    adapter.check_shown(question, view, await adapter.show(question, view, found))


async def test_deleted_answer_is_not_posted_again(adapter: DiscordAdapter) -> None:
    question = await adapter.ask()
    posted = await adapter.show_all(question, BEGUN)
    await adapter.discord.people.delete(posted.messages[0])
    with pytest.raises(PostGone):
        await adapter.platform.show(question, FINAL, posted)
    with pytest.raises(PostGone):
        await adapter.platform.show(question, FINAL, PostedMessages())
    assert adapter.ours(question) == []


async def test_answer_to_a_deleted_question_is_posted_without_reply(adapter: DiscordAdapter) -> None:
    question = await adapter.ask()
    await adapter.discord.people.delete(question.message)
    posted = await adapter.show_all(question, BEGUN, FINAL)
    adapter.check_shown(question, FINAL, posted)
    assert await adapter.platform.find(question) == posted


@pytest.mark.parametrize("channel", ["204", "205", "999"])
async def test_unwritable_channel_raises_with_a_hint(adapter: DiscordAdapter, channel: str) -> None:
    question = make_question(channel, "1", at=adapter.clock.now())
    with pytest.raises(CannotPost) as error:
        await adapter.platform.show(question, FINAL, PostedMessages())
    assert error.value.hint
    assert "/channels/{channel}/messages" in str(error.value)


async def test_answer_is_no_reply_if_the_history_is_hidden(adapter: DiscordAdapter) -> None:
    question = await adapter.ask()
    await adapter.discord.people.deny("201", 1 << 16)
    (number,) = (await adapter.show_all(question, FINAL)).messages
    assert adapter.discord.people.find(number).reference is None


async def test_thread_is_opened_on_the_question_once(adapter: DiscordAdapter) -> None:
    question = await adapter.ask("@everyone when? " * 20)
    question = replace(question, text="@everyone when? " * 20, place=replace(question.place, thread=question.message))
    adapter.discord.faults["create_thread"] = [LOST, BROKEN]
    posted = await adapter.show_all(question, *WAY, LONG)
    adapter.check_shown(question, LONG, posted)
    thread = adapter.discord.state.channels[question.message]
    assert UNSEEN.sub("", thread.name).startswith("@everyone when?")
    assert not thread.name.startswith("@everyone")
    assert await adapter.platform.find(question) == posted


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("fault", [None, Fault(400, code=160006)], ids=["no right", "too many"])
async def test_answer_is_in_the_channel_if_no_thread_may_be_opened(
    adapter: DiscordAdapter, fault: Fault | None, *, restarts: bool
) -> None:
    question = await adapter.ask()
    there = replace(question, place=replace(question.place, thread=question.message))
    if fault:
        adapter.discord.faults["create_thread"] = [fault] * 2
    else:
        await adapter.discord.people.deny("201", PUBLIC_THREADS)
    posted = await adapter.show_all(there, BEGUN)
    if restarts:
        adapter.restart()
    assert await adapter.platform.find(there) == posted
    posted = await adapter.show(there, LONG, posted)
    adapter.check_shown(question, LONG, posted)
    assert (adapter.discord.people.find(posted.messages[0]).reference or {})["message_id"] == question.message
    await adapter.platform.remove(there, posted)
    assert adapter.ours(question) == []


async def test_our_archived_thread_is_reopened_for_an_edit(adapter: DiscordAdapter) -> None:
    question = await adapter.ask()
    question = replace(question, place=replace(question.place, thread=question.message))
    posted = await adapter.show_all(question, BEGUN)
    await adapter.discord.people.archive(question.message)
    posted = await adapter.show(question, FINAL, posted)
    adapter.check_shown(question, FINAL, posted)
    assert adapter.discord.posts == 1


async def test_answer_in_an_archived_foreign_thread_is_posted_again(adapter: DiscordAdapter) -> None:
    thread = await adapter.discord.people.thread("Opening hours")
    question = await adapter.ask(thread=thread)
    posted = await adapter.show_all(question, BEGUN)
    await adapter.discord.people.archive(thread)
    assert await adapter.show(question, WAY[1], posted) == posted
    posted = await adapter.show(question, LONG, posted)
    adapter.check_shown(question, LONG, posted)


@pytest.mark.parametrize("change", ["locked", "deleted"])
async def test_posting_to_a_locked_or_deleted_thread_raises_cannot_post(adapter: DiscordAdapter, change: str) -> None:
    thread = await adapter.discord.people.thread("Opening hours")
    question = await adapter.ask(thread=thread)
    people = adapter.discord.people
    await (people.archive(thread, lock=True) if change == "locked" else people.remove_channel(thread))
    with pytest.raises(CannotPost):
        await adapter.platform.show(question, FINAL, PostedMessages())
    assert await adapter.platform.find(question) == PostedMessages()
    if change == "deleted":
        await adapter.platform.remove(question, PostedMessages(("5",)))


async def test_removal_tolerates_missing_messages(adapter: DiscordAdapter) -> None:
    question = await adapter.ask()
    posted = await adapter.show_all(question, BEGUN, LONG)
    await adapter.discord.people.delete(posted.messages[0])
    adapter.discord.faults["delete_message"] = [LOST]
    await adapter.platform.remove(question, posted)
    assert adapter.ours(question) == []


async def test_notice_is_posted_once_and_not_found_as_an_answer(adapter: DiscordAdapter) -> None:
    question = await adapter.ask()
    adapter.discord.faults["create_message"] = [LOST]
    await adapter.platform.tell(question, "Please @everyone wait.")
    (message,) = adapter.ours(question)
    assert adapter.read_text(message.id) == "Please @everyone wait."
    assert message.notified == []
    assert await adapter.platform.find(question) == PostedMessages()


async def test_call_for_a_person_mentions_people_once_despite_lost_replies(adapter: DiscordAdapter) -> None:
    question = await adapter.ask()
    adapter.discord.faults["create_message"] = [LOST] * 4
    posted = await adapter.platform.call(question.place, "Who knows, <@103> @here?", ["101", "102"])
    (number,) = posted.messages
    assert sorted(adapter.discord.people.find(number).notified) == ["101", "102"]
    assert adapter.discord.posts == 1


async def test_call_for_a_person_that_was_not_posted_raises_an_error(adapter: DiscordAdapter) -> None:
    question = await adapter.ask()
    adapter.discord.faults["create_message"] = [BROKEN] * 4
    with pytest.raises(PlatformUnavailable):
        await adapter.platform.call(question.place, "Who knows?", ["101"])
    assert adapter.discord.posts == 0


async def test_answer_is_found_over_many_pages(adapter: DiscordAdapter) -> None:
    adapter.discord.page = 3
    question = await adapter.ask()
    posted = await adapter.show_all(question, BEGUN)
    for n in range(10):
        await adapter.discord.people.say(f"Meanwhile {n}")
    posted = await adapter.show(question, LONG, posted)
    assert await adapter.platform.find(question) == posted


async def test_answers_to_two_questions_are_found_separately(adapter: DiscordAdapter) -> None:
    one, two = await adapter.ask(), await adapter.ask()
    posted = await adapter.show_all(one, FINAL), await adapter.show_all(two, LONG)
    assert (await adapter.platform.find(one), await adapter.platform.find(two)) == posted


async def test_answer_replaces_the_deferral_of_a_command(adapter: DiscordAdapter) -> None:
    question = await adapter.invoke()
    (message,) = adapter.ours(question)
    assert message.flags & LOADING
    adapter.check_shown(question, LONG, await adapter.show_all(question, *WAY, LONG))


async def test_plain_text_replaces_refused_content(adapter: DiscordAdapter) -> None:
    question, (plain, _) = await adapter.ask(), simplify_view(LONG)
    posted = await adapter.show_all(question, BEGUN, plain)

    adapter.check_shown(question, plain, posted)
    assert " ".join(map(adapter.read_text, posted.messages)).split() == plain.text.split()
    assert adapter.discord.refused == []
