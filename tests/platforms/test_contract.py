"""The contract suite: flows that are the same for users of every platform."""

import logging
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pytest

from bot.types import DeliveryOutcome
from bot.views.catalog import translate
from storage.home.backup import restore_backup, write_backup
from storage.record.record_search import RecordFilter, RecordSearch
from storage.types import EntryKind
from tests.bot.test_pinned_answers import pin
from tests.platforms.bots import Bot, finished, text
from tests.platforms.discord.state import SECRETS as DISCORD_SECRETS
from tests.platforms.example_app import ANSWERS, BOOK, BUILT, HOST, MADE, PAGES, RISES, RULES, fill
from tests.platforms.mattermost.state import TOKEN
from tests.platforms.slack.state import SECRETS as SLACK_SECRETS
from tests.platforms.systems import recite
from tests.platforms.workspace import Read

KEEPER = "Who lives beside it?"
SECRETS = (*SLACK_SECRETS, *DISCORD_SECRETS, TOKEN)


async def test_question_is_answered_in_place_with_footnotes(bot: Bot) -> None:
    await bot.start()
    asks = await bot.ask()
    answer = await bot.answered(asks)

    assert text(answer).count(ANSWERS[BUILT]) == 1
    assert text(answer).count("[1]") == 2
    assert set(bot.workspace.links) == {f"{HOST}light.md"}
    assert bot.workspace.pings == bot.workspace.refused == []
    assert bot.workspace.pending == 0
    assert bot.workspace.seen(bot.workspace.channels[1], by=bot.workspace.users[0]) == ()
    (turn,) = await RecordSearch(bot.app.audit.database).find(RecordFilter())
    assert turn.asker_name.lower() == "ana"
    assert turn.channel_name


async def test_pinned_answer_is_repeated_with_its_pinner(bot: Bot) -> None:
    await bot.start()
    await bot.answered(await bot.ask())
    (turn,) = await RecordSearch(bot.app.audit.database).find(RecordFilter())
    await pin(bot.app, turn.turn_id, "")

    answer = await bot.answered(await bot.ask())

    assert text(answer).count(ANSWERS[BUILT]) == 1
    assert translate("pinned", "en", name="Ana", day="2026-03-02") in text(answer)
    assert bot.system.asked == [BUILT]


async def test_repeated_event_is_one_question(bot: Bot) -> None:
    bot.system.shut.add(BUILT)
    await bot.start()
    asks = await bot.ask()
    await bot.workspace.again(asks)
    await bot.system.until_asked()
    await bot.workspace.again(asks)
    await bot.system.open()
    answer = await bot.answered(asks)
    await bot.workspace.again(asks)
    await bot.workspace.again(asks)
    await bot.workspace.until(lambda: not bot.workspace.pending)
    await bot.over(asks)

    assert bot.workspace.answer(asks) == answer
    assert bot.system.asked.count(BUILT) == 1


async def test_follow_up_knows_its_conversation_alone(bot: Bot) -> None:
    await bot.start()
    asks = await bot.ask()
    await bot.answered(asks)
    follows = await bot.ask(KEEPER, thread=asks)
    elsewhere = await bot.ask(KEEPER, channel=1)
    await bot.answered(elsewhere)

    assert "A keeper lives beside it." in text(await bot.answered(follows))
    alone, talked = sorted((talk.earlier for talk in bot.system.talks if talk.question.text == KEEPER), key=len)
    assert alone == ()
    assert ANSWERS[BUILT] in " ".join(turn.text for turn in talked)


async def test_questions_of_one_thread_are_answered_one_after_another(bot: Bot) -> None:
    bot.system.shut.add(BUILT)
    await bot.start()
    first = await bot.ask()
    await bot.system.until_asked()
    second = await bot.ask(MADE, thread=first, person=1)
    await bot.workspace.until(lambda: not bot.workspace.pending)
    assert bot.system.asked == [BUILT]
    await bot.system.open()
    one, other = await bot.answered(first), await bot.answered(second)

    assert (ANSWERS[BUILT] in text(one), ANSWERS[MADE] in text(one)) == (True, False)
    assert (ANSWERS[BUILT] in text(other), ANSWERS[MADE] in text(other)) == (False, True)


