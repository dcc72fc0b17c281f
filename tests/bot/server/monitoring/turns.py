"""Entries of a turn as a server appends them."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from bot.access import Asker
from bot.answering.turn_record import build_closing_entries, build_opening
from bot.types import DeliveryOutcome, Failure, TurnRequest, TurnResult
from pipeline.gate import WithheldSentence
from pipeline.types import Answer, Conversation, Status, Turn, Usage
from storage.types import EntryKind, LogEntry, Step

BEGUN = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECRET = "what people wrote"  # which no metric or span may contain
TOKENS = {"prompt_tokens": 100, "completion_tokens": 20, "cached_tokens": 40, "cost": 0.5, "attempts": 1}
STEPS = (
    Step("search", {"query": SECRET, "k": 3, "hits": [("p", 1.0, "c", "d")]}, 20.0, 0.0),
    Step("draft", {"model": "m", "reply": SECRET, **TOKENS}, 500.0, 100.0),
    Step("verify", {"model": "m", **TOKENS}, 300.0, 600.0),
    Step("verify", {"model": "m", "attempts": 2, "error": f"ModelUnavailable: {SECRET}"}, 350.0, 620.0),
)


def make_opening(turn_id: str, platform: str = "slack", *, waited: float = 4.0) -> LogEntry:
    asker = Asker(platform, "channel", "T1", "C1", "U1", shared_with_other_organisations=False)
    request = TurnRequest(SECRET, asker, id=turn_id, ticket=1, taken=BEGUN - timedelta(seconds=waited))
    ran = {"task": "ask", "system": "wikichat", "effort": "quick", "lowered": {"from": "normal", "because": "slow"}}
    opening = build_opening(request, Conversation((Turn("user", SECRET),)), {}, ran)
    return LogEntry(turn_id, EntryKind.TURN_OPENED, opening, at=BEGUN)


def make_closing(turn_id: str, failure: Failure | None = None, steps: tuple[Step, ...] = STEPS) -> list[LogEntry]:
    status = Status.FAILED if failure else Status.ABSTAINED
    result = TurnResult(turn_id, Answer(status), SECRET, "wikichat", "m", Usage(3, 2, 200, 40, 1.0), 2.0, failure)
    result = replace(result, effort="quick")
    entries = build_closing_entries(result, steps, [WithheldSentence(SECRET, "why")], ())
    return [LogEntry(turn_id, entry.kind, entry.body, at=BEGUN + timedelta(seconds=2)) for entry in entries]


def make_delivery(turn_id: str, **changes: Any) -> LogEntry:
    body = {"platform": "slack", "outcome": DeliveryOutcome.DELIVERED, "text": SECRET} | changes
    return LogEntry(turn_id, EntryKind.DELIVERED, body, at=BEGUN + timedelta(seconds=3))
