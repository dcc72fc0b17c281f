"""Run `footnote audit`: find, read and check the record."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated

import typer

from bot.app import Records
from bot.cli.audit import erase_command, proof_commands, record_commands
from bot.cli.audit.turn_lookup import load_turn
from bot.cli.command_context import JsonOption, format_examples, open_command
from bot.cli.rendering.audit_view import build_turn_document, render_turn
from bot.views.turn_story import StoryPassage, collect_passages, list_passages
from storage.types import LogEntry


def show(
    context: typer.Context,
    answer_id: Annotated[
        str, typer.Argument(metavar="ID", help="The id of an answer (its first characters are enough) or of a channel.")
    ],
    *,
    full: Annotated[bool, typer.Option("--full", help="Show passages, replies and inputs in full.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show one answer as a story: asker, question, passages, claims and their evidence, answer, withheld sentences.

    It also shows where the answer was posted, and what people did with it. For a channel, it shows what admins changed
    there.
    """
    with open_command(context, as_json=as_json) as ctx:
        entries, passages = ctx.call_records(lambda records: _load_story(records, answer_id))
        view = render_turn(entries, ctx.settings.zone, passages, full=full)
        ctx.output.give(build_turn_document(entries, passages.values()), view)


async def _load_story(records: Records, beginning: str) -> tuple[Sequence[LogEntry], Mapping[str, StoryPassage]]:
    entries = await load_turn(records.audit, beginning)
    return entries, collect_passages(entries, await records.manifest.recall(*list_passages(entries)))


COMMANDS: Mapping[str, tuple[Callable[..., None], Sequence[str]]] = {
    "list": (
        record_commands.list_turns,
        ["footnote audit list --channel '#sales' --words refund --since 2026-10 --until 2026-10"],
    ),
    "export": (
        record_commands.export,
        ["footnote audit export --since 2026-10 > october.jsonl", "footnote audit export --proofs > record.jsonl"],
    ),
    "stats": (record_commands.stats, ["footnote audit stats --since 30d --step day"]),
    "unanswered": (record_commands.unanswered, ["footnote audit unanswered --corpus handbook"]),
    "reindex": (record_commands.reindex, ["footnote audit reindex"]),
    "feedback": (record_commands.feedback, ["footnote audit feedback --rating down"]),
    "verify": (proof_commands.verify, ["footnote audit verify", "footnote audit verify --against checkpoint.txt"]),
    "checkpoint": (proof_commands.checkpoint, ["footnote audit checkpoint > checkpoint.txt"]),
    "key": (proof_commands.key, ["footnote audit key", "footnote audit key --new"]),
    "receipt": (proof_commands.receipt, ["footnote audit receipt 3f9a1c02b7de > receipt.json"]),
    "restored": (
        proof_commands.restored,
        ["footnote audit restored checkpoint.txt --why 'The disk was lost; backup of Monday.'"],
    ),
    "hold": (
        erase_command.hold,
        ["footnote audit hold slack:T1/U1 --why 'Case 12'", "footnote audit hold slack:T1/U1 --off"],
    ),
    "show": (
        show,
        ["footnote audit show 3f9a1c02b7de", "footnote audit show 3f9a --full", "footnote audit show slack:T1/C1"],
    ),
}
audit_app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    epilog=format_examples("footnote audit list", "footnote audit show 3f9a", "footnote audit verify"),
)
for name, (command, examples) in COMMANDS.items():
    audit_app.command(name, epilog=format_examples(*examples))(command)
