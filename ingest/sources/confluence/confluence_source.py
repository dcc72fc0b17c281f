"""Read Confluence by its REST API, on Cloud or Data Center: every readable page; the text only if it has changed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
from ingest.sources.filters import SelectionRules, build_filter, split_unchanged
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
)
from ingest.web.http_reply import ResponseTooLarge
from ingest.web.web_client import WebClient
from storage.clock import Clock, utc_now

LARGEST_ATTACHMENT = 64 << 20  # bytes, the limit of `WebClient`
_TOO_LARGE = f"is larger than {LARGEST_ATTACHMENT >> 20} MB"
_MOST_FAILURES = 3


@dataclass(frozen=True, slots=True)
class PageAttachment:
    """One attached file. Its node is a child of its page's node, so the restrictions of all ancestors apply."""

    node: PageNode
    size: int
    path: str  # where it is downloaded, relative to the Confluence's address


class AttachmentDownloader:
    def __init__(self, api: ConfluenceApi, sandbox: Sandbox) -> None:
        self._api, self._sandbox = api, sandbox
        self._failed: list[SourceUnavailable] = []

    def item(self, attachment: PageAttachment, fingerprint: str) -> ListedItem:
        if attachment.size > LARGEST_ATTACHMENT:
            return Unreadable(attachment.node.id, _TOO_LARGE)
        return ChangedDocument(attachment.node.id, fingerprint, attachment.size, partial(self._page, attachment))

    def check(self) -> None:
        """Raise the last error if too many downloads in a row have failed."""
        if len(self._failed) >= _MOST_FAILURES:
            raise self._failed[-1]

    def _page(self, attachment: PageAttachment) -> Page:
        try:
            content = self._api.download(attachment.path)
        except ResponseTooLarge as error:
            raise UnreadableDocument(_TOO_LARGE) from error
        except SourceUnavailable as error:
            self._failed.append(error)
            raise UnreadableDocument(str(error).rstrip(".")) from error
        self._failed.clear()
        node = attachment.node
        return self._sandbox.page(content, node.title, url=node.url, revision=node.version, modified=node.changed)


def parse_attachment(
    content: Content, nodes: Mapping[str, PageNode], site: ConfluenceAddress, programs: ReaderPrograms
) -> PageAttachment | None:
    """Parse a listed attachment; None if its format is not supported, or its page is not in `nodes`."""
    host = nodes.get(str((content.get("container") or {}).get("id", "")))
    name = str(content.get("title", ""))
    links = content.get("_links") or {}
    path = str(links.get("download", ""))
    if host is None or file_formats.explain_refusal(name, programs) or not path.startswith("/"):
        return None
    if site.cloud:  # the link for people does not accept tokens
        path = f"/rest/api/content/{quote(host.id)}/child/attachment/{quote(str(content['id']))}/download"
    node = replace(parse_node(content, site.url), space=host.space, above=(*host.above, host.id), readers=frozenset())
    size = (content.get("extensions") or {}).get("fileSize")
    return PageAttachment(node, int(size) if isinstance(size, int) else 0, path)


_BATCH_TO_VERIFY = 500  # most unlisted pages that are looked up by id before they count as deleted


@dataclass(frozen=True, slots=True)
class ConfluenceScope:
    site: ConfluenceAddress
    spaces: tuple[str, ...] = ()  # their keys; empty: all that the account sees
    blog_posts: bool = False
    attachments: bool = False
    statuses: tuple[str, ...] = ("current",)  # also `archived` on Cloud; drafts and the bin are never read
    allowed: tuple[str, ...] = ()  # users and groups whose restricted pages are read, as `group:staff` or `user:jane`
    rules: SelectionRules = field(default_factory=SelectionRules)  # paths are like `HR/Handbook/Holidays`
    credential: str = ""


