"""Keeps the row of a refresh in the history of runs: how far it has come, and what it came to, however it ends."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from ingest.holding import Clock
from ingest.reports import Progress, RefreshReport
from storage.refresh_types import RunOutcome, RunState
from storage.runs import Runs

EVERY = 1.0
"""Seconds between two notes of how far it has come."""


@dataclass
class Record:
    """One run's row. `report` is what was done so far."""

    report: RefreshReport
    _runs: Runs
    _number: int
    _clock: Clock
    _told: float = field(default=0.0)

    async def progress(self, step: Progress) -> None:
        """Note how far it has come, if that was not done just now."""
        if (now := time.monotonic()) - self._told >= EVERY:
            self._told = now
            await self._runs.progress(self._number, self._clock(), step.done, step.total, step.passages, step.doing)

    async def end(self, state: RunState, fault: str = "") -> None:
        """Note what it came to."""
        await self._runs.end(self._number, self._clock(), outcome(self.report, state, fault))


@asynccontextmanager
async def recorded(
    runs: Runs, report: RefreshReport, owner: str, night: datetime | None, clock: Clock
) -> AsyncIterator[Record]:
    """Keep a row for what is done within the block; the block says by `Record.report` what that is."""
    record = Record(report, runs, await runs.begin(report.corpus, clock(), owner, night), clock)
    try:
        yield record
    except asyncio.CancelledError:
        await record.end(RunState.CANCELLED, "It was stopped; what it had applied stays.")
        raise
    except Exception as error:
        await record.end(RunState.FAILED, told(error))
        raise
    await record.end(RunState.DONE, record.report.fault)


def outcome(report: RefreshReport, state: RunState, fault: str) -> RunOutcome:
    """Return what a run came to; pure."""
    return RunOutcome(
        state,
        added=report.added,
        changed=report.changed,
        unchanged=report.unchanged,
        removed=report.removed,
        failed=report.failed,
        held_back=report.held_back,
        passages_added=report.passages_added,
        passages_removed=report.passages_removed,
        fault=fault,
        edition=report.edition,
    )


def told(error: Exception) -> str:
    """Return an error as one line. Of one that nobody foresaw only its kind is told: its words may hold anything."""
    hint = getattr(error, "hint", None)
    if hint is None:
        return f"It ended by an unexpected {type(error).__name__}; the log says more."
    return " ".join(f"{error} {hint}".split())
