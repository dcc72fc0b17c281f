"""Read a wiki by its API: all its pages once, then those that changed, moved, came and went.

The key of a page is its id, so that a moved page keeps its passages. An event of recent changes or the logs only says
that a page is to be looked at. Now and then all pages are listed again, as what was suppressed vanishes without a word.
https://www.mediawiki.org/wiki/API:RecentChanges and API:Logevents describe the lists.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from ingest.readers import value_parsers
from ingest.sources.filters import SelectionRules, build_filter, utc_now
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
from ingest.types import EMPTY, ChangedDocument, DeletedDocument, ListedItem, Listing, list_unchanged
from ingest.web.web_client import WebClient
from ingest.wikitext.wikitext_parser import WIKITEXT_VERSION

OVERLAP = timedelta(hours=1)
"""Looked at twice, as a change may be told late; whoever did not change costs a line of a listing."""
_LOG_TYPES = ("delete", "import", "merge", "move", "protect")
"""Those that make, move or remove pages, or make revisions that recent changes do not tell."""


@dataclass(frozen=True, slots=True)
class WikiCheckpoint:
    """Remember up to when a wiki was listed. It travels as text, and uses the wiki's own clock."""

    until: datetime
    whole: datetime  # when all pages were last listed

    def to_text(self) -> str:
        return json.dumps(
            {"until": self.until.isoformat(), "whole": self.whole.isoformat(), "reader": WIKITEXT_VERSION}
        )


def parse_checkpoint(text: str) -> WikiCheckpoint | None:
    """Parse a checkpoint; None if it is none of ours, or of a time when pages were read differently."""
    try:
        fields = json.loads(text)
        until, whole = value_parsers.parse_date(fields["until"]), value_parsers.parse_date(fields["whole"])
    except (ValueError, KeyError, TypeError):
        return None
    return WikiCheckpoint(until, whole) if until and whole and fields.get("reader") == WIKITEXT_VERSION else None


@dataclass(slots=True)
class TouchedPages:
    """Collect what events named: pages by id, and titles, of which only the logs' mean more than the page itself."""

    ids: set[int] = field(default_factory=set)
    titles: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)
    """Titles under which there may be another page now, or none."""


def has_changes_since(api: MediaWikiApi, start: datetime) -> bool:
    """Tell whether the wiki's recent changes reach back to a moment; they are dropped after some weeks."""
    query = {"list": "recentchanges", "rcdir": "newer", "rclimit": "1", "rcprop": "timestamp"}
    answer = api.ask({"action": "query", **query})
    entries = (answer.get("query") or {}).get("recentchanges") or [{}]
    oldest = value_parsers.parse_date(str(entries[0].get("timestamp", "")))
    return oldest is not None and oldest <= start


def fetch_touched(api: MediaWikiApi, start: datetime, namespaces: tuple[int, ...]) -> TouchedPages:
    """Return what was touched since a moment. Raises `SourceUnavailable`."""
    found = TouchedPages()
    # Not rctoponly: protecting a page makes a revision that is no recent change, and hides the edit below it.
    query = {"list": "recentchanges", "rcdir": "newer", "rctype": "edit|new", "rcprop": "ids|title", "rclimit": "max"}
    query |= {"rcstart": _format_moment(start), "rcnamespace": "|".join(map(str, namespaces))}
    for batch in api.batches(query):
        for entry in batch.get("recentchanges", ()):
            _note_event(found, entry)
    for entry in _fetch_log(api, start):
        _note_event(found, entry)
        params = entry.get("params") or {}
        titles = (entry.get("title"), params.get("target_title"), params.get("dest_title"))
        found.moved |= {str(title) for title in titles if title}
    found.titles |= found.moved
    return found


def _fetch_log(api: MediaWikiApi, start: datetime) -> Iterator[dict[str, Any]]:
    for kind in _LOG_TYPES:
        query = {"list": "logevents", "ledir": "newer", "letype": kind, "lelimit": "max"}
        query |= {"lestart": _format_moment(start), "leprop": "ids|title|type|details"}
        for batch in api.batches(query):
            yield from batch.get("logevents", ())


def _note_event(found: TouchedPages, entry: dict[str, Any]) -> None:
    # The page that a deletion was of is known by the id it had then.
    found.ids |= {int(entry[name]) for name in ("pageid", "logpage") if entry.get(name)}
    if title := entry.get("title"):
        found.titles.add(str(title))


def _format_moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class WikiScope:
    api: str  # the address of its api.php
    namespaces: tuple[int, ...] = (0,)
    rules: SelectionRules = field(default_factory=SelectionRules)
    """Paths are titles, such as `Handbook/Holidays`; labels are categories."""
    login: WikiLogin = field(default_factory=WikiLogin)
    relist_days: float = 7  # after so many days all pages are listed again, whatever the logs tell
    reference: bool = False  # whether it is a work of reference, and not the team's own


