"""The Slack platform before a strict server: what its reader ends with, whatever happens on the way."""

from dataclasses import replace

import pytest

from bot.desk.platform_port import CannotPost, PlatformUnavailable, PostGone
from bot.platforms.slack.messages import ANSWER, build_mark, render_messages
from bot.types import Place, PostedMessages
from bot.views.turn_view import View
from bot.views.view_reducer import simplify_view
from tests.bot.slack.payloads import elements, people
from tests.bot.slack.shop import Shop
from tests.bot.views.moments import BEGUN, FINAL, LONG, SENTENCES, WAY
from tests.platforms.fake_server import BROKEN, LIMITED, LOST, LOST_500, RESET, Fault, refused
from tests.platforms.markup import UNSEEN
from tests.platforms.slack.state import Message

APPENDS = len(WAY) - 1
assert len(render_messages(LONG)) > 1
METHODS = ("chat.startStream", "chat.appendStream", "chat.stopStream", "chat.update", "chat.postMessage")
CUTS = {"limited": LIMITED, "broken": BROKEN, "reset": RESET, "lost": LOST, "lost 500": LOST_500}


async def test_an_answer_streams_and_ends_whole(shop: Shop) -> None:
    """Status and claims as cards, sentences as they come, one message throughout; at its end it takes its last form."""
    asked = await shop.asked()
    posted = await shop.told(asked, *WAY)
    (message,) = shop.slack.people.answers(asked.message)
    tasks = message.stream.tasks

    assert message.stream.state == "streaming"
    assert [(tasks[name]["title"], tasks[name]["status"]) for name in ("status", "claim-1", "claim-2")] == [
        ("Writing …", "in_progress"),
        ("Confirmed", "complete"),
        ("A statement could not be confirmed and is left out", "pending"),
    ]
    assert tasks["claim-1"]["details"].replace("\u2060", "") == "It is open. · Page 1"
    assert [message.text.count(f"Sentence {n}") for n in range(1, 5)] == [1, 1, 1, 1]
    assert await shop.shown(asked, FINAL, posted) == posted
    shop.whole(asked, FINAL)
    assert [len(shop.slack.calls(method)) for method in METHODS] == [1, APPENDS, 1, 1, 0]
    assert shop.slack.refused == []


@pytest.mark.parametrize("place", range(1, APPENDS + 1))
async def test_a_stream_that_expires_at_any_append(shop: Shop, place: int) -> None:
    """It is given up; the same message is updated from then on."""
    asked = await shop.asked()
    posted = await shop.told(asked, *WAY[:place])
    await shop.clock.advance(301)
    for view in (*WAY[place:], FINAL):
        assert await shop.shown(asked, view, posted) == posted
    shop.whole(asked, FINAL)


async def test_a_stream_that_expires_before_it_is_stopped(shop: Shop) -> None:
    """The update sets it right."""
    asked = await shop.asked()
    posted = await shop.told(asked, *WAY)
    await shop.clock.advance(301)
    await shop.shown(asked, FINAL, posted)
    shop.whole(asked, FINAL)


@pytest.mark.parametrize("place", range(1, APPENDS + 1))
async def test_a_stream_that_its_reader_stops(shop: Shop, place: int) -> None:
    """They read the whole answer all the same."""
    asked = await shop.asked()
    posted = await shop.told(asked, *WAY[:place])
    await shop.slack.people.stop("C1", asked.message)
    for view in (*WAY[place:], FINAL):
        posted = await shop.shown(asked, view, posted)
    shop.whole(asked, FINAL)


@pytest.mark.parametrize("error", ["unknown_method", "missing_scope", "team_not_found", "channel_type_not_supported"])
async def test_a_stream_that_is_refused(shop: Shop, error: str) -> None:
    """One message is posted and updated instead."""
    asked = await shop.asked()
    shop.slack.faults["chat.startStream"] = [refused(error)]
    posted = await shop.told(asked, *WAY)
    (message,) = shop.slack.people.answers(asked.message)

    assert message.stream is None
    assert elements(message.blocks, "button")[0]["action_id"] == "footnote:stop"
    assert "Writing" in message.text
    await shop.shown(asked, FINAL, posted)
    shop.whole(asked, FINAL)
    assert [len(shop.slack.calls(method)) for method in METHODS] == [1, 0, 0, APPENDS + 1, 1]


