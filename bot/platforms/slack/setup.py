"""Ask what Slack needs, and try it: for `footnote setup`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bot.platforms.platform_setup import BotLocation, PlatformSetup, SetupQuestion, Workspace
from bot.platforms.slack.health_check import check_bot, check_http, check_socket

if TYPE_CHECKING:
    from bot.doctor.diagnosis import CheckResult
    from bot.platforms.slack import SlackSettings

_BOT = SetupQuestion("bot_token", "Bot token (xoxb-…)", "It is under OAuth & Permissions, once the app is installed.")
_APP = SetupQuestion(
    "app_token",
    "App token (xapp-…)",
    "It is under Basic Information, App-Level Tokens: generate one with the scope connections:write.",
)
_SIGNING = SetupQuestion("signing_secret", "Signing secret", "It is under Basic Information, App Credentials.")
_PAGES = 20  # of channels, which hold a thousand each


def list_questions(table: "SlackSettings") -> Sequence[SetupQuestion]:
    return (_BOT, _APP if table.mode == "socket" else _SIGNING)


async def try_answer(table: "SlackSettings", key: str) -> "Sequence[CheckResult]":
    if key == "bot_token":
        return await check_bot(table, ())
    return await check_socket(table) if key == "app_token" else check_http(table)


async def locate_bot(table: "SlackSettings") -> BotLocation:
    from bot.platforms.slack.client import build_web_client

    who = await build_web_client(table.bot_token.get_secret_value(), table.api_url).auth_test()
    return BotLocation(f"@{who['user']}", (Workspace(str(who["team_id"]), str(who["team"])),))


async def list_channels(table: "SlackSettings", _: str) -> Mapping[str, str]:
    from bot.platforms.slack.client import build_web_client

    client, found, cursor = build_web_client(table.bot_token.get_secret_value(), table.api_url), dict[str, str](), ""
    for _page in range(_PAGES):
        said = await client.conversations_list(
            types="public_channel,private_channel", exclude_archived=True, limit=1_000, cursor=cursor or None
        )
        found |= {str(one["name"]): str(one["id"]) for one in said["channels"]}
        cursor = (said.get("response_metadata") or {}).get("next_cursor", "")
        if not cursor:
            break
    return found


SETUP = PlatformSetup(
    steps=(
        "Open https://api.slack.com/apps, press Create New App, From a manifest, and choose your workspace.",
        "Paste slack-manifest.yaml, of Footnote's own folder; press Create, then Install to Workspace.",
    ),
    list_questions=list_questions,
    try_answer=try_answer,
    locate_bot=locate_bot,
    list_channels=list_channels,
    invite="/invite {mention}",
)
