"""Check Slack's tokens and scopes for `footnote doctor` and `footnote setup`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType

from bot.desk.platform_port import AccessDenied, PlatformError, PlatformUnavailable
from bot.doctor.diagnosis import CheckResult, Inspection
from bot.doctor.name_check import check_channel_names
from bot.platforms.platform_setup import BotLocation, PlatformSetup, SetupQuestion, Workspace, explain_unreached
from bot.platforms.slack import SlackSettings
from bot.platforms.slack.client import OPEN_SOCKET, WHO_WE_ARE, open_api
from bot.platforms.slack.directory import find_user_groups, list_channels

SCOPES: Mapping[str, str] = MappingProxyType(
    {
        "app_mentions:read": "reads its mentions",
        "assistant:write": "shows what it is doing, and suggests what to ask",
        "channels:history": "reads threads of public channels that it is in",
        "channels:read": "knows whether a public channel is shared with other organisations",
        "chat:write": "answers",
        "commands": "has commands and the shortcut",
        "groups:history": "reads threads of private channels that it is in",
        "groups:read": "knows whether a private channel is shared",
        "im:history": "reads DMs with it",
        "im:read": "finds DMs with it",
        "mpim:history": "reads group messages that it is in",
        "mpim:read": "knows whether a group message is shared",
        "usergroups:read": "knows who is in the user groups that visible_to names",
        "users:read": "knows a user's organisation and language, and whether they are a guest",
    }
)  # of the bot token, and their purpose
MESSAGE_SCOPES = ("message.channels", "message.groups", "message.im", "message.mpim")
"""Subscribed events that arrive as `message`."""

_TOKEN = "Copy the bot token (xoxb-…) again from the app's page, under OAuth & Permissions, to SLACK_BOT_TOKEN."  # noqa: S105
_APP_TOKEN = (
    "Make an app token (xapp-…) with the scope connections:write on the app's page, under Basic Information, "  # noqa: S105
    "and set SLACK_APP_TOKEN; Socket Mode must be on."
)
_SECRET = "Copy the signing secret again from the app's page, under Basic Information, to SLACK_SIGNING_SECRET."  # noqa: S105
_AWAY = "Check whether this machine reaches slack.com, then try again."
_REFUSED = CheckResult("skip", "Slack: scopes were not checked, because Slack shows them only for a valid bot token.")
_UNREACHED = CheckResult("skip", "Slack: scopes were not checked, because Slack cannot be reached.")
_LETTERS = frozenset("0123456789abcdef")
_SECRET_LENGTH = 32


async def check_slack(scene: Inspection) -> Sequence[CheckResult]:
    """Check the tokens, their scopes, how events arrive, and the channel names of the settings."""
    settings = SlackSettings.read_from(scene.settings)
    bot = await check_bot(settings, scene.settings.readers)
    arrival = await check_socket(settings) if settings.mode == "socket" else check_http(settings)
    async with open_api(settings.bot_token.get_secret_value(), settings.api_url) as call:
        names = await check_channel_names(scene, "slack", lambda: list_channels(call))
    return (*bot, *arrival, *names)


async def check_bot(settings: SlackSettings, readers: Collection[str] = ()) -> Sequence[CheckResult]:
    try:
        async with open_api(settings.bot_token.get_secret_value(), settings.api_url) as call:
            reply = await call.request(WHO_WE_ARE, patience=0.0)
    except PlatformError as error:
        if not _is_refusal(error):
            line = f"Slack: it cannot be reached: {explain_unreached(error, 'Slack')}."
            return (CheckResult("fail", line, _AWAY), _UNREACHED)
        return (CheckResult("fail", f"Slack: the bot token is refused: {_read_code(error)}.", _TOKEN), _REFUSED)
    granted = {name.strip() for name in reply.headers.get("x-oauth-scopes", "").split(",")}
    who = reply.body
    line = f"Slack: the bot is {who.get('user')} in {who.get('team')} (slack:{who.get('team_id')})."
    return (CheckResult("ok", line), *list_missing_scopes(granted, readers))


def list_missing_scopes(granted: set[str], readers: Collection[str] = ()) -> Iterator[CheckResult]:
    """Report the scopes that the bot token lacks. Pure.

    If the readers of no corpus include a user group, the scope for user groups is not needed.
    """
    unneeded = set() if find_user_groups(readers) else {"usergroups:read"}
    for scope in SCOPES:
        if scope not in granted | unneeded:
            hint = f"It {SCOPES[scope]}. Update the app by slack-manifest.yaml, and install it again."
            yield CheckResult("fail", f"Slack: the scope {scope} is missing.", hint)


async def check_socket(settings: SlackSettings) -> Sequence[CheckResult]:
    try:
        async with open_api(settings.app_token.get_secret_value(), settings.api_url) as call:
            await call(OPEN_SOCKET, patience=0.0)
    except PlatformError as error:
        if not _is_refusal(error):
            line = f"Slack: no socket can be requested: {explain_unreached(error, 'Slack')}."
            return (CheckResult("fail", line, _AWAY),)
        return (CheckResult("fail", f"Slack: the app token opens no socket: {_read_code(error)}.", _APP_TOKEN),)
    return (CheckResult("ok", "Slack: the app token opens sockets."),)


def check_http(settings: SlackSettings) -> Sequence[CheckResult]:
    secret = settings.signing_secret.get_secret_value()
    if len(secret) != _SECRET_LENGTH or not set(secret) <= _LETTERS:
        line = "Slack: the signing secret does not look like one (32 digits and a to f)."
        return (CheckResult("warn", line, _SECRET),)
    line = "Slack: the signing secret can only be tested by a request from Slack to /slack/events."
    return (CheckResult("skip", line),)


def _is_refusal(error: PlatformError) -> bool:
    return isinstance(error, AccessDenied) or not isinstance(error, PlatformUnavailable)


def _read_code(error: PlatformError) -> str:
    return str(error).rpartition(": ")[2].rstrip(".")


_BOT = SetupQuestion("bot_token", "Bot token (xoxb-…)", "It is under OAuth & Permissions, once the app is installed.")
_APP = SetupQuestion(
    "app_token",
    "App token (xapp-…)",
    "It is under Basic Information, App-Level Tokens: generate one with the scope connections:write.",
)
_SIGNING = SetupQuestion("signing_secret", "Signing secret", "It is under Basic Information, App Credentials.")


def list_questions(table: SlackSettings) -> Sequence[SetupQuestion]:
    return (_BOT, _APP if table.mode == "socket" else _SIGNING)


async def try_answer(table: SlackSettings, key: str) -> Sequence[CheckResult]:
    if key == "bot_token":
        return await check_bot(table, ())
    return await check_socket(table) if key == "app_token" else check_http(table)


async def locate_bot(table: SlackSettings) -> BotLocation:
    async with open_api(table.bot_token.get_secret_value(), table.api_url) as call:
        who = await call(WHO_WE_ARE)
    return BotLocation(f"@{who['user']}", (Workspace(str(who["team_id"]), str(who["team"])),))


async def list_channels_by_name(table: SlackSettings, _: str) -> Mapping[str, str]:
    async with open_api(table.bot_token.get_secret_value(), table.api_url) as call:
        return {channel.name: channel.id.rpartition("/")[2] for channel in await list_channels(call)}


SETUP = PlatformSetup(
    steps=(
        "Open https://api.slack.com/apps, press Create New App, From a manifest, and choose your workspace.",
        "Paste slack-manifest.yaml from Footnote's own folder; press Create, then Install to Workspace.",
    ),
    list_questions=list_questions,
    try_answer=try_answer,
    locate_bot=locate_bot,
    list_channels=list_channels_by_name,
    invite="/invite {mention}",
)
