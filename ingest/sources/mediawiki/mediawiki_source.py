"""Read a wiki by its API: all its pages once, then new, changed, moved and deleted ones.

The key of a page is its id, so that a moved page keeps its passages. Entries in recent changes and logs only say which
pages to check. Now and then all pages are listed again, as a suppressed page leaves no entry there.
https://www.mediawiki.org/wiki/API:RecentChanges and API:Logevents describe these lists.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from ingest.readers import value_parsers
from ingest.sources.filters import SelectionRules, build_filter, split_unchanged
from ingest.sources.mediawiki.mediawiki_api import BATCH_SIZE, MediaWikiApi, WikiLogin, get_pages, join_batches
from ingest.sources.mediawiki.wiki_page import (
    ListedPage,
    WikiInfo,
    fetch_texts,
    find_page_query,
    find_redirected_keys,
    parse_listed_page,
    parse_wiki_info,
    read_page,
)
from ingest.types import EMPTY, ChangedDocument, DeletedDocument, ListedItem, Listing
from ingest.web.web_client import WebClient
from ingest.wikitext.wikitext_parser import WIKITEXT_VERSION
from storage.clock import Clock, utc_now

OVERLAP = timedelta(hours=1)  # listed twice, since changes may appear late
# These create, move or delete pages, or make revisions that are missing from recent changes.
_LOG_TYPES = ("delete", "import", "merge", "move", "protect")


@dataclass(frozen=True, slots=True)
class WikiCheckpoint:
    """The moment up to which a wiki was listed, on the wiki's clock. It is stored as text."""

    until: datetime
    whole: datetime  # when all pages were last listed

    def to_text(self) -> str:
        return json.dumps(
            {"until": self.until.isoformat(), "whole": self.whole.isoformat(), "reader": WIKITEXT_VERSION}
        )


def parse_checkpoint(text: str) -> WikiCheckpoint | None:
    """Parse a checkpoint; None if it is invalid, or was written by another reader version."""
    try:
        fields = json.loads(text)
        until, whole = value_parsers.parse_date(fields["until"]), value_parsers.parse_date(fields["whole"])
    except (ValueError, KeyError, TypeError):
        return None
    return WikiCheckpoint(until, whole) if until and whole and fields.get("reader") == WIKITEXT_VERSION else None


@dataclass(slots=True)
class TouchedPages:
    """The pages that recent changes and logs name, by id and title."""

    ids: set[int] = field(default_factory=set)
    titles: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)  # titles that may now be of another page, or of none


def has_changes_since(api: MediaWikiApi, start: datetime) -> bool:
    """Return whether the wiki still has all recent changes since `start`; it deletes them after some weeks."""
    query = {"list": "recentchanges", "rcdir": "newer", "rclimit": "1", "rcprop": "timestamp"}
    answer = api.ask({"action": "query", **query})
    entries = (answer.get("query") or {}).get("recentchanges") or [{}]
    oldest = value_parsers.parse_date(str(entries[0].get("timestamp", "")))
    return oldest is not None and oldest <= start


def fetch_touched(api: MediaWikiApi, start: datetime, namespaces: tuple[int, ...]) -> TouchedPages:
    """Return the pages named in recent changes and logs since `start`. Raises `SourceUnavailable`."""
    touched = TouchedPages()
    # Not rctoponly: protecting a page creates a revision that is not a recent change but hides the edit before it.
    query = {"list": "recentchanges", "rcdir": "newer", "rctype": "edit|new", "rcprop": "ids|title", "rclimit": "max"}
    query |= {"rcstart": _format_moment(start), "rcnamespace": "|".join(map(str, namespaces))}
    for batch in api.batches(query):
        for entry in batch.get("recentchanges", ()):
            _add_event(touched, entry)
    for entry in _fetch_log(api, start):
        _add_event(touched, entry)
        params = entry.get("params") or {}
        titles = (entry.get("title"), params.get("target_title"), params.get("dest_title"))
        touched.moved |= {str(title) for title in titles if title}
    touched.titles |= touched.moved
    return touched


def _fetch_log(api: MediaWikiApi, start: datetime) -> Iterator[dict[str, Any]]:
    for kind in _LOG_TYPES:
        query = {"list": "logevents", "ledir": "newer", "letype": kind, "lelimit": "max"}
        query |= {"lestart": _format_moment(start), "leprop": "ids|title|type|details"}
        for batch in api.batches(query):
            yield from batch.get("logevents", ())


def _add_event(touched: TouchedPages, entry: dict[str, Any]) -> None:
    # A deletion names the page's former id.
    touched.ids |= {int(entry[name]) for name in ("pageid", "logpage") if entry.get(name)}
    if title := entry.get("title"):
        touched.titles.add(str(title))


def _format_moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class WikiScope:
    api: str  # the address of its api.php
    namespaces: tuple[int, ...] = (0,)
    rules: SelectionRules = field(default_factory=SelectionRules)
    """Paths are titles, such as `Handbook/Holidays`; labels are categories."""
    login: WikiLogin = field(default_factory=WikiLogin)
    relist_days: float = 7  # days until all pages are listed again
    reference: bool = False  # whether it is a work of reference, and not the team's own


