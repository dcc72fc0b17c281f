"""An export of Confluence as a zip: of XML, which knows versions, labels and restrictions, or of HTML, which does not.

It is gone through twice: for what there is, as a restriction may stand behind the page that it is on, and then for the
texts of what is read and has changed. The zip is read in place.
"""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType

from ingest import converting
from ingest.apart import deciding
from ingest.apart.reading import Apart
from ingest.choosing import Rules, chooser
from ingest.formats import plain
from ingest.formats.reading import Reading
from ingest.sources import archive
from ingest.sources.archive import Archive
from ingest.sources.confluence.entities import EntitiesBroken, Entity, entities
from ingest.sources.confluence.pages import LARGEST, HtmlPage, html_pages
from ingest.sources.confluence.space import KINDS, File, Gathered, text_of
from ingest.sources.confluence.texts import KIND, made
from ingest.sources.confluence.tree import Leaf, Tree, subjects
from ingest.types import Found, Gone, Item, Listing, Page, SourceUnavailable, Unreadable, UnreadableDocument

_NOTHING: Mapping[str, str] = MappingProxyType({})
_XML = "entities.xml"
_LARGEST = 200 << 20
"""Bytes of an attachment, as of a file in a folder."""


@dataclass(frozen=True, slots=True)
class Export:
    """Which export, and what of it."""

    path: Path
    base: str = ""
    """Where people read these pages, such as `https://confluence.acme.org`; empty: they get no addresses."""
    blog_posts: bool = False
    attachments: bool = False
    statuses: tuple[str, ...] = ("current",)
    allowed: tuple[str, ...] = ()
    """Who of those that a page is restricted to is let in, as `group:staff` or `user:jane`."""
    rules: Rules = field(default_factory=Rules)


