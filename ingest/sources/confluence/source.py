"""Confluence by its REST API, on Cloud or Data Center: every page that may be read, each fetched when it has changed.

All pages are listed each time, without their texts: their version numbers tell what changed, and only so is it seen
at once that a page was restricted, moved beneath one that is, or labelled, none of which counts as a change of it. What
was changed since a moment is not asked for: the search answers that by the minute, in a time zone of the account's.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2s
from itertools import islice
from types import MappingProxyType

from ingest import converting
from ingest.apart.reading import Apart
from ingest.choosing import Rules, chooser
from ingest.sources.confluence.api import MOST, Api, Content, Place, leaf, named, people
from ingest.sources.confluence.attachments import Downloads, attachment
from ingest.sources.confluence.texts import fetched, page
from ingest.sources.confluence.tree import Leaf, Tree, subjects
from ingest.types import Found, Gone, Item, Listing, Unreadable
from ingest.web.fetching import Web

_NOTHING: Mapping[str, str] = MappingProxyType({})
_DOUBTED = 500
"""Pages at most that are asked for one by one before they are taken for gone."""


@dataclass(frozen=True, slots=True)
class Spaces:
    """What of a Confluence is read."""

    place: Place
    spaces: tuple[str, ...] = ()
    """Their keys; empty for all that the account sees."""
    blog_posts: bool = False
    attachments: bool = False
    statuses: tuple[str, ...] = ("current",)
    """`current`, and `archived` where Confluence tells; drafts and what is in the bin are never read."""
    allowed: tuple[str, ...] = ()
    """Who of those that a page is restricted to is let in, as `group:staff` or `user:jane`; restricted pages of others
    are left out."""
    rules: Rules = field(default_factory=Rules)
    """Paths are as `HR/Handbook/Holidays`."""
    credential: str = ""


class Confluence:
    """The pages of some spaces. A page's key is its id: it outlives moves and new titles."""

    reference = False

    def __init__(self, given: Spaces, web: Web, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._given = given
        self._web = web
        self._wanted = chooser(replace(given.rules, statuses=given.statuses), now())
        self._people: dict[str, str] = {}
        self._apart = Apart()

    def expected(self) -> None:
        """Nobody knows before all is listed."""

    def documents(self, known: Mapping[str, str] = _NOTHING, since: str = "") -> Listing:
        """List every page that may be read. Raises `SourceUnavailable`, also while the items are gone through."""
        del since  # what is new is told by version numbers
        return Listing(self._documents(known))

    def one(self, address: str, known: Mapping[str, str]) -> Item | None:
        """Return the page at an address of this Confluence, or with this id. Raises `SourceUnavailable`."""
        number = address if address.isdigit() else named(address, self._given.place)
        if not number:
            return Gone(address) if address in known else None
        with self._web:
            api = self._api()
            api.check(self._given.spaces)
            found = self._leaves(api.by_id([number], texts=False))
            above = {one for mine in found.values() for one in mine.above}
            around = self._leaves(api.by_id(sorted(above), texts=False)) if above else {}
            tree = self._tree(api, {**found, **around})
            mine = [one for one in tree.chosen(self._wanted) if one.id == number and self._inside(one)]
            if mine:
                return next(self._items(api, mine, _NOTHING))
        return Gone(number) if number in known else None

    def stop(self) -> None:
        """End soon what blocks."""
        self._web.stop()
        self._apart.stop()

    def _api(self) -> Api:
        return Api(self._web, self._given.place, credential=self._given.credential)

    def _inside(self, one: Leaf) -> bool:
        return not self._given.spaces or one.space in self._given.spaces

    def _documents(self, known: Mapping[str, str]) -> Iterator[Item]:
        with self._web, self._apart:
            api = self._api()
            api.check(self._given.spaces)
            leaves = self._listed(api)
            doubted = [key for key in known if key.isdigit() and key not in leaves][:_DOUBTED]
            # Where a listing is read by offsets, a page that goes lets the next one slip through.
            for some in _parts(doubted):
                leaves |= self._leaves(api.by_id(some, texts=False))
            leaves = {one.id: one for one in leaves.values() if self._inside(one)}
            tree = self._tree(api, leaves)
            chosen = [one for one in tree.chosen(self._wanted) if one.id in leaves]
            yield from self._items(api, chosen, known)
            yield from (Gone(key, withheld=True) for key in known if key in leaves and not tree.readable(leaves[key]))
            if self._given.attachments:
                yield from self._attached(api, tree, leaves, known)
            yield from _hidden_below(tree, leaves)

    def _listed(self, api: Api) -> dict[str, Leaf]:
        leaves: dict[str, Leaf] = {}
        for space in self._given.spaces or ("",):
            for kind in ("page", "blogpost") if self._given.blog_posts else ("page",):
                leaves |= self._leaves(api.pages(space, kind, self._given.statuses))
        return leaves

    def _leaves(self, contents: Iterable[Content]) -> dict[str, Leaf]:
        found = {}
        kinds = {"page", "blogpost"} if self._given.blog_posts else {"page"}
        for content in contents:
            self._people.update(people(content))
            if content.get("type") not in kinds:
                continue
            one = leaf(content, self._given.place.url)
            found[one.id] = one
        return found

    def _tree(self, api: Api, leaves: Mapping[str, Leaf]) -> Tree:
        """Put in what stands above pages and is no page itself, such as folders: they may be restricted too."""
        above = {one for mine in leaves.values() for one in mine.above} - leaves.keys()
        others = {one: Leaf(one, "", "", "", readers=api.readers(one)) for one in sorted(above)}
        return Tree({**leaves, **others}, subjects(self._given.allowed))

    def _items(self, api: Api, chosen: Sequence[Leaf], known: Mapping[str, str]) -> Iterator[Item]:
        """Return what is known already, then the others, fifty at a time, as their texts come."""
        fresh = [one for one in chosen if known.get(one.id) != _fingerprint(one)]
        for one in chosen:
            if known.get(one.id) == _fingerprint(one):
                yield Found(one.id, _fingerprint(one), 0, partial(page, one, None, self._people, self._apart))
        for start in range(0, len(fresh), MOST):
            some = fresh[start : start + MOST]
            texts = fetched(api, [one.id for one in some])
            for one in some:
                load = partial(page, one, texts.pop(one.id, None), self._people, self._apart)
                yield Found(one.id, _fingerprint(one), 0, load)

    def _attached(self, api: Api, tree: Tree, leaves: Mapping[str, Leaf], known: Mapping[str, str]) -> Iterator[Item]:
        downloads = Downloads(api, self._apart)
        for space in self._given.spaces or ("",):
            for content in api.attachments(space):
                one = attachment(content, leaves, self._given.place.url)
                if one and one.leaf.id in known and not tree.readable(one.leaf):
                    yield Gone(one.leaf.id, withheld=True)
                elif one and tree.readable(one.leaf) and self._wanted(tree.traits(one.leaf)):
                    yield downloads.item(one, _fingerprint(one.leaf))
                    downloads.check()


def _hidden_below(tree: Tree, leaves: Mapping[str, Leaf]) -> Iterator[Item]:
    """Say so where pages are left out because nobody can tell who may read what stands above them."""
    unknown: dict[str, int] = {}
    for one in leaves.values():
        for above in tree.unknown(one):
            unknown[above] = unknown.get(above, 0) + 1
    for above, number in sorted(unknown.items()):
        said = f"who may read it cannot be told: {number:,} pages beneath it are left out"
        yield Unreadable(f"{above} (restrictions)", said)


def _fingerprint(one: Leaf) -> str:
    """Of the version, of where it is, and of how we read."""
    place = blake2s(f"{one.title}\n{one.url}".encode(), digest_size=4).hexdigest()
    return f"{one.version}-{converting.READER_VERSION}-{place}"


def _parts(keys: list[str]) -> Iterator[list[str]]:
    going = iter(keys)
    while some := list(islice(going, MOST)):
        yield some
