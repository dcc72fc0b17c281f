"""List the pages of a site by its sitemaps, as far as its robots.txt allows.

Sitemaps are XML as sitemaps.org has it, packed or not, or plain text with an address a line. They come from strangers:
what they unpack to is bounded, one that declares a document type is refused unread, and only addresses of the site
itself count, whatever a sitemap says. Robots.txt (RFC 9309) is read by protego.
"""

import re
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import urljoin, urlsplit, urlunsplit

import httpx
from protego import Protego

from ingest.readers import value_parsers
from ingest.types import SourceUnavailable
from ingest.web.http_reply import AccessDenied, ResponseTooLarge, format_url
from ingest.web.web_client import WebClient, WebResponse
from storage.language.lazy_pattern import lazy_compile

ROBOTS_AGENT = "footnote"
LARGEST_ROBOTS = 512 << 10  # bytes that are looked at; the RFC asks for 500 kibibytes at least


_VERSION_OF_AGENT = lazy_compile(r"^([^\S\n]*user-agent[^\S\n]*:[^/#\n]*)/[^#\n]*", re.IGNORECASE | re.MULTILINE)


class RobotsRules:
    """Apply a robots.txt, however odd. Agents may be named in it with a version, as in `Footnote/2`."""

    def __init__(self, content: bytes = b"") -> None:
        text = content[:LARGEST_ROBOTS].decode("utf-8-sig", "replace")
        self._rules = Protego.parse(_VERSION_OF_AGENT.sub(r"\1", text))

    def allows(self, url: str) -> bool:
        return self._rules.can_fetch(url, ROBOTS_AGENT)

    @property
    def delay(self) -> float:
        """Seconds between two requests."""
        return self._rules.crawl_delay(ROBOTS_AGENT) or 0.0

    @property
    def sitemaps(self) -> tuple[str, ...]:
        return tuple(self._rules.sitemaps)


LARGEST_SITEMAP = 64 << 20  # bytes of XML; sitemaps.org allows 50 million
MOST_ENTRIES = 200_000  # entries of one file; sitemaps.org allows 50,000
_TEXT_LINE = lazy_compile(r"https?://\S+")


@dataclass(frozen=True, slots=True)
class SitemapEntry:
    """Hold a page, or another sitemap. `changed` has a time zone; `exact` tells whether the time of day was said."""

    url: str
    changed: datetime | None = None
    exact: bool = False


@dataclass(frozen=True, slots=True)
class SitemapFile:
    pages: tuple[SitemapEntry, ...] = ()
    sitemaps: tuple[SitemapEntry, ...] = ()


def parse_sitemap(content: bytes) -> SitemapFile:
    """Read a sitemap. Raises `ValueError` with a plain reason where it is none."""
    content = _unpack(content) if content.startswith(b"\x1f\x8b") else content
    if not content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and b"\0" not in content[:64]:
        return _parse_lines(content)
    try:
        root = value_parsers.parse_xml(content)
    except ValueError as error:
        raise ValueError("is no XML") from error
    if root.getroottree().docinfo.internalDTD is not None:
        raise ValueError("declares a document type, which no sitemap needs")
    found = tuple(_parse_entry(element) for element in root.iterchildren("{*}url", "{*}sitemap"))
    if len(found) > MOST_ENTRIES:
        raise ValueError(f"has more than {MOST_ENTRIES:,} entries")
    named = str(root.tag).rpartition("}")[2]
    if named not in {"urlset", "sitemapindex"}:
        raise ValueError("is no sitemap")
    there = tuple(entry for entry in found if entry.url)
    return SitemapFile(pages=there) if named == "urlset" else SitemapFile(sitemaps=there)


