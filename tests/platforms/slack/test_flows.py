"""What people do in Slack and what they see then, through the real bolt and SDK."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.views.catalog import translate
from storage.types import EntryKind
from tests.platforms.slack.faults import BROKEN, Fault, refused
from tests.platforms.slack.talking import Talk, talking
from tests.platforms.world import ANSWERS, BUILT, MADE, RISES, fill
from tests.thorough import THOROUGH

ANSWERED = """\
Ana: @footnote When was Skarholm lighthouse built?
  Footnote: Skarholm lighthouse was built in 1887. [1]
    ---
    [1] Skarholm lighthouse <https://skarholm.example/light.md>
    [Evidence] [Take back]
    [👍] [👎]"""
NONSENSE = "Do penguins love jazz?"
EXAMPLE = translate("button_example", "en")
ADMIN = {"slack": {"bot_token": "x", "app_token": "x", "admins": ["slack:T1/U9"]}}


TRANSPORTS = ["socket", "http"]
OVER_BOTH = pytest.mark.parametrize("talk", TRANSPORTS, indirect=True)
"""Where Slack is answered by what a listener acknowledges, or the transport itself ends; else one does for both."""


@pytest.fixture(params=TRANSPORTS if THOROUGH else ["socket"])
async def talk(request: pytest.FixtureRequest, filled: Path, tmp_path: Path) -> AsyncIterator[Talk]:
    async with talking(tmp_path / "home", filled, request.param, times=8) as opened:
        yield opened


@OVER_BOTH
async def test_a_mention_is_answered_once_in_its_thread(talk: Talk) -> None:
    """It arrives as two events, and five times over; bots and previews of links are left alone."""
    await talk.start()
    asked = await talk.acts.mention(BUILT)
    for _ in range(4):
        await talk.acts.again(asked)
    await talk.until(ANSWERS[BUILT])
    await talk.acts.again(asked)
    await talk.acts.unfurl(asked)
    await talk.settled()

    assert talk.sees() == f"#general\n{ANSWERED}"
    assert talk.sees(by="U2") == talk.sees()
    assert len(talk.system.asked) == 1
    assert talk.slack.pings == talk.slack.refused == talk.slack.limited == []


async def test_who_mentions_the_bot_and_says_nothing_is_greeted(talk: Talk) -> None:
    """Silence is what people complain about most."""
    await talk.start()
    await talk.acts.mention("")

    assert translate("greeting", "en") in await talk.until("Ask me something")


async def test_a_follow_up_in_a_thread_of_the_bots_needs_no_mention(talk: Talk) -> None:
    """What is to somebody else does, as does everything in threads that it has no part in; others may find silence."""
    await talk.start()
    asked = await talk.acts.mention(BUILT)
    await talk.until(ANSWERS[BUILT])
    await talk.acts.say(MADE, thread=asked, user="U2")
    await talk.until(ANSWERS[MADE])
    await talk.acts.say(f"<@U2> {RISES}", thread=asked)
    await talk.acts.say(f"<!here> {RISES}", thread=asked)
    aside = await talk.acts.say(NONSENSE, thread=asked, user="U2")
    await talk.system.until_asked(3)
    foreign = await talk.acts.say("Lunch?")
    await talk.acts.say(RISES, thread=foreign, user="U2")
    await talk.acts.say(RISES)
    await talk.settled()

    assert talk.system.asked == [BUILT, MADE, NONSENSE]
    assert talk.acts.answers(aside) == []
    await talk.acts.mention(RISES, thread=foreign)
    assert "Ben: How high does the tide rise" in await talk.until(ANSWERS[RISES])


async def test_the_agents_chat_suggests_what_to_ask_and_answers_in_threads(talk: Talk) -> None:
    """Everything that is written there is to the bot; a thread of it is a conversation."""
    await talk.start()
    await talk.acts.open_home()
    await talk.slack.until(lambda: talk.slack.world.prompts)
    ((_, thread), prompts) = next(iter(talk.slack.world.prompts.items()))
    asked = await talk.acts.dm(prompts[0]["message"])
    await talk.until("Ask me something", channel="DU1")
    await talk.acts.dm(MADE, thread=asked)

    seen = await talk.until(ANSWERS[MADE], channel="DU1")
    assert thread == ""
    assert seen.startswith(f"(direct message)\nAna: {translate('intro_question', 'en')}\n  Footnote: I am Footnote.")
    assert f"  Ana: {MADE}\n  Footnote: {ANSWERS[MADE]} [1]" in seen


async def test_prompts_and_the_home_show_what_one_may_read_and_could_ask(talk: Talk) -> None:
    """Of what is read in the DM of whoever looks; another person's corpora are not named."""
    await fill(
        talk.home,
        {"tide.md": {"title": "Tides", "<!here> Spring tides": f"{ANSWERS[RISES]} It falls again within the night."}},
    )
    await talk.start(corpus=[{"name": "handbook", "visible_to": ["slack:T1/U1"]}])
    await talk.acts.open_home()
    await talk.slack.until(lambda: talk.slack.world.prompts)
    await talk.acts.open_home(tab="home")
    await talk.acts.open_home(tab="home", user="U2")
    await talk.slack.until(lambda: len(talk.slack.world.homes) == 2)
    (prompts,) = talk.slack.world.prompts.values()
    shown, other = (json.dumps(talk.slack.world.homes[user].body, ensure_ascii=False) for user in ("U1", "U2"))

    assert "Spring tides" in prompts[1]["title"]
    assert "handbook (documents: 1" in shown
    assert "Spring tides" in shown
    assert "handbook" not in other
    assert "Spring tides" not in other
    assert talk.slack.pings == talk.slack.refused == []


