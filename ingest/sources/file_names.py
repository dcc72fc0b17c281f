"""Names of files as keys: one name on every system, and which files are no documents. Pure; for folders and git."""

import os
import unicodedata

_LEFT_OUT = frozenset({"node_modules", "__pycache__", "thumbs.db", "desktop.ini"})

SAME_NAME = "has the same name as another file once accents are composed: rename it"
"""Why the second of two files is not read whose names differ only so, for they would have one key."""


def left_out(name: str) -> bool:
    """Whether a file or folder of this name holds no documents: hidden, or what programs leave behind."""
    return name.startswith((".", "~$")) or name.lower() in _LEFT_OUT


def portable(name: str | bytes) -> str:
    """One name on every system: accents composed, bytes that are not UTF-8 replaced."""
    return unicodedata.normalize("NFC", os.fsencode(name).decode("utf-8", "replace"))
