"""Signed notes in C2SP's form: a text, an empty line, and Ed25519 signatures by named keys (c2sp.org/signed-note).

Keys are written as Go's sumdb tools write them, so that other tools can check our signatures. The record's signing key
is a file of the home.
"""

import base64
import binascii
import hashlib
import os
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from storage.errors import StorageError

_ALGORITHM = b"\x01"  # Ed25519
_SEED_BYTES = 32
_HASH_BYTES = 4
_NAME = re.compile(r"[^\s+\u2014]+")
_SECRET_PREFIX = "PRIVATE+KEY+"  # noqa: S105 - the prefix of a key


class NoteInvalid(ValueError):
    """A note or a key is malformed, or no known key signed it."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A key's name, and the public part that checks its signatures."""

    name: str
    public: bytes

    @property
    def hash(self) -> bytes:
        return _hash_key(self.name, self.public)

    def __str__(self) -> str:
        return f"{self.name}+{self.hash.hex()}+{_encode(_ALGORITHM + self.public)}"


@dataclass(frozen=True, slots=True)
class SigningKey:
    """A key's name, the secret with which it signs, and the notes by which each earlier key endorsed the next."""

    name: str
    seed: bytes = field(repr=False)
    endorsements: tuple[str, ...] = field(default=(), repr=False, compare=False)

    @property
    def public(self) -> PublicKey:
        return PublicKey(
            self.name, _load_private_key_class().from_private_bytes(self.seed).public_key().public_bytes_raw()
        )

    def list_endorsed(self) -> list[tuple[PublicKey, str]]:
        """Return each key up to this one that was endorsed, with its endorsement; or only this key, with none."""
        return [(read_endorsed(note), note) for note in self.endorsements] or [(self.public, "")]

    def reveal(self) -> str:
        """Return the key as text, including its secret."""
        return f"{_SECRET_PREFIX}{self.name}+{self.public.hash.hex()}+{_encode(_ALGORITHM + self.seed)}"


def make_signing_key(name: str = "") -> SigningKey:
    return SigningKey(name or f"footnote/{secrets.token_hex(8)}", secrets.token_bytes(_SEED_BYTES))


def read_signing_key(text: str) -> SigningKey:
    """Parse a key in the format of `SigningKey.reveal`. Raises `NoteInvalid`."""
    stripped = text.strip()
    if not stripped.startswith(_SECRET_PREFIX):
        raise NoteInvalid("it is not a signing key")
    name, digest, seed = _split_key(stripped.removeprefix(_SECRET_PREFIX))
    key = SigningKey(name, seed)
    if key.public.hash.hex() != digest:
        raise NoteInvalid("the signing key is damaged")
    return key


def read_public_key(text: str) -> PublicKey:
    """Parse a public key in the form `name+hash+key`. Raises `NoteInvalid`."""
    name, digest, public = _split_key(text.strip())
    key = PublicKey(name, public)
    if key.hash.hex() != digest:
        raise NoteInvalid("the public key is damaged")
    return key


def sign_note(text: str, key: SigningKey) -> str:
    """Sign a text of complete lines."""
    signature = _load_private_key_class().from_private_bytes(key.seed).sign(text.encode())
    return f"{text}\n\u2014 {key.name} {_encode(key.public.hash + signature)}\n"


def endorse_key(key: SigningKey, following: SigningKey) -> SigningKey:
    """Return the `following` key with the endorsement by the key that it replaces."""
    note = sign_note(f"{key.name}\nnext key\n{following.public}\n", key)
    return replace(following, endorsements=(*key.endorsements, note))


_ENDORSEMENT = re.compile(r"[^\n]+\nnext key\n([^\n]+)\n\n\u2014 [^\n]+\n")


def read_endorsed(note: str) -> PublicKey:
    """Return the key that a note endorses, without checking its signature. Raises `NoteInvalid`."""
    match = _ENDORSEMENT.fullmatch(note)
    return read_public_key(match[1] if match else "")


