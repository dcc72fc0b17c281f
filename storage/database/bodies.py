"""A document's passages in one packed text: a third of their size, and one row where a row a passage would be six.

Ids, hashes and positions follow from what is packed, and are made when it is read.
"""

import hashlib
import json
import threading
import zlib
from collections import Counter, OrderedDict
from collections.abc import Iterable

from storage.types import ID_LENGTH, Document, Passage, PassageKind, hash_passage, make_passage_id

_KINDS = {kind.value: kind for kind in PassageKind}
_LEVEL = 3  # of zlib: .39 of the size at twice the pace of level 6, which makes .36


class BodyDamaged(ValueError):
    """A body is not what was stored."""


def pack_passages(passages: Iterable[Passage]) -> bytes:
    """Pack the passages of one document, which come in order."""
    rows = [[passage.section, passage.text, passage.kind.value] for passage in passages]
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode("utf-8", "surrogatepass"), _LEVEL)


class PackedBody:
    """The passages of a version, each made when it is asked for: a search wants few of a long page."""

    def __init__(self, document: Document, body: bytes) -> None:
        """Unpack a body. Raises `BodyDamaged`."""
        self._document = document
        try:
            rows = json.loads(zlib.decompress(body).decode("utf-8", "surrogatepass"))
            self._rows = [(str(section), str(text), _KINDS[kind]) for section, text, kind in rows]
        except (zlib.error, ValueError, TypeError, KeyError) as error:
            raise BodyDamaged(str(error)) from error
        self._made: dict[int, Passage] = {}
        self._ordinals: list[int] = []
        self._positions: dict[str, int] = {}
        self._sought = 0
        """Before this one, the positions of all ids are known."""

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, position: int) -> Passage:
        if position not in self._made:
            self._made[position] = self._make(position)
        return self._made[position]

    def all(self) -> tuple[Passage, ...]:
        return tuple(self[position] for position in range(len(self)))

    def find(self, identity: str) -> Passage | None:
        """Return the passage with an id."""
        while identity not in self._positions and (position := self._sought) < len(self):
            self._positions[self._identify(position)] = position
            self._sought = position + 1
        found = self._positions.get(identity)
        return None if found is None else self[found]

    def _identify(self, position: int) -> str:
        (section, text, _), of = self._rows[position], self._document
        ordinal = (self._ordinals or self._count_equal())[position]
        return make_passage_id(of.corpus, of.key, section, text, ordinal)

    def _make(self, position: int) -> Passage:
        (section, text, kind), of = self._rows[position], self._document
        identity = self._identify(position)
        content = hash_passage(of.title, section, text)
        return Passage(identity, of.corpus, of.key, section, text, position, content, kind)

    def _count_equal(self) -> list[int]:
        """Count for each passage the equal ones before it."""
        if len({row[:2] for row in self._rows}) == len(self._rows):
            self._ordinals = [0] * len(self._rows)
            return self._ordinals
        seen: Counter[tuple[str, str]] = Counter()
        ordinals = []
        for section, text, _ in self._rows:
            ordinals.append(seen[section, text])
            seen[section, text] += 1
        self._ordinals = ordinals
        return ordinals


def unpack_passages(document: Document, body: bytes) -> tuple[Passage, ...]:
    """Return the passages of a document from its body. Raises `BodyDamaged`."""
    return PackedBody(document, body).all()


def seal_body(title: str, body: bytes) -> str:
    """Hash what a reader sees of a document, so that it is noticed when somebody else changes it."""
    return hashlib.sha256(title.encode("utf-8", "surrogatepass") + b"\x1f" + body).hexdigest()[:ID_LENGTH]


class BodyMemory:
    """The bodies of versions that come again, such as those of a page that many ask about; for several threads."""

    def __init__(self, most: int = 20_000) -> None:
        """Keep `most` passages, about 1 KB each."""
        self._most, self._held = most, 0
        self._bodies = OrderedDict[tuple[int, str], PackedBody]()
        self._lock = threading.Lock()

    def unpack(self, number: int, seal: str, document: Document, body: bytes) -> PackedBody:
        """Return the body of a version, whose number and seal nothing else has. Raises `BodyDamaged`."""
        if seal != seal_body(document.title, body):
            raise BodyDamaged("its seal does not fit")
        with self._lock:
            if known := self._bodies.get((number, seal)):
                self._bodies.move_to_end((number, seal))
                return known
        made = PackedBody(document, body)
        with self._lock:
            if (number, seal) not in self._bodies:
                self._bodies[number, seal] = made
                self._held += len(made)
            while self._held > self._most:
                _, dropped = self._bodies.popitem(last=False)
                self._held -= len(dropped)
        return made
