"""The `[discord]` table of the settings: how the bot is connected to Discord, and whom it answers there."""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, Field, SecretStr

from bot.place_ids import PersonId, platform_of
from bot.values import Values, web_address

OWNERS_NAMES: Mapping[str, str] = {"token": "DISCORD_TOKEN"}
"""The variable by which bots know the secret."""
_SNOWFLAKE = re.compile(r"\d{1,20}")


def _api(url: str) -> str:
    if not url:
        raise ValueError("must be an address, such as https://discord.com/api/v10")
    return web_address(url).rstrip("/")


def _gateway(url: str) -> str:
    if not re.match(r"wss?://[^/\s]+", url):
        raise ValueError('must begin with "wss://", such as wss://gateway.discord.gg/')
    return url


def _of_discord(people: tuple[str, ...]) -> tuple[str, ...]:
    if stranger := next((person for person in people if platform_of(person) != "discord"), ""):
        raise ValueError(f'names {stranger}, who is not on Discord; write "discord:SERVER/USER"')
    return people


def _ids(ids: tuple[str, ...]) -> tuple[str, ...]:
    if wrong := next((one for one in ids if not _SNOWFLAKE.fullmatch(one)), ""):
        raise ValueError(
            f'has {wrong!r}, which is no id; Discord\'s are numbers in quotes, such as "1188000000000000000"'
        )
    return ids


Ids = Annotated[tuple[str, ...], AfterValidator(_ids)]


class DiscordSettings(Values):
    """A Discord app, where it is, and whom it answers."""

    token: SecretStr = SecretStr("")
    api_url: Annotated[str, AfterValidator(_api)] = "https://discord.com/api/v10"
    gateway_url: Annotated[str, AfterValidator(_gateway)] = "wss://gateway.discord.gg/"
    servers: Ids = ()
    """The servers that are the team's own, by their ids. Elsewhere nothing is answered."""
    admins: Annotated[tuple[PersonId, ...], AfterValidator(_of_discord)] = ()
    """Who may stop and take back any answer; `/footnote` is for those whom Discord's own permissions let use it."""
    deny: Ids = ()
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
        return self.model_copy(update={"token": SecretStr(environ.get(OWNERS_NAMES["token"], "").strip())})
