"""How refreshes look in a terminal: what runs now, what the nights came to, and the last runs. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from bot.printing.run_words import age, named, outcome, process
from bot.printing.tables import moment, table
from bot.progress import spell, told
from bot.refreshing.refreshes import MISSED, RUNNING, silent, taken
from bot.sanitizing import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import tzinfo

    from bot.refreshing.refreshes import Refreshes
    from storage.refresh_types import NightRecord, Run


def refreshes_view(found: Refreshes, zone: tzinfo) -> RenderableType:
    """Show what runs, what ran, and when the next night comes."""
    parts: list[RenderableType] = [Text(line) for line in _running(found, zone)]
    parts.append(Text(_next(found, zone)))
    if found.nights:
        parts += [Text(), _nights(found.nights, zone)]
    if found.ended:
        parts += [Text(), _runs(found, zone), *(Text(line) for line in _faults(found.ended, zone))]
    return Group(*parts)


def _running(found: Refreshes, zone: tzinfo) -> Iterator[str]:
    if not found.running:
        yield "Running now: nothing."
    for run in found.running:
        beside = run.doing or (f"{run.passages:,} passages" if run.passages else "")
        far = told(run.done, run.total, "documents", taken(run, found.now), beside)
        since = f"since {moment(run.begun, zone)}, by {process(run.owner)}"
        yield f"Running now: {run.corpus}: {far}; {since}."
        if silent(run, found.now):
            seen = age(run.seen, found.now)
            yield f"  It last gave a sign of life {seen} ago. If its process is gone, the next run goes on from there."


def _next(found: Refreshes, zone: tzinfo) -> str:
    if found.next_night is None:
        return "Next night: none is set; `footnote ingest all` reads every source in."
    wait = spell((found.next_night - found.now).total_seconds())
    return f"Next night: {moment(found.next_night, zone)}, in {wait}, if `footnote serve` runs then."


def _nights(nights: tuple[NightRecord, ...], zone: tzinfo) -> RenderableType:
    rows = table("Outcome", "Night", "Begun", "Took", "What came of it")
    for night in nights:
        begun = "" if night.outcome == MISSED else moment(night.begun, zone)
        took = spell((night.ended - night.begun).total_seconds()) if night.ended else ""
        lines = night.lines or ((process(night.owner),) if night.outcome == RUNNING else ())
        rows.add_row(night.outcome, moment(night.due, zone), begun, took, "\n".join(map(one_line, lines)))
    return rows


def _runs(found: Refreshes, zone: tzinfo) -> RenderableType:
    rows = table("Corpus", "Run", "Outcome", "Took", "Added", "Changed", "Removed", "Unread", numbers=range(4, 8))
    for run in found.ended:
        took = spell(taken(run, found.now))
        counts = (f"{count:,}" for count in (run.added, run.changed, run.removed, run.failed))
        rows.add_row(named(run.corpus, run.edition), moment(run.begun, zone), outcome(run), took, *counts)
    return rows


def _faults(runs: tuple[Run, ...], zone: tzinfo) -> Iterator[str]:
    for run in runs:
        if run.fault:
            yield f"  {moment(run.begun, zone)} {run.corpus}: {one_line(run.fault)}"
