"""Check Discord's token, intents and permissions for `footnote doctor` and `footnote setup`."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from bot.desk.platform_port import AccessDenied, CannotPost, PlatformError
from bot.doctor.diagnosis import CheckResult, Inspection
from bot.doctor.name_check import check_channel_names
from bot.platforms.discord import DiscordSettings
from bot.platforms.discord.client import (
    APPLICATION,
    CHANNELS,
    GUILD,
    ME,
    MEMBER,
    MY_GUILDS,
    ROLES,
    DiscordRateLimit,
    open_api,
)
from bot.platforms.discord.directory import list_channels
from bot.platforms.discord.events import ADMINISTRATOR, CONTENT_FLAGS, PERMISSIONS, build_invitation
from bot.platforms.platform_setup import BotLocation, PlatformSetup, SetupQuestion, Workspace
from bot.platforms.shared.api_client import ApiClient, RequestRefused
from bot.platforms.shared.payload_text import Json
from bot.settings.platform_registry import is_channel_name

_TOKEN = "Copy the bot token again from the application's page, under Bot, to DISCORD_TOKEN."  # noqa: S105
_AWAY = "Check whether this machine reaches discord.com, then try again."
_INTENT = "Turn on Message Content Intent on the application's page, under Bot; or set message_content = false."
_UNUSED = "Set [discord] message_content = true, or turn the intent off on the application's page, under Bot."
_NO_SERVER = "Add your server's id to [discord] servers: right-click it with Developer Mode on, then Copy Server ID."
_ENDPOINT = "Clear the Interactions Endpoint URL on the application's page: it receives our commands and buttons."
_UNSEEN = "Discord: intents and permissions were not checked, because"
_REFUSED = CheckResult("skip", f"{_UNSEEN} Discord refuses the token.")
_UNREACHED = CheckResult("skip", f"{_UNSEEN} Discord cannot be reached.")


async def check_discord(scene: Inspection, pacing: DiscordRateLimit | None = None) -> Sequence[CheckResult]:
    """Check the token, the intents, the bot's permissions, and the readers and channel names of the settings."""
    settings = DiscordSettings.read_from(scene.settings)
    async with open_api(settings.token.get_secret_value(), settings.api_url, pacing) as call:
        application = await check_application(settings, call)
        names = await check_channel_names(scene, "discord", lambda: list_channels(call, settings.servers))
    return (*application, *_check_readers(settings, scene.settings.readers), *names)


async def check_application(settings: DiscordSettings, call: ApiClient) -> Sequence[CheckResult]:
    try:
        application, user = await call(APPLICATION), await call(ME)
        us = str(user["id"])
        servers = [result for guild in settings.servers for result in await _check_server(call, guild, us)]
    except (AccessDenied, CannotPost) as error:
        return (CheckResult("fail", f"Discord: the bot token is refused. {error}", _TOKEN), _REFUSED)
    except PlatformError as error:
        return (CheckResult("fail", f"Discord: it cannot be reached. {error}", _AWAY), _UNREACHED)
    return (*_check_application(settings, application, user), *_check_listed(settings, application), *servers)


def _check_application(settings: DiscordSettings, application: Json, user: Json) -> Iterator[CheckResult]:
    yield CheckResult("ok", f"Discord: the bot is {user.get('username')} (application {application.get('id')}).")
    granted = bool(int(application.get("flags") or 0) & CONTENT_FLAGS)
    if settings.message_content and not granted:
        yield CheckResult("fail", "Discord: the intent Message Content is configured but not granted.", _INTENT)
    elif granted and not settings.message_content:
        yield CheckResult("warn", "Discord: the intent Message Content is granted but not used.", _UNUSED)
    else:
        reads = "it reads all messages" if granted else "it reads DMs, mentions, replies and commands"
        yield CheckResult("ok", f"Discord: {reads}.")
    if application.get("interactions_endpoint_url"):
        yield CheckResult("fail", "Discord: commands and buttons go to another address.", _ENDPOINT)


def _check_listed(settings: DiscordSettings, application: Json) -> Iterator[CheckResult]:
    if not settings.servers:
        hint = f"{_NO_SERVER} Invite the bot: {build_invitation(str(application.get('id')))}"
        yield CheckResult("warn", "Discord: no server is configured, so only DMs are answered.", hint)


