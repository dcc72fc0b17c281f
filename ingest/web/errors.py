"""What can go wrong between us and a web server, in plain words: no query, no credentials are ever repeated."""

import httpx

from ingest.types import SourceUnavailable

AGAIN = "It is tried again at the next refresh; check that it can be reached from here if it goes on."


class Denied(SourceUnavailable):
    """A server answered 401 or 403."""


class ReplyTooLarge(SourceUnavailable):
    """A reply is larger than what is read."""


class Stopped(SourceUnavailable):
    """We were told to stop."""

    def __init__(self) -> None:
        super().__init__("Reading was stopped.", hint="Run the same command again to go on.")


class Hiccup(Exception):
    """What may go better if it is tried again. `str()` says what was wrong, as in "HOST did not answer in time"."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait
        """Seconds that the server asks us to wait; None where it says nothing."""


def shown(url: str | httpx.URL) -> str:
    """Return an address as messages say it: without user, password, query and fragment."""
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        return "an address that cannot be read"
    port = f":{address.port}" if address.port else ""
    return f"{address.scheme}://{address.host}{port}{address.path}"


def cause(error: httpx.TransportError) -> str:
    """Return what was wrong with a connection, as in "HOST cannot be reached"."""
    if isinstance(error, httpx.ConnectTimeout | httpx.ReadTimeout | httpx.WriteTimeout | httpx.PoolTimeout):
        return "did not answer in time"
    if isinstance(error, httpx.ConnectError):
        return f"cannot be reached ({error})" if str(error) else "cannot be reached"
    if isinstance(error, httpx.UnsupportedProtocol):
        return "is no address of the web"
    return "broke off"


def denied(url: httpx.URL, status: int, credential: str) -> Denied:
    """Return the error for 401 and 403, which names the credential to look at."""
    if credential:
        hint = f"Check {credential}: it may be missing, have lapsed, or lack the right to read this."
    else:
        hint = "It wants to know who reads: give the source a credential that may read this."
    return Denied(f"{shown(url)} does not let us in (HTTP {status}).", hint=hint)
