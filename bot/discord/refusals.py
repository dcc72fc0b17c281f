"""What it means that Discord refuses a call, by its codes; pure.

PlatformError
├── PlatformUnavailable      without `seconds` nobody knows whether it was done; with them it was not
├── CannotPost
│   └── Refused              with Discord's code
│       ├── NoChannel        there is no such channel or thread
│       ├── Archived         a thread has to be opened again first
│       └── Expired          the interaction's 15 minutes are over, or it was never answered
└── PostGone
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from bot.platform import CannotPost, PlatformError, PlatformUnavailable, PostGone

LIMITED = 429
DENIED = frozenset({401, 403, LIMITED})
"""Of these Discord takes only so many before it bans an address."""
_BROKEN = 500
_SECONDS, _LONGEST = 5.0, 3_600.0
"""How long to wait where Discord does not say, and at most."""
_BANNED_SECONDS = 60.0
_GONE = frozenset({10008})
_NO_CHANNEL = frozenset({10003})
_ARCHIVED = frozenset({50083})
_EXPIRED = frozenset({10015, 10062, 50027})
_HINTS: Mapping[int, str] = MappingProxyType(
    {
        0: "The bot token is not valid: copy it anew from the application's page.",
        10003: "The channel is gone.",
        10004: "The bot is not in the server: invite it.",
        40333: "Discord does not know the bot's address for itself: a proxy stands in between.",
        50001: "The bot cannot see the channel: give it the right to.",
        50007: "This person takes no messages from the bot.",
        50013: "The bot lacks a right there: see the rights that docs/discord.md names.",
        50083: "The thread is archived and locked.",
        160005: "The thread is locked.",
        160006: "There are too many open threads.",
    }
)


class Refused(CannotPost):
    """Discord refuses for good. `code` is Discord's own; 0 where it gave none."""

    def __init__(self, message: str, *, hint: str = "", code: int = 0) -> None:
        super().__init__(message, hint=hint)
        self.code = code


class NoChannel(Refused):
    """There is no such channel, or thread."""


class Archived(Refused):
    """The thread is archived: nothing in it can be changed until it is opened again."""


class Expired(Refused):
    """An interaction's token is good no more."""


_KINDS: Mapping[int, type[Refused]] = MappingProxyType(
    {**dict.fromkeys(_NO_CHANNEL, NoChannel), **dict.fromkeys(_ARCHIVED, Archived), **dict.fromkeys(_EXPIRED, Expired)}
)


def refusal(call: str, status: int, body: Any, retry_after: str = "") -> PlatformError:
    """Return the error that a refusal is.

    Args:
        call: What was called, without values.
        status: The HTTP status.
        body: What Discord answered, as JSON; None where it was none.
        retry_after: The header of that name.
    """
    facts = body if isinstance(body, Mapping) else {}
    found = facts.get("code")
    code = found if isinstance(found, int) and not isinstance(found, bool) else 0
    line = f"Discord refused {call}: {f'code {code}' if code else f'status {status}'}."
    if status == LIMITED:
        told = facts.get("retry_after", retry_after)
        seconds = wait_of(told, _SECONDS if facts else _BANNED_SECONDS)
        return PlatformUnavailable(f"Discord asks to wait before {call}.", seconds=seconds)
    if status >= _BROKEN:
        return PlatformUnavailable(line)
    if code in _GONE:
        return PostGone(line)
    hint = _HINTS.get(code, "") if code or status == min(DENIED) else ""
    return _KINDS.get(code, Refused)(line, hint=hint, code=code)


def wait_of(told: Any, otherwise: float) -> float:
    """Return how many seconds Discord wants us to wait."""
    try:
        seconds = float(told)
    except (TypeError, ValueError):
        return otherwise
    return min(max(seconds, 0.0), _LONGEST) if math.isfinite(seconds) else otherwise
