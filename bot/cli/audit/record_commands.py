"""Run `footnote audit list`, `export`, `stats`, `unanswered`, `feedback` and `reindex`: find turns of the record."""

import csv
import io
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Annotated, Any

import typer

from bot.app import Records
from bot.cli.audit.proof_commands import export_proofs
from bot.cli.audit.record_options import build_filter, choose_turns
from bot.cli.command_context import CommandContext, JsonOption, open_command
from bot.cli.rendering import record_view
from bot.cli.rendering.record_view import ListedTurns, UnansweredGroup
from bot.cli.terminal_output import build_document
from bot.views.text_formats import format_count
from bot.views.text_layout import Text
from storage.record.record_search import Figures, RecordFilter, Step
from storage.record.turn_index import rebuild_index

EXPORT_PAGE = 500
UNANSWERED_SINCE = "30d"
_PROOFS_ALONE = (
    "--proofs exports the whole record, in a format of its own: a part could not prove that nothing is missing. "
    "Omit the other options, or prove one answer with `footnote audit receipt ID`."
)
CountOption = Annotated[int, typer.Option("-n", "--count", min=1, max=10_000, help="How many to list at most.")]
BeforeOption = Annotated[
    int | None, typer.Option("--before", min=1, help="Only turns before this number, which the previous page shows.")
]
Chosen = dict[str, str]


class ExportFormat(StrEnum):
    JSONL = "jsonl"
    CSV = "csv"


class StepName(StrEnum):
    DAY = "day"
    WEEK = "week"
    MONTH = "month"


