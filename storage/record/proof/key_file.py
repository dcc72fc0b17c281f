"""The file of the key that signs the record: for its owner alone, and apart from the home."""

import os
from datetime import UTC, datetime
from pathlib import Path

from storage.errors import StorageError
from storage.record.proof.signed_notes import SigningKey, make_signing_key, read_signing_key


class KeyUnusable(StorageError):
    """The file of the signing key is missing, or is not what it should be."""

    kind = "key_unusable"


def load_key(file: Path) -> SigningKey:
    """Read the key that signs checkpoints. Blocks; raises `KeyUnusable`."""
    try:
        return read_signing_key(file.read_text(encoding="ascii"))
    except FileNotFoundError as error:
        hint = "`footnote audit key --new` makes one; [record] key_path says where it stands."
        raise KeyUnusable(f"There is no signing key at {file}.", hint=hint) from error
    except (OSError, ValueError) as error:
        hint = "Put back a copy of it, or move it away and make another with `footnote audit key --new`."
        raise KeyUnusable(f"The signing key at {file} cannot be read: {error}.", hint=hint) from error


def create_key(file: Path, name: str = "") -> SigningKey:
    """Make a key in a file for its owner alone; one that is there is moved aside. Blocks; raises `KeyUnusable`."""
    key = make_signing_key(name)
    part = file.with_name(f"{file.name}.part")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        part.unlink(missing_ok=True)
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as opened:
            opened.write(f"{key.reveal()}\n")
        if file.exists():
            file.replace(file.with_name(f"{file.name}.until-{datetime.now(UTC):%Y%m%dT%H%M%S%f}"))
        part.replace(file)
    except OSError as error:
        raise KeyUnusable(f"No signing key can be written to {file}: {error}.", hint="") from error
    return key
