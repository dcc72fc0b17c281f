"""Plan the spans of a turn's trace from its log entries, which show where its time went.

No span contains users' words.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Any

from storage.types import EntryKind, LogEntry

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
_TURN, _SEARCH = "turn", "search"
_TURNS_KEPT = 10_000
_FAILED = frozenset({"failed"})


class TracingUnavailable(Exception):
    kind = "tracing_unavailable"
    hint = "Install them by `make tracing` (docs/operating.md), or remove traces from [http]."

    def __init__(self) -> None:
        super().__init__("Traces are enabled, but the packages that send them are not installed.")


@dataclass(frozen=True, slots=True)
class PlannedSpan:
    """A span, identified by a name within its turn."""

    key: str  # unique within the turn
    parent: str  # the parent's key; empty for the turn itself
    name: str
    begun: datetime
    ended: datetime
    about: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    failed: bool = False
    remote: bool = False  # whether another server was called


def plan_turn(entries: Sequence[LogEntry], platform: str) -> tuple[PlannedSpan, ...]:
    """Plan the spans of a turn. `entries` close the turn: first its steps, then its end. Pure."""
    *steps, closed = entries
    body = closed.body
    ended = _moment(closed)
    begun = ended - timedelta(seconds=body["seconds"])
    failure = body.get("failure") or body.get("quoted_because")
    about = {
        "footnote.turn": closed.turn_id,
        "footnote.platform": platform,
        "footnote.system": str(body["system"]),
        "footnote.status": str(body["status"]),
        "footnote.sentences": len(body["sentences"]),
        "footnote.withheld": len(body["withheld"]),
    }
    about |= {"footnote.effort": str(body["effort"])} if body.get("effort") else {}
    about |= {"error.type": failure.kind} if failure else {}
    turn = PlannedSpan(_TURN, "", _TURN, begun, ended, about, failed=str(body["status"]) in _FAILED)
    calls = tuple(_plan_step(step, place, begun) for place, step in enumerate(steps))
    return (turn, *_plan_stages(calls), *calls)


def _plan_step(step: LogEntry, place: int, turn_begun: datetime) -> PlannedSpan:
    body, stage = step.body, str(step.body["stage"])
    begun = turn_begun + timedelta(milliseconds=body["began"])
    ended = begun + timedelta(milliseconds=body["milliseconds"])
    error = {"error.type": str(body["error"]).partition(":")[0]} if "error" in body else {}
    if stage == _SEARCH:
        about = {"footnote.search.wanted": body["k"], "footnote.search.found": len(body.get("hits", ()))}
        return PlannedSpan(f"{place}", _TURN, _SEARCH, begun, ended, about | error, failed=bool(error))
    if stage == "policy":
        return PlannedSpan(f"{place}", _TURN, stage, begun, ended, {})
    model = str(body.get("model") or "")
    about = {
        "gen_ai.operation.name": "chat",
        "gen_ai.response.model": model,
        "gen_ai.usage.input_tokens": body.get("prompt_tokens") or 0,
        "gen_ai.usage.cache_read.input_tokens": body.get("cached_tokens") or 0,
        "gen_ai.usage.output_tokens": body.get("completion_tokens") or 0,
        "footnote.attempts": body.get("attempts") or 0,
    }
    name = f"chat {model}".strip()
    return PlannedSpan(f"{place}", stage, name, begun, ended, about | error, failed=bool(error), remote=True)


def _plan_stages(calls: Sequence[PlannedSpan]) -> Iterator[PlannedSpan]:
    """Plan a span for each stage, from the start of its first call to the end of its last."""
    for stage in dict.fromkeys(call.parent for call in calls if call.parent != _TURN):
        own = [call for call in calls if call.parent == stage]
        begun, ended = min(call.begun for call in own), max(call.ended for call in own)
        yield PlannedSpan(stage, _TURN, f"stage {stage}", begun, ended)


def plan_queue(opened: LogEntry) -> tuple[PlannedSpan, ...]:
    """Plan the span of a question's wait at a desk; empty if it did not wait there. Pure."""
    taken = opened.body.get("taken")
    return (PlannedSpan("queue", _TURN, "queue", taken, _moment(opened)),) if taken else ()


def plan_delivery(delivered: LogEntry, closed: datetime) -> tuple[PlannedSpan, ...]:
    outcome = str(delivered.body["outcome"])
    about = {"footnote.platform": str(delivered.body["platform"]), "footnote.outcome": outcome}
    return (PlannedSpan("delivery", _TURN, "delivery", closed, _moment(delivered), about, remote=True),)


def _moment(entry: LogEntry) -> datetime:
    if entry.at is None:
        raise ValueError("an entry without a time was not read from the record")
    return entry.at


class TurnTracer:
    """Converts log entries to spans, and passes them to the function `give`."""

    def __init__(self, give: Callable[[str, PlannedSpan], None]) -> None:
        self._give = give
        self._platforms, self._closed = OrderedDict[str, str](), OrderedDict[str, datetime]()

    def observe(self, entries: Iterable[LogEntry]) -> None:
        steps = dict[str, list[LogEntry]]()
        for entry in entries:
            match entry.kind:
                case EntryKind.TURN_OPENED:
                    self._remember(self._platforms, entry.turn_id, getattr(entry.body.get("asker"), "platform", ""))
                    self._give_all(entry, plan_queue(entry))
                case EntryKind.STEP:
                    steps.setdefault(entry.turn_id, []).append(entry)
                case EntryKind.TURN_CLOSED:
                    platform = self._platforms.pop(entry.turn_id, "")
                    self._remember(self._closed, entry.turn_id, _moment(entry))
                    self._give_all(entry, plan_turn([*steps.pop(entry.turn_id, []), entry], platform))
                case EntryKind.DELIVERED if closed := self._closed.pop(entry.turn_id, None):
                    self._give_all(entry, plan_delivery(entry, closed))

    def _give_all(self, entry: LogEntry, spans: Iterable[PlannedSpan]) -> None:
        for span in spans:
            self._give(entry.turn_id, span)

    @staticmethod
    def _remember(kept: "OrderedDict[str, Any]", turn_id: str, value: object) -> None:
        kept[turn_id] = value
        if len(kept) > _TURNS_KEPT:
            kept.popitem(last=False)


@asynccontextmanager
async def open_tracer(address: str, environ: Mapping[str, str]) -> AsyncIterator[TurnTracer | None]:
    """Yield a tracer that sends to `address`, or to the address in OpenTelemetry's variables; None if neither is set.

    Raises `TracingUnavailable`.
    """
    if not (address or any(environ.get(name) for name in ENDPOINTS)):
        yield None
        return
    try:
        from bot.server.monitoring.span_sender import SpanSender  # imports OpenTelemetry, which is optional
    except ModuleNotFoundError as error:
        raise TracingUnavailable from error
    sender = SpanSender(f"{address.rstrip('/')}/v1/traces" if address else None)
    try:
        yield TurnTracer(sender.send)
    finally:
        await asyncio.to_thread(sender.close)