@choose_turns()
def list_turns(
    context: typer.Context,
    *,
    chosen: Chosen,
    count: CountOption = 20,
    before: BeforeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List questions, newest first: who asked what, in which channel, and how it ended."""
    with open_command(context, as_json=as_json) as ctx:
        selection = _build_filter(ctx, chosen, before=before, limit=count)
        listed = ctx.call_records(lambda records: _list(records, selection, filtered=any(chosen.values())))
        view = record_view.render_turns(listed, ctx.settings.zone)
        ctx.output.give(record_view.build_turns_document(listed), view)


async def _list(records: Records, selection: RecordFilter, *, filtered: bool) -> ListedTurns:
    turns = await records.search.find(replace(selection, limit=selection.limit + 1))
    total = await records.search.count(selection)
    return ListedTurns(turns[: selection.limit], total, filtered, more=len(turns) > selection.limit)


@choose_turns()
def export(
    context: typer.Context,
    *,
    chosen: Chosen,
    form: Annotated[ExportFormat, typer.Option("--format", help="A line of JSON, or a CSV row, for each answer.")] = (
        ExportFormat.JSONL
    ),
    proofs: Annotated[
        bool,
        typer.Option("--proofs", help="Export the whole record entry by entry instead, for docs/verify_receipt.py."),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Export answers with their sentences and sources, newest first, as JSON Lines or CSV; see docs/audit.md."""
    with open_command(context, as_json=as_json) as ctx:
        if proofs:
            if as_json or form is ExportFormat.CSV or any(chosen.values()):
                raise typer.BadParameter(_PROOFS_ALONE)
            export_proofs(ctx)
            return
        selection = _build_filter(ctx, chosen, limit=EXPORT_PAGE)
        if as_json:
            ctx.output.give(build_document(turns=ctx.call_records(lambda records: _collect(records, selection))))
        else:
            ctx.call_records(lambda records: _export(records, selection, form, ctx))


async def _collect(records: Records, selection: RecordFilter) -> list[dict[str, Any]]:
    return [exported async for exported in _walk(records, selection)]


async def _export(records: Records, selection: RecordFilter, form: ExportFormat, ctx: CommandContext) -> None:
    write, as_csv = ctx.output.out.file.write, form is ExportFormat.CSV
    if as_csv:
        write(_encode_row(record_view.CSV_COLUMNS))
    async for turn in _walk(records, selection):
        write(_encode_row(record_view.build_csv_row(turn)) if as_csv else f"{record_view.encode_line(turn)}\n")


async def _walk(records: Records, selection: RecordFilter) -> AsyncIterator[dict[str, Any]]:
    """Yield the export of each turn that matches the filter, read page by page."""
    while turns := await records.search.find(selection):
        entries = await records.search.entries_of([turn.turn_id for turn in turns])
        for turn in turns:
            yield record_view.build_exported_turn(turn, entries.get(turn.turn_id, ()))
        selection = replace(selection, before=turns[-1].seq)


def _encode_row(cells: Sequence[str]) -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


@choose_turns()
def stats(
    context: typer.Context,
    *,
    chosen: Chosen,
    step: Annotated[StepName, typer.Option(help="Figures for each day, week or month.")] = StepName.WEEK,
    as_json: JsonOption = False,
) -> None:
    """Count questions, answers, supported claims and ratings, and measure duration and cost."""
    with open_command(context, as_json=as_json) as ctx:
        selection = _build_filter(ctx, chosen)
        now = datetime.now(ctx.settings.zone)
        rows, total = ctx.call_records(lambda records: _measure(records, selection, step.value, now))
        view = record_view.render_figures(rows, total, ctx.settings.zone)
        ctx.output.give(record_view.build_figures_document(rows, total), view)


async def _measure(
    records: Records, selection: RecordFilter, step: Step, now: datetime
) -> tuple[Sequence[Figures], Figures]:
    first = selection.since or await records.search.first() or now
    end = selection.until or now
    since = min(first.astimezone(now.tzinfo), end - timedelta(microseconds=1))
    rows = await records.search.figures(since, end, step, selection)
    (total,) = await records.search.figures(since, end, "all", selection)
    return rows if total.turns else (), total


@choose_turns("since", "until", "corpus")
def unanswered(context: typer.Context, *, chosen: Chosen, count: CountOption = 20, as_json: JsonOption = False) -> None:
    """List unanswered questions, the most frequent first: write about these next. Default: the last 30 days."""
    with open_command(context, as_json=as_json) as ctx:
        selection = _build_filter(ctx, chosen if chosen["since"] else chosen | {"since": UNANSWERED_SINCE})
        groups, left = ctx.call_records(lambda records: _group(records, selection, count))
        view = record_view.render_unanswered(groups, left, ctx.settings.zone)
        ctx.output.give(record_view.build_unanswered_document(groups, left), view)


async def _group(records: Records, selection: RecordFilter, count: int) -> tuple[list[UnansweredGroup], int]:
    groups = await records.search.unanswered(selection.since, selection.until, corpus=selection.corpus)
    shown = groups[:count]
    nearest = await records.search.nearest_corpora([turn.seq for group in shown for turn in group.members])
    listed = [
        UnansweredGroup(
            group, tuple(sorted({corpus for turn in group.members for corpus in nearest.get(turn.seq, ())}))
        )
        for group in shown
    ]
    return listed, len(groups) - len(shown)


@choose_turns()
def feedback(
    context: typer.Context,
    *,
    chosen: Chosen,
    count: CountOption = 20,
    before: BeforeOption = None,
    as_json: JsonOption = False,
) -> None:
    """List feedback on answers, newest first: ratings with their comments, requests for a person, sharing."""
    with open_command(context, as_json=as_json) as ctx:
        selection = _build_filter(ctx, chosen, before=before, limit=count)
        listed = ctx.call_records(lambda records: records.search.feedback(selection))
        view = record_view.render_feedback(listed, ctx.settings.zone)
        ctx.output.give(record_view.build_feedback_document(listed), view)


def reindex(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """Rebuild the index in which recorded answers are searched, from the record itself; a server may be running."""
    with open_command(context, as_json=as_json) as ctx:
        count = ctx.call_records(lambda records: rebuild_index(records.search.database))
        ctx.output.give(build_document(turns=count), Text(f"{format_count(count, 'turn')} can be found."))


def _build_filter(ctx: CommandContext, chosen: Chosen, *, before: int | None = None, limit: int = 50) -> RecordFilter:
    return build_filter(chosen, ctx.settings.zone, datetime.now(UTC), before=before, limit=limit)
