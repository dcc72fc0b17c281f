"""Make worked examples from answers that an admin approves, and load those that a turn may show to a model.

Only an answer whose statements were all confirmed becomes an example. An example is shown only if all its corpora may
be read, none of its documents is forgotten, and its answer was not retracted.
"""

from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cache
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from bot.answering.turn_record import TurnRecord, read_turn_record
from bot.views.catalog import render_marks
from pipeline.prompts.demonstrations import load_own_demos
from pipeline.types import Answer, DemoClaim, DemoNote, Demonstration, Status
from storage.record.admin_choices import ApprovedExamples
from storage.types import ApprovedExample, DocumentId, EntryKind, LogEntry, Verdict

MAX_EARLIER = 4  # the most earlier turns that an example shows
ADDED, DROPPED, PINNED, UNPINNED = "added", "dropped", "pinned", "unpinned"
Unfit = Literal["unknown", "check", "unanswered", "retracted", "unconfirmed", "forgotten"]


class UnfitExample(Exception):
    """An answer cannot be an example."""

    def __init__(self, reason: Unfit) -> None:
        super().__init__(reason)
        self.reason: Unfit = reason


def build_demo(entries: Sequence[LogEntry]) -> Demonstration:
    """Return the example made from a recorded turn; pure.

    Raises:
        UnfitExample: The turn was not answered, not fully confirmed, or retracted.
        ValueError: The record has an unknown format.
    """
    record = read_turn_record(entries)
    if not record or not record.result:
        raise UnfitExample("unknown" if not record else "unanswered")
    answer = record.result.answer
    if reason := _find_unfitness(record, answer):
        raise UnfitExample(reason)
    query = record.result.query
    numbers = {citation.passage_id: citation.number for citation in answer.citations}
    return Demonstration(
        record.turn_id,
        (*_read_earlier(entries), ("user", record.question)),
        (record.at or datetime.now(UTC)).date(),
        tuple(
            DemoNote(citation.quote, citation.title, citation.section, citation.date) for citation in answer.citations
        ),
        _write_answer(answer),
        tuple(
            DemoClaim(
                claim.claim.text,
                claim.verdict,
                tuple(sorted({numbers[key] for key in claim.evidence if key in numbers})),
            )
            for claim in answer.claims
            if not numbers.keys().isdisjoint(claim.evidence)
        ),
        query.text if query else "",
        str((query and query.time) or "none"),
        record.language,
        tuple(sorted(record.corpora)),
        tuple(sorted(record.documents)),
    )


def _find_unfitness(record: TurnRecord, answer: Answer) -> Unfit | None:
    if record.task == "check":
        return "check"
    if record.retracted:
        return "retracted"
    if answer.status is not Status.ANSWERED:
        return "unanswered"
    confirmed = answer.claims and all(claim.verdict is Verdict.SUPPORTS for claim in answer.claims)
    return None if confirmed and not answer.withheld else "unconfirmed"


def _write_answer(answer: Answer) -> str:
    """Return an answer as a model writes it, with citation numbers in brackets before each full stop."""
    written = []
    for sentence in answer.sentences:
        body = sentence.text.rstrip(".!?。")
        written.append(f"{body} {render_marks(sentence.citations)}{sentence.text[len(body) :]}")
    return " ".join(written)


def _read_earlier(entries: Sequence[LogEntry]) -> tuple[tuple[Literal["user", "bot"], str], ...]:
    """Return the last messages before the question, each with its speaker.

    The record lacks the speakers: they count as alternating, the last one as the bot.
    """
    opened = next(entry.body for entry in entries if entry.kind is EntryKind.TURN_OPENED)
    texts = [str(text) for text in opened.get("earlier", ())][-MAX_EARLIER:]
    return tuple(("user" if (len(texts) - place) % 2 == 0 else "bot", text) for place, text in enumerate(texts))


def build_pool_entry(turn_id: str, by: str, state: str, where: str = "") -> LogEntry:
    return LogEntry(turn_id, EntryKind.FEEDBACK, {"what": "example", "by": by, "where": where, "state": state})


FindForgotten = Callable[[Collection[DocumentId]], Awaitable[frozenset[DocumentId]]]


async def approve_turn(
    entries: Sequence[LogEntry], pool: ApprovedExamples, by: str, find_forgotten: FindForgotten, *, where: str = ""
) -> bool:
    """Store a turn as an example, and return whether it is new.

    Raises:
        UnfitExample: The turn cannot be an example.
        StorageError: The example could not be stored.
        ValueError: The record has an unknown format.
    """
    demo = build_demo(entries)
    if await find_forgotten(demo.documents):
        raise UnfitExample("forgotten")
    return await pool.add(ApprovedExample(demo.id, by, asdict(demo)), build_pool_entry(demo.id, by, ADDED, where))


async def load_demos(
    pool: ApprovedExamples, scope: Collection[str], find_forgotten: FindForgotten
) -> tuple[Demonstration, ...]:
    """Return the examples that a turn may show: approved ones, newest first, then built-in. Raises `StorageError`."""
    demos = filter(None, map(read_demo, await pool.all()))
    admitted = [demo for demo in demos if demo.corpora and set(demo.corpora) <= set(scope)]
    gone = await find_forgotten({document for demo in admitted for document in demo.documents})
    return (*(demo for demo in admitted if gone.isdisjoint(demo.documents)), *load_own_demos())


def read_demo(example: ApprovedExample) -> Demonstration | None:
    """Return an approved example; None if this version cannot read it."""
    try:
        demo: Demonstration = _adapter().validate_python(example.body)
    except ValidationError:
        return None
    return replace(demo, pinned=example.pinned)


@cache
def _adapter() -> TypeAdapter[Demonstration]:
    return TypeAdapter(Demonstration)
