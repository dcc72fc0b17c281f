"""What becomes of a question that was begun before: pure. `running` does what is decided here.

The queue's row says how far posting came, the log how far answering came. Whoever was killed between any two of our
steps left one of these states behind.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from bot.desk.recalling import Recalled
from bot.desk.recording import STOPPED
from bot.desk.types import Outcome, Ways
from bot.turn_record import INTERRUPTED
from pipeline.types import Status
from storage.types import EntryKind, LogEntry, QueuedQuestion


class Act(StrEnum):
    """What is done next."""

    ASK = "ask"
    """It is answered by a new turn; an open one is closed as interrupted first."""
    SHOW = "show"
    """It was answered: the answer of the record is shown."""
    SHOWN = "shown"
    """Its answer was posted whole, and only the record of that is missing."""
    SAY_STOPPED = "say_stopped"
    """Somebody stopped it: what stands there has to say so."""
    REMOVE = "remove"
    """It was taken back: what stands there has to go."""
    DOUBT = "doubt"
    """Its last view was perhaps posted, and nobody can be asked: it is not posted again."""
    SETTLE = "settle"
    """All is done and recorded, but the queue does not know."""


@dataclass(frozen=True, slots=True)
class Next:
    """What is done, and for `SETTLE` how the question ended."""

    act: Act
    outcome: Outcome = Outcome.DELIVERED


def after_restart(
    row: QueuedQuestion,
    ways: Ways,
    entries: Sequence[LogEntry],
    turn: Recalled | None,
    *,
    fits: bool,
    reworded: bool = False,
) -> Next:
    """Decide by the question's row and its turn's entries in the log.

    Args:
        row: The question as the queue has it.
        ways: What the platform can do with its answer.
        entries: All that the log has of the turn that the row names.
        turn: The same, read; None where there is no turn.
        fits: Whether all that the turn's answer was made from may still be read there.
        reworded: Whether the question is worded otherwise now than when the turn was opened.
    """
    if turn is not None and turn.retracted:
        return Next(Act.REMOVE, Outcome.RETRACTED)
    if not reworded and (ended := _outcome(entries)) is not None:
        return Next(Act.SETTLE, ended)
    if row.sending and not ways.reads_back:
        return Next(Act.DOUBT, Outcome.UNCERTAIN)
    if reworded:
        return Next(Act.ASK)
    if any(entry.kind is EntryKind.EDITED and entry.body.get(STOPPED) for entry in entries):
        return Next(Act.SAY_STOPPED, Outcome.STOPPED)
    return Next(_with_answer(row, ways, turn, fits=fits))


def _with_answer(row: QueuedQuestion, ways: Ways, turn: Recalled | None, *, fits: bool) -> Act:
    if turn is None or _broken_off(turn):
        return Act.ASK
    if row.posted and not ways.edits:
        return Act.SHOWN
    return Act.SHOW if fits else Act.ASK


def _outcome(entries: Sequence[LogEntry]) -> Outcome | None:
    named = [
        entry.body["outcome"] for entry in entries if entry.kind is EntryKind.DELIVERED and "outcome" in entry.body
    ]
    return Outcome(named[-1]) if named else None


def _broken_off(turn: Recalled) -> bool:
    """Return whether a turn ended because its process did, and not by itself."""
    if turn.answered is None:
        return True
    failure = turn.answered.failure
    return turn.answered.answer.status is Status.CANCELLED or (failure is not None and failure.kind == INTERRUPTED)
