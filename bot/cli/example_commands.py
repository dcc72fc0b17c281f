"""Run `footnote examples`: the answers that a model is shown as worked examples, as an operator chooses."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

from bot.cli import rendering
from bot.cli.audit.audit_commands import load_turn
from bot.cli.command_context import JsonOption, format_examples, open_command
from bot.cli.terminal_output import CommandError, build_document
from bot.views.error_messages import Fault

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.cli.rendering.audit_view import ListedExample
    from bot.wiring import Records

BY = "terminal"  # who approves here: whoever owns the machine
UNFIT = {
    "unknown": "That is no answer: nothing was asked.",
    "check": "A fact-check is no example of an answer.",
    "unanswered": "That question was not answered.",
    "retracted": "That answer was taken back.",
    "unconfirmed": "Not everything in that answer was confirmed.",
    "forgotten": "A page that the answer stands on was forgotten since.",
}
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="An answer's id, or its first characters.")]

examples_app = typer.Typer(
    no_args_is_help=True,
    help="Choose which answers a model is shown as worked examples (by the system in-context).",
    epilog=format_examples("footnote examples add 3f9a", "footnote examples list", "footnote examples drop 3f9a"),
)


@examples_app.command(epilog=format_examples("footnote examples add 3f9a1c02b7de"))
def add(context: typer.Context, answer_id: IdArgument, *, as_json: JsonOption = False) -> None:
    """Approve an answer as an example; everything in it must have been confirmed."""
    _change(context, _add, answer_id, as_json=as_json)


@examples_app.command(epilog=format_examples("footnote examples drop 3f9a"))
def drop(context: typer.Context, answer_id: IdArgument, *, as_json: JsonOption = False) -> None:
    """Show an answer as an example no longer."""
    _change(context, _drop, answer_id, as_json=as_json)


@examples_app.command(epilog=format_examples("footnote examples pin 3f9a", "footnote examples pin 3f9a --off"))
def pin(
    context: typer.Context,
    answer_id: IdArgument,
    *,
    off: Annotated[bool, typer.Option("--off", help="Let it be chosen as others are again.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show an example before all others, whatever is asked."""
    _change(context, partial(_pin, pinned=not off), answer_id, as_json=as_json)


@examples_app.command("list", epilog=format_examples("footnote examples list", "footnote examples list --json"))
def list_examples(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """List the approved answers, newest first; some of ours are always there besides."""
    with open_command(context, as_json=as_json) as ctx:
        listed = ctx.call_records(_list)
        view = rendering.audit_view.render_examples(listed, ctx.settings.zone)
        ctx.output.give(rendering.json_documents.build_examples_document(listed), view)


Change = Callable[["Records", str], Awaitable[tuple[str, str]]]


def _change(context: typer.Context, change: Change, answer_id: str, *, as_json: bool) -> None:
    with open_command(context, as_json=as_json) as ctx:
        turn_id, done = ctx.call_records(lambda records: change(records, answer_id))
        view = Text(f"{turn_id} {done}.")
        ctx.output.give(build_document(answer_id=turn_id, done=done), view)


async def _add(records: "Records", answer_id: str) -> tuple[str, str]:
    from bot.example_pool import UnfitExample, approve_turn
    from bot.wiring import find_forgotten_documents

    entries = await load_turn(records.audit, answer_id)
    turn_id = entries[0].turn_id
    try:
        new = await approve_turn(entries, records.examples, BY, partial(find_forgotten_documents, records))
    except UnfitExample as unfit:
        hint = "`footnote audit show ID` tells what became of it."
        raise CommandError(Fault("unfit_example", UNFIT[unfit.reason], hint)) from unfit
    return turn_id, "is an example now" if new else "was an example already"


async def _drop(records: "Records", answer_id: str) -> tuple[str, str]:
    from bot.example_pool import DROPPED, build_pool_entry

    turn_id = await _find_example(records, answer_id)
    await records.examples.drop(turn_id, build_pool_entry(turn_id, BY, DROPPED))
    return turn_id, "is no example any more"


async def _pin(records: "Records", answer_id: str, *, pinned: bool) -> tuple[str, str]:
    from bot.example_pool import PINNED, UNPINNED, build_pool_entry

    turn_id = await _find_example(records, answer_id)
    entry = build_pool_entry(turn_id, BY, PINNED if pinned else UNPINNED)
    await records.examples.pin(turn_id, entry, pinned=pinned)
    return turn_id, "is shown before all others" if pinned else "is chosen as others are"


async def _find_example(records: "Records", beginning: str) -> str:
    known = [one.turn_id for one in await records.examples.all()]
    match [one for one in known if beginning and one.startswith(beginning)]:
        case [only]:
            return only
        case []:
            hint = "`footnote examples list` shows them."
            raise CommandError(Fault("unknown_example", f"There is no example “{beginning}”.", hint))
        case _:
            raise CommandError(
                Fault("unknown_example", f"Several examples begin with “{beginning}”.", "Give more of the id.")
            )


async def _list(records: "Records") -> "Sequence[ListedExample]":
    from bot.cli.rendering.audit_view import ListedExample
    from bot.example_pool import read_demo
    from bot.wiring import find_forgotten_documents

    listed = [(one, read_demo(one)) for one in await records.examples.all()]
    stands_on = {document for _, demo in listed if demo for document in demo.documents}
    gone = await find_forgotten_documents(records, stands_on)
    return [
        ListedExample(one, demo, shown=demo is not None and gone.isdisjoint(demo.documents)) for one, demo in listed
    ]
