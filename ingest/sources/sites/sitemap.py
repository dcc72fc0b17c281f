"""A web site by its sitemap: the pages that it lists, read as documents of their kind.

What changed is told by `lastmod`, else by the server (ETag, Last-Modified), else by the content. Robots.txt and
`noindex` are obeyed, nothing but the site itself is read, and a page that says it is better known by the address of
another listed page is left to that one.

A site may be broken and answer each page with an error or a login, in the best of manners: such answers are never
taken for pages (`answers`), and what was read before is kept.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import chain
from urllib.parse import unquote, urlsplit

from ingest.apart.reading import Apart
from ingest.choosing import Rules, Traits, chooser
from ingest.converting import READER_VERSION
from ingest.sources.sites.kept import kept
from ingest.sources.sites.page_answers import Answers
from ingest.sources.sites.sitemap_file import Entry
from ingest.sources.sites.sitemap_list import Site, address_of, key_of, listed, origin_of, robots_of
from ingest.types import Gone, Item, Listing, Unreadable
from ingest.web.fetching import Web
from ingest.web.line import NOTHING

_SETTLED = timedelta(days=2)
"""A date without a time that is younger may be of a page that changes again on the same day."""


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What of a site is read: its address or its sitemap's, and rules by the path of pages, without the first slash."""

    url: str
    rules: Rules = field(default_factory=Rules)


class Sitemap:
    """The pages of one site."""

    reference = False

    def __init__(self, wanted: Wanted, web: Web, *, now: Callable[[], datetime] = _now) -> None:
        """`now` is what ages are reckoned from."""
        self._wanted, self._web, self._now = wanted, web, now
        self._origin = origin_of(wanted.url)
        self._looked: tuple[Site, Answers] | None = None
        self._apart = Apart()

    def expected(self) -> int:
        """How many pages are listed: reads the sitemaps. Blocks. Raises `SourceUnavailable`."""
        with self._web:
            self._looked = self._look()
        return len(self._looked[0].pages)

    def documents(self, known: Mapping[str, str] = NOTHING, since: str = "") -> Listing:
        """Every page that is listed and wanted, in the order of the sitemaps. Blocks. Raises `SourceUnavailable`.

        Where one of several sitemaps cannot be read, it is said, and what is known and not listed counts as listed.
        """
        del since  # a sitemap lists all pages
        if self._looked is None:
            self.expected()
        looked, self._looked = self._looked, None
        assert looked is not None  # noqa: S101 - expected() made it
        return Listing(self._items(*looked, known))

    def one(self, address: str, known: Mapping[str, str]) -> Item | None:
        """Get the page of an address now, listed or not. Blocks. Raises `SourceUnavailable`."""
        url = address_of(self._origin, address if address != self._origin else f"{address}/")
        if not url:
            return None
        key = key_of(url)
        if not self._chosen()(Entry(url)):
            return Gone(key) if key in known else None
        with self._web, self._apart:
            may_read = robots_of(self._web, self._origin).checker()
            if not may_read(url):
                return Gone(key) if key in known else Unreadable(key, "robots.txt asks us not to read it")
            item = self._got(key, url, may_read, known)
            # A key does not tell whether its page's address ends in a slash, and some servers know it only so.
            if isinstance(item, Gone) and not urlsplit(url).query:
                item = self._got(key, url.rstrip("/") if url.endswith("/") else url + "/", may_read, known)
        return None if isinstance(item, Gone) and key not in known else item

    def stop(self) -> None:
        """End what is being read, from another thread."""
        self._web.stop()
        self._apart.stop()

    def _got(self, key: str, url: str, may_read: Callable[[str], bool], known: Mapping[str, str]) -> Item | None:
        answers = Answers(self._web, self._apart, self._origin, may_read, frozenset(known))
        return next(chain(answers.items(key, Entry(url)), answers.last()), None)

    def _look(self) -> tuple[Site, Answers]:
        said = robots_of(self._web, self._origin)
        may_read, chosen = said.checker(), self._chosen()
        site = listed(self._web, self._wanted.url, said, lambda entry: chosen(entry) and may_read(entry.url))
        return site, Answers(self._web, self._apart, self._origin, may_read, frozenset(site.pages))

    def _chosen(self) -> Callable[[Entry], bool]:
        by_rules = chooser(self._wanted.rules, self._now())

        def chosen(entry: Entry) -> bool:
            path = unquote(entry.url[len(self._origin) :].partition("?")[0]).strip("/")
            return by_rules(Traits(path or "index", changed=entry.changed))

        return chosen

    def _items(self, site: Site, answers: Answers, known: Mapping[str, str]) -> Iterator[Item]:
        with self._web, self._apart:
            yield from (Unreadable(key_of(url), reason) for url, reason in site.unread)
            for key, entry in site.pages.items():
                stamp, before = self._stamp(entry), known.get(key, "")
                if stamp and before == stamp:
                    yield kept(key, stamp)
                else:
                    yield from answers.items(key, entry, before, stamp)
            yield from answers.last()
            if site.unread:
                yield from (kept(key, known[key]) for key in known if key not in site.pages)

    def _stamp(self, entry: Entry) -> str:
        """Return the fingerprint of a page whose last change is told well enough; else nothing."""
        age = self._now() - entry.changed if entry.changed else timedelta()
        if entry.changed is None or age < (timedelta() if entry.exact else _SETTLED):
            return ""
        return f"{entry.changed.isoformat()} lastmod-{READER_VERSION}"
