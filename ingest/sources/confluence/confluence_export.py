"""Read an export of Confluence: of XML, which knows versions, labels and restrictions, or of HTML, which does not."""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path

from ingest.readers import file_formats, plain_text, value_parsers
from ingest.readers.parsed_document import ParsedDocument
from ingest.sandbox import Sandbox
from ingest.sources.confluence import export_file
from ingest.sources.confluence.confluence_api import PageNode, PageTree, ReaderSet, parse_subjects
from ingest.sources.confluence.export_file import (
    LARGEST_PAGE,
    EntitiesBroken,
    ExportedPage,
    ExportEntity,
    ZipArchive,
    list_html_pages,
    read_entities,
)
from ingest.sources.confluence.storage_format import BODY_NAME, build_page
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

ENTITY_KINDS = frozenset({
    "Page", "BlogPost", "Space", "Label", "Labelling", "ContentPermissionSet", "ContentPermission", "Attachment",
    "ConfluenceUserImpl", "InternalUser", "SpacePermission",
})  # fmt: skip
_STORAGE_FORMAT = "2"  # the kind of a body in storage format; older ones are in wiki markup


@dataclass(frozen=True, slots=True)
class AttachedFile:
    node: PageNode
    entry: str


@dataclass(slots=True)
class ExportContents:
    """Collect what stands in an export, but for the texts. It is complete only at the export's end."""

    contents: dict[str, ExportEntity] = field(default_factory=dict)
    attachments: list[ExportEntity] = field(default_factory=list)
    _spaces: dict[str, str] = field(default_factory=dict)
    _labels: dict[str, str] = field(default_factory=dict)
    _labelled: dict[str, list[str]] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)
    _permitted: list[ExportEntity] = field(default_factory=list)
    _viewing: list[ExportEntity] = field(default_factory=list)
    people: dict[str, str] = field(default_factory=dict)
    """The names of people by the keys that mentions use."""
    _logins: dict[str, str] = field(default_factory=dict)
    _shown: dict[str, str] = field(default_factory=dict)

    def take(self, found: Iterable[ExportEntity]) -> None:
        for one in found:
            self._take_one(one)
        for key, login in self._logins.items():
            self.people[key] = self._shown.get(login, login)
        self.people.update({login: name for login, name in self._shown.items() if login})

    def nodes(self, *, blog_posts: bool, base: str) -> dict[str, PageNode]:
        """Return every current page by id. `base` is the address under which people read them; empty for none."""
        readers = self._find_readers()
        spaces = self.private().keys()
        found: dict[str, PageNode] = {}
        for content in self.contents.values():
            if _is_current(content) and (blog_posts or content.kind == "Page"):
                found[content.id] = self._make_node(content, readers, base, spaces)
        return found

    def private(self) -> dict[str, PageNode]:
        """Return what stands above the pages of spaces that only single people may view, restricted to these."""
        viewers: dict[str, set[str]] = {}
        for one in self._viewing:
            # Without any name it is everyone, also those who have no account.
            named = self._subjects(one.said.get("userName"), one, one.said.get("group", "")) or {"group:"}
            viewers.setdefault(_space_root(one.refers.get("space", "")), set()).update(named)
        return {
            space: PageNode(space, "", "", "", readers=frozenset(names))
            for space, names in viewers.items()
            if all(name.startswith("user:") for name in names)
        }

    def files(self, nodes: dict[str, PageNode]) -> Iterator[AttachedFile]:
        """Return what is attached to these pages, in its last version."""
        last: dict[tuple[str, str], tuple[int, ExportEntity]] = {}
        for one in self.attachments:
            host = one.refers.get("containerContent") or one.refers.get("content", "")
            name = one.said.get("title") or one.said.get("fileName", "")
            if host in nodes and name and _is_current(one):
                number = int(_version_of(one) or 0)
                if number >= last.get((host, name), (0, one))[0]:
                    last[host, name] = (number, one)
        for (host, name), (number, one) in sorted(last.items()):
            page = nodes[host]
            above, changed = (*page.above, host), _changed_at(one)
            node = PageNode(f"att{one.id}", name, page.space, str(number), changed=changed, url=page.url, above=above)
            yield AttachedFile(node, f"attachments/{host}/{one.id}/{number}")

    def _take_one(self, one: ExportEntity) -> None:
        match one.kind:
            case "Page" | "BlogPost":
                self.contents[one.id] = one
            case "Attachment":
                self.attachments.append(one)
            case "Space":
                self._spaces[one.id] = one.said.get("key", "")
            case "Label" if one.said.get("namespace") == "global":
                self._labels[one.id] = one.said.get("name", "")
            case "Labelling":
                host = one.refers.get("content") or one.said.get("labelableId", "")
                self._labelled.setdefault(host, []).append(one.refers.get("label", ""))
            case "ConfluenceUserImpl":
                self._logins[one.id] = one.said.get("name", "")
            case "InternalUser":
                self._shown[one.said.get("name", "")] = " ".join(one.said.get("displayName", "").split())
            case _:
                self._take_permission(one)

    def _take_permission(self, one: ExportEntity) -> None:
        match one.kind, one.said.get("type"):
            case "SpacePermission", "VIEWSPACE":
                self._viewing.append(one)
            case "ContentPermissionSet", "View":
                self._owners[one.id] = one.refers.get("owningContent", "")
            case "ContentPermission", "View":
                self._permitted.append(one)

    def _find_readers(self) -> dict[str, set[str]]:
        found: dict[str, set[str]] = {owner: set() for owner in self._owners.values()}
        for one in self._permitted:
            owner = self._owners.get(one.refers.get("owningSet", ""), "")
            found.setdefault(owner, set()).update(
                self._subjects(one.said.get("userName"), one, one.said.get("groupName", ""))
            )
        return found

    def _subjects(self, user: str | None, one: ExportEntity, group: str) -> set[str]:
        """Return the user and the group that a permission is given to. Newer exports refer to a user by a key."""
        key = one.refers.get("userSubject", "")
        login = user or self._logins.get(key, key)
        return {f"{kind}:{name}".casefold() for kind, name in (("user", login), ("group", group)) if name}

    def _make_node(
        self, one: ExportEntity, readers: dict[str, set[str]], base: str, private: Collection[str]
    ) -> PageNode:
        named = readers.get(one.id)
        # A restriction that names nobody we can tell lets nobody in.
        mine: ReaderSet | None = frozenset() if named is None else frozenset(named) or None
        labels = (self._labels.get(label, "") for label in self._labelled.get(one.id, ()))
        return PageNode(
            id=one.id,
            title=one.said.get("title", ""),
            space=self._spaces.get(one.refers.get("space", ""), ""),
            version=_version_of(one),
            status=one.said.get("contentStatus", "current"),
            changed=_changed_at(one),
            labels=tuple(label for label in labels if label),
            url=f"{base.rstrip('/')}/pages/viewpage.action?pageId={one.id}" if base else "",
            above=self._ancestors(one, private),
            readers=mine,
        )

    def _ancestors(self, one: ExportEntity, private: Collection[str]) -> tuple[str, ...]:
        line: list[str] = []
        space = _space_root(one.refers.get("space", ""))
        while (parent := one.refers.get("parent", "")) and parent not in line:
            line.insert(0, parent)
            if parent not in self.contents:
                break
            one = self.contents[parent]
        return (space, *line) if space in private else tuple(line)


