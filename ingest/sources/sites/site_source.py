"""Read a web site by its sitemap: the pages that it lists, as documents of their kind.

What changed is told by `lastmod`, else by the server (ETag, Last-Modified), else by the content. Robots.txt and
`noindex` are obeyed, nothing but the site itself is read, and a page that says it is better known by the address of
another listed page is left to that one.

A site may be broken and answer each page with an error or a login, in the best of manners: such responses are never
taken for pages (`site_page`), and what was read before is kept.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import chain
from urllib.parse import unquote, urlsplit

from ingest.readers.file_formats import READER_VERSION
from ingest.sandbox import Sandbox
from ingest.sources.filters import DocumentTraits, SelectionRules, build_filter, utc_now
from ingest.sources.sites.site_page import PageFetcher
from ingest.sources.sites.sitemap import (
    SitemapEntry,
    SitePages,
    fetch_robots,
    get_origin,
    list_pages,
    make_page_key,
    resolve_page_url,
)
from ingest.types import EMPTY, DeletedDocument, ListedItem, Listing, Unreadable, list_unchanged
from ingest.web.web_client import WebClient

_SETTLED_AFTER = timedelta(days=2)
"""A date without a time that is younger may be of a page that changes again on the same day."""


@dataclass(frozen=True, slots=True)
class SiteScope:
    """Say what of a site is read: its address or its sitemap's, and rules by the path of pages."""

    url: str
    rules: SelectionRules = field(default_factory=SelectionRules)


class SiteSource:
    reference = False

    def __init__(
        self,
        wanted: SiteScope,
        web: WebClient,
        *,
        now: Callable[[], datetime] = utc_now,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._wanted, self._web, self._now = wanted, web, now
        self._origin = get_origin(wanted.url)
        self._listed_site: tuple[SitePages, PageFetcher] | None = None
        self._sandbox = sandbox or Sandbox()

    def expected(self) -> int:
        """Count the pages that are listed: reads the sitemaps. Blocks. Raises `SourceUnavailable`."""
        with self._web:
            self._listed_site = self._list_site()
        return len(self._listed_site[0].pages)

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """List every page that is wanted, and what is known where one of several sitemaps cannot be read. Blocks."""
        del since  # a sitemap lists all pages
        if self._listed_site is None:
            self.expected()
        looked, self._listed_site = self._listed_site, None
        assert looked is not None  # noqa: S101 - expected() made it
        return Listing(self._list_items(*looked, known))

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        """Get the page of an address now, listed or not. Blocks. Raises `SourceUnavailable`."""
        url = resolve_page_url(self._origin, address if address != self._origin else f"{address}/")
        if not url:
            return None
        key = make_page_key(url)
        if not self._build_filter()(SitemapEntry(url)):
            return DeletedDocument(key) if key in known else None
        with self._web, self._sandbox:
            may_read = fetch_robots(self._web, self._origin).allows
            if not may_read(url):
                return DeletedDocument(key) if key in known else Unreadable(key, "robots.txt asks us not to read it")
            item = self._fetch_one(key, url, may_read, known)
            # A key does not tell whether its page's address ends in a slash, and some servers know it only so.
            if isinstance(item, DeletedDocument) and not urlsplit(url).query:
                item = self._fetch_one(key, url.rstrip("/") if url.endswith("/") else url + "/", may_read, known)
        return None if isinstance(item, DeletedDocument) and key not in known else item

    def stop(self) -> None:
        self._web.stop()
        self._sandbox.stop()

    def _fetch_one(
        self, key: str, url: str, may_read: Callable[[str], bool], known: Mapping[str, str]
    ) -> ListedItem | None:
        answers = PageFetcher(self._web, self._sandbox, self._origin, may_read, frozenset(known))
        return next(chain(answers.items(key, SitemapEntry(url)), answers.last()), None)

    def _list_site(self) -> tuple[SitePages, PageFetcher]:
        robots = fetch_robots(self._web, self._origin)
        chosen = self._build_filter()
        site = list_pages(self._web, self._wanted.url, robots, lambda entry: chosen(entry) and robots.allows(entry.url))
        return site, PageFetcher(self._web, self._sandbox, self._origin, robots.allows, frozenset(site.pages))

    def _build_filter(self) -> Callable[[SitemapEntry], bool]:
        by_rules = build_filter(self._wanted.rules, self._now())

        def chosen(entry: SitemapEntry) -> bool:
            path = unquote(entry.url[len(self._origin) :].partition("?")[0]).strip("/")
            return by_rules(DocumentTraits(path or "index", changed=entry.changed))

        return chosen

    def _list_items(self, site: SitePages, answers: PageFetcher, known: Mapping[str, str]) -> Iterator[ListedItem]:
        with self._web, self._sandbox:
            yield from (Unreadable(make_page_key(url), reason) for url, reason in site.unread)
            for key, entry in site.pages.items():
                stamp, before = self._known_change(entry), known.get(key, "")
                if stamp and before == stamp:
                    yield list_unchanged(key, stamp)
                else:
                    yield from answers.items(key, entry, before, stamp)
            yield from answers.last()
            if site.unread:
                yield from (list_unchanged(key, known[key]) for key in known if key not in site.pages)

    def _known_change(self, entry: SitemapEntry) -> str:
        """Return the fingerprint of a page whose last change is told well enough; else nothing."""
        age = self._now() - entry.changed if entry.changed else timedelta()
        if entry.changed is None or age < (timedelta() if entry.exact else _SETTLED_AFTER):
            return ""
        return f"{entry.changed.isoformat()} lastmod-{READER_VERSION}"
