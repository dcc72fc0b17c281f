"""The record's append-only Merkle tree (RFC 6962): leaves, roots, proofs and their checks. Pure.

A leaf commits to its entry's body by a salted hash, so that the body can be erased while the leaf stays: without the
salt, a guess of the body cannot be confirmed.

The tree is stored as the hashes of its complete subtrees: the one at level `l` and place `p` covers the `2**l` leaves
from number `p * 2**l` on. These hashes never change. So appending a leaf, or proving anything, reads only about as many
hashes as the logarithm of the tree's size.
"""

import hashlib
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import reduce

HASH_BYTES = 32
EMPTY_ROOT = hashlib.sha256().digest()

Node = tuple[int, int]
"""A complete subtree: its level, and its place at that level."""
ReadNode = Callable[[Node], bytes]
"""Returns the hash of a complete subtree."""


def hash_leaf(data: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + data).digest()


def hash_children(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def _cover(first: int, last: int) -> Iterator[Node]:
    """Yield the largest complete subtrees that cover the leaves from `first` up to `last` (excluded), in order."""
    while first < last:
        level = (last - first).bit_length() - 1
        yield level, first >> level
        first += 1 << level


def compute_root(size: int, read: ReadNode) -> bytes:
    return _hash_range(0, size, read) if size else EMPTY_ROOT


def _hash_range(first: int, last: int, read: ReadNode) -> bytes:
    return reduce(lambda right, left: hash_children(left, right), map(read, reversed(list(_cover(first, last)))))


@dataclass(frozen=True, slots=True)
class InclusionProof:
    """Proof that a tree has a leaf at a place: the sibling hashes on the path from leaf to root, lowest first."""

    place: int
    size: int
    hashes: tuple[bytes, ...]


def prove_inclusion(place: int, size: int, read: ReadNode) -> InclusionProof:
    """Prove that the tree of `size` leaves has the leaf at `place`. Raises `ValueError` for a place outside it."""
    if not 0 <= place < size:
        raise ValueError(f"a tree of {size} leaves has none at {place}")
    return InclusionProof(place, size, tuple(_prove_path(place, 0, size, read))[::-1])


def _prove_path(place: int, first: int, last: int, read: ReadNode) -> Iterator[bytes]:
    """Yield the sibling hashes on the path from the root to a leaf, highest first (RFC 6962, 2.1.1)."""
    while last - first > 1:
        middle = _split(first, last)
        yield _hash_range(*((middle, last) if place < middle else (first, middle)), read)
        first, last = (first, middle) if place < middle else (middle, last)


def _split(first: int, last: int) -> int:
    """Return where the right part of a range begins.

    The left part has the largest power of two of leaves that is less than the range's length.
    """
    return first + (1 << (last - first - 1).bit_length() - 1)


SALT_BYTES = 16
LEAF_FORM = 1


def commit_body(salt: bytes, body: bytes) -> bytes:
    return hashlib.sha256(salt + body).digest()


def format_moment(at: datetime) -> str:
    """Format a moment for leaves: in UTC, to the microsecond."""
    return f"{at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def encode_leaf(seq: int, turn_id: str, kind: str, at: str, commitment: bytes) -> bytes:
    """Encode a leaf as canonical JSON (RFC 8785)."""
    parts = [LEAF_FORM, seq, turn_id, kind, at, commitment.hex()]
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()


def hash_entry(seq: int, turn_id: str, kind: str, at: str, commitment: bytes) -> bytes:
    return hash_leaf(encode_leaf(seq, turn_id, kind, at, commitment))
