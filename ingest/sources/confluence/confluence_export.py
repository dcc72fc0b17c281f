"""Read an export of Confluence: XML with versions, labels and restrictions, or HTML without."""

from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from ingest.readers import file_formats, plain_text
from ingest.readers.parsed_document import ParsedDocument
from ingest.sandbox import Sandbox
from ingest.sources.confluence import export_file
from ingest.sources.confluence.confluence_api import PageNode, PageTree, parse_subjects
from ingest.sources.confluence.export_entities import (
    ENTITY_KINDS,
    AttachedFile,
    EntitiesBroken,
    ExportContents,
    ExportEntity,
    read_entities,
)
from ingest.sources.confluence.export_file import LARGEST_PAGE, ExportedPage, ZipArchive, list_html_pages
from ingest.sources.confluence.storage_format import BODY_NAME, build_page
from ingest.sources.filters import SelectionRules, build_filter, split_unchanged
from ingest.types import (
    EMPTY,
    ChangedDocument,
    DeletedDocument,
    ListedItem,
    Listing,
    Page,
    ReadingStopped,
    SourceUnavailable,
    Unreadable,
    UnreadableDocument,
)
from storage.clock import Clock, utc_now

_STORAGE_FORMAT = "2"  # the kind of a body in storage format; older ones are in wiki markup
_ENTITIES_NAME = "entities.xml"
_LARGEST_FILE = 200 << 20  # bytes of an attachment, as for a file in a folder


@dataclass(frozen=True, slots=True)
class ExportScope:
    path: Path
    base: str = ""  # address of the Confluence, such as `https://confluence.acme.org`; empty: pages get no addresses
    blog_posts: bool = False
    attachments: bool = False
    statuses: tuple[str, ...] = ("current",)
    allowed: tuple[str, ...] = ()  # users and groups whose restricted pages are read, as `group:staff` or `user:jane`
    rules: SelectionRules = field(default_factory=SelectionRules)


class ConfluenceExport:
    """Reads the pages of one export. A page's key is its Confluence id."""

    reference = False

    def __init__(self, scope: ExportScope, *, now: Clock = utc_now, sandbox: Sandbox | None = None) -> None:
        self._scope = scope
        self._is_selected = build_filter(replace(scope.rules, statuses=scope.statuses), now())
        self._stopped = False
        self._sandbox = sandbox or Sandbox()
        self._failed = False  # whether anything was unreadable since the last listing began

    def expected(self) -> None:
        """Return None: the count is unknown until the whole export is read."""

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """List every readable page. If the file is unchanged since it was last read without failures, list nothing."""
        stamp = export_file.make_file_stamp(self._scope.path)
        if known and stamp and since == stamp and self._scope.rules.newest_days is None:
            return Listing(iter(()), whole=False, mark=lambda: stamp)
        self._failed = False
        return Listing(self._list_noting_failures(known), mark=lambda: "" if self._failed else stamp)

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        """Return the page with this address or id. Blocks while the whole export is read."""
        if "://" in address and not (self._scope.base and address.startswith(self._scope.base)):
            return None
        number = address.rpartition("pageId=")[2].partition("&")[0]
        with closing(self._list_documents({}, lambda key: key in {number, address})) as items:
            item = next((item for item in items if item.key in {number, address}), None)
            if isinstance(item, ChangedDocument):
                # Load now: the archive closes with the items.
                return replace(item, load=_load_now(item))
        return item or next((DeletedDocument(key) for key in (number, address) if key in known), None)

    def stop(self) -> None:
        self._stopped = True
        self._sandbox.stop()

    def _list_noting_failures(self, known: Mapping[str, str]) -> Iterator[ListedItem]:
        """Yield every page, and remember whether any page failed to be listed or loaded."""
        for item in self._list_documents(known, lambda _: True):
            self._failed = self._failed or isinstance(item, Unreadable)
            yield replace(item, load=partial(self._load, item)) if isinstance(item, ChangedDocument) else item

    def _load(self, document: ChangedDocument) -> Page:
        try:
            return document.load()
        except UnreadableDocument:
            self._failed = True
            raise

    def _list_documents(
        self, known: Mapping[str, str], is_requested: Callable[[str], bool]
    ) -> Generator[ListedItem, None, None]:
        with self._sandbox, export_file.open_archive(self._scope.path) as archive:
            yield from archive.refused
            if archive.holds(_ENTITIES_NAME):
                yield from self._list_xml(archive, known, is_requested)
            elif any(name.rpartition("/")[2] == "index.html" for name in archive.names):
                for html_page in list_html_pages(archive, self._scope.base):
                    self._refuse_stopped()
                    if is_requested(html_page.key) and self._is_selected(html_page.traits):
                        yield _read_html(archive, html_page, self._sandbox)
            else:
                raise self._explain_no_export(archive)

    def _list_xml(
        self, archive: ZipArchive, known: Mapping[str, str], is_requested: Callable[[str], bool]
    ) -> Iterator[ListedItem]:
        contents = ExportContents()
        contents.add(self._read_entities(archive, ENTITY_KINDS))
        nodes = contents.nodes(blog_posts=self._scope.blog_posts, base=self._scope.base)
        tree = PageTree({**nodes, **contents.private()}, parse_subjects(self._scope.allowed))
        selected = [node for node in tree.chosen(self._is_selected) if node.id in nodes and is_requested(node.id)]
        unchanged, changed = split_unchanged({node.id: _make_fingerprint(node) for node in selected}, known)
        yield from unchanged
        yield from tree.list_withheld(nodes, known)
        yield from self._read_bodies(archive, {key: nodes[key] for key in changed}, contents.people)
        if self._scope.attachments:
            for file in contents.files(nodes):
                node = file.node
                if is_requested(node.id) and tree.readable(node) and self._is_selected(tree.traits(node)):
                    yield from _read_attached(archive, file, self._sandbox)

    def _read_bodies(
        self, archive: ZipArchive, waiting: dict[str, PageNode], people: Mapping[str, str]
    ) -> Iterator[ListedItem]:
        for body in self._read_entities(archive, {"BodyContent"}) if waiting else ():
            if node := waiting.pop(body.references.get("content", ""), None):
                size = len(body.properties.get("body", ""))
                read = partial(_read_body, node, body, people)
                load = partial(self._sandbox.call, read, harmless=file_formats.is_harmless(BODY_NAME, size))
                yield ChangedDocument(node.id, _make_fingerprint(node), size, load)
        for node in waiting.values():
            yield Unreadable(node.id, "the export contains no text for it")

    def _read_entities(self, archive: ZipArchive, kinds: Collection[str]) -> Iterator[ExportEntity]:
        try:
            with archive.open(_ENTITIES_NAME) as file:
                for entity in read_entities(file, kinds):
                    self._refuse_stopped()
                    yield entity
        except EntitiesBroken as error:
            raise SourceUnavailable(
                f"{self._scope.path}: {_ENTITIES_NAME} cannot be read: {error}.",
                hint="Export it again; pages ingested earlier remain.",
            ) from error

    def _refuse_stopped(self) -> None:
        if self._stopped:
            raise ReadingStopped

    def _explain_no_export(self, archive: ZipArchive) -> SourceUnavailable:
        if reason := next((entry.reason for entry in archive.refused if entry.key == _ENTITIES_NAME), ""):
            return SourceUnavailable(
                f"{self._scope.path}: {_ENTITIES_NAME} is not read: {reason}.", hint="Export it again."
            )
        if any(name.endswith(".zip") for name in archive.names):
            hint = "The export may be a zip within this zip: unpack it once."
        else:
            hint = "Export a space as XML or HTML: Space settings, Export space."
        return SourceUnavailable(
            f"{self._scope.path} is not an export of Confluence: it has no {_ENTITIES_NAME}.", hint=hint
        )


