"""The two dialects that the fake platform speaks, as data: what a message may hold, and how a client reads it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from bot.platforms.discord import messages as discord_escaping
from bot.platforms.discord.messages import CONTENT
from bot.platforms.slack import markup as slack_escaping
from bot.platforms.slack.messages import SECTIONS
from bot.views.message_layout import MessageLimits
from tests.platforms.reading import Reader, discord, slack


@dataclass(frozen=True)
class Dialect:
    """A platform's name and ways of writing, and what its server takes, counted as its documents say."""

    name: Literal["slack", "discord"]
    read: Reader
    escape: Callable[[str], str]
    link: Callable[[str, str], str]
    """Of a title and an address."""
    limits: MessageLimits
    """What we fit messages into."""
    message: int
    """How many characters a message may have in sum."""
    part: int
    """How many a part of it may have."""
    parts: int
    """How many parts it may have."""

    def smaller(self, message: int) -> "Dialect":
        """Return the same dialect with shorter messages."""
        part = min(self.part, message)
        limits = replace(self.limits, message=message, part=part)
        return replace(self, message=message, part=part, limits=limits)


SLACK = Dialect(
    "slack",
    slack,
    slack_escaping.escape_mrkdwn,
    slack_escaping.format_link,
    SECTIONS,
    message=12_000,
    part=3_000,
    parts=50,
)
DISCORD = Dialect(
    "discord",
    discord,
    discord_escaping.escape_markdown,
    discord_escaping.format_link,
    CONTENT,
    message=2_000,
    part=2_000,
    parts=1,
)
DIALECTS = {dialect.name: dialect for dialect in (SLACK, DISCORD)}
