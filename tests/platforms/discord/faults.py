"""How the fake Discord fails requests as told, once each."""

import asyncio
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Fault:
    """How one request fails. With all as it is, it does not: it is only late, if `until` says so."""

    status: int | None = None
    """The HTTP status of the answer; 0 cuts the connection."""
    retry_after: float = 1.0
    """Seconds of the client's, for a 429."""
    everywhere: bool = False
    """Whether a 429 is for all routes."""
    via: bool = True
    """Whether a 429 is Discord's own: without, it is that of a banned address."""
    page: bool = False
    """Whether the answer is the page of a proxy, whatever its status."""
    code: int | None = None
    """The code of a refusal in Discord's own words; without, it is the page of a proxy."""
    done: bool = False
    """Whether the request has its effect all the same."""
    until: asyncio.Event | None = None
    """What the request waits for before anything happens."""

    def after(self, event: asyncio.Event) -> "Fault":
        """Return the same fault, which waits for an event."""
        return replace(self, until=event)


LIMITED = Fault(429, retry_after=0.05)
LIMITED_EVERYWHERE = Fault(429, retry_after=0.05, everywhere=True)
BANNED = Fault(429, via=False)
BROKEN = Fault(500)
UNAVAILABLE = Fault(503)
"""discord.py sends 500, 502, 504 and 524 again by itself, after a second and more; this not."""
RESET = Fault(0)
LOST = Fault(0, done=True)
"""The message was posted, but nobody hears so."""
LOST_500 = Fault(500, done=True)
