"""What there is to tell of refreshes: those under way, those that were, the nights, and the next one. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.settings import Settings
from ingest.schedule import night_after
from storage.refresh_types import NightRecord, Run, RunState

MISSED = "missed"
RUNNING = "running"
BROKEN_OFF = "broken off"
NOBODY = "No server ran then; the next night made up for it."

SILENT = timedelta(minutes=5)
"""A run that gave no sign of life for so long is told as one that may be gone."""


@dataclass(frozen=True, slots=True)
class Refreshes:
    """What the record says of refreshes, newest first."""

    now: datetime
    running: tuple[Run, ...]
    ended: tuple[Run, ...]
    nights: tuple[NightRecord, ...]
    next_night: datetime | None
    """None where no night is set."""


def refreshes(
    settings: Settings, runs: Sequence[Run], nights: Sequence[NightRecord], now: datetime, *, watching: bool
) -> Refreshes:
    """Put together what is told.

    Args:
        settings: Of the schedule.
        runs: The newest runs, newest first.
        nights: The newest nights, newest first.
        now: The moment.
        watching: Whether a process has the lease of the nights: one that has not ended is broken off otherwise.
    """
    at = settings.schedule.at
    return Refreshes(
        now,
        tuple(run for run in runs if run.state is RunState.RUNNING),
        tuple(run for run in runs if run.state is not RunState.RUNNING),
        tuple(_with_missed([_told(night, watching=watching) for night in nights], settings)),
        night_after(now, at, settings.zone) if at else None,
    )


def taken(run: Run, now: datetime) -> float:
    """Return how many seconds a run took, or has taken so far."""
    return max(((run.ended or now) - run.begun).total_seconds(), 0.0)


def rate(run: Run, now: datetime) -> float:
    """Return how many documents a run looked at in a second."""
    seconds = taken(run, now)
    return run.done / seconds if seconds else 0.0


def silent(run: Run, now: datetime) -> bool:
    """Return whether a run that goes on gave no sign of life for a while."""
    return now - run.seen > SILENT


def _told(night: NightRecord, *, watching: bool) -> NightRecord:
    outcome = night.outcome or (RUNNING if watching else BROKEN_OFF)
    return NightRecord(night.due, night.begun, night.ended, night.owner, outcome, night.lines)


def _with_missed(nights: Sequence[NightRecord], settings: Settings) -> Iterator[NightRecord]:
    """Yield nights, newest first, and between them those of days on which nothing was worked."""
    at, zone = settings.schedule.at, settings.zone
    for place, night in enumerate(nights):
        yield night
        if at is None or place + 1 == len(nights):
            continue
        day, missed = night.due.astimezone(zone).date(), list[datetime]()
        due = night_after(nights[place + 1].due, at, zone)
        while due < night.due and due.astimezone(zone).date() < day:
            missed.append(due)
            due = night_after(due, at, zone)
        # The time of day may have been set anew: a day that had its night missed none.
        had = nights[place + 1].due.astimezone(zone).date()
        yield from (
            NightRecord(due, due, None, "", MISSED, (NOBODY,))
            for due in reversed(missed)
            if due.astimezone(zone).date() != had
        )
