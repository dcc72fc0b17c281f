"""Read Confluence by its REST API, on Cloud or Data Center: each page that may be read, fetched when it has changed."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from hashlib import blake2s
from urllib.parse import quote

from ingest.readers import file_formats
from ingest.readers.external_programs import ReaderPrograms
from ingest.sandbox import Sandbox
from ingest.sources.confluence.confluence_api import (
    BATCH_SIZE,
    ConfluenceAddress,
    ConfluenceApi,
    Content,
    PageNode,
    PageTree,
    find_page_id,
    parse_node,
    parse_people,
    parse_subjects,
)
from ingest.sources.confluence.storage_format import fetch_bodies, read_page
from ingest.sources.filters import SelectionRules, build_filter, utc_now
from ingest.types import (
    EMPTY,
    ChangedDocument,
    DeletedDocument,
    ListedItem,
    Listing,
    Page,
    SourceUnavailable,
    Unreadable,
    UnreadableDocument,
    list_unchanged,
)
from ingest.web.http_reply import ResponseTooLarge
from ingest.web.web_client import WebClient

LARGEST_ATTACHMENT = 64 << 20  # bytes, as `WebClient` gets no larger replies
_TOO_LARGE = f"is larger than {LARGEST_ATTACHMENT >> 20} MB"
_MOST_FAILURES = 3


@dataclass(frozen=True, slots=True)
class PageAttachment:
    """Describe one file; its node stands below that of its page, and so below all that the page stands below."""

    node: PageNode
    size: int
    path: str  # from where it is downloaded, within the Confluence
    largest: int = LARGEST_ATTACHMENT


class AttachmentDownloader:
    def __init__(self, api: ConfluenceApi, sandbox: Sandbox) -> None:
        self._api, self._sandbox = api, sandbox
        self._failed: list[SourceUnavailable] = []

    def item(self, one: PageAttachment, fingerprint: str) -> ListedItem:
        if one.size > LARGEST_ATTACHMENT:
            return Unreadable(one.node.id, _TOO_LARGE)
        return ChangedDocument(one.node.id, fingerprint, one.size, partial(self._page, one))

    def check(self) -> None:
        """Raise what the last ones failed with, once these are too many."""
        if len(self._failed) >= _MOST_FAILURES:
            raise self._failed[-1]

    def _page(self, one: PageAttachment) -> Page:
        try:
            content = self._api.download(one.path)
        except ResponseTooLarge as error:
            raise UnreadableDocument(_TOO_LARGE) from error
        except SourceUnavailable as error:
            self._failed.append(error)
            raise UnreadableDocument(str(error).rstrip(".")) from error
        self._failed.clear()
        node = one.node
        return self._sandbox.page(content, node.title, url=node.url, revision=node.version, modified=node.changed)


def parse_attachment(
    content: Content, nodes: Mapping[str, PageNode], place: ConfluenceAddress, programs: ReaderPrograms
) -> PageAttachment | None:
    """Parse one of a listing; None if its kind is not read, or its page is none of those."""
    host = nodes.get(str((content.get("container") or {}).get("id", "")))
    name = str(content.get("title", ""))
    links = content.get("_links") or {}
    path = str(links.get("download", ""))
    if host is None or file_formats.explain_refusal(name, programs) or not path.startswith("/"):
        return None
    if place.cloud:  # lets no token in by the link that people follow
        path = f"/rest/api/content/{quote(host.id)}/child/attachment/{quote(str(content['id']))}/download"
    mine = replace(parse_node(content, place.url), space=host.space, above=(*host.above, host.id), readers=frozenset())
    size = (content.get("extensions") or {}).get("fileSize")
    return PageAttachment(mine, int(size) if isinstance(size, int) else 0, path)


_BATCH_TO_VERIFY = 500  # pages at most that are asked for one by one before they are taken for gone


@dataclass(frozen=True, slots=True)
class ConfluenceScope:
    place: ConfluenceAddress
    spaces: tuple[str, ...] = ()  # their keys; empty for all that the account sees
    blog_posts: bool = False
    attachments: bool = False
    statuses: tuple[str, ...] = ("current",)
    """`current`, and `archived` where Confluence tells; drafts and what is in the bin are never read."""
    allowed: tuple[str, ...] = ()
    """Who of those that a page is restricted to is let in, as `group:staff` or `user:jane`; restricted pages of others
    are left out."""
    rules: SelectionRules = field(default_factory=SelectionRules)
    """Paths are as `HR/Handbook/Holidays`."""
    credential: str = ""


class ConfluenceSource:
    """Read the pages of some spaces. A page's key is its id: it outlives moves and new titles."""

    reference = False

    def __init__(
        self,
        given: ConfluenceScope,
        web: WebClient,
        *,
        now: Callable[[], datetime] = utc_now,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._given = given
        self._web = web
        self._wanted = build_filter(replace(given.rules, statuses=given.statuses), now())
        self._people: dict[str, str] = {}
        self._sandbox = sandbox or Sandbox()

    def expected(self) -> None:
        """Nobody knows before all is listed."""

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """List every page that may be read. Raises `SourceUnavailable`, also while the items are gone through."""
        del since  # what is new is told by version numbers
        return Listing(self._list_documents(known))

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        """Return the page at an address of this Confluence, or with this id. Raises `SourceUnavailable`."""
        number = address if address.isdigit() else find_page_id(address, self._given.place)
        if not number:
            return DeletedDocument(address) if address in known else None
        with self._web:
            api = self._api()
            api.check(self._given.spaces)
            found = self._parse_nodes(api.by_id([number], texts=False))
            above = {one for mine in found.values() for one in mine.above}
            around = self._parse_nodes(api.by_id(sorted(above), texts=False)) if above else {}
            tree = self._build_tree(api, {**found, **around})
            mine = [one for one in tree.chosen(self._wanted) if one.id == number and self._is_in_scope(one)]
            if mine:
                return next(self._fetch_pages(api, mine, EMPTY))
        return DeletedDocument(number) if number in known else None

    def stop(self) -> None:
        self._web.stop()
        self._sandbox.stop()

    def _api(self) -> ConfluenceApi:
        return ConfluenceApi(self._web, self._given.place, credential=self._given.credential)

    def _is_in_scope(self, one: PageNode) -> bool:
        return not self._given.spaces or one.space in self._given.spaces

    def _list_documents(self, known: Mapping[str, str]) -> Iterator[ListedItem]:
        with self._web, self._sandbox:
            api = self._api()
            api.check(self._given.spaces)
            nodes = self._list_nodes(api)
            doubted = [key for key in known if key.isdigit() and key not in nodes][:_BATCH_TO_VERIFY]
            # Where a listing is read by offsets, a page that goes lets the next one slip through.
            for start in range(0, len(doubted), BATCH_SIZE):
                nodes |= self._parse_nodes(api.by_id(doubted[start : start + BATCH_SIZE], texts=False))
            nodes = {one.id: one for one in nodes.values() if self._is_in_scope(one)}
            tree = self._build_tree(api, nodes)
            chosen = [one for one in tree.chosen(self._wanted) if one.id in nodes]
            yield from self._fetch_pages(api, chosen, known)
            yield from (
                DeletedDocument(key, withheld=True) for key in known if key in nodes and not tree.readable(nodes[key])
            )
            if self._given.attachments:
                yield from self._list_attachments(api, tree, nodes, known)
            yield from _warn_of_hidden(tree, nodes)

    def _list_nodes(self, api: ConfluenceApi) -> dict[str, PageNode]:
        nodes: dict[str, PageNode] = {}
        for space in self._given.spaces or ("",):
            for kind in ("page", "blogpost") if self._given.blog_posts else ("page",):
                nodes |= self._parse_nodes(api.pages(space, kind, self._given.statuses))
        return nodes

    def _parse_nodes(self, contents: Iterable[Content]) -> dict[str, PageNode]:
        found = {}
        kinds = {"page", "blogpost"} if self._given.blog_posts else {"page"}
        for content in contents:
            self._people.update(parse_people(content))
            if content.get("type") not in kinds:
                continue
            one = parse_node(content, self._given.place.url)
            found[one.id] = one
        return found

    def _build_tree(self, api: ConfluenceApi, nodes: Mapping[str, PageNode]) -> PageTree:
        """Add what stands above pages and is no page itself, such as folders: they may be restricted too."""
        above = {one for mine in nodes.values() for one in mine.above} - nodes.keys()
        others = {one: PageNode(one, "", "", "", readers=api.readers(one)) for one in sorted(above)}
        return PageTree({**nodes, **others}, parse_subjects(self._given.allowed))

    def _fetch_pages(
        self, api: ConfluenceApi, chosen: Sequence[PageNode], known: Mapping[str, str]
    ) -> Iterator[ListedItem]:
        """Yield what is known already, then the others, fifty at a time, as their texts come."""
        fresh = [one for one in chosen if known.get(one.id) != _make_fingerprint(one)]
        for one in chosen:
            if known.get(one.id) == _make_fingerprint(one):
                yield list_unchanged(one.id, known[one.id])
        for start in range(0, len(fresh), BATCH_SIZE):
            some = fresh[start : start + BATCH_SIZE]
            texts = fetch_bodies(api, [one.id for one in some])
            for one in some:
                load = partial(read_page, one, texts.pop(one.id, None), self._people, self._sandbox)
                yield ChangedDocument(one.id, _make_fingerprint(one), 0, load)

    def _list_attachments(
        self, api: ConfluenceApi, tree: PageTree, nodes: Mapping[str, PageNode], known: Mapping[str, str]
    ) -> Iterator[ListedItem]:
        downloads = AttachmentDownloader(api, self._sandbox)
        for space in self._given.spaces or ("",):
            for content in api.attachments(space):
                one = parse_attachment(content, nodes, self._given.place, self._sandbox.programs)
                if one and one.node.id in known and not tree.readable(one.node):
                    yield DeletedDocument(one.node.id, withheld=True)
                elif one and tree.readable(one.node) and self._wanted(tree.traits(one.node)):
                    yield downloads.item(one, _make_fingerprint(one.node))
                    downloads.check()


def _warn_of_hidden(tree: PageTree, nodes: Mapping[str, PageNode]) -> Iterator[ListedItem]:
    """Warn where pages are left out because nobody can tell who may read what stands above them."""
    unknown: dict[str, int] = {}
    for one in nodes.values():
        for above in tree.unknown(one):
            unknown[above] = unknown.get(above, 0) + 1
    for above, number in sorted(unknown.items()):
        reason = f"who may read it cannot be told: {number:,} pages beneath it are left out"
        yield Unreadable(f"{above} (restrictions)", reason)


def _make_fingerprint(one: PageNode) -> str:
    """Name the version, where it is, and how we read."""
    place = blake2s(f"{one.title}\n{one.url}".encode(), digest_size=4).hexdigest()
    return f"{one.version}-{file_formats.READER_VERSION}-{place}"
