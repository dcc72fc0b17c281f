"""Run `footnote audit list`, `export`, `stats`, `unanswered`, `feedback` and `reindex`: find something on record."""

import csv
import io
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from bot.cli import rendering
from bot.cli.audit.proof_commands import export_proofs
from bot.cli.audit.record_options import build_filter, choose_turns
from bot.cli.command_context import CommandContext, JsonOption, format_examples, open_command
from bot.cli.terminal_output import build_document
from bot.views.text_formats import format_count
from bot.views.text_layout import Text

if TYPE_CHECKING:
    from bot.app import Records
    from bot.cli.rendering.record_view import ListedTurns, UnansweredGroup
    from storage.record.record_search import Figures, RecordFilter, Step

EXPORT_PAGE = 500
UNANSWERED_SINCE = "30d"
_PROOFS_ALONE = (
    "--proofs exports the whole record, in lines of its own: a part could not show what was left out of it. "
    "Leave the other options out, or prove one answer with `footnote audit receipt ID`."
)
CountOption = Annotated[int, typer.Option("-n", "--count", min=1, max=10_000, help="How many at most.")]
BeforeOption = Annotated[
    int | None, typer.Option("--before", min=1, help="Only older ones than this number: the next page.")
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
    """List questions, newest first: who asked what where, and how it ended."""
    with open_command(context, as_json=as_json) as ctx:
        wanted = _build_filter(ctx, chosen, before=before, limit=count)
        listed = ctx.call_records(lambda records: _list(records, wanted, filtered=any(chosen.values())))
        view = rendering.record_view.render_turns(listed, ctx.settings.zone)
        ctx.output.give(rendering.record_documents.build_turns_document(listed), view)


async def _list(records: "Records", wanted: "RecordFilter", *, filtered: bool) -> "ListedTurns":
    found = await records.search.find(replace(wanted, limit=wanted.limit + 1))
    total = await records.search.count(wanted)
    more = len(found) > wanted.limit
    return rendering.record_view.ListedTurns(found[: wanted.limit], total, filtered, more)


@choose_turns()
def export(
    context: typer.Context,
    *,
    chosen: Chosen,
    form: Annotated[ExportFormat, typer.Option("--format", help="A line of JSON, or a row, for each.")] = (
        ExportFormat.JSONL
    ),
    proofs: Annotated[
        bool, typer.Option("--proofs", help="The whole record instead, by entries, that docs/verify_receipt.py checks.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Write answers with all that was said and cited, newest first, as JSON Lines or CSV; docs/audit.md says how."""
    with open_command(context, as_json=as_json) as ctx:
        if proofs:
            if as_json or form is ExportFormat.CSV or any(chosen.values()):
                raise typer.BadParameter(_PROOFS_ALONE)
            export_proofs(ctx)
            return
        wanted = _build_filter(ctx, chosen, limit=EXPORT_PAGE)
        if as_json:
            ctx.output.give(build_document(turns=ctx.call_records(lambda records: _collect(records, wanted))))
        else:
            ctx.call_records(lambda records: _export(records, wanted, form, ctx))


async def _collect(records: "Records", wanted: "RecordFilter") -> list[dict[str, Any]]:
    return [exported async for exported in _walk(records, wanted)]


async def _export(records: "Records", wanted: "RecordFilter", form: ExportFormat, ctx: CommandContext) -> None:
    documents, file = rendering.record_documents, ctx.output.out.file
    if form is ExportFormat.CSV:
        file.write(_encode_row(documents.CSV_COLUMNS))
    async for exported in _walk(records, wanted):
        csv_row = form is ExportFormat.CSV
        file.write(
            _encode_row(documents.build_csv_row(exported)) if csv_row else f"{documents.encode_line(exported)}\n"
        )


async def _walk(records: "Records", wanted: "RecordFilter") -> AsyncIterator[dict[str, Any]]:
    """Yield every turn that passes a filter, page by page, whole."""
    while found := await records.search.find(wanted):
        entries = await records.search.entries_of([turn.turn_id for turn in found])
        for turn in found:
            yield rendering.record_documents.build_exported_turn(turn, entries.get(turn.turn_id, ()))
        wanted = replace(wanted, before=found[-1].seq)


def _encode_row(cells: "tuple[str, ...] | list[str]") -> str:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue()


@choose_turns()
def stats(
    context: typer.Context,
    *,
    chosen: Chosen,
    step: Annotated[StepName, typer.Option(help="Figures a day, week or month.")] = StepName.WEEK,
    as_json: JsonOption = False,
) -> None:
    """Count what was asked, answered and supported, what people thought, how long it took and what it cost."""
    with open_command(context, as_json=as_json) as ctx:
        wanted = _build_filter(ctx, chosen)
        now = datetime.now(ctx.settings.zone)
        rows, total = ctx.call_records(lambda records: _measure(records, wanted, step.value, now))
        view = rendering.record_view.render_figures(rows, total, ctx.settings.zone)
        ctx.output.give(rendering.record_documents.build_figures_document(rows, total), view)


async def _measure(
    records: "Records", wanted: "RecordFilter", step: "Step", now: datetime
) -> "tuple[tuple[Figures, ...], Figures]":
    first = wanted.since or await records.search.first() or now
    end = wanted.until or now
    since = min(first.astimezone(now.tzinfo), end - timedelta(microseconds=1))
    rows = await records.search.figures(since, end, step, wanted)
    (total,) = await records.search.figures(since, end, "all", wanted)
    return rows if total.turns else (), total


@choose_turns("since", "until", "corpus")
def unanswered(context: typer.Context, *, chosen: Chosen, count: CountOption = 20, as_json: JsonOption = False) -> None:
    """List what was asked and found nothing, the most frequent first: what to write next. Of 30 days by default."""
    with open_command(context, as_json=as_json) as ctx:
        asked = chosen if chosen["since"] else chosen | {"since": UNANSWERED_SINCE}
        wanted = _build_filter(ctx, asked)
        groups, left = ctx.call_records(lambda records: _group(records, wanted, count))
        view = rendering.record_view.render_unanswered(groups, left, ctx.settings.zone)
        ctx.output.give(rendering.record_documents.build_unanswered_document(groups, left), view)


async def _group(records: "Records", wanted: "RecordFilter", count: int) -> "tuple[list[UnansweredGroup], int]":
    groups = await records.search.unanswered(wanted.since, wanted.until, corpus=wanted.corpus)
    shown = groups[:count]
    nearest = await records.search.nearest_corpora([turn.seq for group in shown for turn in group.members])
    listed = [
        rendering.record_view.UnansweredGroup(
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
    """List what people did with answers, newest first: ratings with their comments, calls for a person, sharing."""
    with open_command(context, as_json=as_json) as ctx:
        wanted = _build_filter(ctx, chosen, before=before, limit=count)
        listed = ctx.call_records(lambda records: records.search.feedback(wanted))
        view = rendering.record_view.render_feedback(listed, ctx.settings.zone)
        ctx.output.give(rendering.record_documents.build_feedback_document(listed), view)


def reindex(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """Make the index that answers on record are found by again, from the record alone; beside a running bot, too."""
    with open_command(context, as_json=as_json) as ctx:
        count = ctx.call_records(_reindex)
        ctx.output.give(build_document(turns=count), Text(f"{format_count(count, 'turn')} can be found."))


async def _reindex(records: "Records") -> int:
    from storage.record.turn_index import rebuild_index

    return await rebuild_index(records.search.database)


def _build_filter(ctx: CommandContext, chosen: Chosen, *, before: int | None = None, limit: int = 50) -> "RecordFilter":
    return build_filter(chosen, ctx.settings.zone, datetime.now(UTC), before=before, limit=limit)


COMMANDS: dict[str, tuple[Callable[..., None], list[str]]] = {
    "list": (list_turns, ["footnote audit list --channel '#sales' --words refund --since 2026-10 --until 2026-10"]),
    "export": (
        export,
        ["footnote audit export --since 2026-10 > october.jsonl", "footnote audit export --proofs > record.jsonl"],
    ),
    "stats": (stats, ["footnote audit stats --since 30d --step day"]),
    "unanswered": (unanswered, ["footnote audit unanswered --corpus handbook"]),
    "reindex": (reindex, ["footnote audit reindex"]),
    "feedback": (feedback, ["footnote audit feedback --rating down"]),
}


def add_record_commands(app: typer.Typer) -> None:
    for name, (command, examples) in COMMANDS.items():
        app.command(name, epilog=format_examples(*examples))(command)
