"""Discord's settings, and its entry in the registry of platforms.

The library discord.py is imported only if a token is set.
"""

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, SecretStr, ValidationInfo, field_validator

from bot.settings.platform_registry import PersonId, PlatformEntry, PlatformSettings, SecretShape, require_people_of
from bot.settings.tables.field_types import LIVE, RESTART, SCOPE, validate_web_address
from storage.language.lazy_pattern import lazy_compile

_SNOWFLAKE = lazy_compile(r"\d{1,20}")


def _validate_api_url(url: str) -> str:
    if not url:
        raise ValueError("must be an address, such as https://discord.com/api/v10")
    return validate_web_address(url).rstrip("/")


def _validate_gateway(url: str) -> str:
    if not re.match(r"wss?://[^/\s]+", url):
        raise ValueError('must begin with "wss://", such as wss://gateway.discord.gg/')
    return url


def _validate_ids(ids: tuple[str, ...]) -> tuple[str, ...]:
    if wrong := next((id_ for id_ in ids if not _SNOWFLAKE.fullmatch(id_)), ""):
        raise ValueError(
            f'has {wrong!r}, which is not an id; Discord\'s are numbers in quotes, such as "1188000000000000000"'
        )
    return ids


DiscordIds = Annotated[tuple[str, ...], AfterValidator(_validate_ids)]


class DiscordSettings(PlatformSettings):
    """The table `[discord]`: the app's token and addresses, the servers in which it answers, and people's rights."""

    SECRETS: ClassVar[Mapping[str, str]] = {"token": "DISCORD_TOKEN"}

    token: Annotated[SecretStr, RESTART] = SecretStr("")
    api_url: Annotated[str, AfterValidator(_validate_api_url), RESTART] = "https://discord.com/api/v10"
    gateway_url: Annotated[str, AfterValidator(_validate_gateway), RESTART] = "wss://gateway.discord.gg/"
    servers: Annotated[DiscordIds, SCOPE] = ()
    """The ids of the team's own servers. In other servers, the bot answers nothing publicly."""
    admins: Annotated[tuple[PersonId, ...], require_people_of("discord"), LIVE] = ()
    """Users who may stop and retract any answer; Discord's permissions decide who may use `/footnote`."""
    deny: Annotated[DiscordIds, SCOPE] = ()  # people and roles that are not answered, by their ids
    cooldown_seconds: Annotated[float, LIVE] = Field(default=0.0, ge=0, le=86_400)
    """A user's wait between two questions; 0 for none."""
    message_content: Annotated[bool, RESTART] = False
    """Whether the app has the privileged intent to read messages that do not mention it."""
    user_install: Annotated[bool, RESTART] = False
    """Whether users may install the app for themselves, and use its commands everywhere."""
    shards: Annotated[int, RESTART] = Field(default=1, ge=0, le=10_000)
    """The number of connections that share the servers; 0 for Discord's recommendation."""
    shard_ids: Annotated[tuple[int, ...], RESTART] = ()
    """The shards of this process, counted from 0; empty for all."""
    privacy: Annotated[str, LIVE] = Field(default="", max_length=1_500)
    """The text of `/privacy`; empty for the default text."""

    @field_validator("shard_ids")
    @classmethod
    def _are_among_the_shards(cls, ids: tuple[int, ...], found: ValidationInfo) -> tuple[int, ...]:
        if any(not 0 <= id_ < found.data.get("shards", 1) for id_ in ids):
            raise ValueError("must be at least 0 and below `shards`, the number of all shards")
        return ids


PLATFORM = PlatformEntry(
    name="discord",
    title="Discord",
    workspace="SERVER",
    settings=DiscordSettings,
    opener="bot.platforms.discord.wiring:open_discord",
    checker="bot.platforms.discord.setup:check_discord",
    guide="bot.platforms.discord.setup:SETUP",
    shapes=(
        SecretShape(
            r"[\w-]{23,28}\.[\w-]{6,7}\.[\w-]{27,}",
            "a bot token (three parts with dots)",
            "token",
            "under Bot, Reset Token, of the application's page",
        ),
        SecretShape(r"[0-9a-f]{64}", "the application's public key", unique=False),
        SecretShape(r"\d{16,20}", "an id", unique=False),
        SecretShape(r"[\w-]{32}", "a client secret", unique=False),
    ),
)