async def test_questions_of_a_channel_start_in_order(bot: Bot) -> None:
    bot.system.shut.add(BUILT)
    await bot.start(desk={"per_channel": 1})
    first = await bot.ask(BUILT)
    await bot.system.until_asked()
    rest = [await bot.ask(asked, person=1) for asked in (MADE, RISES)]
    elsewhere = await bot.ask(MADE, channel=1)
    await bot.answered(elsewhere)
    assert bot.system.asked == [BUILT, MADE]
    await bot.system.open()
    for asks in (first, *rest):
        await bot.answered(asks)

    assert bot.system.asked == [BUILT, MADE, MADE, RISES]


async def test_edited_question_is_answered_in_the_same_message(bot: Bot) -> None:
    bot.system.shut.add(BUILT)
    await bot.start()
    asks = await bot.ask()
    await bot.system.until_asked()
    await bot.workspace.rewrite(asks, MADE)
    await bot.workspace.until(lambda: ANSWERS[MADE] in text(bot.workspace.answer(asks)))
    first = await bot.answered(asks)
    await bot.workspace.rewrite(asks, RISES)
    await bot.workspace.until(lambda: ANSWERS[RISES] in text(bot.workspace.answer(asks)))
    second = await bot.answered(asks)
    await bot.workspace.rewrite(asks, "")
    await bot.workspace.until(lambda: translate("greeting", "en") in text(bot.workspace.answer(asks)))

    assert ANSWERS[MADE] in text(first)
    assert ANSWERS[MADE] not in text(second)
    assert [one.id for one in first][:1] == [one.id for one in second][:1]
    assert bot.system.asked[:3] == [BUILT, MADE, RISES]


@pytest.mark.parametrize("when", ["waiting", "running", "speaking", "done"])
async def test_deleted_question_retracts_its_answer(bot: Bot, when: str) -> None:
    await bot.start(desk={"per_channel": 1})
    if when == "waiting":
        bot.system.shut.add(MADE)
        await bot.ask(MADE, person=1)
        await bot.system.until_asked()
    (bot.system.later if when == "speaking" else bot.system.shut).add("" if when == "done" else BUILT)
    asks = await bot.ask()
    if when == "done":
        await bot.answered(asks)
    elif when == "speaking":
        await bot.system.until_said(BUILT)
    elif when == "running":
        await bot.system.until_asked()
    else:
        await bot.workspace.until(lambda: not bot.workspace.pending)
    await bot.workspace.erase(asks)
    await bot.workspace.until(lambda: not bot.workspace.pending)
    await bot.system.open()
    after = await bot.ask(RISES)
    await bot.answered(after)

    await bot.done(asks, DeliveryOutcome.RETRACTED)
    await bot.workspace.until(lambda: bot.workspace.answer(asks) == ())


@pytest.mark.parametrize("when", ["running", "speaking"])
async def test_only_the_asker_stops_an_answer(bot: Bot, when: str) -> None:
    (bot.system.later if when == "speaking" else bot.system.shut).add(BUILT)
    await bot.start()
    asks = await bot.ask()
    await (bot.system.until_said(BUILT) if when == "speaking" else bot.system.until_asked())
    await bot.workspace.until(lambda: bot.workspace.answer(asks))
    await bot.press("stop", asks, person=1)
    await bot.workspace.until(lambda: not bot.workspace.pending)
    assert not finished(bot.workspace.answer(asks))
    await bot.press("stop", asks)

    assert text(await bot.answered(asks)) == translate("stopped", "en")
    if bot.workspace.name != "mattermost":
        await bot.until_posted(translate(f"{bot.workspace.name}_not_yours", "en"), person=1)
    assert (await bot.over(asks)).outcome == DeliveryOutcome.STOPPED


async def test_only_the_asker_retracts_an_answer(bot: Bot) -> None:
    await bot.start()
    asks = await bot.ask()
    await bot.answered(asks)
    await bot.press("retract", asks, person=1)
    await bot.workspace.until(lambda: not bot.workspace.pending)
    assert bot.workspace.answer(asks)
    await bot.press("retract", asks)
    await bot.workspace.until(lambda: not bot.workspace.answer(asks) and not bot.workspace.pending)

    assert (await bot.over(asks)).outcome == DeliveryOutcome.RETRACTED