async def test_streams_are_not_tried_again_at_once_after_three_refusals(shop: Shop) -> None:
    """But after a while."""
    shop.slack.faults["chat.startStream"] = [refused("unknown_method")] * 3
    for _ in range(5):
        await shop.told(await shop.asked(), BEGUN, FINAL)
    assert len(shop.slack.calls("chat.startStream")) == 3
    await shop.clock.advance(601)
    await shop.told(await shop.asked(), BEGUN, FINAL)
    assert len(shop.slack.calls("chat.startStream")) == 4


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("cut", [*CUTS, "page"])
@pytest.mark.parametrize("method", METHODS)
async def test_every_method_fails_once(shop: Shop, method: str, cut: str, *, streams: bool) -> None:
    """In every way: the reader ends with the whole answer, once, and nothing was posted twice."""
    asked = await shop.asked()
    shop.slack.faults[method] = [CUTS.get(cut, Fault(200))]
    if not streams:
        shop.slack.faults["chat.startStream"] = [refused("unknown_method"), *shop.slack.faults["chat.startStream"]]
    await shop.told(asked, *WAY, LONG)
    shop.whole(asked, LONG)
    assert shop.slack.posts == len(render_messages(LONG))


@pytest.mark.parametrize("place", range(APPENDS))
@pytest.mark.parametrize("cut", CUTS)
async def test_every_append_fails_once(shop: Shop, place: int, cut: str) -> None:
    """In every way; what may have arrived is not appended again."""
    asked = await shop.asked()
    shop.slack.faults["chat.appendStream"] = [*[Fault()] * place, CUTS[cut]]
    posted = await shop.told(asked, *WAY)
    (message,) = shop.slack.people.answers(asked.message)
    assert all(message.text.count(f"Sentence {n} ") <= 1 for n in range(1, 5))
    await shop.shown(asked, FINAL, posted)
    shop.whole(asked, FINAL)


async def test_what_was_given_up_is_not_appended_to_again(shop: Shop) -> None:
    """Even if it could not be stopped at once."""
    asked = await shop.asked()
    posted = await shop.told(asked, *WAY[:5])
    shop.slack.faults |= {"chat.appendStream": [LOST], "chat.stopStream": [BROKEN] * 2}
    with pytest.raises(PlatformUnavailable):
        await shop.platform.show(asked, WAY[5], posted)
    with pytest.raises(PlatformUnavailable):
        await shop.platform.show(asked, WAY[5], posted)
    (message,) = shop.slack.people.answers(asked.message)
    assert message.text.count("Sentence 1") == 1
    await shop.shown(asked, FINAL, posted)
    shop.whole(asked, FINAL)


@pytest.mark.parametrize("page", range(len(render_messages(LONG))))
@pytest.mark.parametrize("cut", CUTS)
async def test_every_page_fails_once(shop: Shop, page: int, cut: str) -> None:
    """A long answer stands there once, all pages in order, whichever of them is cut off."""
    asked = await shop.asked()
    shop.slack.faults["chat.postMessage"] = [*[Fault()] * page, CUTS[cut]]
    await shop.told(asked, LONG)
    shop.whole(asked, LONG)
    assert shop.slack.posts == len(render_messages(LONG))


async def test_reading_back_fails_once_as_well(shop: Shop) -> None:
    """A post whose answer is lost is looked for until it is known, page by page."""
    shop.slack.page = 2
    asked = await shop.asked()
    for n in range(5):
        await shop.slack.people.say(f"Meanwhile {n}", thread=asked.message)
    shop.slack.faults |= {
        "chat.postMessage": [LOST],
        "conversations.replies": [LIMITED, BROKEN, RESET],
        "auth.test": [LIMITED, RESET],
    }
    await shop.told(asked, FINAL)
    shop.whole(asked, FINAL)


async def test_after_a_restart_a_live_message_is_found_and_completed(shop: Shop) -> None:
    """It has no mark yet, and streams still; another question's answer is left alone."""
    other = await shop.asked("Another?")
    mine = await shop.asked(thread=other.message)
    await shop.told(other, FINAL)
    live = await shop.told(mine, *WAY[:6])
    shop.platform._forget(mine)
    found = await shop.platform.find(mine)

    assert found == live
    await shop.shown(mine, FINAL, found)
    shown = [one.blocks for one in shop.slack.people.answers(mine.message)]
    assert shown == [list(render_messages(FINAL)[0].blocks)] * 2
    assert (await shop.platform.find(mine), await shop.platform.find(other)) == (found, await shop.platform.find(other))


