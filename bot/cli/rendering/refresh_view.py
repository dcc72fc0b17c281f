"""Show current, past and nightly refreshes: as text for a terminal, and as JSON documents. Pure."""

from collections.abc import Iterator
from datetime import datetime, tzinfo

from rich.console import Group, RenderableType

from bot.cli.rendering.corpus_view import format_age, format_corpus, format_run_outcome
from bot.cli.terminal_output import Document, build_document, format_progress, pick
from bot.server.refresh.run_history import MISSED, RUNNING, RefreshSummary, is_silent, measure_rate, measure_seconds
from bot.views.sanitize import sanitize_line
from bot.views.text_formats import build_table, format_duration, format_moment, format_timestamp
from bot.views.text_layout import Text
from storage.types import NightRecord, RefreshRun


def render_refreshes(found: RefreshSummary, zone: tzinfo) -> RenderableType:
    """Render current and past runs, and the time of the next nightly refresh."""
    parts: list[RenderableType] = [Text(line) for line in _running_lines(found, zone)]
    wait = f"in {format_duration((found.next_night - found.now).total_seconds())}" if found.next_night else ""
    due = f"{format_moment(found.next_night, zone)}, {wait}, if `footnote serve` is running then."
    parts.append(Text(f"Next nightly refresh: {due if wait else 'none is set; run `footnote ingest all`.'}"))
    if found.nights:
        parts += [Text(), _render_nights(found.nights, zone)]
    if found.ended:
        faults = (
            f"  {format_moment(run.begun, zone)} {run.corpus}: {sanitize_line(run.fault)}"
            for run in found.ended
            if run.fault
        )
        parts += [Text(), _render_runs(found, zone), *map(Text, faults)]
    return Group(*parts)


def _running_lines(found: RefreshSummary, zone: tzinfo) -> Iterator[str]:
    if not found.running:
        yield "Running now: nothing."
    for run in found.running:
        doing = run.doing or (f"{run.passages:,} passages" if run.passages else "")
        far = format_progress(run.done, run.total, "documents", measure_seconds(run, found.now), doing)
        since = f"since {format_moment(run.begun, zone)}, by {format_owner(run.owner)}"
        yield f"Running now: {run.corpus}: {far}; {since}."
        if is_silent(run, found.now):
            seen = format_age(run.seen, found.now)
            yield f"  Its last heartbeat was {seen} ago. If its process has died, the next run resumes from there."


def _render_nights(nights: tuple[NightRecord, ...], zone: tzinfo) -> RenderableType:
    rows = build_table("Outcome", "Night", "Started", "Took", "Report")
    for night in nights:
        begun = "" if night.outcome == MISSED else format_moment(night.begun, zone)
        took = format_duration((night.ended - night.begun).total_seconds()) if night.ended else ""
        lines = night.lines or ((format_owner(night.owner),) if night.outcome == RUNNING else ())
        rows.add_row(night.outcome, format_moment(night.due, zone), begun, took, "\n".join(map(sanitize_line, lines)))
    return rows


def _render_runs(found: RefreshSummary, zone: tzinfo) -> RenderableType:
    rows = build_table("Corpus", "Run", "State", "Took", "Added", "Changed", "Removed", "Unread", numbers=range(4, 8))
    for run in found.ended:
        took, corpus = format_duration(measure_seconds(run, found.now)), format_corpus(run.corpus, run.edition)
        counts = (f"{count:,}" for count in (run.added, run.changed, run.removed, run.failed))
        rows.add_row(corpus, format_moment(run.begun, zone), format_run_outcome(run), took, *counts)
    return rows


def format_owner(owner: str) -> str:
    """Format the process that owns a run: `process 7 on host`."""
    host, _, rest = owner.partition(":")
    number = rest.partition(":")[0]
    return f"process {number} on {host}" if number else owner


def build_refreshes_document(found: RefreshSummary) -> Document:
    return build_document(
        running=[build_run(run) | _build_pace(run, found.now) for run in found.running],
        next_night=format_timestamp(found.next_night),
        nights=[_build_night(night) for night in found.nights],
        runs=[build_run(run) for run in found.ended],
    )


def build_run(run: RefreshRun) -> Document:
    return {
        **pick(run, "id corpus state begun ended night"),
        "documents": pick(run, "added changed unchanged removed failed held_back"),
        "passages": {"added": run.passages_added, "removed": run.passages_removed},
        **pick(run, "edition fault owner"),
    }


def _build_pace(run: RefreshRun, now: datetime) -> Document:
    per_second = measure_rate(run, now)
    left = (run.total - run.done) / per_second if run.total is not None and per_second else None
    return {
        **pick(run, "done total"),
        "per_second": round(per_second, 3),
        "seconds_left": None if left is None else round(max(left, 0.0)),
        **pick(run, "seen doing"),
        "silent": is_silent(run, now),
    }


def _build_night(night: NightRecord) -> Document:
    return {
        **pick(night, "due outcome"),
        "begun": format_timestamp(night.begun) if night.owner else None,
        **pick(night, "ended lines owner"),
    }
