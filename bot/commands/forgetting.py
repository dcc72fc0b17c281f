"""`footnote forget`: one document is found and cited no more, from this moment on."""

import asyncio
import shlex
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from bot.commands.frame import AsJson, Frame, command
from bot.printing import documents
from bot.printing.tables import counted
from bot.sanitizing import one_line

if TYPE_CHECKING:
    from bot.refreshing.forgotten import Forgotten


def forget(
    context: typer.Context,
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="Its address, its key, or its exact title.", show_default=False)
    ],
    corpus: Annotated[str, typer.Option(help="The corpus it is to be forgotten from, where several have it.")] = "",
    *,
    as_json: AsJson = False,
) -> None:
    """Forget one document at once: it is found and cited no more, and refreshes leave it out.

    `footnote ingest --only ADDRESS` brings it back. The record of what was answered keeps what it quoted.
    """
    with command(context, as_json=as_json) as frame:
        done = asyncio.run(_forgotten(frame, address, corpus))
        frame.output.give(documents.forgotten(done), Text(said(done)))


def said(done: "Forgotten") -> str:
    """Return the line that tells of it. Pure."""
    one = done.document
    where = one.url or one.key
    return one_line(
        f"Forgotten: {one.title}, of {one.corpus} ({counted(done.passages, 'passage')}). "
        f"It is found and cited no more; `footnote ingest --only {shlex.quote(where)}` brings it back."
    )


async def _forgotten(frame: Frame, address: str, corpus: str) -> "Forgotten":
    async with frame.doors.open_home(frame.settings) as home:
        return await home.forget(address, corpus)
