"""When a call is tried again, and after how long. Pure: the caller waits."""

from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random

_FIRST_SECONDS = 0.5
_LONGEST_SECONDS = 8.0
PATIENCE_SECONDS = 120.0
"""A server that asks for a longer wait is not waited for."""


class Passing(Exception):
    """A fault that may pass. `str()` says what happened, for the error that it becomes when it does not."""

    def __init__(
        self,
        message: str,
        *,
        hint: str = "",
        after: float | None = None,
        tries: int | None = None,
        taken: bool = True,
    ) -> None:
        super().__init__(message)
        self.hint = hint
        self.after = after
        """How many seconds the server asks to wait; None: it does not say."""
        self.tries = tries
        """How often to try again at most; None: as often as set."""
        self.taken = taken
        """Whether the server may have worked on the call."""


def backoff(tried: int, random: Random) -> float:
    """Return how many seconds to wait after the `tried`th try (1 is the first): doubling, with half of it by chance."""
    longest = min(_LONGEST_SECONDS, _FIRST_SECONDS * 2.0 ** min(tried - 1, 10))
    return longest * (0.5 + 0.5 * random.random())


def asked_wait(headers: Mapping[str, str], now: datetime) -> float | None:
    """Return how many seconds a server asks to wait, by `retry-after-ms` or `Retry-After` (seconds, or a date).

    Args:
        headers: With names in lower case.
        now: The time, with its zone.
    """
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    said = headers.get("retry-after", "")
    seconds = _number(said)
    return _until(said, now) if seconds is None else seconds


def _number(text: str) -> float | None:
    """Return a number that is finite and not negative, else None."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None


def _until(date: str, now: datetime) -> float | None:
    try:
        then = parsedate_to_datetime(date)
    except ValueError:
        return None
    return max(0.0, ((then if then.tzinfo else then.replace(tzinfo=UTC)) - now).total_seconds())
