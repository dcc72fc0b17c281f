"""Values of the pipeline: conversations in, answers out, and the events that report progress."""

from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from typing import Literal

from storage.types import CheckedClaim, Citation, DocumentId, Evidence, Hit, SearchQuery, Verdict, VerdictReason


@dataclass(frozen=True, slots=True)
class Turn:
    speaker: Literal["user", "bot"]
    text: str
    at: datetime | None = None
    language: str = ""
    titles: tuple[str, ...] = ()  # of the pages that a bot's turn cited, most cited first
    corpora: tuple[str, ...] = ()  # of the passages that a bot's turn was written from, as far as known
    documents: tuple[DocumentId, ...] = ()  # that a bot's turn rests on
    query: SearchQuery | None = None  # for which a bot's turn searched


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

    @property
    def queries(self) -> tuple[str, ...]:
        """The search queries of earlier turns, oldest first, each with its time."""
        return tuple(f"{turn.query.text} (time: {turn.query.time or 'none'})" for turn in self.turns if turn.query)


class Status(StrEnum):
    """How a turn ended. Only `ANSWERED` has text from passages or a model; all others use our templates."""

    ANSWERED = "answered"
    ABSTAINED = "abstained"
    CHATTED = "chatted"
    REFUSED = "refused"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True, slots=True)
class CitedSentence:
    """A sentence and the evidence that it cites. `paragraph`: whether it starts a new paragraph."""

    text: str
    evidence: tuple[Evidence, ...]
    note: str = ""  # our own words shown before it, such as page and date if two sources disagree
    paragraph: bool = False


@dataclass(frozen=True, slots=True)
class DemoNote:
    """A note from which the answer of a worked example was written."""

    text: str
    title: str
    section: str = ""
    date: datetime | None = None
    language: str = ""


@dataclass(frozen=True, slots=True)
class DemoClaim:
    """A claim that was compared with the notes of a worked example."""

    text: str
    verdict: Verdict = Verdict.SUPPORTS
    notes: tuple[int, ...] = ()  # the numbers of the notes that decide it, from 1
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Demonstration:
    """A turn with a good answer, shown to a model before another turn. It is never evidence."""

    id: str  # of the turn; for our own examples, a name
    turns: tuple[tuple[Literal["user", "bot"], str], ...]  # the last is the question
    day: date
    notes: tuple[DemoNote, ...]
    answer: str  # with the numbers of notes in brackets
    claims: tuple[DemoClaim, ...]
    query: str = ""  # its search query; empty if unknown
    time: str = "none"  # the query's: `recent`, a year or `none`
    language: str = ""  # the asker's (ISO 639-1)
    corpora: tuple[str, ...] = ()  # of the passages that it was written from; empty for our own examples
    documents: tuple[DocumentId, ...] = ()
    pinned: bool = False
    triples: bool = False  # whether its notes are written as triples

    @property
    def searched(self) -> str:
        """The text by which searches compare demonstrations: the dialogue and the knowledge."""
        return "\n".join((*(text for _, text in self.turns), *(note.text for note in self.notes)))


@dataclass(frozen=True, slots=True)
class RankedDemo:
    demo: Demonstration
    score: float  # from 0 to 1, comparable within one search only


@dataclass(frozen=True, slots=True)
class Support:
    """Whether passages support a sentence: a score from 0 to 1, the decision, and readable reasons."""

    score: float
    holds: bool
    reasons: tuple[str, ...] = ()
    appealable: bool = False
    """It fails, but only on meaning or on words from the question, so a model may overrule that."""
    verbatim: bool = False  # a passage has it in these words or almost these: a model need not judge it
    contradicted: bool = False  # the passages state something else instead of a part of it
    altered: bool = False  # it holds, but changes an obligation or limit: "may" for "must"
    better_quoted: bool = False
    """It may change a fact of its passage, which is quoted instead, even if a model accepts the sentence."""
    replaced: bool = False  # a content word was added to the passage's sentence, or replaces one of its words
    doubtful: bool = False  # it holds, but so narrowly that a model, if there is one, must judge it
    because: tuple[VerdictReason, ...] = ()
    """The reasons that matter to readers: without ids and scores, for any language."""


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
    nearest: tuple[Hit, ...] = ()  # the best passage of each of the nearest pages, if the bot abstained
    withheld: int = 0  # how many sentences the gate did not let through


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of a turn. All zero for a system that calls no model."""

    llm_calls: int = 0
    llm_rounds: int = 0
    """The longest chain of calls that each began after the previous one had ended, by the clock. A call that begins
    while its predecessor is still streaming is in the same round."""
    prompt_tokens: int = 0
    cached_tokens: int = 0  # how many of the prompt tokens servers had in their caches
    completion_tokens: int = 0
    cost: float | None = None  # in the price list's currency; None if a call has no price


@dataclass(frozen=True, slots=True)
class SearchStarted:
    query: str  # empty if it must not be shown yet


@dataclass(frozen=True, slots=True)
class PassagesFound:
    query: str
    hits: tuple[Hit, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class SentencePassed:
    sentence: AnsweredSentence


@dataclass(frozen=True, slots=True)
class ClaimChecked:
    """A claim of the model was verified. Its text may be shown only if the verdict is SUPPORTS."""

    checked: CheckedClaim


@dataclass(frozen=True, slots=True)
class ClaimExplained:
    """The reasoning of an earlier verdict is complete; the claim now contains it."""

    checked: CheckedClaim


@dataclass(frozen=True, slots=True)
class PageQuoted:
    """A quotation from a page that was found, shown until there is an answer."""

    evidence: Evidence


@dataclass(frozen=True, slots=True)
class DraftStarted:
    evidence: int


Event = SearchStarted | PassagesFound | PageQuoted | ClaimChecked | ClaimExplained | DraftStarted | SentencePassed
"""Progress of a running turn that a person may watch."""
