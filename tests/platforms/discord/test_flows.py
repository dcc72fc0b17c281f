"""Flows that only Discord has, through the real discord.py."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.views.catalog import translate
from tests.platforms.bots import Bot, bot_in, eventually
from tests.platforms.discord.state import BOT, GUILD, THREAD, Channel, Message
from tests.platforms.discord.workspace import actions, workspaces
from tests.platforms.example_app import ANSWERS, BUILT, MADE, RISES
from tests.platforms.fake_server import BROKEN, LIMITED, Fault

RETRACT = translate("button_retract", "en")
ANSWERED = f"""\
Ana: @Footnote When was Skarholm lighthouse built?
Footnote, to Ana: Skarholm lighthouse was built in 1887. [1]
  [1] Skarholm lighthouse <https://skarholm.example/light.md>
  [Evidence] [👍] [👎] [{RETRACT}]"""
NONSENSE = "Do penguins love jazz?"
SMALL_TALK = ("Good morning!", "Thanks, Ana!", "lol", "Who are you?", "See you at lunch.", "ok")


@pytest.fixture
async def bot(filled: Path, tmp_path: Path) -> AsyncIterator[Bot]:
    async with bot_in(workspaces(speed=8)(), filled, tmp_path / "home", every=False) as opened:
        yield opened


async def press(bot: Bot, action: str, message: Message, *, user: str = "101") -> None:
    await bot.people.press(actions(message)[action], message.id, user=user)


async def take_back(bot: Bot, message: Message, *, user: str = "101") -> None:
    """Press the button that retracts an answer, and the one that confirms it."""
    before = {one.id for one in bot.server.state.ours()}
    await press(bot, "retract", message, user=user)

    def confirmations() -> list[Message]:
        return [one for one in bot.server.state.ours() if one.id not in before and "back" in actions(one)]

    await bot.server.until(confirmations)
    await press(bot, "back", confirmations()[0], user=user)


async def answered(bot: Bot, asked: str) -> Message:
    """Wait for the final answer to a message, and until the queue has it; return its last message."""
    answers, state = bot.people.answers, bot.server.state
    await bot.server.until(lambda: answers(asked) and "stop" not in actions(answers(asked)[-1]))
    last: Message = answers(asked)[-1]
    place = state.parent(state.channels[last.channel])
    await eventually(lambda: bot.app.queue.by_message(f"discord:{place.guild}/{place.id}", last.id))
    return last


async def done(bot: Bot, count: int) -> None:
    """Wait until so many questions were taken and are done."""
    for ticket in range(1, count + 1):
        await bot.outcome(ticket)


async def test_mention_is_answered_once(bot: Bot) -> None:
    await bot.start()
    asked = await bot.people.mention(BUILT)
    for _ in range(4):
        await bot.people.again(asked)
    assert (await bot.until(ANSWERS[BUILT])).removesuffix(" (edited)") == f"#general\n{ANSWERED}"
    await bot.people.again(asked)
    await bot.people.unfurl(asked)
    await bot.workspace.settled()

    assert bot.sees(by="102") == bot.sees()
    assert bot.system.asked == [BUILT]
    assert bot.server.pings == bot.server.refused == bot.server.limited == []


async def test_second_question_opens_a_thread_if_settings_say_so(bot: Bot) -> None:
    await bot.start(channel=[{"id": "discord:301/201", "threads": "long"}])
    asked = await bot.people.mention(BUILT)
    answer = await answered(bot, asked)
    second = await bot.people.say(MADE, reply=answer.id)
    await bot.until(ANSWERS[MADE])
    await bot.people.say(RISES, channel=second)
    seen = await bot.until(ANSWERS[RISES])

    assert f"  # {MADE}" in seen
    assert f"  Ana: {RISES}" in seen
    assert bot.system.asked == [BUILT, MADE, RISES]
    assert len(bot.system.talks[2].turns) > 2


@pytest.mark.parametrize("every", [True, False])
async def test_small_talk_is_not_answered(bot: Bot, *, every: bool) -> None:
    await bot.start(channel=[{"id": "discord:301/201", "answer": "every"}] if every else [])
    channel = "201" if every else await bot.people.thread("The harbour")
    await bot.people.mention(BUILT, channel=channel)
    await bot.until(ANSWERS[BUILT])
    for remark in SMALL_TALK:
        await bot.people.say(remark, channel=channel, user="102")
    changed = await bot.people.say(NONSENSE, channel="201", user="102")
    await done(bot, 1 + len(SMALL_TALK) + every)
    await bot.people.edit(changed, MADE)
    await bot.workspace.settled()

    assert bot.sees(channel).count("Footnote, to") == bot.sees(channel).count("[Evidence]") == 1


async def test_forum_post_is_answered_in_its_thread(bot: Bot) -> None:
    await bot.start(channel=[{"id": "discord:301/206", "answer": "every"}])
    await bot.people.post("Lighthouse", BUILT)
    await bot.until(ANSWERS[BUILT], channel="206")
    silent = await bot.people.post("Penguins", NONSENSE)
    await done(bot, 2)

    assert "Footnote" not in bot.sees(silent)
    assert bot.system.asked == [BUILT, NONSENSE]


async def test_thread_uses_the_settings_of_its_channel(bot: Bot) -> None:
    readers = [{"name": "handbook", "readers": ["discord:301/201"]}]
    await bot.start(corpus=readers)
    for channel, answered in (("201", True), ("202", False)):
        thread = await bot.people.thread("The harbour", channel=channel)
        await bot.people.mention(BUILT, channel=thread)
        words = ANSWERS[BUILT] if answered else translate("abstained", "en").split(".")[0]
        seen = await bot.until(words, channel=channel)
        assert (ANSWERS[BUILT] in seen) is answered


async def test_command_is_answered_where_it_was_used(bot: Bot) -> None:
    await bot.start()
    await bot.people.command("ask", question=BUILT)
    assert f"“{BUILT}”" in await bot.until(ANSWERS[BUILT], by="102")  # Discord shows others no options
    await bot.people.command("ask", question=MADE, private=True)
    await bot.until(ANSWERS[MADE])

    assert MADE not in bot.sees()
    assert ANSWERS[MADE] not in bot.sees(by="102")
    assert "Footnote (only you see this)" in bot.sees()
    assert bot.server.pings == bot.server.refused == []


async def test_statement_is_checked_by_command_and_context_menu(bot: Bot) -> None:
    await bot.start()
    await bot.people.command("check", statement=ANSWERS[BUILT])
    await bot.until("[Evidence]")
    message = await bot.people.say(ANSWERS[MADE], channel="202", user="102")
    await bot.people.menu("Fact-check", message)
    await bot.until("only you see this", "[Evidence]", channel="202")

    assert "Footnote" not in bot.sees("202", by="102")
    assert bot.system.asked == []


async def test_question_about_a_message_is_asked_in_a_modal(bot: Bot) -> None:
    await bot.start()
    message = await bot.people.say("I love the lighthouse of Skarholm.", user="102")
    await bot.people.menu("Ask about this message", message)
    await bot.modal("I love the lighthouse of Skarholm.")
    await bot.people.submit(question=BUILT)
    await bot.until(ANSWERS[BUILT])

    (asked,) = bot.system.asked
    assert asked == f"{BUILT}\n\n“I love the lighthouse of Skarholm.”"


async def test_commands_without_a_result_explain_why(bot: Bot) -> None:
    await bot.start(discord={"privacy": "We keep *nothing*."})
    empty = await bot.people.say(" ", user="102")
    await bot.people.command("privacy")
    await bot.until("We keep *nothing*.")
    await bot.people.menu("Fact-check", empty)
    await bot.until(translate("discord_no_text", "en"))
    await bot.people.command("sources")
    await bot.until(translate("sources_none", "en"))

    assert "Footnote" not in bot.sees(by="102")


async def test_sources_command_lists_each_page_once(bot: Bot) -> None:
    await bot.start()
    thread = await bot.people.thread("The harbour")
    await bot.people.mention(BUILT, channel=thread)
    await bot.until(ANSWERS[BUILT])
    await bot.people.mention(MADE, channel=thread)
    await bot.until(ANSWERS[MADE])
    await bot.people.command("sources", channel=thread)
    seen = await bot.until(translate("sources_heading", "en"))

    assert seen.count("Pier <https://skarholm.example/pier.md>") == 2


async def test_sources_in_a_channel_are_those_of_the_users_last_question(bot: Bot) -> None:
    await bot.start()
    await bot.people.command("ask", question=BUILT, private=True)
    await bot.until(ANSWERS[BUILT])
    await bot.people.mention(RISES, user="102")
    await bot.until(ANSWERS[RISES])
    await bot.people.command("ask", question=MADE, private=True, user="103")
    await bot.until(ANSWERS[MADE], by="103")
    await done(bot, 3)
    for user, page in (("101", "light"), ("103", "pier"), ("109", "tide")):
        seen = bot.sees(by=user).count(f"{page}.md")
        await bot.people.command("sources", user=user)
        await bot.until(translate("sources_heading", "en"), by=user)
        assert bot.sees(by=user).count(f"{page}.md") == seen + 1


async def test_mention_added_by_an_edit_is_answered_once(bot: Bot) -> None:
    await bot.start()
    said = [await bot.people.say(BUILT), await bot.people.say(RISES)]
    await bot.workspace.settled()
    await bot.people.edit(said[0], f"<@{BOT}> {BUILT}")
    await bot.people.edit(said[1], MADE)
    await bot.until(ANSWERS[BUILT])
    await bot.people.edit(said[0], f"<@{BOT}> {MADE}")
    await bot.until(ANSWERS[MADE])
    await bot.workspace.settled()

    assert [len(bot.people.answers(one)) for one in said] == [1, 0]


async def test_moderators_retract_any_answer_and_others_only_their_own(bot: Bot) -> None:
    await bot.start()
    for user, gone in (("102", False), ("109", True)):
        asked = await bot.people.mention(BUILT)
        answer = await answered(bot, asked)
        await take_back(bot, answer, user=user)
        if gone:
            await bot.server.until(lambda: answer.id not in bot.server.state.messages)  # noqa: B023
        else:
            await bot.until(translate("discord_not_yours", "en"), by=user)
    asked = await bot.people.mention(MADE)
    answer = await answered(bot, asked)
    await bot.people.menu("Take back this answer", answer.id, user="109")
    await bot.server.until(lambda: answer.id not in bot.server.state.messages)
    await bot.server.until(lambda: bot.sees(by="109").count(translate("discord_taken_back", "en")) == 2)


async def test_retraction_needs_a_confirmation(bot: Bot) -> None:
    await bot.start()
    asked = await bot.people.mention(BUILT)
    answer = await answered(bot, asked)
    await press(bot, "retract", answer)
    await bot.until(translate("retract_sure", "en"))
    (doubt,) = (message for message in bot.server.state.ours() if "back" in actions(message))
    assert doubt.only == "101"
    await press(bot, "no", doubt)
    assert ANSWERS[BUILT] in await bot.until("[Evidence]")
    await bot.server.until(lambda: translate("retract_sure", "en") not in bot.sees())
    await take_back(bot, answer)
    await bot.until(translate("discord_taken_back", "en"))
    await bot.server.until(lambda: ANSWERS[BUILT] not in bot.sees())


async def test_sharing_shows_nothing_until_it_is_done(bot: Bot) -> None:
    await bot.start(channel=[{"id": "discord:301/201", "ephemeral": True}])
    await bot.people.command("ask", question=BUILT)
    await bot.until(ANSWERS[BUILT])
    (answer,) = bot.server.state.ours()
    gate = asyncio.Event()
    bot.server.faults["create_message"] = [Fault().after(gate)]
    await press(bot, "share", answer)
    await bot.server.until(lambda: bot.server.calls("create_message"))
    assert "Footnote is thinking" not in bot.sees()
    gate.set()
    await bot.until(translate("share_done", "en"))


async def test_asking_a_person_about_a_private_answer_needs_a_confirmation(bot: Bot) -> None:
    await bot.start(channel=[{"id": "discord:301/201", "ask": ["discord:301/103"], "ephemeral": True}])
    await bot.people.command("ask", question=BUILT)
    await bot.until(ANSWERS[BUILT])
    (answer,) = bot.server.state.ours()
    for wanted in ("no", "yes"):
        await press(bot, "sure", answer)
        await bot.until(translate("ask_sure", "en"))
        assert bot.server.notified == []
        (asked,) = (message for message in bot.server.state.ours() if wanted in actions(message))
        assert asked.only == "101"
        await press(bot, wanted, asked)
        await bot.server.until(lambda: translate("ask_sure", "en") not in bot.sees())

    assert "@Cleo" in await bot.until("@Cleo", translate("ask_done", "en"))
    assert {who for _, who in bot.server.notified} == {"103"}


async def test_mention_in_a_private_channel_points_to_the_command(bot: Bot) -> None:
    await bot.start(channel=[{"id": "discord:301/201", "ephemeral": True}])
    await bot.people.mention(BUILT)

    assert translate("discord_ask_by_command", "en") in await bot.until("/ask")
    assert bot.system.asked == []


async def test_channel_settings_are_changed_by_command(bot: Bot) -> None:
    await bot.start(channel=[{"id": "discord:301/201", "ask": ["discord:301/103"]}])
    await bot.people.command("footnote", user="109")
    shown = await bot.until("corpora: handbook", "/footnote setting:KEY value:VALUE", by="109")
    assert "ask: @Cleo" in shown
    assert "discord:301" not in shown
    assert "/footnote setting:digest" in shown
    await bot.people.mention(NONSENSE)
    await bot.until(translate("abstained", "en"))
    await bot.people.command("footnote", user="109", setting="digest")
    assert NONSENSE in await bot.until(translate("digest_heading", "en", days=7, count=1), by="109")
    await bot.people.command("footnote", user="109", setting="ask", value="<@104>")
    await bot.until("allow ask to be “@Dora”", by="109")
    await bot.people.command("footnote", user="109", setting="paused", value="on")
    await bot.until(translate("channel_set", "en", key="paused", value="on"), by="109")
    await bot.people.mention(BUILT)

    assert translate("channel_paused", "en") in await bot.until("paused in this channel")
    (command,) = [one for one in bot.server.state.commands if one["name"] == "footnote"]
    assert command["default_member_permissions"] == "32"


async def test_other_servers_and_denied_users_are_not_answered(bot: Bot) -> None:
    await bot.start(discord={"deny": ["102", "401"]})
    await bot.people.mention(BUILT, channel="211", user="104")
    await bot.people.mention(BUILT, user="102")
    await bot.people.mention(BUILT, user="109")
    await bot.people.dm(BUILT, user="109")
    await bot.people.command("ask", question=BUILT, user="102")
    await bot.until(translate("discord_denied", "en"), by="102")
    await bot.people.command("ask", question=BUILT, channel="211", user="104")
    await bot.until(translate("discord_not_here", "en"), channel="211", by="104")
    await bot.people.mention(MADE)
    await bot.until(ANSWERS[MADE])

    assert bot.system.asked == [MADE]


@pytest.mark.parametrize(
    "fault", [Fault(), BROKEN, replace(LIMITED, retry_after=5.0)], ids=["slow", "broken", "limited"]
)
async def test_lookups_do_not_delay_deferrals(bot: Bot, fault: Fault) -> None:
    await bot.start(discord={"deny": ["401"]})
    recovers, state = asyncio.Event(), bot.server.state
    routes = ("get_member", "get_channel")
    bot.server.faults |= {route: [fault.after(recovers)] * 3 for route in routes}
    state.channels["299"] = Channel("299", "unheard of", THREAD, GUILD, {"101"}, parent="201")
    direct, denied = state.dm("101").id, state.dm("109").id
    used = [
        await bot.people.command("ask", question=BUILT, user=user, channel=state.dm(user).id) for user in ("101", "109")
    ]
    await bot.people.dm(MADE, user="102")
    await bot.people.mention(RISES, channel="299")
    async with asyncio.timeout(60):
        await bot.server.until(lambda: all(one.acked for one in used))
    recovers.set()
    await bot.until(ANSWERS[BUILT], channel=direct)
    await bot.until(translate("discord_denied", "en"), channel=denied, by="109")
    await bot.until(ANSWERS[MADE], channel=state.dm("102").id, by="102")
    await bot.until(ANSWERS[RISES], channel="299")

    assert sorted(bot.system.asked) == sorted([BUILT, MADE, RISES])


async def test_denied_users_cannot_press_buttons(bot: Bot) -> None:
    await bot.start(discord={"deny": ["102"]}, channel=[{"id": "discord:301/201", "ask": ["discord:301/103"]}])
    answer = await answered(bot, await bot.people.mention(BUILT))
    presses = ("evidence", "up", "down", "ask", "retract")
    for action in presses:
        await press(bot, action, answer, user="102")
    await bot.server.until(lambda: bot.sees(by="102").count(translate("discord_denied", "en")) == len(presses))

    assert bot.sees(by="102").count("only you see this") == len(presses)
    assert bot.server.notified == []
    assert "102" not in bot.server.modals


async def test_user_installations_are_not_answered_by_default(bot: Bot) -> None:
    await bot.start()
    for name, options in (("ask", {"question": BUILT}), ("check", {"statement": BUILT}), ("sources", {})):
        used = await bot.people.command(name, channel="221", **options)
        await bot.server.until(lambda: used.acked)  # noqa: B023
        (reply,) = (message for message in bot.server.state.ours() if message.interaction == used.id)
        assert (reply.only, reply.content.replace("\u2060", "")) == ("101", translate("discord_not_here", "en"))

    assert bot.system.asked == bot.server.refused == []


async def test_user_installations_follow_the_rules_of_their_dm(bot: Bot) -> None:
    await bot.start(discord={"user_install": True})
    for user, answered in (("101", True), ("104", False)):
        await bot.people.command("ask", channel="221", user=user, question=BUILT)
        words = ANSWERS[BUILT] if answered else translate("abstained", "en").split(".")[0]
        await bot.until(words, channel="221", by=user)
        (answer,) = (message for message in bot.server.state.ours() if message.only == user)
        await press(bot, "evidence", answer, user=user)
        await bot.until(translate("evidence", "en"), channel="221", by=user)
        await bot.people.command("sources", channel="221", user=user)
        await bot.until(translate("sources_heading", "en"), channel="221", by=user)
        assert ("light.md" in bot.sees("221", by=user)) is answered
    await bot.people.command("ask", channel="221", question="And who made it?")
    await done(bot, 3)

    assert not bot.system.talks[-1].turns[:-1]
    assert "share" not in str([one.components for one in bot.server.state.ours()])
    assert {one.only for one in bot.server.state.ours()} == {"101", "104"}
    assert {one.name for one in bot.server.refused} <= {"get_member"}


async def test_cooldown_is_reported_once(bot: Bot) -> None:
    await bot.start(discord={"cooldown_seconds": 80})
    asked = await bot.people.mention(BUILT)
    await bot.until(ANSWERS[BUILT])
    await bot.people.again(asked)
    await bot.people.edit(asked, f"<@{BOT}> {MADE}")
    await bot.people.mention(MADE)
    seen = await bot.until("Please wait")
    await bot.people.mention(RISES)
    await bot.people.command("ask", question=RISES)
    await bot.until("only you see this")
    await bot.people.mention(RISES, user="102")
    await bot.until(ANSWERS[RISES])

    assert seen.count("Please wait") == 1
    assert bot.system.asked == [BUILT, RISES]


async def test_edited_question_starts_a_cooldown(bot: Bot) -> None:
    await bot.start()
    await bot.people.mention(BUILT)
    await bot.until(ANSWERS[BUILT])
    await bot.stop()
    asked = await bot.people.mention(MADE, user="102")
    await bot.start(discord={"cooldown_seconds": 80})
    await bot.until(ANSWERS[MADE])
    await bot.people.edit(asked, f"<@{BOT}> {RISES}")
    await bot.until(ANSWERS[RISES])
    await bot.people.mention(BUILT, user="102")
    await bot.until("Please wait")

    assert bot.system.asked == [BUILT, MADE, RISES]


async def test_mentions_and_commands_work_without_the_intent(bot: Bot) -> None:
    await bot.start(discord={"message_content": False})
    thread = await bot.people.thread("The harbour")
    await bot.people.mention(BUILT, channel=thread)
    await bot.until(ANSWERS[BUILT])
    await bot.people.say(MADE, channel=thread)
    message = await bot.people.say(ANSWERS[MADE], channel="202", user="102")
    await bot.people.menu("Fact-check", message)
    await bot.until("only you see this", "[Evidence]", channel="202")

    assert bot.system.asked == [BUILT]


async def test_commands_are_registered_only_after_a_change(bot: Bot) -> None:
    await bot.start()
    await bot.stop()
    await bot.start()
    assert len(bot.server.calls("overwrite_commands")) == 1
    await bot.stop()
    await bot.start(discord={"user_install": True})

    assert len(bot.server.calls("overwrite_commands")) == 2
