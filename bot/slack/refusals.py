"""What it means that Slack refuses a call, by its codes; pure.

PlatformError
├── PlatformUnavailable      without `seconds` nobody knows whether it was done; with them it was not
│   └── NotLetIn             our token is not valid: what is under way rests until there is one that is
├── CannotPost
│   └── CannotEdit           a post may stay or go, but not change
├── PostGone
└── NotStreaming             a live message that is none any more, or one still: what it shows is set by an update
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from bot.platform import CannotPost, PlatformError, PlatformUnavailable, PostGone

LIMITED = 429
_BROKEN = 500
_SECONDS = 5.0
"""How long to wait where Slack does not say."""
_GONE = frozenset({"message_not_found", "thread_not_found", "no_such_message"})
_AWAY = frozenset({"internal_error", "fatal_error", "service_unavailable", "request_timeout", "team_added_to_org"})
_LIMITED = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})
_STREAM_OVER = frozenset({"message_not_in_streaming_state", "stopped_by_user"})
_FIXED = frozenset({"edit_window_closed", "cant_update_message"})
_NOT_LET_IN = frozenset({"account_inactive", "invalid_auth", "not_authed", "token_expired", "token_revoked"})
_LOCKED_OUT_SECONDS = 60.0
"""How long to wait before a token is tried again that was refused."""
STREAMING = "streaming_state_conflict"
_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "is_archived": "The channel is archived.",
        "channel_not_found": "The bot is not in the channel, or the channel is gone: invite the bot.",
        "not_in_channel": "The bot is not in the channel: invite it.",
        "missing_scope": "The app lacks a scope: compare it with slack-manifest.yaml, and install it again.",
        "invalid_auth": "The bot token is not valid: copy it anew from the app's page.",
        "not_authed": "There is no bot token.",
        "account_inactive": "The bot was removed from the workspace: install the app again.",
        "token_revoked": "The bot token was revoked: install the app again.",
        "token_expired": "The bot token has expired: turn token rotation off, and install the app again.",
    }
)


class NotLetIn(PlatformUnavailable):
    """Slack does not take our token. Nothing was done, and nothing can be until the app is installed again."""

    kind = "not_let_in"

    def for_good(self) -> CannotPost:
        """Return the same for whoever only begins: nothing is under way yet that could rest."""
        return CannotPost(str(self), hint=self.hint)


class CannotEdit(CannotPost):
    """The workspace lets nobody change a message any more. It can be deleted, and said anew."""


class NotStreaming(PlatformError):
    """A message streams no more, or streams still. `still` says which."""

    kind = "not_streaming"

    def __init__(self, message: str, *, still: bool) -> None:
        super().__init__(message)
        self.still = still


def refusal(method: str, code: str, status: int, retry_after: str = "") -> PlatformError:
    """Return the error that a refusal is.

    Args:
        method: What was called.
        code: Slack's word for why; empty where it said none.
        status: The HTTP status.
        retry_after: The header of that name.
    """
    code = code if re.fullmatch(r"[a-z0-9_]{1,60}", code) else ""
    line = f"Slack refused {method}: {code or f'status {status}'}."
    if status == LIMITED or code in _LIMITED:
        return PlatformUnavailable(f"Slack asks to wait before {method}.", seconds=_seconds(retry_after))
    if status >= _BROKEN or code in _AWAY or not code:
        return PlatformUnavailable(line)
    return _about_us(code, line) or _about_the_message(code, line) or CannotPost(line, hint=_HINTS.get(code, ""))


def _about_us(code: str, line: str) -> PlatformError | None:
    return NotLetIn(line, hint=_HINTS[code], seconds=_LOCKED_OUT_SECONDS) if code in _NOT_LET_IN else None


def _about_the_message(code: str, line: str) -> PlatformError | None:
    if code in _GONE:
        return PostGone(line)
    if code in _STREAM_OVER or code == STREAMING:
        return NotStreaming(line, still=code == STREAMING)
    return CannotEdit(line) if code in _FIXED else None


def _seconds(retry_after: str) -> float:
    return float(retry_after) if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", retry_after.strip()) else _SECONDS
