"""Ask what Mattermost needs, and try it: for `footnote setup`."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.platforms.platform_setup import BotLocation, PlatformSetup, SetupQuestion, Workspace

if TYPE_CHECKING:
    from bot.doctor.diagnosis import CheckResult
    from bot.platforms.mattermost import MattermostSettings
    from bot.platforms.mattermost.client import MattermostApiClient

_URL = SetupQuestion(
    "url", "Address of the server", "It is what people open, such as https://chat.example.com.", secret=False
)
_TOKEN = SetupQuestion("token", "Token of the bot account", "Mattermost shows it once, when the account is made.")


def list_questions(_: "MattermostSettings") -> Sequence[SetupQuestion]:
    return (_URL, _TOKEN)


async def try_answer(table: "MattermostSettings", key: str) -> "Sequence[CheckResult]":
    """Try the token; an address alone lets nobody in."""
    from bot.doctor.diagnosis import CheckResult
    from bot.platforms.mattermost.client import ME

    if key != "token":
        return ()
    async with _open_client(table) as call:
        me = await call(ME, patience=0.0)
    found = CheckResult("ok", f"Mattermost: the bot is @{me.get('username')} on {table.url}.")
    if me.get("is_bot"):
        return (found,)
    return (found, CheckResult("warn", "Mattermost: that is a person's account.", "Make a bot account for it."))


async def locate_bot(table: "MattermostSettings") -> BotLocation:
    from bot.platforms.mattermost.client import ME, MY_TEAMS

    async with _open_client(table) as call:
        me, teams = await call(ME, patience=0.0), await call(MY_TEAMS, patience=0.0)
    mention = f"@{me.get('username')}"
    there = tuple(Workspace(str(one["id"]), str(one["name"])) for one in teams)
    return BotLocation(mention, there, f"Add {mention} to your team: team menu, Invite People.")


async def list_channels(table: "MattermostSettings", workspace: str) -> Mapping[str, str]:
    from bot.platforms.mattermost.client import MY_CHANNELS

    async with _open_client(table) as call:
        found = await call(MY_CHANNELS, team=workspace, patience=0.0)
    return {str(one["name"]): str(one["id"]) for one in found if one.get("type") in {"O", "P"}}


@asynccontextmanager
async def _open_client(table: "MattermostSettings") -> "AsyncIterator[MattermostApiClient]":
    import aiohttp

    from bot.platforms.mattermost.client import MattermostApiClient, MattermostRateLimit

    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield MattermostApiClient(session, table.token.get_secret_value(), table.url, MattermostRateLimit())


SETUP = PlatformSetup(
    steps=(
        "Make a bot account: Product menu, Integrations, Bot Accounts, Add Bot Account; copy its token.",
        "Add it to your team (team menu, Invite People), and to its channels.",
    ),
    list_questions=list_questions,
    try_answer=try_answer,
    locate_bot=locate_bot,
    list_channels=list_channels,
    invite="/invite {mention}",
    workspaces_key="teams",
)