def _space_root(space: str) -> str:
    return f"space {space}"


def _is_current(one: ExportEntity) -> bool:
    return not (one.refers.get("originalVersion") or one.said.get("originalVersionId"))


def _version_of(one: ExportEntity) -> str:
    return one.said.get("version") or one.said.get("attachmentVersion", "")


def _changed_at(one: ExportEntity) -> datetime | None:
    return value_parsers.parse_date(one.said.get("lastModificationDate", ""))


_ENTITIES_NAME = "entities.xml"
_LARGEST_FILE = 200 << 20  # bytes of an attachment, as of a file in a folder


@dataclass(frozen=True, slots=True)
class ExportScope:
    path: Path
    base: str = ""
    """Where people read these pages, such as `https://confluence.acme.org`; empty: they get no addresses."""
    blog_posts: bool = False
    attachments: bool = False
    statuses: tuple[str, ...] = ("current",)
    allowed: tuple[str, ...] = ()
    """Who of those that a page is restricted to is let in, as `group:staff` or `user:jane`."""
    rules: SelectionRules = field(default_factory=SelectionRules)


class ConfluenceExport:
    """Read the pages of one export. A page's key is its id, as in Confluence itself."""

    reference = False

    def __init__(
        self, given: ExportScope, *, now: Callable[[], datetime] = utc_now, sandbox: Sandbox | None = None
    ) -> None:
        self._given = given
        self._wanted = build_filter(replace(given.rules, statuses=given.statuses), now())
        self._stopped = False
        self._sandbox = sandbox or Sandbox()
        self._failed = False  # whether anything could not be read since the last listing began

    def expected(self) -> None:
        """Nobody knows before all was gone through."""

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """List every page that may be read; none if the file is the one that was read whole the last time, unharmed."""
        now = export_file.make_file_stamp(self._given.path)
        if known and now and since == now and self._given.rules.newest_days is None:
            return Listing(iter(()), whole=False, mark=lambda: now)
        self._failed = False
        return Listing(self._list_and_note(known), mark=lambda: "" if self._failed else now)

    def one(self, address: str, known: Mapping[str, str]) -> ListedItem | None:
        """Return the page at this address, or with this id. Blocks: the whole export is gone through."""
        if "://" in address and not (self._given.base and address.startswith(self._given.base)):
            return None
        number = address.rpartition("pageId=")[2].partition("&")[0]
        with closing(self._list_documents({}, lambda key: key in {number, address})) as items:
            found = next((item for item in items if item.key in {number, address}), None)
            if isinstance(found, ChangedDocument):
                # The archive is closed when the items are: the text is wanted before that.
                return replace(found, load=_load_now(found))
        return found or next((DeletedDocument(key) for key in (number, address) if key in known), None)

    def stop(self) -> None:
        self._stopped = True
        self._sandbox.stop()

    def _list_and_note(self, known: Mapping[str, str]) -> Iterator[ListedItem]:
        """List every page, and note what fails, also when it is loaded."""
        for item in self._list_documents(known, lambda _: True):
            self._failed = self._failed or isinstance(item, Unreadable)
            yield replace(item, load=partial(self._load, item)) if isinstance(item, ChangedDocument) else item

    def _load(self, found: ChangedDocument) -> Page:
        try:
            return found.load()
        except UnreadableDocument:
            self._failed = True
            raise

    def _list_documents(
        self, known: Mapping[str, str], asked: Callable[[str], bool]
    ) -> Generator[ListedItem, None, None]:
        with self._sandbox, export_file.open_archive(self._given.path) as there:
            yield from there.refused
            if there.holds(_ENTITIES_NAME):
                yield from self._list_xml(there, known, asked)
            elif any(name.rpartition("/")[2] == "index.html" for name in there.names):
                for html_page in list_html_pages(there, self._given.base):
                    self._refuse_stopped()
                    if asked(html_page.key) and self._wanted(html_page.traits):
                        yield _read_html(there, html_page, self._sandbox)
            else:
                raise self._explain_no_export(there)

    def _list_xml(
        self, there: ZipArchive, known: Mapping[str, str], asked: Callable[[str], bool]
    ) -> Iterator[ListedItem]:
        gathered = ExportContents()
        gathered.take(self._read_entities(there, ENTITY_KINDS))
        nodes = gathered.nodes(blog_posts=self._given.blog_posts, base=self._given.base)
        tree = PageTree({**nodes, **gathered.private()}, parse_subjects(self._given.allowed))
        chosen = {one.id: one for one in tree.chosen(self._wanted) if one.id in nodes and asked(one.id)}
        fresh = {key for key, one in chosen.items() if known.get(key) != _make_fingerprint(one)}
        for one in chosen.values():
            if one.id not in fresh:
                yield list_unchanged(one.id, known[one.id])
        yield from (
            DeletedDocument(key, withheld=True) for key in known if key in nodes and not tree.readable(nodes[key])
        )
        yield from self._read_bodies(there, {key: chosen[key] for key in fresh}, gathered.people)
        if self._given.attachments:
            for file in gathered.files(nodes):
                if asked(file.node.id) and tree.readable(file.node) and self._wanted(tree.traits(file.node)):
                    yield from _read_attached(there, file, self._sandbox)

    def _read_bodies(
        self, there: ZipArchive, waiting: dict[str, PageNode], people: Mapping[str, str]
    ) -> Iterator[ListedItem]:
        for body in self._read_entities(there, {"BodyContent"}) if waiting else ():
            if node := waiting.pop(body.refers.get("content", ""), None):
                size = len(body.said.get("body", ""))
                read = partial(_read_body, node, body, people)
                load = partial(self._sandbox.done, read, harmless=file_formats.is_harmless(BODY_NAME, size))
                yield ChangedDocument(node.id, _make_fingerprint(node), size, load)
        for node in waiting.values():
            yield Unreadable(node.id, "the export holds no text of it")

    def _read_entities(self, there: ZipArchive, kinds: Collection[str]) -> Iterator[ExportEntity]:
        try:
            with there.open(_ENTITIES_NAME) as file:
                for entity in read_entities(file, kinds):
                    self._refuse_stopped()
                    yield entity
        except EntitiesBroken as error:
            raise SourceUnavailable(
                f"{self._given.path}: {_ENTITIES_NAME} cannot be read: {error}.",
                hint="Export it again; what was read before still answers.",
            ) from error

    def _refuse_stopped(self) -> None:
        if self._stopped:
            raise SourceUnavailable("Reading was stopped.", hint="Run the same command again to go on.")

    def _explain_no_export(self, there: ZipArchive) -> SourceUnavailable:
        if bomb := next((one.reason for one in there.refused if one.key == _ENTITIES_NAME), ""):
            return SourceUnavailable(
                f"{self._given.path}: {_ENTITIES_NAME} is left alone: {bomb}.", hint="Export it again."
            )
        if any(name.endswith(".zip") for name in there.names):
            hint = "The export may lie within, as a zip in a zip: unpack it once."
        else:
            hint = "Export a space as XML or HTML: Space settings, Export space."
        return SourceUnavailable(
            f"{self._given.path} is no export of Confluence: it has no {_ENTITIES_NAME}.", hint=hint
        )


