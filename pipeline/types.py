"""Values of the pipeline: conversations in, answers out, and the events that may be watched meanwhile."""

from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Literal

from storage.types import CheckedClaim, Citation, DocumentId, Evidence, Hit, Verdict, VerdictReason


@dataclass(frozen=True, slots=True)
class Turn:
    speaker: Literal["user", "bot"]
    text: str
    at: datetime | None = None
    language: str = ""
    titles: tuple[str, ...] = ()  # for a turn of the bot's: the titles of the pages it cited, most cited first
    corpora: tuple[str, ...] = ()
    """For a turn of the bot's: the corpora that it was made from, as far as they are known."""
    documents: tuple[DocumentId, ...] = ()  # for a turn of the bot's: those that it stands on


@dataclass(frozen=True, slots=True)
class Conversation:
    turns: tuple[Turn, ...]

    @property
    def question(self) -> Turn:
        return self.turns[-1]

    @property
    def earlier(self) -> tuple[Turn, ...]:
        """All turns before the question, oldest first."""
        return self.turns[:-1]


class Status(StrEnum):
    """How a turn ended. Only `ANSWERED` carries text from passages or a model; the others speak in our templates."""

    ANSWERED = "answered"
    ABSTAINED = "abstained"
    CHATTED = "chatted"
    REFUSED = "refused"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence and the evidence it cites. `paragraph` starts a new paragraph before it."""

    text: str
    evidence: tuple[Evidence, ...]
    note: str = ""  # our own words shown before it, such as the page and date of one of two sources that disagree
    paragraph: bool = False


@dataclass(frozen=True, slots=True)
class DemoNote:
    """A note of a worked example, as an answer was written from it."""

    text: str
    title: str
    section: str = ""
    date: datetime | None = None
    language: str = ""


@dataclass(frozen=True, slots=True)
class DemoClaim:
    """A claim that was held against the notes of a worked example."""

    text: str
    verdict: Verdict = Verdict.SUPPORTS
    notes: tuple[int, ...] = ()  # the numbers of those that settle it, from 1
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A turn that was answered well, shown to a model before another. It is no evidence for anything."""

    id: str  # of the turn; of ours their name
    turns: tuple[tuple[Literal["user", "bot"], str], ...]  # the last is the question
    day: date
    notes: tuple[DemoNote, ...]
    answer: str  # with the numbers of notes in brackets
    claims: tuple[DemoClaim, ...]
    query: str = ""  # what was looked up for it; empty where that is not known
    time: str = "none"  # the query's: `recent`, a year or `none`
    language: str = ""  # the asker's (ISO 639-1)
    corpora: tuple[str, ...] = ()  # all that it was made from; none for ours
    documents: tuple[DocumentId, ...] = ()
    pinned: bool = False
    triples: bool = False  # whether its notes are written as triples

    @property
    def searched(self) -> str:
        """What it is found by: its dialogue and its knowledge."""
        return "\n".join((*(text for _, text in self.turns), *(note.text for note in self.notes)))


@dataclass(frozen=True, slots=True)
class RankedDemo:
    demo: Demonstration
    score: float  # from 0 to 1, comparable within one search only


@dataclass(frozen=True, slots=True)
class Support:
    """Whether passages say a sentence: a score from 0 to 1, the decision, and reasons a person can read."""

    score: float
    holds: bool
    reasons: tuple[str, ...] = ()
    appealable: bool = False
    """It fails, but not surely: on meaning alone, or on what stands in the question. A model may say otherwise."""
    verbatim: bool = False  # it stands in a passage in these words, or in all but these: no model need be asked
    contradicted: bool = False  # the passages say something else in the place of a part of it
    altered: bool = False  # it holds, but for how it binds or bounds what is said: "may" for "must"
    better_quoted: bool = False
    """It may say something else than its passage, which is quoted instead even where a model finds that it is so."""
    replaced: bool = False  # a word of substance in it was added to that sentence, or put in another's place
    doubtful: bool = False  # it holds, but not by so much that a model, where there is one, need not be asked
    because: tuple[VerdictReason, ...] = ()
    """What of the reasons matters to who only reads: without ids and scores, for any language."""


@dataclass(frozen=True, slots=True)
class AnsweredSentence:
    text: str
    citations: tuple[int, ...]
    note: str = ""
    paragraph: bool = False


@dataclass(frozen=True, slots=True)
class Answer:
    status: Status
    sentences: tuple[AnsweredSentence, ...] = ()
    citations: tuple[Citation, ...] = ()
    claims: tuple[CheckedClaim, ...] = ()
    nearest: tuple[Hit, ...] = ()  # the best passage of each of the nearest pages, when the bot abstained
    withheld: int = 0  # how many sentences the gate did not let through


@dataclass(frozen=True, slots=True)
class Usage:
    """What a turn cost. All zero for a system that asks no model."""

    llm_calls: int = 0
    llm_rounds: int = 0
    """By the clock: the most calls of which each began when the one before it had ended, whether it waited for that or
    not. A call that begins while the one that it follows is still streaming is in the same round."""
    prompt_tokens: int = 0
    cached_tokens: int = 0  # of those of prompts, what servers had in their caches
    completion_tokens: int = 0
    cost: float | None = None  # in the price list's currency; None where a call has no price


@dataclass(frozen=True, slots=True)
class SearchStarted:
    query: str  # empty where what is looked for must not be shown yet


@dataclass(frozen=True, slots=True)
class PassagesFound:
    query: str
    hits: tuple[Hit, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class SentencePassed:
    sentence: AnsweredSentence


@dataclass(frozen=True, slots=True)
class ClaimChecked:
    """A claim of the model's own was verified. Its text may be shown only where its verdict is SUPPORTS."""

    checked: CheckedClaim


@dataclass(frozen=True, slots=True)
class ClaimExplained:
    """Why a claim was given its verdict, where that was said after the verdict; the whole claim with its reasoning."""

    checked: CheckedClaim


@dataclass(frozen=True, slots=True)
class PageQuoted:
    """What a page that was found says in its own words, shown while the rest is checked, until there is an answer."""

    evidence: Evidence


@dataclass(frozen=True, slots=True)
class DraftStarted:
    evidence: int


Event = SearchStarted | PassagesFound | PageQuoted | ClaimChecked | ClaimExplained | DraftStarted | SentencePassed
"""What a person may watch happen while a turn runs."""
