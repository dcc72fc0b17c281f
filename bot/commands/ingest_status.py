"""`footnote ingest status`: which refreshes run now, what the last ones and the nights came to, and what comes next."""

import asyncio
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

import typer

from bot.commands.frame import AsJson, Frame, command

if TYPE_CHECKING:
    from bot.refreshing.refreshes import Refreshes


def status(
    context: typer.Context,
    count: Annotated[
        int, typer.Option("-n", "--count", min=1, max=1_000, help="How many runs and nights at most.")
    ] = 20,
    *,
    as_json: AsJson = False,
) -> None:
    """Show what is being read in now, by whichever process, what the last runs and nights came to, and what comes."""
    from bot.printing import run_documents, run_view

    with command(context, as_json=as_json) as frame:
        found = asyncio.run(_found(frame, count))
        frame.output.give(run_documents.refreshes(found), run_view.refreshes_view(found, frame.settings.zone))


async def _found(frame: Frame, count: int) -> "Refreshes":
    async with frame.doors.open_history(frame.settings) as history:
        return await history.told(frame.settings, datetime.now(UTC), count=count)