def _read_body(node: PageNode, body: ExportEntity, people: Mapping[str, str]) -> Page:
    if body.cut:
        raise UnreadableDocument("is longer than what is read of a page")
    text, storage = body.said.get("body", ""), body.said.get("bodyType", _STORAGE_FORMAT) == _STORAGE_FORMAT
    if storage:
        return build_page(node, text, people)
    items = tuple(plain_text.split_paragraphs(text))
    reading = ParsedDocument(items, title=node.title, date=node.changed, dated=True)
    return file_formats.build_page(reading, node.title, url=node.url, revision=node.version)


def _read_attached(there: ZipArchive, file: AttachedFile, sandbox: Sandbox) -> Iterator[ListedItem]:
    node = file.node
    if file_formats.explain_refusal(node.title, sandbox.programs):
        return
    if there.holds(file.entry) and there.size(file.entry) > _LARGEST_FILE:
        yield Unreadable(node.id, f"is larger than {_LARGEST_FILE >> 20} MB")
        return
    if not there.holds(file.entry):
        yield Unreadable(node.id, f"the export does not hold the file {node.title}")
        return

    def load() -> Page:
        content = there.read(file.entry)
        return sandbox.page(content, node.title, url=node.url, revision=node.version, modified=node.changed)

    yield ChangedDocument(node.id, _make_fingerprint(node), there.size(file.entry), load)


def _read_html(there: ZipArchive, one: ExportedPage, sandbox: Sandbox) -> ListedItem:
    if there.size(one.entry) > LARGEST_PAGE:
        return Unreadable(one.key, f"is larger than {LARGEST_PAGE >> 20} MB")
    content = there.read(one.entry)
    load = partial(sandbox.done, partial(one.page, content), harmless=file_formats.is_harmless(BODY_NAME, len(content)))
    return ChangedDocument(one.key, one.fingerprint(content), len(content), load)


def _make_fingerprint(node: PageNode) -> str:
    """Name the version, its moment (exports of another Confluence may count alike) and how we read."""
    moment = node.changed.isoformat() if node.changed else ""
    return f"{node.version}-{moment}-{file_formats.READER_VERSION}"


def _load_now(found: ChangedDocument) -> Callable[[], Page]:
    try:
        page = found.load()
    except UnreadableDocument as error:
        reason = str(error)

        def fails() -> Page:
            raise UnreadableDocument(reason)

        return fails
    return lambda: page
