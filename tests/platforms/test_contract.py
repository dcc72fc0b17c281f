"""The contract suite of platforms: what people meet, whatever platform they are on."""

import re
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from bot.types import DeliveryOutcome
from bot.views.catalog import translate
from storage.home.backup import restore_backup, write_backup
from storage.record.record_search import RecordFilter, RecordSearch
from tests.bot.test_pinned_answers import pin
from tests.platforms.bots import Bot, finished, text
from tests.platforms.contract import Street
from tests.platforms.houses import HOUSES, TRIED
from tests.platforms.systems import Gated, recite
from tests.platforms.world import ANSWERS, BOOK, BUILT, HOST, MADE, PAGES, RISES, RULES, fill

KEEPER = "Who lives beside it?"


@pytest.fixture(params=TRIED)
async def street(request: pytest.FixtureRequest) -> AsyncIterator[Street]:
    async with HOUSES[request.param]() as opened:
        yield opened


@pytest.fixture
async def bot(street: Street, filled: Path, tmp_path: Path) -> AsyncIterator[Bot]:
    home = Path(shutil.copytree(filled, tmp_path / "home"))
    async with AsyncExitStack() as stack:
        yield Bot(street, home, Gated(), stack)


async def test_a_question_is_answered_in_place_with_footnotes(bot: Bot) -> None:
    """One answer to one message, its sentence cited, its source linked by the stored address."""
    await bot.start()
    asks = await bot.ask()
    answer = await bot.answered(asks)

    assert text(answer).count(ANSWERS[BUILT]) == 1
    assert text(answer).count("[1]") == 2
    assert set(bot.street.links) == {f"{HOST}light.md"}
    assert bot.street.pings == bot.street.refused == []
    assert bot.street.pending == 0
    assert bot.street.seen(bot.street.channels[1], by=bot.street.people[0]) == ()
    (turn,) = await RecordSearch(bot.app.audit.database).find(RecordFilter())
    assert turn.asker_name.lower() == "ana"
    assert turn.channel_name


async def test_a_pinned_answer_is_said_again_and_names_who_pinned_it(bot: Bot) -> None:
    """To whoever asks the same; no system is asked."""
    await bot.start()
    await bot.answered(await bot.ask())
    (turn,) = await RecordSearch(bot.app.audit.database).find(RecordFilter())
    await pin(bot.app, turn.turn_id, "")

    answer = await bot.answered(await bot.ask())

    assert text(answer).count(ANSWERS[BUILT]) == 1
    assert translate("pinned", "en", name="Ana", day="2026-03-02") in text(answer)
    assert bot.system.asked == [BUILT]


async def test_the_same_event_five_times_is_one_question(bot: Bot) -> None:
    """However it arrives: while it waits, while it runs, and when it is done."""
    bot.system.shut.add(BUILT)
    await bot.start()
    asks = await bot.ask()
    await bot.street.again(asks)
    await bot.system.until_asked()
    await bot.street.again(asks)
    await bot.system.open()
    answer = await bot.answered(asks)
    await bot.street.again(asks)
    await bot.street.again(asks)
    await bot.street.until(lambda: not bot.street.pending)
    await bot.over(asks)

    assert bot.street.answer(asks) == answer
    assert bot.system.asked.count(BUILT) == 1


async def test_a_follow_up_knows_what_was_said_in_its_conversation(bot: Bot) -> None:
    """And nothing of what was said elsewhere."""
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


async def test_two_questions_in_one_thread_do_not_disturb_each_other(bot: Bot) -> None:
    """Each is answered by itself, one after the other."""
    bot.system.shut.add(BUILT)
    await bot.start()
    first = await bot.ask()
    await bot.system.until_asked()
    second = await bot.ask(MADE, thread=first, person=1)
    await bot.street.until(lambda: not bot.street.pending)
    assert bot.system.asked == [BUILT]
    await bot.system.open()
    one, other = await bot.answered(first), await bot.answered(second)

    assert (ANSWERS[BUILT] in text(one), ANSWERS[MADE] in text(one)) == (True, False)
    assert (ANSWERS[BUILT] in text(other), ANSWERS[MADE] in text(other)) == (False, True)


async def test_questions_of_a_channel_start_in_the_order_they_were_asked(bot: Bot) -> None:
    """And another channel does not wait for them."""
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


