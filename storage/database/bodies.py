"""Pack a document's passages into one text, and the fingerprints of a corpus into one table in memory.

Packed passages take a third of the space, and one row instead of about six. Their ids, hashes and positions are not
stored, but computed from the text when it is read.
"""

import hashlib
import json
import threading
import zlib
from array import array
from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from storage.types import ID_LENGTH, Document, DocumentId, Passage, PassageKind, hash_passage, make_passage_id

_KINDS = {kind.value: kind for kind in PassageKind}
_LEVEL = 3  # of zlib: .39 of the size, twice as fast as level 6 with .36


class BodyDamaged(ValueError):
    """A packed body is damaged: it is not the one that was stored."""


def pack_passages(passages: Iterable[Passage]) -> bytes:
    """Pack the passages of one document, given in order."""
    rows = [[passage.section, passage.text, passage.kind.value] for passage in passages]
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode("utf-8", "surrogatepass"), _LEVEL)


class PackedBody:
    """The passages of a version. Each is built on demand, because a search needs few of a long page."""

    def __init__(self, document: Document, body: bytes) -> None:
        """Unpack a body of packed passages. Raises `BodyDamaged`."""
        self._document = document
        try:
            rows = json.loads(zlib.decompress(body).decode("utf-8", "surrogatepass"))
            self._rows = [(str(section), str(text), _KINDS[kind]) for section, text, kind in rows]
        except (zlib.error, ValueError, TypeError, KeyError) as error:
            raise BodyDamaged(str(error)) from error
        self._made: dict[int, Passage] = {}
        self._ordinals: list[int] = []
        self._ids: list[str] = []  # of the first passages, as far as they are computed
        self._positions: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, position: int) -> Passage:
        if position not in self._made:
            self._made[position] = self._make(position)
        return self._made[position]

    def all(self) -> tuple[Passage, ...]:
        return tuple(self[position] for position in range(len(self)))

    def identify(self) -> None:
        """Compute the ids of all passages now, so that `find` is fast later."""
        self._seek("")

    def find(self, identity: str) -> Passage | None:
        """Return the passage with an id; None if there is none."""
        self._seek(identity)
        number = self._positions.get(identity)
        return None if number is None else self[number]

    def _seek(self, identity: str) -> None:
        while identity not in self._positions and (position := len(self._ids)) < len(self):
            self._ids.append(made := self._identify(position))
            self._positions[made] = position

    def _identify(self, position: int) -> str:
        (section, text, _), of = self._rows[position], self._document
        ordinal = (self._ordinals or self._count_equal())[position]
        return make_passage_id(of.corpus, of.key, section, text, ordinal)

    def _make(self, position: int) -> Passage:
        (section, text, kind), of = self._rows[position], self._document
        identity = self._ids[position] if position < len(self._ids) else self._identify(position)
        content = hash_passage(of.title, section, text)
        return Passage(identity, of.corpus, of.key, section, text, position, content, kind)

    def _count_equal(self) -> list[int]:
        """Return for each passage how many earlier passages have the same section and text."""
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
    """Hash a document's title and packed text, so that changes made outside of Footnote are noticed."""
    return hashlib.sha256(title.encode("utf-8", "surrogatepass") + b"\x1f" + body).hexdigest()[:ID_LENGTH]


@dataclass(frozen=True, slots=True)
class PackedVersion:
    """A version of a document whose passages are built on demand."""

    number: int
    document: Document
    body: PackedBody
    seal: str
    is_current: bool  # whether it was the document's current version when it was read


class VersionMemory:
    """A cache of document versions, for several threads.

    While the database does not change, a cached version is not read again. After a change, it is read again, but
    unpacked again only if it differs.
    """

    def __init__(self, most: int = 100_000) -> None:
        """Create a cache for versions that have at most `most` passages in all; a passage takes about 1 KB."""
        self._most, self._held = most, 0
        self._versions = OrderedDict[int, PackedVersion]()
        self._state: Hashable = None
        self._read: set[int] = set()  # in this state, by number
        self._standing: dict[DocumentId, int] = {}
        self._lock = threading.Lock()

    def recall(
        self, state: Hashable, numbers: Collection[int], named: Collection[DocumentId]
    ) -> dict[int, PackedVersion]:
        """Return, by number, the cached versions with these numbers, and the current versions of the `named` documents.

        The result is empty unless the cached versions were read in the same `state` of the database.
        """
        with self._lock:
            if state is None or state != self._state:
                return {}
            last = (self._standing[document] for document in named if document in self._standing)
            known = {number: self._versions[number] for number in self._read.intersection(numbers).union(last)}
            for number in known:
                self._versions.move_to_end(number)
            return known

    def unpack(self, number: int, seal: str, document: Document, body: bytes) -> PackedBody:
        """Return the unpacked body of a version, from the cache if number and seal fit. Raises `BodyDamaged`."""
        if seal != seal_body(document.title, body):
            raise BodyDamaged("its seal does not fit")
        with self._lock:
            known = self._versions.get(number)
        return known.body if known and known.seal == seal else PackedBody(document, body)

    def keep(self, state: Hashable, versions: Iterable[PackedVersion]) -> None:
        """Cache versions that were read in a state of the database; None means that the state is unknown."""
        with self._lock:
            if state is None or state != self._state:
                self._state = state
                self._read.clear()
                self._standing.clear()
            for version in versions:
                self._drop(version.number)
                self._versions[version.number] = version
                self._held += len(version.body)
                self._read.add(version.number)
                if version.is_current:
                    self._standing[version.document.corpus, version.document.key] = version.number
            while self._held > self._most:
                self._drop(next(iter(self._versions)))

    def _drop(self, number: int) -> None:
        if (dropped := self._versions.pop(number, None)) is not None:
            self._held -= len(dropped.body)
            self._read.discard(number)
            name = dropped.document.corpus, dropped.document.key
            if self._standing.get(name) == number:
                del self._standing[name]


class FingerprintTable(Mapping[str, str]):
    """A mapping of keys to fingerprints, in the order in which they were inserted. Each key is inserted only once."""

    def __init__(self, rows: Iterable[tuple[str, str]]) -> None:
        text, ends, hashes = bytearray(), array("Q", [0]), array("q")
        for key, fingerprint in rows:
            named = key.encode("utf-8", "surrogatepass")
            text += named + b"\0" + fingerprint.encode("utf-8", "surrogatepass")
            ends.append(len(text))
            hashes.append(hash(named))
        self._text, self._ends = bytes(text), ends
        order = np.argsort(np.frombuffer(hashes, np.int64), kind="stable") if hashes else np.empty(0, np.int64)
        self._order = array("I", order.astype(np.uint32).tobytes())
        self._hashes = array("q", np.frombuffer(hashes, np.int64)[order].tobytes() if hashes else b"")

    def __getitem__(self, key: str) -> str:
        named = key.encode("utf-8", "surrogatepass")
        sought = hash(named)
        named += b"\0"
        at = bisect_left(self._hashes, sought)
        while at < len(self._hashes) and self._hashes[at] == sought:
            place = self._order[at]
            start, end = self._ends[place], self._ends[place + 1]
            if self._text.startswith(named, start, end):
                return self._text[start + len(named) : end].decode("utf-8", "surrogatepass")
            at += 1
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        start = 0
        for end in self._ends[1:]:
            yield self._text[start : self._text.index(b"\0", start, end)].decode("utf-8", "surrogatepass")
            start = end

    def __len__(self) -> int:
        return len(self._order)
