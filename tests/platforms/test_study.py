"""A study: two systems answer a channel's questions by turns, blindly, and users rate their answers."""

import json
from collections.abc import Mapping
from typing import Any

import pytest

from bot.views.catalog import translate
from pipeline.systems import SYSTEMS
from pipeline.types import Conversation, Status
from storage.record.comparisons import Comparisons
from storage.record.erasure import ErasureTarget, RecordErasure
from storage.types import EntryKind
from tests.pipeline.world import registered
from tests.platforms.bots import Bot, eventually, text
from tests.platforms.example_app import ANSWERS, BUILT, MADE, RISES
from tests.platforms.mattermost.state import ANA, BEN

PAIR = ("wikichat", "retrieve-then-generate")
EMOJI = ("zero", "one", "two", "three", "four", "five")
EVERYWHERE = pytest.mark.parametrize("bot", ["slack", "discord", "mattermost", "mattermost over HTTP"], indirect=True)


async def start(bot: Bot) -> list[str]:
    """Start a bot in which user 0 is an admin; return a list to which the names of answering systems are added."""
    ran = list[str]()

    def build(name: str) -> Any:
        async def answer(talk: Conversation, kit: Any) -> Status:
            ran.append(name)
            return await bot.system.inner(talk, kit)

        return answer

    bot.changes["systems"] = {**SYSTEMS, **registered(**{name: build(name) for name in (*PAIR, "extractive")})}
    await bot.start(channel=[{"id": bot.id(), "study": list(PAIR)}], **bot.workspace.admin_settings(0))
    return ran


async def command(bot: Bot, value: str, *, person: int = 0) -> None:
    user = bot.workspace.users[person]
    if bot.workspace.name == "slack":
        await bot.people.command("/footnote", f"study {value}", user=user)
    elif bot.workspace.name == "discord":
        await bot.people.command("footnote", user=user, setting="study", value=value)
    else:
        await bot.ask(f"!footnote study {value}", person=person)


async def agree(bot: Bot) -> None:
    await command(bot, "on")
    await bot.until_posted("study is now: on")


async def rate(bot: Bot, asks: str, rating: int, comment: str = "", *, person: int = 0) -> None:
    """Rate an answer by the platform's form, or by a reaction."""
    workspace, user = bot.workspace, bot.workspace.users[person]
    if workspace.name == "mattermost" and not workspace.http:
        (shown,) = [one for one in workspace.answer(asks) if "rate" in one.buttons]
        bot.server.react(user, bot.server.state.posts[shown.id], EMOJI[rating])
        return
    if workspace.name == "slack":
        bot.server.state.views.pop(user, None)  # the form of an earlier rating is closed
    await bot.press("rate", asks, person=person)
    label = translate(f"{workspace.name}_comment_label", "en")
    await workspace.until(lambda: label in workspace.modal(user))
    people = workspace if workspace.name == "mattermost" else bot.people
    await people.submit(user=user, rating=str(rating), text=comment)


async def acts(bot: Bot, asks: str, count: int) -> list[Mapping[str, Any]]:
    """Wait until so many acts on an answer are recorded, and return them."""

    async def recorded() -> list[Mapping[str, Any]]:
        bodies = await bot.bodies(await bot.row(asks), EntryKind.FEEDBACK)
        return bodies if len(bodies) >= count else []

    return await eventually(recorded)  # type: ignore[no-any-return]


@EVERYWHERE
async def test_agreed_channel_is_answered_by_turns_and_blindly(bot: Bot) -> None:
    ran = await start(bot)
    before = await bot.ask()
    assert "up" in {action for message in await bot.answered(before) for action in message.buttons}
    if bot.workspace.name != "discord":  # it shows the command only to admins
        await command(bot, "on", person=1)
        await bot.until_posted(translate("channel_admins", "en"), person=1)
    await agree(bot)
    asked = [await bot.ask(question) for question in (BUILT, MADE, RISES, BUILT)]
    answers = [await bot.answered(message) for message in asked]
    notice = translate("study_notice", "en")

    assert ran[0] == "extractive"
    assert set(ran[1:3]) == set(ran[3:]) == set(PAIR)
    assert [notice in text(answer) for answer in answers] == [True, False, False, False]
    assert ANSWERS[MADE] in text(answers[1])
    assert "up" not in {action for answer in answers for message in answer for action in message.buttons}
    shown = json.dumps([bot.workspace.read_payloads(message) for message in asked], default=str)
    assert not any(name in shown + " ".join(bot.posted(person=1)) for name in (*PAIR, "extractive"))
    found = await Comparisons(bot.app.audit.database).answers()
    assert ([answer.system for answer in found], {answer.systems for answer in found}) == (ran[1:], {PAIR})
    (agreed,) = await bot.app.audit.turn(bot.id())
    assert (agreed.body["key"], agreed.body["now"], agreed.body["by"]) == ("study", list(PAIR), bot.user_id(0))


