"""The pages of Confluence as a tree, and which of them may be read: by rules, and by the restrictions above them. Pure.

A page is seen by those who pass its own restriction and that of every page above it. Here, by default, nobody passes
any: what is restricted is left out. The API and the exports are both read into these.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from ingest.choosing import Traits

Readers = frozenset[str]
"""Who may read, as `user:jane` and `group:staff`, in lower case; empty where everyone may."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A page, a blog post or an attachment, before its text is read."""

    id: str
    title: str
    space: str
    version: str
    status: str = "current"
    changed: datetime | None = None
    labels: tuple[str, ...] = ()
    url: str = ""
    above: tuple[str, ...] = ()
    """The ids of the pages above it, outermost first."""
    readers: Readers | None = frozenset()
    """None where nobody can tell."""


class Tree:
    """All leaves by id, and who is let in."""

    def __init__(self, leaves: Mapping[str, Leaf], allowed: Readers) -> None:
        self._leaves = leaves
        self._allowed = allowed

    def readable(self, leaf: Leaf) -> bool:
        """Whether every restriction on it and above it names one of those who are allowed."""
        return all(self._passes(one.readers) for one in self._line(leaf))

    def unknown(self, leaf: Leaf) -> tuple[str, ...]:
        """Return the ids of what stands above it of which nobody can tell who may read it."""
        return tuple(one.id for one in self._line(leaf)[:-1] if one.readers is None)

    def path(self, leaf: Leaf) -> str:
        """Return where it stands, as in `HR/Handbook/Holidays`."""
        titles = (self._leaves[one].title for one in leaf.above if one in self._leaves)
        return "/".join(part.replace("/", "-") for part in (leaf.space, *titles, leaf.title) if part)

    def traits(self, leaf: Leaf) -> Traits:
        """Return what rules are held against."""
        return Traits(self.path(leaf), leaf.labels, leaf.status, leaf.changed)

    def chosen(self, wanted: Callable[[Traits], bool]) -> Iterator[Leaf]:
        """Return the leaves that may be read and are wanted, in their order."""
        return (leaf for leaf in self._leaves.values() if self.readable(leaf) and wanted(self.traits(leaf)))

    def _line(self, leaf: Leaf) -> tuple[Leaf, ...]:
        """Return what stands above it, outermost first, and itself."""
        above = (self._leaves.get(one, Leaf(one, "", "", "", readers=None)) for one in leaf.above)
        return (*above, leaf)

    def _passes(self, readers: Readers | None) -> bool:
        return readers is not None and (not readers or not readers.isdisjoint(self._allowed))


def subjects(named: tuple[str, ...]) -> Readers:
    """Return those whom settings name, as `user:jane` or `group:staff`, to compare."""
    return frozenset(name.casefold() for name in named)
