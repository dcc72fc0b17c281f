"""Read the pages that a web site's sitemap lists.

Changes are detected by `lastmod`, or else by ETag or Last-Modified, or else by the content. Robots.txt and `noindex`
are respected, other sites are not read, and a page is skipped if its canonical address is another listed page. Error
and login pages with status 200 are never accepted (see `site_page`): what was read before stays.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import chain
from urllib.parse import unquote, urlsplit

from ingest.readers.file_formats import READER_VERSION
from ingest.sandbox import Sandbox
from ingest.sources.filters import DocumentTraits, SelectionRules, build_filter
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
from storage.clock import Clock, utc_now

_SETTLED_AFTER = timedelta(days=2)  # a page with a newer date without time may change again on that day


@dataclass(frozen=True, slots=True)
class SiteScope:
    """The part of a site to read: the address of the site or its sitemap, and rules for the paths of pages."""

    url: str
    rules: SelectionRules = field(default_factory=SelectionRules)


class SiteSource:
    reference = False

    def __init__(
        self,
        scope: SiteScope,
        web: WebClient,
        *,
        now: Clock = utc_now,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._scope, self._web, self._now = scope, web, now
        self._origin = get_origin(scope.url)
        self._listed_site: tuple[SitePages, PageFetcher] | None = None
        self._sandbox = sandbox or Sandbox()

    def expected(self) -> int:
        """Read the sitemaps and count their pages. Blocks. Raises `SourceUnavailable`."""
        self._listed_site = self._list_site()
        return len(self._listed_site[0].pages)

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """List every selected page.

        If a sitemap is unreadable, list all known pages, too, so that none counts as deleted. Blocks.
        """
        del since  # a sitemap lists all pages
        listed, self._listed_site = self._listed_site or self._list_site(), None
        return Listing(self._list_items(*listed, known))

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        """Fetch the current page at an address, whether the sitemap lists it or not. Blocks.

        Raises `SourceUnavailable`.
        """
        url = resolve_page_url(self._origin, address if address != self._origin else f"{address}/")
        if not url:
            return None
        key = make_page_key(url)
        if not self._build_filter()(SitemapEntry(url)):
            return DeletedDocument(key) if key in known else None
        with self._web, self._sandbox:
            may_read = fetch_robots(self._web, self._origin).allows
            if not may_read(url):
                return DeletedDocument(key) if key in known else Unreadable(key, "robots.txt disallows it")
            item = self._fetch_one(key, url, may_read, known)
            # A key has no final slash, and some servers require it.
            if isinstance(item, DeletedDocument) and not urlsplit(url).query:
                item = self._fetch_one(key, url.rstrip("/") if url.endswith("/") else url + "/", may_read, known)
        return None if isinstance(item, DeletedDocument) and key not in known else item

    def stop(self) -> None:
        self._web.stop()
        self._sandbox.stop()

    def _fetch_one(
        self, key: str, url: str, may_read: Callable[[str], bool], known: Mapping[str, str]
    ) -> ListedItem | None:
        fetcher = PageFetcher(self._web, self._sandbox, self._origin, may_read, frozenset(known))
        return next(chain(fetcher.items(key, SitemapEntry(url)), fetcher.last()), None)

    def _list_site(self) -> tuple[SitePages, PageFetcher]:
        chosen = self._build_filter()
        with self._web as web:
            robots = fetch_robots(web, self._origin)
            site = list_pages(web, self._scope.url, robots, lambda entry: chosen(entry) and robots.allows(entry.url))
        return site, PageFetcher(self._web, self._sandbox, self._origin, robots.allows, frozenset(site.pages))

    def _build_filter(self) -> Callable[[SitemapEntry], bool]:
        by_rules = build_filter(self._scope.rules, self._now())

        def chosen(entry: SitemapEntry) -> bool:
            path = unquote(entry.url[len(self._origin) :].partition("?")[0]).strip("/")
            return by_rules(DocumentTraits(path or "index", changed=entry.changed))

        return chosen

    def _list_items(self, site: SitePages, fetcher: PageFetcher, known: Mapping[str, str]) -> Iterator[ListedItem]:
        with self._web, self._sandbox:
            yield from (Unreadable(make_page_key(url), reason) for url, reason in site.unread)
            for key, entry in site.pages.items():
                stamp, before = self._known_change(entry), known.get(key, "")
                if stamp and before == stamp:
                    yield list_unchanged(key, stamp)
                else:
                    yield from fetcher.items(key, entry, before, stamp)
            yield from fetcher.last()
            if site.unread:
                yield from (list_unchanged(key, known[key]) for key in known if key not in site.pages)

    def _known_change(self, entry: SitemapEntry) -> str:
        """Return a fingerprint from `lastmod`; empty if `lastmod` is missing or too imprecise."""
        age = self._now() - entry.changed if entry.changed else timedelta()
        if entry.changed is None or age < (timedelta() if entry.exact else _SETTLED_AFTER):
            return ""
        return f"{entry.changed.isoformat()} lastmod-{READER_VERSION}"