async def test_ask_is_answered_to_its_asker_until_they_share_it(talk: Talk) -> None:
    """Once; whoever presses again is told so, and nobody else sees that."""
    await talk.start()
    await talk.acts.command("/ask", BUILT)
    await talk.until(ANSWERS[BUILT])
    assert talk.sees(by="U2") == "#general"
    (shown,) = [one for one in talk.slack.world.ours() if one.only == "U1" and one.blocks]
    await talk.acts.press("footnote:share", shown.ts)
    await talk.until(translate("share_done", "en"))
    await talk.acts.press("footnote:share", shown.ts)
    await talk.until(translate("share_already", "en"))

    assert talk.sees(by="U2").count(ANSWERS[BUILT]) == 1
    assert f"ana asked “{BUILT}” and shared the answer." in talk.sees(by="U2")
    assert translate("share_already", "en") not in talk.sees(by="U2")


async def test_in_a_private_channel_without_us_whoever_asks_is_told_to_invite_us(talk: Talk) -> None:
    """Who reads there cannot be told, unless settings name it; once we are there, they are answered."""
    await talk.start()
    await talk.acts.command("/ask", BUILT, channel="G2")
    await talk.until(translate("slack_invite", "en"), channel="G2")
    talk.slack.world.channels["G2"].members.add("U0BOT")
    await talk.acts.command("/ask", BUILT, channel="G2")

    await talk.until(ANSWERS[BUILT], channel="G2")


async def test_who_uses_a_command_and_has_to_wait_is_told_so_at_once(talk: Talk) -> None:
    """With the acknowledgement, and only once; who is answered at once is not."""
    talk.system.shut.add(MADE)
    await talk.start(desk={"at_once": 1})
    await talk.acts.mention(MADE, user="U2", channel="C2")
    await talk.system.until_asked()
    used = await talk.acts.command("/ask", BUILT)
    told = (await used.answer)["text"]
    await talk.system.open()
    await talk.until(ANSWERS[BUILT])

    assert BUILT in told
    assert translate("before", "en", before=1) in told
    assert talk.sees().count(translate("before", "en", before=1)) == 1
    assert talk.slack.refused == []


async def test_in_a_dm_there_is_nobody_to_share_with(talk: Talk) -> None:
    """So that is not offered there."""
    await talk.start()
    await talk.acts.dm(MADE)
    await talk.until(ANSWERS[MADE], channel="DU1")
    await talk.acts.command("/ask", BUILT, channel="DU1")

    whole = await talk.until(ANSWERS[BUILT], channel="DU1")
    assert translate("button_evidence", "en") in whole
    assert translate("button_share", "en") not in whole


