"""Define the views of a turn: frozen values whose texts are all raw.

A platform escapes the texts in its last step. No text may be shown unescaped: quotations contain a page's markup, and
titles contain whatever their authors typed.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from pipeline.types import AnsweredSentence


class ButtonAction(StrEnum):
    STOP = "stop"
    EVIDENCE = "evidence"
    UP = "up"
    DOWN = "down"
    RATE = "rate"  # from 1 to 5, in a comparison of two systems
    ASK = "ask"  # ask a person
    SHARE = "share"  # post an answer that only the asker sees to the channel
    RETRACT = "retract"
    EXAMPLE = "example"  # approve an answer as a worked example; offered to admins alone


@dataclass(frozen=True, slots=True)
class Button:
    """A button. It works even after a restart, because the ticket in it is looked up when it is pressed."""

    action: ButtonAction
    label: str
    ticket: int  # the question's number at the desk
    sure: "Confirmation | None" = None  # asked before an irreversible action, if the platform can ask


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A question before an action, and the labels of its two answers."""

    question: str
    yes: str
    no: str


@dataclass(frozen=True, slots=True)
class ClaimCard:
    """A claim while it is checked and afterwards. Its text is set only once passages support it."""

    number: int
    state: Literal["checking", "supported", "refuted", "unknown"]
    text: str = ""
    sources: tuple[str, ...] = ()  # the titles of the pages that support it


@dataclass(frozen=True, slots=True)
class ShownVerdict:
    """The result of a fact-check for one statement."""

    verdict: str  # in words, after a sign
    claim: str
    reason: str
    numbers: tuple[int, ...] = ()  # of the footnotes that show it


@dataclass(frozen=True, slots=True)
class ShownSource:
    """A page that is cited, or nearest to a question. Its address is a stored document's, or empty."""

    number: int  # of its footnote; 0 if it has none
    title: str
    section: str = ""
    date: datetime | None = None
    url: str = ""
    quote: str = ""  # the quoted passage, if it is shown
    origin: str = ""  # that it is a page of the web, and when it was read; empty for the team's own pages


@dataclass(frozen=True, slots=True)
class View:
    """Everything that is shown of a turn at one moment, in the order of its fields."""

    ticket: int
    language: str = ""  # ISO 639-1: the asker's, for our own texts
    status: str = ""  # the current step; empty when the turn is done
    notice: str = ""  # shown above the answer, such as that the budget is spent and only quotations are given
    claims: tuple[ClaimCard, ...] = ()
    quote: ShownSource | None = None  # a quotation that is shown until there is an answer, under `quote_label`
    quote_label: str = ""
    text: str = ""  # our own text if there are no sentences: abstained, chatted, refused, failed, stopped
    judgements: tuple[ShownVerdict, ...] = ()  # the statements of a fact-check
    sentences: tuple[AnsweredSentence, ...] = ()
    left_out: str = ""  # how many unconfirmed statements were withheld; empty if none
    sources: tuple[ShownSource, ...] = ()
    nearest_label: str = ""
    nearest: tuple[ShownSource, ...] = ()
    collapsed: str = ""  # one small line that replaces the claims when the turn is done
    mentions: tuple[str, ...] = ()  # the platform's ids of contact people of the settings: the only mentions ever made
    buttons: tuple[Button, ...] = ()
    done: bool = False  # whether this is the final view
    plain: bool = False  # whether to show it only as text, which every platform accepts
    titles: tuple[tuple[str, str], ...] = ()  # titles of found pages by passage id, for the sources of claims
    before: int = 0  # how many questions are answered before this one; part of `status`
    study: bool = False  # whether a system of a blind comparison answers, so that its steps are not shown


@dataclass(frozen=True, slots=True)
class EvidenceItem:
    """A claim of a turn with its verdict and quoted passages."""

    claim: str
    verdict: str
    reason: str  # a line; marked if a model wrote it
    sources: tuple[ShownSource, ...] = ()  # the evidence of the verdict
    looked_at: tuple[ShownSource, ...] = ()  # other pages that it was compared with, without evidence
    heading: str = ""  # above the first claim of a kind


@dataclass(frozen=True, slots=True)
class EvidenceView:
    """The checked claims and the sources of a turn, for users who may read them."""

    heading: str
    question: str
    items: tuple[EvidenceItem, ...] = ()
    sources: tuple[ShownSource, ...] = ()
    text: str = ""  # our own text if there is nothing to show, such as that it cannot be read here
    receipt: str = ""  # one line: the answer's position in the record, and its proof
