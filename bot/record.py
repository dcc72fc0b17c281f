"""What the record says as a whole: how turns ended, and whether every sentence stands on what it cites. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from storage.types import LogEntry
from storage.verifying import Finding, verify

if TYPE_CHECKING:
    from collections.abc import Iterable

Listed: TypeAlias = tuple[LogEntry, LogEntry | None]
"""How a turn was opened, and how it was closed if it was."""


@dataclass(frozen=True, slots=True)
class Verified:
    """How much of the record was checked, and what was wrong with it."""

    answers: int = 0
    sentences: int = 0
    citations: int = 0
    findings: tuple[Finding, ...] = ()


def verified(turns: Iterable[Listed]) -> Verified:
    """Check every sentence and citation of these turns."""
    closed = [entry for _, entry in turns if entry]
    return Verified(
        answers=len(closed),
        sentences=sum(len(entry.body.get("sentences", ())) for entry in closed),
        citations=sum(len(entry.body.get("citations", ())) for entry in closed),
        findings=tuple(finding for entry in closed for finding in verify([entry])),
    )


def added(one: Verified, other: Verified) -> Verified:
    """Return what was checked in both."""
    return Verified(
        one.answers + other.answers,
        one.sentences + other.sentences,
        one.citations + other.citations,
        one.findings + other.findings,
    )


def status_of(closed: LogEntry | None) -> str:
    """Say how a turn ended; one that was never closed was cut short."""
    return str(closed.body.get("status", "")) if closed else "unfinished"
