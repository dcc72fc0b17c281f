"""Define the settings of Slack and Discord: how the bot connects, and whom it answers."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr

from bot.platforms.shared.platform_contract import PersonId, platform_of
from bot.settings.field_types import SettingsTable, validate_web_address
from storage.language.lazy_pattern import lazy_compile

SLACK_SECRETS: Mapping[str, str] = {
    "bot_token": "SLACK_BOT_TOKEN",
    "app_token": "SLACK_APP_TOKEN",
    "signing_secret": "SLACK_SIGNING_SECRET",
}
"""The variables by which Slack's own tools know the secrets."""
_REQUIRED_SECRETS = {"socket": ("bot_token", "app_token"), "http": ("bot_token", "signing_secret")}


def _validate_slack_api(url: str) -> str:
    if not url:
        raise ValueError("must be an address, such as https://slack.com/api/")
    return validate_web_address(url).rstrip("/") + "/"


def _validate_slack_people(people: tuple[str, ...]) -> tuple[str, ...]:
    if stranger := next((person for person in people if platform_of(person) != "slack"), ""):
        raise ValueError(f'names {stranger}, who is not on Slack; write "slack:TEAM/USER"')
    return people


class SlackSettings(SettingsTable):
    """A Slack app, and how it is reached."""

    mode: Literal["socket", "http"] = "socket"
    """Whether events come over a socket that we open, or by requests that Slack makes to `[http]`."""
    api_url: Annotated[str, AfterValidator(_validate_slack_api)] = "https://slack.com/api/"
    bot_token: SecretStr = SecretStr("")
    app_token: SecretStr = SecretStr("")
    """Opens sockets; begins with `xapp-`."""
    signing_secret: SecretStr = SecretStr("")
    """Proves that a request comes from Slack."""
    admins: Annotated[tuple[PersonId, ...], AfterValidator(_validate_slack_people)] = Field(default=())
    """Who may change channels by command."""

    @property
    def configured(self) -> bool:
        """Whether there is to be a Slack: somebody gave one of its secrets."""
        return bool(self.bot_token or self.app_token or self.signing_secret)

    @property
    def missing(self) -> tuple[str, ...]:
        """The variables of what the mode needs and nobody gave; none where Slack is not configured."""
        wanted = _REQUIRED_SECRETS[self.mode] if self.configured else ()
        return tuple(SLACK_SECRETS[name] for name in wanted if not getattr(self, name))

    def completed(self, environ: Mapping[str, str]) -> "SlackSettings":
        """Return it with secrets that it leaves open taken from the variables that Slack's own tools read."""
        open_ones = [name for name in SLACK_SECRETS if not getattr(self, name)]
        found = {name: SecretStr(environ.get(SLACK_SECRETS[name], "").strip()) for name in open_ones}
        return self.model_copy(update=found)


DISCORD_SECRETS: Mapping[str, str] = {"token": "DISCORD_TOKEN"}
"""The variable by which bots know the secret."""
_SNOWFLAKE = lazy_compile(r"\d{1,20}")


def _validate_discord_api(url: str) -> str:
    if not url:
        raise ValueError("must be an address, such as https://discord.com/api/v10")
    return validate_web_address(url).rstrip("/")


def _validate_gateway(url: str) -> str:
    if not re.match(r"wss?://[^/\s]+", url):
        raise ValueError('must begin with "wss://", such as wss://gateway.discord.gg/')
    return url


def _validate_discord_people(people: tuple[str, ...]) -> tuple[str, ...]:
    if stranger := next((person for person in people if platform_of(person) != "discord"), ""):
        raise ValueError(f'names {stranger}, who is not on Discord; write "discord:SERVER/USER"')
    return people


def _validate_ids(ids: tuple[str, ...]) -> tuple[str, ...]:
    if wrong := next((one for one in ids if not _SNOWFLAKE.fullmatch(one)), ""):
        raise ValueError(
            f'has {wrong!r}, which is no id; Discord\'s are numbers in quotes, such as "1188000000000000000"'
        )
    return ids


DiscordIds = Annotated[tuple[str, ...], AfterValidator(_validate_ids)]


class DiscordSettings(SettingsTable):
    """A Discord app, where it is, and whom it answers."""

    token: SecretStr = SecretStr("")
    api_url: Annotated[str, AfterValidator(_validate_discord_api)] = "https://discord.com/api/v10"
    gateway_url: Annotated[str, AfterValidator(_validate_gateway)] = "wss://gateway.discord.gg/"
    servers: DiscordIds = ()
    """The servers that are the team's own, by their ids. Elsewhere nothing is answered."""
    admins: Annotated[tuple[PersonId, ...], AfterValidator(_validate_discord_people)] = ()
    """Who may stop and take back any answer; `/footnote` is for those whom Discord's own permissions let use it."""
    deny: DiscordIds = ()
    """People and roles that are not answered, by their ids."""
    cooldown_seconds: float = Field(default=0, ge=0, le=86_400)
    """How long somebody waits before asking anew; 0 for not at all."""
    message_content: bool = False
    """Whether the app has the privileged intent that lets it read messages which do not mention it."""
    user_install: bool = False
    """Whether people may install the app for themselves, and use its commands wherever they are."""
    shards: int = Field(default=1, ge=0, le=10_000)
    """How many connections share the servers; 0 for as many as Discord advises."""
    privacy: str = Field(default="", max_length=1_500)
    """What `/privacy` says; empty for a text of ours."""

    @property
    def configured(self) -> bool:
        """Whether there is to be a Discord: somebody gave its token."""
        return bool(self.token)

    def completed(self, environ: Mapping[str, str]) -> "DiscordSettings":
        """Return it with the token, where it leaves that open, taken from the variable that bots read."""
        if self.token:
            return self
        return self.model_copy(update={"token": SecretStr(environ.get(DISCORD_SECRETS["token"], "").strip())})
