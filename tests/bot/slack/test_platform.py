"""The Slack platform at the strict fake server: after any fault, the asker ends with one whole answer."""

from dataclasses import replace

import pytest

from bot.desk.platform_port import CannotPost, PlatformUnavailable, PostGone
from bot.platforms.slack.messages import ANSWER, build_mark, render_messages
from bot.types import Place, PostedMessages
from bot.views.turn_view import View
from bot.views.view_reducer import simplify_view
from tests.bot.slack.adapter import SlackAdapter
from tests.bot.slack.payloads import elements, people
from tests.bot.views.moments import BEGUN, FINAL, LONG, SENTENCES, WAY
from tests.platforms.fake_server import BROKEN, LIMITED, LOST, LOST_500, RESET, Fault, refused
from tests.platforms.markup import UNSEEN
from tests.platforms.slack.state import Message

APPENDS = len(WAY) - 1
assert len(render_messages(LONG)) > 1
METHODS = ("chat.startStream", "chat.appendStream", "chat.stopStream", "chat.update", "chat.postMessage")
CUTS = {"limited": LIMITED, "broken": BROKEN, "reset": RESET, "lost": LOST, "lost 500": LOST_500}


async def test_answer_streams_and_ends_complete(adapter: SlackAdapter) -> None:
    question = await adapter.ask()
    posted = await adapter.show_all(question, *WAY)
    (message,) = adapter.slack.people.answers(question.message)
    tasks = message.stream.tasks

    assert message.stream.state == "streaming"
    assert [(tasks[name]["title"], tasks[name]["status"]) for name in ("status", "claim-1", "claim-2")] == [
        ("Writing …", "in_progress"),
        ("Confirmed", "complete"),
        ("A statement could not be confirmed and is left out", "pending"),
    ]
    assert tasks["claim-1"]["details"].replace("\u2060", "") == "It is open. · Page 1"
    assert [message.text.count(f"Sentence {n}") for n in range(1, 5)] == [1, 1, 1, 1]
    assert await adapter.show(question, FINAL, posted) == posted
    adapter.check_shown(question, FINAL)
    assert [len(adapter.slack.calls(method)) for method in METHODS] == [1, APPENDS, 1, 1, 0]
    assert adapter.slack.refused == []


@pytest.mark.parametrize("stopped", [True, False])
@pytest.mark.parametrize("place", range(1, len(WAY) + 1))
async def test_stream_that_ends_early_is_completed_by_an_update(
    adapter: SlackAdapter, place: int, *, stopped: bool
) -> None:
    question = await adapter.ask()
    posted = await adapter.show_all(question, *WAY[:place])
    await (adapter.slack.people.stop("C1", question.message) if stopped else adapter.clock.advance(301))
    for view in (*WAY[place:], FINAL):
        assert await adapter.show(question, view, posted) == posted
    adapter.check_shown(question, FINAL)


@pytest.mark.parametrize("error", ["unknown_method", "missing_scope", "team_not_found", "channel_type_not_supported"])
async def test_refused_stream_is_replaced_by_updates(adapter: SlackAdapter, error: str) -> None:
    question = await adapter.ask()
    adapter.slack.faults["chat.startStream"] = [refused(error)]
    posted = await adapter.show_all(question, *WAY)
    (message,) = adapter.slack.people.answers(question.message)

    assert message.stream is None
    assert elements(message.blocks, "button")[0]["action_id"] == "footnote:stop"
    assert "Writing" in message.text
    await adapter.show(question, FINAL, posted)
    adapter.check_shown(question, FINAL)
    assert [len(adapter.slack.calls(method)) for method in METHODS] == [1, 0, 0, APPENDS + 1, 1]