@pytest.mark.parametrize("bot", ["mattermost"], indirect=True)
async def test_fact_checks_take_no_turn(bot: Bot) -> None:
    ran = await start(bot)
    await agree(bot)
    for asks in (f"!check {ANSWERS[BUILT]}", BUILT, MADE):
        answer = await bot.answered(await bot.ask(asks))
        assert (translate("study_notice", "en") in text(answer)) == (asks == BUILT)

    assert set(ran[-2:]) == set(PAIR)


@EVERYWHERE
async def test_last_rating_of_a_user_counts_until_they_are_erased(bot: Bot) -> None:
    await start(bot)
    await agree(bot)
    asks = await bot.ask()
    await bot.answered(asks)
    await rate(bot, asks, 2)
    await acts(bot, asks, 1)
    await rate(bot, asks, 4, "It was 1887.", person=1)
    await acts(bot, asks, 2)
    await rate(bot, asks, 5)
    given = await acts(bot, asks, 3)
    comments = bot.workspace.name != "mattermost" or bot.workspace.http
    study = Comparisons(bot.app.audit.database)

    assert [(body["what"], body["rating"], body["by"]) for body in given] == [
        ("rated", 2, bot.user_id(0)),
        ("rated", 4, bot.user_id(1)),
        ("rated", 5, bot.user_id(0)),
    ]
    assert [body["comment"] for body in given] == ["", "It was 1887." if comments else "", ""]
    assert [(rating.person, rating.rating) for rating in await study.ratings()][1:] == [
        (bot.user_id(1), 4),
        (bot.user_id(0), 5),
    ]
    await RecordErasure(bot.app.audit.database).erase(ErasureTarget(person=bot.user_id(1)), why="asked", by="terminal")
    assert {rating.person for rating in await study.ratings()} == {bot.user_id(0)}


@EVERYWHERE
async def test_user_leaves_the_comparison_and_returns(bot: Bot) -> None:
    ran = await start(bot)
    await agree(bot)
    asks = await bot.ask()
    await bot.answered(asks)
    await rate(bot, asks, 3)
    await acts(bot, asks, 1)
    await rate(bot, asks, 0)
    await acts(bot, asks, 2)
    await bot.until_posted(translate("study_left", "en"))
    left = await bot.ask(MADE)
    assert "up" in {action for message in await bot.answered(left) for action in message.buttons}
    await rate(bot, asks, 3)  # as before
    await acts(bot, asks, 3)
    await bot.answered(await bot.ask(RISES))

    assert (ran[1], {ran[0], ran[2]} <= set(PAIR)) == ("extractive", True)


@EVERYWHERE
async def test_withdrawn_agreement_ends_the_study(bot: Bot) -> None:
    ran = await start(bot)
    await agree(bot)
    asks = await bot.ask()
    await bot.answered(asks)
    await command(bot, "off")
    await bot.until_posted("study is now: off")
    await bot.answered(await bot.ask(MADE))
    await rate(bot, asks, 4)
    if bot.workspace.name == "mattermost" and bot.workspace.http:
        assert bot.server.dialogs[ANA]
    else:
        await bot.until_posted(translate("study_over", "en"))

    assert ran[1:] == ["extractive"]
    assert await bot.bodies(await bot.row(asks), EntryKind.FEEDBACK) == []
    changes = [entry.body["now"] for entry in await bot.app.audit.turn(bot.id())]
    assert changes == [list(PAIR), None]


@pytest.mark.parametrize("bot", ["mattermost over HTTP"], indirect=True)
async def test_form_of_another_user_is_refused(bot: Bot) -> None:
    await start(bot)
    await agree(bot)
    asks = await bot.ask()
    await bot.answered(asks)
    await bot.press("rate", asks)
    await bot.workspace.until(lambda: bot.workspace.modal(ANA))

    assert (await bot.workspace.submit(user=ANA, forged=BEN, rating="5"))[0] == 401
    assert await bot.workspace.submit(user=ANA, rating="5", text="Good.") == (200, {})
    (given,) = await acts(bot, asks, 1)
    assert (given["rating"], given["by"], given["comment"]) == (5, bot.user_id(0), "Good.")
