"""A wiki by its API: all its pages once, then those that changed, moved, came and went.

The key of a page is its id, so that a moved page keeps its passages. Differs from `wikipedia_dump`, which reads the
same texts from a file, in that only what changed is ever fetched. Now and then all pages are listed again all the
same, as logs do not tell everything: what was suppressed vanishes without a word.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from types import MappingProxyType

from ingest.choosing import Rules, chooser
from ingest.formats import dates
from ingest.sources.mediawiki import changes
from ingest.sources.mediawiki.api import MOST, Api, Login, joined, pages
from ingest.sources.mediawiki.changes import OVERLAP, Mark
from ingest.sources.mediawiki.listed import Listed, led_by, listed
from ingest.sources.mediawiki.site import About, about, named
from ingest.sources.mediawiki.texts import fetched, page
from ingest.types import Found, Gone, Item, Listing
from ingest.web.fetching import Web

_NOTHING: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Wiki:
    """Which wiki, and what of it."""

    api: str
    """The address of its api.php."""
    namespaces: tuple[int, ...] = (0,)
    rules: Rules = field(default_factory=Rules)
    """Paths are titles, such as `Handbook/Holidays`; labels are categories."""
    login: Login = field(default_factory=Login)
    relist_days: float = 7
    """After so many days all pages are listed again, whatever the logs tell."""
    reference: bool = False
    """Whether it is a work of reference, and not the team's own."""


class MediaWiki:
    """The pages of one wiki, each with the titles of the redirects that lead to it."""

    def __init__(self, wiki: Wiki, web: Web, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self.reference = wiki.reference
        self._wiki = wiki
        self._web = web
        self._chosen = chooser(wiki.rules, now())
        self._about = About()
        self._now = now

    def expected(self) -> None:
        """Nobody knows before all is listed."""

    def documents(self, known: Mapping[str, str] = _NOTHING, since: str = "") -> Listing:
        """List every page, or what was touched since a mark that the wiki's recent changes reach back to.

        Raises `SourceUnavailable`, also while the items are gone through.
        """
        with self._web:
            api = self._api()
            begun = self._begin(api)
            mark = self._usable(api, changes.mark(since), begun) if known else None
        reached = Mark(begun, mark.whole if mark else begun)
        items = self._changed(known, mark.until - OVERLAP) if mark else self._all(known)
        return Listing(items, whole=mark is None, mark=reached.written)

    def one(self, address: str, known: Mapping[str, str]) -> Item | None:
        """Return the page at an address of this wiki, of this title, or with this id. Raises `SourceUnavailable`."""
        with self._web:
            api = self._api()
            if self._about == About():
                self._begin(api)
            wanted = named(address, known, self._about, self._wiki.api)
            found = next(self._looked_up(api, wanted), None) if wanted else None
            if found and not found.redirect and self._wanted(found):
                return next(self._items(api, [found], _NOTHING))
            number = str(found.id) if found else (wanted or {}).get("pageids", "")
            return Gone(number) if number in known else None

    def stop(self) -> None:
        """End soon what blocks."""
        self._web.stop()

    def _api(self) -> Api:
        return Api(self._web, self._wiki.api, self._wiki.login)

    def _begin(self, api: Api) -> datetime:
        """Ask what the wiki says of itself, and what time it is there."""
        query = {"action": "query", "meta": "siteinfo", "siprop": "general|namespaces|namespacealiases"}
        answer = api.ask({**query, "curtimestamp": "1"})
        told = answer.get("query") or {}
        self._about = about(told)
        return dates.parsed(str(answer.get("curtimestamp", ""))) or self._now()

    def _usable(self, api: Api, mark: Mark | None, now: datetime) -> Mark | None:
        if mark is None or now - mark.whole >= timedelta(days=self._wiki.relist_days) or mark.until > now:
            return None
        return mark if changes.kept_since(api, mark.until - OVERLAP) else None

    def _all(self, known: Mapping[str, str]) -> Iterator[Item]:
        with self._web:
            api = self._api()
            for namespace in self._wiki.namespaces:
                query = {"generator": "allpages", "gapnamespace": str(namespace), "gapfilterredir": "nonredirects"}
                for batch in api.batches({**query, "gaplimit": "max", **self._details()}):
                    found = (listed(one, self._about.site) for one in pages(batch))
                    yield from self._items(api, [one for one in found if one and self._wanted(one)], known)

    def _changed(self, known: Mapping[str, str], start: datetime) -> Iterator[Item]:
        with self._web:
            api = self._api()
            events = changes.touched(api, start, self._wiki.namespaces)
            first = events.ids | {int(key) for key in led_by(events.titles, known) if key.isdigit()}
            led = set(events.moved)
            for part in _numbers(first):
                found = {one.id: one for one in self._looked_up(api, {"pageids": part})}
                led |= {one.title for one in found.values() if one.redirect}
                yield from self._told(api, map(int, part.split("|")), found, known)
            further: dict[int, Listed] = {}
            for titles in joined(sorted(led)):
                found = {one.id: one for one in self._looked_up(api, {"titles": titles, "redirects": "1"})}
                further |= {number: one for number, one in found.items() if number not in first}
            yield from self._told(api, sorted(further), further, known)

    def _told(
        self, api: Api, numbers: Iterable[int], found: Mapping[int, Listed], known: Mapping[str, str]
    ) -> Iterator[Item]:
        """Return what became of some pages: there, or gone if we knew them."""
        here = []
        for number in numbers:
            one = found.get(number)
            if one and not one.redirect and self._wanted(one):
                here.append(one)
            elif str(number) in known:
                yield Gone(str(number))
        yield from self._items(api, here, known)

    def _items(self, api: Api, found: Sequence[Listed], known: Mapping[str, str]) -> Iterator[Item]:
        """Return what is known already, then the others, fifty at a time, as their texts come."""
        fresh = [one for one in found if known.get(one.key) != one.fingerprint]
        for one in found:
            if known.get(one.key) == one.fingerprint:
                yield Found(one.key, one.fingerprint, one.size, partial(page, one, None, self._about.site))
        for start in range(0, len(fresh), MOST):
            some = fresh[start : start + MOST]
            texts = fetched(api, [one.id for one in some])
            for one in some:
                load = partial(page, one, texts.pop(one.id, None), self._about.site)
                yield Found(one.key, one.fingerprint, one.size, load)

    def _looked_up(self, api: Api, which: Mapping[str, str]) -> Iterator[Listed]:
        for batch in api.batches({**which, **self._details()}):
            yield from filter(None, (listed(one, self._about.site) for one in pages(batch)))

    def _details(self) -> dict[str, str]:
        """Return the parameters that ask for all that `listed` reads."""
        rules = self._wiki.rules
        asked = {"prop": "info|revisions|redirects", "inprop": "url", "rvprop": "ids|timestamp"}
        asked |= {"rdprop": "title", "rdlimit": "max", "rdnamespace": "|".join(map(str, self._wiki.namespaces))}
        if rules.labels or rules.without_labels:
            asked |= {"prop": f"{asked['prop']}|categories", "cllimit": "max"}
        return asked

    def _wanted(self, one: Listed) -> bool:
        return one.namespace in self._wiki.namespaces and self._chosen(one.traits)


def _numbers(ids: Iterable[int]) -> Iterator[str]:
    return joined(map(str, sorted(ids)))
