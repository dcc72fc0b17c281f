"""What people do in Discord and what they see then, through the real discord.py."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.views.catalog import translate
from storage.types import EntryKind
from tests.platforms.discord.faults import BROKEN, LIMITED, Fault
from tests.platforms.discord.talking import THINKING, Talk, actions, field_of, talking
from tests.platforms.discord.world import BOT, GUILD, THREAD, Channel
from tests.platforms.world import ANSWERS, BUILT, MADE, RISES

RETRACT, EXAMPLE = translate("button_retract", "en"), translate("button_example", "en")
ANSWERED = f"""\
Ana: @Footnote When was Skarholm lighthouse built?
Footnote, to Ana: Skarholm lighthouse was built in 1887. [1]
  [1] Skarholm lighthouse <https://skarholm.example/light.md>
  [Evidence] [👍] [👎] [{RETRACT}]"""
NONSENSE = "Do penguins love jazz?"
SMALL_TALK = ("Good morning!", "Thanks, Ana!", "lol", "Who are you?", "See you at lunch.", "ok")


@pytest.fixture
async def talk(filled: Path, tmp_path: Path) -> AsyncIterator[Talk]:
    async with talking(tmp_path / "home", filled) as opened:
        yield opened


async def test_a_mention_is_answered_once(talk: Talk) -> None:
    """It arrives five times over; bots and previews of links are left alone."""
    await talk.start()
    asked = await talk.acts.mention(BUILT)
    for _ in range(4):
        await talk.acts.again(asked)
    assert (await talk.until(ANSWERS[BUILT])).removesuffix(" (edited)") == f"#general\n{ANSWERED}"
    await talk.acts.again(asked)
    await talk.acts.unfurl(asked)
    await talk.passed()

    assert talk.sees(by="102") == talk.sees()
    assert talk.system.asked == [BUILT]
    assert talk.discord.pings == talk.discord.refused == talk.discord.limited == []


async def test_who_mentions_the_bot_and_says_nothing_is_greeted(talk: Talk) -> None:
    """Silence is what people complain about most."""
    await talk.start()
    await talk.acts.mention("")

    assert translate("greeting", "en") in await talk.until("Ask me something")


async def test_a_reply_to_an_answer_goes_on_with_its_conversation(talk: Talk) -> None:
    """It needs no mention; one to another person is left alone."""
    await talk.start()
    asked = await talk.acts.mention(BUILT)
    answer = await talk.answered(asked)
    await talk.acts.say(MADE, reply=answer.id, user="102")
    await talk.until(ANSWERS[MADE])
    await talk.acts.say(RISES, reply=asked, user="102")
    await talk.acts.say(RISES)
    await talk.passed()

    assert talk.system.asked == [BUILT, MADE]
    assert [turn.text for turn in talk.system.talks[1].turns[:1]] == [BUILT]


async def test_a_longer_exchange_gets_a_thread_where_the_channel_wants_that(talk: Talk) -> None:
    """A second question opens it; there nothing needs a mention, and what was said before is remembered."""
    await talk.start(channel=[{"id": "discord:301/201", "threads": "long"}])
    asked = await talk.acts.mention(BUILT)
    answer = await talk.answered(asked)
    second = await talk.acts.say(MADE, reply=answer.id)
    await talk.until(ANSWERS[MADE])
    await talk.acts.say(RISES, channel=second)
    seen = await talk.until(ANSWERS[RISES])

    assert f"  # {MADE}" in seen
    assert f"  Ana: {RISES}" in seen
    assert talk.system.asked == [BUILT, MADE, RISES]
    assert len(talk.system.talks[2].turns) > 2


async def test_a_follow_up_in_a_thread_that_the_bot_takes_part_in_needs_no_mention(talk: Talk) -> None:
    """What is to somebody else does not count, nor do threads that it has no part in; others may find silence."""
    await talk.start()
    thread = await talk.acts.thread("The harbour")
    await talk.acts.say(RISES, channel=thread)
    await talk.acts.mention(BUILT, channel=thread)
    await talk.until(ANSWERS[BUILT])
    await talk.acts.say(MADE, channel=thread, user="102")
    await talk.until(ANSWERS[MADE])
    await talk.acts.say(f"<@102> {RISES}", channel=thread)
    await talk.acts.say(NONSENSE, channel=thread, user="102")
    await talk.done(3)
    await talk.passed()

    assert talk.system.asked == [BUILT, MADE, NONSENSE]
    assert talk.sees(thread).count("Footnote, to") == 2
    await talk.acts.say(NONSENSE, channel=thread)
    await talk.until(translate("abstained", "en").split(".")[0])


@pytest.mark.parametrize("every", [True, False])
async def test_what_people_say_among_themselves_is_left_alone(talk: Talk, *, every: bool) -> None:
    """In a channel where every question is answered, and in a thread that the bot takes part in."""
    await talk.start(channel=[{"id": "discord:301/201", "answer": "every"}] if every else [])
    channel = "201" if every else await talk.acts.thread("The harbour")
    await talk.acts.mention(BUILT, channel=channel)
    await talk.until(ANSWERS[BUILT])
    for remark in SMALL_TALK:
        await talk.acts.say(remark, channel=channel, user="102")
    changed = await talk.acts.say(NONSENSE, channel="201", user="102")
    await talk.done(1 + len(SMALL_TALK) + every)
    await talk.acts.edit(changed, MADE)
    await talk.passed()

    assert talk.sees(channel).count("Footnote, to") == talk.sees(channel).count("[Evidence]") == 1


async def test_a_post_of_a_forum_is_answered_in_it(talk: Talk) -> None:
    """Where its forum wants every question answered it needs no mention; what the bot cannot answer stays alone."""
    await talk.start(channel=[{"id": "discord:301/206", "answer": "every"}])
    await talk.acts.post("Lighthouse", BUILT)
    await talk.until(ANSWERS[BUILT], channel="206")
    silent = await talk.acts.post("Penguins", NONSENSE)
    await talk.done(2)

    assert "Footnote" not in talk.sees(silent)
    assert talk.system.asked == [BUILT, NONSENSE]


async def test_every_question_of_a_channel_is_answered_where_its_settings_say_so(talk: Talk) -> None:
    """What the bot has nothing to say to, and what is said to others, stays alone."""
    await talk.start(channel=[{"id": "discord:301/201", "answer": "every"}])
    first = await talk.acts.say(NONSENSE)
    await talk.acts.say(BUILT, reply=first, user="102")
    await talk.acts.say(MADE)
    await talk.until(ANSWERS[MADE])

    assert talk.sees().count("Footnote") == 1


async def test_a_thread_is_ruled_by_the_settings_of_its_channel(talk: Talk) -> None:
    """A thread has an id of its own, which no settings name."""
    readers = [{"name": "handbook", "readers": ["discord:301/201"]}]
    await talk.start(corpus=readers)
    for channel, answered in (("201", True), ("202", False)):
        thread = await talk.acts.thread("The harbour", channel=channel)
        await talk.acts.mention(BUILT, channel=thread)
        words = ANSWERS[BUILT] if answered else translate("abstained", "en").split(".")[0]
        seen = await talk.until(words, channel=channel)
        assert (ANSWERS[BUILT] in seen) is answered


async def test_a_dm_is_answered_with_what_its_person_may_read(talk: Talk) -> None:
    """A member of the team's own servers reads there what everybody there reads; a stranger does not."""
    await talk.start()
    for user, answered in (("101", True), ("104", False)):
        await talk.acts.dm(BUILT, user=user)
        channel = talk.discord.world.dm(user).id
        seen = await talk.until("Footnote", channel=channel, by=user)
        assert (ANSWERS[BUILT] in seen) is answered