async def test_an_edited_question_is_asked_again_in_the_same_place(bot: Bot) -> None:
    """While it runs, and when it was answered: there is one post, and it answers what is asked now."""
    bot.system.shut.add(BUILT)
    await bot.start()
    asks = await bot.ask()
    await bot.system.until_asked()
    await bot.street.rewrite(asks, MADE)
    await bot.street.until(lambda: ANSWERS[MADE] in text(bot.street.answer(asks)))
    first = await bot.answered(asks)
    await bot.street.rewrite(asks, RISES)
    await bot.street.until(lambda: ANSWERS[RISES] in text(bot.street.answer(asks)))
    second = await bot.answered(asks)

    assert ANSWERS[MADE] in text(first)
    assert ANSWERS[MADE] not in text(second)
    assert [one.id for one in first][:1] == [one.id for one in second][:1]
    assert bot.system.asked == [BUILT, MADE, RISES]


@pytest.mark.parametrize("when", ["waiting", "running", "speaking", "done"])
async def test_a_deleted_question_leaves_nothing(bot: Bot, when: str) -> None:
    """Whenever that is: no post of ours stays, and the record says that it was taken back."""
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
        await bot.street.until(lambda: not bot.street.pending)
    await bot.street.erase(asks)
    await bot.street.until(lambda: not bot.street.pending)
    await bot.system.open()
    after = await bot.ask(RISES)
    await bot.answered(after)

    await bot.done(asks, DeliveryOutcome.RETRACTED)
    await bot.street.until(lambda: bot.street.answer(asks) == ())


@pytest.mark.parametrize("when", ["running", "speaking"])
async def test_stop_ends_an_answer_for_who_asked_and_for_nobody_else(bot: Bot, when: str) -> None:
    """What was said so far goes, and what stands there says that it was stopped."""
    (bot.system.later if when == "speaking" else bot.system.shut).add(BUILT)
    await bot.start()
    asks = await bot.ask()
    await (bot.system.until_said(BUILT) if when == "speaking" else bot.system.until_asked())
    await bot.street.until(lambda: bot.street.answer(asks))
    await bot.press("stop", asks, person=1)
    await bot.street.until(lambda: not bot.street.pending)
    assert not finished(bot.street.answer(asks))
    await bot.press("stop", asks)

    assert text(await bot.answered(asks)) == translate("stopped", "en")
    assert (await bot.over(asks)).outcome == DeliveryOutcome.STOPPED


async def test_an_answer_can_be_taken_back_by_who_asked_and_nobody_else(bot: Bot) -> None:
    """Its post goes; the record keeps what it was, and that it was taken back."""
    await bot.start()
    asks = await bot.ask()
    await bot.answered(asks)
    await bot.press("retract", asks, person=1)
    await bot.street.until(lambda: not bot.street.pending)
    assert bot.street.answer(asks)
    await bot.press("retract", asks)
    await bot.street.until(lambda: not bot.street.answer(asks) and not bot.street.pending)

    assert (await bot.over(asks)).outcome == DeliveryOutcome.RETRACTED


@pytest.mark.parametrize("action", ["retract", "evidence"])
async def test_buttons_work_after_a_restart(bot: Bot, action: str) -> None:
    """A button knows its question's number, and nothing else is needed."""
    await bot.start()
    asks = await bot.ask()
    await bot.answered(asks)
    await bot.stop()
    await bot.press(action, asks)
    await bot.start()
    await bot.street.until(lambda: not bot.street.pending)
    here, who = bot.street.channels[0], bot.street.people[0]

    if action == "retract":
        await bot.street.until(lambda: bot.street.answer(asks) == ())
    else:
        await bot.street.until(lambda: ANSWERS[BUILT] in text(bot.street.seen(here, by=who)[1:]))
        assert text(bot.street.seen(here, by=bot.street.people[1])) == text(bot.street.answer(asks))