async def test_what_is_not_our_answer_is_not_taken_for_it(shop: Shop) -> None:
    """Neither what others mark as ours, nor what streams in a thread where an answer is shared."""
    asked = await shop.asked()
    forged = Message(shop.slack.state.ts(), "C1", "U2", "Mine", asked.message, metadata=build_mark(ANSWER, asked.key))
    shop.slack.state.add(forged)
    assert await shop.platform.find(asked) == PostedMessages()
    live = await shop.told(asked, BEGUN)
    assert await shop.platform.find(asked) == live
    assert await shop.platform.find(replace(asked, key=f"{asked.key}#shared")) == PostedMessages()


async def test_where_nobody_may_reply_the_answer_stands_in_the_channel(shop: Shop) -> None:
    """Whole, once, and found again; and live messages go on elsewhere."""
    asked = await shop.asked()
    shop.slack.state.channels["C1"].threadless = True
    shop.slack.faults["chat.postMessage"] = [Fault(), LOST]
    posted = await shop.told(asked, *WAY, *WAY, LONG)

    top = [one for one in shop.slack.state.top("C1") if one.ts in posted.messages]
    assert [one.blocks for one in top] == [list(message.blocks) for message in render_messages(LONG)]
    assert shop.slack.posts == len(top)
    assert await shop.platform.find(asked) == posted
    other = await shop.asked(channel="C2")
    await shop.told(other, BEGUN)
    assert shop.slack.people.answers(other.message)[0].stream
    await shop.platform.remove(asked, posted)
    assert shop.slack.state.top("C1")[-1].ts == asked.message


async def test_an_answer_that_begins_anew_is_updated(shop: Shop) -> None:
    """The question was rewritten: what was streamed cannot be taken back, so the stream ends."""
    asked = await shop.asked()
    posted = await shop.told(asked, *WAY)
    posted = await shop.shown(asked, BEGUN, posted)
    (message,) = shop.slack.people.answers(asked.message)

    assert message.stream is None
    assert "Sentence" not in message.text
    await shop.shown(asked, FINAL, posted)
    shop.whole(asked, FINAL)


async def test_a_shorter_answer_removes_what_is_too_much(shop: Shop) -> None:
    """And a longer one adds."""
    asked = await shop.asked()
    posted = await shop.told(asked, LONG)
    posted = await shop.shown(asked, FINAL, posted)
    shop.whole(asked, FINAL)
    await shop.shown(asked, LONG, posted)
    shop.whole(asked, LONG)


@pytest.mark.parametrize("last", [FINAL, LONG])
async def test_where_nobody_may_change_messages_the_answer_is_said_anew(shop: Shop, last: View) -> None:
    """What cannot be changed is deleted once the whole answer stands there, and we know that it was we."""
    asked = await shop.asked()
    shop.slack.faults["chat.startStream"] = [refused("unknown_method")]
    shop.slack.faults["chat.update"] = [refused("edit_window_closed")] * len(WAY)
    posted = await shop.told(asked, *WAY, last)
    (gone,) = shop.slack.state.gone

    shop.whole(asked, last)
    assert posted.messages == tuple(one.ts for one in shop.slack.people.answers(asked.message))
    assert gone[1] != asked.message


async def test_a_long_wait_within_an_answer_leaves_it_in_doubt(shop: Shop) -> None:
    """A page stands there already: whoever comes again has to ask for it first."""
    asked = await shop.asked()
    shop.slack.faults["chat.postMessage"] = [Fault(), Fault(429, retry_after=90)]
    with pytest.raises(PlatformUnavailable) as caught:
        await shop.platform.show(asked, LONG, PostedMessages())
    assert caught.value.seconds is None
    await shop.clock.advance(90)
    await shop.shown(asked, LONG, await shop.platform.find(asked))
    shop.whole(asked, LONG)


async def test_what_somebody_deleted_is_gone(shop: Shop) -> None:
    """Live or not, the desk hears so; and what cannot be posted says why without secrets."""
    for views in (WAY, [FINAL]):
        asked = await shop.asked()
        posted = await shop.told(asked, *views)
        await shop.slack.people.delete(posted.messages[0])
        with pytest.raises(PostGone):
            await shop.shown(asked, FINAL, posted)
    asked = await shop.asked()
    shop.slack.state.channels["C1"].archived = True
    with pytest.raises(CannotPost, match=r"^Slack refused chat.postMessage: is_archived\.$") as caught:
        await shop.shown(asked, FINAL)
    assert caught.value.hint == "The channel is archived."


