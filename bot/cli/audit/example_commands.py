"""Run `footnote examples` and `answers`: choose recorded answers as examples, or pin them to their questions."""

import getpass
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import RenderableType

from bot.access import find_forgotten_documents
from bot.answering.example_pool import (
    DROPPED,
    PINNED,
    UNPINNED,
    UnfitExample,
    approve_turn,
    build_pool_entry,
    read_demo,
)
from bot.answering.pinned_answers import (
    PinnedAnswer,
    UnfitAnswer,
    UnsupportedText,
    build_pin_entry,
    build_pinned,
    encode_pinned,
    read_pinned,
    restore,
)
from bot.app import Records
from bot.cli.audit.turn_lookup import load_turn
from bot.cli.command_context import JsonOption, format_examples, open_command, parse_path
from bot.cli.rendering.answer_view import WIDTH
from bot.cli.terminal_output import CommandError, Document, build_document, pick
from bot.settings.tables.settings_tables import Settings
from bot.views.error_messages import Fault
from bot.views.sanitize import sanitize_line
from bot.views.text_formats import build_table, format_moment
from bot.views.text_layout import Text
from pipeline.types import Demonstration
from storage.types import ApprovedExample, EntryKind, LogEntry

BY = "terminal"  # the approver, as the record names the owner of the machine
UNFIT = {
    "unknown": "That is not an answer: nothing was asked.",
    "check": "A fact-check cannot be an example of an answer.",
    "unanswered": "That question was not answered.",
    "retracted": "That answer was taken back.",
    "unconfirmed": "Not everything in that answer was confirmed.",
    "forgotten": "A page that the answer cites has been forgotten since.",
}
UNPINNABLE = {
    **UNFIT,
    "check": "A fact-check is not an answer to a question.",
    "follow_up": "Its question depends on the messages before it.",
    "changed": "A passage that the answer cites was deleted or has changed since.",
    "empty": "The text has no sentence.",
}
UNFIT_HINT = "`footnote audit show ID` shows what happened to it."
IdArgument = Annotated[str, typer.Argument(metavar="ID", help="An answer's id, or its first characters.")]
Change = Callable[[Records, str], Awaitable[tuple[str, str]]]
"""Makes an answer an example, pins it or undoes that; returns its id and what it is now: `is no longer pinned`."""

examples_app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    epilog=format_examples("footnote examples add 3f9a", "footnote examples list", "footnote examples drop 3f9a"),
)
answers_app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    epilog=format_examples(
        "footnote answers pin 3f9a --text better.txt", "footnote answers list", "footnote answers drop 3f9a"
    ),
)


@dataclass(frozen=True, slots=True)
class ListedExample:
    """An approved example; `demo` is None if this version cannot read it."""

    approved: ApprovedExample
    demo: Demonstration | None
    shown: bool  # whether prompts may contain it: no page that it cites was forgotten

    @property
    def question(self) -> str:
        return self.demo.turns[-1][1] if self.demo else ""


ListedPin = tuple[PinnedAnswer, bool]
"""A pinned answer, and whether it is given: the passages that it cites are unchanged."""


@examples_app.command(epilog=format_examples("footnote examples add 3f9a1c02b7de"))
def add(context: typer.Context, answer_id: IdArgument, *, as_json: JsonOption = False) -> None:
    """Approve an answer as an example; all its statements must have been confirmed."""
    _change(context, _add, answer_id, as_json=as_json)


@examples_app.command(epilog=format_examples("footnote examples drop 3f9a"))
def drop(context: typer.Context, answer_id: IdArgument, *, as_json: JsonOption = False) -> None:
    """Remove an answer from the examples."""
    _change(context, _drop, answer_id, as_json=as_json)


