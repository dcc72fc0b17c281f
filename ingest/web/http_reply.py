"""Read web responses within limits, and describe failures for users, without queries and credentials."""

import json
import zlib
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx

from ingest.types import SourceUnavailable

T = TypeVar("T")

RETRY_HINT = "The next refresh tries again; if it keeps failing, check that this machine can reach the address."


class AccessDenied(SourceUnavailable):
    """A server answered 401 or 403."""


class ResponseTooLarge(SourceUnavailable):
    """A response is larger than the limit."""


class RetryableWebError(Exception):
    """An error that may not occur at the next try. `str()` completes a sentence: "HOST did not answer in time"."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait  # seconds that the server asks to wait; None if unknown
        self.progressed = False  # whether so much was received that the try does not count as failed


def retry(url: str, tries: int, once: Callable[[], T], rest: Callable[[float | None, int], None]) -> T:
    """Call `once` until it succeeds. Raises `SourceUnavailable` if it fails `tries` times in a row without progress.

    After each other failure, `rest` waits. It gets the seconds that the server asks for, and the failures so far.
    """
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
    """Return an address for messages: without user, password, query and fragment."""
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        return "an invalid address"
    port = f":{address.port}" if address.port else ""
    return f"{address.scheme}://{address.host}{port}{address.path}"


def describe_transport_error(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.TimeoutException):
        return "did not answer in time"
    if isinstance(error, httpx.ConnectError):
        return f"cannot be reached ({error})" if str(error) else "cannot be reached"
    if isinstance(error, httpx.UnsupportedProtocol):
        return "is not a web address"
    return "closed the connection early"


def make_access_denied(url: httpx.URL, status: int, credential: str) -> AccessDenied:
    if credential:
        hint = f"Check {credential}: it may be missing, expired, or without the right to read this."
    else:
        hint = "It requires a login: give the source a credential that may read this."
    return AccessDenied(f"{format_url(url)} denies access (HTTP {status}).", hint=hint)


def parse_json_object(content: bytes) -> dict[str, Any] | None:
    """Parse the body of a response as JSON; None if it is not a JSON object."""
    try:
        answer = json.loads(content)
    except (ValueError, RecursionError):
        return None
    return answer if isinstance(answer, dict) else None


def refuse_repeated_query(url: str, query: Mapping[str, object], following: Mapping[str, object]) -> None:
    """Raise `SourceUnavailable` if a server names the current page of results as the next one: that would never end."""
    if following == query:
        raise SourceUnavailable(f"{format_url(url)} repeats the same page of results.", hint=RETRY_HINT)


def is_same_site(first: httpx.URL, second: httpx.URL) -> bool:
    """Return whether two addresses are on one server. The second may use https where the first uses http."""
    if first.host != second.host:
        return False
    upgraded = first.scheme == "http" and second.scheme == "https" and first.port is None and second.port is None
    return upgraded or (first.scheme == second.scheme and first.port == second.port)


def parse_number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def parse_http_date(text: str) -> datetime | None:
    try:
        moment = parsedate_to_datetime(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait by the Retry-After header, which may be a date; None if missing or invalid."""
    value = headers.get("retry-after", "").strip()
    if parse_number(value) is not None:
        return float(value[:9])
    if (until := parse_http_date(value)) is None:
        return None
    # Relative to the server's own clock, since ours may differ.
    now = parse_http_date(headers.get("date", "")) or datetime.now(UTC)
    return max((until - now).total_seconds(), 0.0)


def read_content(answer: httpx.Response, blocks: Iterable[bytes], largest: int) -> bytes:
    """Return the unpacked body. Raises `RetryableWebError`, and `ResponseTooLarge` above `largest` bytes."""
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
                f"{format_url(answer.url)} is larger than {largest / 2**20:,.0f} MB.", hint="Exclude it by a rule."
            )
    if unpacker and content and not unpacker.eof:
        raise RetryableWebError("closed the connection early")
    return bytes(content)