def _unpack(content: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        plain = unpacker.decompress(content, LARGEST_SITEMAP + 1)
    except zlib.error as error:
        raise ValueError("cannot be unpacked") from error
    if len(plain) > LARGEST_SITEMAP:
        raise ValueError(f"unpacks to more than {LARGEST_SITEMAP >> 20} MB")
    if not unpacker.eof:
        raise ValueError("is cut short")
    return plain


def _parse_lines(content: bytes) -> SitemapFile:
    lines = [line.strip() for line in content.decode("utf-8-sig", "replace").splitlines() if line.strip()]
    if not lines or len(lines) > MOST_ENTRIES or not all(_TEXT_LINE.fullmatch(line) for line in lines):
        raise ValueError("is no sitemap")
    return SitemapFile(pages=tuple(SitemapEntry(line) for line in lines))


def _parse_entry(element: value_parsers.Element) -> SitemapEntry:
    url = "".join((element.findtext("{*}loc") or "").split())
    lastmod = (element.findtext("{*}lastmod") or "").strip()
    changed = _parse_moment(lastmod)
    return SitemapEntry(url, changed, exact=changed is not None and "T" in lastmod)


def _parse_moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    try:
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except OverflowError:
        return None


MOST_FILES = 1_000
MOST_PAGES = 500_000
_LONGEST_DELAY = 30.0
_SITEMAP_ENDINGS = (".xml", ".gz", ".txt")


@dataclass(frozen=True, slots=True)
class SitePages:
    pages: dict[str, SitemapEntry]
    unread: tuple[tuple[str, str], ...]
    """Sitemaps that could not be read, with reasons: what they list is not known to be gone."""


def get_origin(url: str) -> str:
    """Return the beginning of an address, up to its path."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, "", "", ""))


def resolve_page_url(origin: str, url: str) -> str:
    """Return the address of a page of a site, without fragment, asked for as the site itself is; empty for others'."""
    if url.startswith(origin + "/"):
        return url.partition("#")[0]
    try:
        mine, parts = urlsplit(origin), urlsplit(url)
    except ValueError:
        return ""
    if parts.scheme not in {"http", "https"} or mine.netloc.lower() != parts.netloc.lower():
        return ""
    return origin + urlunsplit(("", "", parts.path or "/", parts.query, ""))


def make_page_key(address: str) -> str:
    """Return the key of a page: its address without the slash at its end, which the keys of folders have."""
    return address.rstrip("/")


def fetch_robots(web: WebClient, origin: str) -> RobotsRules:
    """Ask for robots.txt, and rest between requests as it says; none allows all. Raises `SourceUnavailable`."""
    try:
        reply = web.get(f"{origin}/robots.txt")
    except (AccessDenied, ResponseTooLarge):
        return RobotsRules()
    kind = reply.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    found = RobotsRules(reply.content) if reply.status == httpx.codes.OK and kind != "text/html" else RobotsRules()
    web.slow_down(min(found.delay, _LONGEST_DELAY))
    return found


def list_pages(web: WebClient, url: str, robots: RobotsRules, wanted: Callable[[SitemapEntry], bool]) -> SitePages:
    """Go through the sitemaps of a site, or the one at `url`. Raises `SourceUnavailable` if none can be read."""
    origin = get_origin(url)
    left = deque(_first_sitemaps(url, origin, robots))
    asked: set[str] = set(left)
    pages: dict[str, SitemapEntry] = {}
    unread: list[tuple[str, str]] = []
    read = 0
    while left:
        address = left.popleft()
        try:
            found = _fetch_sitemap(web, origin, address)
        except ValueError as error:
            unread.append((address, f"the sitemap {error}"))
            continue
        read += 1
        for entry in found.sitemaps:
            there = resolve_page_url(origin, entry.url)
            if there and there not in asked and len(asked) < MOST_FILES:
                asked.add(there)
                left.append(there)
        for entry in found.pages:
            there = resolve_page_url(origin, entry.url)
            page = entry if there == entry.url else replace(entry, url=there)
            if there and len(pages) < MOST_PAGES and wanted(page):
                pages.setdefault(make_page_key(there), page)
    if not read:
        address, reason = unread[0]
        hint = "Give the address of its sitemap, such as https://docs.example.com/sitemap.xml."
        raise SourceUnavailable(f"{format_url(address)}: {reason}.", hint=hint)
    return SitePages(pages, tuple(unread))


def _first_sitemaps(url: str, origin: str, robots: RobotsRules) -> list[str]:
    if urlsplit(url).path.lower().endswith(_SITEMAP_ENDINGS):
        return [url]
    named = dict.fromkeys(resolve_page_url(origin, address) for address in robots.sitemaps)
    return [address for address in named if address] or [f"{origin}/sitemap.xml"]


def _fetch_sitemap(web: WebClient, origin: str, address: str) -> SitemapFile:
    """Get one sitemap. Raises `ValueError` with a reason; `SourceUnavailable` where the site does not answer."""
    try:
        reply: WebResponse = web.get(address, follow=lambda target: bool(resolve_page_url(origin, target)))
    except AccessDenied as error:
        raise ValueError("may not be read") from error
    except ResponseTooLarge as error:
        raise ValueError("is too large") from error
    if target := reply.headers.get("location", ""):
        raise ValueError(f"leads to another site, {format_url(urljoin(address, target))}")
    if reply.status != httpx.codes.OK:
        raise ValueError(f"answers HTTP {reply.status}")
    return parse_sitemap(reply.content)
