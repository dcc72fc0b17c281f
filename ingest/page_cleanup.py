"""Load pages, and remove from them characters and dates that databases and indexes reject."""

import html
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from ingest.types import Block, ChangedDocument, Page, Section, UnreadableDocument
from storage.language.lazy_pattern import lazy_compile

T = TypeVar("T")

_UNSTORABLE = lazy_compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_CONTROL = lazy_compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufffe\uffff]")
_A_DAY = timedelta(days=1)
_EARLIEST, _LATEST = datetime.min.replace(tzinfo=UTC) + _A_DAY, datetime.max.replace(tzinfo=UTC) - _A_DAY
"""Beyond these, some time zone cannot represent a moment."""
_LONGEST_REASON = 200
LARGEST_DOCUMENT = 512 << 20  # bytes; a larger document is not loaded
LONGEST_TEXT = 10_000_000  # characters of a document's text, about 15,000 passages


def clean_page(page: Page) -> Page:
    """Return the page in valid Unicode, with its date in UTC.

    An impossible date becomes None, a pair of surrogates the character that it means, and an unpaired surrogate U+FFFD.
    Control characters are dropped, and so are blocks that consist only of them.
    """
    return replace(
        page,
        title=clean_text(html.unescape(page.title)),  # some sources escape it as markup
        sections=tuple(section for section in map(_clean_section, page.sections) if section.blocks),
        url=clean_text(page.url),
        revision=clean_text(page.revision),
        date=to_utc(page.date),
        language=clean_text(page.language),
        aliases=tuple(" ".join(clean_text(alias).split()) for alias in page.aliases),
    )


def clean_text(text: str) -> str:
    """Return a text as valid Unicode without control characters, except the usual white space."""
    if not _UNSTORABLE.search(text):
        return text
    whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _CONTROL.sub("", whole)


def to_utc(moment: datetime | None) -> datetime | None:
    """Convert a moment to UTC; without a time zone, it is taken for UTC. None if it is too close to year 1 or 9999."""
    if moment is None:
        return None
    zoned = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return zoned.astimezone(UTC) if _EARLIEST <= zoned <= _LATEST else None


def describe_error(error: Exception) -> str:
    """Describe an unexpected error of reading a document in one line of at most 200 characters."""
    return shorten_message(f"cannot be read: {type(error).__name__}: {error}")


def shorten_message(message: str) -> str:
    line = " ".join(clean_text(message).split()).rstrip(":. ")
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 1] + "…"


def _clean_section(section: Section) -> Section:
    blocks = (Block(clean_text(block.text), block.kind) for block in section.blocks)
    return Section(tuple(map(clean_text, section.path)), tuple(block for block in blocks if block.text.strip()))


def limit_length(page: Page) -> Page:
    """Return the page unchanged. Raises `UnreadableDocument` if it is too long."""
    if measure_length(page) > LONGEST_TEXT:
        reason = f"holds more than {LONGEST_TEXT:,} characters of text: split it into several documents"
        raise UnreadableDocument(reason)
    return page


def measure_length(page: Page) -> int:
    return sum(len(block.text) for section in page.sections for block in section.blocks)


def isolate_errors(work: Callable[[], T]) -> T:
    """Call `work`, which reads one document.

    Any error becomes `UnreadableDocument`, so that other documents are still read.
    """
    try:
        return work()
    except (UnreadableDocument, MemoryError):
        raise
    except Exception as error:  # libraries may raise anything for a malformed file
        raise UnreadableDocument(describe_error(error)) from error


def load_page(document: ChangedDocument) -> Page:
    """Load and clean the page of a document. Raises `UnreadableDocument`, also if it is too large."""
    if document.size > LARGEST_DOCUMENT:
        raise UnreadableDocument(f"is larger than {LARGEST_DOCUMENT >> 20} MB")
    return clean_page(limit_length(document.load()))
