"""What the log keeps of a turn: pure functions from values to entries. `answering` appends them."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from bot.turns import Answered, Asked, Failure
from bot.words import say
from pipeline.saying import Withheld
from pipeline.types import Answer, AnsweredSentence, Conversation, Status, Usage
from storage.types import EntryKind, Hit, LogEntry, Step

INTERRUPTED = "interrupted"
"""The kind of failure of a turn that was cut short with its process."""


def opening(
    asked: Asked, talk: Conversation, corpora: Mapping[str, datetime | None], ran: Mapping[str, str | None]
) -> Mapping[str, Any]:
    """Return what is known before anything is answered: who asks what, what may be read, and what will answer.

    `corpora` are those that may be read, each with its last refresh; `ran` names the task, the system, the models that
    may be asked, and the versions of everything. What was said earlier may come from other corpora than may be read
    now: whoever sees how this answer was made sees something of them, so they are named.
    """
    return {
        "asker": asked.asker,
        "thread": asked.thread,
        "message": asked.message,
        "ticket": asked.ticket,
        "because": asked.because,
        "question": talk.question.text,
        "language": talk.question.language,
        "earlier": [turn.text for turn in talk.earlier],
        "earlier_corpora": sorted({corpus for turn in talk.earlier for corpus in turn.corpora}),
        "corpora": corpora,
        **ran,
    }


def closing(
    answered: Answered, steps: Sequence[Step], withheld: Sequence[Withheld], spoken: Sequence[AnsweredSentence]
) -> tuple[LogEntry, ...]:
    """Return the turn's steps, and how it ended: all that was said, on what, and what was not let through.

    `spoken` are the sentences that were shown as they passed the gate. They are the answer's, but of a turn that broke
    off, whose answer has none.
    """
    answer = answered.answer
    body = {
        "status": answer.status,
        "text": answered.text,
        "sentences": answer.sentences,
        "spoken": () if answer.sentences else spoken,
        "citations": answer.citations,
        "claims": answer.claims,
        "nearest": [_page(hit) for hit in answer.nearest],
        "withheld": withheld,
        "system": answered.system,
        "model": answered.model,
        "usage": answered.usage,
        "seconds": answered.seconds,
        "failure": answered.failure,
    }
    return (*(_step(answered, step) for step in steps), LogEntry(answered.answer_id, EntryKind.TURN_CLOSED, body))


def interruption(turn_id: str, *, language: str) -> LogEntry:
    """Return the end of a turn that its process did not live to close. What it had done is not known."""
    failure = Failure(INTERRUPTED, "The process ended before the turn did.", "The question is asked again.")
    return unanswered(turn_id, Status.FAILED, failure, say("failed", language))


def unanswered(turn_id: str, status: Status, failure: Failure, text: str = "") -> LogEntry:
    """Return the end of a turn without an answer. `text` is what was said instead, where that is not the failure's."""
    answered = Answered(
        turn_id,
        Answer(status),
        text or failure.message,
        system="",
        model=None,
        usage=Usage(),
        seconds=0.0,
        failure=failure,
    )
    (closed,) = closing(answered, (), (), ())
    return closed


def _step(answered: Answered, step: Step) -> LogEntry:
    body = {**step.facts, "stage": step.stage, "milliseconds": step.milliseconds}
    return LogEntry(answered.answer_id, EntryKind.STEP, body)


def _page(hit: Hit) -> Mapping[str, Any]:
    """Keep a page whole, so that it can be shown again; the first three are what a list of pages shows."""
    named = {"passage_id": hit.passage.id, "title": hit.document.title, "url": hit.document.url}
    return named | {part.name: getattr(hit, part.name) for part in fields(hit)}