async def test_removing_is_done_once_it_is_gone(shop: Shop) -> None:
    """A live message too, and what is gone already."""
    for views in (WAY, [LONG]):
        asked = await shop.asked()
        posted = await shop.told(asked, *views)
        await shop.slack.people.delete(posted.messages[-1])
        await shop.platform.remove(asked, posted)
        await shop.platform.remove(asked, posted)
        assert shop.slack.people.answers(asked.message) == []
    live = await shop.told(asked, *WAY[:4])
    await shop.platform.remove(asked, live)
    assert shop.slack.people.answers(asked.message) == []


@pytest.mark.parametrize("handle", [True, False])
async def test_what_only_the_asker_sees_is_posted_once_and_whole(shop: Shop, *, handle: bool) -> None:
    """By the address that came with the command as long as it can be used, then as an ephemeral message."""
    form = (await shop.slack.people.command("/ask", "When?")).payload
    asked = replace(await shop.asked(), only_asker=True, handle=form["response_url"] if handle else "")
    posted = await shop.told(asked, *WAY[:3], LONG)
    mine = [one for one in shop.slack.state.ours() if one.only == "U1"]

    assert not shop.platform.ways(asked).edits
    assert not shop.platform.ways(asked).reads_back
    assert [one.blocks for one in mine] == [list(message.blocks) for message in render_messages(LONG)]
    assert len(posted.messages) == len(mine)
    assert shop.slack.posts == 0
    assert len(shop.slack.calls("response_url")) == (min(6, len(mine)) if handle else 0)
    await shop.platform.remove(asked, posted)


@pytest.mark.parametrize("handle", [True, False])
@pytest.mark.parametrize("within", [True, False])
async def test_what_only_the_asker_sees_is_shown_in_a_thread_only_where_there_is_one(
    shop: Shop, *, handle: bool, within: bool
) -> None:
    """Slack shows nothing of the sort in a thread that nobody has begun."""
    form = (await shop.slack.people.command("/ask", "When?")).payload
    root = await shop.slack.people.say("Good morning!", user="U2") if within else ""
    asked = await shop.asked(thread=root)
    await shop.shown(replace(asked, only_asker=True, handle=form["response_url"] if handle else ""), FINAL)
    (mine,) = shop.slack.state.ours()

    assert mine.thread == root
    assert not mine.unshown
    assert "only you see this" in shop.slack.seen("C1", by="U1")


@pytest.mark.parametrize("method", ["response_url", "chat.postEphemeral"])
@pytest.mark.parametrize("cut", CUTS)
async def test_what_only_the_asker_sees_is_never_repeated_in_doubt(shop: Shop, method: str, cut: str) -> None:
    """After a 429, nothing was done: it comes again. In doubt it raises without a time, and the desk lets it be."""
    form = (await shop.slack.people.command("/ask", "When?")).payload
    handle = form["response_url"] if method == "response_url" else ""
    asked = replace(await shop.asked(), only_asker=True, handle=handle)
    shop.slack.faults[method] = [CUTS[cut]]
    if cut == "limited":
        await shop.shown(asked, FINAL)
    else:
        with pytest.raises(PlatformUnavailable) as caught:
            await shop.platform.show(asked, FINAL, PostedMessages())
        assert caught.value.seconds is None
        assert "hook" not in str(caught.value)
    expected = 1 if cut in {"limited", "lost", "lost 500"} else 0
    assert len(shop.slack.state.ours()) == expected


async def test_telling_and_calling(shop: Shop) -> None:
    """A sentence to the asker alone; a call mentions those people and nobody else, whatever the sentence says."""
    asked = await shop.asked()
    await shop.platform.tell(asked, "I <!here> cannot.")
    posted = await shop.platform.call(asked.place, "Help with “<@U3> <!channel>”?", ["U2"])
    (call,) = shop.slack.people.answers(asked.message)

    assert [one.only for one in shop.slack.state.ours()] == ["U1", ""]
    assert posted == PostedMessages((call.ts,))
    assert people(call.blocks) == ["U2"]
    assert {"U2"} == {ping.strip("<@>") for ping in shop.slack.pings}
    assert await shop.platform.find(asked) == PostedMessages()