class ConfluenceExport:
    """The pages of one export. A page's key is its id, as in Confluence itself."""

    reference = False

    def __init__(self, given: Export, *, now: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        self._given = given
        self._wanted = chooser(replace(given.rules, statuses=given.statuses), now())
        self._stopped = False
        self._apart = Apart()
        self._failed = False
        """Whether anything could not be read since the last listing began."""

    def expected(self) -> None:
        """Nobody knows before all was gone through."""

    def documents(self, known: Mapping[str, str] = _NOTHING, since: str = "") -> Listing:
        """List every page that may be read; none if the file is the one that was read whole the last time, unharmed.

        Blocks. Raises `SourceUnavailable` while the items are gone through.
        """
        now = archive.stamp(self._given.path)
        if known and now and since == now and self._given.rules.newest_days is None:
            return Listing(iter(()), whole=False, mark=lambda: now)
        self._failed = False
        return Listing(self._noted(known), mark=lambda: "" if self._failed else now)

    def one(self, address: str, known: Mapping[str, str]) -> Item | None:
        """Return the page at this address, or with this id. Blocks: the whole export is gone through."""
        if "://" in address and not (self._given.base and address.startswith(self._given.base)):
            return None
        number = address.rpartition("pageId=")[2].partition("&")[0]
        with closing(self._documents({}, lambda key: key in {number, address})) as items:
            found = next((item for item in items if item.key in {number, address}), None)
            if isinstance(found, Found):
                # The archive is closed when the items are: the text is wanted before that.
                return replace(found, load=_given(found))
        return found or next((Gone(key) for key in (number, address) if key in known), None)

    def stop(self) -> None:
        """End soon what goes through the export."""
        self._stopped = True
        self._apart.stop()

    def _noted(self, known: Mapping[str, str]) -> Iterator[Item]:
        """List every page, and note what fails, also when it is loaded."""
        for item in self._documents(known, lambda _: True):
            self._failed = self._failed or isinstance(item, Unreadable)
            yield replace(item, load=partial(self._loaded, item)) if isinstance(item, Found) else item

    def _loaded(self, found: Found) -> Page:
        try:
            return found.load()
        except UnreadableDocument:
            self._failed = True
            raise

    def _documents(self, known: Mapping[str, str], asked: Callable[[str], bool]) -> Generator[Item, None, None]:
        with self._apart, archive.opened(self._given.path) as there:
            yield from there.refused
            if there.holds(_XML):
                yield from self._of_xml(there, known, asked)
            elif any(name.rpartition("/")[2] == "index.html" for name in there.names):
                yield from self._of_html(there, asked)
            else:
                raise self._no_export(there)

    def _of_xml(self, there: Archive, known: Mapping[str, str], asked: Callable[[str], bool]) -> Iterator[Item]:
        gathered = Gathered()
        gathered.take(self._entities(there, KINDS))
        leaves = gathered.leaves(blog_posts=self._given.blog_posts, base=self._given.base)
        tree = Tree({**leaves, **gathered.private()}, subjects(self._given.allowed))
        chosen = {one.id: one for one in tree.chosen(self._wanted) if one.id in leaves and asked(one.id)}
        fresh = {key for key, one in chosen.items() if known.get(key) != _fingerprint(one)}
        for one in chosen.values():
            if one.id not in fresh:
                yield Found(one.id, _fingerprint(one), 0, _unread)
        yield from (Gone(key, withheld=True) for key in known if key in leaves and not tree.readable(leaves[key]))
        yield from self._texts(there, {key: chosen[key] for key in fresh}, gathered.people)
        if self._given.attachments:
            for file in gathered.files(leaves):
                if asked(file.leaf.id) and tree.readable(file.leaf) and self._wanted(tree.traits(file.leaf)):
                    yield from _attached(there, file, self._apart)

    def _texts(self, there: Archive, waiting: dict[str, Leaf], people: Mapping[str, str]) -> Iterator[Item]:
        for body in self._entities(there, {"BodyContent"}) if waiting else ():
            if leaf := waiting.pop(body.refers.get("content", ""), None):
                size = len(body.said.get("body", ""))
                read = partial(_page, leaf, body, people)
                load = partial(self._apart.done, read, harmless=deciding.harmless(KIND, size))
                yield Found(leaf.id, _fingerprint(leaf), size, load)
        for leaf in waiting.values():
            yield Unreadable(leaf.id, "the export holds no text of it")

    def _entities(self, there: Archive, kinds: Collection[str]) -> Iterator[Entity]:
        try:
            with there.open(_XML) as file:
                for one in entities(file, kinds):
                    self._look()
                    yield one
        except EntitiesBroken as error:
            raise SourceUnavailable(
                f"{self._given.path}: {_XML} cannot be read: {error}.",
                hint="Export it again; what was read before still answers.",
            ) from error

    def _of_html(self, there: Archive, asked: Callable[[str], bool]) -> Iterator[Item]:
        for one in html_pages(there, self._given.base):
            self._look()
            if asked(one.key) and self._wanted(one.traits):
                yield _of_web(there, one, self._apart)

    def _look(self) -> None:
        if self._stopped:
            raise SourceUnavailable("Reading was stopped.", hint="Run the same command again to go on.")

    def _no_export(self, there: Archive) -> SourceUnavailable:
        if bomb := next((one.reason for one in there.refused if one.key == _XML), ""):
            return SourceUnavailable(f"{self._given.path}: {_XML} is left alone: {bomb}.", hint="Export it again.")
        if any(name.endswith(".zip") for name in there.names):
            hint = "The export may lie within, as a zip in a zip: unpack it once."
        else:
            hint = "Export a space as XML or HTML: Space settings, Export space."
        return SourceUnavailable(f"{self._given.path} is no export of Confluence: it has no {_XML}.", hint=hint)


def _page(leaf: Leaf, body: Entity, people: Mapping[str, str]) -> Page:
    if body.cut:
        raise UnreadableDocument("is longer than what is read of a page")
    text, storage = text_of(body)
    if storage:
        return made(leaf, text, people)
    reading = plain.read(text)
    return converting.made(
        Reading(reading.items, title=leaf.title, date=leaf.changed, dated=True), leaf.title, url=leaf.url,
        revision=leaf.version,
    )  # fmt: skip


def _attached(there: Archive, file: File, apart: Apart) -> Iterator[Item]:
    leaf = file.leaf
    if converting.refusal(leaf.title):
        return
    if there.holds(file.entry) and there.size(file.entry) > _LARGEST:
        yield Unreadable(leaf.id, f"is larger than {_LARGEST >> 20} MB")
        return
    if not there.holds(file.entry):
        yield Unreadable(leaf.id, f"the export does not hold the file {leaf.title}")
        return

    def load() -> Page:
        content = there.read(file.entry)
        return apart.page(content, leaf.title, url=leaf.url, revision=leaf.version, modified=leaf.changed)

    yield Found(leaf.id, _fingerprint(leaf), there.size(file.entry), load)


def _of_web(there: Archive, one: HtmlPage, apart: Apart) -> Item:
    if there.size(one.entry) > LARGEST:
        return Unreadable(one.key, f"is larger than {LARGEST >> 20} MB")
    content = there.read(one.entry)
    load = partial(apart.done, partial(one.page, content), harmless=deciding.harmless(KIND, len(content)))
    return Found(one.key, one.fingerprint(content), len(content), load)


def _fingerprint(leaf: Leaf) -> str:
    """Of the version, of its moment, as an export of another Confluence may count alike, and of how we read."""
    moment = leaf.changed.isoformat() if leaf.changed else ""
    return f"{leaf.version}-{moment}-{converting.READER_VERSION}"


def _unread() -> Page:
    raise UnreadableDocument("was known and so was not read: run the same command again")


def _given(found: Found) -> Callable[[], Page]:
    """Read now what is to be loaded later."""
    try:
        page = found.load()
    except UnreadableDocument as error:
        reason = str(error)

        def fails() -> Page:
            raise UnreadableDocument(reason)

        return fails
    return lambda: page
