"""Each platform's part of `footnote setup`, on its strict fake server."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from bot.settings.platform_registry import load_platforms
from tests.platforms.discord import server as discord_server
from tests.platforms.discord import state as discord
from tests.platforms.mattermost import server as mattermost_server
from tests.platforms.mattermost import state as mattermost
from tests.platforms.slack import server as slack_server
from tests.platforms.slack import state as slack


@dataclass(frozen=True)
class Platform:
    """A fake server, and the right answers to the questions of the setup."""

    serve: Any
    tokens: Mapping[str, str]
    address: str  # the key of the address
    mention: str
    workspace: str
    channel: str  # by its name


PLATFORMS = {
    "slack": Platform(
        slack_server.serve,
        {"bot_token": slack.BOT_TOKEN, "app_token": slack.APP_TOKEN},
        "api_url",
        "@footnote",
        "T1",
        "general",
    ),
    "discord": Platform(
        discord_server.serve, {"token": discord.BOT_TOKEN}, "api_url", "@Footnote", discord.GUILD, "general"
    ),
    "mattermost": Platform(
        mattermost_server.serve, {"token": mattermost.TOKEN}, "url", "@footnote", mattermost.TEAM, ""
    ),
}


@asynccontextmanager
async def opened(name: str) -> AsyncIterator[tuple[Any, Any, Platform]]:
    """Yield a platform's setup, its table with all answers, and the platform."""
    platform, entry = PLATFORMS[name], load_platforms()[name]
    async with platform.serve() as fake:
        address = fake.url if platform.address == "url" else fake.api
        yield entry.setup, entry.settings.model_validate({**platform.tokens, platform.address: address}), platform


@pytest.mark.parametrize("name", PLATFORMS)
async def test_valid_setup_answers_find_the_bots_name_workspace_and_channels(name: str) -> None:
    async with opened(name) as (setup, table, platform):
        results = [
            one for question in setup.list_questions(table) for one in await setup.try_answer(table, question.key)
        ]
        location = await setup.locate_bot(table)
        channels = await setup.list_channels(table, platform.workspace)

    assert {result.level for result in results} == {"ok"}
    assert (location.mention, platform.workspace in {one.id for one in location.workspaces}) == (platform.mention, True)
    assert channels
    assert platform.channel in {*channels, ""}


@pytest.mark.parametrize("name", PLATFORMS)
async def test_wrong_token_is_refused(name: str) -> None:
    async with opened(name) as (setup, table, platform):
        key = next(iter(platform.tokens))
        wrong = type(table).model_validate({**dict(table), key: "xoxb-of-somebody-else"})
        try:
            levels = {result.level for result in await setup.try_answer(wrong, key)}
        except Exception as error:  # noqa: BLE001 - setup reports it as the doctor does
            levels = {"fail"} if str(error) else set()

    assert "fail" in levels


async def test_missing_scope_is_reported() -> None:
    async with slack_server.serve() as fake:
        fake.state.tokens[slack.BOT_TOKEN].scopes -= {"users:read"}
        entry = load_platforms()["slack"]
        table = entry.settings.model_validate({**PLATFORMS["slack"].tokens, "api_url": fake.api})
        found = await entry.setup.try_answer(table, "bot_token")

    assert [one.what for one in found if one.level == "fail"] == ["Slack: the scope users:read is missing."]
