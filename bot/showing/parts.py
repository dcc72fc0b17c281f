"""What a message is made of once it fits: pages of parts of runs, which each platform renders one to one.

A run's text is raw, and has its own blanks, brackets and line breaks in it: rendering a part is escaping each run once,
giving it its style, and joining them.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from bot.showing.view import Button


class Kind(StrEnum):
    """What a part of a message is."""

    STATUS = "status"
    NOTICE = "notice"
    CLAIM = "claim"
    """A claim with its state before it."""
    COLLAPSED = "collapsed"
    """One line in the place of all claims."""
    HEADING = "heading"
    LABEL = "label"
    """Our own words above what comes next."""
    QUOTE = "quote"
    """A passage's own words, and where they stand."""
    TEXT = "text"
    PARAGRAPH = "paragraph"
    """Sentences with their footnote marks."""
    LEFT_OUT = "left_out"
    SOURCES = "sources"
    """Footnotes, each on a line."""
    NEAREST = "nearest"
    MENTIONS = "mentions"


class Style(StrEnum):
    """What a run is within its part."""

    PLAIN = "plain"
    NOTE = "note"
    """Our own words within foreign ones."""
    MARK = "mark"
    """A footnote's number, in brackets. Never cut."""
    TITLE = "title"
    """A page's title. With an address, it is the link there."""
    DETAIL = "detail"
    """A section or a date."""
    QUOTE = "quote"
    PERSON = "person"
    """A person's id on the platform, to be mentioned. Never cut."""


@dataclass(frozen=True, slots=True)
class Run:
    """A stretch of text that is shown in one way."""

    text: str
    style: Style = Style.PLAIN
    url: str = ""
    """Where it leads: as `defusing.address` returns it, or empty."""


@dataclass(frozen=True, slots=True)
class Part:
    """A block, a component or a paragraph of a message."""

    kind: Kind
    runs: tuple[Run, ...]
    state: str = ""
    """Of a claim: as in `ClaimCard.state`."""


@dataclass(frozen=True, slots=True)
class Page:
    """One message."""

    parts: tuple[Part, ...] = ()
    rows: tuple[tuple[Button, ...], ...] = ()
    """The buttons beneath; only the last page has any."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a platform takes in one message, in the units of `measure`."""

    message: int
    """Of all its parts together."""
    parts: int
    """How many parts a message may have, its buttons left out."""
    part: int
    """Of one part; `LEAST` at least."""
    row: int
    """How many buttons stand in a row."""
    measure: Callable[[str], int]
    """How long a text is as it leaves, that is escaped."""
    markup: int = 0
    """How much a run's style takes at most, its link's brackets included, an address not."""
    line: int = 0
    """How much each line of a part takes, such as the mark of a quotation before it."""
    gap: int = 0
    """How much stands between two parts."""

    def size(self, run: Run) -> int:
        """Return how much of a part a run takes at most."""
        lines = run.text.count("\n") + 1
        return self.measure(run.text) + (self.measure(run.url) if run.url else 0) + self.markup + self.line * lines


LEAST = 160
"""A part has room for this much at least: a mark, a person's id or any character, with all that is around it."""
