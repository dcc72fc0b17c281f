"""All pages that a site's sitemaps list, and what its robots.txt asks of us: the edge of `sitemap` towards its lists.

Only addresses of the site itself count, whatever a sitemap says: it is a stranger that would tell us where to read.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from urllib.parse import urljoin, urlsplit, urlunsplit

import httpx

from ingest.sources.sites import robots, sitemap_file
from ingest.sources.sites.robots import Robots
from ingest.sources.sites.sitemap_file import Entry
from ingest.types import SourceUnavailable
from ingest.web.errors import Denied, ReplyTooLarge, shown
from ingest.web.fetching import Reply, Web

MOST_FILES = 1_000
MOST_PAGES = 500_000
_LONGEST_DELAY = 30.0
_ENDINGS = (".xml", ".gz", ".txt")


@dataclass(frozen=True, slots=True)
class Site:
    """What a site lists. Pages by key, in the order of their sitemaps."""

    pages: dict[str, Entry]
    unread: tuple[tuple[str, str], ...]
    """Sitemaps that could not be read, with reasons: what they list is not known to be gone."""


def origin_of(url: str) -> str:
    """Return the beginning of an address, up to its path."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc, "", "", ""))


def address_of(origin: str, url: str) -> str:
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


def key_of(address: str) -> str:
    """Return the key of a page: its address without the slash at its end, which the keys of folders have."""
    return address.rstrip("/")


def robots_of(web: Web, origin: str) -> Robots:
    """Ask for robots.txt, and rest between requests as it says. One that is not there allows all.

    Raises `SourceUnavailable` where it cannot be told whether there is one.
    """
    try:
        reply = web.get(f"{origin}/robots.txt")
    except (Denied, ReplyTooLarge):
        return Robots()
    kind = reply.headers.get("content-type", "text/plain").partition(";")[0].strip().lower()
    found = robots.parsed(reply.content) if reply.status == httpx.codes.OK and kind != "text/html" else Robots()
    web.slower(min(found.delay, _LONGEST_DELAY))
    return found


def listed(web: Web, url: str, said: Robots, wanted: Callable[[Entry], bool]) -> Site:
    """Go through the sitemaps of a site.

    Args:
        web: The way there.
        url: Of a sitemap, or of the site, whose robots.txt then names them.
        said: What robots.txt says.
        wanted: Whether a page is to be read.

    Raises:
        SourceUnavailable: The first sitemap cannot be read.
    """
    origin = origin_of(url)
    left = deque(_first(url, origin, said))
    asked: set[str] = set(left)
    pages: dict[str, Entry] = {}
    unread: list[tuple[str, str]] = []
    read = 0
    while left:
        address = left.popleft()
        try:
            found = _file(web, origin, address)
        except ValueError as error:
            unread.append((address, f"the sitemap {error}"))
            continue
        read += 1
        for entry in found.sitemaps:
            there = address_of(origin, entry.url)
            if there and there not in asked and len(asked) < MOST_FILES:
                asked.add(there)
                left.append(there)
        for entry in found.pages:
            there = address_of(origin, entry.url)
            page = entry if there == entry.url else replace(entry, url=there)
            if there and len(pages) < MOST_PAGES and wanted(page):
                pages.setdefault(key_of(there), page)
    if not read:
        address, reason = unread[0]
        hint = "Give the address of its sitemap, such as https://docs.example.com/sitemap.xml."
        raise SourceUnavailable(f"{shown(address)}: {reason}.", hint=hint)
    return Site(pages, tuple(unread))


def _first(url: str, origin: str, said: Robots) -> list[str]:
    if urlsplit(url).path.lower().endswith(_ENDINGS):
        return [url]
    named = dict.fromkeys(address_of(origin, address) for address in said.sitemaps)
    return [address for address in named if address] or [f"{origin}/sitemap.xml"]


def _file(web: Web, origin: str, address: str) -> sitemap_file.SitemapFile:
    """Get one sitemap. Raises `ValueError` with a reason; `SourceUnavailable` where the site does not answer."""
    try:
        reply: Reply = web.get(address, follow=lambda target: bool(address_of(origin, target)))
    except Denied as error:
        raise ValueError("may not be read") from error
    except ReplyTooLarge as error:
        raise ValueError("is too large") from error
    if target := reply.headers.get("location", ""):
        raise ValueError(f"leads to another site, {shown(urljoin(address, target))}")
    if reply.status != httpx.codes.OK:
        raise ValueError(f"answers HTTP {reply.status}")
    return sitemap_file.parsed(reply.content)
