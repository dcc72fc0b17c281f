"""The few words of our own that may stand before a sentence: its page, section, date and language, and nothing else.

Systems make notes here and the gate compares them with what is made here, so that a note carries no other text.
"""

from pipeline.languages import own_name
from storage.types import Document, Evidence, Passage


def place(document: Document, passage: Passage) -> str:
    """Say where a sentence stands: the page's title, and its section if it has one."""
    return f"{document.title} › {passage.section}" if passage.section else document.title


def dated(document: Document) -> str:
    """Say which page speaks and of what date it is: title and ISO date, or the title alone where nobody knows."""
    return f"{document.title}, {document.date.date().isoformat()}" if document.date else document.title


def foreign(document: Document) -> str:
    """Say which page speaks and in which language, called as its speakers call it; the title alone if it is unknown."""
    language = own_name(document.language)
    return f"{document.title}, {language}" if language else document.title


def is_ours(note: str, evidence: Evidence) -> bool:
    """Return whether a note is empty, or one of those made above for this evidence."""
    document = evidence.document
    return note in {"", place(document, evidence.passage), dated(document), foreign(document)}