async def test_a_command_is_deferred_and_answered_in_its_place(talk: Talk) -> None:
    """It is for all to see unless it is asked for otherwise."""
    await talk.start()
    await talk.acts.command("ask", question=BUILT)
    assert f"“{BUILT}”" in await talk.until(ANSWERS[BUILT], by="102")  # Discord shows others no options
    await talk.acts.command("ask", question=MADE, private=True)
    await talk.until(ANSWERS[MADE])

    assert MADE not in talk.sees()
    assert ANSWERS[MADE] not in talk.sees(by="102")
    assert "Footnote (only you see this)" in talk.sees()
    assert talk.discord.pings == talk.discord.refused == []


async def test_a_statement_is_checked_by_command_and_by_context_menu(talk: Talk) -> None:
    """That of a message is shown to whoever wants to know, and to nobody else, until they share it."""
    await talk.start()
    await talk.acts.command("check", statement=ANSWERS[BUILT])
    await talk.until("[Evidence]")
    message = await talk.acts.say(ANSWERS[MADE], channel="202", user="102")
    await talk.acts.menu("Fact-check", message)
    await talk.until("only you see this", "[Evidence]", channel="202")

    assert "Footnote" not in talk.sees("202", by="102")
    assert talk.system.asked == []


async def test_one_asks_about_a_message_in_a_modal(talk: Talk) -> None:
    """The message stands in it, so that nothing has to be remembered."""
    await talk.start()
    message = await talk.acts.say("I love the lighthouse of Skarholm.", user="102")
    await talk.acts.menu("Ask about this message", message)
    await talk.modal("I love the lighthouse of Skarholm.")
    await talk.acts.submit(question=BUILT)
    await talk.until(ANSWERS[BUILT])

    (asked,) = talk.system.asked
    assert asked == f"{BUILT}\n\n“I love the lighthouse of Skarholm.”"