async def test_a_question_that_waits_is_answered_by_the_next_start(bot: Bot) -> None:
    """Nothing that was acknowledged is lost by a shutdown, and nothing stands there twice."""
    bot.system.shut.add(BUILT)
    await bot.start(desk={"grace_seconds": 0})
    asks, waits = await bot.ask(), await bot.ask(MADE, person=1)
    await bot.system.until_asked(2)
    await bot.answered(waits)
    await bot.street.until(lambda: bot.street.answer(asks))
    await bot.stop()
    assert text(bot.street.answer(asks)) == translate("desk_resting", "en")
    await bot.system.open()
    await bot.start()
    await bot.street.until(lambda: ANSWERS[BUILT] in text(bot.street.answer(asks)))

    assert text(await bot.answered(asks)).count(ANSWERS[BUILT]) == 1
    assert text(bot.street.answer(waits)).count(ANSWERS[MADE]) == 1


async def test_an_answer_for_the_asker_alone_is_shown_once_and_can_be_shared_once(bot: Bot) -> None:
    """Nobody else sees it before; shared, everybody does, and it is not shared again."""
    await bot.start()
    asks = await bot.ask(only_asker=True)
    answer = await bot.answered(asks)
    here, (asker, other, _) = bot.street.channels[0], bot.street.people
    assert ANSWERS[BUILT] in text(answer)
    assert bot.street.seen(here, by=other) == ()
    await bot.press("share", asks)
    await bot.street.until(lambda: translate("share_done", "en") in text(bot.street.seen(here, by=asker)))
    await bot.press("share", asks)
    await bot.street.until(lambda: translate("share_already", "en") in text(bot.street.seen(here, by=asker)))

    assert text(bot.street.seen(here, by=other)).count(ANSWERS[BUILT]) == 1


async def test_who_did_not_ask_the_bot_is_not_bothered(bot: Bot) -> None:
    """Nothing is posted unless there is an answer, and then nothing before it."""
    bot.system.later.add(BUILT)
    await bot.start()
    nothing = await bot.ask("Penguins love jazz?", unasked=True)
    something = await bot.ask(BUILT, unasked=True)
    await bot.system.until_said(BUILT)
    assert bot.street.answer(something) == ()
    await bot.system.open()

    assert ANSWERS[BUILT] in text(await bot.answered(something))
    assert bot.street.answer(nothing) == ()
    assert (await bot.over(nothing)).outcome == DeliveryOutcome.SILENT
    assert bot.street.answer(nothing) == ()


@pytest.mark.parametrize("failure", ["limited", "broken", "lost"])
@pytest.mark.parametrize("call", ["post", "edit", "delete", "find"])
async def test_each_call_may_fail_once(bot: Bot, call: Any, failure: Any) -> None:
    """429, 5xx, an answer that is lost: what people see in the end is the same, and stands there once."""
    await bot.start()
    bot.system.shut.add(BUILT)
    bot.street.stumble(call, failure)
    asks = await bot.ask()
    await bot.system.until_asked()
    await bot.system.open()
    answer = await bot.answered(asks)
    assert text(answer).count(ANSWERS[BUILT]) == 1
    await bot.press("retract", asks)
    await bot.street.until(lambda: not bot.street.answer(asks) and not bot.street.pending)

    assert (await bot.over(asks)).outcome == DeliveryOutcome.RETRACTED


async def test_a_long_answer_is_whole(bot: Bot) -> None:
    """Over as many messages as it needs, in order, each sentence once; all of them go when it is taken back."""
    await fill(bot.home, BOOK)
    bot.system.inner = recite
    await bot.start()
    asks = await bot.ask("Which rules has the harbour book?")
    await bot.street.until(lambda: any("evidence" in one.buttons for one in bot.street.answer(asks)))
    answer = bot.street.answer(asks)
    said = re.sub(r"\s+", " ", text(answer))
    assert [said.count(rule) for rule in RULES] == [1] * len(RULES)
    assert sorted(RULES, key=said.index) == list(RULES)
    assert len(answer) > 1
    await bot.press("retract", asks)
    await bot.street.until(lambda: not bot.street.answer(asks))


async def test_an_archived_channel_keeps_nobody_else_from_an_answer(bot: Bot) -> None:
    """Its question is done with, and the record says why it could not be answered there."""
    await bot.start()
    await bot.street.archive(bot.street.channels[0])
    asks = await bot.ask()
    await bot.street.until(lambda: bot.street.refused)
    elsewhere = await bot.ask(channel=1)
    await bot.answered(elsewhere)
    await bot.stop()
    await bot.start()
    row = await bot.done(asks, DeliveryOutcome.UNDELIVERABLE)

    assert await bot.outcomes(row) == [DeliveryOutcome.UNDELIVERABLE]


