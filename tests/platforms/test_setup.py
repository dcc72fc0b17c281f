"""What each platform brings to `footnote setup`, tried on its strict fake."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from bot.settings.platform_registry import load_platforms
from tests.platforms.discord import server as discord_server
from tests.platforms.discord import world as discord
from tests.platforms.mattermost import server as mattermost_server
from tests.platforms.mattermost import world as mattermost
from tests.platforms.slack import server as slack_server
from tests.platforms.slack import world as slack


@dataclass(frozen=True)
class Town:
    """A fake, and what is right there."""

    serve: Any
    tokens: Mapping[str, str]
    address: str  # the key of the address
    mention: str
    workspace: str
    channel: str  # by its name


TOWNS = {
    "slack": Town(
        slack_server.serve,
        {"bot_token": slack.BOT_TOKEN, "app_token": slack.APP_TOKEN},
        "api_url",
        "@footnote",
        "T1",
        "general",
    ),
    "discord": Town(
        discord_server.serve, {"token": discord.BOT_TOKEN}, "api_url", "@Footnote", discord.GUILD, "general"
    ),
    "mattermost": Town(mattermost_server.serve, {"token": mattermost.TOKEN}, "url", "@footnote", mattermost.TEAM, ""),
}


@asynccontextmanager
async def opened(name: str) -> AsyncIterator[tuple[Any, Any, Town]]:
    """Give a platform's setup, its table with all answers, and its town."""
    town, entry = TOWNS[name], load_platforms()[name]
    async with town.serve() as fake:
        address = fake.url if town.address == "url" else fake.api
        yield entry.setup, entry.settings.model_validate({**town.tokens, town.address: address}), town


@pytest.mark.parametrize("name", TOWNS)
async def test_right_answers_are_taken_and_the_bot_is_found(name: str) -> None:
    """Where it is, how it is called, and which channels there are."""
    async with opened(name) as (setup, table, town):
        results = [
            one for question in setup.list_questions(table) for one in await setup.try_answer(table, question.key)
        ]
        location = await setup.locate_bot(table)
        channels = await setup.list_channels(table, town.workspace)

    assert {one.level for one in results} == {"ok"}
    assert (location.mention, town.workspace in {one.id for one in location.workspaces}) == (town.mention, True)
    assert channels
    assert town.channel in {*channels, ""}


@pytest.mark.parametrize("name", TOWNS)
async def test_a_wrong_token_is_refused(name: str) -> None:
    """By a finding, or by the platform's own error."""
    async with opened(name) as (setup, table, town):
        key = next(iter(town.tokens))
        wrong = type(table).model_validate({**dict(table), key: "xoxb-of-somebody-else"})
        try:
            levels = {one.level for one in await setup.try_answer(wrong, key)}
        except Exception as error:  # noqa: BLE001 - setup tells it as the doctor would
            levels = {"fail"} if str(error) else set()

    assert "fail" in levels


async def test_a_scope_that_is_missing_is_told_at_once() -> None:
    """Before anything is written."""
    async with slack_server.serve() as fake:
        fake.world.tokens[slack.BOT_TOKEN].scopes -= {"users:read"}
        entry = load_platforms()["slack"]
        table = entry.settings.model_validate({**TOWNS["slack"].tokens, "api_url": fake.api})
        found = await entry.setup.try_answer(table, "bot_token")

    assert [one.what for one in found if one.level == "fail"] == ["Slack: the scope users:read was not given."]
