"""Lost, refused and repeated connections to the fake Discord, with the real discord.py."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.desk.platform_port import CannotPost
from bot.platforms.discord.platform import DiscordPlatform
from tests.platforms.bots import Bot, bot_in, eventually
from tests.platforms.discord.state import Interaction
from tests.platforms.discord.workspace import workspaces
from tests.platforms.example_app import ANSWERS, BUILT, MADE, RISES
from tests.platforms.fake_server import Received
from tests.thorough import THOROUGH

SPEED, ASKED = 8, 40 if THOROUGH else 20


@pytest.fixture
async def bot(filled: Path, tmp_path: Path) -> AsyncIterator[Bot]:
    async with bot_in(workspaces(speed=SPEED)(), filled, tmp_path / "home", every=False) as opened:
        yield opened


async def test_many_commands_are_stored_and_deferred_in_time(bot: Bot) -> None:
    await bot.start(desk={"at_once": ASKED, "per_channel": ASKED})
    assert bot.app
    bot.system.shut.add(BUILT)
    burst = [await bot.people.command("ask", question=BUILT, private=True) for _ in range(ASKED)]
    await bot.system.until_asked(ASKED)
    await bot.server.until(lambda: all(interaction.acked for interaction in burst))
    used = list[Interaction]()
    for _ in range(ASKED):
        used.append(await bot.people.command("ask", question=BUILT, private=True))
        await bot.server.until(lambda: used[-1].acked)
    stored = [await bot.app.queue.by_key(f"discord:interaction/{one.id}") for one in (*burst, *used)]
    await bot.system.open(BUILT)
    await bot.server.until(lambda: all(_answered(bot, one) for one in (*burst, *used)), seconds=30)
    await bot.stop()

    assert all(len(_answers(bot, interaction)) == 1 for interaction in (*burst, *used))
    assert all(stored)
    assert bot.server.refused == []


async def test_repeated_interaction_is_deferred_once(bot: Bot) -> None:
    await bot.start()
    used = await bot.people.command("ask", question=BUILT)
    await bot.until(ANSWERS[BUILT])
    sent = [one for one in bot.server.gateway.connected[0].sent if one["t"] == "INTERACTION_CREATE"]
    bot.server.gateway.send_event("INTERACTION_CREATE", lambda _: sent[0]["d"], guild="301")
    await bot.workspace.settled()

    assert len(_callbacks(bot, used.id)) == 1
    assert bot.system.asked == [BUILT]


@pytest.mark.parametrize("happens", ["reconnect", "cut", "invalid", "lost"])
async def test_lost_connection_loses_no_question(happens: str, bot: Bot) -> None:
    platform = await bot.start()
    await bot.people.mention(BUILT)
    await bot.until(ANSWERS[BUILT])
    gateway = bot.server.gateway
    match happens:
        case "reconnect":
            gateway.reconnect()
        case "cut":
            gateway.cut()
        case "invalid":
            gateway.invalidate(resumable=True)
        case _:
            gateway.invalidate(resumable=False)
    await bot.people.mention(MADE)
    await bot.until(ANSWERS[MADE])
    await eventually(lambda: not platform.ready)
    await bot.people.mention(RISES)
    await bot.until(ANSWERS[RISES])

    assert bot.system.asked == [BUILT, MADE, RISES]
    # Catching up, it asks for channels too that it may not read.
    assert {one.name for one in bot.server.refused} <= {"get_messages"}


async def test_shutdown_while_a_session_begins_ends_cleanly(bot: Bot) -> None:
    platform = await bot.start()
    bot.server.gateway.invalidate(resumable=False)
    await eventually(lambda: platform.ready)
    async with asyncio.timeout(60):
        await bot.stop()


async def test_revoked_token_is_reported_and_not_tried_again(bot: Bot) -> None:
    platform = await bot.start()
    await bot.people.revoke()
    await eventually(lambda: "token" in platform.ready)
    assert isinstance(platform, DiscordPlatform)
    assert str(await platform.refused()) == platform.ready
    await bot.stop()
    with pytest.raises(CannotPost):
        await bot.start()


async def test_missing_intent_is_reported_by_name(bot: Bot) -> None:
    bot.server.gateway.granted &= ~(1 << 15)
    with pytest.raises(
        CannotPost, match=r"Message Content: enable it on .* under Bot, or set .*message_content = false"
    ):
        await bot.start()
    assert (bot.server.gateway.identifies, bot.server.gateway.closes[0][0]) == (1, 4014)
    bot.server.gateway.closes.clear()
    await bot.start(discord={"message_content": False})
    await bot.people.mention(BUILT)
    await bot.until(ANSWERS[BUILT])


async def test_process_connects_only_its_own_shards(bot: Bot) -> None:
    await bot.start(discord={"shards": 2, "shard_ids": [0]})
    await bot.people.mention(BUILT)
    await bot.until(ANSWERS[BUILT])

    assert [session.shard for session in bot.server.gateway.connected] == [(0, 2)]


async def test_malformed_event_does_not_stop_later_ones(bot: Bot) -> None:
    await bot.start()
    for name in ("MESSAGE_CREATE", "INTERACTION_CREATE", "GUILD_CREATE", "THREAD_CREATE"):
        bot.server.gateway.send_event(name, lambda _: {"id": "1", "guild_id": "301"}, guild="301")
    await bot.people.mention(BUILT)

    assert ANSWERS[BUILT] in await bot.until(ANSWERS[BUILT])


def _answers(bot: Bot, used: Interaction) -> list[str]:
    return [repr(message.components) for message in bot.server.state.ours() if message.interaction == used.id]


def _answered(bot: Bot, used: Interaction) -> bool:
    """Return whether a command's answer is final."""
    return any(ANSWERS[BUILT] in answer and "footnote:evidence" in answer for answer in _answers(bot, used))


def _callbacks(bot: Bot, interaction: str) -> list[Received]:
    return [call for call in bot.server.calls("callback") if call.names["interaction"] == interaction]
