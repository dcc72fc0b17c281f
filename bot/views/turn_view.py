"""Define what can be shown of a turn: frozen values whose every text is raw.

A platform escapes as its very last step. Nothing here may reach a reader unescaped: quotations carry a page's own
markup, titles are what somebody typed.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from pipeline.types import AnsweredSentence


class ButtonAction(StrEnum):
    """What a button does."""

    STOP = "stop"
    EVIDENCE = "evidence"
    UP = "up"
    DOWN = "down"
    ASK = "ask"  # ask a person
    SHARE = "share"  # show the channel an answer that only the asker sees
    RETRACT = "retract"
    EXAMPLE = "example"  # approve an answer as a worked example; offered to admins alone


@dataclass(frozen=True, slots=True)
class Button:
    """Something to press. It works after a restart too: its ticket is looked up."""

    action: ButtonAction
    label: str
    ticket: int  # the question's number at the desk
    sure: "Confirmation | None" = None
    """What is asked before it is done, where a platform can ask: there is no way back."""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A question before something is done, and the labels for it and against it."""

    question: str
    yes: str
    no: str


@dataclass(frozen=True, slots=True)
class ClaimCard:
    """A claim while it is checked and after. Its text is there only once passages support it."""

    number: int
    state: Literal["checking", "supported", "refuted", "unknown"]
    text: str = ""
    sources: tuple[str, ...] = ()  # the titles of the pages that support it


@dataclass(frozen=True, slots=True)
class ShownVerdict:
    """What a fact-check found of a statement."""

    verdict: str  # in words, with a sign before them
    claim: str
    reason: str
    numbers: tuple[int, ...] = ()  # of the footnotes that show it


@dataclass(frozen=True, slots=True)
class ShownSource:
    """A page that is cited or near. Its address is a stored document's, or empty."""

    number: int  # of its footnote; 0 where it has none
    title: str
    section: str = ""
    date: datetime | None = None
    url: str = ""
    quote: str = ""  # the passage's own words, where they are shown


@dataclass(frozen=True, slots=True)
class View:
    """All that is shown of a turn at one moment, in the order of its fields."""

    ticket: int
    language: str = ""  # ISO 639-1: the asker's, which our own words are in
    status: str = ""  # what is being done right now; empty when it is done
    notice: str = ""
    """What the reader must know beforehand, such as that the month's budget is spent and only quotations are given."""
    claims: tuple[ClaimCard, ...] = ()
    quote: ShownSource | None = None
    """A page's own words, shown until there is an answer, labelled as what they are by `quote_label`."""
    quote_label: str = ""
    text: str = ""  # our own words where there are no sentences: abstained, chatted, refused, failed, stopped
    judgements: tuple[ShownVerdict, ...] = ()  # of a fact-check: its statements one by one
    sentences: tuple[AnsweredSentence, ...] = ()
    left_out: str = ""  # how many statements could not be confirmed and were left out; empty if none
    sources: tuple[ShownSource, ...] = ()
    nearest_label: str = ""
    nearest: tuple[ShownSource, ...] = ()
    collapsed: str = ""  # one small line in the place of the claims once all is done
    mentions: tuple[str, ...] = ()
    """The platform's ids of the people who are asked for help: the only mentions that are ever made, from settings."""
    buttons: tuple[Button, ...] = ()
    done: bool = False  # whether nothing more will come
    plain: bool = False  # whether it is to be shown as text alone, which every platform takes
    titles: tuple[tuple[str, str], ...] = ()
    """The pages of what was found for claims, by passage id, to name what supports one. Not shown by itself."""
    before: int = 0  # how many questions are answered before this one; `status` says so


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """A claim of a turn, its verdict, and the passages' words."""

    claim: str
    verdict: str
    reason: str  # a whole line, which says whose it is where that is the model's
    sources: tuple[ShownSource, ...] = ()  # what the verdict stands on
    looked_at: tuple[ShownSource, ...] = ()  # other pages that it was held against: they show nothing of it
    heading: str = ""  # of this claim and those after it, if they are of another kind than those before


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """All that a turn checked and said, for whoever may read it."""

    heading: str
    question: str
    items: tuple[EvidenceItem, ...] = ()
    sources: tuple[ShownSource, ...] = ()
    text: str = ""  # our own words where there is nothing to show, such as that it cannot be read here
    receipt: str = ""  # one line: where the answer stands in the record, and how that is proved