class MediaWikiSource:
    """Read the pages of one wiki, each with the titles of the redirects that lead to it."""

    def __init__(self, wiki: WikiScope, web: WebClient, *, now: Callable[[], datetime] = utc_now) -> None:
        self.reference = wiki.reference
        self._wiki = wiki
        self._web = web
        self._chosen = build_filter(wiki.rules, now())
        self._info = WikiInfo()
        self._now = now

    def expected(self) -> None:
        """Nobody knows before all is listed."""

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """List every page, or what was touched since a checkpoint that the wiki's recent changes reach back to."""
        with self._web:
            api = self._api()
            begun = self._fetch_info(api)
            mark = self._check_usable(api, parse_checkpoint(since), begun) if known else None
        reached = WikiCheckpoint(begun, mark.whole if mark else begun)
        items = self._list_changed(known, mark.until - OVERLAP) if mark else self._list_all(known)
        return Listing(items, whole=mark is None, mark=reached.to_text)

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        """Return the page at an address of this wiki, of this title, or with this id. Raises `SourceUnavailable`."""
        with self._web:
            api = self._api()
            if self._info == WikiInfo():
                self._fetch_info(api)
            wanted = find_page_query(address, known, self._info, self._wiki.api)
            found = next(self._look_up(api, wanted), None) if wanted else None
            if found and not found.redirect and self._is_wanted(found):
                return next(self._fetch_pages(api, [found], EMPTY))
            number = str(found.id) if found else (wanted or {}).get("pageids", "")
            return DeletedDocument(number) if number in known else None

    def stop(self) -> None:
        self._web.stop()

    def _api(self) -> MediaWikiApi:
        return MediaWikiApi(self._web, self._wiki.api, self._wiki.login)

    def _fetch_info(self, api: MediaWikiApi) -> datetime:
        """Ask what the wiki says of itself, and what time it is there."""
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
                    found = (parse_listed_page(page, self._info.site) for page in get_pages(batch))
                    yield from self._fetch_pages(api, [one for one in found if one and self._is_wanted(one)], known)

    def _list_changed(self, known: Mapping[str, str], start: datetime) -> Iterator[ListedItem]:
        with self._web:
            api = self._api()
            events = fetch_touched(api, start, self._wiki.namespaces)
            first = events.ids | {int(key) for key in find_redirected_keys(events.titles, known) if key.isdigit()}
            led = set(events.moved)
            for part in join_batches(map(str, sorted(first))):
                found = {one.id: one for one in self._look_up(api, {"pageids": part})}
                led |= {one.title for one in found.values() if one.redirect}
                yield from self._report_pages(api, map(int, part.split("|")), found, known)
            further: dict[int, ListedPage] = {}
            for titles in join_batches(sorted(led)):
                found = {one.id: one for one in self._look_up(api, {"titles": titles, "redirects": "1"})}
                further |= {number: one for number, one in found.items() if number not in first}
            yield from self._report_pages(api, sorted(further), further, known)

    def _report_pages(
        self, api: MediaWikiApi, numbers: Iterable[int], found: Mapping[int, ListedPage], known: Mapping[str, str]
    ) -> Iterator[ListedItem]:
        """Yield what became of some pages: there, or gone if we knew them."""
        here = []
        for number in numbers:
            one = found.get(number)
            if one and not one.redirect and self._is_wanted(one):
                here.append(one)
            elif str(number) in known:
                yield DeletedDocument(str(number))
        yield from self._fetch_pages(api, here, known)

    def _fetch_pages(
        self, api: MediaWikiApi, found: Sequence[ListedPage], known: Mapping[str, str]
    ) -> Iterator[ListedItem]:
        """Yield what is known already, then the others, fifty at a time, as their texts come."""
        fresh = [one for one in found if known.get(one.key) != one.fingerprint]
        for one in found:
            if known.get(one.key) == one.fingerprint:
                yield list_unchanged(one.key, one.fingerprint)
        for start in range(0, len(fresh), BATCH_SIZE):
            some = fresh[start : start + BATCH_SIZE]
            texts = fetch_texts(api, [one.id for one in some])
            for one in some:
                load = partial(read_page, one, texts.pop(one.id, None), self._info.site)
                yield ChangedDocument(one.key, one.fingerprint, one.size, load)

    def _look_up(self, api: MediaWikiApi, which: Mapping[str, str]) -> Iterator[ListedPage]:
        for batch in api.batches({**which, **self._detail_query()}):
            yield from filter(None, (parse_listed_page(page, self._info.site) for page in get_pages(batch)))

    def _detail_query(self) -> dict[str, str]:
        """Return the parameters that ask for all that `parse_listed_page` reads."""
        rules = self._wiki.rules
        asked = {"prop": "info|revisions|redirects", "inprop": "url", "rvprop": "ids|timestamp"}
        asked |= {"rdprop": "title", "rdlimit": "max", "rdnamespace": "|".join(map(str, self._wiki.namespaces))}
        if rules.labels or rules.without_labels:
            asked |= {"prop": f"{asked['prop']}|categories", "cllimit": "max"}
        return asked

    def _is_wanted(self, one: ListedPage) -> bool:
        return one.namespace in self._wiki.namespaces and self._chosen(one.traits)
