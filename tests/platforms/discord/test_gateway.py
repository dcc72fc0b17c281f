"""The connection to Discord under what happens to connections, with the real discord.py at the fake Discord."""

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.desk.platform_port import CannotPost
from bot.platforms.discord.platform import DiscordPlatform
from tests.platforms.discord.calls import Received
from tests.platforms.discord.talking import Talk, talking
from tests.platforms.discord.world import SECRETS, Interaction
from tests.platforms.world import ANSWERS, BUILT, MADE, RISES
from tests.thorough import THOROUGH

ASKED = 40 if THOROUGH else 20


@pytest.fixture
async def talk(filled: Path, tmp_path: Path) -> AsyncIterator[Talk]:
    async with talking(tmp_path / "home", filled) as opened:
        yield opened


async def test_many_commands_are_deferred_and_stored_before(talk: Talk) -> None:
    """While all of them are answered, once; each is on the disk when Discord is told that an answer comes.

    `pytest -s` prints how long that took.
    """
    await talk.start(desk={"at_once": ASKED, "per_channel": ASKED})
    assert talk.app
    talk.system.shut.add(BUILT)
    burst = [await talk.acts.command("ask", question=BUILT, private=True) for _ in range(ASKED)]
    await talk.system.until_asked(ASKED)
    await talk.discord.until(lambda: all(one.acked for one in burst))
    used = list[Interaction]()
    for _ in range(ASKED):
        used.append(await talk.acts.command("ask", question=BUILT, private=True))
        await talk.discord.until(lambda: used[-1].acked)
    deferred = {one.names["interaction"]: one for one in talk.discord.calls("callback")}
    waits, burst_waits = (sorted((deferred[one.id].at - one.at) / talk.times for one in many) for many in (used, burst))
    stored = [await talk.app.queue.by_key(f"discord:interaction/{one.id}") for one in (*burst, *used)]
    late, crowded = (1000 * many[int(ASKED * 0.99)] for many in (waits, burst_waits))
    print(f"\ndeferred within {late:.0f} ms (p99 of {ASKED}, with {ASKED} and more in flight)")  # noqa: T201
    print(f"deferred within {crowded:.0f} ms (p99 of {ASKED}, all in the same moment)")  # noqa: T201
    await talk.system.open(BUILT)
    await talk.discord.until(lambda: all(_answered(talk, one) for one in (*burst, *used)), seconds=30)
    await talk.stop()

    assert all(len(_answers(talk, one)) == 1 for one in (*burst, *used))
    assert len(waits) == len(burst_waits) == ASKED
    assert all(stored)
    assert talk.discord.refused == []


async def test_what_was_taken_before_a_crash_is_not_deferred_twice(talk: Talk) -> None:
    """An interaction that comes once more is known."""
    await talk.start()
    used = await talk.acts.command("ask", question=BUILT)
    await talk.until(ANSWERS[BUILT])
    told = [one for one in talk.discord.gateway.connected[0].sent if one["t"] == "INTERACTION_CREATE"]
    talk.discord.gateway.tell("INTERACTION_CREATE", lambda _: told[0]["d"], guild="301")
    await talk.passed()

    assert len(_callbacks(talk, used.id)) == 1
    assert talk.system.asked == [BUILT]


@pytest.mark.parametrize("happens", ["reconnect", "cut", "invalid", "lost"])
async def test_a_lost_connection_loses_no_question(happens: str, talk: Talk) -> None:
    """RESUME brings what came meanwhile; where the session is lost, it is caught up."""
    platform = await talk.start()
    await talk.acts.mention(BUILT)
    await talk.until(ANSWERS[BUILT])
    gateway = talk.discord.gateway
    match happens:
        case "reconnect":
            gateway.reconnect()
        case "cut":
            gateway.cut()
        case "invalid":
            gateway.invalidate(resumable=True)
        case _:
            gateway.invalidate(resumable=False)
    await talk.acts.mention(MADE)
    await talk.until(ANSWERS[MADE])
    async with asyncio.timeout(60):
        while platform.ready:  # noqa: ASYNC110 - the bot tells nobody
            await asyncio.sleep(0.005)
    await talk.acts.mention(RISES)
    await talk.until(ANSWERS[RISES])

    assert talk.system.asked == [BUILT, MADE, RISES]
    # Catching up, it asks for channels too that it may not read.
    assert {one.name for one in talk.discord.refused} <= {"get_messages"}


