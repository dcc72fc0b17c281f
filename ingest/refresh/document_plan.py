"""Plan how documents and their passages change, and find missing ones. Pure; `corpus_refresh` applies the plans."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, MutableSet, Sequence
from dataclasses import replace

from ingest.chunking import split_page
from ingest.sources.default_ignore import IGNORED_BY_SETTING, IGNORED_KINDS
from ingest.types import ChangedDocument, LeftOut, Page, RefreshReport
from storage.database.bodies import pack_passages, unpack_passages
from storage.database.document_versions import DocumentChange, PackedDocument, StoredVersion
from storage.indexes.lexical import passage_terms
from storage.types import Document

FEW_REMOVALS = 20  # so many documents are always removed without confirmation
_MOST_DIGITS = 9  # of a key that is stored as a bit; more would take hundreds of megabytes


def count_left_out(source: object) -> tuple[tuple[str, int], ...]:
    """Count the files that a source skipped as not being documents: (kind, number), the most frequent kind first."""
    left_out: Iterable[LeftOut] = getattr(source, "left_out", ())
    kinds = {*IGNORED_KINDS, IGNORED_BY_SETTING}
    return tuple(Counter(skipped.reason for skipped in left_out if skipped.reason in kinds).most_common())


def plan_document(corpus: str, listed: ChangedDocument, page: Page, stored: StoredVersion | None) -> DocumentChange:
    """Plan the change of a new document, or of one that was read again.

    A passage whose text and title are unchanged in the dense index is not embedded again.
    """
    new = split_page(corpus, listed.key, page)
    document = build_document(corpus, listed, page)
    known = {passage.id: passage.hash for passage in stored.passages} if stored else {}
    ids = {passage.id for passage in new}
    return DocumentChange(
        corpus=corpus,
        key=listed.key,
        document=document,
        passages=new,
        add=tuple(passage for passage in new if known.get(passage.id) != passage.hash),
        drop=tuple(passage for passage in known if passage not in ids),
        over=stored.number if stored else 0,
    )


def build_document(corpus: str, listed: ChangedDocument, page: Page) -> Document:
    return Document(
        corpus=corpus,
        key=listed.key,
        title=page.title,
        url=page.url,
        revision=page.revision,
        date=page.date,
        language=page.language,
        fingerprint=listed.fingerprint,
        aliases=page.aliases,
        disambiguation=page.disambiguation,
    )


def pack_document(corpus: str, listed: ChangedDocument, page: Page) -> PackedDocument:
    """Split a document, and pack its passages for the store. This needs neither its stored version nor a model."""
    passages = split_page(corpus, listed.key, page)
    document = build_document(corpus, listed, page)
    return PackedDocument(document, len(passages), pack_passages(passages), passage_terms(document, passages))


def compare_packed(packed: Iterable[PackedDocument], stored: Mapping[str, StoredVersion]) -> tuple[int, int]:
    """Return how many passages of the stored versions stay unchanged, and how many are dropped."""
    kept = dropped = 0
    for new_version in packed:
        if before := stored.get(new_version.document.key):
            new = {passage.id: passage.hash for passage in unpack_passages(new_version.document, new_version.body)}
            kept += sum(new.get(passage.id) == passage.hash for passage in before.passages)
            dropped += sum(passage.id not in new for passage in before.passages)
    return kept, dropped


def count_packed(
    report: RefreshReport, packed: Iterable[PackedDocument], known: Mapping[str, str], compared: tuple[int, int]
) -> RefreshReport:
    """Add packed documents to the counts of a report. `compared` is what `compare_packed` returned."""
    stored, (kept, dropped) = list(packed), compared
    changed = sum(document.document.key in known for document in stored)
    return replace(
        report,
        added=report.added + len(stored) - changed,
        changed=report.changed + changed,
        passages_added=report.passages_added + sum(document.passages for document in stored) - kept,
        passages_removed=report.passages_removed + dropped,
    )


def count_changes(report: RefreshReport, changes: Iterable[DocumentChange], known: Mapping[str, str]) -> RefreshReport:
    """Add these changes to the counts of a report."""
    applied = list(changes)
    written = [change for change in applied if change.document]
    return replace(
        report,
        added=report.added + sum(change.key not in known for change in written),
        changed=report.changed + sum(change.key in known for change in written),
        removed=report.removed + len(applied) - len(written),
        passages_added=report.passages_added + sum(len(change.add) for change in applied),
        passages_removed=report.passages_removed + sum(len(change.drop) for change in applied),
    )


class KeySet(MutableSet[str]):
    """A set of keys. Numbers, such as page ids, take one bit each, because a Wikipedia has many millions of pages."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        self._bits = bytearray()
        self._number = 0
        self._others: set[str] = set()
        for key in keys:
            self.add(key)

    def add(self, value: str) -> None:
        place, bit = _locate(value)
        if not bit:
            self._others.add(value)
            return
        if place >= len(self._bits):
            self._bits.extend(bytes(place + 1 - len(self._bits) + (len(self._bits) >> 2)))
        self._number += not self._bits[place] & bit
        self._bits[place] |= bit

    def discard(self, value: str) -> None:
        place, bit = _locate(value)
        if not bit:
            self._others.discard(value)
        elif value in self:
            self._bits[place] &= ~bit
            self._number -= 1

    def __contains__(self, value: object) -> bool:
        if not isinstance(value, str):
            return False
        place, bit = _locate(value)
        return bool(self._bits[place] & bit) if bit and place < len(self._bits) else not bit and value in self._others

    def __iter__(self) -> Iterator[str]:
        for place, bits in enumerate(self._bits):
            if bits:
                yield from (str(8 * place + bit) for bit in range(8) if bits & 1 << bit)
        yield from self._others

    def __len__(self) -> int:
        return self._number + len(self._others)

    @property
    def others(self) -> frozenset[str]:
        """Return the keys that are not numbers."""
        return frozenset(self._others)


def _locate(key: str) -> tuple[int, int]:
    """Return the byte and the bit that represent a key; the bit is 0 if the key is not a number in its usual form."""
    if not key.isdecimal() or not key.isascii() or len(key) > _MOST_DIGITS or (key[0] == "0" and key != "0"):
        return 0, 0
    place, bit = divmod(int(key), 8)
    return place, 1 << bit


def find_missing(known: Mapping[str, str], seen: KeySet) -> list[str]:
    """Return the keys of known documents that the source no longer has.

    A key in `seen` that ends with a slash is a folder that could not be listed. Its documents do not count as missing.
    """
    hidden = tuple(key for key in seen.others if key.endswith("/"))
    return sorted(key for key in known if key not in seen and not key.startswith(hidden))


def is_removal_suspicious(
    keys: Sequence[str], known: Mapping[str, str], arrived: Collection[int], share: float
) -> bool:
    """Return whether so many documents are missing that a person must confirm their removal.

    Up to `share` of the known documents, from 0 to 1, or `FEW_REMOVALS` documents, may be removed without confirmation.
    A document whose fingerprint has its hash in `arrived` was only renamed, and does not count.
    """
    gone = [hash(known.get(key, "")) for key in keys]
    renamed = {*gone}.intersection(arrived)
    lost = sum(fingerprint not in renamed for fingerprint in gone)
    return lost > max(FEW_REMOVALS, share * len(known))
