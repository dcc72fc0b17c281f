"""The `[slack]` table of the settings: how the bot is connected to Slack, and who may set its channels."""

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, SecretStr

from bot.place_ids import PersonId, platform_of
from bot.values import Values, web_address

OWNERS_NAMES: Mapping[str, str] = {
    "bot_token": "SLACK_BOT_TOKEN",
    "app_token": "SLACK_APP_TOKEN",
    "signing_secret": "SLACK_SIGNING_SECRET",
}
"""The variables by which Slack's own tools know the secrets."""
_WANTED = {"socket": ("bot_token", "app_token"), "http": ("bot_token", "signing_secret")}


def _api(url: str) -> str:
    if not url:
        raise ValueError("must be an address, such as https://slack.com/api/")
    return web_address(url).rstrip("/") + "/"


def _of_slack(people: tuple[str, ...]) -> tuple[str, ...]:
    if stranger := next((person for person in people if platform_of(person) != "slack"), ""):
        raise ValueError(f'names {stranger}, who is not on Slack; write "slack:TEAM/USER"')
    return people


class SlackSettings(Values):
    """A Slack app, and how it is reached."""

    mode: Literal["socket", "http"] = "socket"
    """Whether events come over a socket that we open, or by requests that Slack makes to `[http]`."""
    api_url: Annotated[str, AfterValidator(_api)] = "https://slack.com/api/"
    bot_token: SecretStr = SecretStr("")
    app_token: SecretStr = SecretStr("")
    """Opens sockets; begins with `xapp-`."""
    signing_secret: SecretStr = SecretStr("")
    """Proves that a request comes from Slack."""
    admins: Annotated[tuple[PersonId, ...], AfterValidator(_of_slack)] = Field(default=())
    """Who may change channels by command."""

    @property
    def configured(self) -> bool:
        """Whether there is to be a Slack: somebody gave one of its secrets."""
        return bool(self.bot_token or self.app_token or self.signing_secret)

    @property
    def missing(self) -> tuple[str, ...]:
        """The variables of what the mode needs and nobody gave; none where Slack is not configured."""
        wanted = _WANTED[self.mode] if self.configured else ()
        return tuple(OWNERS_NAMES[name] for name in wanted if not getattr(self, name))

    def completed(self, environ: Mapping[str, str]) -> "SlackSettings":
        """Return it with secrets that it leaves open taken from the variables that Slack's own tools read."""
        open_ones = [name for name in OWNERS_NAMES if not getattr(self, name)]
        found = {name: SecretStr(environ.get(OWNERS_NAMES[name], "").strip()) for name in open_ones}
        return self.model_copy(update=found)
