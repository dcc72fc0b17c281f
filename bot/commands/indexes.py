"""`footnote corpora` and `footnote reindex`: what is indexed, and the indexes made again."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from bot.commands.frame import AsJson, Frame, command
from bot.printing import documents, tables
from bot.printing.corpora_view import corpora_view, forgotten_view
from bot.progress import told_progress

if TYPE_CHECKING:
    from storage.refresh_types import Listed
    from storage.types import CorpusInfo


Forgotten = Annotated[bool, typer.Option("--forgotten", help="List what was forgotten on purpose instead.")]


def corpora(context: typer.Context, *, forgotten: Forgotten = False, as_json: AsJson = False) -> None:
    """List what is indexed: documents, passages, how old it is, what the last refresh came to, and who may read it."""
    with command(context, as_json=as_json) as frame:
        if forgotten:
            away = asyncio.run(_forgotten(frame))
            frame.output.give(documents.all_forgotten(away), forgotten_view(away))
            return
        there, settings = asyncio.run(_corpora(frame)), frame.settings
        missing = sorted(settings.sources.keys() - {corpus.name for corpus in there})
        view = corpora_view(there, settings.readers, settings.zone, datetime.now(UTC), missing)
        frame.output.give(documents.indexed(there, settings.readers, missing), view)


def reindex(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Make the indexes again from the database, as after a change of embedding function."""
    with command(context, as_json=as_json) as frame:
        started = time.monotonic()
        passages = asyncio.run(_reindex(frame))
        seconds = time.monotonic() - started
        said = Text(f"Indexed again: {tables.counted(passages, 'passage')}, in {seconds:,.1f} s.")
        frame.output.give(documents.reindexed(passages, seconds), said)


async def _corpora(frame: Frame) -> "tuple[CorpusInfo, ...]":
    from bot.refreshing.history import as_it_is, history_of

    now, told = datetime.now(UTC), list["CorpusInfo"]()
    async with frame.doors.open_records(frame.settings) as records:
        for info in await records.manifest.corpora():
            run = info.last_run
            if run and not run.ended:
                run = await as_it_is(run, history_of(records.manifest.database).leases, now)
            told.append(replace(info, last_run=run))
    return tuple(told)


async def _forgotten(frame: Frame) -> "tuple[Listed, ...]":
    async with frame.doors.open_records(frame.settings) as records:
        return await records.manifest.all_forgotten()


async def _reindex(frame: Frame) -> int:
    async with frame.doors.open_app(frame.settings, rebuilding=True) as app:
        with told_progress(frame.output.err, label="reindex", unit="passages") as tell:
            return await app.passages.reindex(tell)