async def test_what_a_command_cannot_do_is_said(talk: Talk) -> None:
    """To whoever used it, at once."""
    await talk.start(discord={"privacy": "We keep *nothing*."})
    empty = await talk.acts.say(" ", user="102")
    await talk.acts.command("privacy")
    await talk.until("We keep *nothing*.")
    await talk.acts.menu("Fact-check", empty)
    await talk.until(translate("discord_no_text", "en"))
    await talk.acts.command("sources")
    await talk.until(translate("sources_none", "en"))

    assert "Footnote" not in talk.sees(by="102")


async def test_the_sources_of_a_conversation_are_shown(talk: Talk) -> None:
    """Each page once."""
    await talk.start()
    thread = await talk.acts.thread("The harbour")
    await talk.acts.mention(BUILT, channel=thread)
    await talk.until(ANSWERS[BUILT])
    await talk.acts.mention(MADE, channel=thread)
    await talk.until(ANSWERS[MADE])
    await talk.acts.command("sources", channel=thread)
    seen = await talk.until(translate("sources_heading", "en"))

    assert seen.count("Pier <https://skarholm.example/pier.md>") == 2


async def test_in_a_channel_the_sources_are_those_of_what_one_asked_last_oneself(talk: Talk) -> None:
    """Whoever asked nothing there is shown those that everybody saw, and never what another alone did."""
    await talk.start()
    await talk.acts.command("ask", question=BUILT, private=True)
    await talk.until(ANSWERS[BUILT])
    await talk.acts.mention(RISES, user="102")
    await talk.until(ANSWERS[RISES])
    await talk.acts.command("ask", question=MADE, private=True, user="103")
    await talk.until(ANSWERS[MADE], by="103")
    await talk.done(3)
    for user, page in (("101", "light"), ("103", "pier"), ("109", "tide")):
        seen = talk.sees(by=user).count(f"{page}.md")
        await talk.acts.command("sources", user=user)
        await talk.until(translate("sources_heading", "en"), by=user)
        assert talk.sees(by=user).count(f"{page}.md") == seen + 1


async def test_a_mention_that_an_edit_adds_is_answered_once(talk: Talk) -> None:
    """What was said to nobody becomes a question to us; an edit that mentions nobody does not."""
    await talk.start()
    said = [await talk.acts.say(BUILT), await talk.acts.say(RISES)]
    await talk.passed()
    await talk.acts.edit(said[0], f"<@{BOT}> {BUILT}")
    await talk.acts.edit(said[1], MADE)
    await talk.until(ANSWERS[BUILT])
    await talk.acts.edit(said[0], f"<@{BOT}> {MADE}")
    await talk.until(ANSWERS[MADE])
    await talk.passed()

    assert [len(talk.acts.answers(one)) for one in said] == [1, 0]


async def test_an_edited_question_is_answered_anew_in_the_same_post(talk: Talk) -> None:
    """And a deleted one takes its answer with it."""
    await talk.start()
    asked = await talk.acts.mention(BUILT)
    await talk.until(ANSWERS[BUILT])
    (before,) = talk.acts.answers(asked)
    await talk.acts.edit(asked, f"<@{BOT}> {MADE}")
    await talk.until(ANSWERS[MADE])
    await talk.acts.edit(asked, f"<@{BOT}>")
    await talk.until(translate("greeting", "en"))

    assert [one.id for one in talk.acts.answers(asked)] == [before.id]
    await talk.acts.delete(asked)
    await talk.discord.until(lambda: not talk.discord.world.ours())