def open_note(note: str, keys: Iterable[PublicKey]) -> tuple[str, PublicKey]:
    """Return the text of a note, and the key that signed it. Signatures by unknown keys are ignored.

    Raises `NoteInvalid` if it is not a note, no known key signed it, or the signature of a known key is wrong.
    """
    body, mark, signatures = note.rpartition("\n\n")
    text = f"{body}\n"
    if not mark or not body or not signatures.endswith("\n"):
        raise NoteInvalid("it is not a signed note")
    if any(character != "\n" and not character.isprintable() for character in note):
        raise NoteInvalid("it has characters that are not allowed in notes")
    by = {(key.name, key.hash): key for key in keys}
    signed = [_split_signature(line) for line in signatures[:-1].split("\n")]
    known = [(by[name, digest], signature) for name, digest, signature in signed if (name, digest) in by]
    if not known:
        raise NoteInvalid("no known key signed it")
    for key, signature in known:
        _verify(key, signature, text)
    return text, known[0][0]


def _split_signature(line: str) -> tuple[str, bytes, bytes]:
    dash, _, rest = line.partition(" ")
    name, _, encoded = rest.partition(" ")
    if dash != "\u2014" or not _NAME.fullmatch(name):
        raise NoteInvalid("a line of its signatures is malformed")
    decoded = _decode(encoded)
    return name, decoded[:_HASH_BYTES], decoded[_HASH_BYTES:]


def _load_private_key_class() -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey  # needed only to sign

    return Ed25519PrivateKey


def _verify(key: PublicKey, signature: bytes, text: str) -> None:
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        Ed25519PublicKey.from_public_bytes(key.public).verify(signature, text.encode())
    except (InvalidSignature, ValueError) as error:
        raise NoteInvalid(f"{key.name} did not sign this") from error


def _split_key(text: str) -> tuple[str, str, bytes]:
    name, _, rest = text.partition("+")
    digest, _, encoded = rest.partition("+")
    decoded = _decode(encoded)
    if not _NAME.fullmatch(name) or decoded[:1] != _ALGORITHM or len(decoded) != 1 + _SEED_BYTES:
        raise NoteInvalid("it is not an Ed25519 key")
    return name, digest, decoded[1:]


def _hash_key(name: str, public: bytes) -> bytes:
    return hashlib.sha256(name.encode() + b"\n" + _ALGORITHM + public).digest()[:_HASH_BYTES]


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _decode(text: str) -> bytes:
    """Decode base64, which must be in canonical form. Raises `NoteInvalid`."""
    try:
        decoded = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise NoteInvalid("it is not base64") from error
    if _encode(decoded) != text:
        raise NoteInvalid("its base64 is not canonical")
    return decoded


class KeyUnusable(StorageError):
    """The file of the signing key is missing or invalid."""

    kind = "key_unusable"


def load_key(file: Path) -> SigningKey:
    """Read the key that signs checkpoints. Blocks; raises `KeyUnusable`."""
    try:
        return _read_key_file(f"{file.read_text(encoding='utf-8').strip()}\n")
    except FileNotFoundError as error:
        hint = "`footnote audit key --new` makes one; [record] key_path names its path."
        raise KeyUnusable(f"There is no signing key at {file}.", hint=hint) from error
    except (OSError, ValueError) as error:
        hint = "Put back a copy of it, or move it away and make another with `footnote audit key --new`."
        raise KeyUnusable(f"The signing key at {file} cannot be read: {error}.", hint=hint) from error


def _read_key_file(text: str) -> SigningKey:
    secret, _, notes = text.partition("\n")
    key = replace(read_signing_key(secret), endorsements=tuple(match[0] for match in _ENDORSEMENT.finditer(notes)))
    if "".join(key.endorsements) != notes or (notes and read_endorsed(key.endorsements[-1]) != key.public):
        raise NoteInvalid("its endorsements are damaged")
    return key


def create_key(file: Path, replaced: SigningKey | None = None) -> SigningKey:
    """Create a key in a file for its owner only; an existing file is moved aside. Blocks; raises `KeyUnusable`."""
    key = endorse_key(replaced, make_signing_key(replaced.name)) if replaced else make_signing_key()
    part = file.with_name(f"{file.name}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        created = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(created, "w", encoding="utf-8") as opened:
            opened.write("\n".join((key.reveal(), "".join(key.endorsements))))
        if file.exists():
            file.replace(file.with_name(f"{file.name}.until-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"))
        part.replace(file)
    except OSError as error:
        raise KeyUnusable(f"No signing key can be written to {file}: {error}.", hint="") from error
    return key