@OVER_BOTH
async def test_a_command_without_words_says_how_it_is_used(talk: Talk) -> None:
    """In the language of whoever types it."""
    await talk.start()
    talk.slack.world.users["U2"].locale = "de-DE"
    await talk.acts.command("/ask", " ")
    await talk.acts.command("/check", user="U2")

    assert "such as: /ask" in await talk.until("/ask")
    assert "etwa: /check" in await talk.until("/check", by="U2")
    assert talk.system.asked == []


async def test_the_shortcut_checks_each_statement_of_a_message_for_whoever_chose_it(talk: Talk) -> None:
    """Each has its verdict and its source; what states nothing is passed over."""
    await talk.start()
    text = "Good morning! The pier of Skarholm is made of oak. Skarholm lighthouse was built in 1999. Is that so?"
    written = await talk.acts.say(text, user="U2")
    await talk.acts.shortcut("footnote_check", written)

    seen = await talk.until("oak.”", "1999.”")
    lines = [line.strip() for line in seen.split("\n")]
    oak, built = (next(line for line in lines if f"{word}.”" in line) for word in ("oak", "1999"))
    assert lines[lines.index(oak) - 1].endswith("Confirmed")
    assert lines[lines.index(built) - 1].endswith(("Contradicted", "Not enough information"))
    assert "[1] Pier <https://skarholm.example/pier.md>" in seen
    assert "Good morning!”" not in seen
    assert "Confirmed" not in talk.sees(by="U2")


async def test_who_has_more_checked_than_is_checked_at_once_is_told_how_much_was_not(talk: Talk) -> None:
    """Else they would take the rest for checked."""
    await talk.start(limits={"claims": 1})
    written = await talk.acts.say(" ".join(ANSWERS.values()), user="U2")
    await talk.acts.shortcut("footnote_check", written)

    assert translate("unchecked", "en", count=2, checked=1) in await talk.until(ANSWERS[BUILT], "Not checked")


async def test_check_takes_one_statement(talk: Talk) -> None:
    """And says so of what is none."""
    await talk.start()
    await talk.acts.command("/check", "The pier of Skarholm is made of oak.")
    await talk.until("“The pier of Skarholm is made of oak.”", "Confirmed")
    await talk.acts.command("/check", BUILT)

    assert "Footnote (only you see this): That is a question, not a claim." in await talk.until("not a claim")


async def test_where_every_question_is_answered_the_bot_is_silent_when_it_has_no_answer(talk: Talk) -> None:
    """It leaves edits and bots alone."""
    await talk.start(channel=[{"id": "slack:T1/C1", "answer": "every"}])
    asked = await talk.acts.say(BUILT)
    await talk.until(ANSWERS[BUILT])
    nothing = await talk.acts.say(NONSENSE)
    await talk.system.until_asked(2)
    await talk.acts.edit(nothing, MADE)
    await talk.acts.say(RISES, user="U2", bot_id="B7")
    await talk.acts.say(MADE, channel="C2")
    await talk.acts.say(f"<@U2> {RISES}")
    below = await talk.acts.say(NONSENSE, thread=asked)
    await talk.system.until_asked(3)
    await talk.settled()

    assert talk.system.asked == [BUILT, NONSENSE, NONSENSE]
    assert talk.acts.answers(asked)
    assert [talk.acts.answers(one) for one in (nothing, below)] == [[], []]


async def test_a_channel_may_have_its_answers_shown_to_askers_alone(talk: Talk) -> None:
    """As its settings say."""
    await talk.start(channel=[{"id": "slack:T1/C1", "ephemeral": True}])
    await talk.acts.mention(BUILT)

    assert "Footnote (only you see this): Skarholm lighthouse" in await talk.until(ANSWERS[BUILT])
    assert ANSWERS[BUILT] not in talk.sees(by="U2")


