"""Run `footnote erase` and `footnote audit hold`: erase words from the record, and put parts of it on hold."""

from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from bot.app import Records
from bot.cli.command_context import CommandContext, JsonOption, open_command
from bot.cli.terminal_output import CommandError, build_document, pick
from bot.views.error_messages import Fault
from bot.views.text_formats import format_count
from bot.views.text_layout import Text
from storage.record.erasure import ErasureDone, ErasurePlan, ErasureTarget, RecordErasure

BY = "terminal"


def hold(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="ID", help="A person, a channel or an answer; without one, holds are listed.")
    ] = "",
    why: Annotated[str, typer.Option(help="Reason, stored in the record.")] = "",
    *,
    off: Annotated[bool, typer.Option("--off", help="End the hold.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Put a person, a channel or an answer on hold: none of their entries are erased until the hold ends."""
    with open_command(context, as_json=as_json) as ctx:
        holds = ctx.call_records(lambda records: _hold(_open_erasure(ctx, records), name, why, on=not off))
        ctx.output.give(build_document(held=holds), Text("\n".join(holds) or "Nothing is on hold."))


def erase(
    context: typer.Context,
    person: Annotated[str, typer.Option(help="Erase all that this person asked: slack:T1/U1.")] = "",
    conversation: Annotated[str, typer.Option(help="Erase the conversation or answer with this id.")] = "",
    older_than: Annotated[str, typer.Option(help="Erase all turns older than this: 365d.")] = "",
    why: Annotated[str, typer.Option(help="Reason, stored in the record.")] = "",
    *,
    messages: Annotated[bool, typer.Option("--messages", help="Also remove the bot's messages.")] = False,
    yes: Annotated[
        bool, typer.Option("--yes", help="Erase; without this option, only show how much would be erased.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """The command also removes the copies of the database that upgrades made.

    Messages on platforms stay. With --messages, `footnote serve` removes the bot's own, within half a minute or when it
    next starts.
    """
    target = build_target(person, conversation, older_than)
    with open_command(context, as_json=as_json) as ctx:
        if not yes:
            plan = ctx.call_records(lambda records: _open_erasure(ctx, records).plan(target, messages=messages))
            document = build_document(
                erased=False,
                held=plan.held,
                turns=len(plan.turns),
                entries=len(plan.entries),
                questions=len(plan.tickets),
                messages=plan.messages,
            )
            ctx.output.give(document, Text(_describe_plan(plan)))
            return
        done = ctx.call_records(
            lambda records: _open_erasure(ctx, records).erase(target, why=why, by=BY, messages=messages)
        )
        counts = pick(done, "turns entries questions messages")
        document = build_document(erased=True, **counts, copies=list(done.backups), compacted=done.compacted)
        ctx.output.give(document, Text(_describe_done(done)))


def build_target(person: str, conversation: str, older_than: str) -> ErasureTarget:
    if sum(map(bool, (person, conversation, older_than))) != 1:
        raise typer.BadParameter("Give exactly one of --person, --conversation and --older-than.")
    if person and (":" not in person or "/" not in person):
        raise typer.BadParameter("Write a person as slack:T1/U1 or discord:G1/U1; `footnote audit list` shows them.")
    if not older_than:
        return ErasureTarget(person, conversation)
    if not older_than.removesuffix("d").isdecimal() or not older_than.endswith("d"):
        raise typer.BadParameter("Give the age in days, such as 365d.")
    days = min(int(older_than.removesuffix("d")), 36_500)
    return ErasureTarget(before=datetime.now(UTC) - timedelta(days=days))


def _open_erasure(ctx: CommandContext, records: Records) -> RecordErasure:
    return RecordErasure(records.audit.database, ctx.settings.record.hold)


async def _hold(erasure: RecordErasure, name: str, why: str, *, on: bool) -> list[str]:
    if name:
        await erasure.hold(name, on=on, why=why, by=BY)
    holds = await erasure.holds()
    if name in holds and not on:
        hint = "Remove it from `hold` under [record] in footnote.toml."
        raise CommandError(Fault("held", f"{name} is on hold by the settings.", hint))
    return sorted(holds)


def _describe_plan(plan: ErasurePlan) -> str:
    on_hold = f" {format_count(plan.held, 'turn')} on hold would stay." if plan.held else ""
    if not plan.entries and not plan.tickets:
        return f"There is nothing to erase.{on_hold}"
    counts = _describe_counts(len(plan.turns), len(plan.entries), len(plan.tickets))
    removed = f" It would remove {format_count(plan.messages, 'message')} in channels." if plan.messages else ""
    return f"This would erase {counts}.{removed}{on_hold} Nothing was changed; add --yes to erase."


def _describe_done(done: ErasureDone) -> str:
    copies = f" Removed: {', '.join(done.backups)}." if done.backups else ""
    busy = " Another process is reading the database: run this again after it ends, to clear the database's log."
    counts = _describe_counts(done.turns, done.entries, done.questions)
    removing = (
        f" `footnote serve` removes {format_count(done.messages, 'message')} in channels." if done.messages else ""
    )
    return f"Erased: {counts}.{removing}{copies}{'' if done.compacted else busy}"


def _describe_counts(turns: int, entries: int, questions: int) -> str:
    recorded = f"{format_count(turns, 'turn')} with {format_count(entries, 'entry', 'entries')} of the record"
    return f"{recorded} and {format_count(questions, 'question')} of the queue"
