"""What stands in a server's reply: its content unpacked within bounds, and how long it asks us to wait. Pure."""

import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import httpx

from ingest.web.errors import Hiccup, ReplyTooLarge, shown

SLOWEST = 1024
"""Bytes a second, over all that has come, below which a server is left and asked anew."""


def same_site(one: httpx.URL, other: httpx.URL) -> bool:
    """Whether two addresses are of one server; it may ask for https where it was asked without."""
    if one.host != other.host:
        return False
    upgraded = one.scheme == "http" and other.scheme == "https" and one.port is None and other.port is None
    return upgraded or (one.scheme == other.scheme and one.port == other.port)


def asked_to_wait(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After, which may be given as a date; None where nothing of use is said."""
    said = headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit():
        return float(said[:9])
    try:
        then = _utc(parsedate_to_datetime(said))
    except ValueError:
        return None
    try:
        # The server's own clock says how long that is, whatever ours says.
        now = _utc(parsedate_to_datetime(headers.get("date", "")))
    except ValueError:
        now = datetime.now(UTC)
    return max((then - now).total_seconds(), 0.0)


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def whole_size(status: int, headers: Mapping[str, str]) -> int | None:
    """Return how large a file is of which the first byte was asked for; None if that is not said."""
    if status == httpx.codes.PARTIAL_CONTENT:
        said = headers.get("content-range", "").rpartition("/")[2]
    else:
        said = headers.get("content-length", "") if status == httpx.codes.OK else ""
    return int(said) if said.isascii() and said.isdigit() else None


def content_of(answer: httpx.Response, blocks: Iterable[bytes], largest: int) -> bytes:
    """Return what was sent, unpacked, without ever holding more than `largest` bytes of it.

    Raises:
        ReplyTooLarge: There is more.
        Hiccup: It cannot be unpacked, or ends too early.
    """
    encoding = answer.headers.get("content-encoding", "").strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip"}:
        raise Hiccup("packs its answer in a way that was not asked for")
    unpacker = zlib.decompressobj(wbits=31) if encoding.endswith("gzip") else None
    content = bytearray()
    for block in blocks:
        try:
            content += unpacker.decompress(block, largest + 1 - len(content)) if unpacker else block
        except zlib.error as error:
            raise Hiccup("sends what cannot be unpacked") from error
        if len(content) > largest:
            raise ReplyTooLarge(
                f"{shown(answer.url)} is larger than {largest / 2**20:,.0f} MB.", hint="Leave it out by a rule."
            )
    if unpacker and content and not unpacker.eof:
        raise Hiccup("broke off")
    return bytes(content)
