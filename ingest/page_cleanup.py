"""Make a page one that every store can hold. Pure.

The readers know their formats; what no format forbids, and yet no database or index takes, is mended here for all.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from ingest.types import Block, Page, Section, UnreadableDocument
from storage.language.lazy_pattern import lazy_compile

_UNSTORABLE = lazy_compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_CONTROL = lazy_compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufffe\uffff]")
_A_DAY = timedelta(days=1)
_EARLIEST, _LATEST = datetime.min.replace(tzinfo=UTC) + _A_DAY, datetime.max.replace(tzinfo=UTC) - _A_DAY
"""Beyond these a moment cannot be told in every time zone."""
_LONGEST_REASON = 200


def clean_page(page: Page) -> Page:
    """Return the page without characters that no text holds, and with a date in UTC, or None if it has none there.

    A half of a surrogate pair becomes U+FFFD, a pair the character that it stands for; control characters are dropped,
    and a block that was nothing else with them.
    """
    return replace(
        page,
        title=clean_text(page.title),
        sections=tuple(section for section in map(_clean_section, page.sections) if section.blocks),
        url=clean_text(page.url),
        revision=clean_text(page.revision),
        date=to_utc(page.date),
        language=clean_text(page.language),
        aliases=tuple(" ".join(clean_text(alias).split()) for alias in page.aliases),
    )


def clean_text(said: str) -> str:
    """Return a text that is valid Unicode without control characters, the usual white space excepted."""
    if not _UNSTORABLE.search(said):
        return said
    whole = said.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _CONTROL.sub("", whole)


def to_utc(said: datetime | None) -> datetime | None:
    """Return a moment in UTC, which a moment without a zone already is; None for one that some zone cannot tell."""
    if said is None:
        return None
    zoned = said if said.tzinfo else said.replace(tzinfo=UTC)
    return zoned.astimezone(UTC) if _EARLIEST <= zoned <= _LATEST else None


def describe_error(error: Exception) -> str:
    """Return an unexpected error as the reason why a document cannot be read: one line of at most 200 characters."""
    said = " ".join(clean_text(f"cannot be read: {type(error).__name__}: {error}").split()).rstrip(": ")
    return said if len(said) <= _LONGEST_REASON else said[: _LONGEST_REASON - 1] + "…"


def _clean_section(section: Section) -> Section:
    blocks = (Block(clean_text(block.text), block.kind) for block in section.blocks)
    return Section(tuple(map(clean_text, section.path)), tuple(block for block in blocks if block.text.strip()))


LONGEST_TEXT = 10_000_000
"""Characters of a document's text, about 15,000 passages."""


def limit_length(page: Page) -> Page:
    """Return the page. Raises `UnreadableDocument` if it says more than is taken in of a document."""
    if measure_length(page) > LONGEST_TEXT:
        raise UnreadableDocument(
            f"holds more than {LONGEST_TEXT:,} characters of text: split it into several documents"
        )
    return page


def measure_length(page: Page) -> int:
    return sum(len(block.text) for section in page.sections for block in section.blocks)
