"""The fake Discord's limits in time, and how it fails requests as told, with discord.py in between."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import discord as sdk
import pytest

from tests.platforms import fake_server as faults
from tests.platforms.clock import FastClock, ManualClock
from tests.platforms.discord import limits
from tests.platforms.discord.apps import client, connected
from tests.platforms.discord.server import FakeDiscord, serve
from tests.platforms.discord.state import BOT_TOKEN

KNOWN = {"Authorization": f"Bot {BOT_TOKEN}"}


@pytest.fixture
async def discord() -> AsyncIterator[FakeDiscord]:
    async with serve(clock=ManualClock(), pace=100) as fake:
        yield fake
        assert fake.errors == []


async def post(session: aiohttp.ClientSession, fake: FakeDiscord, channel: int = 201) -> tuple[int, Any, Any]:
    async with session.post(f"{fake.api}/channels/{channel}/messages", json={"content": "x"}) as response:
        told = await (response.json() if response.content_type == "application/json" else response.text())
        return response.status, response.headers, told


async def test_each_channel_takes_five_posts_in_five_seconds(discord: FakeDiscord) -> None:
    """The headers say so beforehand, the 429 how long to wait, and then it goes on."""
    async with aiohttp.ClientSession(headers=KNOWN) as session:
        left = [(await post(session, discord))[1]["X-RateLimit-Remaining"] for _ in range(5)]
        status, headers, told = await post(session, discord)
        other = await post(session, discord, 202)
        await discord.clock.advance(5)
        later = await post(session, discord)

    assert left == list("43210")
    assert (status, headers["Via"], headers["X-RateLimit-Scope"], told["global"]) == (429, "1.1 google", "user", False)
    assert told["retry_after"] == 5 / 100
    assert (other[0], later[0]) == (200, 200)
    assert len(discord.limited) == 1


async def test_fifty_requests_a_second_are_taken_in_all(discord: FakeDiscord) -> None:
    """Then all routes wait."""
    async with aiohttp.ClientSession(headers=KNOWN) as session:
        statuses = [(await session.get(f"{discord.api}/users/10{one % 3}")).status for one in range(limits.GLOBAL)]
        status, headers, told = await post(session, discord)

    assert 429 not in statuses
    assert (status, headers["X-RateLimit-Global"], told["global"]) == (429, "true", True)


async def test_who_asks_for_too_much_that_is_invalid_is_banned(discord: FakeDiscord) -> None:
    """Without a `Via`, whatever is asked, for ten minutes."""
    discord.rates.invalid_most = 3
    async with aiohttp.ClientSession() as session:
        for _ in range(3):
            await post(session, discord)
        session.headers.update(KNOWN)
        status, headers, told = await post(session, discord)
        await discord.clock.advance(limits.INVALID_SECONDS)
        later = await post(session, discord)

    assert (status, "Via" in headers, told) == (429, False, "error code: 1015")
    assert later[0] == 200


async def test_discord_py_keeps_within_the_limits_by_itself() -> None:
    """On a clock that runs faster: it waits where the headers say so."""
    async with serve(clock=FastClock(100), pace=100) as discord:
        bot = client(discord)
        async with connected(bot, discord):
            await asyncio.gather(*(bot.get_partial_messageable(201).send("x") for _ in range(12)))

    posts = discord.calls("create_message")
    assert discord.posts == 12
    assert posts[-1].at - posts[0].at >= 10


@pytest.mark.parametrize("fault", [faults.LIMITED, faults.LIMITED_EVERYWHERE])
async def test_discord_py_waits_and_tries_again(discord: FakeDiscord, fault: faults.Fault) -> None:
    """What comes too soon is sent once more by itself."""
    bot = client(discord)
    async with connected(bot, discord):
        discord.faults["create_message"] += [fault]
        await bot.get_partial_messageable(201).send("x")

    assert (discord.posts, len(discord.calls("create_message"))) == (1, 2)


async def test_what_was_done_though_it_failed_is_done_once_by_its_nonce(discord: FakeDiscord) -> None:
    """discord.py sends a 500 again; without a nonce the message would stand there twice."""
    bot = client(discord)
    async with connected(bot, discord):
        discord.faults["create_message"] += [faults.LOST_500]
        await bot.get_partial_messageable(201).send("x", nonce="n")

    assert (discord.posts, len(discord.calls("create_message"))) == (1, 2)


@pytest.mark.parametrize("fault", [faults.UNAVAILABLE, faults.BANNED, faults.RESET, faults.LOST])
async def test_the_rest_is_told_to_who_asked(discord: FakeDiscord, fault: faults.Fault) -> None:
    """503, a ban, a cut connection, and one that is cut after the message was posted."""
    bot = client(discord)
    async with connected(bot, discord):
        discord.faults["create_message"] += [fault]
        with pytest.raises((sdk.HTTPException, aiohttp.ClientError)):
            await bot.get_partial_messageable(201).send("x")

    assert discord.posts == (1 if fault is faults.LOST else 0)


async def test_a_request_can_be_held_up(discord: FakeDiscord) -> None:
    """Until a test says so."""
    bot, gate = client(discord), asyncio.Event()
    async with connected(bot, discord):
        discord.faults["create_message"] += [faults.Fault().after(gate)]
        sending = asyncio.create_task(bot.get_partial_messageable(201).send("x"))
        await discord.until(lambda: discord.calls("create_message"))
        assert discord.posts == 0
        gate.set()
        await sending

    assert discord.posts == 1