@pytest.mark.parametrize("action", ["retract", "evidence"])
async def test_buttons_work_after_a_restart(bot: Bot, action: str) -> None:
    await bot.start()
    asks = await bot.ask()
    await bot.answered(asks)
    await bot.stop()
    await bot.press(action, asks)
    await bot.start()
    await bot.workspace.until(lambda: not bot.workspace.pending)
    here, who = bot.workspace.channels[0], bot.workspace.users[0]

    if action == "retract":
        await bot.workspace.until(lambda: bot.workspace.answer(asks) == ())
    else:
        await bot.workspace.until(lambda: ANSWERS[BUILT] in text(bot.workspace.seen(here, by=who)[1:]))
        assert "of the record, which is signed next" in text(bot.workspace.seen(here, by=who)[1:])
        assert text(bot.workspace.seen(here, by=bot.workspace.users[1])) == text(bot.workspace.answer(asks))


async def test_waiting_question_is_answered_at_the_next_start(bot: Bot) -> None:
    bot.system.shut.add(BUILT)
    await bot.start(desk={"grace_seconds": 0})
    asks, waits = await bot.ask(), await bot.ask(MADE, person=1)
    await bot.system.until_asked(2)
    await bot.answered(waits)
    await bot.workspace.until(lambda: bot.workspace.answer(asks))
    await bot.workspace.settled()
    await bot.server.clock.sleep(6)  # a restart is announced only if earlier edits left half of the rate limit
    await bot.stop()
    assert text(bot.workspace.answer(asks)) == translate("desk_resting", "en")
    await bot.system.open()
    await bot.start()
    await bot.workspace.until(lambda: ANSWERS[BUILT] in text(bot.workspace.answer(asks)))

    assert text(await bot.answered(asks)).count(ANSWERS[BUILT]) == 1
    assert text(bot.workspace.answer(waits)).count(ANSWERS[MADE]) == 1


async def test_private_answer_can_be_shared_once(bot: Bot) -> None:
    await bot.start()
    asks = await bot.ask(only_asker=True)
    answer = await bot.answered(asks)
    here, (asker, other, _) = bot.workspace.channels[0], bot.workspace.users
    assert ANSWERS[BUILT] in text(answer)
    assert bot.workspace.seen(here, by=other) == ()
    await bot.press("share", asks)
    await bot.workspace.until(lambda: translate("share_done", "en") in text(bot.workspace.seen(here, by=asker)))
    await bot.press("share", asks)
    await bot.workspace.until(lambda: translate("share_already", "en") in text(bot.workspace.seen(here, by=asker)))

    assert text(bot.workspace.seen(here, by=other)).count(ANSWERS[BUILT]) == 1
    assert f"na asked “{BUILT}” and shared the answer." in text(bot.workspace.seen(here, by=other))
    assert translate("share_already", "en") not in text(bot.workspace.seen(here, by=other))


async def test_unaddressed_question_gets_an_answer_or_nothing(bot: Bot) -> None:
    bot.system.later.add(BUILT)
    await bot.start()
    nothing = await bot.ask("Penguins love jazz?", unasked=True)
    something = await bot.ask(BUILT, unasked=True)
    await bot.system.until_said(BUILT)
    assert bot.workspace.answer(something) == ()
    await bot.system.open()

    assert ANSWERS[BUILT] in text(await bot.answered(something))
    assert bot.workspace.answer(nothing) == ()
    assert (await bot.over(nothing)).outcome == DeliveryOutcome.SILENT
    assert bot.workspace.answer(nothing) == ()


