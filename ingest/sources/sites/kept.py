"""A document that a source still has and knows to be as it was, or cannot tell: listed, and never loaded."""

from functools import partial

from ingest.types import Found, Page, UnreadableDocument


def kept(key: str, fingerprint: str) -> Found:
    """Return it with the fingerprint that is known, by which nobody loads it."""
    return Found(key, fingerprint, 0, partial(_unread, key))


def _unread(key: str) -> Page:
    raise UnreadableDocument(f"{key} was known and so was not read: run the same command again")
