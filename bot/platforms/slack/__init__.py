"""Slack's settings, and its entry in the registry of platforms.

Slack's libraries are imported only if a workspace is configured.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, SecretStr

from bot.settings.platform_registry import PersonId, PlatformEntry, PlatformSettings, SecretShape, require_people_of
from bot.settings.tables.field_types import LIVE, RESTART, SCOPE, validate_web_address

_REQUIRED_SECRETS = {"socket": ("bot_token", "app_token"), "http": ("bot_token", "signing_secret")}


def _validate_api_url(url: str) -> str:
    if not url:
        raise ValueError("must be an address, such as https://slack.com/api/")
    return validate_web_address(url).rstrip("/") + "/"


class SlackSettings(PlatformSettings):
    """The table `[slack]`: the app's tokens and connection, and its admins."""

    SECRETS: ClassVar[Mapping[str, str]] = {
        "bot_token": "SLACK_BOT_TOKEN",
        "app_token": "SLACK_APP_TOKEN",
        "signing_secret": "SLACK_SIGNING_SECRET",
    }

    mode: Annotated[Literal["socket", "http"], RESTART] = "socket"
    """Whether events arrive over a socket that we open, or by Slack's requests to `[http]`."""
    api_url: Annotated[str, AfterValidator(_validate_api_url), RESTART] = "https://slack.com/api/"
    bot_token: Annotated[SecretStr, RESTART] = SecretStr("")
    app_token: Annotated[SecretStr, RESTART] = SecretStr("")  # opens sockets; begins with `xapp-`
    signing_secret: Annotated[SecretStr, RESTART] = SecretStr("")  # verifies that requests are from Slack
    admins: Annotated[tuple[PersonId, ...], require_people_of("slack"), LIVE] = ()  # who may change channels by command
    guests: Annotated[bool, SCOPE] = False  # whether `*` includes guests of the workspace

    @property
    def missing(self) -> tuple[str, ...]:
        required = _REQUIRED_SECRETS[self.mode] if self.configured else ()
        return tuple(self.SECRETS[name] for name in required if not getattr(self, name))

    @property
    def form(self) -> str:
        return f' with mode = "{self.mode}"'


PLATFORM = PlatformEntry(
    name="slack",
    title="Slack",
    workspace="TEAM",
    settings=SlackSettings,
    opener="bot.platforms.slack.wiring:open_slack",
    checker="bot.platforms.slack.setup:check_slack",
    guide="bot.platforms.slack.setup:SETUP",
    shapes=(
        SecretShape(r"xoxb-\S+", "a bot token (xoxb-…)", "bot_token", "under OAuth & Permissions of the app's page"),
        SecretShape(
            r"xapp-\S+",
            "an app token (xapp-…)",
            "app_token",
            "under Basic Information, App-Level Tokens, with the scope connections:write",
        ),
        SecretShape(
            r"[0-9a-f]{32}",
            "a signing secret (32 digits and a to f)",
            "signing_secret",
            "under Basic Information of the app's page",
            unique=False,
        ),
        SecretShape(r"xoxp-\S+", "a user token (xoxp-…)"),
        SecretShape(r"xox[a-z](?:\.xox[a-z])?-\S+", "another kind of Slack's tokens"),
        SecretShape(r"https://hooks\.slack\.com/\S*", "the address of a webhook"),
        SecretShape(r"\d+\.\d+", "a client ID", unique=False),
        SecretShape(r"A[A-Z0-9]{8,12}", "an app ID", unique=False),
        SecretShape(r"[A-Za-z0-9]{24}", "a verification token", unique=False),
    ),
)
