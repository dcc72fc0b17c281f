"""Mattermost's settings, and its entry in the registry of platforms."""

from collections.abc import Mapping
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, SecretStr

from bot.settings.platform_registry import PersonId, PlatformEntry, PlatformSettings, SecretShape, require_people_of
from bot.settings.tables.field_types import LIVE, RESTART, SCOPE, validate_web_address
from storage.language.lazy_pattern import lazy_compile

_NAME = lazy_compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ID = lazy_compile(r"[a-z0-9]{26}")


def _validate_url(url: str) -> str:
    return validate_web_address(url).removesuffix("/api/v4").rstrip("/") if url else ""


def _validate_teams(teams: tuple[str, ...]) -> tuple[str, ...]:
    if wrong := next((team for team in teams if not _NAME.fullmatch(team)), ""):
        raise ValueError(
            f'has {wrong!r}, which is not a team; write its id, or its name as in addresses, such as "acme"'
        )
    return teams


def _validate_people(ids: tuple[str, ...]) -> tuple[str, ...]:
    if wrong := next((id_ for id_ in ids if not _ID.fullmatch(id_)), ""):
        raise ValueError(f"has {wrong!r}, which is not a user id; Mattermost's have 26 letters and digits")
    return ids


class MattermostSettings(PlatformSettings):
    """The table `[mattermost]`: the bot's account on a server, the teams in which it answers, and people's rights."""

    SECRETS: ClassVar[Mapping[str, str]] = {"token": "MATTERMOST_TOKEN"}

    token: Annotated[SecretStr, RESTART] = SecretStr("")
    url: Annotated[str, AfterValidator(_validate_url), RESTART] = ""  # of the server, such as https://chat.example.com
    teams: Annotated[tuple[str, ...], AfterValidator(_validate_teams), SCOPE] = ()
    """The teams in which the bot answers, by id or by name in addresses. It answers in no other team."""
    admins: Annotated[tuple[PersonId, ...], require_people_of("mattermost"), LIVE] = ()  # who may change channels
    deny: Annotated[tuple[str, ...], AfterValidator(_validate_people), SCOPE] = ()  # ids of users who are not answered
    guests: Annotated[bool, SCOPE] = False  # whether `*` includes guests of the server
    callback_url: Annotated[str, AfterValidator(_validate_url), RESTART] = ""
    """The address of `[http]` for the Mattermost server: it enables buttons. Without it, reactions are used."""
    calls_per_second: Annotated[int, RESTART] = Field(default=10, ge=1, le=1_000)
    """The server's own rate limit, if enabled."""

    @property
    def missing(self) -> tuple[str, ...]:
        return ("[mattermost] url",) if self.configured and not self.url else ()


PLATFORM = PlatformEntry(
    name="mattermost",
    title="Mattermost",
    workspace="TEAM",
    settings=MattermostSettings,
    opener="bot.platforms.mattermost.wiring:open_mattermost",
    checker="bot.platforms.mattermost.setup:check_mattermost",
    guide="bot.platforms.mattermost.setup:SETUP",
    shapes=(
        SecretShape(r"[a-z0-9]{26}", "a token (26 letters and digits)", "token", "of its bot account", unique=False),
    ),
)
