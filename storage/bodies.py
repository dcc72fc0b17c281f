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

_LEVEL = 3  # of zlib: .39 of the size at twice the pace of level 6, which makes .36


class BodyDamaged(ValueError):
    """A body is not what was stored."""


def pack_passages(passages: Iterable[Passage]) -> bytes:
    """Pack the passages of one document, which come in order."""
    rows = [[passage.section, passage.text, passage.kind.value] for passage in passages]
    text = json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode("utf-8", "surrogatepass"), _LEVEL)


def unpack_passages(document: Document, body: bytes) -> tuple[Passage, ...]:
    """Return the passages of a document from its body. Raises `BodyDamaged`."""
    try:
        rows = json.loads(zlib.decompress(body).decode("utf-8", "surrogatepass"))
        seen: Counter[tuple[str, str]] = Counter()
        made: list[Passage] = []
        for position, (section, text, kind) in enumerate(rows):
            ordinal = seen[section, text]
            seen[section, text] += 1
            identity = make_passage_id(document.corpus, document.key, section, text, ordinal)
            content = hash_passage(document.title, section, text)
            made.append(
                Passage(identity, document.corpus, document.key, section, text, position, content, PassageKind(kind))
            )
    except (zlib.error, ValueError, TypeError) as error:
        raise BodyDamaged(str(error)) from error
    return tuple(made)


def seal_body(title: str, body: bytes) -> str:
    """Hash what a reader sees of a document, so that it is noticed when somebody else changes it."""
    return hashlib.sha256(title.encode("utf-8", "surrogatepass") + b"\x1f" + body).hexdigest()[:ID_LENGTH]


class BodyMemory:
    """The passages of versions that come again, such as those of a page that many ask about; for several threads."""

    def __init__(self, most: int = 20_000) -> None:
        """Keep `most` passages, about 1 KB each."""
        self._most, self._held = most, 0
        self._versions = OrderedDict[tuple[int, str], tuple[Passage, ...]]()
        self._lock = threading.Lock()

    def unpack(self, number: int, seal: str, document: Document, body: bytes) -> tuple[Passage, ...]:
        """Return the passages of a version, whose number and seal nothing else has. Raises `BodyDamaged`."""
        if seal != seal_body(document.title, body):
            raise BodyDamaged("its seal does not fit")
        with self._lock:
            if known := self._versions.get((number, seal)):
                self._versions.move_to_end((number, seal))
                return known
        made = unpack_passages(document, body)
        with self._lock:
            if (number, seal) not in self._versions:
                self._versions[number, seal] = made
                self._held += len(made)
            while self._held > self._most:
                _, dropped = self._versions.popitem(last=False)
                self._held -= len(dropped)
        return made