@OVER_BOTH
async def test_an_admin_sees_and_narrows_what_holds_in_a_channel_and_it_is_logged(talk: Talk) -> None:
    """Nobody else does, and nobody else sees it."""
    await talk.start(**ADMIN, channel=[{"id": "slack:T1/C1", "answer": "every"}])
    await talk.acts.command("/footnote", user="U9")
    seen = await talk.until(translate("channel_now", "en"), by="U9")
    held = "corpora: handbook, system: extractive, effort: normal, answer: every, ephemeral: off, ask: –, paused: off"
    assert ", ".join(re.findall(r"^  ([a-z]+: \S+) \(.+\)$", seen, re.MULTILINE)) == held
    await talk.acts.command("/footnote", "set answer mention", user="U9")
    await talk.until("answer is now: mention", by="U9")
    await talk.acts.command("/footnote", "answer reset", user="U1")
    await talk.until(translate("channel_admins", "en"))
    await talk.acts.command("/footnote", "nights on", user="U9")
    await talk.until("There is no setting “nights”", by="U9")
    await talk.acts.command("/footnote", "digest", user="U9")
    await talk.until("days was left unanswered", by="U9")
    await talk.acts.say(BUILT)
    await talk.settled()

    assert talk.system.asked == []
    assert talk.sees(by="U2").count("Footnote") == 0
    assert talk.app
    (logged,) = await talk.app.audit.turn("slack:T1/C1")
    entry = logged.body
    assert entry == {"key": "answer", "was": "every", "now": "mention", "by": "slack:T1/U9"}


async def test_the_evidence_is_a_modal_for_whoever_asks_for_it(talk: Talk) -> None:
    """With the passages' own words."""
    await talk.start()
    asked = await talk.acts.mention(BUILT)
    await talk.until(ANSWERS[BUILT])
    (answer,) = talk.acts.answers(asked)
    await talk.acts.press("footnote:evidence", answer.ts, user="U2")

    shown = await talk.modal("Evidence", ANSWERS[BUILT], "of the record, which is signed next", user="U2")
    assert "Skarholm lighthouse <https://skarholm.example/light.md>" in shown
    assert not talk.slack.world.views.get("U1")


@OVER_BOTH
async def test_feedback_is_thanked_for_and_a_bad_answer_may_be_commented_on(talk: Talk) -> None:
    """Both are on record, with who and why."""
    await talk.start()
    asked = await talk.acts.mention(BUILT)
    await talk.until(ANSWERS[BUILT])
    (answer,) = talk.acts.answers(asked)
    await talk.acts.press("footnote:feedback", answer.ts, chosen="positive")
    await talk.until(translate("feedback_noted", "en"))
    await talk.acts.press("footnote:feedback", answer.ts, user="U2", chosen="negative")
    await talk.modal("Your feedback", user="U2")
    await talk.acts.submit(user="U2", text="It was 1888.")

    assert translate("feedback_noted", "en") in await talk.modal("Thank you", user="U2")
    said = [(one["what"], one["by"], one["comment"]) for one in await _acts(talk, asked)]
    assert said == [("up", "slack:T1/U1", ""), ("down", "slack:T1/U2", ""), ("down", "slack:T1/U2", "It was 1888.")]


async def test_an_admin_who_finds_an_answer_good_may_make_it_an_example(talk: Talk) -> None:
    """Others are thanked and offered nothing; who approved it is on record."""
    await talk.start(**ADMIN)
    asked = await talk.acts.mention(BUILT)
    await talk.until(ANSWERS[BUILT])
    (answer,) = talk.acts.answers(asked)
    await talk.acts.press("footnote:feedback", answer.ts, chosen="positive")
    assert EXAMPLE not in await talk.until(translate("feedback_noted", "en"))
    await talk.acts.press("footnote:feedback", answer.ts, user="U9", chosen="positive")
    await talk.until(EXAMPLE, by="U9")
    (offer,) = [one for one in talk.slack.world.ours() if one.only == "U9"]
    await talk.acts.press("footnote:example", offer.ts, user="U9")
    await talk.until(translate("example_done", "en"), by="U9")

    assert talk.app
    assert [one.by for one in await talk.app.examples.all()] == ["slack:T1/U9"]
    approved = {"what": "example", "by": "slack:T1/U9", "where": "slack:T1/C1", "state": "added"}
    assert (await _acts(talk, asked))[-1] == approved


