"""What a passage is called, and the hash of what the indexes see of it. Pure; ingest writes them, verifying reads them.

The id and the hash differ on purpose: a new title changes the hash (the indexes see it) and never the id.
"""

import hashlib

LENGTH = 32
"""Hexadecimal digits kept: 128 bits, so that two of a billion passages meet by chance once in 10^20 times."""


def passage_id(corpus: str, key: str, section: str, text: str, ordinal: int) -> str:
    """Name a passage: 32 hexadecimal digits. `ordinal` counts from 0 the equal (section, text) of one document."""
    return _digest(corpus, key, section, text, str(ordinal))


def passage_hash(title: str, section: str, text: str) -> str:
    """Hash what the indexes and a reader see of a passage: 32 hexadecimal digits."""
    return _digest(title, section, text)


def _digest(*parts: str) -> str:
    # A lone surrogate (from a file name that is not UTF-8) must not stop an ingest.
    joined = "\x1f".join(parts).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:LENGTH]