def _check_readers(settings: DiscordSettings, readers: Collection[str]) -> Iterator[CheckResult]:
    """Warn of readers in servers that are not configured, who can read nothing; pure."""
    for reader in sorted(readers):
        server = reader.removeprefix("discord:").partition("/")[0]
        if reader.startswith("discord:") and server not in settings.servers and not is_channel_name(reader):
            hint = f"Add {server} to [discord] servers, or take {reader} out of visible_to."
            yield CheckResult("warn", f"Discord: {reader} reads nothing, because its server is not configured.", hint)


async def _check_server(call: ApiClient, guild: str, user: str) -> Sequence[CheckResult]:
    """Check one server. Raises `PlatformError` if Discord is unreachable."""
    try:
        server, member = await call(GUILD, guild=guild), await call(MEMBER, guild=guild, user=user)
        roles = await call(ROLES, guild=guild)
    except RequestRefused:
        hint = "Invite it by the link under Installation on the application's page, or take the server out of servers."
        return (CheckResult("fail", f"Discord: the bot is not in the server {guild}.", hint),)
    return tuple(list_missing_permissions(str(server.get("name")), guild, member, roles))


def list_missing_permissions(name: str, guild: str, member: Json, roles: Sequence[Json]) -> Iterator[CheckResult]:
    """Report the permissions that the bot's roles lack in a server, or that none is missing; pure.

    Single channels may differ.
    """
    role_ids = {guild, *map(str, member.get("roles") or ())}
    allowed = 0
    for role in roles:
        allowed |= int(role.get("permissions") or 0) if str(role.get("id")) in role_ids else 0
    missing = [
        (permission, why) for permission, (bit, why) in PERMISSIONS.items() if not allowed & (bit | ADMINISTRATOR)
    ]
    for permission, why in missing:
        hint = f"With it, it {why}. Give it to the bot's role: Server Settings, Roles."
        yield CheckResult("fail", f"Discord: the permission {permission} is missing in {name}.", hint)
    if not missing:
        yield CheckResult("ok", f"Discord: it may answer in {name} (discord:{guild}).")


_TOKEN_QUESTION = SetupQuestion("token", "Bot token", "It is under Bot: press Reset Token, and copy what it shows.")
_WRITTEN_IN = frozenset({0, 5, 15})  # the types of channels in which people write: texts, announcements, forums


def list_questions(_: DiscordSettings) -> Sequence[SetupQuestion]:
    return (_TOKEN_QUESTION,)


async def try_answer(table: DiscordSettings, _: str) -> Sequence[CheckResult]:
    """Check whether Discord accepts the token, before any server is configured."""
    async with open_api(table.token.get_secret_value(), table.api_url) as call:
        results = await check_application(table.model_copy(update={"servers": ()}), call)
    return tuple(result for result in results if result.level != "warn")


async def locate_bot(table: DiscordSettings) -> BotLocation:
    async with open_api(table.token.get_secret_value(), table.api_url) as call:
        application, user, guilds = await call(APPLICATION), await call(ME), await call(MY_GUILDS)
    reads = bool(int(application.get("flags") or 0) & CONTENT_FLAGS)
    return BotLocation(
        f"@{user.get('username')}",
        tuple(Workspace(str(guild["id"]), str(guild["name"])) for guild in guilds),
        f"Invite it to your server: {build_invitation(str(application.get('id')))}",
        {"message_content": True} if reads else {},
    )


async def list_channels_by_name(table: DiscordSettings, workspace: str) -> Mapping[str, str]:
    async with open_api(table.token.get_secret_value(), table.api_url) as call:
        channels = await call(CHANNELS, guild=workspace)
    return {str(channel["name"]): str(channel["id"]) for channel in channels if channel.get("type") in _WRITTEN_IN}


SETUP = PlatformSetup(
    steps=(
        "Open https://discord.com/developers/applications, press New Application, and name it.",
        "To let the bot continue threads without a mention, turn on Message Content Intent under Bot.",
    ),
    list_questions=list_questions,
    try_answer=try_answer,
    locate_bot=locate_bot,
    list_channels=list_channels_by_name,
    invite="see that its role may view the channel and write there",
    workspaces_key="servers",
)
