"""A real `footnote serve` that its platform refuses for good while questions are under way: none of them is lost."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from storage.database.engine import open_database
from storage.queue import Queue
from storage.types import QueuedQuestion
from tests.bot.server.server import Server, process
from tests.platforms.discord import server as discord_server
from tests.platforms.discord import world as discord_world
from tests.platforms.discord.faults import Fault as DiscordFault
from tests.platforms.slack import server as slack_server
from tests.platforms.slack import world as slack_world
from tests.platforms.slack.clock import FastClock
from tests.platforms.slack.faults import Fault as SlackFault
from tests.thorough import THOROUGH

HELLO = "hello"  # what the bot answers by itself, with nothing indexed
HELD = ("chat.startStream", "chat.postMessage", "chat.update", "create_message", "edit_message")
"""What an answer could be posted by."""


@dataclass
class Town:
    """A platform: how a bot is set up for it, and what tests do there."""

    fake: Any
    variables: Mapping[str, str]
    held: Callable[[asyncio.Event], Any]
    allow: Callable[[], Any]
    connected: Callable[[], Any]
    ends: bool
    """Whether a server that serves nothing else ends when it is refused."""


def _restore_discord(discord: Any) -> None:
    discord.world.tokens[discord_world.BOT_TOKEN] = discord_world.BOT


def _restore_slack(slack: Any) -> None:
    for token in slack.world.tokens.values():
        token.error = ""


@asynccontextmanager
async def discord_town() -> AsyncIterator[Town]:
    async with discord_server.serve(clock=FastClock()) as fake:
        given = {"TOKEN": discord_world.BOT_TOKEN, "API_URL": fake.api, "GATEWAY_URL": fake.gateway.url}
        given |= {"SERVERS": f'["{discord_world.GUILD}"]'}
        variables = {f"FOOTNOTE_DISCORD__{name}": value for name, value in given.items()}
        yield Town(
            fake,
            variables,
            DiscordFault().after,
            lambda: _restore_discord(fake),
            lambda: fake.gateway.connected,
            ends=True,
        )


@asynccontextmanager
async def slack_town() -> AsyncIterator[Town]:
    async with slack_server.serve(clock=FastClock()) as fake:
        given = {"BOT_TOKEN": slack_world.BOT_TOKEN, "APP_TOKEN": slack_world.APP_TOKEN, "API_URL": fake.api}
        variables = {f"FOOTNOTE_SLACK__{name}": value for name, value in given.items()}
        yield Town(
            fake, variables, SlackFault().after, lambda: _restore_slack(fake), lambda: fake.sockets.links, ends=False
        )


@asynccontextmanager
async def serving(town: Town, home: Path) -> AsyncIterator[Server]:
    """Run a server until it ends or the block is left."""
    settings = {"FOOTNOTE_HOME": str(home), "FOOTNOTE_HTTP__PORT": "0", "FOOTNOTE_DESK__GRACE_SECONDS": "0.1"}
    with process("serve", **settings, **town.variables) as started:
        server = Server(started)
        await asyncio.to_thread(server.read_until, "ready")
        await town.fake.until(town.connected)
        yield server


async def row(home: Path) -> QueuedQuestion:
    """Return the only question."""
    with open_database("", home=home) as database:
        found = await Queue(database).get(1)
    assert found
    return found


@pytest.mark.parametrize("opened", [slack_town, discord_town])
async def test_what_is_under_way_goes_back_to_the_queue_and_is_answered_at_the_next_start(
    opened: Callable[[], Any], tmp_path: Path
) -> None:
    """The token is revoked while the answer is being posted."""
    async with opened() as town:
        fake, gate = town.fake, asyncio.Event()
        fake.faults |= {call: [town.held(gate)] * 9 for call in HELD}
        async with serving(town, tmp_path) as server:
            asked = await fake.acts.mention(HELLO)
            await fake.until(lambda: any(fake.calls(call) for call in HELD))
            await fake.acts.revoke()
            gate.set()
            await fake.until(lambda: fake.refused)
            if not town.ends:
                server.process.send_signal(signal.SIGTERM)
            _, said = await asyncio.to_thread(server.process.communicate, timeout=30)
            assert (server.process.returncode, "undeliverable" in said) == (int(town.ends), False)
        left = await row(tmp_path)
        assert (left.state, left.outcome) == ("waiting", "")
        assert fake.acts.answers(asked) == []
        if not THOROUGH:  # what waits is answered at each start
            return

        fake.faults.clear()
        town.allow()
        async with serving(town, tmp_path) as server:
            await fake.until(lambda: fake.acts.answers(asked))
            await asyncio.to_thread(server.stop, signal.SIGTERM)
        done = await row(tmp_path)
        assert (done.state, done.outcome, len(fake.acts.answers(asked))) == ("done", "delivered", 1)
