"""Check recorded turns: how they ended, and whether every sentence stands on what it cites; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from storage.audit import AuditFinding, verify_turn
from storage.types import LogEntry

if TYPE_CHECKING:
    from collections.abc import Iterable


TurnEnds: TypeAlias = tuple[LogEntry, LogEntry | None]  # how a turn was opened, and how it was closed if it was


@dataclass(frozen=True, slots=True)
class RecordCheck:
    """How much of the record was checked, and what was wrong with it."""

    answers: int = 0
    sentences: int = 0
    citations: int = 0
    findings: tuple[AuditFinding, ...] = ()


def check_turns(turns: Iterable[TurnEnds]) -> RecordCheck:
    closed = [entry for _, entry in turns if entry]
    return RecordCheck(
        answers=len(closed),
        sentences=sum(len(entry.body.get("sentences", ())) for entry in closed),
        citations=sum(len(entry.body.get("citations", ())) for entry in closed),
        findings=tuple(finding for entry in closed for finding in verify_turn([entry])),
    )


def add_checks(one: RecordCheck, other: RecordCheck) -> RecordCheck:
    return RecordCheck(
        one.answers + other.answers,
        one.sentences + other.sentences,
        one.citations + other.citations,
        one.findings + other.findings,
    )


def find_status(closed: LogEntry | None) -> str:
    """Return how a turn ended; one that was never closed was cut short."""
    return str(closed.body.get("status", "")) if closed else "unfinished"