@pytest.mark.parametrize("failure", ["limited", "broken", "lost"])
@pytest.mark.parametrize("call", ["post", "edit", "delete", "find"])
async def test_answer_is_shown_and_retracted_once_although_any_call_fails_once(
    bot: Bot, call: Any, failure: Any
) -> None:
    await bot.start()
    bot.system.shut.add(BUILT)
    bot.workspace.fail_next(call, failure)
    asks = await bot.ask()
    await bot.system.until_asked()
    await bot.system.open()
    answer = await bot.answered(asks)
    assert text(answer).count(ANSWERS[BUILT]) == 1
    await bot.press("retract", asks)
    await bot.workspace.until(lambda: not bot.workspace.answer(asks) and not bot.workspace.pending)

    assert (await bot.over(asks)).outcome == DeliveryOutcome.RETRACTED


async def test_long_answer_is_complete_and_in_order(bot: Bot) -> None:
    await fill(bot.home, BOOK)
    bot.system.inner = recite
    await bot.start()
    asks = await bot.ask("Which rules has the harbour book?")
    await bot.workspace.until(lambda: any("evidence" in message.buttons for message in bot.workspace.answer(asks)))
    answer = bot.workspace.answer(asks)
    said = re.sub(r"\s+", " ", text(answer))
    assert [said.count(rule) for rule in RULES] == [1] * len(RULES)
    assert sorted(RULES, key=said.index) == list(RULES)
    assert len(answer) > 1
    await _read_evidence(bot, asks, RULES)
    await bot.press("retract", asks)
    await bot.workspace.until(lambda: not bot.workspace.answer(asks))


async def _read_evidence(bot: Bot, asks: str, quotes: Sequence[str]) -> None:
    """Open the evidence of an answer, and turn its pages until each quote was seen, in this order."""
    here, who = bot.workspace.channels[0], bot.workspace.users[0]
    before = len(bot.workspace.seen(here, by=who))

    def shown() -> str:
        return re.sub(r"\s+", " ", text(bot.workspace.seen(here, by=who)[before:]))

    await bot.press("evidence", asks)
    for number, quote in enumerate(quotes):
        if number and quote not in shown():
            await bot.workspace.turn_page(who)
        await bot.workspace.until(lambda: quote in shown())  # noqa: B023


async def test_archived_channel_blocks_no_other(bot: Bot) -> None:
    await bot.start()
    await bot.workspace.archive(bot.workspace.channels[0])
    asks = await bot.ask()
    await bot.workspace.until(lambda: bot.workspace.refused)
    elsewhere = await bot.ask(channel=1)
    await bot.answered(elsewhere)
    await bot.stop()
    await bot.start()
    row = await bot.done(asks, DeliveryOutcome.UNDELIVERABLE)

    assert [body["outcome"] for body in await bot.bodies(row, EntryKind.DELIVERED)] == [DeliveryOutcome.UNDELIVERABLE]


async def test_answer_removed_while_in_progress_is_retracted(bot: Bot) -> None:
    bot.system.shut.add(BUILT)
    await bot.start()
    asks = await bot.ask()
    await bot.system.until_asked()
    await bot.workspace.until(lambda: bot.workspace.answer(asks))
    for shown in bot.workspace.answer(asks):
        await bot.workspace.erase(shown.id)
    await bot.system.open()
    await bot.done(asks, DeliveryOutcome.RETRACTED)

    assert bot.workspace.answer(asks) == ()


@pytest.mark.parametrize("bot", ["discord", "mattermost"], indirect=True)
async def test_final_answer_removed_by_a_user_is_retracted(bot: Bot) -> None:
    await bot.start()
    asks = await bot.ask()
    (shown,) = await bot.answered(asks)
    await bot.done(asks)
    await bot.workspace.erase(shown.id)

    row = await bot.done(asks, DeliveryOutcome.RETRACTED)
    assert any("the answer was retracted" in str(entry.body) for entry in await bot.app.audit.turn(row.turn_id))


async def test_mention_without_words_is_greeted(bot: Bot) -> None:
    await bot.start()

    assert translate("greeting", "en") in text(await bot.answered(await bot.ask("")))


async def test_missed_questions_edits_and_deletions_are_handled_at_the_next_start(bot: Bot) -> None:
    await bot.start()
    edited, deleted = await bot.ask(), await bot.ask(RISES, person=1)
    await bot.answered(edited)
    await bot.answered(deleted)
    await bot.stop()
    missed = await bot.ask(MADE, channel=1)
    await bot.workspace.rewrite(edited, RISES)
    await bot.workspace.erase(deleted)
    await bot.start()

    assert ANSWERS[MADE] in text(await bot.answered(missed))
    await bot.workspace.until(lambda: ANSWERS[RISES] in text(bot.workspace.answer(edited)))
    await bot.done(deleted, DeliveryOutcome.RETRACTED)


