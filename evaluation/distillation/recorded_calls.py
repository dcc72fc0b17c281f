"""Read a turn's model calls from the record, with the facts of their prompts. Pure.

The record has only references to these facts: the id of a passage, the span of a sentence, the number of shown turns of
the conversation. If a fact no longer exists, because its passage has changed, the call is left out.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pipeline.stages.findings import SourcedFinding
from pipeline.types import Conversation, Turn
from storage.record.comparisons import RATED
from storage.record.record_search import TurnSummary
from storage.types import Document, DocumentId, EntryKind, Evidence, LogEntry, Passage

POOR = 2  # up to this rating of 5, an answer was disliked
Passages = Mapping[str, tuple[Passage, Document]]


class LostFact(Exception):
    """A part of a recorded prompt no longer exists; `str()` says which part."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    """A successful model call: template and facts of its prompt, and its reply."""

    template: str
    stage: str
    facts: Mapping[str, Any]  # references, as recorded
    reply: str
    structured: bool


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """Those parts of a recorded turn that lessons need."""

    summary: TurnSummary
    question: str
    earlier: tuple[str, ...]
    calls: tuple[RecordedCall, ...]
    said: frozenset[str]  # the sentences that passed the gate
    cited: tuple[DocumentId, ...]
    found: Mapping[str, DocumentId]  # the passages that searches found, by their ids
    direct: bool  # whether it was asked in a DM


def read_turn(summary: TurnSummary, entries: Sequence[LogEntry]) -> RecordedTurn | None:
    """Read a turn from its entries; None if it was never closed, or if its text was erased."""
    bodies = {kind: [entry.body for entry in entries if entry.kind is kind] for kind in EntryKind}
    opened, closed, steps = (bodies[kind] for kind in (EntryKind.TURN_OPENED, EntryKind.TURN_CLOSED, EntryKind.STEP))
    if summary.erased or not opened or not closed:
        return None
    begun, ended = opened[0], closed[-1]
    rated = {row.get("by"): row["rating"] for row in bodies[EntryKind.FEEDBACK] if row.get("what") == RATED}
    return RecordedTurn(
        summary=replace(summary, down=summary.down + sum(rating <= POOR for rating in rated.values())),
        question=begun["question"],
        earlier=tuple(begun.get("earlier", ())),
        calls=tuple(_read_call(step) for step in steps if _ended_well(step)),
        said=frozenset(row["text"] for row in ended.get("sentences", ())),
        cited=tuple(dict.fromkeys((row["corpus"], row["document"]) for row in ended.get("citations", ()))),
        found={hit[0]: (hit[2], hit[3]) for step in steps for hit in step.get("hits", ())},
        direct=begun["asker"]["kind"] == "dm",
    )


def _ended_well(step: Mapping[str, Any]) -> bool:
    return "template" in step and step.get("finish") == "stop" and not step.get("error") and bool(step.get("reply"))


def _read_call(step: Mapping[str, Any]) -> RecordedCall:
    return RecordedCall(step["template"], step["stage"], step["facts"], step["reply"], step["format"] != "text")


def restore_facts(call: RecordedCall, turn: RecordedTurn, passages: Passages) -> dict[str, Any]:
    """Replace the references in a call's facts by their values. Raises `LostFact`."""
    return {name: _restore(name, value, turn, passages) for name, value in call.facts.items()}


def _restore(name: str, value: Any, turn: RecordedTurn, passages: Passages) -> Any:
    match name:
        case "talk":
            return _restore_talk(value, turn)
        case "sentences":
            return tuple(_restore_sentence(part, passages) for part in value)
        case "findings":
            return tuple(
                SourcedFinding(part["text"], tuple(_restore_sentence(place, passages) for place in part["evidence"]))
                for part in value
            )
    return tuple(value) if isinstance(value, list) else value


def _restore_talk(count: int, turn: RecordedTurn) -> Conversation:
    """Restore a conversation of `count` turns; the bot's answers are between the user's messages."""
    if len(turn.earlier) % 2:
        raise LostFact("the speakers of its conversation are not recorded")
    earlier = [Turn("bot" if place % 2 else "user", text) for place, text in enumerate(turn.earlier)]
    return Conversation((*earlier, Turn("user", turn.question))[-count:])


def _restore_sentence(reference: str, passages: Passages) -> Evidence:
    passage_id, _, span = reference.rpartition(":")
    begin, _, end = span.partition("-")
    if passage_id not in passages:
        raise LostFact("a passage has changed or was removed since")
    passage, document = passages[passage_id]
    return Evidence(passage.text[int(begin) : int(end)], passage, document, (int(begin), int(end)))