async def test_an_answer_that_a_moderator_deletes_is_taken_back(talk: Talk) -> None:
    """The record says so."""
    await talk.start()
    asked = await talk.acts.mention(BUILT)
    answer = await talk.answered(asked)
    await talk.acts.delete(answer.id)

    assert talk.app
    row = await talk.outcome(1, "retracted")
    entries = await talk.app.audit.turn(row.turn_id)
    assert any("the answer was taken back" in str(entry.body) for entry in entries)


async def test_moderators_take_any_answer_back_and_others_only_their_own(talk: Talk) -> None:
    """By the button or by the context menu; who may is for Discord to say."""
    await talk.start()
    for user, gone in (("102", False), ("109", True)):
        asked = await talk.acts.mention(BUILT)
        answer = await talk.answered(asked)
        await talk.take_back(answer, user=user)
        if gone:
            await talk.discord.until(lambda: answer.id not in talk.discord.world.messages)  # noqa: B023
        else:
            await talk.until(translate("discord_not_yours", "en"), by=user)
    asked = await talk.acts.mention(MADE)
    answer = await talk.answered(asked)
    await talk.acts.menu("Take back this answer", answer.id, user="109")
    await talk.discord.until(lambda: answer.id not in talk.discord.world.messages)
    await talk.discord.until(lambda: talk.sees(by="109").count(translate("discord_taken_back", "en")) == 2)


async def test_before_an_answer_is_taken_back_whoever_pressed_is_asked(talk: Talk) -> None:
    """It is theirs alone to see, and whoever leaves the answer finds it as it was."""
    await talk.start()
    asked = await talk.acts.mention(BUILT)
    answer = await talk.answered(asked)
    await talk.press("retract", answer)
    await talk.until(translate("retract_sure", "en"))
    (doubt,) = (one for one in talk.discord.world.ours() if "back" in actions(one))
    assert doubt.only == "101"
    await talk.press("no", doubt)
    assert ANSWERS[BUILT] in await talk.until("[Evidence]")
    await talk.discord.until(lambda: translate("retract_sure", "en") not in talk.sees())
    await talk.take_back(answer)
    await talk.until(translate("discord_taken_back", "en"))
    await talk.discord.until(lambda: ANSWERS[BUILT] not in talk.sees())


async def test_evidence_opinions_and_comments(talk: Talk) -> None:
    """Each for whoever presses alone; the record has them."""
    await talk.start()
    asked = await talk.acts.mention(BUILT)
    answer = await talk.answered(asked)
    await talk.press("evidence", answer, user="102")
    receipt = "of the record, which is signed next"
    await talk.until(translate("evidence", "en"), "say this word for word", receipt, by="102")
    await talk.press("up", answer)
    await talk.until("Thank")
    await talk.press("down", answer, user="102")
    await talk.modal(user="102")
    await talk.acts.submit(user="102", **{field_of(talk.acts.modal("102")): "The year is wrong."})
    await talk.until("Thank", by="102")

    assert talk.app
    row = await talk.outcome(1, "delivered")
    bodies = [one.body for one in await talk.app.audit.turn(row.turn_id) if one.kind is EntryKind.FEEDBACK]
    assert [one["what"] for one in bodies] == ["up", "down", "down"]
    assert bodies[-1]["comment"] == "The year is wrong."
    assert talk.sees(by="103").count("only you") == 0


async def test_an_admin_who_finds_an_answer_good_may_make_it_an_example(talk: Talk) -> None:
    """Others are thanked and offered nothing; who approved it is on record."""
    await talk.start(discord={"token": "x", "admins": [f"discord:{GUILD}/102"]})
    answer = await talk.answered(await talk.acts.mention(BUILT))
    await talk.press("up", answer)
    assert EXAMPLE not in await talk.until(translate("feedback_noted", "en"))
    await talk.press("up", answer, user="102")
    await talk.until(EXAMPLE, by="102")
    (offer,) = [one for one in talk.discord.world.ours() if "example" in actions(one)]
    await talk.press("example", offer, user="102")
    await talk.until(translate("example_done", "en"), by="102")

    assert talk.app
    (kept,) = await talk.app.examples.all()
    assert kept.by == f"discord:{GUILD}/102"
    assert (await talk.app.audit.turn(kept.turn_id))[-1].body["state"] == "added"


