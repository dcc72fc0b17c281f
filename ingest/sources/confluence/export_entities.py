"""Read the objects in an export's `entities.xml`, and combine them into pages, attachments and permissions."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import IO, Any
from xml.parsers import expat

from ingest.readers import value_parsers
from ingest.sources.confluence.confluence_api import PageNode, ReaderSet

ENTITY_KINDS = frozenset({
    "Page", "BlogPost", "Space", "Label", "Labelling", "ContentPermissionSet", "ContentPermission", "Attachment",
    "ConfluenceUserImpl", "InternalUser", "SpacePermission",
})  # fmt: skip
BLOCK_BYTES = 1 << 18
LONGEST_TEXT = 16 << 20  # characters of one property
_CONTROL_BYTES = bytes(code for code in range(32) if code not in b"\t\n\r")
# Databases may contain control characters that are invalid in XML.
_WITHOUT_CONTROL = bytes.maketrans(_CONTROL_BYTES, b" " * len(_CONTROL_BYTES))


class EntitiesBroken(Exception):
    """The file is damaged, or is not an export. `str()` describes the problem."""


@dataclass(slots=True)
class ExportEntity:
    """One object of an export: its properties as text, and the ids of the objects that they reference."""

    kind: str
    id: str = ""
    properties: dict[str, str] = field(default_factory=dict)
    references: dict[str, str] = field(default_factory=dict)
    cut: bool = False  # whether one of its texts exceeded the limit


def read_entities(file: IO[bytes], kinds: Collection[str]) -> Iterator[ExportEntity]:
    """Yield the objects of the classes in `kinds`, in the order of the file. Raises `EntitiesBroken`."""
    entities: list[ExportEntity] = []
    reader = _EntityReader(frozenset(kinds), entities.append)
    while True:
        block = file.read(BLOCK_BYTES)
        reader.feed(block.translate(_WITHOUT_CONTROL), last=not block)
        yield from entities
        entities.clear()
        if not block:
            return


class _EntityReader:
    """Builds objects from the events of the XML parser. Objects of other classes are skipped."""

    def __init__(self, kinds: frozenset[str], emit: Callable[[ExportEntity], None]) -> None:
        self._kinds = kinds
        self._emit = emit
        self._entity: ExportEntity | None = None
        self._path: list[str] = []
        self._name = ""
        self._text: list[str] = []
        self._length = 0
        parser: Any = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        parser.StartDoctypeDeclHandler = self._doctype
        self._parser = parser

    def feed(self, block: bytes, *, last: bool) -> None:
        try:
            self._parser.Parse(block, last)
        except expat.ExpatError as error:
            raise EntitiesBroken(f"its XML is broken ({error})") from error

    def _doctype(self, *_declaration: object) -> None:
        raise EntitiesBroken("it declares a document type, which no export does")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._path.append(tag)
        if len(self._path) == 1 and tag != "hibernate-generic":
            raise EntitiesBroken(f"it is not an export of Confluence: it begins with <{tag[:40]}>")
        if tag == "object":
            kind = attributes.get("class", "")
            self._entity = ExportEntity(kind) if kind in self._kinds else None
        elif tag == "property":
            self._name = attributes.get("name", "")
        if tag in {"id", "property"}:
            self._text, self._length = [], 0

    def _end(self, tag: str) -> None:
        self._path.pop()
        entity = self._entity
        if entity is None:
            return
        text = "".join(self._text).strip()
        if tag == "object":
            self._emit(entity)
            self._entity = None
        elif tag == "property":
            if text and self._name not in entity.references:
                entity.properties[self._name] = text
            self._text = []
        elif tag == "id":
            if self._path[-1] == "object":
                entity.id = text
            elif self._path[-1] == "property":
                entity.references[self._name] = text
            self._text = []

    def _data(self, data: str) -> None:
        if self._entity is None:
            return
        self._length += len(data)
        if self._length > LONGEST_TEXT:
            self._entity.cut = True
        else:
            self._text.append(data)


@dataclass(frozen=True, slots=True)
class AttachedFile:
    node: PageNode
    entry: str


@dataclass(slots=True)
class ExportContents:
    """Everything in an export except the texts. It is complete only after the whole export has been read."""

    contents: dict[str, ExportEntity] = field(default_factory=dict)
    attachments: list[ExportEntity] = field(default_factory=list)
    _spaces: dict[str, str] = field(default_factory=dict)
    _labels: dict[str, str] = field(default_factory=dict)
    _labelled: dict[str, list[str]] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)
    _permitted: list[ExportEntity] = field(default_factory=list)
    _viewing: list[ExportEntity] = field(default_factory=list)
    people: dict[str, str] = field(default_factory=dict)  # names by the keys that mentions use
    _logins: dict[str, str] = field(default_factory=dict)
    _display_names: dict[str, str] = field(default_factory=dict)

    def add(self, entities: Iterable[ExportEntity]) -> None:
        for entity in entities:
            self._add_entity(entity)
        for key, login in self._logins.items():
            self.people[key] = self._display_names.get(login, login)
        self.people.update({login: name for login, name in self._display_names.items() if login})

    def nodes(self, *, blog_posts: bool, base: str) -> dict[str, PageNode]:
        """Return every current page by id. `base` is the address of the Confluence; without it, pages have none."""
        readers = self._find_readers()
        spaces = self.private().keys()
        return {
            content.id: self._make_node(content, readers, base, spaces)
            for content in self.contents.values()
            if _is_current(content) and (blog_posts or content.kind == "Page")
        }

    def private(self) -> dict[str, PageNode]:
        """Return, for each space that only single users may view, a parent node that is restricted to these users."""
        viewers: dict[str, set[str]] = {}
        for permission in self._viewing:
            # Without a name it applies to everyone, including anonymous readers.
            subjects = self._subjects(permission, "group") or {"group:"}
            viewers.setdefault(_space_root(permission.references.get("space", "")), set()).update(subjects)
        return {
            space: PageNode(space, "", "", "", readers=frozenset(names))
            for space, names in viewers.items()
            if all(name.startswith("user:") for name in names)
        }

    def files(self, nodes: dict[str, PageNode]) -> Iterator[AttachedFile]:
        """Yield the latest version of each file that is attached to these pages."""
        last: dict[tuple[str, str], tuple[int, ExportEntity]] = {}
        for file in self.attachments:
            host = file.references.get("containerContent") or file.references.get("content", "")
            name = file.properties.get("title") or file.properties.get("fileName", "")
            if host in nodes and name and _is_current(file):
                number = int(_version_of(file) or 0)
                if number >= last.get((host, name), (0, file))[0]:
                    last[host, name] = (number, file)
        for (host, name), (number, file) in sorted(last.items()):
            page = nodes[host]
            above, changed = (*page.above, host), _changed_at(file)
            node = PageNode(f"att{file.id}", name, page.space, str(number), changed=changed, url=page.url, above=above)
            yield AttachedFile(node, f"attachments/{host}/{file.id}/{number}")

    def _add_entity(self, entity: ExportEntity) -> None:
        match entity.kind:
            case "Page" | "BlogPost":
                self.contents[entity.id] = entity
            case "Attachment":
                self.attachments.append(entity)
            case "Space":
                self._spaces[entity.id] = entity.properties.get("key", "")
            case "Label" if entity.properties.get("namespace") == "global":
                self._labels[entity.id] = entity.properties.get("name", "")
            case "Labelling":
                host = entity.references.get("content") or entity.properties.get("labelableId", "")
                self._labelled.setdefault(host, []).append(entity.references.get("label", ""))
            case "ConfluenceUserImpl":
                self._logins[entity.id] = entity.properties.get("name", "")
            case "InternalUser":
                self._display_names[entity.properties.get("name", "")] = " ".join(
                    entity.properties.get("displayName", "").split()
                )
            case _:
                self._add_permission(entity)

    def _add_permission(self, entity: ExportEntity) -> None:
        match entity.kind, entity.properties.get("type"):
            case "SpacePermission", "VIEWSPACE":
                self._viewing.append(entity)
            case "ContentPermissionSet", "View":
                self._owners[entity.id] = entity.references.get("owningContent", "")
            case "ContentPermission", "View":
                self._permitted.append(entity)

    def _find_readers(self) -> dict[str, set[str]]:
        readers: dict[str, set[str]] = {owner: set() for owner in self._owners.values()}
        for permission in self._permitted:
            owner = self._owners.get(permission.references.get("owningSet", ""), "")
            readers.setdefault(owner, set()).update(self._subjects(permission, "groupName"))
        return readers

    def _subjects(self, permission: ExportEntity, group_property: str) -> set[str]:
        """Return the user and the group that a permission names. Newer exports reference a user by a key."""
        key = permission.references.get("userSubject", "")
        login = permission.properties.get("userName") or self._logins.get(key, key)
        group = permission.properties.get(group_property, "")
        return {f"{kind}:{name}".casefold() for kind, name in (("user", login), ("group", group)) if name}

    def _make_node(
        self, entity: ExportEntity, readers: dict[str, set[str]], base: str, private: Collection[str]
    ) -> PageNode:
        subjects = readers.get(entity.id)
        # A restriction without recognised subjects admits no readers.
        allowed: ReaderSet | None = frozenset() if subjects is None else frozenset(subjects) or None
        labels = (self._labels.get(label, "") for label in self._labelled.get(entity.id, ()))
        return PageNode(
            id=entity.id,
            title=entity.properties.get("title", ""),
            space=self._spaces.get(entity.references.get("space", ""), ""),
            version=_version_of(entity),
            status=entity.properties.get("contentStatus", "current"),
            changed=_changed_at(entity),
            labels=tuple(label for label in labels if label),
            url=f"{base.rstrip('/')}/pages/viewpage.action?pageId={entity.id}" if base else "",
            above=self._ancestors(entity, private),
            readers=allowed,
        )

    def _ancestors(self, entity: ExportEntity, private: Collection[str]) -> tuple[str, ...]:
        line: list[str] = []
        space = _space_root(entity.references.get("space", ""))
        while (parent := entity.references.get("parent", "")) and parent not in line:
            line.insert(0, parent)
            if parent not in self.contents:
                break
            entity = self.contents[parent]
        return (space, *line) if space in private else tuple(line)


def _space_root(space: str) -> str:
    return f"space {space}"


def _is_current(entity: ExportEntity) -> bool:
    return not (entity.references.get("originalVersion") or entity.properties.get("originalVersionId"))


def _version_of(entity: ExportEntity) -> str:
    return entity.properties.get("version") or entity.properties.get("attachmentVersion", "")


def _changed_at(entity: ExportEntity) -> datetime | None:
    return value_parsers.parse_date(entity.properties.get("lastModificationDate", ""))
