"""A real `footnote serve` on a strict platform that gives odd responses, denies its token, and changes meanwhile."""

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
from tests.platforms.discord import state as discord
from tests.platforms.fake_server import Fault
from tests.platforms.slack import state as slack
from tests.platforms.workspaces import PLATFORMS
from tests.thorough import thorough_only

HELLO, WHO = "hello", "who are you?"  # what the bot answers by itself, with nothing indexed
DELIVERED = ("done", "delivered")
POSTS = ("chat.startStream", "chat.postMessage", "chat.update", "create_message", "edit_message")


@dataclass(frozen=True)
class Platform:
    variables: Callable[[Any], Mapping[str, str]]
    allow: Callable[[Any], None]
    """Takes back that the token was revoked."""
    is_connected: Callable[[Any], Any]
    ends: bool
    """Whether a server that serves nothing else ends when its token is denied."""


def _allow_slack(server: Any) -> None:
    for token in server.state.tokens.values():
        token.error = ""


PLATFORM = {
    "slack": Platform(
        lambda fake: {"BOT_TOKEN": slack.BOT_TOKEN, "APP_TOKEN": slack.APP_TOKEN, "API_URL": fake.api},
        _allow_slack,
        lambda fake: fake.sockets.links,
        ends=False,
    ),
    "discord": Platform(
        lambda fake: {
            "TOKEN": discord.BOT_TOKEN,
            "API_URL": fake.api,
            "GATEWAY_URL": fake.gateway.url,
            "SERVERS": f'["{discord.GUILD}"]',
        },
        lambda fake: fake.state.tokens.update({discord.BOT_TOKEN: discord.BOT}),
        lambda fake: fake.gateway.connected,
        ends=True,
    ),
}


@asynccontextmanager
async def serving(name: str, fake: Any, home: Path) -> AsyncIterator[Server]:
    """Run a server until it ends or the block is left."""
    settings = {"FOOTNOTE_HOME": str(home), "FOOTNOTE_HTTP__PORT": "0", "FOOTNOTE_DESK__GRACE_SECONDS": "0.1"}
    settings |= {f"FOOTNOTE_{name.upper()}__{key}": value for key, value in PLATFORM[name].variables(fake).items()}
    with process("serve", **settings) as started:
        server = Server(started)
        await asyncio.to_thread(server.read_until, "ready")
        await fake.until(lambda: PLATFORM[name].is_connected(fake))
        yield server


async def read_outcomes(home: Path) -> list[tuple[str, str]]:
    with open_database("", home=home, read_only=True) as database:
        rows = [await Queue(database).get(ticket) for ticket in (1, 2, 3)]
    return [(row.state, row.outcome) for row in rows if row]


async def until_outcomes(home: Path, expected: list[tuple[str, str]]) -> None:
    async with asyncio.timeout(60):
        while await read_outcomes(home) != expected:  # noqa: ASYNC110 - it is another process
            await asyncio.sleep(0.05)


@thorough_only
@pytest.mark.parametrize("name", PLATFORM)
async def test_questions_survive_odd_responses_a_revoked_token_and_a_restart(name: str, tmp_path: Path) -> None:
    """What a proxy refuses is posted; what is in progress waits for the next start, which sees edits and deletions."""
    platform = PLATFORM[name]
    async with PLATFORMS[name](speed=1)() as workspace:
        fake, people, gate = workspace.server, workspace.server.people, asyncio.Event()
        async with serving(name, fake, tmp_path) as server:
            fake.faults |= {call: [Fault(403)] for call in POSTS}
            deleted, edited = await people.mention(HELLO), await people.mention(HELLO)
            await until_outcomes(tmp_path, [DELIVERED] * 2)
            fake.faults |= {call: [Fault().after(gate)] * 9 for call in POSTS}
            held = sum(len(fake.calls(call)) for call in POSTS)
            asked = await people.mention(HELLO)
            await fake.until(lambda: sum(len(fake.calls(call)) for call in POSTS) > held)
            await people.revoke()
            gate.set()
            await fake.until(lambda: fake.refused)
            if not platform.ends:
                server.process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(server.process.communicate, timeout=30)
            assert server.process.returncode == int(platform.ends)
        assert await read_outcomes(tmp_path) == [DELIVERED, DELIVERED, ("waiting", "")]
        assert len(fake.state.ours()) == 2

        fake.faults.clear()
        platform.allow(fake)
        await people.delete(deleted)
        await workspace.rewrite(edited, WHO)
        async with serving(name, fake, tmp_path) as server:
            await until_outcomes(tmp_path, [("done", "retracted"), DELIVERED, DELIVERED])
            await asyncio.to_thread(server.stop, signal.SIGTERM)
        assert [len(people.answers(one)) for one in (edited, asked)] == [1, 1]
        assert len(fake.state.ours()) == 2
        with open_database("", home=tmp_path, read_only=True) as database:
            row = await Queue(database).get(2)
        assert row
        assert row.body["text"] == WHO
