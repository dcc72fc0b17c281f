"""Check Slack's tokens and scopes for `footnote doctor`."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from bot.doctor.diagnosis import CheckResult, Inspection
from bot.doctor.name_check import check_channel_names
from bot.platforms.slack import SlackSettings, find_user_groups, read_slack_settings

if TYPE_CHECKING:
    from bot.settings.live.channel_names import NamedChannel

SCOPES: Mapping[str, str] = MappingProxyType(
    {
        "app_mentions:read": "hears where it is mentioned",
        "assistant:write": "shows what it is doing, and suggests what to ask",
        "channels:history": "reads threads of public channels that it is in",
        "channels:read": "knows whether a public channel is shared with other organisations",
        "chat:write": "answers",
        "commands": "has commands and the shortcut",
        "groups:history": "reads threads of private channels that it is in",
        "groups:read": "knows whether a private channel is shared",
        "im:history": "reads what is written to it alone",
        "im:read": "finds the chats with it again",
        "mpim:history": "reads group messages that it is in",
        "mpim:read": "knows whether a group message is shared",
        "usergroups:read": "knows who is in the user groups that visible_to names",
        "users:read": "knows whose organisation somebody is of, who is a guest, and their language",
    }
)  # of the bot token
MESSAGE_SCOPES = ("message.channels", "message.groups", "message.im", "message.mpim")
"""The events that all arrive as `message`."""

_TOKEN = "Copy the bot token (xoxb-…) anew from the app's page, under OAuth & Permissions, to SLACK_BOT_TOKEN."  # noqa: S105
_APP_TOKEN = (
    "Make an app token (xapp-…) with the scope connections:write on the app's page, under Basic Information, "  # noqa: S105
    "and set SLACK_APP_TOKEN; Socket Mode must be on."
)
_SECRET = "Copy the signing secret anew from the app's page, under Basic Information, to SLACK_SIGNING_SECRET."  # noqa: S105
_AWAY = "See whether this machine reaches slack.com, then try again."
_REFUSED = CheckResult("skip", "Slack: scopes were not looked at, for it tells them to a bot token alone.")
_UNREACHED = CheckResult("skip", "Slack: scopes were not looked at, for it could not be asked.")
_LETTERS = frozenset("0123456789abcdef")
_SECRET_LENGTH = 32


async def check_slack(scene: Inspection) -> Sequence[CheckResult]:
    """Whether Slack takes the tokens, and whether they may do all that is needed."""
    settings = read_slack_settings(scene.settings)
    found = await check_bot(settings, scene.settings.readers)
    heard = await check_socket(settings) if settings.mode == "socket" else check_http(settings)
    return (*found, *heard, *await _check_names(settings, scene))


async def _check_names(settings: SlackSettings, scene: Inspection) -> Sequence[CheckResult]:
    from bot.platforms.slack.client import SlackApiClient, SlackRateLimit, build_web_client
    from bot.platforms.slack.intake import list_channels

    call = SlackApiClient(build_web_client(settings.bot_token.get_secret_value(), settings.api_url), SlackRateLimit())

    async def channels() -> "Sequence[NamedChannel]":
        return await list_channels(call, str((await call("auth.test"))["team_id"]))

    return await check_channel_names(scene, "slack", channels)


async def check_bot(settings: SlackSettings, readers: Collection[str]) -> Sequence[CheckResult]:
    from slack_sdk.errors import SlackApiError

    from bot.platforms.slack.client import build_web_client

    try:
        who = await build_web_client(settings.bot_token.get_secret_value(), settings.api_url).auth_test()
    except SlackApiError as error:
        return (CheckResult("fail", f"Slack: the bot token is refused: {_error_code(error)}.", _TOKEN), _REFUSED)
    except Exception as error:  # noqa: BLE001 - whatever it is, Slack could not be asked
        return (CheckResult("fail", f"Slack: it cannot be reached: {_explain(error)}.", _AWAY), _UNREACHED)
    given = {name.strip() for name in str(who.headers.get("x-oauth-scopes", "")).split(",")}
    known = f"Slack: the bot is {who.get('user')} in {who.get('team')} (slack:{who.get('team_id')})."
    return (CheckResult("ok", known), *list_missing_scopes(given, readers))


def list_missing_scopes(given: set[str], readers: Collection[str] = ()) -> Iterator[CheckResult]:
    """Tell what the bot token may not do, by the scopes that it was given and whom `visible_to` names; pure."""
    unneeded = set() if find_user_groups(readers) else {"usergroups:read"}
    for scope in SCOPES:
        if scope not in given | unneeded:
            hint = f"It {SCOPES[scope]}. Update the app by slack-manifest.yaml, and install it again."
            yield CheckResult("fail", f"Slack: the scope {scope} was not given.", hint)


async def check_socket(settings: SlackSettings) -> Sequence[CheckResult]:
    from slack_sdk.errors import SlackApiError

    from bot.platforms.slack.client import build_web_client

    try:
        client, token = build_web_client("", settings.api_url), settings.app_token.get_secret_value()
        await client.apps_connections_open(app_token=token)
    except SlackApiError as error:
        return (CheckResult("fail", f"Slack: the app token opens no socket: {_error_code(error)}.", _APP_TOKEN),)
    except Exception as error:  # noqa: BLE001 - as above
        return (CheckResult("fail", f"Slack: no socket can be asked for: {_explain(error)}.", _AWAY),)
    return (CheckResult("ok", "Slack: the app token opens sockets."),)


def check_http(settings: SlackSettings) -> Sequence[CheckResult]:
    secret = settings.signing_secret.get_secret_value()
    if len(secret) != _SECRET_LENGTH or not set(secret) <= _LETTERS:
        unlike = "Slack: the signing secret does not look like one (32 digits and a to f)."
        return (CheckResult("warn", unlike, _SECRET),)
    said = "Slack: the signing secret cannot be tried from here; Slack proves it by what it sends to /slack/events."
    return (CheckResult("skip", said),)


def _explain(error: Exception) -> str:
    """Say in plain words why nothing was answered."""
    kinds = {kind.__name__ for kind in type(error).__mro__}
    if isinstance(error, TimeoutError):
        return "it does not answer in time"
    if kinds & {"SSLError", "ClientSSLError", "ClientConnectorCertificateError"}:
        return "its certificate is not trusted here, as behind a proxy that opens what is sent"
    return (
        "there is no connection" if isinstance(error, OSError) else f"it answers unlike Slack ({type(error).__name__})"
    )


def _error_code(error: Exception) -> str:
    """Return Slack's word for a refusal, and nothing else of it."""
    response = getattr(error, "response", None)
    code = response.get("error", "") if response is not None and hasattr(response, "get") else ""
    return code if isinstance(code, str) and code.replace("_", "").isalnum() else "it did not say why"
