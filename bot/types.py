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
from storage.types import DocumentId, SearchQuery

MAX_EARLIER_TURNS = 20  # how many turns of a conversation are remembered at least
TaskKind = Literal["ask", "check"]
"""Whether a message is answered as a question or fact-checked as a claim."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where something is posted."""

    platform: str
    workspace: str
    channel: str  # the channel or DM of the settings; the parent of a Discord thread
    thread: str = ""  # the thread in it; empty for the channel itself

    @property
    def channel_id(self) -> str:
        """The channel's id in the settings, such as `slack:T1/C1`."""
        return f"{self.platform}:{self.workspace}/{self.channel}"


@dataclass(frozen=True, slots=True)
class Question:
    """A question with everything needed to answer it, also after a restart."""

    key: str
    """Unique over all questions ever accepted, and made of the platform's own ids: a message has the same key however
    often and by whichever event it arrives."""
    task: TaskKind
    text: str
    asker: Asker
    place: Place  # where the answer goes
    conversation: str
    """Each question of a conversation is answered with the earlier ones, and after them. Unique over all platforms,
    such as `slack:T1/C1/1700000000.000100`."""
    at: datetime  # when it was asked, by the platform's clock
    message: str = ""  # the id of the asking message, which replies refer to; empty for commands
    only_asker: bool = False  # whether only the asker sees the answer
    unasked: bool = False  # whether the message did not address the bot: without an answer, nothing is posted
    handle: str = ""
    """A secret that the platform needs to answer, such as an interaction's token: never logged or recorded, and deleted
    when the question is done."""

    @property
    def language(self) -> str:
        """The question's language, detected from the beginning of its text."""
        return detect_language(self.text[:2_000])


@dataclass(frozen=True, slots=True)
class PostedMessages:
    """The messages that show an answer, in order, by the platform's ids."""

    messages: tuple[str, ...] = ()
    begun: bool = False
    """Whether these are empty: a platform that cannot find a message again fills it after its id is stored."""

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
    """How a platform can show the answer to one question."""

    edits: bool = True  # whether posts can be edited; otherwise the answer is posted once, when it is complete
    reads_back: bool = True
    """Whether the platform can return our posts. Otherwise an answer that may have been posted is not posted again, and
    the record says so."""
    pace: float = 1.0  # minimum seconds between two edits of a post, except before the last


class ProgressSign(StrEnum):
    """How an asker sees, without a message, that their question was accepted."""

    NONE = ""
    SHOWN = "shown"  # they see an activity, such as that the bot is typing
    WORDED = "worded"  # they can read the progress


class IntakeStatus(StrEnum):
    NEW = "new"  # stored on disk, and will be answered
    KNOWN = "known"  # accepted before
    REFUSED = "refused"  # not stored; asker notified if possible


class QuestionState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"


class DeliveryOutcome(StrEnum):
    """How a question ended."""

    DELIVERED = "delivered"
    SILENT = "silent"  # the message did not address the bot, and nothing was found to answer
    STOPPED = "stopped"  # a user stopped it; the post says so
    RETRACTED = "retracted"  # the question or its answer was retracted, and its posts deleted
    UNCERTAIN = "uncertain"
    """The answer may have been posted before a crash; the platform cannot be asked, so it was not posted again."""
    UNDELIVERABLE = "undeliverable"  # the platform permanently refuses posts there, such as in an archived channel


@dataclass(frozen=True, slots=True)
class StudyDraw:
    """Which of two compared systems answers a question. The asker does not know it."""

    system: str
    systems: tuple[str, ...]
    number: int  # among the person's questions in the channel since it agreed, from 0
    propensity: float = 0.5


@dataclass(frozen=True, slots=True)
class TurnRequest:
    """A question, its asker, and the conversation before it."""

    text: str
    asker: Asker
    thread: str = ""
    earlier: tuple[Turn, ...] = ()
    corpora: tuple[str, ...] = ()  # corpora to search; empty for all that the asker may read
    system: str = ""
    tone: str | None = None  # how a model words the answer; default from settings
    effort: Effort | None = None  # how much is done for the answer; default from settings
    id: str = ""  # the turn's id in the record; empty for a new one
    message: str = ""  # the platform's id of the asking message
    ticket: int = 0  # the question's number at the desk; 0 if it was never there
    taken: datetime | None = None  # when the desk accepted it; None if this is not its first turn
    within: tuple[str, ...] | None = None
    """The corpora of the channel's settings; None for all. Unlike `corpora`, unreadable ones are ignored."""
    because: str = ""  # why another system than usual answers, such as a spent budget; for the record
    seed: str = ""  # the random seed of the turn; default: its id
    study: StudyDraw | None = None  # set if `system` was drawn for a comparison


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a turn failed or was refused: a kind for programs, a line for users, and a hint."""

    kind: str
    message: str
    hint: str


@dataclass(frozen=True, slots=True)
class PinMark:
    """Who pinned the answer to the question, and when."""

    turn_id: str  # the turn whose answer was pinned
    name: str
    day: str  # in ISO 8601


@dataclass(frozen=True, slots=True)
class TurnResult:
    """An answer as it is delivered, and its cost."""

    answer_id: str
    answer: Answer
    text: str  # the answer with footnote marks, or a sentence of `bot.views.words` if there is none
    system: str
    model: str | None
    usage: Usage
    seconds: float
    failure: Failure | None = None
    remembered: frozenset[DocumentId] = frozenset()
    """Documents behind the earlier turns that it remembered; the record stores them with the question."""
    pinned: PinMark | None = None  # set if a pinned answer was shown and no system was run
    effort: Effort | None = None  # how much was done for an answer; None for a check, or if none was started
    quoted_because: Failure | None = None  # why the model did not answer, so that only quotations were looked for
    web_fault: Failure | None = None  # why the web was not searched next to the corpora
    query: SearchQuery | None = None  # that the model wrote, otherwise that of the first search
    study: StudyDraw | None = None  # set if the answer is part of a blind comparison

    @property
    def fault(self) -> Failure | None:
        """Why the turn failed, or why its model did, so that it was finished without one."""
        return self.failure or self.quoted_because

    @property
    def cited_documents(self) -> frozenset[DocumentId]:
        return frozenset((citation.corpus, citation.document) for citation in self.answer.citations)

    @property
    def cited_titles(self) -> tuple[str, ...]:
        """The titles of the cited pages, those cited most often first."""
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
    """Log an event with its facts as fields and the error's traceback as text."""
    about = {"key": question.key, "channel": question.place.channel_id} if question else {}
    cause = {"cause": _format_cause(error, question.handle if question else "")} if error else {}
    log.log(level, event, extra={**about, **facts, **cause})


def _format_cause(error: BaseException, secret: str) -> str:
    """Return the error's traceback, without the values of variables and without the secret."""
    text = "".join(traceback.format_exception(error)).strip()
    return text.replace(secret, "…") if secret else text
