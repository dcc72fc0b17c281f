"""A page as a reader or a source made it -> one that every store can hold. Pure.

The readers know their formats; what no format forbids, and yet no database or index takes, is mended here for all.
"""

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from ingest.types import Block, Page, Section

_UNHOLDABLE = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufffe\uffff\ud800-\udfff]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f\ufffe\uffff]")
_A_DAY = timedelta(days=1)
_EARLIEST, _LATEST = datetime.min.replace(tzinfo=UTC) + _A_DAY, datetime.max.replace(tzinfo=UTC) - _A_DAY
"""Beyond these a moment cannot be told in every time zone."""
_LONGEST_REASON = 200


def cleaned(page: Page) -> Page:
    """Return the page without characters that no text holds, and with a date in UTC, or None if it has none there.

    A half of a surrogate pair becomes U+FFFD, a pair the character that it stands for; control characters are dropped,
    and a block that was nothing else with them.
    """
    return replace(
        page,
        title=text(page.title),
        sections=tuple(section for section in map(_section, page.sections) if section.blocks),
        url=text(page.url),
        revision=text(page.revision),
        date=moment(page.date),
        language=text(page.language),
        aliases=tuple(" ".join(text(alias).split()) for alias in page.aliases),
    )


def text(said: str) -> str:
    """Return a text that is valid Unicode without control characters, the usual white space excepted."""
    if not _UNHOLDABLE.search(said):
        return said
    whole = said.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return _CONTROL.sub("", whole)


def moment(said: datetime | None) -> datetime | None:
    """Return a moment in UTC, which a moment without a zone already is; None for one that some zone cannot tell."""
    if said is None:
        return None
    zoned = said if said.tzinfo else said.replace(tzinfo=UTC)
    return zoned.astimezone(UTC) if _EARLIEST <= zoned <= _LATEST else None


def reason(error: Exception) -> str:
    """Return an unexpected error as the reason why a document cannot be read: one line of at most 200 characters."""
    said = " ".join(text(f"cannot be read: {type(error).__name__}: {error}").split()).rstrip(": ")
    return said if len(said) <= _LONGEST_REASON else said[: _LONGEST_REASON - 1] + "…"


def _section(section: Section) -> Section:
    blocks = (Block(text(block.text), block.kind) for block in section.blocks)
    return Section(tuple(map(text, section.path)), tuple(block for block in blocks if block.text.strip()))
