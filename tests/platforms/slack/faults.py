"""How the fake Slack fails calls as told, once each."""

import asyncio
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Fault:
    """How one call fails. With all as it is, it does not: it is only late, if `until` says so."""

    status: int | None = None
    """The HTTP status of the answer; 0 cuts the connection."""
    retry_after: int = 1
    """Seconds, for a 429."""
    page: bool = False
    """Whether the answer is the page of a proxy, whatever its status."""
    text: str = "<html>Server Error</html>"
    """What that page says."""
    form: str = "text/html"
    """The type of its content."""
    error: str = ""
    """An error of Slack's own, such as `stopped_by_user` or `edit_window_closed`, with `ok: false`."""
    done: bool = False
    """Whether the call has its effect all the same."""
    until: asyncio.Event | None = None
    """What the call waits for before anything happens."""
    seconds: float = 0.0
    """How long it waits by the server's clock before anything happens."""

    def after(self, event: asyncio.Event) -> "Fault":
        """Return the same fault, which waits for an event."""
        return replace(self, until=event)


LIMITED = Fault(429)
BROKEN = Fault(500)
UNAVAILABLE = Fault(503)
RESET = Fault(0)
LOST = Fault(0, done=True)
"""The message was posted, but nobody hears so."""
LOST_500 = Fault(500, done=True)


def refused(error: str) -> Fault:
    """Return how a call is refused by an error of Slack's."""
    return Fault(error=error)


def slow(seconds: float) -> Fault:
    """Return how a call is late by the server's clock."""
    return Fault(seconds=seconds)
