"""What the desk needs of the rest of the bot, as callables: `opening` gives it the real ones, tests their own."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.access import Asker
from bot.desk.recalling import Recalled
from bot.desk.types import Question, Task
from bot.platform import Platform
from bot.showing.view import View
from bot.turns import Answered, Asked, Failure
from pipeline.types import Event, Status
from storage.types import LogEntry, QueuedQuestion

Answering = Callable[[Asked, Callable[[Event], None]], Awaitable[Answered]]


@dataclass(frozen=True, slots=True)
class Plan:
    """How a question is answered: decided when its turn comes, by what holds then."""

    asked: Asked
    notice: str = ""
    """What the reader must know beforehand."""
    refused: Failure | None = None
    """Why nothing is answered, its message in the asker's language; nothing is asked then."""


@dataclass(frozen=True, slots=True)
class Knowing:
    """What is known and done elsewhere."""

    plan: Callable[[Platform, Question, QueuedQuestion, str], Awaitable[Plan]]
    """Decides on scope, remembered conversation, settings of the channel and budgets, for the turn of that id. Raises
    `StorageError`."""
    answer: Answering
    """`bot.answering.answer`; it raises what that raises."""
    check: Answering
    ended: Callable[[View, Question, Answered], Awaitable[View]]
    """Makes of the last view on the way the one that stays, with what may be seen and pressed there now."""
    entries: Callable[[str], Awaitable[tuple[LogEntry, ...]]]
    """All that the log has of a turn."""
    append: Callable[[LogEntry], Awaitable[object]]
    """Adds to the log."""
    interrupt: Callable[[str], Awaitable[bool]]
    """Closes a turn that was opened and that nobody runs any more."""
    unanswered: Callable[[Asked, Task, Status, Failure], Awaitable[None]]
    """Opens and closes a turn in which nothing was asked, for the record of why."""
    readable: Callable[[Question, Recalled], Awaitable[bool]]
    """Whether all that an answer was made from may still be read where it is to be shown."""
    governs: Callable[[Question, Asker], Awaitable[bool]]
    """Whether this person rules the channel of a question, and may stop and take back what others asked."""
