"""Indexes over passages: what they hold of one, and the version that says so; both hold the same words."""

from storage.types import Document, Passage

INDEX_SCHEMA = 1  # raised whenever what is written into an index changes; indexes with another number are made again


def aliases_text(document: Document, passage: Passage) -> str:
    """Return a document's other titles for its first passage; only that one is found by them, by words alone."""
    return "\n".join(document.aliases) if passage.position == 0 else ""


def indexed_text(document: Document, passage: Passage) -> str:
    """Return title, section and text, a line each: a passage is also found by what it is about."""
    return "\n".join(part for part in (document.title, passage.section, passage.text) if part)