async def test_follow_up_in_a_conversation_of_the_bot_needs_no_mention(bot: Bot) -> None:
    bot.workspace.every = False
    await bot.start()
    asks = await bot.ask()
    (answer, *_) = await bot.answered(asks)
    await bot.done(asks)
    root = answer.id if bot.workspace.name == "discord" else asks
    aside = await bot.ask(MADE, unasked=True)
    follows = await bot.ask(MADE, thread=root, unasked=True, person=1)

    assert ANSWERS[MADE] in text(await bot.answered(follows))
    assert bot.workspace.answer(aside) == ()
    assert bot.system.asked == [BUILT, MADE]


@pytest.mark.parametrize("bot", ["slack", "discord"], indirect=True)
async def test_admin_makes_an_answer_an_example(bot: Bot) -> None:
    await bot.start(**bot.workspace.admin_settings(1))
    asks = await bot.ask()
    await bot.answered(asks)
    await bot.press("up", asks)
    await bot.until_posted(translate("feedback_noted", "en"))
    await bot.press("up", asks, person=1)

    def offers() -> list[Read]:
        workspace = bot.workspace
        seen = workspace.seen(workspace.channels[0], by=workspace.users[1])
        return [one for one in seen if "example" in one.buttons]

    await bot.workspace.until(offers)
    await bot.workspace.press("example", offers()[0].id, user=bot.workspace.users[1])
    await bot.until_posted(translate("example_done", "en"), person=1)

    (example,) = await bot.app.examples.all()
    assert example.by == bot.user_id(1)
    given = await bot.bodies(await bot.row(asks), EntryKind.FEEDBACK)
    assert [(one["what"], one["by"]) for one in given][:2] == [("up", bot.user_id(0)), ("up", bot.user_id(1))]
    assert (given[-1]["what"], given[-1]["state"]) == ("example", "added")


@pytest.mark.parametrize("bot", ["slack", "discord"], indirect=True)
async def test_user_comments_on_a_bad_answer_in_a_modal(bot: Bot) -> None:
    await bot.start()
    asks = await bot.ask()
    await bot.answered(asks)
    user = bot.workspace.users[1]
    await bot.press("down", asks, person=1)
    await bot.workspace.until(lambda: bot.workspace.modal(user))
    await bot.people.submit(user=user, text="It was 1888.", missed="missed")
    # The thanks are a message, or replace the modal.
    await bot.workspace.until(lambda: "[Send]" not in bot.workspace.modal(user))
    await bot.until_posted("Thank", person=1)

    given = await bot.bodies(await bot.row(asks), EntryKind.FEEDBACK)
    assert [(one["what"], one["by"], one["comment"], one.get("missed")) for one in given] == [
        ("down", bot.user_id(1), "", None),
        ("down", bot.user_id(1), "It was 1888.", True),
    ]


async def test_only_users_named_in_settings_are_mentioned(bot: Bot) -> None:
    person = bot.workspace.users[2]
    await bot.start(channel=[{"id": bot.id(), "ask": [f"{bot.workspace.name}:{bot.workspace.team}/{person}"]}])
    asks = await bot.ask("Does <@U2> or @everyone know <!here> penguins love jazz?")
    await bot.answered(asks)
    assert bot.workspace.pings == []
    await bot.press("ask", asks, person=1)
    await bot.workspace.until(lambda: bot.workspace.pings)
    await bot.press("ask", asks)
    await bot.workspace.until(lambda: not bot.workspace.pending)

    assert [person in ping for ping in bot.workspace.pings] == [True]


