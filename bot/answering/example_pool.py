"""Make worked examples of answers that an admin approves, and load those that a turn may show.

Only an answer whose every statement was confirmed becomes one. An example is shown only where all that it was made from
may be read, and while none of it is forgotten or was taken back.
"""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from bot.answering.turn_record import TurnRecord, read_turn_record
from bot.views.catalog import render_marks
from pipeline.errors import UnreadableReply
from pipeline.prompts.demonstrations import load_own_demos
from pipeline.replies.reply_format import extract_json_object
from pipeline.replies.stage_replies import QUERY
from pipeline.types import Answer, DemoClaim, DemoNote, Demonstration, Status
from storage.record.admin_choices import ApprovedExamples
from storage.types import ApprovedExample, DocumentId, EntryKind, LogEntry, SearchQuery, Verdict

MAX_EARLIER = 4  # earlier turns that an example shows
ADDED, DROPPED, PINNED, UNPINNED = "added", "dropped", "pinned", "unpinned"
Unfit = Literal["unknown", "check", "unanswered", "retracted", "unconfirmed", "forgotten"]


class UnfitExample(Exception):
    """An answer cannot be an example."""

    def __init__(self, reason: Unfit) -> None:
        super().__init__(reason)
        self.reason: Unfit = reason


def build_demo(entries: Sequence[LogEntry]) -> Demonstration:
    """Return the example that a turn of the log makes; pure.

    Raises:
        UnfitExample: It was not answered, not everything in it was confirmed, or it was taken back.
        ValueError: The record is not as any version wrote it.
    """
    record = read_turn_record(entries)
    if not record or not record.result:
        raise UnfitExample("unknown" if not record else "unanswered")
    answer = record.result.answer
    if reason := _find_unfitness(record, answer):
        raise UnfitExample(reason)
    query = _find_query(entries)
    numbers = {one.passage_id: one.number for one in answer.citations}
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
    """Return an answer as a model writes it: the numbers in brackets before the full stop."""
    said = []
    for sentence in answer.sentences:
        body = sentence.text.rstrip(".!?。")
        said.append(f"{body} {render_marks(sentence.citations)}{sentence.text[len(body) :]}")
    return " ".join(said)


def _read_earlier(entries: Sequence[LogEntry]) -> tuple[tuple[Literal["user", "bot"], str], ...]:
    """Return the last of what was said before; the last of that is the bot's."""
    opened = next(entry.body for entry in entries if entry.kind is EntryKind.TURN_OPENED)
    said = [str(text) for text in opened.get("earlier", ())][-MAX_EARLIER:]
    return tuple(("user" if (len(said) - place) % 2 == 0 else "bot", text) for place, text in enumerate(said))


def _find_query(entries: Sequence[LogEntry]) -> SearchQuery | None:
    """Return what the model looked up; of a turn that asked none for it, what was searched for first."""
    steps = [entry.body for entry in entries if entry.kind is EntryKind.STEP]
    for step in steps:
        if step.get("stage") == "query" and (query := _read_query(step)):
            return query
    first = next((step for step in steps if step.get("stage") == "search"), None)
    return SearchQuery(str(first["query"]), first.get("time")) if first and first.get("query") else None


def _read_query(step: Mapping[str, Any]) -> SearchQuery | None:
    reply = str(step.get("reply", ""))
    try:
        return QUERY.from_json(extract_json_object(reply)) if step.get("format") == "schema" else QUERY.from_text(reply)
    except UnreadableReply:
        return None


def build_pool_entry(turn_id: str, by: str, state: str, where: str = "") -> LogEntry:
    return LogEntry(turn_id, EntryKind.FEEDBACK, {"what": "example", "by": by, "where": where, "state": state})


FindForgotten = Callable[[Collection[DocumentId]], Awaitable[frozenset[DocumentId]]]


async def approve_turn(
    entries: Sequence[LogEntry], pool: ApprovedExamples, by: str, find_forgotten: FindForgotten, *, where: str = ""
) -> bool:
    """Keep a turn as an example, and return whether it was none before.

    Raises:
        UnfitExample: It cannot be one.
        StorageError: It could not be kept.
        ValueError: The record is not as any version wrote it.
    """
    demo = build_demo(entries)
    if await find_forgotten(demo.documents):
        raise UnfitExample("forgotten")
    return await pool.add(ApprovedExample(demo.id, by, asdict(demo)), build_pool_entry(demo.id, by, ADDED, where))


async def load_demos(
    pool: ApprovedExamples, scope: Collection[str], find_forgotten: FindForgotten
) -> tuple[Demonstration, ...]:
    """Return the examples that a turn of this scope may show: the approved ones, newest first, and ours.

    Raises `StorageError`.
    """
    kept = [demo for one in await pool.all() if (demo := read_demo(one))]
    admitted = [one for one in kept if one.corpora and set(one.corpora) <= set(scope)]
    gone = await find_forgotten({document for one in admitted for document in one.documents})
    return (*(one for one in admitted if gone.isdisjoint(one.documents)), *load_own_demos())


def read_demo(example: ApprovedExample) -> Demonstration | None:
    """Return an approved example; None for one that this version cannot read."""
    try:
        demo: Demonstration = _adapter().validate_python(example.body)
    except ValidationError:
        return None
    return replace(demo, pinned=example.pinned)


@cache
def _adapter() -> TypeAdapter[Demonstration]:
    return TypeAdapter(Demonstration)
