"""Run `footnote audit`: find, read and check what is on record."""

from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import rendering
from bot.cli.audit.erase_command import add_hold_command
from bot.cli.audit.proof_commands import add_proof_commands
from bot.cli.audit.record_commands import add_record_commands
from bot.cli.command_context import JsonOption, format_examples, open_command
from bot.cli.terminal_output import CommandError
from bot.views.error_messages import Fault

if TYPE_CHECKING:
    from bot.app import Records
    from bot.views.turn_story import StoryPassage
    from storage.record.audit_log import AuditLog
    from storage.types import LogEntry


audit_app = typer.Typer(
    no_args_is_help=True,
    help="Read the record of all questions and answers.",
    epilog=format_examples("footnote audit list", "footnote audit show 3f9a", "footnote audit verify"),
)


add_record_commands(audit_app)
add_proof_commands(audit_app)
add_hold_command(audit_app)


@audit_app.command(
    epilog=format_examples(
        "footnote audit show 3f9a1c02b7de", "footnote audit show 3f9a --full", "footnote audit show slack:T1/C1"
    )
)
def show(
    context: typer.Context,
    answer_id: Annotated[
        str, typer.Argument(metavar="ID", help="An answer's id, or its first characters; or a channel's.")
    ],
    *,
    full: Annotated[bool, typer.Option("--full", help="Show passages, replies and inputs whole.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show one answer as a story: who asked what, what was found, claimed and said on what evidence, and withheld.

    Also where it was posted, and what people did with it. Of a channel: what admins set there, and when.
    """
    with open_command(context, as_json=as_json) as ctx:
        entries, passages = ctx.call_records(lambda records: _load_story(records, answer_id))
        view = rendering.audit_view.render_turn(entries, ctx.settings.zone, passages, full=full)
        ctx.output.give(rendering.json_documents.build_turn_document(entries, passages.values()), view)


async def _load_story(records: "Records", beginning: str) -> "tuple[tuple[LogEntry, ...], dict[str, StoryPassage]]":
    from bot.views.turn_story import collect_passages, list_passages

    entries = await load_turn(records.audit, beginning)
    return entries, collect_passages(entries, await records.manifest.recall(*list_passages(entries)))


async def load_turn(audit: "AuditLog", beginning: str) -> "tuple[LogEntry, ...]":
    match await audit.find(beginning, limit=2) if beginning else ():
        case (only,):
            return await audit.turn(only)
        case ():
            hint = "`footnote audit list` shows the last ones."
            raise CommandError(Fault("unknown_answer", f"There is no answer “{beginning}” in the record.", hint))
        case found if beginning in found:
            return await audit.turn(beginning)
        case _:
            message = f"Several answers begin with “{beginning}”."
            raise CommandError(Fault("unknown_answer", message, "Give more of the id."))
