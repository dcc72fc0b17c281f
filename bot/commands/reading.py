"""How commands have sources read in: with progress on stderr, and a line for each corpus that failed."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from bot.commands.frame import Frame
from bot.console import Fault, Mendable, fault_of
from bot.printing import documents, tables
from bot.printing.tables import counted
from bot.progress import told_progress
from bot.settings import SettingsError
from bot.settings_of.sources import SourceSettings

if TYPE_CHECKING:
    from bot.home import Home
    from ingest.refreshing import Progress, RefreshReport

ConfirmRemoval: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--confirm-removal",
        metavar="NAME",
        help="Remove from this corpus what its source lists no more, however much that is; may be given several times.",
    ),
]
Reports = tuple[list["RefreshReport"], dict[str, Fault]]


def read_in(frame: Frame, wanted: Mapping[str, SourceSettings], confirmed: Sequence[str] | None) -> Reports:
    """Bring corpora up to date, and return what came of each, or why nothing did.

    Raises:
        SettingsError: A removal is confirmed for a corpus that is not to be read in.
    """
    for name in confirmed or ():
        if name not in wanted:
            message = f"A removal is confirmed for “{name}”, which has no source in the settings."
            raise SettingsError(message, hint=f"There are: {', '.join(wanted)}.")
    return asyncio.run(_all(frame, wanted, confirmed or ()))


def give_one(frame: Frame, corpus: str, source: SourceSettings, confirmed: Sequence[str] | None) -> None:
    """Bring a corpus up to date, and tell what that did."""
    report = asyncio.run(_one(frame, corpus, source, confirmed=corpus in (confirmed or ())))
    frame.output.give(documents.ingested(report), tables.reports_view([report]))


async def _one(frame: Frame, corpus: str, source: SourceSettings, *, confirmed: bool) -> "RefreshReport":
    async with frame.doors.open_home(frame.settings) as home:
        return await _refreshed(frame, home, corpus, source, confirmed=confirmed)


async def _all(frame: Frame, wanted: Mapping[str, SourceSettings], confirmed: Sequence[str]) -> Reports:
    reports, faults = list["RefreshReport"](), dict[str, Fault]()
    async with frame.doors.open_home(frame.settings) as home:
        for corpus, source in wanted.items():
            try:
                reports.append(await _refreshed(frame, home, corpus, source, confirmed=corpus in confirmed))
            except Exception as error:
                if not isinstance(error, Mendable):
                    raise
                faults[corpus] = fault_of(error)
                frame.output.note(f"footnote: {corpus}: {faults[corpus].line()}")
    return reports, faults


async def _refreshed(
    frame: Frame, home: "Home", corpus: str, source: SourceSettings, *, confirmed: bool
) -> "RefreshReport":
    with told_progress(frame.output.err, label=corpus, unit="documents") as tell:

        def progress(step: "Progress") -> None:
            tell(step.done, step.total, step.doing or counted(step.passages, "passage"))

        return await home.refresh(corpus, source, progress, confirm_removal=confirmed)
