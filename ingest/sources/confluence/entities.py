"""`entities.xml` of a Confluence export: its objects one after the other, whatever its size.

It is a dump of the database by Hibernate: `<object class="Page"><id/><property/><collection/></object>`, in no useful
order. Texts beyond a limit are cut while they are read, so that memory is bounded by one object's. A document type,
with which entities could be declared that grow without end, is refused.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import IO, Any
from xml.parsers import expat

BLOCK = 1 << 18
LONGEST = 16 << 20
"""Characters of one property."""
_CONTROL = bytes(code for code in range(32) if code not in b"\t\n\r")
_PLAIN = bytes.maketrans(_CONTROL, b" " * len(_CONTROL))
"""Databases hold control characters that XML may not."""


class EntitiesBroken(Exception):
    """It is no such file, or is damaged. `str()` says what is wrong with it."""


@dataclass(slots=True)
class Entity:
    """One object: its properties as text, and the ids that they refer to."""

    kind: str
    id: str = ""
    said: dict[str, str] = field(default_factory=dict)
    refers: dict[str, str] = field(default_factory=dict)
    cut: bool = False
    """Whether a text of it was longer than the limit."""


def entities(file: IO[bytes], kinds: Collection[str]) -> Iterator[Entity]:
    """Go through the objects of these classes, in the file's order. Raises `EntitiesBroken`."""
    made: list[Entity] = []
    reader = _Reader(frozenset(kinds), made.append)
    while True:
        block = file.read(BLOCK)
        reader.feed(block.translate(_PLAIN), last=not block)
        yield from made
        made.clear()
        if not block:
            return


class _Reader:
    """Hears what the parser finds. Of objects of other classes it keeps nothing."""

    def __init__(self, kinds: frozenset[str], made: Callable[[Entity], None]) -> None:
        self._kinds = kinds
        self._made = made
        self._entity: Entity | None = None
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

    def _doctype(self, *_said: object) -> None:
        raise EntitiesBroken("it declares a document type, as no export does")

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._path.append(tag)
        if len(self._path) == 1 and tag != "hibernate-generic":
            raise EntitiesBroken(f"it is no export of Confluence: it begins with <{tag[:40]}>")
        if tag == "object":
            kind = attributes.get("class", "")
            self._entity = Entity(kind) if kind in self._kinds else None
        elif tag == "property":
            self._name = attributes.get("name", "")
        if tag in {"id", "property"}:
            self._text, self._length = [], 0

    def _end(self, tag: str) -> None:
        self._path.pop()
        one = self._entity
        if one is None:
            return
        text = "".join(self._text).strip()
        if tag == "object":
            self._made(one)
            self._entity = None
        elif tag == "property":
            if text and self._name not in one.refers:
                one.said[self._name] = text
            self._text = []
        elif tag == "id":
            self._named(one, text)
            self._text = []

    def _named(self, one: Entity, text: str) -> None:
        """Take in an id: the object's own, or one that it refers to."""
        inside = self._path[-1]
        if inside == "object":
            one.id = text
        elif inside == "property":
            one.refers[self._name] = text

    def _data(self, data: str) -> None:
        if self._entity is None:
            return
        self._length += len(data)
        if self._length > LONGEST:
            self._entity.cut = True
        else:
            self._text.append(data)
