"""List the pages of a site by its sitemaps, as far as its robots.txt allows.

Sitemaps are XML as defined by sitemaps.org, compressed or not, or plain text with one address per line. They are
untrusted: the unpacked size is limited, document types are refused, and addresses of other sites are ignored.
Robots.txt (RFC 9309) is parsed by protego.
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
LARGEST_ROBOTS = 512 << 10  # bytes that are parsed; the RFC requires at least 500 KiB


_VERSION_OF_AGENT = lazy_compile(r"^([^\S\n]*user-agent[^\S\n]*:[^/#\n]*)/[^#\n]*", re.IGNORECASE | re.MULTILINE)


class RobotsRules:
    """The rules of a robots.txt, valid or not. Names of agents in it may have a version, as in `Footnote/2`."""

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
    """A page or another sitemap. `changed` has a time zone; `exact`: whether it has a time of day, too."""

    url: str
    changed: datetime | None = None
    exact: bool = False


@dataclass(frozen=True, slots=True)
class SitemapFile:
    pages: tuple[SitemapEntry, ...] = ()
    sitemaps: tuple[SitemapEntry, ...] = ()


def parse_sitemap(content: bytes) -> SitemapFile:
    """Parse a sitemap. Raises `ValueError` with a reason for users if it is invalid."""
    content = _unpack(content) if content.startswith(b"\x1f\x8b") else content
    if not content.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"<") and b"\0" not in content[:64]:
        return _parse_lines(content)
    try:
        root = value_parsers.parse_xml(content)
    except ValueError as error:
        raise ValueError("is not XML") from error
    if root.getroottree().docinfo.internalDTD is not None:
        raise ValueError("declares a document type, which sitemaps do not need")
    entries = tuple(_parse_entry(element) for element in root.iterchildren("{*}url", "{*}sitemap"))
    if len(entries) > MOST_ENTRIES:
        raise ValueError(f"has more than {MOST_ENTRIES:,} entries")
    tag = str(root.tag).rpartition("}")[2]
    if tag not in {"urlset", "sitemapindex"}:
        raise ValueError("is not a sitemap")
    entries = tuple(entry for entry in entries if entry.url)
    return SitemapFile(pages=entries) if tag == "urlset" else SitemapFile(sitemaps=entries)


def _unpack(content: bytes) -> bytes:
    unpacker = zlib.decompressobj(wbits=31)
    try:
        plain = unpacker.decompress(content, LARGEST_SITEMAP + 1)
    except zlib.error as error:
        raise ValueError("cannot be unpacked") from error
    if len(plain) > LARGEST_SITEMAP:
        raise ValueError(f"unpacks to more than {LARGEST_SITEMAP >> 20} MB")
    if not unpacker.eof:
        raise ValueError("is truncated")
    return plain


def _parse_lines(content: bytes) -> SitemapFile:
    lines = [line.strip() for line in content.decode("utf-8-sig", "replace").splitlines() if line.strip()]
    if not lines or len(lines) > MOST_ENTRIES or not all(_TEXT_LINE.fullmatch(line) for line in lines):
        raise ValueError("is not a sitemap")
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
    unread: tuple[tuple[str, str], ...]  # unreadable sitemaps with reasons; their pages do not count as deleted


def get_origin(url: str) -> str:
    """Return scheme and host of an address."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, "", "", ""))


def resolve_page_url(origin: str, url: str) -> str:
    """Return a page's address with the scheme and host of the site, without fragment; empty for another site."""
    if url.startswith(origin + "/"):
        return url.partition("#")[0]
    try:
        site, parts = urlsplit(origin), urlsplit(url)
    except ValueError:
        return ""
    if parts.scheme not in {"http", "https"} or site.netloc.lower() != parts.netloc.lower():
        return ""
    return origin + urlunsplit(("", "", parts.path or "/", parts.query, ""))


def make_page_key(address: str) -> str:
    """Return a page's key: its address without a final slash, as only keys of folders end with a slash."""
    return address.rstrip("/")


def fetch_robots(web: WebClient, origin: str) -> RobotsRules:
    """Fetch robots.txt and apply its crawl delay. Without a usable one, all is allowed. Raises `SourceUnavailable`."""
    try:
        reply = web.get(f"{origin}/robots.txt")
    except (AccessDenied, ResponseTooLarge):
        return RobotsRules()
    kind = reply.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    rules = RobotsRules(reply.content) if reply.status == httpx.codes.OK and kind != "text/html" else RobotsRules()
    web.slow_down(min(rules.delay, _LONGEST_DELAY))
    return rules


def list_pages(web: WebClient, url: str, robots: RobotsRules, is_selected: Callable[[SitemapEntry], bool]) -> SitePages:
    """Return the pages in the sitemaps of a site, or in the one at `url`.

    Raises `SourceUnavailable` if none is readable.
    """
    origin = get_origin(url)
    pending = deque(_first_sitemaps(url, origin, robots))
    requested: set[str] = set(pending)
    pages: dict[str, SitemapEntry] = {}
    unread: list[tuple[str, str]] = []
    read = 0
    while pending:
        address = pending.popleft()
        try:
            sitemap = _fetch_sitemap(web, origin, address)
        except ValueError as error:
            unread.append((address, f"the sitemap {error}"))
            continue
        read += 1
        for entry in sitemap.sitemaps:
            target = resolve_page_url(origin, entry.url)
            if target and target not in requested and len(requested) < MOST_FILES:
                requested.add(target)
                pending.append(target)
        for entry in sitemap.pages:
            target = resolve_page_url(origin, entry.url)
            page = entry if target == entry.url else replace(entry, url=target)
            if target and len(pages) < MOST_PAGES and is_selected(page):
                pages.setdefault(make_page_key(target), page)
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
    """Fetch one sitemap. Raises `ValueError` with a reason, or `SourceUnavailable` if the site does not answer."""
    try:
        reply: WebResponse = web.get(address, follow=lambda target: bool(resolve_page_url(origin, target)))
    except AccessDenied as error:
        raise ValueError("may not be read") from error
    except ResponseTooLarge as error:
        raise ValueError("is too large") from error
    if target := reply.headers.get("location", ""):
        raise ValueError(f"redirects to another site, {format_url(urljoin(address, target))}")
    if reply.status != httpx.codes.OK:
        raise ValueError(f"answers HTTP {reply.status}")
    return parse_sitemap(reply.content)