async def test_a_person_is_called_whom_settings_name(talk: Talk) -> None:
    """They alone are pinged."""
    await talk.start(**ADMIN, channel=[{"id": "slack:T1/C1", "ask": ["slack:T1/U3"]}])
    asked = await talk.acts.mention(NONSENSE)
    await talk.until("[Ask a person]")
    (answer,) = talk.acts.answers(asked)
    await talk.acts.press("footnote:ask", answer.ts, user="U2")
    await talk.until(translate("ask_done", "en"), by="U2")

    assert talk.slack.pings == ["<@U3>"]
    assert "@cleo" in talk.sees()
    await talk.acts.command("/footnote", "digest", user="U9")
    assert f"• “{NONSENSE}”" in await talk.until("not answered: 1", by="U9")


async def test_who_asked_stops_it_and_others_are_told_that_they_cannot(talk: Talk) -> None:
    """Only they are told, and what was asked goes on."""
    talk.system.shut.add(BUILT)
    await talk.start()
    asked = await talk.acts.mention(BUILT)
    await talk.system.until_asked()
    await talk.slack.until(lambda: "[Stop]" in talk.sees())
    (answer,) = talk.acts.answers(asked)
    await talk.acts.press("footnote:stop", answer.ts, user="U2")
    await talk.slack.until(lambda: translate("slack_not_yours", "en") in talk.sees(by="U2"))
    assert "Stopped." not in talk.sees()
    await talk.acts.press("footnote:stop", answer.ts)

    assert translate("slack_not_yours", "en") not in await talk.until("Stopped.")
    await talk.system.open()


async def test_slacks_own_button_stops_it_too(talk: Talk) -> None:
    """Its stream is over then, and the message says so all the same."""
    talk.system.shut.add(BUILT)
    await talk.start()
    asked = await talk.acts.dm(BUILT)
    await talk.system.until_asked()
    await talk.slack.until(lambda: talk.acts.answers(asked))
    await talk.settled()
    await talk.acts.stop("DU1", asked)

    await talk.until("Stopped.", channel="DU1")
    await talk.system.open()


async def test_the_answer_to_a_deleted_question_goes(talk: Talk) -> None:
    """Though a stone stands where the question was, because it was replied to."""
    await talk.start()
    asked = await talk.acts.mention(BUILT)
    await talk.until(ANSWERS[BUILT])
    await talk.acts.delete(asked)
    await talk.slack.until(lambda: ANSWERS[BUILT] not in talk.sees())

    assert "deleted" in talk.sees()


async def test_an_edited_question_is_answered_anew_in_the_same_message(talk: Talk) -> None:
    """With or without a mention in it; where nothing but the mention is left, as who says no more is answered."""
    await talk.start()
    asked = await talk.acts.mention(BUILT)
    await talk.until(ANSWERS[BUILT])
    (before,) = talk.acts.answers(asked)
    await talk.acts.edit(asked, f"<@U0BOT> {RISES}")
    await talk.until(ANSWERS[RISES])
    await talk.acts.edit(asked, MADE)
    await talk.until(ANSWERS[MADE])
    await talk.acts.edit(asked, "<@U0BOT>")
    await talk.until(translate("greeting", "en"))

    (after,) = talk.acts.answers(asked)
    assert after.ts == before.ts
    assert ANSWERS[MADE] not in talk.sees()
    assert ANSWERS[BUILT] not in talk.sees()


async def test_in_channels_that_are_shared_with_others_only_what_names_them_is_read(talk: Talk) -> None:
    """From the moment when they are, and until they are no longer."""
    await talk.start()
    await talk.acts.mention(BUILT, channel="C5")
    await talk.until("Footnote:", channel="C5")
    assert ANSWERS[BUILT] not in talk.sees("C5")
    await talk.acts.mention(BUILT)
    await talk.until(ANSWERS[BUILT])
    await talk.acts.share("C1")
    await talk.settled()
    asked = await talk.acts.mention(MADE)
    await talk.until(f"{MADE}\n  Footnote:")
    assert ANSWERS[MADE] not in talk.sees()
    await talk.acts.press("footnote:evidence", talk.acts.answers(asked)[0].ts)
    await talk.acts.share("C1", undo=True)
    await talk.settled()
    await talk.acts.mention(RISES)

    await talk.until(ANSWERS[RISES])