async def test_streams_are_not_tried_again_at_once_after_three_refusals(adapter: SlackAdapter) -> None:
    adapter.slack.faults["chat.startStream"] = [refused("unknown_method")] * 3
    for _ in range(5):
        await adapter.show_all(await adapter.ask(), BEGUN, FINAL)
    assert len(adapter.slack.calls("chat.startStream")) == 3
    await adapter.clock.advance(601)
    await adapter.show_all(await adapter.ask(), BEGUN, FINAL)
    assert len(adapter.slack.calls("chat.startStream")) == 4


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("cut", [*CUTS, "page"])
@pytest.mark.parametrize("method", METHODS)
async def test_answer_is_shown_once_although_any_method_fails_once(
    adapter: SlackAdapter, method: str, cut: str, *, streams: bool
) -> None:
    question = await adapter.ask()
    adapter.slack.faults[method] = [CUTS.get(cut, Fault(200))]
    if not streams:
        adapter.slack.faults["chat.startStream"] = [
            refused("unknown_method"),
            *adapter.slack.faults["chat.startStream"],
        ]
    await adapter.show_all(question, *WAY, LONG)
    adapter.check_shown(question, LONG)
    assert adapter.slack.posts == len(render_messages(LONG))


@pytest.mark.parametrize("place", range(APPENDS))
@pytest.mark.parametrize("cut", CUTS)
async def test_answer_is_shown_once_although_any_append_fails_once(adapter: SlackAdapter, place: int, cut: str) -> None:
    question = await adapter.ask()
    adapter.slack.faults["chat.appendStream"] = [*[Fault()] * place, CUTS[cut]]
    posted = await adapter.show_all(question, *WAY)
    (message,) = adapter.slack.people.answers(question.message)
    assert all(message.text.count(f"Sentence {n} ") <= 1 for n in range(1, 5))
    await adapter.show(question, FINAL, posted)
    adapter.check_shown(question, FINAL)


async def test_abandoned_stream_is_not_appended_to(adapter: SlackAdapter) -> None:
    question = await adapter.ask()
    posted = await adapter.show_all(question, *WAY[:5])
    adapter.slack.faults |= {"chat.appendStream": [LOST], "chat.stopStream": [BROKEN] * 2}
    with pytest.raises(PlatformUnavailable):
        await adapter.platform.show(question, WAY[5], posted)
    with pytest.raises(PlatformUnavailable):
        await adapter.platform.show(question, WAY[5], posted)
    (message,) = adapter.slack.people.answers(question.message)
    assert message.text.count("Sentence 1") == 1
    await adapter.show(question, FINAL, posted)
    adapter.check_shown(question, FINAL)


@pytest.mark.parametrize("page", range(len(render_messages(LONG))))
@pytest.mark.parametrize("cut", CUTS)
async def test_long_answer_is_posted_once_although_any_page_fails_once(
    adapter: SlackAdapter, page: int, cut: str
) -> None:
    question = await adapter.ask()
    adapter.slack.faults["chat.postMessage"] = [*[Fault()] * page, CUTS[cut]]
    await adapter.show_all(question, LONG)
    adapter.check_shown(question, LONG)
    assert adapter.slack.posts == len(render_messages(LONG))


async def test_post_is_found_although_reading_fails_once(adapter: SlackAdapter) -> None:
    adapter.slack.page = 2
    question = await adapter.ask()
    for n in range(5):
        await adapter.slack.people.say(f"Meanwhile {n}", thread=question.message)
    adapter.slack.faults |= {
        "chat.postMessage": [LOST],
        "conversations.replies": [LIMITED, BROKEN, RESET],
        "auth.test": [LIMITED, RESET],
    }
    await adapter.show_all(question, FINAL)
    adapter.check_shown(question, FINAL)


async def test_after_a_restart_a_live_message_is_found_and_completed(adapter: SlackAdapter) -> None:
    other = await adapter.ask("Another?")
    mine = await adapter.ask(thread=other.message)
    await adapter.show_all(other, FINAL)
    live = await adapter.show_all(mine, *WAY[:6])
    adapter.platform._forget(mine)
    found = await adapter.platform.find(mine)

    assert found == live
    await adapter.show(mine, FINAL, found)
    shown = [answer.blocks for answer in adapter.slack.people.answers(mine.message)]
    assert shown == [list(render_messages(FINAL)[0].blocks)] * 2
    assert (await adapter.platform.find(mine), await adapter.platform.find(other)) == (
        found,
        await adapter.platform.find(other),
    )


