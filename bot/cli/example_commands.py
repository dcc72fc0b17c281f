"""Run `footnote examples` and `footnote answers`: what an operator chooses of the answers on record."""

import getpass
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import rendering
from bot.cli.audit.audit_commands import load_turn
from bot.cli.command_context import JsonOption, format_examples, open_command, parse_path
from bot.cli.terminal_output import CommandError, build_document
from bot.views.error_messages import Fault
from bot.views.text_layout import Text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.app import Records
    from bot.cli.rendering.audit_view import ListedExample, ListedPin
    from bot.settings.tables.settings_tables import Settings

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
    from bot.access import find_forgotten_documents
    from bot.answering.example_pool import UnfitExample, approve_turn

    entries = await load_turn(records.audit, answer_id)
    turn_id = entries[0].turn_id
    try:
        new = await approve_turn(entries, records.examples, BY, partial(find_forgotten_documents, records.manifest))
    except UnfitExample as unfit:
        hint = "`footnote audit show ID` tells what became of it."
        raise CommandError(Fault("unfit_example", UNFIT[unfit.reason], hint)) from unfit
    return turn_id, "is an example now" if new else "was an example already"


async def _drop(records: "Records", answer_id: str) -> tuple[str, str]:
    from bot.answering.example_pool import DROPPED, build_pool_entry

    turn_id = await _find_example(records, answer_id)
    await records.examples.drop(turn_id, build_pool_entry(turn_id, BY, DROPPED))
    return turn_id, "is no example any more"


async def _pin(records: "Records", answer_id: str, *, pinned: bool) -> tuple[str, str]:
    from bot.answering.example_pool import PINNED, UNPINNED, build_pool_entry

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
    from bot.access import find_forgotten_documents
    from bot.answering.example_pool import read_demo
    from bot.cli.rendering.audit_view import ListedExample

    listed = [(one, read_demo(one)) for one in await records.examples.all()]
    stands_on = {document for _, demo in listed if demo for document in demo.documents}
    gone = await find_forgotten_documents(records.manifest, stands_on)
    return [
        ListedExample(one, demo, shown=demo is not None and gone.isdisjoint(demo.documents)) for one, demo in listed
    ]


UNPINNABLE = {
    **UNFIT,
    "check": "A fact-check is no answer to a question.",
    "follow_up": "Its question leans on what was said before it.",
    "changed": "A passage that the answer cites is gone or has changed since.",
    "empty": "There is no sentence to say.",
}

answers_app = typer.Typer(
    no_args_is_help=True,
    help="Pin answers to their questions: they are said first when somebody asks the same, while their citations hold.",
    epilog=format_examples(
        "footnote answers pin 3f9a --text better.txt", "footnote answers list", "footnote answers drop 3f9a"
    ),
)


@answers_app.command("pin", epilog=format_examples("footnote answers pin 3f9a --text better.txt --by Ana"))
def pin_answer(
    context: typer.Context,
    answer_id: IdArgument,
    *,
    text: Annotated[
        Path | None,
        typer.Option(parser=parse_path, help="A corrected text, with the answer's own footnotes: [1]."),
    ] = None,
    by: Annotated[str, typer.Option(help="Who pins it, as askers are told; by default whoever is signed in.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Say an answer again when its question is asked; each sentence of a corrected text must hold by what it cites."""
    with open_command(context, as_json=as_json) as ctx:
        name, corrected = by.strip() or getpass.getuser(), _read_text(text) if text else ""
        turn_id = ctx.call_records(lambda records: _pin_answer(records, ctx.settings, answer_id, corrected, name))
        ctx.output.give(build_document(answer_id=turn_id, done="is pinned"), Text(f"{turn_id} is pinned."))


@answers_app.command("drop", epilog=format_examples("footnote answers drop 3f9a"))
def drop_answer(context: typer.Context, answer_id: IdArgument, *, as_json: JsonOption = False) -> None:
    """Let an answer be pinned no longer."""
    _change(context, _drop_answer, answer_id, as_json=as_json)


@answers_app.command("list", epilog=format_examples("footnote answers list", "footnote answers list --json"))
def list_answers(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """List the pinned answers, newest first, and which of them are not said as their passages are not as they were."""
    with open_command(context, as_json=as_json) as ctx:
        listed = ctx.call_records(_list_answers)
        view = rendering.audit_view.render_pins(listed)
        ctx.output.give(rendering.json_documents.build_pins_document(listed), view)


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(Fault("unreadable_text", f"{file} cannot be read: {error}.")) from error


async def _pin_answer(records: "Records", settings: "Settings", answer_id: str, text: str, name: str) -> str:
    from bot.access import find_forgotten_documents
    from bot.answering.example_pool import PINNED
    from bot.answering.pinned_answers import (
        UnfitAnswer,
        UnsupportedText,
        build_pin_entry,
        build_pinned,
        encode_pinned,
    )
    from bot.wiring import open_text_check
    from storage.types import ApprovedExample

    entries, day = await load_turn(records.audit, answer_id), datetime.now(settings.zone).date().isoformat()
    question = str(entries[0].body.get("question", ""))
    try:
        async with open_text_check(settings, question) as (supports, verify):
            pinned = await build_pinned(
                entries,
                text,
                recall=records.manifest.recall,
                find_forgotten=partial(find_forgotten_documents, records.manifest),
                supports=supports,
                verify=verify,
                name=name,
                day=day,
            )
    except UnfitAnswer as unfit:
        hint = "`footnote audit show ID` tells what became of it."
        raise CommandError(Fault("unfit_answer", UNPINNABLE[unfit.reason], hint)) from unfit
    except UnsupportedText as unsupported:
        refused = " ".join(f"“{sentence}”: {reason}." for sentence, reason in unsupported.refused)
        hint = "Say it closer to what its footnotes' passages say, or cite the passage that says it."
        raise CommandError(Fault("unsupported_text", f"The text does not hold. {refused}", hint)) from unsupported
    await records.examples.pin_answer(
        ApprovedExample(pinned.turn_id, BY, encode_pinned(pinned)), build_pin_entry(pinned, BY, PINNED)
    )
    return pinned.turn_id


async def _drop_answer(records: "Records", beginning: str) -> tuple[str, str]:
    from bot.answering.example_pool import UNPINNED
    from storage.types import EntryKind, LogEntry

    known = [one.turn_id for one in await records.examples.answers() if beginning and one.turn_id.startswith(beginning)]
    if len(known) != 1:
        raise CommandError(
            Fault(
                "unknown_answer",
                f"{'Several' if known else 'No'} pinned answers begin with “{beginning}”.",
                "`footnote answers list` shows them.",
            )
        )
    facts = {"what": "answer", "by": BY, "where": "", "state": UNPINNED}
    await records.examples.drop_answer(known[0], LogEntry(known[0], EntryKind.FEEDBACK, facts))
    return known[0], "is pinned no longer"


async def _list_answers(records: "Records") -> "Sequence[ListedPin]":
    from bot.access import find_forgotten_documents
    from bot.answering.pinned_answers import read_pinned, restore
    from bot.cli.rendering.audit_view import ListedPin

    listed = []
    for one in await records.examples.answers():
        if pinned := read_pinned(one):
            gone = await find_forgotten_documents(records.manifest, pinned.documents)
            said = not gone and await restore(pinned, pinned.corpora, records.manifest.recall) is not None
            listed.append(ListedPin(pinned, said=said))
    return listed