async def test_a_stranger_in_a_dm_reads_nothing_of_the_teams(talk: Talk) -> None:
    """Whose organisation somebody is of decides there."""
    await talk.start()
    await talk.acts.dm(BUILT, user="UX")

    assert ANSWERS[BUILT] not in await talk.until("Footnote:", channel="DUX", by="UX")


async def test_a_channel_keeps_its_settings_under_another_name_and_an_archived_one_harms_no_other(talk: Talk) -> None:
    """Settings know channels by their ids."""
    await talk.start(channel=[{"id": "slack:T1/C1", "answer": "every"}])
    await talk.acts.rename("C1", "harbour-talk")
    await talk.acts.say(BUILT)
    await talk.until(ANSWERS[BUILT])
    talk.system.shut.add(MADE)
    await talk.acts.mention(MADE, channel="C2")
    await talk.system.until_asked(2)
    await talk.acts.archive("C2")
    await talk.settled()
    await talk.system.open()
    await talk.acts.say(RISES)

    await talk.until(ANSWERS[RISES])


@pytest.mark.parametrize("when", ["waiting", "running"])
async def test_a_channel_that_is_shared_before_the_answer_stands_there_counts_as_shared(talk: Talk, when: str) -> None:
    """Whoever asked when it was the team's own reads nothing there by now."""
    await talk.start(desk={"per_channel": 1})
    talk.system.shut.add(RISES if when == "waiting" else BUILT)
    if when == "waiting":
        await talk.acts.mention(RISES)
        await talk.system.until_asked()
    asked = await talk.acts.mention(BUILT)
    await talk.settled()
    await talk.system.until_asked()
    await talk.acts.share("C1")
    await talk.settled()
    await talk.system.open()
    await talk.slack.until(lambda: talk.acts.answers(asked))
    await talk.until(translate("abstained", "en"))

    assert ANSWERS[BUILT] not in talk.sees()
    assert len(talk.acts.answers(asked)) == 1


@pytest.mark.parametrize("fault", [Fault(), BROKEN, Fault(429, retry_after=5)], ids=["slow", "broken", "limited"])
async def test_nobody_waits_for_a_look_up_to_be_acknowledged(talk: Talk, fault: Fault) -> None:
    """Neither who asked nor others: it is looked up when the turn comes, until Slack says who and where they are."""
    await talk.start()
    recovers = asyncio.Event()
    talk.slack.faults |= {call: [fault.after(recovers)] * 6 for call in ("conversations.info", "users.info")}
    asked = [await talk.acts.mention(BUILT), await talk.acts.mention(MADE, channel="C2"), await talk.acts.dm(RISES)]
    await talk.acts.command("/ask", BUILT, user="U2", channel="C3")
    async with asyncio.timeout(60):
        await talk.settled()
    talk.slack.faults = {call: left[:3] for call, left in talk.slack.faults.items()} if fault.status == 500 else {}
    recovers.set()
    await talk.system.until_asked(4)
    places = {"C1": BUILT, "C2": MADE, talk.slack.world.dm("U1").id: RISES}
    for channel, text in places.items():
        await talk.until(ANSWERS[text], channel=channel)
    await talk.until(ANSWERS[BUILT], channel="C3", by="U2")

    assert [len(talk.acts.answers(one)) for one in asked] == [1, 1, 1]
    assert len(talk.system.asked) == 4


