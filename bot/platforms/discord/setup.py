"""Ask what Discord needs, and try it: for `footnote setup`."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from bot.platforms.platform_setup import BotLocation, PlatformSetup, SetupQuestion, Workspace

if TYPE_CHECKING:
    from bot.doctor.diagnosis import CheckResult
    from bot.platforms.discord import DiscordSettings
    from bot.platforms.discord.client import DiscordApiClient

_TOKEN = SetupQuestion("token", "Bot token", "It is under Bot: press Reset Token, and copy what it shows.")
_WRITTEN_IN = frozenset({0, 5, 15})  # the types of channels in which people write: texts, announcements, forums


def list_questions(_: "DiscordSettings") -> Sequence[SetupQuestion]:
    return (_TOKEN,)


async def try_answer(table: "DiscordSettings", _: str) -> "Sequence[CheckResult]":
    from bot.platforms.discord.client import DiscordRateLimit
    from bot.platforms.discord.health_check import check_token

    return await check_token(table, DiscordRateLimit())


async def locate_bot(table: "DiscordSettings") -> BotLocation:
    from bot.platforms.discord.client import APPLICATION, ME, MY_GUILDS
    from bot.platforms.discord.events import CONTENT_FLAGS, build_invitation

    async with _open_client(table) as call:
        application, user, guilds = await call(APPLICATION), await call(ME), await call(MY_GUILDS)
    reads = bool(int(application.get("flags") or 0) & CONTENT_FLAGS)
    return BotLocation(
        f"@{user.get('username')}",
        tuple(Workspace(str(one["id"]), str(one["name"])) for one in guilds),
        f"Invite it to your server: {build_invitation(str(application.get('id')))}",
        {"message_content": True} if reads else {},
    )


async def list_channels(table: "DiscordSettings", workspace: str) -> Mapping[str, str]:
    from bot.platforms.discord.client import CHANNELS

    async with _open_client(table) as call:
        found = await call(CHANNELS, guild=workspace)
    return {str(one["name"]): str(one["id"]) for one in found if one.get("type") in _WRITTEN_IN}


@asynccontextmanager
async def _open_client(table: "DiscordSettings") -> "AsyncIterator[DiscordApiClient]":
    import aiohttp

    from bot.platforms.discord.client import DiscordApiClient, DiscordRateLimit

    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield DiscordApiClient(session, table.token.get_secret_value(), table.api_url, DiscordRateLimit())


SETUP = PlatformSetup(
    steps=(
        "Open https://discord.com/developers/applications, press New Application, and name it.",
        "For threads that go on without a mention, turn on Message Content Intent under Bot.",
    ),
    list_questions=list_questions,
    try_answer=try_answer,
    locate_bot=locate_bot,
    list_channels=list_channels,
    invite="see that its role may view the channel and write there",
    workspaces_key="servers",
)
