"""Flows that only Slack has, through the real bolt and SDK."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.views.catalog import translate
from tests.platforms.bots import Bot, bot_in, eventually
from tests.platforms.example_app import ANSWERS, BUILT, MADE, RISES, fill
from tests.platforms.fake_server import BROKEN, Fault
from tests.platforms.slack.workspace import workspaces
from tests.thorough import THOROUGH

ANSWERED = """\
Ana: @footnote When was Skarholm lighthouse built?
  Footnote: Skarholm lighthouse was built in 1887. [1]
    ---
    [1] Skarholm lighthouse <https://skarholm.example/light.md>
    [Evidence] [Take back]
    [👍] [👎]"""
NONSENSE = "Do penguins love jazz?"
ADMIN = {"slack": {"bot_token": "x", "app_token": "x", "admins": ["slack:T1/U9"]}}


TRANSPORTS = ["socket", "http"]
OVER_BOTH = pytest.mark.parametrize("bot", TRANSPORTS, indirect=True)
"""For tests that depend on acknowledgements or on the end of the transport. Other tests run over one transport."""


@pytest.fixture(params=TRANSPORTS if THOROUGH else ["socket"])
async def bot(request: pytest.FixtureRequest, filled: Path, tmp_path: Path) -> AsyncIterator[Bot]:
    opening = workspaces(http=request.param == "http", speed=8)()
    async with bot_in(opening, filled, tmp_path / "home", every=False) as opened:
        yield opened


@OVER_BOTH
async def test_mention_is_answered_once_in_its_thread(bot: Bot) -> None:
    await bot.start()
    asked = await bot.people.mention(BUILT)
    for _ in range(4):
        await bot.people.again(asked)
    await bot.until(ANSWERS[BUILT])
    await bot.people.again(asked)
    await bot.people.unfurl(asked)
    await bot.workspace.settled()

    assert bot.sees() == f"#general\n{ANSWERED}"
    assert bot.sees(by="U2") == bot.sees()
    assert len(bot.system.asked) == 1
    assert bot.server.pings == bot.server.refused == bot.server.limited == []


async def test_agent_chat_suggests_prompts_and_answers_in_threads(bot: Bot) -> None:
    await bot.start()
    await bot.people.open_home()
    await bot.server.until(lambda: bot.server.state.prompts)
    ((_, thread), prompts) = next(iter(bot.server.state.prompts.items()))
    asked = await bot.people.dm(prompts[0]["message"])
    await bot.until("Ask me a question", channel="DU1")
    await bot.people.dm(MADE, thread=asked)

    seen = await bot.until(ANSWERS[MADE], channel="DU1")
    assert thread == ""
    assert seen.startswith(f"(direct message)\nAna: {translate('intro_question', 'en')}\n  Footnote: I am Footnote.")
    assert f"  Ana: {MADE}\n  Footnote: {ANSWERS[MADE]} [1]" in seen


async def test_prompts_and_app_home_name_only_readable_corpora(bot: Bot) -> None:
    await fill(
        bot.home,
        {"tide.md": {"title": "Tides", "<!here> Spring tides": f"{ANSWERS[RISES]} It falls again within the night."}},
    )
    await bot.start(corpus=[{"name": "handbook", "visible_to": ["slack:T1/U1"]}])
    await bot.people.open_home()
    await bot.server.until(lambda: bot.server.state.prompts)
    await bot.people.open_home(tab="home")
    await bot.people.open_home(tab="home", user="U2")
    await bot.server.until(lambda: len(bot.server.state.homes) == 2)
    (prompts,) = bot.server.state.prompts.values()
    shown, other = (json.dumps(bot.server.state.homes[user].body, ensure_ascii=False) for user in ("U1", "U2"))

    assert "Spring tides" in prompts[1]["title"]
    assert "handbook (documents: 1" in shown
    assert "Spring tides" in shown
    assert "handbook" not in other
    assert "Spring tides" not in other
    assert bot.server.pings == bot.server.refused == []


async def test_private_channel_without_the_bot_asks_for_an_invitation(bot: Bot) -> None:
    await bot.start()
    await bot.people.command("/ask", BUILT, channel="G2")
    await bot.until(translate("slack_invite", "en"), channel="G2")
    bot.server.state.channels["G2"].members.add("U0BOT")
    await bot.people.command("/ask", BUILT, channel="G2")

    await bot.until(ANSWERS[BUILT], channel="G2")


async def test_waiting_command_is_acknowledged_with_its_place_in_the_queue(bot: Bot) -> None:
    bot.system.shut.add(MADE)
    await bot.start(desk={"at_once": 1})
    await bot.people.mention(MADE, user="U2", channel="C2")
    await bot.system.until_asked()
    used = await bot.people.command("/ask", BUILT)
    acknowledged = (await used.answer)["text"]
    await bot.system.open()
    await bot.until(ANSWERS[BUILT])

    assert BUILT in acknowledged
    assert translate("before", "en", before=1) in acknowledged
    assert bot.sees().count(translate("before", "en", before=1)) == 1
    assert bot.server.refused == []


async def test_dm_offers_no_sharing(bot: Bot) -> None:
    await bot.start()
    await bot.people.dm(MADE)
    await bot.until(ANSWERS[MADE], channel="DU1")
    await bot.people.command("/ask", BUILT, channel="DU1")

    whole = await bot.until(ANSWERS[BUILT], channel="DU1")
    assert translate("button_evidence", "en") in whole
    assert translate("button_share", "en") not in whole


@OVER_BOTH
async def test_command_without_words_shows_its_usage(bot: Bot) -> None:
    await bot.start()
    bot.server.state.users["U2"].locale = "de-DE"
    await bot.people.command("/ask", " ")
    await bot.people.command("/check", user="U2")

    assert "such as: /ask" in await bot.until("/ask")
    assert "etwa: /check" in await bot.until("/check", by="U2")
    assert bot.system.asked == []


async def test_shortcut_checks_each_statement_of_a_message(bot: Bot) -> None:
    await bot.start()
    text = "Good morning! The pier of Skarholm is made of oak. Skarholm lighthouse was built in 1999. Is that so?"
    written = await bot.people.say(text, user="U2")
    await bot.people.shortcut("footnote_check", written)

    seen = await bot.until("oak.”", "1999.”")
    lines = [line.strip() for line in seen.split("\n")]
    oak, built = (next(line for line in lines if f"{word}.”" in line) for word in ("oak", "1999"))
    assert lines[lines.index(oak) - 1].endswith("Confirmed")
    assert lines[lines.index(built) - 1].endswith(("Contradicted", "Not enough information"))
    assert "[1] Pier <https://skarholm.example/pier.md>" in seen
    assert "Good morning!”" not in seen
    assert "Confirmed" not in bot.sees(by="U2")


async def test_unchecked_statements_are_counted(bot: Bot) -> None:
    await bot.start(limits={"claims": 1})
    written = await bot.people.say(" ".join(ANSWERS.values()), user="U2")
    await bot.people.shortcut("footnote_check", written)

    assert translate("unchecked", "en", count=2, checked=1) in await bot.until(ANSWERS[BUILT], "Not checked")


async def test_check_command_checks_its_whole_text_as_one_statement(bot: Bot) -> None:
    await bot.start()
    await bot.people.command("/check", "The pier of Skarholm is made of oak.")
    await bot.until("“The pier of Skarholm is made of oak.”", "Confirmed")
    await bot.people.command("/check", BUILT)

    assert "Footnote (only you see this): That is a question, not a claim." in await bot.until("not a claim")


async def test_channel_with_answer_every_gets_no_abstention(bot: Bot) -> None:
    await bot.start(channel=[{"id": "slack:T1/C1", "answer": "every"}])
    asked = await bot.people.say(BUILT)
    await bot.until(ANSWERS[BUILT])
    nothing = await bot.people.say(NONSENSE)
    await bot.system.until_asked(2)
    await bot.people.edit(nothing, MADE)
    await bot.people.say(RISES, user="U2", bot_id="B7")
    await bot.people.say(MADE, channel="C2")
    await bot.people.say(f"<@U2> {RISES}")
    below = await bot.people.say(NONSENSE, thread=asked)
    await bot.system.until_asked(3)
    await bot.workspace.settled()

    assert bot.system.asked == [BUILT, NONSENSE, NONSENSE]
    assert bot.people.answers(asked)
    assert [bot.people.answers(one) for one in (nothing, below)] == [[], []]


async def test_ephemeral_channel_shows_answers_to_askers_alone(bot: Bot) -> None:
    await bot.start(channel=[{"id": "slack:T1/C1", "ephemeral": True}])
    await bot.people.mention(BUILT)

    assert "Footnote (only you see this): Skarholm lighthouse" in await bot.until(ANSWERS[BUILT])
    assert ANSWERS[BUILT] not in bot.sees(by="U2")


@OVER_BOTH
async def test_only_admins_see_and_change_channel_settings(bot: Bot) -> None:
    await bot.start(**ADMIN, channel=[{"id": "slack:T1/C1", "answer": "every"}])
    await bot.people.command("/footnote", user="U9")
    seen = await bot.until(translate("channel_now", "en"), by="U9")
    held = "corpora: handbook, system: extractive, effort: normal, answer: every, ephemeral: off, ask: –, paused: off"
    assert ", ".join(re.findall(r"^  ([a-z]+: \S+) \(.+\)$", seen, re.MULTILINE)) == held
    await bot.people.command("/footnote", "set answer mention", user="U9")
    await bot.until("answer is now: mention", by="U9")
    await bot.people.command("/footnote", "answer reset", user="U1")
    await bot.until(translate("channel_admins", "en"))
    await bot.people.command("/footnote", "nights on", user="U9")
    await bot.until("There is no setting “nights”", by="U9")
    await bot.people.command("/footnote", "digest", user="U9")
    await bot.until(translate("digest_none", "en", days=7), by="U9")
    await bot.people.say(BUILT)
    await bot.workspace.settled()

    assert bot.system.asked == []
    assert bot.sees(by="U2").count("Footnote") == 0
    assert bot.app
    (logged,) = await bot.app.audit.turn("slack:T1/C1")
    entry = logged.body
    assert entry == {"key": "answer", "was": "every", "now": "mention", "by": "slack:T1/U9"}


async def test_stop_button_of_slack_stops_the_answer(bot: Bot) -> None:
    bot.system.shut.add(BUILT)
    await bot.start()
    asked = await bot.people.dm(BUILT)
    await bot.system.until_asked()
    await bot.server.until(lambda: bot.people.answers(asked))
    await bot.workspace.settled()
    await bot.people.stop("DU1", asked)

    await bot.until("Stopped.", channel="DU1")
    await bot.system.open()


async def test_channel_reads_less_while_it_is_shared(bot: Bot) -> None:
    await bot.start()
    await bot.people.share("C1")
    await bot.workspace.settled()
    asked = await bot.people.mention(MADE)
    await bot.until(f"{MADE}\n  Footnote:")
    assert ANSWERS[MADE] not in bot.sees()
    await bot.people.press("footnote:evidence", bot.people.answers(asked)[0].ts)
    await bot.people.share("C1", undo=True)
    await bot.workspace.settled()
    await bot.people.mention(RISES)

    await bot.until(ANSWERS[RISES])


async def test_renamed_channel_keeps_its_settings(bot: Bot) -> None:
    await bot.start(channel=[{"id": "slack:T1/C1", "answer": "every"}])
    await bot.people.rename("C1", "harbour-bot")
    await bot.people.say(BUILT)

    await bot.until(ANSWERS[BUILT])


@pytest.mark.parametrize("when", ["waiting", "running"])
async def test_channel_shared_before_the_answer_counts_as_shared(bot: Bot, when: str) -> None:
    await bot.start(desk={"per_channel": 1})
    bot.system.shut.add(RISES if when == "waiting" else BUILT)
    if when == "waiting":
        await bot.people.mention(RISES)
        await bot.system.until_asked()
    asked = await bot.people.mention(BUILT)
    await bot.workspace.settled()
    await bot.system.until_asked()
    await bot.people.share("C1")
    await bot.workspace.settled()
    await bot.system.open()
    await bot.server.until(lambda: bot.people.answers(asked))
    await bot.until(translate("abstained", "en"))

    assert ANSWERS[BUILT] not in bot.sees()
    assert len(bot.people.answers(asked)) == 1


@pytest.mark.parametrize("fault", [Fault(), BROKEN, Fault(429, retry_after=5)], ids=["slow", "broken", "limited"])
async def test_lookups_do_not_delay_acknowledgements(bot: Bot, fault: Fault) -> None:
    await bot.start()
    recovers = asyncio.Event()
    bot.server.faults |= {call: [fault.after(recovers)] * 6 for call in ("conversations.info", "users.info")}
    asked = [
        await bot.people.mention(BUILT),
        await bot.people.mention(MADE, channel="C2"),
        await bot.people.dm(RISES),
    ]
    await bot.people.command("/ask", BUILT, user="U2", channel="C3")
    async with asyncio.timeout(60):
        await bot.workspace.settled()
    bot.server.faults = {call: left[:3] for call, left in bot.server.faults.items()} if fault.status == 500 else {}
    recovers.set()
    await bot.system.until_asked(4)
    places = {"C1": BUILT, "C2": MADE, bot.server.state.dm("U1").id: RISES}
    for channel, text in places.items():
        await bot.until(ANSWERS[text], channel=channel)
    await bot.until(ANSWERS[BUILT], channel="C3", by="U2")

    assert [len(bot.people.answers(one)) for one in asked] == [1, 1, 1]
    assert len(bot.system.asked) == 4


@pytest.mark.parametrize("what", ["edit", "delete"])
async def test_edits_and_deletions_during_a_lookup_count(bot: Bot, what: str) -> None:
    await bot.start()
    looked = asyncio.Event()
    bot.server.faults["conversations.info"] = [Fault().after(looked)]
    asked = await bot.people.mention(BUILT)
    await bot.server.until(lambda: not bot.server.faults["conversations.info"])
    if what == "edit":
        await bot.people.edit(asked, f"<@U0BOT> {RISES}")
        looked.set()
        await bot.until(ANSWERS[RISES])
        assert bot.system.asked[-1] == RISES
    else:
        await bot.people.delete(asked)
        looked.set()
        await bot.workspace.settled()
        await eventually(lambda: bot.app.queue.by_message("slack:T1/C1", asked))
        await bot.done(asked, "retracted")
        assert ANSWERS[BUILT] not in bot.sees()


async def test_earlier_messages_are_read_without_the_mention(bot: Bot) -> None:
    await bot.start()
    root = await bot.people.mention("Is it old, this lighthouse?", silent=True)
    await bot.people.say("<@U0BOT>", thread=root, silent=True)
    await bot.people.mention(BUILT, thread=root)
    await bot.until(ANSWERS[BUILT])

    (heard,) = bot.system.talks
    assert [turn.text for turn in heard.earlier] == ["Is it old, this lighthouse?"]


@OVER_BOTH
async def test_uninstalled_app_reports_why_and_disconnects(bot: Bot) -> None:
    platform = await bot.start()
    await bot.people.uninstall()
    await eventually(lambda: platform.ready)
    await eventually(lambda: not bot.server.sockets.links)

    assert platform.ready in {"The app was uninstalled from the workspace.", "The workspace revoked the bot token."}