@pytest.mark.parametrize("what", ["edit", "delete"])
async def test_what_changes_while_a_question_is_looked_at_counts(talk: Talk, what: str) -> None:
    """An edit or a deletion that comes before the question is on the disk waits until it is."""
    await talk.start()
    looked = asyncio.Event()
    talk.slack.faults["conversations.info"] = [Fault().after(looked)]
    asked = await talk.acts.mention(BUILT)
    await talk.slack.until(lambda: not talk.slack.faults["conversations.info"])
    if what == "edit":
        await talk.acts.edit(asked, f"<@U0BOT> {RISES}")
        looked.set()
        await talk.until(ANSWERS[RISES])
        assert talk.system.asked[-1] == RISES
    else:
        await talk.acts.delete(asked)
        looked.set()
        await talk.settled()
        assert talk.app
        row = await talk.app.queue.by_message("slack:T1/C1", asked)
        while row is None or row.state != "done":
            await asyncio.sleep(0.01)
            row = await talk.app.queue.by_message("slack:T1/C1", asked)
        assert row.outcome == "retracted"
        assert ANSWERS[BUILT] not in talk.sees()


async def test_what_was_said_to_the_bot_is_heard_without_its_name(talk: Talk) -> None:
    """Also what was said while it was not there, in a thread that it joins."""
    await talk.start()
    root = await talk.acts.mention("Is it old, this lighthouse?", silent=True)
    await talk.acts.say("<@U0BOT>", thread=root, silent=True)
    await talk.acts.mention(BUILT, thread=root)
    await talk.until(ANSWERS[BUILT])

    (heard,) = talk.system.talks
    assert [turn.text for turn in heard.earlier] == ["Is it old, this lighthouse?"]


@OVER_BOTH
async def test_when_the_workspace_lets_us_go_we_say_why_and_do_nothing_more(talk: Talk) -> None:
    """Tokens that are revoked, and the app that is uninstalled."""
    platform = await talk.start()
    await talk.acts.uninstall()
    await talk.eventually(lambda: platform.ready)
    await talk.eventually(lambda: not talk.slack.sockets.links)

    assert platform.ready in {"The app was uninstalled from the workspace.", "The workspace revoked the bot token."}


@OVER_BOTH
async def test_a_refused_token_destroys_no_question(talk: Talk) -> None:
    """What is under way rests, and is answered at the next start with a token that is taken."""
    await talk.start()
    calls = ("chat.startStream", "chat.postMessage")
    talk.slack.faults |= {call: [refused("token_revoked")] * 99 for call in calls}
    asked = await talk.acts.mention(BUILT)
    await talk.slack.until(lambda: talk.slack.calls("chat.postMessage"))
    await talk.stop()
    assert talk.acts.answers(asked) == []

    talk.slack.faults.clear()
    await talk.start()
    await talk.until(ANSWERS[BUILT])
    assert len(talk.acts.answers(asked)) == 1


async def test_what_was_asked_while_nobody_listened_is_answered_at_the_next_start(talk: Talk) -> None:
    """Mentions, DMs and threads of the bot's, over several pages; each once, and nothing that nobody asked it."""
    await talk.start(channel=[{"id": "slack:T1/C3", "answer": "every"}])
    root = await talk.acts.mention(BUILT)
    await talk.until(ANSWERS[BUILT])
    await talk.stop()
    talk.slack.page = 2
    for number in range(5):
        await talk.acts.say(f"Nobody asks {number}.", silent=True)
    asked = [
        await talk.acts.mention(MADE, silent=True),
        await talk.acts.dm(RISES, silent=True, user="U2"),
        await talk.acts.say(RISES, thread=root, silent=True),
    ]
    await talk.acts.say(MADE, channel="C3", silent=True)
    await talk.start()
    await talk.slack.until(lambda: all(map(talk.acts.answers, asked)))
    await talk.until(ANSWERS[MADE], ANSWERS[RISES])
    await talk.until(ANSWERS[RISES], channel="DU2", by="U2")

    assert sorted(talk.system.asked) == sorted([BUILT, MADE, RISES, RISES])
    assert len(talk.acts.answers(asked[0])) == 1


async def _acts(talk: Talk, message: str) -> list[Any]:
    """Return what people did with the answer to a message, as the record has it."""
    assert talk.app
    row = await talk.app.queue.by_message("slack:T1/C1", message)
    assert row
    return [entry.body for entry in await talk.app.audit.turn(row.turn_id) if entry.kind is EntryKind.FEEDBACK]
