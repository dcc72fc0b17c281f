"""List the pages of a site by its sitemaps, as far as its robots.txt allows.

Sitemaps are XML as sitemaps.org has it, packed or not, or plain text with an address a line. They come from strangers:
what they unpack to is bounded, one that declares a document type is refused unread, and only addresses of the site
itself count, whatever a sitemap says. Of robots.txt (RFC 9309) the group of our own name holds, else that of everybody;
of the rules that fit a path the longest one, and of two that are as long the one that allows.
"""

import re
import zlib
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from urllib.parse import unquote_to_bytes, urljoin, urlsplit, urlunsplit

import httpx

from ingest.readers import value_parsers
from ingest.types import SourceUnavailable
from ingest.web.http_reply import AccessDenied, ResponseTooLarge, format_url
from ingest.web.web_client import WebClient, WebResponse
from storage.language.lazy_pattern import lazy_compile

ROBOTS_AGENT = "footnote"
LARGEST_ROBOTS = 512 << 10
"""Bytes that are looked at; the RFC asks for 500 kibibytes at least."""


@dataclass(frozen=True, slots=True)
class RobotsRules:
    rules: tuple[tuple[bool, str], ...] = ()
    """Whether a path is allowed, and the pattern that it begins with."""
    delay: float = 0.0
    """Seconds between two requests."""
    sitemaps: tuple[str, ...] = ()

    def checker(self) -> Callable[[str], bool]:
        """Return what tells whether an address may be read."""
        ordered = sorted(self.rules, key=lambda rule: (len(rule[1]), rule[0]), reverse=True)
        cut = [
            (allowed, _decode_path(said.removesuffix("$")).split("*"), said.endswith("$")) for allowed, said in ordered
        ]

        def may_read(url: str) -> bool:
            if not cut:
                return True
            parts = urlsplit(url)
            path = _decode_path(parts.path or "/") + (f"?{_decode_path(parts.query)}" if parts.query else "")
            return next((allowed for allowed, parts, ends in cut if _fits_pattern(path, parts, ends=ends)), True)

        return may_read


def parse_robots(content: bytes) -> RobotsRules:
    groups: dict[str, list[tuple[str, str]]] = {}
    sitemaps: list[str] = []
    names: list[str] = []
    naming = False
    for key, value in _robots_lines(content):
        if key == "user-agent":
            names = [*names, value.lower()] if naming else [value.lower()]
            groups.setdefault(names[-1], [])
        elif key == "sitemap":
            sitemaps.append(value)
        elif key in {"allow", "disallow", "crawl-delay"}:
            for name in names:
                groups[name].append((key, value))
        naming = key == "user-agent" or (naming and key == "sitemap")
    mine = groups.get(_own_group(groups), [])
    rules = tuple((key == "allow", value) for key, value in mine if key != "crawl-delay" and value)
    delays = [float(value) for key, value in mine if key == "crawl-delay" and re.fullmatch(r"\d{1,4}(\.\d+)?", value)]
    return RobotsRules(rules, max(delays, default=0.0), tuple(sitemaps))


def _robots_lines(content: bytes) -> list[tuple[str, str]]:
    text = content[:LARGEST_ROBOTS].decode("utf-8-sig", "replace")
    pairs = (line.partition("#")[0].partition(":") for line in text.splitlines())
    return [(key.strip().lower(), value.strip()) for key, colon, value in pairs if colon]


def _own_group(groups: dict[str, list[tuple[str, str]]]) -> str:
    """Return the name of the group that is ours; agents are named by their product, with or without a version."""
    return next((name for name in groups if name.partition("/")[0].strip() == ROBOTS_AGENT), "*")


def _fits_pattern(path: str, parts: list[str], *, ends: bool) -> bool:
    """Whether a path begins with a pattern that was cut at its stars; in one way through it, as it is a stranger's."""
    first, *others = parts
    if not others:
        return path == first if ends else path.startswith(first)
    if not path.startswith(first):
        return False
    at = len(first)
    for part in others[:-1] if ends else others:
        found = path.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return not ends or (path.endswith(others[-1]) and len(path) - len(others[-1]) >= at)


def _decode_path(path: str) -> str:
    return unquote_to_bytes(path).decode("utf-8", "replace")


LARGEST_SITEMAP = 64 << 20
"""Bytes of XML; sitemaps.org allows 50 million."""
MOST_ENTRIES = 200_000
"""Entries of one file; sitemaps.org allows 50,000."""
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
    said = (element.findtext("{*}lastmod") or "").strip()
    changed = _parse_moment(said)
    return SitemapEntry(url, changed, exact=changed is not None and "T" in said)


def _parse_moment(said: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(said)
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
    """Ask for robots.txt, and rest between requests as it says. One that is not there allows all.

    Raises `SourceUnavailable` where it cannot be told whether there is one.
    """
    try:
        reply = web.get(f"{origin}/robots.txt")
    except (AccessDenied, ResponseTooLarge):
        return RobotsRules()
    kind = reply.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    found = parse_robots(reply.content) if reply.status == httpx.codes.OK and kind != "text/html" else RobotsRules()
    web.slow_down(min(found.delay, _LONGEST_DELAY))
    return found


def list_pages(web: WebClient, url: str, said: RobotsRules, wanted: Callable[[SitemapEntry], bool]) -> SitePages:
    """Go through the sitemaps of a site.

    Args:
        web: The way there.
        url: Of a sitemap, or of the site, whose robots.txt then names them.
        said: What robots.txt says.
        wanted: Whether a page is to be read.

    Raises:
        SourceUnavailable: The first sitemap cannot be read.
    """
    origin = get_origin(url)
    left = deque(_first_sitemaps(url, origin, said))
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


def _first_sitemaps(url: str, origin: str, said: RobotsRules) -> list[str]:
    if urlsplit(url).path.lower().endswith(_SITEMAP_ENDINGS):
        return [url]
    named = dict.fromkeys(resolve_page_url(origin, address) for address in said.sitemaps)
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
