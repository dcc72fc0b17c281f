"""`footnote audit`: what was asked, found and said, from the record."""

import asyncio
from typing import TYPE_CHECKING, Annotated

import typer

from bot import record
from bot.commands.frame import AsJson, Frame, command, examples
from bot.console import Failed, Fault
from bot.printing import record_documents, record_view

if TYPE_CHECKING:
    from storage.audit import AuditLog
    from storage.types import LogEntry

PAGE = 500

app = typer.Typer(
    no_args_is_help=True,
    help="Read the record of all that was asked and answered.",
    epilog=examples("footnote audit list", "footnote audit show 3f9a", "footnote audit verify"),
)


@app.command("list", epilog=examples("footnote audit list -n 50"))
def turns(
    context: typer.Context,
    count: Annotated[int, typer.Option("-n", "--count", min=1, max=10_000, help="How many at most.")] = 20,
    *,
    as_json: AsJson = False,
) -> None:
    """List the last questions, newest first."""
    with command(context, as_json=as_json) as frame:
        last = asyncio.run(_last(frame, count))
        frame.output.give(record_documents.turns(last), record_view.turns_view(last, frame.settings.zone))


@app.command(
    epilog=examples(
        "footnote audit show 3f9a1c02b7de", "footnote audit show 3f9a --full", "footnote audit show slack:T1/C1"
    )
)
def show(
    context: typer.Context,
    answer_id: Annotated[
        str, typer.Argument(metavar="ID", help="An answer's id, or its first characters; or a channel's.")
    ],
    *,
    full: Annotated[
        bool, typer.Option("--full", help="Show whole replies of a model, and all that it was given.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Show the story of one answer: the question, each search and call, each claim, each sentence, each source.

    It goes on to where it was posted and what people did with it. Of a channel: what admins set there, and when.
    """
    with command(context, as_json=as_json) as frame:
        entries = asyncio.run(_turn(frame, answer_id))
        frame.output.give(
            record_documents.turn(entries), record_view.turn_view(entries, frame.settings.zone, full=full)
        )


@app.command(epilog=examples("footnote audit verify"))
def verify(context: typer.Context, *, as_json: AsJson = False) -> None:
    """Check that every sentence ever said cites a source, and that every quote stands word for word in its passage."""
    with command(context, as_json=as_json) as frame:
        checked = asyncio.run(_verified(frame))
        frame.output.give(record_documents.verified(checked), record_view.verified_view(checked))
        if checked.findings:
            frame.output.note(f"footnote: {record_documents.broken_record(checked)['message']}")
            raise typer.Exit(1)


async def _last(frame: Frame, count: int) -> "tuple[tuple[LogEntry, LogEntry | None], ...]":
    async with frame.doors.open_records(frame.settings) as records:
        return await records.audit.turns(count)


async def _turn(frame: Frame, answer_id: str) -> "tuple[LogEntry, ...]":
    async with frame.doors.open_records(frame.settings) as records:
        return await records.audit.turn(await _full_id(records.audit, answer_id))


async def _full_id(audit: "AuditLog", beginning: str) -> str:
    match await audit.find(beginning, limit=2) if beginning else ():
        case (only,):
            return only
        case ():
            hint = "`footnote audit list` shows the last ones."
            raise Failed(Fault("unknown_answer", f"There is no answer “{beginning}” in the record.", hint))
        case found if beginning in found:
            return beginning
        case _:
            raise Failed(Fault("unknown_answer", f"Several answers begin with “{beginning}”.", "Give more of the id."))


async def _verified(frame: Frame) -> record.Verified:
    """Check the whole record, a page at a time."""
    checked, before = record.Verified(), None
    async with frame.doors.open_records(frame.settings) as records:
        while page := await records.audit.turns(PAGE, before=before):
            checked = record.added(checked, record.verified(page))
            before = page[-1][0].seq
    return checked