def _read_body(node: PageNode, body: ExportEntity, people: Mapping[str, str]) -> Page:
    if body.cut:
        raise UnreadableDocument("is longer than the largest page that is read")
    text = body.properties.get("body", "")
    if body.properties.get("bodyType", _STORAGE_FORMAT) == _STORAGE_FORMAT:
        return build_page(node, text, people)
    items = tuple(plain_text.split_paragraphs(text))
    reading = ParsedDocument(items, title=node.title, date=node.changed, dated=True)
    return file_formats.build_page(reading, node.title, url=node.url, revision=node.version)


def _read_attached(archive: ZipArchive, file: AttachedFile, sandbox: Sandbox) -> Iterator[ListedItem]:
    node = file.node
    if file_formats.explain_refusal(node.title, sandbox.programs):
        return
    if archive.holds(file.entry) and archive.size(file.entry) > _LARGEST_FILE:
        yield Unreadable(node.id, f"is larger than {_LARGEST_FILE >> 20} MB")
        return
    if not archive.holds(file.entry):
        yield Unreadable(node.id, f"the export does not contain the file {node.title}")
        return

    def load() -> Page:
        content = archive.read(file.entry)
        return sandbox.page(content, node.title, url=node.url, revision=node.version, modified=node.changed)

    yield ChangedDocument(node.id, _make_fingerprint(node), archive.size(file.entry), load)


def _read_html(archive: ZipArchive, page: ExportedPage, sandbox: Sandbox) -> ListedItem:
    if archive.size(page.entry) > LARGEST_PAGE:
        return Unreadable(page.key, f"is larger than {LARGEST_PAGE >> 20} MB")
    content = archive.read(page.entry)
    harmless = file_formats.is_harmless(BODY_NAME, len(content))
    load = partial(sandbox.call, partial(page.page, content), harmless=harmless)
    return ChangedDocument(page.key, page.fingerprint(content), len(content), load)


def _make_fingerprint(node: PageNode) -> str:
    """Return a page's version, its time, and the reader version; the time distinguishes exports of two Confluences."""
    moment = node.changed.isoformat() if node.changed else ""
    return f"{node.version}-{moment}-{file_formats.READER_VERSION}"


def _load_now(document: ChangedDocument) -> Callable[[], Page]:
    try:
        page = document.load()
    except UnreadableDocument as error:
        reason = str(error)

        def fail() -> Page:
            raise UnreadableDocument(reason)

        return fail
    return lambda: page