async def test_foreign_and_shared_messages_are_not_found_as_answers(adapter: SlackAdapter) -> None:
    question = await adapter.ask()
    forged = Message(
        adapter.slack.state.ts(), "C1", "U2", "Mine", question.message, metadata=build_mark(ANSWER, question.key)
    )
    adapter.slack.state.add(forged)
    assert await adapter.platform.find(question) == PostedMessages()
    live = await adapter.show_all(question, BEGUN)
    assert await adapter.platform.find(question) == live
    assert await adapter.platform.find(replace(question, key=f"{question.key}#shared")) == PostedMessages()


async def test_answer_is_posted_in_the_channel_if_replies_are_refused(adapter: SlackAdapter) -> None:
    question = await adapter.ask()
    adapter.slack.state.channels["C1"].threadless = True
    adapter.slack.faults["chat.postMessage"] = [Fault(), LOST]
    posted = await adapter.show_all(question, *WAY, *WAY, LONG)

    top = [one for one in adapter.slack.state.top("C1") if one.ts in posted.messages]
    assert [one.blocks for one in top] == [list(message.blocks) for message in render_messages(LONG)]
    assert adapter.slack.posts == len(top)
    assert await adapter.platform.find(question) == posted
    other = await adapter.ask(channel="C2")
    await adapter.show_all(other, BEGUN)
    assert adapter.slack.people.answers(other.message)[0].stream
    await adapter.platform.remove(question, posted)
    assert adapter.slack.state.top("C1")[-1].ts == question.message


async def test_restarted_answer_ends_the_stream_and_updates_the_message(adapter: SlackAdapter) -> None:
    question = await adapter.ask()
    posted = await adapter.show_all(question, *WAY)
    posted = await adapter.show(question, BEGUN, posted)
    (message,) = adapter.slack.people.answers(question.message)

    assert message.stream is None
    assert "Sentence" not in message.text
    await adapter.show(question, FINAL, posted)
    adapter.check_shown(question, FINAL)


async def test_shorter_answer_deletes_surplus_messages(adapter: SlackAdapter) -> None:
    question = await adapter.ask()
    posted = await adapter.show_all(question, LONG)
    posted = await adapter.show(question, FINAL, posted)
    adapter.check_shown(question, FINAL)
    await adapter.show(question, LONG, posted)
    adapter.check_shown(question, LONG)


@pytest.mark.parametrize("last", [FINAL, LONG])
async def test_uneditable_answer_is_posted_again_and_the_old_deleted(adapter: SlackAdapter, last: View) -> None:
    question = await adapter.ask()
    adapter.slack.faults["chat.startStream"] = [refused("unknown_method")]
    adapter.slack.faults["chat.update"] = [refused("edit_window_closed")] * len(WAY)
    posted = await adapter.show_all(question, *WAY, last)
    (gone,) = adapter.slack.state.gone

    adapter.check_shown(question, last)
    assert posted.messages == tuple(answer.ts for answer in adapter.slack.people.answers(question.message))
    assert gone[1] != question.message


async def test_rate_limit_between_two_pages_leaves_the_answer_in_doubt(adapter: SlackAdapter) -> None:
    question = await adapter.ask()
    adapter.slack.faults["chat.postMessage"] = [Fault(), Fault(429, retry_after=90)]
    with pytest.raises(PlatformUnavailable) as caught:
        await adapter.platform.show(question, LONG, PostedMessages())
    assert caught.value.seconds is None
    await adapter.clock.advance(90)
    await adapter.show(question, LONG, await adapter.platform.find(question))
    adapter.check_shown(question, LONG)


async def test_deleted_answer_raises_post_gone(adapter: SlackAdapter) -> None:
    for views in (WAY, [FINAL]):
        question = await adapter.ask()
        posted = await adapter.show_all(question, *views)
        await adapter.slack.people.delete(posted.messages[0])
        with pytest.raises(PostGone):
            await adapter.show(question, FINAL, posted)
    question = await adapter.ask()
    adapter.slack.state.channels["C1"].archived = True
    with pytest.raises(CannotPost, match=r"^Slack refused chat.postMessage: is_archived\.$") as caught:
        await adapter.show(question, FINAL)
    assert caught.value.hint == "The channel is archived."


