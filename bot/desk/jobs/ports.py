"""What jobs need from outside: the desk's collaborators as callables, the clock, and the log."""

import asyncio
import logging
import traceback
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from bot.access import Asker
from bot.desk.turn_record import TurnRecord
from bot.desk.types import Failure, Question, TaskKind, TurnRequest, TurnResult
from bot.platforms.shared.platform_contract import Platform
from bot.server.supervisor import wait_for_first
from bot.views.turn_view import View
from pipeline.types import Event, Status
from storage.types import LogEntry, QueuedQuestion


def _read_utc_now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Clock:
    """The time: a date that may jump, and a wait that does not. Tests bring their own."""

    now: Callable[[], datetime] = _read_utc_now
    """The date, with a time zone. It may jump: only leases and records use it."""
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    """Waits so many seconds, however the date jumps meanwhile."""

    async def sleep_unless(self, event: asyncio.Event, seconds: float) -> None:
        await wait_for_first(event.wait(), self.sleep(seconds))


log = logging.getLogger("footnote.desk")  # the desk's own logger: what it says goes where the server's logs go


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


AnswerFunction = Callable[[TurnRequest, Callable[[Event], None]], Awaitable[TurnResult]]


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """How a question is answered, decided when its turn comes."""

    request: TurnRequest
    notice: str = ""  # what the reader must know beforehand
    refused: Failure | None = None
    """Why nothing is answered, its message in the asker's language; nothing is asked then."""


@dataclass(frozen=True, slots=True)
class DeskPorts:
    """What jobs use of the rest of the bot."""

    plan: Callable[[Platform, Question, QueuedQuestion, str], Awaitable[TurnPlan]]
    """Decides on scope, remembered conversation, settings of the channel and budgets, for the turn of that id. Raises
    `StorageError`."""
    answer: AnswerFunction  # `bot.answering.answer`; it raises what that raises
    check: AnswerFunction
    finish_view: Callable[[View, Question, TurnResult], Awaitable[View]]
    """Makes of the last view on the way the one that stays, with what may be seen and pressed there now."""
    load_entries: Callable[[str], Awaitable[tuple[LogEntry, ...]]]  # all that the log has of a turn
    append: Callable[[LogEntry], Awaitable[object]]  # adds to the log
    close_interrupted: Callable[[str], Awaitable[bool]]  # closes a turn that was opened and that nobody runs any more
    record_unanswered: Callable[[TurnRequest, TaskKind, Status, Failure], Awaitable[None]]
    """Opens and closes a turn in which nothing was asked, for the record of why."""
    is_readable: Callable[[Question, TurnRecord], Awaitable[bool]]
    """Whether all that an answer was made from may still be read where it is to be shown."""
    may_govern: Callable[[Question, Asker], Awaitable[bool]]
    """Whether this person rules the channel of a question, and may stop and take back what others asked."""
