"""An append-only Merkle tree as RFC 6962 has it: roots, proofs, and what checks them. Pure.

A tree is known by the hashes of its complete subtrees: the one at level `l` and place `p` covers the leaves from
`p * 2**l` on, `2**l` of them. They never change once they are there, so that a leaf is appended, and anything proved,
by reading a number of hashes that grows with the logarithm of the tree's size.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce

HASH_BYTES = 32
EMPTY_ROOT = hashlib.sha256().digest()

Node = tuple[int, int]
"""A complete subtree, by its level and its place there."""
ReadNode = Callable[[Node], bytes]
"""Returns the hash of a complete subtree."""


def hash_leaf(data: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + data).digest()


def hash_children(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def append_leaf(size: int, leaf: bytes, read: ReadNode) -> Iterator[tuple[Node, bytes]]:
    """Yield the complete subtrees, with their hashes, that a leaf's hash adds to a tree of so many leaves."""
    level, place, found = 0, size, leaf
    yield (level, place), found
    while place % 2:
        found = hash_children(read((level, place - 1)), found)
        level, place = level + 1, place // 2
        yield (level, place), found


def list_peaks(size: int) -> tuple[Node, ...]:
    """Return the largest complete subtrees that a tree of so many leaves is made of, from left to right."""
    return tuple(_cover(0, size))


def _cover(first: int, last: int) -> Iterator[Node]:
    """Yield the largest complete subtrees of the leaves from `first` to before `last`, from left to right.

    `first` is a multiple of the largest power of two that fits between them.
    """
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
    """That a leaf stands at a place in a tree: the hashes beside its way to the root, the lowest first."""

    place: int
    size: int
    hashes: tuple[bytes, ...]


@dataclass(frozen=True, slots=True)
class ConsistencyProof:
    """That a tree of `size` leaves begins with all that one of `before` leaves had."""

    before: int
    size: int
    hashes: tuple[bytes, ...]


def prove_inclusion(place: int, size: int, read: ReadNode) -> InclusionProof:
    """Prove that a tree of so many leaves has the leaf at a place. Raises `ValueError` for a place outside it."""
    if not 0 <= place < size:
        raise ValueError(f"a tree of {size} leaves has none at {place}")
    return InclusionProof(place, size, tuple(_prove_path(place, 0, size, read))[::-1])


def _prove_path(place: int, first: int, last: int, read: ReadNode) -> Iterator[bytes]:
    """Yield the hashes beside the way down to a leaf, the highest first (RFC 6962, 2.1.1)."""
    while last - first > 1:
        middle = _split(first, last)
        yield _hash_range(*((middle, last) if place < middle else (first, middle)), read)
        first, last = (first, middle) if place < middle else (middle, last)


def _split(first: int, last: int) -> int:
    """Return where the right part of a range begins: behind the largest power of two that is shorter than it."""
    return first + (1 << (last - first - 1).bit_length() - 1)


def prove_consistency(before: int, size: int, read: ReadNode) -> ConsistencyProof:
    """Prove that a tree began as it was when it had so many leaves (RFC 6962, 2.1.2). Raises `ValueError`."""
    if not 0 <= before <= size:
        raise ValueError(f"a tree of {size} leaves never had {before}")
    if before in {0, size}:
        return ConsistencyProof(before, size, ())
    hashes, first, last = list[bytes](), 0, size
    while last != before:
        middle = _split(first, last)
        hashes.append(_hash_range(*((middle, last) if before <= middle else (first, middle)), read))
        first, last = (first, middle) if before <= middle else (middle, last)
    kept = (_hash_range(first, last, read),) if first else ()
    return ConsistencyProof(before, size, (*kept, *reversed(hashes)))


def is_included(leaf: bytes, proof: InclusionProof, root: bytes) -> bool:
    """Return whether a proof shows a leaf's hash in the tree of a root (RFC 9162, 2.1.3.2)."""
    place, last, found = proof.place, proof.size - 1, leaf
    if not 0 <= place <= last:
        return False
    for beside in proof.hashes:
        if not last:
            return False
        if place % 2 or place == last:
            found = hash_children(beside, found)
            place, last = _climb_left(place, last)
        else:
            found = hash_children(found, beside)
        place, last = place >> 1, last >> 1
    return not last and found == root


def _climb_left(place: int, last: int) -> Node:
    """Return the place and the last one at the level from which a hash came that stands to the left."""
    while place and not place % 2:
        place, last = place >> 1, last >> 1
    return place, last


def is_consistent(before: bytes, proof: ConsistencyProof, root: bytes) -> bool:
    """Return whether a proof shows that the tree of `root` began as the one of root `before` (RFC 9162, 2.1.4.2)."""
    if proof.before == proof.size:
        return before == root and not proof.hashes
    if not proof.before:
        return before == EMPTY_ROOT and not proof.hashes
    if not 0 < proof.before < proof.size:
        return False
    hashes: Sequence[bytes] = proof.hashes
    if not proof.before & (proof.before - 1):  # a complete subtree is no part of its own proof
        hashes = (before, *hashes)
    if not hashes:
        return False
    place, last = proof.before - 1, proof.size - 1
    while place % 2:
        place, last = place >> 1, last >> 1
    old = new = hashes[0]
    for beside in hashes[1:]:
        if not last:
            return False
        if place % 2 or place == last:
            old, new = hash_children(beside, old), hash_children(beside, new)
            place, last = _climb_left(place, last)
        else:
            new = hash_children(new, beside)
        place, last = place >> 1, last >> 1
    return not last and old == before and new == root