async def test_a_private_answer_is_shared_and_a_person_is_asked(talk: Talk) -> None:
    """Only whom settings name is pinged, and once."""
    channel = {"id": "discord:301/201", "ask": ["discord:301/103"], "ephemeral": True}
    await talk.start(channel=[channel])
    await talk.acts.command("ask", question=BUILT)
    await talk.until(ANSWERS[BUILT])
    (answer,) = talk.discord.world.ours()
    held = asyncio.Event()
    talk.discord.faults["create_message"] = [Fault().after(held)]
    await talk.press("share", answer)
    await talk.discord.until(lambda: talk.discord.calls("create_message"))
    assert THINKING not in talk.sees()  # it would stay where the process ends now
    held.set()
    await talk.until(translate("share_done", "en"))
    (shared,) = (one for one in talk.discord.world.ours() if "ask" in actions(one))
    assert f"Ana asked “{BUILT}” and shared the answer." in talk.sees(by="102")
    await talk.press("ask", shared)
    await talk.until("@Cleo", by="102")

    assert {who for _, who in talk.discord.notified} == {"103"}


async def test_before_a_person_is_asked_about_what_one_alone_sees_that_one_is_asked(talk: Talk) -> None:
    """Whoever does not want their question published presses the other button, and nothing happens."""
    await talk.start(channel=[{"id": "discord:301/201", "ask": ["discord:301/103"], "ephemeral": True}])
    await talk.acts.command("ask", question=BUILT)
    await talk.until(ANSWERS[BUILT])
    (answer,) = talk.discord.world.ours()
    for wanted in ("no", "yes"):
        await talk.press("sure", answer)
        await talk.until(translate("ask_sure", "en"))
        assert talk.discord.notified == []
        (asked,) = (one for one in talk.discord.world.ours() if wanted in actions(one))
        assert asked.only == "101"
        await talk.press(wanted, asked)
        await talk.discord.until(lambda: translate("ask_sure", "en") not in talk.sees())

    assert "@Cleo" in await talk.until("@Cleo", translate("ask_done", "en"))
    assert {who for _, who in talk.discord.notified} == {"103"}


async def test_a_mention_where_answers_are_private_is_told_to_use_the_command(talk: Talk) -> None:
    """It was written for all to see, and cannot be answered alone."""
    await talk.start(channel=[{"id": "discord:301/201", "ephemeral": True}])
    await talk.acts.mention(BUILT)

    assert translate("discord_ask_by_command", "en") in await talk.until("/ask")
    assert talk.system.asked == []


async def test_an_answer_under_way_is_stopped_by_its_asker(talk: Talk) -> None:
    """Nobody else stops it."""
    await talk.start()
    talk.system.shut.add(BUILT)
    asked = await talk.acts.mention(BUILT)
    await talk.discord.until(lambda: "[Stop]" in talk.sees())
    (answer,) = talk.acts.answers(asked)
    await talk.press("stop", answer, user="102")
    await talk.discord.until(lambda: translate("discord_not_yours", "en") in talk.sees(by="102"))
    await talk.press("stop", answer)
    await talk.until(translate("stopped", "en"))


async def test_channels_are_set_by_whom_discord_lets_use_the_command(talk: Talk) -> None:
    """And seen by them, as the command is typed; a pause holds from then on."""
    await talk.start(channel=[{"id": "discord:301/201", "ask": ["discord:301/103"]}])
    await talk.acts.command("footnote", user="109")
    shown = await talk.until("corpora: handbook", "/footnote setting:KEY value:VALUE", by="109")
    assert "ask: @Cleo" in shown
    assert "discord:301" not in shown
    assert "/footnote setting:digest" in shown
    await talk.acts.mention(NONSENSE)
    await talk.until(translate("abstained", "en"))
    await talk.acts.command("footnote", user="109", setting="digest")
    assert NONSENSE in await talk.until("not answered: 1", by="109")
    await talk.acts.command("footnote", user="109", setting="ask", value="<@104>")
    await talk.until("does not allow ask to be “@Dora”", by="109")
    await talk.acts.command("footnote", user="109", setting="paused", value="on")
    await talk.until(translate("channel_set", "en", key="paused", value="on"), by="109")
    await talk.acts.mention(BUILT)

    assert translate("channel_paused", "en") in await talk.until("paused in this channel")
    (command,) = [one for one in talk.discord.world.commands if one["name"] == "footnote"]
    assert command["default_member_permissions"] == "32"


