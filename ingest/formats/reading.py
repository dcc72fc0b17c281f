"""What a reader of one format hands back: headings and blocks in order, and what the file says about itself."""

from dataclasses import dataclass
from datetime import datetime

from ingest.types import Block


@dataclass(frozen=True, slots=True)
class Heading:
    """A heading in the flow of the text. `level` counts from 1, the outermost."""

    level: int
    text: str


Item = Heading | Block


@dataclass(frozen=True, slots=True)
class Reading:
    """A document as its format tells it; what the format does not say is empty."""

    items: tuple[Item, ...]
    title: str = ""
    """A title that somebody gave on purpose: it goes before any heading."""
    fallback_title: str = ""
    """A title from metadata that is often wrong or stale: used only where there is no first heading."""
    date: datetime | None = None
    dated: bool = False
    """Whether it states a date, be it one that is not understood: then its file's date would be a guess."""
    revision: str = ""
    language: str = ""
