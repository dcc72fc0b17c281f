"""Flows that only Mattermost has: teams, threads, DMs, commands by message, the WebSocket."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from bot.desk.platform_port import CannotPost
from bot.platforms.mattermost.actions import PATH
from bot.platforms.mattermost.messages import Callback
from bot.types import DeliveryOutcome
from bot.views.catalog import translate
from bot.views.turn_view import ButtonAction
from storage.record.record_search import RecordFilter, RecordSearch
from tests.platforms.bots import Bot, bot_in, text
from tests.platforms.example_app import ANSWERS, BUILT, MADE, RISES
from tests.platforms.fake_server import Fault
from tests.platforms.mattermost.state import ANA, BEN, ELSEWHERE, FEW, GENERAL, TEAM, TOKEN
from tests.platforms.mattermost.workspace import workspaces


@pytest.fixture(params=[False])
async def bot(request: pytest.FixtureRequest, filled: Path, tmp_path: Path) -> AsyncIterator[Bot]:
    """Return a bot, reached over HTTP or not."""
    async with bot_in(workspaces(http=request.param)(), filled, tmp_path / "home") as opened:
        yield opened


async def until_told(bot: Bot, user: str, words: str) -> None:
    """Wait until a user has a text in their DM."""
    await bot.workspace.until(lambda: any(words in message.text for message in bot.workspace.seen(GENERAL, by=user)))


async def test_unnamed_teams_and_integrations_are_not_answered(bot: Bot) -> None:
    await bot.start()
    for channel in (ELSEWHERE, FEW):
        await bot.workspace.write(f"@footnote {BUILT}", user=BEN, channel=channel)
    made = {"props": {"from_webhook": "true"}}
    await bot.workspace.write(f"@footnote {BUILT}", user=BEN, channel=GENERAL, **made)
    await bot.workspace.write(f"@footnote {BUILT}", user=BEN, channel=GENERAL, kind="system_join_channel")
    await bot.workspace.until(lambda: not bot.workspace.pending)

    assert bot.posted() == []
    assert bot.system.asked == []


@pytest.mark.parametrize(
    ("readers", "change", "reads"),
    [
        (["*"], {}, ANSWERS[BUILT]),
        (["*"], {"roles": "system_guest"}, ""),
        (["*"], {"remote_id": "other"}, ""),
        ([f"mattermost:{TEAM}/{ANA}"], {}, ANSWERS[BUILT]),
        ([f"mattermost:{TEAM}/{BEN}"], {}, ""),
    ],
)
async def test_dm_contains_only_corpora_readable_by_its_user(
    bot: Bot, readers: list[str], change: dict[str, Any], reads: str
) -> None:
    for name, value in change.items():
        setattr(bot.server.state.users[ANA], name, value)
    await bot.start(corpus=[{"name": "handbook", "visible_to": readers}])
    asks = await bot.ask(dm=True)
    await bot.workspace.until(
        lambda: bot.workspace.answer(asks) and "stop" not in bot.workspace.answer(asks)[-1].buttons
    )

    assert (ANSWERS[BUILT] in text(bot.workspace.answer(asks))) is bool(reads)


async def test_deleted_root_retracts_all_answers_of_its_thread(bot: Bot) -> None:
    await bot.start()
    root = await bot.workspace.say("Lunch?", user=BEN, channel=GENERAL, silent=True)
    asks = await bot.ask(thread=root)
    await bot.answered(asks)
    await bot.workspace.erase(root)

    await bot.done(asks, DeliveryOutcome.RETRACTED)


async def test_answer_is_reposted_if_posts_cannot_be_edited(bot: Bot) -> None:
    bot.system.shut.add(BUILT)
    await bot.start()
    asks = await bot.ask()
    await bot.system.until_asked()
    await bot.workspace.until(lambda: bot.workspace.answer(asks))
    (before,) = bot.workspace.answer(asks)
    bot.server.edit_limit = 0
    await bot.system.open()
    (after,) = await bot.answered(asks)

    assert ANSWERS[BUILT] in after.text
    assert bot.server.state.posts[before.id].delete_at


async def test_only_admins_change_a_channel_by_message(bot: Bot) -> None:
    await bot.start(mattermost={"admins": [f"mattermost:{TEAM}/{ANA}"]})
    await bot.ask("!footnote paused on", person=1)
    await until_told(bot, BEN, translate("channel_admins", "en"))
    await bot.ask("!footnote paused on")
    await until_told(bot, ANA, "paused is now: on")
    await bot.ask("!footnote")
    await until_told(bot, ANA, "!footnote KEY VALUE")

    assert translate("channel_paused", "en") in text(await bot.answered(await bot.ask()))


async def test_commands_check_list_sources_and_show_help(bot: Bot) -> None:
    await bot.start()
    checks = await bot.ask(f"!check {ANSWERS[BUILT]}")
    assert translate("verdict_supports", "en") in text(await bot.answered(checks))
    await bot.ask("!sources", thread=checks)
    await until_told(bot, ANA, "Skarholm lighthouse")
    await bot.ask("!help", dm=True)
    await until_told(bot, ANA, "!private")


async def test_button_on_a_post_with_a_copied_answer_mark_has_no_effect(bot: Bot) -> None:
    await bot.start()
    asks = await bot.ask()
    (answer,) = await bot.answered(asks)
    props = bot.server.state.posts[answer.id].props
    forged = await bot.workspace.write("Press here.", user=BEN, channel=GENERAL, props=props)
    bot.workspace.press_anyway("retract", bot.server.state.posts[forged], ANA)
    await bot.workspace.until(lambda: not bot.workspace.pending)

    assert bot.workspace.answer(asks) == (answer,)


@pytest.mark.parametrize("bot", [True], indirect=True)
async def test_button_press_with_a_forged_signature_is_refused(bot: Bot) -> None:
    await bot.start()
    asks = await bot.ask()
    await bot.answered(asks)
    guessed = Callback("", b"another secret").sign(ButtonAction.RETRACT, 1)
    statuses = []
    async with aiohttp.ClientSession() as http:
        for context in ({"action": "retract", "ticket": 1, "proof": guessed}, {"action": "retract"}, "retract"):
            body = {"user_id": ANA, "channel_id": GENERAL, "context": context}
            async with http.post(bot.server.bot_url + PATH, json=body) as answer:
                statuses.append(answer.status)
        async with http.post(bot.server.bot_url + PATH, data=b"{") as answer:
            statuses.append(answer.status)

    assert statuses == [401, 401, 401, 400]
    assert bot.workspace.answer(asks)


async def test_broken_connection_is_resumed(bot: Bot) -> None:
    await bot.start()
    bot.server.sockets.cut()
    asks = await bot.ask()

    assert ANSWERS[BUILT] in text(await bot.answered(asks))
    assert (bot.server.sockets.resumed, bot.server.sockets.greeted) == (1, 1)
    assert bot.system.asked == [BUILT]


@pytest.mark.parametrize("loses", ["the connection", "an event"])
async def test_events_lost_by_the_server_are_caught_up(bot: Bot, loses: str) -> None:
    await bot.start()
    await bot.answered(await bot.ask(RISES))
    if loses == "the connection":
        bot.server.sockets.forgets = True
        bot.server.sockets.cut()
        await bot.workspace.until(lambda: not any(link.socket for link in bot.server.sockets.links.values()))
    missed = [await bot.ask(silent=True, channel=1), await bot.ask(MADE, dm=True, silent=True)]
    bot.server.state.posts[missed[0]].message = f"@footnote {BUILT}"
    if loses == "an event":
        bot.server.sockets.skip()
        await bot.workspace.write("Hello all", user=BEN, channel=GENERAL)

    assert ANSWERS[BUILT] in text(await bot.answered(missed[0]))
    assert ANSWERS[MADE] in text(await bot.answered(missed[1]))
    assert bot.server.sockets.greeted == 2


async def test_revoked_token_ends_the_connection(bot: Bot) -> None:
    await bot.start()
    assert bot.platform
    bot.server.sockets.bare, bot.server.sockets.forgets = True, True
    bot.server.sockets.cut()
    asks = await bot.ask()
    await bot.answered(asks)
    bot.server.state.tokens.clear()
    bot.server.sockets.cut()

    assert "token" in str(await bot.platform.refused())  # type: ignore[attr-defined]
    assert "token" in bot.platform.ready


async def test_refused_token_is_reported_at_the_start(bot: Bot) -> None:
    bot.server.faults["me"].append(Fault(401, code="api.context.session_expired.app_error"))
    with pytest.raises(CannotPost) as refused:
        await bot.start()

    assert "session_expired" in str(refused.value)
    assert TOKEN not in f"{refused.value} {refused.value.hint}"


async def test_unrelated_reactions_have_no_effect(bot: Bot) -> None:
    await bot.start()
    asks = await bot.ask()
    (answer,) = await bot.answered(asks)
    bot.server.react(BEN, bot.server.state.posts[answer.id], "tada")
    bot.server.react(BEN, bot.server.state.posts[asks], "wastebasket")
    await bot.workspace.until(lambda: not bot.workspace.pending)

    assert bot.workspace.answer(asks) == (answer,)
    assert bot.server.refused == []
    (turn,) = await RecordSearch(bot.app.audit.database).find(RecordFilter())  # type: ignore[union-attr]
    assert not turn.retracted
