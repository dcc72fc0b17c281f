"""The objects of a Confluence export -> its pages as a tree, with labels and restrictions. Pure but for the reading.

Earlier versions, drafts and comments are in the export too: a page is current if it is no version of another.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from ingest.formats import dates
from ingest.sources.confluence.entities import Entity
from ingest.sources.confluence.tree import Leaf, Readers

KINDS = frozenset({
    "Page", "BlogPost", "Space", "Label", "Labelling", "ContentPermissionSet", "ContentPermission", "Attachment",
    "ConfluenceUserImpl", "InternalUser", "SpacePermission",
})  # fmt: skip
_STORAGE = "2"
"""The kind of a body in storage format; older ones are in wiki markup."""


@dataclass(frozen=True, slots=True)
class File:
    """One attachment, and the entry of the archive that it lies in."""

    leaf: Leaf
    entry: str


@dataclass(slots=True)
class Gathered:
    """What stands in an export, but for the texts. It is complete only at the export's end."""

    contents: dict[str, Entity] = field(default_factory=dict)
    attachments: list[Entity] = field(default_factory=list)
    _spaces: dict[str, str] = field(default_factory=dict)
    _labels: dict[str, str] = field(default_factory=dict)
    _labelled: dict[str, list[str]] = field(default_factory=dict)
    _owners: dict[str, str] = field(default_factory=dict)
    _permitted: list[Entity] = field(default_factory=list)
    _viewing: list[Entity] = field(default_factory=list)
    people: dict[str, str] = field(default_factory=dict)
    """The names of people by the keys that mentions use."""
    _logins: dict[str, str] = field(default_factory=dict)
    _shown: dict[str, str] = field(default_factory=dict)

    def take(self, found: Iterable[Entity]) -> None:
        """Take in all objects."""
        for one in found:
            self._take(one)
        for key, login in self._logins.items():
            self.people[key] = self._shown.get(login, login)
        self.people.update({login: name for login, name in self._shown.items() if login})

    def leaves(self, *, blog_posts: bool, base: str) -> dict[str, Leaf]:
        """Return every current page by id. `base` is the address under which people read them; empty for none."""
        readers = self._readers()
        spaces = self.private().keys()
        found: dict[str, Leaf] = {}
        for one in self.contents.values():
            if _is_current(one) and (blog_posts or one.kind == "Page"):
                found[one.id] = self._leaf(one, readers, base, spaces)
        return found

    def private(self) -> dict[str, Leaf]:
        """Return what stands above the pages of spaces that only single people may view, restricted to these."""
        viewers: dict[str, set[str]] = {}
        for one in self._viewing:
            # Without any name it is everyone, also those who have no account.
            named = self._named(one.said.get("userName"), one, one.said.get("group", "")) or {"group:"}
            viewers.setdefault(_root(one.refers.get("space", "")), set()).update(named)
        return {
            space: Leaf(space, "", "", "", readers=frozenset(names))
            for space, names in viewers.items()
            if all(name.startswith("user:") for name in names)
        }

    def files(self, leaves: dict[str, Leaf]) -> Iterator[File]:
        """Return what is attached to these pages, in its last version."""
        last: dict[tuple[str, str], tuple[int, Entity]] = {}
        for one in self.attachments:
            host = one.refers.get("containerContent") or one.refers.get("content", "")
            name = one.said.get("title") or one.said.get("fileName", "")
            if host in leaves and name and _is_current(one):
                number = int(_version(one) or 0)
                if number >= last.get((host, name), (0, one))[0]:
                    last[host, name] = (number, one)
        for (host, name), (number, one) in sorted(last.items()):
            page = leaves[host]
            above, changed = (*page.above, host), _changed(one)
            leaf = Leaf(f"att{one.id}", name, page.space, str(number), changed=changed, url=page.url, above=above)
            yield File(leaf, f"attachments/{host}/{one.id}/{number}")

    def _take(self, one: Entity) -> None:
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
                self._permission(one)

    def _permission(self, one: Entity) -> None:
        match one.kind, one.said.get("type"):
            case "SpacePermission", "VIEWSPACE":
                self._viewing.append(one)
            case "ContentPermissionSet", "View":
                self._owners[one.id] = one.refers.get("owningContent", "")
            case "ContentPermission", "View":
                self._permitted.append(one)

    def _readers(self) -> dict[str, set[str]]:
        """Return who may read a page, by the ids of pages that not everyone may."""
        found: dict[str, set[str]] = {owner: set() for owner in self._owners.values()}
        for one in self._permitted:
            owner = self._owners.get(one.refers.get("owningSet", ""), "")
            found.setdefault(owner, set()).update(
                self._named(one.said.get("userName"), one, one.said.get("groupName", ""))
            )
        return found

    def _named(self, user: str | None, one: Entity, group: str) -> set[str]:
        """Return the user and the group that a permission is given to. Newer exports refer to a user by a key."""
        key = one.refers.get("userSubject", "")
        login = user or self._logins.get(key, key)
        return {f"{kind}:{name}".casefold() for kind, name in (("user", login), ("group", group)) if name}

    def _leaf(self, one: Entity, readers: dict[str, set[str]], base: str, private: Collection[str]) -> Leaf:
        named = readers.get(one.id)
        # A restriction that names nobody we can tell lets nobody in.
        mine: Readers | None = frozenset() if named is None else frozenset(named) or None
        labels = (self._labels.get(label, "") for label in self._labelled.get(one.id, ()))
        return Leaf(
            id=one.id,
            title=one.said.get("title", ""),
            space=self._spaces.get(one.refers.get("space", ""), ""),
            version=_version(one),
            status=one.said.get("contentStatus", "current"),
            changed=_changed(one),
            labels=tuple(label for label in labels if label),
            url=f"{base.rstrip('/')}/pages/viewpage.action?pageId={one.id}" if base else "",
            above=self._above(one, private),
            readers=mine,
        )

    def _above(self, one: Entity, private: Collection[str]) -> tuple[str, ...]:
        line: list[str] = []
        space = _root(one.refers.get("space", ""))
        while (parent := one.refers.get("parent", "")) and parent not in line:
            line.insert(0, parent)
            if parent not in self.contents:
                break
            one = self.contents[parent]
        return (space, *line) if space in private else tuple(line)


def _root(space: str) -> str:
    return f"space {space}"


def text_of(one: Entity) -> tuple[str, bool]:
    """Return a body's text, and whether that is in storage format."""
    # A CDATA section within the export's own ends with a space in it; so does whatever else looked like its end.
    return one.said.get("body", ""), one.said.get("bodyType", _STORAGE) == _STORAGE


def _is_current(one: Entity) -> bool:
    return not (one.refers.get("originalVersion") or one.said.get("originalVersionId"))


def _version(one: Entity) -> str:
    return one.said.get("version") or one.said.get("attachmentVersion", "")


def _changed(one: Entity) -> datetime | None:
    return dates.parsed(one.said.get("lastModificationDate", ""))