class ConfluenceSource:
    """Reads the pages of some spaces. A page's key is its id, which stays the same if the page is moved or renamed."""

    reference = False

    def __init__(
        self,
        scope: ConfluenceScope,
        web: WebClient,
        *,
        now: Clock = utc_now,
        sandbox: Sandbox | None = None,
    ) -> None:
        self._scope = scope
        self._web = web
        self._is_selected = build_filter(replace(scope.rules, statuses=scope.statuses), now())
        self._people: dict[str, str] = {}
        self._sandbox = sandbox or Sandbox()

    def expected(self) -> None:
        """Return None: the count is unknown until all pages are listed."""

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """List every readable page. Raises `SourceUnavailable`, also while the items are iterated."""
        del since  # version numbers show changes
        return Listing(self._list_documents(known))

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        """Return the page at an address of this Confluence, or with this id. Raises `SourceUnavailable`."""
        number = address if address.isdigit() else find_page_id(address, self._scope.site)
        if not number:
            return DeletedDocument(address) if address in known else None
        with self._web:
            api = self._api()
            api.check(self._scope.spaces)
            nodes = self._parse_nodes(api.by_id([number], texts=False))
            above = {parent for node in nodes.values() for parent in node.above}
            ancestors = self._parse_nodes(api.by_id(sorted(above), texts=False)) if above else {}
            tree = self._build_tree(api, {**nodes, **ancestors})
            selected = (node for node in tree.chosen(self._is_selected) if node.id == number)
            if pages := list(filter(self._is_in_scope, selected)):
                return next(self._fetch_pages(api, pages, EMPTY))
        return DeletedDocument(number) if number in known else None

    def stop(self) -> None:
        self._web.stop()
        self._sandbox.stop()

    def _api(self) -> ConfluenceApi:
        return ConfluenceApi(self._web, self._scope.site, credential=self._scope.credential)

    def _is_in_scope(self, node: PageNode) -> bool:
        return not self._scope.spaces or node.space in self._scope.spaces

    def _list_documents(self, known: Mapping[str, str]) -> Iterator[ListedItem]:
        with self._web, self._sandbox:
            api = self._api()
            api.check(self._scope.spaces)
            nodes = self._list_nodes(api)
            unlisted = [key for key in known if key.isdigit() and key not in nodes][:_BATCH_TO_VERIFY]
            # A listing by offsets skips a page whenever an earlier one is deleted meanwhile.
            for start in range(0, len(unlisted), BATCH_SIZE):
                nodes |= self._parse_nodes(api.by_id(unlisted[start : start + BATCH_SIZE], texts=False))
            nodes = {node.id: node for node in nodes.values() if self._is_in_scope(node)}
            tree = self._build_tree(api, nodes)
            selected = [node for node in tree.chosen(self._is_selected) if node.id in nodes]
            yield from self._fetch_pages(api, selected, known)
            yield from tree.list_withheld(nodes, known)
            if self._scope.attachments:
                yield from self._list_attachments(api, tree, nodes, known)
            yield from _warn_of_hidden(tree, nodes)

    def _list_nodes(self, api: ConfluenceApi) -> dict[str, PageNode]:
        nodes: dict[str, PageNode] = {}
        for space in self._scope.spaces or ("",):
            for kind in ("page", "blogpost") if self._scope.blog_posts else ("page",):
                nodes |= self._parse_nodes(api.pages(space, kind, self._scope.statuses))
        return nodes

    def _parse_nodes(self, contents: Iterable[Content]) -> dict[str, PageNode]:
        nodes = {}
        kinds = {"page", "blogpost"} if self._scope.blog_posts else {"page"}
        for content in contents:
            self._people.update(parse_people(content))
            if content.get("type") in kinds:
                node = parse_node(content, self._scope.site.url)
                nodes[node.id] = node
        return nodes

    def _build_tree(self, api: ConfluenceApi, nodes: Mapping[str, PageNode]) -> PageTree:
        """Return the tree of the pages, with ancestors that are not pages, such as folders: they may be restricted."""
        above = {parent for node in nodes.values() for parent in node.above} - nodes.keys()
        others = {number: PageNode(number, "", "", "", readers=api.readers(number)) for number in sorted(above)}
        return PageTree({**nodes, **others}, parse_subjects(self._scope.allowed))

    def _fetch_pages(
        self, api: ConfluenceApi, pages: Sequence[PageNode], known: Mapping[str, str]
    ) -> Iterator[ListedItem]:
        """Yield unchanged pages first, then the others; the texts of these are fetched in batches."""
        nodes = {node.id: node for node in pages}
        fingerprints = {node.id: _make_fingerprint(node) for node in pages}
        unchanged, changed = split_unchanged(fingerprints, known)
        yield from unchanged
        for start in range(0, len(changed), BATCH_SIZE):
            batch = changed[start : start + BATCH_SIZE]
            bodies = fetch_bodies(api, batch)
            for number in batch:
                load = partial(read_page, nodes[number], bodies.pop(number, None), self._people, self._sandbox)
                yield ChangedDocument(number, fingerprints[number], 0, load)

    def _list_attachments(
        self, api: ConfluenceApi, tree: PageTree, nodes: Mapping[str, PageNode], known: Mapping[str, str]
    ) -> Iterator[ListedItem]:
        downloads = AttachmentDownloader(api, self._sandbox)
        for space in self._scope.spaces or ("",):
            for content in api.attachments(space):
                attachment = parse_attachment(content, nodes, self._scope.site, self._sandbox.programs)
                if not attachment:
                    continue
                node = attachment.node
                if tree.readable(node) and self._is_selected(tree.traits(node)):
                    yield downloads.item(attachment, _make_fingerprint(node))
                    downloads.check()
                yield from tree.list_withheld({node.id: node}, (node.id,) if node.id in known else ())


def _warn_of_hidden(tree: PageTree, nodes: Mapping[str, PageNode]) -> Iterator[ListedItem]:
    """Yield a warning for each ancestor with unknown readers, as all pages below it are skipped."""
    unknown = Counter(above for node in nodes.values() for above in tree.unknown(node))
    for above, number in sorted(unknown.items()):
        yield Unreadable(f"{above} (restrictions)", f"its readers are unknown: {number:,} pages below it are skipped")


def _make_fingerprint(node: PageNode) -> str:
    """Return a page's version, the reader version, and a hash of its title and address."""
    location = blake2s(f"{node.title}\n{node.url}".encode(), digest_size=4).hexdigest()
    return f"{node.version}-{file_formats.READER_VERSION}-{location}"
