"""Tests of the Merkle tree against the definition and published roots of RFC 6962."""

import hashlib
import runpy
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.record.proof.merkle_tree import (
    EMPTY_ROOT,
    InclusionProof,
    Node,
    compute_root,
    hash_children,
    hash_leaf,
    prove_inclusion,
)

PUBLISHED = [bytes.fromhex(leaf) for leaf in (
    "", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f"
)]  # fmt: skip
"""The leaves of the reference tests of Certificate Transparency; the roots are those of the first 1 to 8."""
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]


SCRIPT = runpy.run_path(str(Path(__file__).parents[4] / "docs" / "verify_receipt.py"))


def is_included(leaf: bytes, proof: InclusionProof, root: bytes) -> bool:
    """Return whether the script for receipts accepts a proof."""
    return SCRIPT["is_included"](leaf, proof.place, proof.size, proof.hashes, root)


def grow(leaves: Sequence[bytes]) -> dict[Node, bytes]:
    """Return the complete subtrees, level by level."""
    nodes = {(0, place): hash_leaf(leaf) for place, leaf in enumerate(leaves)}
    for level in range(1, len(leaves).bit_length()):
        for place in range(len(leaves) >> level):
            left, right = nodes[level - 1, 2 * place], nodes[level - 1, 2 * place + 1]
            nodes[level, place] = hash_children(left, right)
    return nodes


def define(leaves: Sequence[bytes]) -> bytes:
    """Return the root by the definition of RFC 6962, section 2.1."""
    if not leaves:
        return hashlib.sha256().digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    split = 1
    while split * 2 < len(leaves):
        split *= 2
    return hashlib.sha256(b"\1" + define(leaves[:split]) + define(leaves[split:])).digest()


TREES = st.lists(st.binary(max_size=3), min_size=1, max_size=40)


def test_roots_equal_those_of_the_published_tree() -> None:
    nodes = grow(PUBLISHED)

    assert [compute_root(size, nodes.__getitem__).hex() for size in range(1, 9)] == ROOTS
    assert compute_root(0, nodes.__getitem__) == EMPTY_ROOT


@given(TREES, st.data())
def test_every_leaf_is_proved(leaves: list[bytes], data: st.DataObject) -> None:
    read, size = grow(leaves).__getitem__, len(leaves)
    place = data.draw(st.integers(0, size - 1))
    root = compute_root(size, read)

    assert root == define(leaves)
    assert is_included(hash_leaf(leaves[place]), prove_inclusion(place, size, read), root)


@given(TREES, st.data())
def test_other_leaves_fail_the_proof(leaves: list[bytes], data: st.DataObject) -> None:
    read, size = grow(leaves).__getitem__, len(leaves)
    place = data.draw(st.integers(0, size - 1))
    root, leaf, included = compute_root(size, read), hash_leaf(leaves[place]), prove_inclusion(place, size, read)

    def flip(value: bytes) -> bytes:
        at = data.draw(st.integers(0, len(value) * 8 - 1))
        return (int.from_bytes(value) ^ (1 << at)).to_bytes(len(value))

    assert not is_included(flip(leaf), included, root)
    assert not is_included(leaf, included, flip(root))
    for hashes in _alter(included.hashes, flip):
        assert not is_included(leaf, replace(included, hashes=hashes), root)


def _alter(hashes: tuple[bytes, ...], flip: object) -> list[tuple[bytes, ...]]:
    altered = [(*hashes, EMPTY_ROOT)]
    if hashes:
        altered += [hashes[:-1], hashes[1:], (flip(hashes[0]), *hashes[1:]), (*hashes[:-1], flip(hashes[-1]))]  # type: ignore[operator]
    return altered


@pytest.mark.parametrize(("place", "size"), [(1, 1), (-1, 3), (5, 3)])
def test_place_outside_the_tree_is_refused(place: int, size: int) -> None:
    read = grow([b"a", b"b", b"c"]).__getitem__

    with pytest.raises(ValueError, match="leaves"):
        prove_inclusion(place, size, read)
    assert not is_included(hash_leaf(b"a"), InclusionProof(place, size, ()), hash_leaf(b"a"))