async def test_who_leaves_while_a_session_begins_leaves_nothing_behind(talk: Talk) -> None:
    """Discord lets nobody begin sessions fast, and discord.py hears of no end meanwhile."""
    platform = await talk.start()
    talk.discord.gateway.invalidate(resumable=False)
    async with asyncio.timeout(60):
        while not platform.ready:  # noqa: ASYNC110 - the bot tells nobody
            await asyncio.sleep(0.005)
        await talk.stop()


async def test_a_token_that_is_good_no_more_is_said_and_not_tried_again(talk: Talk) -> None:
    """Discord bans whom it refuses too often."""
    platform = await talk.start()
    await talk.acts.revoke()
    async with asyncio.timeout(60):
        while "token" not in platform.ready:  # noqa: ASYNC110 - the bot tells nobody
            await asyncio.sleep(0.005)
        assert isinstance(platform, DiscordPlatform)
        assert str(await platform.refused()) == platform.ready
    await talk.stop()
    with pytest.raises(CannotPost):
        await talk.start()


async def test_an_intent_that_was_not_given_is_said(talk: Talk) -> None:
    """By the name that it has on the application's page, with what to do; and once that is done, it works without."""
    talk.discord.gateway.granted &= ~(1 << 15)
    with pytest.raises(CannotPost, match=r"Message Content: turn it on .* under Bot, or set .*message_content = false"):
        await talk.start()
    assert (talk.discord.gateway.identifies, talk.discord.gateway.closes[0][0]) == (1, 4014)
    await talk.start(discord={"message_content": False})
    await talk.acts.mention(BUILT)
    await talk.until(ANSWERS[BUILT])


async def test_shards_share_the_servers(talk: Talk) -> None:
    """As many as settings say."""
    await talk.start(discord={"shards": 2})
    await talk.acts.mention(BUILT)
    await talk.until(ANSWERS[BUILT])

    assert len(talk.discord.gateway.connected) == 2


async def test_a_process_keeps_the_shards_that_are_its_own(talk: Talk) -> None:
    """Others keep the others, and hear what happens there."""
    await talk.start(discord={"shards": 2, "shard_ids": [0]})
    await talk.acts.mention(BUILT)
    await talk.until(ANSWERS[BUILT])

    assert [session.shard for session in talk.discord.gateway.connected] == [(0, 2)]


async def test_an_event_that_cannot_be_read_stops_nothing(talk: Talk) -> None:
    """Whatever discord.py makes of it."""
    await talk.start()
    for name in ("MESSAGE_CREATE", "INTERACTION_CREATE", "GUILD_CREATE", "THREAD_CREATE"):
        talk.discord.gateway.tell(name, lambda _: {"id": "1", "guild_id": "301"}, guild="301")
    await talk.acts.mention(BUILT)

    assert ANSWERS[BUILT] in await talk.until(ANSWERS[BUILT])


async def test_no_log_says_a_token_or_what_people_write(talk: Talk, caplog: pytest.LogCaptureFixture) -> None:
    """Not even discord.py's own, where all is logged that is logged in a server."""
    caplog.set_level(logging.INFO)
    await talk.start()
    await talk.acts.command("ask", question=BUILT)
    await talk.until(ANSWERS[BUILT])
    await talk.acts.mention(MADE)
    await talk.until(ANSWERS[MADE])
    logged = "\n".join(f"{one.getMessage()} {vars(one)}" for one in caplog.records)

    assert not [secret for secret in (*SECRETS, BUILT, MADE) if secret in logged]


def _answers(talk: Talk, used: Interaction) -> list[str]:
    return [repr(one.components) for one in talk.discord.world.ours() if one.interaction == used.id]


def _answered(talk: Talk, used: Interaction) -> bool:
    """Return whether a command's answer stands there as it stays."""
    return any(ANSWERS[BUILT] in one and "footnote:evidence" in one for one in _answers(talk, used))


def _callbacks(talk: Talk, interaction: str) -> list[Received]:
    return [one for one in talk.discord.calls("callback") if one.names["interaction"] == interaction]
