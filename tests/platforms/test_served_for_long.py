"""A real `footnote serve` before a strict platform that answers oddly, refuses it for good, and changes meanwhile."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from storage.database.engine import open_database
from storage.database.queue import Queue
from tests.bot.server.server import Server, process
from tests.platforms.discord import server as discord_server
from tests.platforms.discord import world as discord_world
from tests.platforms.discord.faults import Fault as DiscordFault
from tests.platforms.slack import server as slack_server
from tests.platforms.slack import world as slack_world
from tests.platforms.slack.clock import FastClock
from tests.platforms.slack.faults import Fault as SlackFault
from tests.thorough import thorough_only

HELLO, WHO = "hello", "who are you?"  # what the bot answers by itself, with nothing indexed
DELIVERED = ("done", "delivered")
HELD = ("chat.startStream", "chat.postMessage", "chat.update", "create_message", "edit_message")
"""What an answer could be posted by."""


@dataclass
class Town:
    """A platform: how a bot is set up for it, and what tests do there."""

    fake: Any
    variables: Mapping[str, str]
    fault: Callable[..., Any]
    mention: str
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
            DiscordFault,
            f"<@{discord_world.BOT}>",
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
            fake,
            variables,
            SlackFault,
            f"<@{slack_world.BOT}>",
            lambda: _restore_slack(fake),
            lambda: fake.sockets.links,
            ends=False,
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


async def outcomes(home: Path) -> list[tuple[str, str]]:
    """Return how each question stands, in order."""
    with open_database("", home=home, read_only=True) as database:
        rows = [await Queue(database).get(ticket) for ticket in (1, 2, 3)]
    return [(row.state, row.outcome) for row in rows if row]


async def until(home: Path, stand: list[tuple[str, str]]) -> None:
    """Wait until the questions stand so."""
    async with asyncio.timeout(60):
        while await outcomes(home) != stand:  # noqa: ASYNC110 - it is another process
            await asyncio.sleep(0.05)


@thorough_only
@pytest.mark.parametrize("opened", [slack_town, discord_town])
async def test_over_odd_answers_a_revoked_token_and_a_restart_each_question_is_answered_as_it_stands(
    opened: Callable[[], Any], tmp_path: Path
) -> None:
    """What a proxy refuses is posted; what is under way waits for the next start, which sees what was changed."""
    async with opened() as town:
        fake, acts, gate = town.fake, town.fake.acts, asyncio.Event()
        async with serving(town, tmp_path) as server:
            fake.faults |= {call: [town.fault(403)] for call in HELD}
            deleted, edited = await acts.mention(HELLO), await acts.mention(HELLO)
            await until(tmp_path, [DELIVERED] * 2)
            fake.faults |= {call: [town.fault().after(gate)] * 9 for call in HELD}
            held = sum(len(fake.calls(call)) for call in HELD)
            asked = await acts.mention(HELLO)
            await fake.until(lambda: sum(len(fake.calls(call)) for call in HELD) > held)
            await acts.revoke()
            gate.set()
            await fake.until(lambda: fake.refused)
            if not town.ends:
                server.process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(server.process.communicate, timeout=30)
            assert server.process.returncode == int(town.ends)
        assert await outcomes(tmp_path) == [DELIVERED, DELIVERED, ("waiting", "")]
        assert len(fake.world.ours()) == 2

        fake.faults.clear()
        town.allow()
        await acts.delete(deleted)
        await acts.edit(edited, f"{town.mention} {WHO}")
        async with serving(town, tmp_path) as server:
            await until(tmp_path, [("done", "retracted"), DELIVERED, DELIVERED])
            await asyncio.to_thread(server.stop, signal.SIGTERM)
        assert [len(acts.answers(one)) for one in (edited, asked)] == [1, 1]
        assert len(fake.world.ours()) == 2
        with open_database("", home=tmp_path, read_only=True) as database:
            row = await Queue(database).get(2)
        assert row
        assert row.body["text"] == WHO