@pytest.mark.parametrize("thread", [True, False])
@pytest.mark.parametrize("cut", CUTS)
async def test_a_call_whose_answer_is_lost_is_found_and_not_repeated(shop: Shop, cut: str, *, thread: bool) -> None:
    """In a thread and in a channel; one that never arrived says so."""
    asked = await shop.asked()
    place = asked.place if thread else Place("slack", "T1", "C1")
    shop.slack.faults["chat.postMessage"] = [CUTS[cut]]
    if cut in {"limited", "lost", "lost 500"}:
        posted = await shop.platform.call(place, "Help?", ["U2"])
        assert posted.messages == tuple(one.ts for one in shop.slack.state.ours())
    else:
        with pytest.raises(PlatformUnavailable):
            await shop.platform.call(place, "Help?", ["U2"])
    assert shop.slack.posts == (1 if cut in {"limited", "lost", "lost 500"} else 0)


async def test_a_conversation_is_read_whole(shop: Shop) -> None:
    """All pages of the thread, its last messages, ours among them, as plain text, before the question."""
    shop.slack.page = 3
    root = await shop.slack.people.say("Root &amp; <@U2|ben>")
    for n in range(7):
        await shop.slack.people.say(f"<https://e.org/{n}|page> {n}", thread=root, user="U2")
    first = await shop.asked(thread=root)
    await shop.told(first, FINAL)
    asked = await shop.asked("And?", thread=root)
    await shop.slack.people.say("Later", thread=root)
    whole = await shop.platform.heard(asked, 50)

    assert [(one.user, one.text.split("\n")[0]) for one in whole[:3]] == [
        ("U1", "Root & @ben"),
        ("U2", "page (https://e.org/0) 0"),
        ("U2", "page (https://e.org/1) 1"),
    ]
    assert len(whole) == 10
    assert whole[-1].user == ""
    assert SENTENCES[0].text in whole[-1].text.replace("\u2060", "")
    assert await shop.platform.heard(asked, 2) == whole[-2:]
    assert await shop.platform.heard(asked, 0) == ()


async def test_a_command_hears_nothing_of_its_channel(shop: Shop) -> None:
    """It stands in no thread: what people say there is none of its conversation."""
    asked = await shop.asked()
    await shop.slack.people.say("Lunch?", user="U2")

    assert await shop.platform.heard(replace(asked, place=replace(asked.place, thread=""), message=""), 50) == ()


async def test_of_a_message_that_begins_a_thread_the_thread_is_not_read(shop: Shop) -> None:
    """Nothing stands there before it; and only so many threads may be read in a minute."""
    assert await shop.platform.heard(await shop.asked(), 50) == ()
    assert shop.slack.calls("conversations.replies") == []


async def test_a_post_is_marked_and_pings_nobody(shop: Shop) -> None:
    """Nothing is unfurled, nothing parsed; a naughty view in every way it is shown pings and links nowhere."""
    naughty = "<!channel> <@U2> @here https://evil.com www.evil.com [a](http://evil.com) &lt;!here&gt; \\u003c!here>"
    said = (replace(SENTENCES[0], text=naughty, note=naughty),)
    way = [replace(view, sentences=said, quote_label=naughty, status=naughty) for view in WAY]
    claims = tuple(replace(card, text=naughty, sources=(naughty,)) for card in WAY[-1].claims)
    asked = await shop.asked()
    await shop.told(asked, *way, replace(way[-1], claims=claims), View(7, text=naughty, notice=naughty, done=True))
    shop.slack.faults["chat.startStream"] = [refused("unknown_method")]
    await shop.told(await shop.asked(), *way, replace(FINAL, text=naughty))

    assert shop.slack.pings == []
    assert set(shop.slack.links) <= {source.url for source in FINAL.sources}
    for method in METHODS:
        for call in shop.slack.calls(method):
            assert not {"link_names", "parse"} & set(call.body)
    for call in shop.slack.calls("chat.postMessage"):
        assert (call.body["unfurl_links"], call.body["unfurl_media"]) == (False, False)


async def test_plain_text_takes_the_place_of_what_is_refused(shop: Shop) -> None:
    """Within all limits, whole, and first in the message that promised it."""
    asked, (plain, _) = await shop.asked(), simplify_view(LONG)
    await shop.told(asked, BEGUN, plain)

    found = shop.slack.people.answers(asked.message)
    assert UNSEEN.sub("", " ".join(one.text for one in found)).split() == plain.text.split()
    assert not any(one.blocks or one.stream for one in found)
    assert shop.slack.refused == []
