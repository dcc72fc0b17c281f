"""Render corpora, refreshes and nights as tables for a terminal. Pure."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType

from bot.cli.terminal_output import format_progress
from bot.server.refresh.run_history import MISSED, RUNNING, is_silent, measure_seconds
from bot.views.error_messages import explain_nothing_ingested
from bot.views.sanitize import sanitize_line, sanitize_text
from bot.views.text_formats import build_table, format_count, format_duration, format_moment
from bot.views.text_layout import WHOLE, Text, indent
from storage.types import PassageKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from datetime import datetime, tzinfo

    from bot.server.refresh.run_history import RefreshSummary
    from ingest.sources.dumps.dump_estimate import DumpEstimate
    from ingest.types import RefreshReport
    from storage.types import CorpusInfo, DocumentRef, NightRecord, RefreshRun, StoredVersion


def render_reports(reports: Sequence[RefreshReport]) -> RenderableType:
    """Render what was ingested, what could not be read and why, and how much was left out."""
    if not reports:
        return Group()
    rows = build_table(
        "Corpus", "Added", "Changed", "Unchanged", "Removed", "Failed", "Passages", "Seconds", numbers=range(1, 8)
    )
    for report in reports:
        documents = (report.added, report.changed, report.unchanged, report.removed, report.failed)
        passages = f"+{report.passages_added:,} −{report.passages_removed:,}"
        rows.add_row(report.corpus, *(f"{count:,}" for count in documents), passages, f"{report.seconds:,.1f}")
    failures = [
        (f"{report.corpus}: {document}" if len(reports) > 1 else document, reason)
        for report in reports
        for document, reason in report.failures
    ]
    unread = [Text(), Text("Could not be read:"), *_render_reasons(failures)] if failures else []
    told = [Text(f"{report.corpus}: {sanitize_line(report.fault)}") for report in reports if report.fault]
    told += [
        Text(
            f"Left out of {report.corpus}: {', '.join(f'{sanitize_line(kind)} ({count:,})' for kind, count in kinds)}."
        )
        for report in reports
        if (kinds := report.left_out)
    ]
    told += render_forgotten_counts({report.corpus: report.forgotten for report in reports})
    return Group(rows, *unread, *((Text(), *told) if told else ()))


MOST_LISTED = 100  # lines of a list that may have any number of them
ALL_LISTED = "`--json` lists all of them."
_NAMED = 3  # files of a kind that is not read that are named; of others all are, up to the next
_MOST_NAMED = 20


def _render_reasons(listed: Iterable[tuple[str, str]]) -> list[RenderableType]:
    """Render files by why they are not read: real problems first, then kinds that are never read, then rules."""
    from ingest.readers.file_formats import explain_refusal
    from ingest.sources.filters import RULES

    groups: dict[tuple[int, str], list[str]] = {}
    for name, reason in listed:
        rank = 2 if reason in RULES else int(explain_refusal(name) == reason)
        groups.setdefault((rank, reason), []).append(name)
    lines, cut = list[RenderableType](), False
    for (never, reason), names in sorted(groups.items(), key=lambda group: (group[0][0], -len(group[1]))):
        shown = names if len(names) <= _NAMED else names[: _NAMED if never else _MOST_NAMED]
        cut |= len(names) > len(shown)
        others = f" and {len(names) - len(shown):,} more" if len(names) > len(shown) else ""
        count = f" ({len(names):,})" if len(names) > 1 else ""
        named = Text(", ").join(Text(sanitize_line(name), WHOLE) for name in shown)
        lines.append(indent(Text.assemble(named, f"{others}: {sanitize_line(reason)}{count}")))
    return [*lines, indent(Text(ALL_LISTED))] if cut else lines


def render_preview(files: Sequence[tuple[str, str]]) -> RenderableType:
    """Render what would be read of a folder, and why the rest would not."""
    wanted = [path for path, reason in files if not reason]
    rest = _render_reasons((path, reason) for path, reason in files if reason)
    return Group(
        *([Text("Would not be read:"), *rest, Text()] if rest else []),
        Text(f"Would be read: {len(wanted):,}."),
        *(indent(Text(sanitize_line(line), no_wrap=True)) for line in _group_paths(wanted)),
    )


def _group_paths(paths: Sequence[str]) -> Sequence[str]:
    """Return paths, or where there are too many to be read, how many are in each folder."""
    if len(paths) <= MOST_LISTED:
        return paths
    folders = Counter(f"{path.rpartition('/')[0] or '.'}/" for path in paths).most_common()
    more = [f"and {len(folders) - MOST_LISTED:,} more folders"] if len(folders) > MOST_LISTED else []
    return [*(f"{name} ({count:,})" for name, count in folders[:MOST_LISTED]), *more, ALL_LISTED]


def render_estimate(dump: str, found: DumpEstimate) -> RenderableType:
    """Render what a dump would take, lazily and eagerly."""
    table = build_table("", "time", "disk", "memory", numbers=(1, 2, 3))
    for name, taken in (("lazy", found.lazy), ("eager", found.eager)):
        table.add_row(name, format_duration(taken.hours * 3600), _gigabytes(taken.disk), _gigabytes(taken.memory))
    holds = f"{found.articles:,} articles, {found.passages:,} passages"
    return Group(
        Text(f"{sanitize_line(dump)}, {_gigabytes(found.bytes)}: about {holds}. On the {found.cores} cores here:"),
        table,
        Text("Lazy: found by words, embedded when somebody asks. Eager: all embedded before it can be asked."),
        Text("Calculated from some stretches of the file, as if the rest were like them and nothing else ran here."),
    )


def _gigabytes(count: int) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 10**9 else f"{count / 1e6:,.0f} MB"


def render_forgotten_counts(forgotten: Mapping[str, int]) -> list[Text]:
    """Render how many documents of which corpora are forgotten."""
    some = ", ".join(f"{count:,} of {corpus}" for corpus, count in forgotten.items() if count)
    line = f"Forgotten on purpose, and left out: {some}. `footnote corpora --forgotten` lists them."
    return [Text(line)] if some else []


DAY = 86_400


def format_age(at: datetime | None, now: datetime) -> str:
    """Format the time since then: `3 h 20 min`; empty for none."""
    seconds = max((now - at).total_seconds(), 0.0) if at else 0.0
    days = int(seconds // DAY)
    return "" if at is None else f"{days:,} days" if days > 1 else format_duration(seconds)


def format_corpus(corpus: str, edition: str) -> str:
    """Return a corpus with the edition of its source, if any, on a line of its own."""
    return f"{corpus}\n{sanitize_line(edition)}" if edition else corpus


def format_run_outcome(run: RefreshRun) -> str:
    """Format the state of a run, on two lines where tables would become too wide."""
    held = f",\n{run.held_back:,} held back" if run.held_back else ""
    return f"{run.state.value}{held}"


def format_owner(owner: str) -> str:
    """Format the process of an owner: `process 7 on host`."""
    host, _, rest = owner.partition(":")
    number = rest.partition(":")[0]
    return f"process {number} on {host}" if number else owner


def render_refreshes(found: RefreshSummary, zone: tzinfo) -> RenderableType:
    """Render what runs, what ran, and when the next night is."""
    parts: list[RenderableType] = [Text(line) for line in _running_lines(found, zone)]
    wait = f"in {format_duration((found.next_night - found.now).total_seconds())}" if found.next_night else ""
    due = f"{format_moment(found.next_night, zone)}, {wait}, if `footnote serve` runs then."
    parts.append(Text(f"Next night: {due if wait else 'none is set; `footnote ingest all` refreshes every source.'}"))
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
        beside = run.doing or (f"{run.passages:,} passages" if run.passages else "")
        far = format_progress(run.done, run.total, "documents", measure_seconds(run, found.now), beside)
        since = f"since {format_moment(run.begun, zone)}, by {format_owner(run.owner)}"
        yield f"Running now: {run.corpus}: {far}; {since}."
        if is_silent(run, found.now):
            seen = format_age(run.seen, found.now)
            yield f"  Its last heartbeat was {seen} ago. If its process is gone, the next run resumes from there."


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


_DENSE = {"eager": "", "lazy": "\nlazy", "off": "\nwords only"}
TERMINAL_ONLY = "the terminal only"


def render_corpora(
    corpora: Sequence[CorpusInfo],
    readers: Mapping[str, Sequence[str]],
    zone: tzinfo,
    now: datetime,
    missing: Sequence[str] = (),
) -> RenderableType:
    """Render what is indexed, and who may read it; `missing` are configured corpora that were never ingested."""
    if not corpora:
        nothing = explain_nothing_ingested(missing)
        return Text(f"{nothing.message} {nothing.hint}")
    rows = build_table(
        "Corpus", "Documents", "Passages", "Unread", "Last refresh", "Last run", "Readers", numbers=(1, 2, 3)
    )
    for corpus in corpora:
        refreshed = format_moment(corpus.refreshed, zone)
        rows.add_row(
            format_corpus(corpus.name, corpus.edition),
            f"{corpus.documents:,}",
            f"{corpus.passages:,}{_DENSE[corpus.dense]}",
            f"{corpus.failures:,}",
            f"{refreshed}\n{format_age(corpus.refreshed, now)} ago" if refreshed else "never finished",
            format_run_outcome(corpus.last_run) if corpus.last_run else "",
            ", ".join(readers.get(corpus.name, ())) or TERMINAL_ONLY,
        )
    below = [
        Text(f"{corpus.name}, {format_moment(run.begun, zone)}: {sanitize_line(run.fault)}")
        for corpus in corpora
        if (run := corpus.last_run) and run.fault
    ]
    below += render_forgotten_counts({corpus.name: corpus.forgotten for corpus in corpora})
    if missing:
        why = "`footnote ingest status` shows whether that was tried, `footnote ingest all` does it."
        below.append(Text(f"Not ingested yet: {', '.join(missing)}. {why}"))
    return Group(rows, Text(), *below) if below else rows


def render_forgotten(forgotten: Sequence[DocumentRef]) -> RenderableType:
    if not forgotten:
        return Text("Nothing is forgotten.")
    rows = build_table("Corpus", "Title", "Address")
    for one in forgotten[:MOST_LISTED]:
        rows.add_row(one.corpus, sanitize_line(one.title), sanitize_line(one.url or one.key))
    more = f"And {len(forgotten) - MOST_LISTED:,} more: {ALL_LISTED}"
    return Group(
        rows,
        *([Text(), Text(more)] if len(forgotten) > MOST_LISTED else ()),
        Text(),
        Text(
            "`footnote ingest --only ADDRESS` brings one back. Of a corpus without a source in the settings, "
            "`footnote ingest folder PATH --corpus NAME --restore` brings all."
        ),
    )


def render_passages(found: StoredVersion, zone: tzinfo) -> RenderableType:
    """Show a document word for word, each passage under its number and section."""
    of = found.document
    date = f", {of.date.astimezone(zone):%Y-%m-%d}" if of.date else ""
    count = format_count(len(found.passages), "passage")
    lines = [Text(sanitize_line(f"{of.title} ({of.corpus}: {of.url or of.key}{date}, {count})"), style="bold")]
    for number, one in enumerate(found.passages, 1):
        kind = "" if one.kind is PassageKind.PROSE else f" [{one.kind}]"
        lines += [Text(), Text(sanitize_line(f"{number}. {one.section}{kind}".rstrip()), style="dim")]
        lines.append(Text(sanitize_text(one.text)))
    return Group(*lines)
