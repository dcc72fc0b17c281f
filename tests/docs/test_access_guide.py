"""The access guide: its example is served unchanged on both platforms, with channels named as in the guide."""

import asyncio
import os
import re
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from bot.platforms.shared.platform_connection import open_platform
from bot.server.control.control_socket import connect_service
from bot.server.lifecycle import serve
from bot.settings.live.live_settings import ReloadReport
from bot.settings.platform_registry import load_platforms
from bot.settings.settings_reader import load_settings
from bot.wiring import open_app
from ingest.refresh.corpus_refresh import refresh_corpus
from tests.fakes import PageSource
from tests.platforms.bots import finished, text
from tests.platforms.clock import FastClock
from tests.platforms.discord import server as discord_server
from tests.platforms.discord.state import BOT_TOKEN as DISCORD_TOKEN
from tests.platforms.discord.state import GUILD
from tests.platforms.discord.workspace import DiscordWorkspace
from tests.platforms.slack import server as slack_server
from tests.platforms.slack.state import APP_TOKEN, BOT_TOKEN
from tests.platforms.slack.workspace import SlackWorkspace
from tests.platforms.workspace import Workspace

GUIDE = Path(__file__).parents[2] / "docs" / "access.md"
PAGES = {
    "salaries": "A harbour master earns 4,200 crowns a month.",
    "handbook": "Everybody gets 30 days of leave a year.",
}
EARNS, LEAVE = "What does a harbour master earn?", "How many days of leave do I get?"
ANSWERS: Mapping[str, str] = {EARNS: "4,200 crowns", LEAVE: "30 days of leave"}
TABLE = {"hr": {EARNS, LEAVE}, "eng": {LEAVE}, "general": set[str]()}  # what the guide says is answered in a channel


@asynccontextmanager
async def open_slack() -> AsyncIterator[tuple[Any, Workspace, str]]:
    async with slack_server.serve(clock=FastClock(100), leisure=100) as fake:
        table = f"api_url = '{fake.api}'\nbot_token = '{BOT_TOKEN}'\napp_token = '{APP_TOKEN}'"
        yield fake, SlackWorkspace(fake), f"[slack]\n{table}"


@asynccontextmanager
async def open_discord() -> AsyncIterator[tuple[Any, Workspace, str]]:
    async with discord_server.serve(clock=FastClock(100), leisure=100) as fake:
        table = f"api_url = '{fake.api}'\ngateway_url = '{fake.gateway.url}'\ntoken = '{DISCORD_TOKEN}'"
        yield fake, DiscordWorkspace(fake), f"[discord]\n{table}\nservers = ['{GUILD}']"


class Harbour:
    """A server with the guide's settings, and a platform's channels by name."""

    def __init__(self, fake: Any, workspace: Workspace, file: Path, written: str) -> None:
        self.fake, self.workspace, self.file, self.written = fake, workspace, file, written
        self.channels = dict(zip(TABLE, workspace.channels, strict=True))
        for name, channel in self.channels.items():
            fake.state.channels[channel].name = name

    async def is_answered(self, question: str, channel: str) -> bool:
        asks = await self.workspace.say(question, user=self.workspace.users[0], channel=channel)
        await self.workspace.until(lambda: finished(self.workspace.answer(asks)))
        return ANSWERS[question] in text(self.workspace.answer(asks))

    async def find_answered(self, name: str) -> set[str]:
        return {question for question in ANSWERS if await self.is_answered(question, self.channels[name])}

    async def reload(self) -> ReloadReport:
        async with connect_service(self.file.parent / ".footnote") as service:
            assert service
            return await service.reload()


@pytest.fixture(params=[open_slack, open_discord], ids=["slack", "discord"])
async def harbour(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Harbour]:
    async with request.param() as (fake, workspace, table):
        (example,) = re.findall(r"```toml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
        written = f"[http]\nport = 0\n{table}\n{example.replace('slack:', f'{workspace.name}:')}"
        harbour = Harbour(fake, workspace, tmp_path / "footnote.toml", written)
        harbour.file.write_text(written)
        async with open_app(load_settings(harbour.file)) as app:
            for name, page in PAGES.items():
                source = PageSource({name: {"": page}})
                await refresh_corpus(source, name, app.passages, progress=lambda _: None)
        read = partial(load_settings, harbour.file)
        platforms = {name: partial(open_platform, entry) for name, entry in load_platforms().items()}
        serving = asyncio.create_task(serve(read(), platforms, read))
        await fake.until(lambda: workspace.name == "slack" or fake.gateway.connected)  # Slack redelivers what is missed
        yield harbour
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(serving, 60)


async def test_channels_read_the_guides_corpora_even_after_renaming(harbour: Harbour) -> None:
    assert {name: await harbour.find_answered(name) for name in TABLE} == TABLE

    channels = harbour.fake.state.channels
    channels[harbour.channels["hr"]].name, channels[harbour.channels["general"]].name = "people", "hr"
    harbour.file.write_text(harbour.written + "\n[limits]\nsentences = 2")
    report = await harbour.reload()
    assert (report.changed, report.faults) == (("limits.sentences",), ())
    assert "is called #people now; the name now belongs to" in report.notes[0]
    assert [await harbour.is_answered(EARNS, harbour.channels[name]) for name in ("hr", "general")] == [True, False]

    harbour.file.write_text(harbour.written.replace('["', '["*", "', 1))
    assert (await harbour.reload()).changed == ("limits.sentences", "corpus.salaries.visible_to")
    assert await harbour.is_answered(EARNS, harbour.channels["eng"])
