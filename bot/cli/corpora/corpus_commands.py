"""Run `footnote corpora` and `reindex`: list the indexed corpora, and rebuild the indexes."""

import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated

import typer

from bot.app import App, Records
from bot.cli.command_context import CommandContext, JsonOption, open_command
from bot.cli.rendering import corpus_view
from bot.cli.terminal_output import Document, build_document, show_progress
from bot.server.refresh.run_history import build_history, resolve_run
from bot.views.text_formats import format_count
from bot.views.text_layout import Text
from storage.types import CorpusInfo


def corpora(
    context: typer.Context,
    *,
    forgotten: Annotated[bool, typer.Option("--forgotten", help="List forgotten documents instead.")] = False,
    as_json: JsonOption = False,
) -> None:
    with open_command(context, as_json=as_json) as ctx:
        if forgotten:
            documents = ctx.call_records(lambda records: records.manifest.all_forgotten())
            ctx.output.give(corpus_view.build_forgotten_document(documents), corpus_view.render_forgotten(documents))
            return
        infos, settings, now = ctx.call_records(_load_corpora), ctx.settings, datetime.now(UTC)
        missing = sorted(settings.sources.keys() - {info.name for info in infos})
        view = corpus_view.render_corpora(infos, settings.visible_to, settings.zone, now, missing)
        ctx.output.give(corpus_view.build_corpora_document(infos, settings.visible_to, missing), view)


async def _load_corpora(records: Records) -> tuple[CorpusInfo, ...]:
    """Return the corpora. An unfinished last run counts as lost if its process has lost the lease."""
    now, corpora = datetime.now(UTC), list[CorpusInfo]()
    for info in await records.manifest.corpora():
        run = info.last_run
        if run and not run.ended:
            run = await resolve_run(run, build_history(records.manifest.database).leases, now)
        corpora.append(replace(info, last_run=run))
    return tuple(corpora)


def reindex(
    context: typer.Context,
    *,
    shared: Annotated[
        bool,
        typer.Option(
            "--shared",
            help="Also rebuild the Chroma server's vectors; first stop `footnote serve` on every home that uses it.",
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    with open_command(context, as_json=as_json) as ctx:
        passages, seconds = rebuild_indexes(ctx, vectors=shared or not ctx.settings.chroma.url)
        text = f"Indexed again: {format_count(passages, 'passage')}, in {seconds:,.1f} s."
        ctx.output.give(build_document(**describe_reindex(passages, seconds)), Text(text))


def rebuild_indexes(ctx: CommandContext, *, vectors: bool) -> tuple[int, float]:
    """Rebuild the indexes of a home; return the number of passages, and the seconds that it took."""

    async def work(app: App) -> int:
        with show_progress(ctx.output.err, label="reindex", unit="passages") as report:
            return await app.passages.reindex(report, vectors=vectors)

    started = time.monotonic()
    passages = ctx.call(ctx.services.open_app(ctx.settings, rebuilding=True), work)
    return passages, time.monotonic() - started


def describe_reindex(passages: int, seconds: float) -> Document:
    return {"passages": passages, "seconds": round(seconds, 3)}