async def test_other_servers_and_denied_people_are_left_alone(talk: Talk) -> None:
    """Commands are told so; roles count in DMs too."""
    await talk.start(discord={"deny": ["102", "401"]})
    await talk.acts.mention(BUILT, channel="211", user="104")
    await talk.acts.mention(BUILT, user="102")
    await talk.acts.mention(BUILT, user="109")
    await talk.acts.dm(BUILT, user="109")
    await talk.acts.command("ask", question=BUILT, user="102")
    await talk.until(translate("discord_denied", "en"), by="102")
    await talk.acts.command("ask", question=BUILT, channel="211", user="104")
    await talk.until(translate("discord_not_here", "en"), channel="211", by="104")
    await talk.acts.mention(MADE)
    await talk.until(ANSWERS[MADE])

    assert talk.system.asked == [MADE]


@pytest.mark.parametrize(
    "fault", [Fault(), BROKEN, replace(LIMITED, retry_after=5.0)], ids=["slow", "broken", "limited"]
)
async def test_nobody_waits_for_a_look_up_to_be_deferred(talk: Talk, fault: Fault) -> None:
    """Who somebody is, and what thread that is, is looked up afterwards, until Discord says so."""
    await talk.start(discord={"deny": ["401"]})
    recovers, world = asyncio.Event(), talk.discord.world
    routes = ("get_member", "get_channel")
    talk.discord.faults |= {route: [fault.after(recovers)] * 3 for route in routes}
    world.channels["299"] = Channel("299", "unheard of", THREAD, GUILD, {"101"}, parent="201")
    direct, denied = world.dm("101").id, world.dm("109").id
    used = [
        await talk.acts.command("ask", question=BUILT, user=user, channel=world.dm(user).id) for user in ("101", "109")
    ]
    await talk.acts.dm(MADE, user="102")
    await talk.acts.mention(RISES, channel="299")
    async with asyncio.timeout(60):
        await talk.discord.until(lambda: all(one.acked for one in used))
    recovers.set()
    await talk.until(ANSWERS[BUILT], channel=direct)
    await talk.until(translate("discord_denied", "en"), channel=denied, by="109")
    await talk.until(ANSWERS[MADE], channel=world.dm("102").id, by="102")
    await talk.until(ANSWERS[RISES], channel="299")

    assert sorted(talk.system.asked) == sorted([BUILT, MADE, RISES])


async def test_denied_people_press_nothing_beneath_the_answers_to_others(talk: Talk) -> None:
    """Nobody is pinged by them, and what they think is not noted."""
    await talk.start(discord={"deny": ["102"]}, channel=[{"id": "discord:301/201", "ask": ["discord:301/103"]}])
    answer = await talk.answered(await talk.acts.mention(BUILT))
    presses = ("evidence", "up", "down", "ask", "retract")
    for action in presses:
        await talk.press(action, answer, user="102")
    await talk.discord.until(lambda: talk.sees(by="102").count(translate("discord_denied", "en")) == len(presses))

    assert talk.sees(by="102").count("only you see this") == len(presses)
    assert talk.discord.notified == []
    assert "102" not in talk.discord.modals


async def test_where_people_took_the_app_themselves_they_are_not_answered_by_default(talk: Talk) -> None:
    """They are told so in a line, and nothing is asked."""
    await talk.start()
    for name, options in (("ask", {"question": BUILT}), ("check", {"statement": BUILT}), ("sources", {})):
        used = await talk.acts.command(name, channel="221", **options)
        await talk.discord.until(lambda: used.acked)  # noqa: B023
        (told,) = (one for one in talk.discord.world.ours() if one.interaction == used.id)
        assert (told.only, told.content.replace("\u2060", "")) == ("101", translate("discord_not_here", "en"))

    assert talk.system.asked == talk.discord.refused == []


