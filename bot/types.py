"""Values that platforms, the desk and `bot.answering` exchange: questions, their outcome, turn requests and results."""

import logging
import traceback
from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal

from bot.access import Asker
from pipeline.kit import Effort
from pipeline.types import Answer, Turn, Usage
from storage.language.detection import detect_language
from storage.types import DocumentId

MAX_EARLIER_TURNS = 20  # how many turns of a conversation are remembered at least
TaskKind = Literal["ask", "check"]
"""What is done with what somebody wrote: it is answered, or fact-checked as a claim."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is posted."""

    platform: str
    workspace: str
    channel: str  # the channel or DM that settings know; of a Discord thread, its parent
    thread: str = ""  # the thread in it; empty for the channel itself

    @property
    def channel_id(self) -> str:
        """The channel as settings name it, such as `slack:T1/C1`."""
        return f"{self.platform}:{self.workspace}/{self.channel}"


@dataclass(frozen=True, slots=True)
class Question:
    """A question with all that is needed to answer it, also after a restart."""

    key: str
    """Unique over everything that is ever taken, and made of the platform's own ids: the same message, however often
    and by whichever event it arrives, has the same key."""
    task: TaskKind
    text: str
    asker: Asker
    place: Place  # where the answer goes
    conversation: str
    """What belongs together: questions of one conversation remember each other and are answered one after another.
    Unique over all platforms, such as `slack:T1/C1/1700000000.000100`."""
    at: datetime  # when it was asked, by the platform's clock
    message: str = ""  # the id of the message that asks, which replies refer to; empty for commands
    only_asker: bool = False  # whether the answer is shown to the asker alone
    unasked: bool = False  # whether nobody addressed the bot: nothing is posted unless it is answered
    handle: str = ""
    """What else the platform needs to answer, such as an interaction's token. A secret: it is in no log and no record,
    and it is forgotten when the question is done."""

    @property
    def language(self) -> str:
        """Its language, detected from its beginning."""
        return detect_language(self.text[:2_000])


@dataclass(frozen=True, slots=True)
class PostedMessages:
    """The messages that show an answer, in order, by the platform's ids."""

    messages: tuple[str, ...] = ()
    begun: bool = False
    """Whether more is to be posted once these are stored: what a platform could not find again is filled after that."""

    def __bool__(self) -> bool:
        return bool(self.messages)


@dataclass(frozen=True, slots=True)
class ConversationMessage:
    """A message of a conversation as the platform returns it."""

    message: str
    user: str  # who wrote it; empty for the bot itself
    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class DeliveryCapabilities:
    """What the platform can do with the answer to one question."""

    edits: bool = True
    """Whether what was posted can be changed. Where not, the answer is posted once, when it is whole."""
    reads_back: bool = True
    """Whether the platform can be asked what we posted. Where not, an answer that was perhaps posted is not posted
    again, and the record says so."""
    pace: float = 1.0  # how many seconds lie at least between two changes of a post, the last one excepted


class ProgressSign(StrEnum):
    """What tells an asker, besides messages, that their question was taken."""

    NONE = ""
    SHOWN = "shown"  # they see that something is done, such as that we are typing
    WORDED = "worded"  # they can read how it stands


class IntakeStatus(StrEnum):
    """What became of a question at intake."""

    NEW = "new"  # it is on the disk, and will be answered
    KNOWN = "known"  # it was taken before
    REFUSED = "refused"  # it could not be kept; the asker was told if there was a way to


class QuestionState(StrEnum):
    """Where a question stands in the queue."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"


class DeliveryOutcome(StrEnum):
    """How a question ended."""

    DELIVERED = "delivered"
    SILENT = "silent"  # nobody had asked the bot, and it had nothing to say
    STOPPED = "stopped"  # somebody stopped it; what was posted says so
    RETRACTED = "retracted"  # the question or its answer was taken back; what was posted is gone
    UNCERTAIN = "uncertain"
    """The answer was perhaps posted before a crash, where the platform cannot be asked: it was not posted again."""
    UNDELIVERABLE = "undeliverable"  # the platform refuses posts there for good, such as in an archived channel


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A question, who asks it, and what came before it."""

    text: str
    asker: Asker
    thread: str = ""
    earlier: tuple[Turn, ...] = ()
    corpora: tuple[str, ...] = ()  # which corpora to look in; empty for all that the asker may read
    system: str = ""
    tone: str | None = None  # how a model words the answer; None as settings say for all
    effort: Effort | None = None  # how much is done for the answer; None likewise
    id: str = ""  # the turn's id in the record; empty for a new one
    message: str = ""  # the platform's id of the message that asks
    ticket: int = 0  # the question's number at the desk; 0 for one that never stood there
    taken: datetime | None = None  # when the desk took it; None where this is not its first turn
    within: tuple[str, ...] | None = None
    """What a channel narrows its scope to; None for all. Unlike `corpora`, what cannot be read is passed over."""
    because: str = ""  # why this system answers and not the usual one, such as a budget that is spent; for the record
    seed: str = ""  # what chance in the turn follows from; empty: its id


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a turn failed or was refused: a kind for programs, a line for people, and what to do."""

    kind: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class PinMark:
    """Whose answer it is, where an admin pinned one to the question."""

    turn_id: str  # the turn that was answered first
    name: str
    day: str  # in ISO 8601


@dataclass(frozen=True, slots=True)
class TurnResult:
    """An answer as it is delivered, and what it took."""

    answer_id: str
    answer: Answer
    text: str  # with footnote marks where it was answered; one of our own templates otherwise
    system: str
    model: str | None
    usage: Usage
    seconds: float
    failure: Failure | None = None
    remembered: frozenset[DocumentId] = frozenset()
    """What the earlier turns stand on that it remembered. The record keeps it with the question."""
    pinned: PinMark | None = None  # where the answer was pinned, and no system asked
    effort: Effort | None = None  # how much was done for an answer; None of a check, and of what was never begun

    @property
    def cited_documents(self) -> frozenset[DocumentId]:
        return frozenset((citation.corpus, citation.document) for citation in self.answer.citations)

    @property
    def cited_titles(self) -> tuple[str, ...]:
        """The titles of the pages that it cites, most cited first."""
        titles = {citation.number: citation.title for citation in self.answer.citations}
        counted = Counter(titles[number] for sentence in self.answer.sentences for number in sentence.citations)
        return tuple(title for title, _ in counted.most_common())


def build_turn_request(question: Question, *, turn_id: str, ticket: int) -> TurnRequest:
    return TurnRequest(
        question.text,
        question.asker,
        thread=question.place.thread,
        id=turn_id,
        message=question.message,
        ticket=ticket,
    )


log = logging.getLogger(__name__)


def log_event(
    level: int, event: str, question: Question | None = None, error: BaseException | None = None, **facts: object
) -> None:
    """Log an event with its facts as fields and its cause as text."""
    about = {"key": question.key, "channel": question.place.channel_id} if question else {}
    cause = {"cause": _format_cause(error, question.handle if question else "")} if error else {}
    log.log(level, event, extra={**about, **facts, **cause})


def _format_cause(error: BaseException, secret: str) -> str:
    """Return the error with its traceback, which names no values, and without the secret."""
    text = "".join(traceback.format_exception(error)).strip()
    return text.replace(secret, "…") if secret else text