async def test_an_answer_that_somebody_removed_is_not_posted_again(bot: Bot) -> None:
    """Somebody did not want it there: what is left of it goes too."""
    bot.system.shut.add(BUILT)
    await bot.start()
    asks = await bot.ask()
    await bot.system.until_asked()
    await bot.street.until(lambda: bot.street.answer(asks))
    for shown in bot.street.answer(asks):
        await bot.street.erase(shown.id)
    await bot.system.open()
    row = await bot.over(asks)

    assert bot.street.answer(asks) == ()
    assert row.outcome == DeliveryOutcome.RETRACTED


async def test_only_those_who_are_named_in_settings_are_ever_called(bot: Bot) -> None:
    """Once, by whoever wants a person's help."""
    person = bot.street.people[2]
    await bot.start(channel=[{"id": bot.id(), "ask": [f"{bot.street.name}:{bot.street.workspace}/{person}"]}])
    asks = await bot.ask("Does <@U2> or @everyone know <!here> penguins love jazz?")
    await bot.answered(asks)
    assert bot.street.pings == []
    await bot.press("ask", asks, person=1)
    await bot.street.until(lambda: bot.street.pings)
    await bot.press("ask", asks)
    await bot.street.until(lambda: not bot.street.pending)

    assert [person in ping for ping in bot.street.pings] == [True]


async def test_it_speaks_the_askers_language(bot: Bot) -> None:
    """In its own words; what it quotes stays as it is written."""
    bot.system.shut |= {question := "Wann wurde der Leuchtturm von Skarholm eigentlich gebaut, und von wem?"}
    await bot.start()
    asks = await bot.ask(question)
    await bot.system.until_asked()
    await bot.street.until(lambda: bot.street.answer(asks))
    assert translate("begun", "de") in text(bot.street.answer(asks))
    await bot.press("stop", asks)

    assert text(await bot.answered(asks)) == translate("stopped", "de")


async def test_what_people_said_before_is_handed_over(bot: Bot) -> None:
    """A conversation that began without the bot, over more than a page of the platform's."""
    street = bot.street
    here, (asker, other, _) = street.channels[0], street.people
    root = await street.say("Skarholm lighthouse is so pretty.", user=other, channel=here, silent=True)
    for number in range(4):
        await street.say(f"I agree, {number} times.", user=asker, channel=here, thread=root, silent=True)
    await bot.start()
    asks = await bot.ask("When was it built?", thread=root)
    await bot.answered(asks)

    (talk,) = bot.system.talks
    assert "I agree, 3 times." in [turn.text for turn in talk.earlier]
    assert all(turn.speaker == "user" for turn in talk.earlier)


async def test_what_it_knows_is_told_of_what_may_be_read_there(bot: Bot) -> None:
    """Elsewhere neither its name nor how much there is of it; in the language of whoever asks. Nothing of it pings."""
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
    assert bot.street.pings == bot.street.links == bot.street.refused == []


async def test_it_introduces_itself_once_where_it_is_invited(bot: Bot) -> None:
    """Never again there, also after a restart; and not at all where settings say so."""
    street, first, second = bot.street, *bot.street.channels[:2]
    await bot.start()
    if not (hasattr(street, "invite") and await street.invite(first)):
        pytest.skip("this platform tells the bot nothing of that")
    await street.until(lambda: "handbook (documents: 3" in text(street.seen(first, by=street.people[0])))
    await street.invite(first)
    await bot.stop()
    await bot.start(welcome=False)
    await street.invite(first)
    await street.invite(second)
    await bot.answered(await bot.ask())
    await bot.answered(await bot.ask(channel=1))

    assert text(street.seen(first, by=street.people[0])).count(translate("intro_mention", "en")) == 1
    assert translate("intro_mention", "en") not in text(street.seen(second, by=street.people[0]))
    assert street.refused == street.pings == []


async def test_what_was_answered_after_a_backup_is_not_answered_twice_once_it_is_restored(bot: Bot) -> None:
    """It is asked again, since nobody knows of it; its answer is found where it stands."""
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
    assert [one.id for one in bot.street.answer(asks)] == [one.id for one in before]
