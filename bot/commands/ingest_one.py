"""`footnote ingest --only ADDRESS`: one document, now."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from bot.commands.frame import AsJson, Frame, command
from bot.printing import documents, tables
from bot.settings import SettingsError

if TYPE_CHECKING:
    from bot.settings_of.sources import SourceSettings
    from ingest.refreshing import RefreshReport


def only(
    context: typer.Context,
    address: Annotated[
        str, typer.Option("--only", metavar="ADDRESS", help="Read in this one document, also if it was forgotten.")
    ] = "",
    corpus: Annotated[str, typer.Option(help="With --only: the corpus whose source has it.")] = "",
    *,
    as_json: AsJson = False,
) -> None:
    """Read documents in. Run again, it reads what changed and forgets what is gone."""
    if context.invoked_subcommand:
        if address or corpus or as_json:
            raise typer.BadParameter(f"Write options behind `{context.invoked_subcommand}`; --only stands alone.")
        return
    if not address:
        raise typer.BadParameter("Name the document with --only, or say what to read: `footnote ingest --help`.")
    with command(context, as_json=as_json) as frame:
        reports = asyncio.run(_read(frame, address, _wanted(frame, corpus)))
        frame.output.give(documents.all_ingested(reports, {}), tables.reports_view(reports))


def _wanted(frame: Frame, corpus: str) -> "dict[str, SourceSettings]":
    there = frame.settings.sources
    wanted = {name: source for name, source in there.items() if corpus in {"", name}}
    if wanted:
        return wanted
    if corpus and there:
        message = f"The settings know no corpus “{corpus}” with a source."
        raise SettingsError(message, hint=f"There are: {', '.join(there)}.")
    hint = "Add a [[corpus]] with a source, or use `footnote ingest folder PATH --corpus NAME`."
    raise SettingsError("No corpus in the settings has a source.", hint=hint)


async def _read(frame: Frame, address: str, wanted: "dict[str, SourceSettings]") -> "tuple[RefreshReport, ...]":
    async with frame.doors.open_home(frame.settings) as home:
        return await home.read_one(address, wanted)
