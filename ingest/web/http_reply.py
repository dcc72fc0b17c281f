"""Read what a web server replies within bounds, and say in plain words what went wrong.

No message ever repeats a query or a credential.
"""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx

from ingest.types import SourceUnavailable

T = TypeVar("T")

RETRY_HINT = "It is tried again at the next refresh; check that it can be reached from here if it goes on."


class AccessDenied(SourceUnavailable):
    """A server answered 401 or 403."""


class ResponseTooLarge(SourceUnavailable):
    """A reply is larger than the limit."""


class ReadingStopped(SourceUnavailable):
    def __init__(self) -> None:
        super().__init__("Reading was stopped.", hint="Run the same command again to go on.")


class RetryableWebError(Exception):
    """An error that may not occur again. `str()` completes a sentence, as in "HOST did not answer in time"."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait  # seconds that the server asks us to wait; None if unknown
        self.progressed = False  # whether so much came before that the try does not count as failed


def retry(url: str, tries: int, once: Callable[[], T], rest: Callable[[float | None, int], None]) -> T:
    """Retry until it succeeds; `rest` gets the wait that the server asks for, and the number of failures in a row."""
    tried = 0
    while True:
        try:
            return once()
        except RetryableWebError as error:
            tried = 1 if error.progressed else tried + 1
            if tried >= tries:
                raise SourceUnavailable(f"{format_url(url)} {error}.", hint=RETRY_HINT) from error
            rest(error.wait, tried)


def format_url(url: str | httpx.URL) -> str:
    """Return an address as messages say it: without user, password, query and fragment."""
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        return "an address that cannot be read"
    port = f":{address.port}" if address.port else ""
    return f"{address.scheme}://{address.host}{port}{address.path}"


def describe_transport_error(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "did not answer in time"
    if isinstance(error, httpx.ConnectError):
        return f"cannot be reached ({error})" if str(error) else "cannot be reached"
    if isinstance(error, httpx.UnsupportedProtocol):
        return "is not a web address"
    return "broke off"


def make_access_denied(url: httpx.URL, status: int, credential: str) -> AccessDenied:
    if credential:
        hint = f"Check {credential}: it may be missing, have lapsed, or lack the right to read this."
    else:
        hint = "It requires a login: give the source a credential that may read this."
    return AccessDenied(f"{format_url(url)} denies us access (HTTP {status}).", hint=hint)


def parse_json_object(content: bytes) -> dict[str, Any] | None:
    """Parse a reply; None if it is not a JSON object."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def refuse_repeated_query(url: str, query: Mapping[str, object], following: Mapping[str, object]) -> None:
    """Raise `SourceUnavailable` if a server's next page of results is the current one: listing would never end."""
    if following == query:
        raise SourceUnavailable(f"{format_url(url)} repeats the same page of results.", hint=RETRY_HINT)


def is_same_site(one: httpx.URL, other: httpx.URL) -> bool:
    """Tell whether two addresses are of one server, which may upgrade http to https."""
    if one.host != other.host:
        return False
    upgraded = one.scheme == "http" and other.scheme == "https" and one.port is None and other.port is None
    return upgraded or (one.scheme == other.scheme and one.port == other.port)


def parse_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def parse_http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After, which may be a date; None if it is missing or useless."""
    value = headers.get("retry-after", "").strip()
    if parse_number(value) is not None:
        return float(value[:9])
    if (then := parse_http_date(value)) is None:
        return None
    # The server's own clock says how long that is, whatever ours says.
    now = parse_http_date(headers.get("date", "")) or datetime.now(UTC)
    return max((then - now).total_seconds(), 0.0)


def read_content(answer: httpx.Response, blocks: Iterable[bytes], largest: int) -> bytes:
    """Return the unpacked body. Raises `ResponseTooLarge` instead of holding more than `largest` bytes."""
    encoding = answer.headers.get("content-encoding", "").strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip"}:
        raise RetryableWebError("uses an encoding that was not requested")
    unpacker = zlib.decompressobj(wbits=31) if encoding.endswith("gzip") else None
    content = bytearray()
    for block in blocks:
        try:
            content += unpacker.decompress(block, largest + 1 - len(content)) if unpacker else block
        except zlib.error as error:
            raise RetryableWebError("sends data that cannot be unpacked") from error
        if len(content) > largest:
            raise ResponseTooLarge(
                f"{format_url(answer.url)} is larger than {largest / 2**20:,.0f} MB.", hint="Leave it out by a rule."
            )
    if unpacker and content and not unpacker.eof:
        raise RetryableWebError("broke off")
    return bytes(content)