async def test_removal_tolerates_messages_already_deleted(adapter: SlackAdapter) -> None:
    for views in (WAY, [LONG]):
        question = await adapter.ask()
        posted = await adapter.show_all(question, *views)
        await adapter.slack.people.delete(posted.messages[-1])
        await adapter.platform.remove(question, posted)
        await adapter.platform.remove(question, posted)
        assert adapter.slack.people.answers(question.message) == []
    live = await adapter.show_all(question, *WAY[:4])
    await adapter.platform.remove(question, live)
    assert adapter.slack.people.answers(question.message) == []


@pytest.mark.parametrize("handle", [True, False])
async def test_private_answer_is_posted_once_and_completely(adapter: SlackAdapter, *, handle: bool) -> None:
    form = (await adapter.slack.people.command("/ask", "When?")).payload
    question = replace(await adapter.ask(), only_asker=True, handle=form["response_url"] if handle else "")
    posted = await adapter.show_all(question, *WAY[:3], LONG)
    mine = [one for one in adapter.slack.state.ours() if one.only == "U1"]

    assert not adapter.platform.ways(question).edits
    assert not adapter.platform.ways(question).reads_back
    assert [one.blocks for one in mine] == [list(message.blocks) for message in render_messages(LONG)]
    assert len(posted.messages) == len(mine)
    assert adapter.slack.posts == 0
    assert len(adapter.slack.calls("response_url")) == (min(6, len(mine)) if handle else 0)
    await adapter.platform.remove(question, posted)


@pytest.mark.parametrize("handle", [True, False])
@pytest.mark.parametrize("within", [True, False])
async def test_private_answer_is_posted_in_a_thread_only_if_it_has_replies(
    adapter: SlackAdapter, *, handle: bool, within: bool
) -> None:
    form = (await adapter.slack.people.command("/ask", "When?")).payload
    root = await adapter.slack.people.say("Good morning!", user="U2") if within else ""
    question = await adapter.ask(thread=root)
    await adapter.show(replace(question, only_asker=True, handle=form["response_url"] if handle else ""), FINAL)
    (mine,) = adapter.slack.state.ours()

    assert mine.thread == root
    assert not mine.unshown
    assert "only you see this" in adapter.slack.seen("C1", by="U1")


@pytest.mark.parametrize("method", ["response_url", "chat.postEphemeral"])
@pytest.mark.parametrize("cut", CUTS)
async def test_private_answer_that_may_have_arrived_is_not_repeated(
    adapter: SlackAdapter, method: str, cut: str
) -> None:
    form = (await adapter.slack.people.command("/ask", "When?")).payload
    handle = form["response_url"] if method == "response_url" else ""
    question = replace(await adapter.ask(), only_asker=True, handle=handle)
    adapter.slack.faults[method] = [CUTS[cut]]
    if cut == "limited":
        await adapter.show(question, FINAL)
    else:
        with pytest.raises(PlatformUnavailable) as caught:
            await adapter.platform.show(question, FINAL, PostedMessages())
        assert caught.value.seconds is None
        assert "hook" not in str(caught.value)
    expected = 1 if cut in {"limited", "lost", "lost 500"} else 0
    assert len(adapter.slack.state.ours()) == expected


async def test_notice_is_private_and_a_call_for_a_person_is_public(adapter: SlackAdapter) -> None:
    question = await adapter.ask()
    await adapter.platform.tell(question, "I <!here> cannot.")
    posted = await adapter.platform.call(question.place, "Help with “<@U3> <!channel>”?", ["U2"])
    (call,) = adapter.slack.people.answers(question.message)

    assert [one.only for one in adapter.slack.state.ours()] == ["U1", ""]
    assert posted == PostedMessages((call.ts,))
    assert people(call.blocks) == ["U2"]
    assert {"U2"} == {ping.strip("<@>") for ping in adapter.slack.pings}
    assert await adapter.platform.find(question) == PostedMessages()


