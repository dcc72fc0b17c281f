"""Run `footnote corpora`, `passages`, `forget` and `reindex`: what is indexed."""

import time
from collections.abc import Collection
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from bot.cli import rendering
from bot.cli.command_context import CommandContext, JsonOption, open_command
from bot.cli.terminal_output import CommandError, show_progress
from bot.views.error_messages import Fault
from bot.views.sanitize import sanitize_line
from bot.views.text_formats import format_count
from bot.views.text_layout import Text

if TYPE_CHECKING:
    from bot.app import App, Records
    from bot.server.refresh.document_lookup import ForgottenDocument
    from storage.types import CorpusInfo, StoredVersion

ForgottenOption: TypeAlias = Annotated[
    bool, typer.Option("--forgotten", help="List what was forgotten on purpose instead.")
]


def passages(
    context: typer.Context,
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="Its address, its key, or its exact title.", show_default=False)
    ],
    corpus: Annotated[str, typer.Option(help="The corpus, where several have it.")] = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """Show what was kept of one document: its passages, word for word, as they are searched and quoted."""
    with open_command(context, as_json=as_json) as ctx:
        found = ctx.call_records(lambda records: _load_document(records, address, corpus))
        view = rendering.corpus_view.render_passages(found, ctx.settings.zone)
        ctx.output.give(rendering.json_documents.build_passages_document(found), view)


async def _load_document(records: "Records", address: str, corpus: str) -> "StoredVersion":
    from bot.server.refresh.document_lookup import select_documents

    found = select_documents(await records.manifest.find(address), address, corpus)
    if len(found) > 1:
        named = "; ".join(f"{one.key} of {one.corpus}" for one in found)
        raise CommandError(
            Fault("ambiguous_document", f"Several documents are called “{address}”.", f"They are: {named}.")
        )
    for one in found:
        if stored := (await records.manifest.stored(one.corpus, [one.key])).get(one.key):
            return stored
    gone = select_documents(await records.manifest.find_forgotten(address), address, corpus)
    message = f"“{address}” was forgotten on purpose." if gone else f"No document is called “{address}”."
    hint = "Give its address, its key, or its exact title; `footnote search WORDS` shows addresses."
    raise CommandError(Fault("unknown_document", message, hint))


def forget(
    context: typer.Context,
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="Its address, its key, or its exact title.", show_default=False)
    ],
    corpus: Annotated[str, typer.Option(help="The corpus to forget it from, where several have it.")] = "",
    *,
    as_json: JsonOption = False,
) -> None:
    """Forget one document at once: it is no longer found or cited, and refreshes leave it out.

    `footnote ingest --only ADDRESS` brings it back, or `footnote ingest folder PATH --corpus NAME --restore` what has
    no source in the settings. The record of past answers keeps what it quoted.
    """
    with open_command(context, as_json=as_json) as ctx:
        done = ctx.call_service(lambda service: service.forget(address, corpus))
        said = Text(format_forgotten(done, ctx.settings.sources))
        ctx.output.give(rendering.json_documents.build_forget_document(done), said)


def format_forgotten(done: "ForgottenDocument", sources: Collection[str]) -> str:
    from bot.server.refresh.document_lookup import name_restoring_command

    one = done.document
    return sanitize_line(
        f"Forgotten: {one.title}, of {one.corpus} ({format_count(done.passages, 'passage')}). "
        f"It is no longer found or cited; `{name_restoring_command(one, sources)}` brings it back."
    )


def corpora(context: typer.Context, *, forgotten: ForgottenOption = False, as_json: JsonOption = False) -> None:
    """List what is indexed: documents, passages, age, what the last refresh did, and who may read it."""
    with open_command(context, as_json=as_json) as ctx:
        documents, views = rendering.json_documents, rendering.corpus_view
        if forgotten:
            away = ctx.call_records(lambda records: records.manifest.all_forgotten())
            ctx.output.give(documents.build_forgotten_document(away), views.render_forgotten(away))
            return
        there, settings, now = ctx.call_records(_load_corpora), ctx.settings, datetime.now(UTC)
        missing = sorted(settings.sources.keys() - {corpus.name for corpus in there})
        view = views.render_corpora(there, settings.visible_to, settings.zone, now, missing)
        ctx.output.give(documents.build_corpora_document(there, settings.visible_to, missing), view)


def reindex(
    context: typer.Context,
    *,
    shared: Annotated[
        bool, typer.Option("--shared", help="The vectors on the Chroma server as well: nobody else may be serving.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Rebuild this home's indexes from the database, as after a change of embedding function."""
    with open_command(context, as_json=as_json) as ctx:
        passages, seconds = rebuild_indexes(ctx, vectors=shared or not ctx.settings.chroma.url)
        said = Text(f"Indexed again: {format_count(passages, 'passage')}, in {seconds:,.1f} s.")
        ctx.output.give(rendering.json_documents.build_reindex_document(passages, seconds), said)


def rebuild_indexes(ctx: CommandContext, *, vectors: bool) -> tuple[int, float]:
    """Make the indexes of a home again, and return of how many passages, in how many seconds."""

    async def work(app: "App") -> int:
        with show_progress(ctx.output.err, label="reindex", unit="passages") as tell:
            return await app.passages.reindex(tell, vectors=vectors)

    started = time.monotonic()
    passages = ctx.call(ctx.services.open_app(ctx.settings, rebuilding=True), work)
    return passages, time.monotonic() - started


async def _load_corpora(records: "Records") -> "tuple[CorpusInfo, ...]":
    """List the corpora; of a run that has not ended, find out whether its process is gone."""
    from bot.server.refresh.run_history import build_history, resolve_run

    now, found = datetime.now(UTC), list["CorpusInfo"]()
    for info in await records.manifest.corpora():
        run = info.last_run
        if run and not run.ended:
            run = await resolve_run(run, build_history(records.manifest.database).leases, now)
        found.append(replace(info, last_run=run))
    return tuple(found)