async def test_logs_contain_no_secret_and_no_message(bot: Bot, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO if bot.workspace.name == "discord" else logging.DEBUG)  # discord.py logs its frames
    await bot.start()
    asks = await bot.ask(f"{BUILT} MARKED WORDS")
    await bot.answered(asks)
    await bot.answered(await bot.ask(f"{MADE} MARKED WORDS", only_asker=True))
    await bot.press("evidence", asks)
    await bot.workspace.until(lambda: not bot.workspace.pending)
    await bot.stop()
    logged = "\n".join(f"{record.getMessage()} {vars(record)}" for record in caplog.records if record.name != "asyncio")

    assert not [secret for secret in ("MARKED WORDS", *SECRETS) if secret in logged]


async def test_bot_answers_in_the_askers_language(bot: Bot) -> None:
    bot.system.shut |= {question := "Wann wurde der Leuchtturm von Skarholm eigentlich gebaut, und von wem?"}
    await bot.start()
    asks = await bot.ask(question)
    await bot.system.until_asked()
    await bot.workspace.until(lambda: bot.workspace.answer(asks))
    assert translate("begun", "de") in text(bot.workspace.answer(asks))
    await bot.press("stop", asks)

    assert text(await bot.answered(asks)) == translate("stopped", "de")


async def test_earlier_messages_are_read_over_pages(bot: Bot) -> None:
    workspace = bot.workspace
    here, (asker, other, _) = workspace.channels[0], workspace.users
    root = await workspace.say("Skarholm lighthouse is so pretty.", user=other, channel=here, silent=True)
    for number in range(4):
        await workspace.say(f"I agree, {number} times.", user=asker, channel=here, thread=root, silent=True)
    await bot.start()
    asks = await bot.ask("When was it built?", thread=root)
    await bot.answered(asks)

    (talk,) = bot.system.talks
    assert "I agree, 3 times." in [turn.text for turn in talk.earlier]
    assert all(turn.speaker == "user" for turn in talk.earlier)


async def test_introduction_names_only_readable_corpora(bot: Bot) -> None:
    section = "Tides <!channel> @everyone [now](https://evil.example)"
    await fill(bot.home, PAGES | {"tide.md": {"title": "Tides <@U1>", section: f"{ANSWERS[RISES]} It falls by night."}})
    await bot.start(corpus=[{"name": "handbook", "visible_to": [bot.id(0)]}])
    here = text(await bot.answered(await bot.ask("What do you know?")))
    german = text(await bot.answered(await bot.ask("Wer bist du?")))
    elsewhere = text(await bot.answered(await bot.ask("help", channel=1)))

    assert "handbook (documents: 3, as of " in here
    assert "handbook (Dokumente: 3, Stand " in german
    assert "What does “Tides" in here
    assert "handbook" not in elsewhere
    assert translate("intro_nothing", "en") in elsewhere
    assert bot.workspace.pings == bot.workspace.links == bot.workspace.refused == []


async def test_invited_bot_introduces_itself_once(bot: Bot) -> None:
    workspace, first, second = bot.workspace, *bot.workspace.channels[:2]
    await bot.start()
    await workspace.invite(first)
    await workspace.until(lambda: "handbook (documents: 3" in text(workspace.seen(first, by=workspace.users[0])))
    await workspace.invite(first)
    await bot.stop()
    await bot.start(welcome=False)
    await workspace.invite(first)
    await workspace.invite(second)
    await bot.answered(await bot.ask())
    await bot.answered(await bot.ask(channel=1))

    assert text(workspace.seen(first, by=workspace.users[0])).count(translate("intro_mention", "en")) == 1
    assert translate("intro_mention", "en") not in text(workspace.seen(second, by=workspace.users[0]))
    assert workspace.refused == workspace.pings == []


async def test_restored_backup_answers_nothing_twice(bot: Bot) -> None:
    await bot.start()
    await bot.answered(await bot.ask(RISES, channel=1))
    kept = bot.home.with_name("kept.tar")
    write_backup(bot.home, kept, version="1", made=datetime.now(UTC), progress=lambda *_: None)
    asks = await bot.ask()
    before = await bot.answered(asks)
    await bot.stop()
    (bot.home / "footnote.db").unlink()
    restore_backup(kept, bot.home, lambda *_: None)

    await bot.start()
    await bot.system.until_asked(3)
    await bot.done(asks)
    assert [one.id for one in bot.workspace.answer(asks)] == [one.id for one in before]