@pytest.mark.parametrize("thread", [True, False])
@pytest.mark.parametrize("cut", CUTS)
async def test_call_for_a_person_that_may_have_arrived_is_found_and_not_repeated(
    adapter: SlackAdapter, cut: str, *, thread: bool
) -> None:
    question = await adapter.ask()
    place = question.place if thread else Place("slack", "T1", "C1")
    adapter.slack.faults["chat.postMessage"] = [CUTS[cut]]
    if cut in {"limited", "lost", "lost 500"}:
        posted = await adapter.platform.call(place, "Help?", ["U2"])
        assert posted.messages == tuple(one.ts for one in adapter.slack.state.ours())
    else:
        with pytest.raises(PlatformUnavailable):
            await adapter.platform.call(place, "Help?", ["U2"])
    assert adapter.slack.posts == (1 if cut in {"limited", "lost", "lost 500"} else 0)


async def test_earlier_messages_of_a_thread_are_read_over_all_pages(adapter: SlackAdapter) -> None:
    adapter.slack.page = 3
    root = await adapter.slack.people.say("Root &amp; <@U2|ben>")
    for n in range(7):
        await adapter.slack.people.say(f"<https://e.org/{n}|page> {n}", thread=root, user="U2")
    first = await adapter.ask(thread=root)
    await adapter.show_all(first, FINAL)
    question = await adapter.ask("And?", thread=root)
    await adapter.slack.people.say("Later", thread=root)
    whole = await adapter.platform.heard(question, 50)

    assert [(one.user, one.text.split("\n")[0]) for one in whole[:3]] == [
        ("U1", "Root & @ben"),
        ("U2", "page (https://e.org/0) 0"),
        ("U2", "page (https://e.org/1) 1"),
    ]
    assert len(whole) == 10
    assert whole[-1].user == ""
    assert SENTENCES[0].text in whole[-1].text.replace("\u2060", "")
    assert await adapter.platform.heard(question, 2) == whole[-2:]
    assert await adapter.platform.heard(question, 0) == ()


async def test_command_and_root_message_have_no_earlier_messages(adapter: SlackAdapter) -> None:
    question = await adapter.ask()
    await adapter.slack.people.say("Lunch?", user="U2")
    command = replace(question, place=replace(question.place, thread=""), message="")

    assert [await adapter.platform.heard(asked, 50) for asked in (command, question)] == [(), ()]
    assert adapter.slack.calls("conversations.replies") == []


async def test_hostile_text_in_any_view_neither_pings_nor_links(adapter: SlackAdapter) -> None:
    naughty = "<!channel> <@U2> @here https://evil.com www.evil.com [a](http://evil.com) &lt;!here&gt; \\u003c!here>"
    said = (replace(SENTENCES[0], text=naughty, note=naughty),)
    way = [replace(view, sentences=said, quote_label=naughty, status=naughty) for view in WAY]
    claims = tuple(replace(card, text=naughty, sources=(naughty,)) for card in WAY[-1].claims)
    question = await adapter.ask()
    await adapter.show_all(
        question, *way, replace(way[-1], claims=claims), View(7, text=naughty, notice=naughty, done=True)
    )
    adapter.slack.faults["chat.startStream"] = [refused("unknown_method")]
    await adapter.show_all(await adapter.ask(), *way, replace(FINAL, text=naughty))

    assert adapter.slack.pings == []
    assert set(adapter.slack.links) <= {source.url for source in FINAL.sources}
    for method in METHODS:
        for call in adapter.slack.calls(method):
            assert not {"link_names", "parse"} & set(call.body)
    for call in adapter.slack.calls("chat.postMessage"):
        assert (call.body["unfurl_links"], call.body["unfurl_media"]) == (False, False)


async def test_plain_text_replaces_refused_content(adapter: SlackAdapter) -> None:
    question, (plain, _) = await adapter.ask(), simplify_view(LONG)
    await adapter.show_all(question, BEGUN, plain)

    found = adapter.slack.people.answers(question.message)
    assert UNSEEN.sub("", " ".join(one.text for one in found)).split() == plain.text.split()
    assert not any(one.blocks or one.stream for one in found)
    assert adapter.slack.refused == []
