"""Show the report, the preview and the cost of an ingest: as text for a terminal, and as JSON documents. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from rich.console import Group, RenderableType

from bot.cli.rendering.corpus_view import ALL_LISTED, MOST_LISTED, render_forgotten_counts
from bot.cli.terminal_output import Document, build_document, build_error, pick
from bot.views.error_messages import Fault
from bot.views.sanitize import sanitize_line
from bot.views.text_formats import build_table, format_bytes, format_duration
from bot.views.text_layout import WHOLE, Text, indent
from ingest.sources.dumps.dump_estimate import DumpEstimate
from ingest.sources.filters import RULES
from ingest.types import RefreshReport

_NAMED = 3  # files named of a kind that is never read
_MOST_NAMED = 20  # files named of any other reason


def render_reports(reports: Sequence[RefreshReport]) -> RenderableType:
    """Render the counts of an ingest, unreadable documents with reasons, and the kinds of skipped files."""
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
    notes = [Text(f"{report.corpus}: {sanitize_line(report.fault)}") for report in reports if report.fault]
    notes += [
        Text(
            f"Left out of {report.corpus}: {', '.join(f'{sanitize_line(kind)} ({count:,})' for kind, count in kinds)}."
        )
        for report in reports
        if (kinds := report.left_out)
    ]
    notes += render_forgotten_counts({report.corpus: report.forgotten for report in reports})
    return Group(rows, *unread, *((Text(), *notes) if notes else ()))


def _render_reasons(listed: Iterable[tuple[str, str]]) -> list[RenderableType]:
    """Render unread files by reason: failures first, then kinds that are never read, then files that rules skip."""
    from ingest.readers.file_formats import explain_refusal  # imports every reader

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
    """Render the files of a folder that would be read, and why the rest would not."""
    readable = [path for path, reason in files if not reason]
    rest = _render_reasons((path, reason) for path, reason in files if reason)
    return Group(
        *([Text("Would not be read:"), *rest, Text()] if rest else []),
        Text(f"Would be read: {len(readable):,}."),
        *(indent(Text(sanitize_line(line), no_wrap=True)) for line in _group_paths(readable)),
    )


def _group_paths(paths: Sequence[str]) -> Sequence[str]:
    """Return the paths; if there are too many, return the folders with their numbers of files instead."""
    if len(paths) <= MOST_LISTED:
        return paths
    folders = Counter(f"{path.rpartition('/')[0] or '.'}/" for path in paths).most_common()
    more = [f"and {len(folders) - MOST_LISTED:,} more folders"] if len(folders) > MOST_LISTED else []
    return [*(f"{name} ({count:,})" for name, count in folders[:MOST_LISTED]), *more, ALL_LISTED]


def render_estimate(dump: str, estimate: DumpEstimate) -> RenderableType:
    """Render the cost of ingesting a dump, embedded lazily or eagerly."""
    table = build_table("", "time", "disk", "memory", numbers=(1, 2, 3))
    for name, cost in (("lazy", estimate.lazy), ("eager", estimate.eager)):
        table.add_row(name, format_duration(cost.hours * 3600), format_bytes(cost.disk), format_bytes(cost.memory))
    content = f"{estimate.articles:,} articles, {estimate.passages:,} passages"
    size = format_bytes(estimate.bytes)
    return Group(
        Text(f"{sanitize_line(dump)}, {size}: about {content}. On the {estimate.cores} cores of this machine:"),
        table,
        Text("Lazy: found by words, embedded on demand. Eager: everything is embedded before the first question."),
        Text("Estimated from samples of the file, assuming that nothing else runs here."),
    )


def build_ingest_document(report: RefreshReport) -> Document:
    return build_document(**_build_report(report))


def build_preview_document(files: Iterable[tuple[str, str]]) -> Document:
    listed = list(files)
    return build_document(
        read=[path for path, reason in listed if not reason],
        left_out=[{"path": path, "reason": reason} for path, reason in listed if reason],
    )


def build_ingest_all_document(reports: Iterable[RefreshReport], faults: Mapping[str, Fault]) -> Document:
    done = build_document(corpora=[_build_report(report) for report in reports])
    if not faults:
        return done
    messages = "; ".join(f"{corpus}: {fault.message}" for corpus, fault in faults.items())
    first = next(iter(faults.values()))
    return done | {"error": build_error(first.kind, messages, first.hint)}


def _build_report(report: RefreshReport) -> Document:
    return {
        "corpus": report.corpus,
        "documents": pick(report, "added changed unchanged removed failed"),
        "passages": {"added": report.passages_added, "removed": report.passages_removed},
        **pick(report, "held_back forgotten"),
        "failures": [{"document": document, "reason": reason} for document, reason in report.failures],
        "left_out": dict(report.left_out),
        "seconds": round(report.seconds, 3),
    }
