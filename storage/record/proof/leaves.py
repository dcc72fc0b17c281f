"""The leaves of the record's tree: what each says of its entry. Pure.

A leaf commits to an entry's body by a salted hash, so that the body can be erased and the leaf stays what it was: with
the salt, nothing that is left tells what the body said, however few things it may have said.
"""

import hashlib
import json
from datetime import UTC, datetime

from storage.record.proof.merkle_tree import hash_leaf

SALT_BYTES = 16
LEAF_FORM = 1


def commit_body(salt: bytes, body: bytes) -> bytes:
    return hashlib.sha256(salt + body).digest()


def format_moment(at: datetime) -> str:
    """Write a moment as leaves have it: in UTC, to the microsecond."""
    return f"{at.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


def encode_leaf(seq: int, turn_id: str, kind: str, at: str, commitment: bytes) -> bytes:
    """Encode a leaf as canonical JSON (RFC 8785)."""
    parts = [LEAF_FORM, seq, turn_id, kind, at, commitment.hex()]
    return json.dumps(parts, ensure_ascii=False, separators=(",", ":")).encode()


def hash_entry(seq: int, turn_id: str, kind: str, at: str, commitment: bytes) -> bytes:
    return hash_leaf(encode_leaf(seq, turn_id, kind, at, commitment))