async def test_where_people_took_the_app_themselves_the_rules_of_their_dm_hold(talk: Talk) -> None:
    """Where settings allow it: the answer is theirs alone, with its buttons, and no stranger to the team reads ours."""
    await talk.start(discord={"user_install": True})
    for user, answered in (("101", True), ("104", False)):
        await talk.acts.command("ask", channel="221", user=user, question=BUILT)
        words = ANSWERS[BUILT] if answered else translate("abstained", "en").split(".")[0]
        await talk.until(words, channel="221", by=user)
        (answer,) = (one for one in talk.discord.world.ours() if one.only == user)
        await talk.press("evidence", answer, user=user)
        await talk.until(translate("evidence", "en"), channel="221", by=user)
        await talk.acts.command("sources", channel="221", user=user)
        await talk.until(translate("sources_heading", "en"), channel="221", by=user)
        assert ("light.md" in talk.sees("221", by=user)) is answered
    await talk.acts.command("ask", channel="221", question="And who made it?")
    await talk.done(3)

    assert not talk.system.talks[-1].turns[:-1]
    assert "share" not in str([one.components for one in talk.discord.world.ours()])
    assert {one.only for one in talk.discord.world.ours()} == {"101", "104"}
    assert {one.name for one in talk.discord.refused} <= {"get_member"}


async def test_who_asks_too_soon_has_to_wait_and_is_told_once(talk: Talk) -> None:
    """The same message once more is no second question, but an edit of it is."""
    await talk.start(discord={"cooldown_seconds": 80})
    asked = await talk.acts.mention(BUILT)
    await talk.until(ANSWERS[BUILT])
    await talk.acts.again(asked)
    await talk.acts.edit(asked, f"<@{BOT}> {MADE}")
    await talk.acts.mention(MADE)
    seen = await talk.until("Please wait")
    await talk.acts.mention(RISES)
    await talk.acts.command("ask", question=RISES)
    await talk.until("only you see this")
    await talk.acts.mention(RISES, user="102")
    await talk.until(ANSWERS[RISES])

    assert seen.count("Please wait") == 1
    assert talk.system.asked == [BUILT, RISES]


async def test_who_has_asked_in_other_words_has_to_wait_before_they_ask_again(talk: Talk) -> None:
    """Whatever was caught up with began no wait; the edit does."""
    await talk.start()
    await talk.acts.mention(BUILT)
    await talk.until(ANSWERS[BUILT])
    await talk.stop()
    asked = await talk.acts.mention(MADE, user="102")
    await talk.start(discord={"cooldown_seconds": 80})
    await talk.until(ANSWERS[MADE])
    await talk.acts.edit(asked, f"<@{BOT}> {RISES}")
    await talk.until(ANSWERS[RISES])
    await talk.acts.mention(BUILT, user="102")
    await talk.until("Please wait")

    assert talk.system.asked == [BUILT, MADE, RISES]


async def test_without_the_intent_mentions_dms_replies_and_commands_work(talk: Talk) -> None:
    """Follow-ups without a mention do not: Discord does not let the bot read them."""
    await talk.start(discord={"message_content": False})
    thread = await talk.acts.thread("The harbour")
    await talk.acts.mention(BUILT, channel=thread)
    await talk.until(ANSWERS[BUILT])
    await talk.acts.say(MADE, channel=thread)
    message = await talk.acts.say(ANSWERS[MADE], channel="202", user="102")
    await talk.acts.menu("Fact-check", message)
    await talk.until("only you see this", "[Evidence]", channel="202")

    assert talk.system.asked == [BUILT]


async def test_what_was_asked_meanwhile_is_answered_after_a_restart(talk: Talk) -> None:
    """Mentions, and follow-ups in threads that the bot is in; what was answered is known."""
    await talk.start()
    thread = await talk.acts.thread("The harbour")
    await talk.acts.mention(BUILT, channel=thread)
    await talk.until(ANSWERS[BUILT])
    await talk.stop()
    await talk.acts.say(MADE, channel=thread)
    await talk.acts.mention(RISES, channel="202")
    await talk.acts.say(RISES)
    await talk.start()
    await talk.until(ANSWERS[MADE])
    await talk.until(ANSWERS[RISES], channel="202")

    assert sorted(talk.system.asked) == sorted([BUILT, MADE, RISES])


async def test_commands_are_told_to_discord_only_where_they_changed(talk: Talk) -> None:
    """It lets nobody do so often."""
    await talk.start()
    await talk.stop()
    await talk.start()
    assert len(talk.discord.calls("overwrite_commands")) == 1
    await talk.stop()
    await talk.start(discord={"user_install": True})

    assert len(talk.discord.calls("overwrite_commands")) == 2