@examples_app.command(epilog=format_examples("footnote examples pin 3f9a", "footnote examples pin 3f9a --off"))
def pin(
    context: typer.Context,
    answer_id: IdArgument,
    *,
    off: Annotated[bool, typer.Option("--off", help="Unpin it.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Show an example before all others, for every question."""
    _change(context, partial(_pin, pinned=not off), answer_id, as_json=as_json)


@examples_app.command("list", epilog=format_examples("footnote examples list", "footnote examples list --json"))
def list_examples(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """List the approved answers, newest first. A model is also shown examples that come with Footnote."""
    with open_command(context, as_json=as_json) as ctx:
        listed = ctx.call_records(_list_examples)
        ctx.output.give(build_examples_document(listed), render_examples(listed, ctx.settings.zone))


@answers_app.command("pin", epilog=format_examples("footnote answers pin 3f9a --text better.txt --by Ana"))
def pin_answer(
    context: typer.Context,
    answer_id: IdArgument,
    *,
    text: Annotated[
        Path | None,
        typer.Option(
            parser=parse_path, help="A file with a corrected text, which cites by number like the answer: [1]."
        ),
    ] = None,
    by: Annotated[str, typer.Option(help="Your name, which askers see; default: this machine's user.")] = "",
    as_json: JsonOption = False,
) -> None:
    """Give this answer whenever its question is asked again. A corrected text must be supported by what it cites."""
    with open_command(context, as_json=as_json) as ctx:
        name, corrected = by.strip() or getpass.getuser(), _read_text(text) if text else ""
        turn_id = ctx.call_records(lambda records: _pin_answer(records, ctx.settings, answer_id, corrected, name))
        ctx.output.give(build_document(answer_id=turn_id, done="is pinned"), Text(f"{turn_id} is pinned."))


@answers_app.command("drop", epilog=format_examples("footnote answers drop 3f9a"))
def drop_answer(context: typer.Context, answer_id: IdArgument, *, as_json: JsonOption = False) -> None:
    """Unpin an answer."""
    _change(context, _drop_answer, answer_id, as_json=as_json)


@answers_app.command("list", epilog=format_examples("footnote answers list", "footnote answers list --json"))
def list_answers(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """List the pinned answers, newest first, and mark those not given because a passage changed."""
    with open_command(context, as_json=as_json) as ctx:
        listed = ctx.call_records(_list_pins)
        ctx.output.give(build_pins_document(listed), render_pins(listed))


def _change(context: typer.Context, change: Change, answer_id: str, *, as_json: bool) -> None:
    with open_command(context, as_json=as_json) as ctx:
        turn_id, done = ctx.call_records(lambda records: change(records, answer_id))
        ctx.output.give(build_document(answer_id=turn_id, done=done), Text(f"{turn_id} {done}."))


async def _add(records: Records, answer_id: str) -> tuple[str, str]:
    entries = await load_turn(records.audit, answer_id)
    try:
        is_new = await approve_turn(entries, records.examples, BY, partial(find_forgotten_documents, records.manifest))
    except UnfitExample as unfit:
        raise CommandError(Fault("unfit_example", UNFIT[unfit.reason], UNFIT_HINT)) from unfit
    return entries[0].turn_id, "is an example now" if is_new else "was an example already"


async def _drop(records: Records, beginning: str) -> tuple[str, str]:
    turn_id = await _find_example(records, beginning)
    await records.examples.drop(turn_id, build_pool_entry(turn_id, BY, DROPPED))
    return turn_id, "is no longer an example"


async def _pin(records: Records, beginning: str, *, pinned: bool) -> tuple[str, str]:
    turn_id = await _find_example(records, beginning)
    entry = build_pool_entry(turn_id, BY, PINNED if pinned else UNPINNED)
    await records.examples.pin(turn_id, entry, pinned=pinned)
    return turn_id, "is shown before all others" if pinned else "is chosen like the others"


async def _find_example(records: Records, beginning: str) -> str:
    fault = Fault("unknown_example", f"There is no example “{beginning}”.", "`footnote examples list` shows them.")
    return _match_id(beginning, await records.examples.all(), "examples", fault)


def _match_id(beginning: str, listed: Iterable[ApprovedExample], plural: str, unknown: Fault) -> str:
    """Return the only id with this beginning. Raises `CommandError` if none or several have it."""
    match [example.turn_id for example in listed if beginning and example.turn_id.startswith(beginning)]:
        case [only]:
            return only
        case []:
            raise CommandError(unknown)
        case _:
            message = f"Several {plural} begin with “{beginning}”."
            raise CommandError(Fault(unknown.kind, message, "Give more of the id."))


async def _list_examples(records: Records) -> Sequence[ListedExample]:
    listed = [(example, read_demo(example)) for example in await records.examples.all()]
    cited = {document for _, demo in listed if demo for document in demo.documents}
    forgotten = await find_forgotten_documents(records.manifest, cited)
    return [
        ListedExample(example, demo, shown=demo is not None and forgotten.isdisjoint(demo.documents))
        for example, demo in listed
    ]


def _read_text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(Fault("unreadable_text", f"{file} cannot be read: {error}.")) from error


async def _pin_answer(records: Records, settings: Settings, answer_id: str, text: str, name: str) -> str:
    from bot.wiring import open_text_check  # it loads the models of the local check

    entries = await load_turn(records.audit, answer_id)
    try:
        async with open_text_check(settings, str(entries[0].body.get("question", ""))) as (supports, verify):
            pinned = await build_pinned(
                entries,
                text,
                recall=records.manifest.recall,
                find_forgotten=partial(find_forgotten_documents, records.manifest),
                supports=supports,
                verify=verify,
                name=name,
                day=datetime.now(settings.zone).date().isoformat(),
            )
    except UnfitAnswer as unfit:
        raise CommandError(Fault("unfit_answer", UNPINNABLE[unfit.reason], UNFIT_HINT)) from unfit
    except UnsupportedText as unsupported:
        refused = " ".join(f"“{sentence}”: {reason}." for sentence, reason in unsupported.refused)
        hint = "Write it closer to the cited passages, or cite the passage that states it."
        message = f"The text is not supported. {refused}"
        raise CommandError(Fault("unsupported_text", message, hint)) from unsupported
    await records.examples.pin_answer(
        ApprovedExample(pinned.turn_id, BY, encode_pinned(pinned)), build_pin_entry(pinned, BY, PINNED)
    )
    return pinned.turn_id


async def _drop_answer(records: Records, beginning: str) -> tuple[str, str]:
    message = f"No pinned answers begin with “{beginning}”."
    fault = Fault("unknown_answer", message, "`footnote answers list` shows them.")
    turn_id = _match_id(beginning, await records.examples.answers(), "pinned answers", fault)
    facts = {"what": "answer", "by": BY, "where": "", "state": UNPINNED}
    await records.examples.drop_answer(turn_id, LogEntry(turn_id, EntryKind.FEEDBACK, facts))
    return turn_id, "is no longer pinned"


async def _list_pins(records: Records) -> Sequence[ListedPin]:
    listed = []
    for example in await records.examples.answers():
        if pinned := read_pinned(example):
            forgotten = await find_forgotten_documents(records.manifest, pinned.documents)
            restored = not forgotten and await restore(pinned, pinned.corpora, records.manifest.recall)
            listed.append((pinned, bool(restored)))
    return listed


def render_examples(listed: Sequence[ListedExample], zone: tzinfo) -> RenderableType:
    if not listed:
        return Text("No answer is an example yet. `footnote examples add ID` adds one.")
    table = build_table("Approved", "Answer", "By", "State", "Question")
    for example in listed:
        approved, question = example.approved, sanitize_line(example.question)[:WIDTH]
        state = ("pinned" if approved.pinned else "") if example.shown else "not shown: a page was forgotten"
        table.add_row(format_moment(approved.at, zone), approved.turn_id, sanitize_line(approved.by), state, question)
    return table


def render_pins(listed: Sequence[ListedPin]) -> RenderableType:
    if not listed:
        return Text("No answer is pinned yet. `footnote answers pin ID` pins one to its question.")
    table = build_table("Pinned", "Answer", "By", "State", "Question")
    for pinned, given in listed:
        state, question = "" if given else "not given: a passage has changed", sanitize_line(pinned.question)[:WIDTH]
        table.add_row(pinned.day, pinned.turn_id, sanitize_line(pinned.name), state, question)
    return table


def build_examples_document(listed: Iterable[ListedExample]) -> Document:
    return build_document(
        examples=[
            {
                "answer_id": example.approved.turn_id,
                "question": example.question,
                "corpora": list(example.demo.corpora) if example.demo else [],
                **pick(example.approved, "by at pinned"),
                "shown": example.shown,
            }
            for example in listed
        ]
    )


def build_pins_document(listed: Iterable[ListedPin]) -> Document:
    return build_document(
        answers=[
            {
                "answer_id": pinned.turn_id,
                **pick(pinned, "question name day corpora"),
                "text": " ".join(sentence.text for sentence in pinned.sentences),
                "said": given,
            }
            for pinned, given in listed
        ]
    )