class MediaWikiSource:
    """Reads the pages of one wiki, each with the titles of the redirects that lead to it."""

    def __init__(self, wiki: WikiScope, web: WebClient, *, now: Clock = utc_now) -> None:
        self.reference = wiki.reference
        self._wiki = wiki
        self._web = web
        self._passes_rules = build_filter(wiki.rules, now())
        self._info = WikiInfo()
        self._now = now

    def expected(self) -> None:
        """Return None: the count is unknown until all pages are listed."""

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """List every page. If recent changes reach back to the checkpoint, list only the pages that they name."""
        with self._web:
            api = self._api()
            started = self._fetch_info(api)
            mark = self._check_usable(api, parse_checkpoint(since), started) if known else None
        reached = WikiCheckpoint(started, mark.whole if mark else started)
        items = self._list_changed(known, mark.until - OVERLAP) if mark else self._list_all(known)
        return Listing(items, whole=mark is None, mark=reached.to_text)

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        """Return the page with this address, title or id. Raises `SourceUnavailable`."""
        with self._web:
            api = self._api()
            if self._info == WikiInfo():
                self._fetch_info(api)
            query = find_page_query(address, known, self._info, self._wiki.api)
            page = next(self._look_up(api, query), None) if query else None
            if page and self._is_selected(page):
                return next(self._fetch_pages(api, [page], EMPTY))
            number = str(page.id) if page else (query or {}).get("pageids", "")
            return DeletedDocument(number) if number in known else None

    def stop(self) -> None:
        self._web.stop()

    def _api(self) -> MediaWikiApi:
        return MediaWikiApi(self._web, self._wiki.api, self._wiki.login)

    def _fetch_info(self, api: MediaWikiApi) -> datetime:
        """Fetch the wiki's site information, and return the time on its clock."""
        query = {"action": "query", "meta": "siteinfo", "siprop": "general|namespaces|namespacealiases"}
        answer = api.ask({**query, "curtimestamp": "1"})
        info = answer.get("query") or {}
        self._info = parse_wiki_info(info)
        return value_parsers.parse_date(str(answer.get("curtimestamp", ""))) or self._now()

    def _check_usable(self, api: MediaWikiApi, mark: WikiCheckpoint | None, now: datetime) -> WikiCheckpoint | None:
        if mark is None or now - mark.whole >= timedelta(days=self._wiki.relist_days) or mark.until > now:
            return None
        return mark if has_changes_since(api, mark.until - OVERLAP) else None

    def _list_all(self, known: Mapping[str, str]) -> Iterator[ListedItem]:
        with self._web:
            api = self._api()
            for namespace in self._wiki.namespaces:
                query = {"generator": "allpages", "gapnamespace": str(namespace), "gapfilterredir": "nonredirects"}
                for batch in api.batches({**query, "gaplimit": "max", **self._detail_query()}):
                    pages = (parse_listed_page(page, self._info.site) for page in get_pages(batch))
                    yield from self._fetch_pages(
                        api, [page for page in pages if page and self._is_selected(page)], known
                    )

    def _list_changed(self, known: Mapping[str, str], start: datetime) -> Iterator[ListedItem]:
        with self._web:
            api = self._api()
            events = fetch_touched(api, start, self._wiki.namespaces)
            first = events.ids | {int(key) for key in find_redirected_keys(events.titles, known) if key.isdigit()}
            titles = set(events.moved)
            for ids in join_batches(map(str, sorted(first))):
                pages = {page.id: page for page in self._look_up(api, {"pageids": ids})}
                titles |= {page.title for page in pages.values() if page.redirect}
                yield from self._report_pages(api, map(int, ids.split("|")), pages, known)
            further: dict[int, ListedPage] = {}
            for batch in join_batches(sorted(titles)):
                pages = {page.id: page for page in self._look_up(api, {"titles": batch, "redirects": "1"})}
                further |= {number: page for number, page in pages.items() if number not in first}
            yield from self._report_pages(api, sorted(further), further, known)

    def _report_pages(
        self, api: MediaWikiApi, numbers: Iterable[int], pages: Mapping[int, ListedPage], known: Mapping[str, str]
    ) -> Iterator[ListedItem]:
        """List the selected ones of the pages with the ids `numbers`; report the other known ones as deleted."""
        selected = []
        for number in numbers:
            page = pages.get(number)
            if page and self._is_selected(page):
                selected.append(page)
            elif str(number) in known:
                yield DeletedDocument(str(number))
        yield from self._fetch_pages(api, selected, known)

    def _fetch_pages(
        self, api: MediaWikiApi, pages: Sequence[ListedPage], known: Mapping[str, str]
    ) -> Iterator[ListedItem]:
        """Yield unchanged pages first, then the others; the texts of these are fetched in batches."""
        by_key = {page.key: page for page in pages}
        unchanged, changed = split_unchanged({page.key: page.fingerprint for page in pages}, known)
        yield from unchanged
        for start in range(0, len(changed), BATCH_SIZE):
            batch = [by_key[key] for key in changed[start : start + BATCH_SIZE]]
            texts = fetch_texts(api, [page.id for page in batch])
            for page in batch:
                load = partial(read_page, page, texts.pop(page.id, None), self._info.site)
                yield ChangedDocument(page.key, page.fingerprint, page.size, load)

    def _look_up(self, api: MediaWikiApi, query: Mapping[str, str]) -> Iterator[ListedPage]:
        for batch in api.batches({**query, **self._detail_query()}):
            yield from filter(None, (parse_listed_page(page, self._info.site) for page in get_pages(batch)))

    def _detail_query(self) -> dict[str, str]:
        """Return the query parameters that request the properties which `parse_listed_page` reads."""
        rules = self._wiki.rules
        query = {"prop": "info|revisions|redirects", "inprop": "url", "rvprop": "ids|timestamp"}
        query |= {"rdprop": "title", "rdlimit": "max", "rdnamespace": "|".join(map(str, self._wiki.namespaces))}
        if rules.labels or rules.without_labels:
            query |= {"prop": f"{query['prop']}|categories", "cllimit": "max"}
        return query

    def _is_selected(self, page: ListedPage) -> bool:
        return not page.redirect and page.namespace in self._wiki.namespaces and self._passes_rules(page.traits)
