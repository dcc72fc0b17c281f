"""What the desk adds to a turn's record: what was posted where, word for word, or why not. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from bot.desk.types import Outcome, Posted, Question
from bot.showing.view import Judgement, ShownSentence, Source, View
from storage.types import EntryKind, LogEntry

STOPPED = "stopped"
"""Under this key an `edited` entry says who stopped a turn, which the process may not outlive."""


@dataclass(frozen=True, slots=True)
class Showed:
    """What came of showing a final view."""

    outcome: Outcome
    posted: Posted
    view: View | None
    why: str = ""
    """Why it was not posted, or not for certain."""
    recorded: bool = False
    """Whether the log has it already."""


def delivered(turn_id: str, ticket: int, question: Question, showed: Showed) -> LogEntry:
    """Return how a question was done with. Of an answer that nobody saw it says why."""
    place, view = question.place, showed.view
    body = {
        "ticket": ticket,
        "outcome": showed.outcome,
        "platform": place.platform,
        "workspace": place.workspace,
        "channel": place.channel,
        "thread": place.thread,
        "only_asker": question.only_asker,
        "messages": showed.posted.messages,
        "text": plain(view) if view and showed.outcome is not Outcome.SILENT else "",
        "left_out": view.left_out if view else "",
        "why": showed.why,
    }
    return LogEntry(turn_id, EntryKind.DELIVERED, body)


def retracted(turn_id: str, messages: Sequence[str], *, by: str, why: str) -> LogEntry:
    """Return that what was posted was taken back."""
    return LogEntry(turn_id, EntryKind.EDITED, {"retracted": True, "removed": tuple(messages), "by": by, "why": why})


def withheld(turn_id: str) -> LogEntry:
    """Return that an answer was not shown, since what it was made from could not be read there any more."""
    why = "what it was made from could not be read there any more"
    return LogEntry(turn_id, EntryKind.EDITED, {"withheld": True, "why": why})


def stopping(turn_id: str, *, by: str) -> LogEntry:
    """Return that somebody stopped a turn."""
    return LogEntry(turn_id, EntryKind.EDITED, {STOPPED: True, "by": by})


def plain(view: View) -> str:
    """Return a view as plain text, in its order: what a reader of the record sees that its reader saw."""
    said = "".join(map(_sentence, view.sentences)).strip()
    nearest = (view.nearest_label, *map(_source, view.nearest)) if view.nearest else ()
    judged = map(_judgement, view.judgements)
    parts = (view.notice, view.text, *judged, said, view.left_out, *map(_source, view.sources), *nearest)
    return "\n\n".join(filter(None, parts))


def _sentence(sentence: ShownSentence) -> str:
    note = f"({sentence.note}) " if sentence.note else ""
    marks = "".join(f"[{number}]" for number in sentence.numbers)
    before = "\n\n" if sentence.paragraph else " "
    return f"{before}{note}{sentence.text} {marks}"


def _judgement(found: Judgement) -> str:
    marks = "".join(f"[{number}]" for number in found.numbers)
    return f"{found.verdict}: “{found.claim}” {found.reason} {marks}".rstrip()


def _source(source: Source) -> str:
    number = f"[{source.number}] " if source.number else ""
    named = " › ".join(filter(None, (source.title, source.section)))
    return f"{number}{named}{f' {source.url}' if source.url else ''}"
