"""A sitemap: addresses with the times of their last change, or the addresses of other sitemaps. Pure.

XML as sitemaps.org has it, packed or not, or plain text with an address a line. Sitemaps come from strangers: what
they unpack to is bounded, and one that declares a document type, which none needs, is refused unread.
"""

import re
import zlib
from dataclasses import dataclass
from datetime import UTC, datetime

from ingest.formats import elements

LARGEST = 64 << 20
"""Bytes of XML; sitemaps.org allows 50 million."""
MOST = 200_000
"""Entries of one file; sitemaps.org allows 50,000."""
_TEXT_LINE = re.compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class Entry:
    """A page, or another sitemap. `changed` has a time zone; `exact` tells whether the time of day was said."""

    url: str
    changed: datetime | None = None
    exact: bool = False


@dataclass(frozen=True, slots=True)
class SitemapFile:
    """What stands in one file."""

    pages: tuple[Entry, ...] = ()
    sitemaps: tuple[Entry, ...] = ()


def parsed(content: bytes) -> SitemapFile:
    """Read a sitemap. Raises `ValueError` with a plain reason where it is none."""
    content = _unpacked(content) if content.startswith(b"\x1f\x8b") else content
    if not content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and b"\0" not in content[:64]:
        return _of_lines(content)
    try:
        root = elements.xml(content)
    except ValueError as error:
        raise ValueError("is no XML") from error
    if root.getroottree().docinfo.internalDTD is not None:
        raise ValueError("declares a document type, which no sitemap needs")
    found = tuple(_entry(element) for element in root.iterchildren("{*}url", "{*}sitemap"))
    if len(found) > MOST:
        raise ValueError(f"has more than {MOST:,} entries")
    named = str(root.tag).rpartition("}")[2]
    if named not in {"urlset", "sitemapindex"}:
        raise ValueError("is no sitemap")
    there = tuple(entry for entry in found if entry.url)
    return SitemapFile(pages=there) if named == "urlset" else SitemapFile(sitemaps=there)


def _unpacked(content: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        plain = unpacker.decompress(content, LARGEST + 1)
    except zlib.error as error:
        raise ValueError("cannot be unpacked") from error
    if len(plain) > LARGEST:
        raise ValueError(f"unpacks to more than {LARGEST >> 20} MB")
    if not unpacker.eof:
        raise ValueError("is cut short")
    return plain


def _of_lines(content: bytes) -> SitemapFile:
    lines = [line.strip() for line in content.decode("utf-8-sig", "replace").splitlines() if line.strip()]
    if not lines or len(lines) > MOST or not all(_TEXT_LINE.fullmatch(line) for line in lines):
        raise ValueError("is no sitemap")
    return SitemapFile(pages=tuple(Entry(line) for line in lines))


def _entry(element: elements.Element) -> Entry:
    url = "".join((element.findtext("{*}loc") or "").split())
    said = (element.findtext("{*}lastmod") or "").strip()
    changed = _moment(said)
    return Entry(url, changed, exact=changed is not None and "T" in said)


def _moment(said: str) -> datetime | None:
    """Return a date as W3C writes it; None for any other."""
    try:
        moment = datetime.fromisoformat(said)
    except ValueError:
        return None
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        return None
