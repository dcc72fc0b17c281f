"""Run `footnote audit verify`, `checkpoint`, `key`, `receipt` and `restored`: prove what is on record."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bot.cli import rendering
from bot.cli.command_context import CommandContext, JsonOption, format_examples, open_command, parse_path
from bot.cli.terminal_output import CommandError, build_document
from bot.views.error_messages import Fault
from bot.views.text_layout import Text

if TYPE_CHECKING:
    from collections.abc import Callable

    from bot.app import Records
    from storage.record.proof.record_check import KeptHead, RecordCheck
    from storage.record.proof.signed_notes import SigningKey

BY = "terminal"
_KEY_HELP = "A public key that you noted, beside those on record."


def add_proof_commands(audit_app: typer.Typer) -> None:
    examples = format_examples("footnote audit verify", "footnote audit verify --against checkpoint.txt")
    audit_app.command(epilog=examples)(verify)
    audit_app.command(epilog=format_examples("footnote audit checkpoint > checkpoint.txt"))(checkpoint)
    audit_app.command(epilog=format_examples("footnote audit key", "footnote audit key --new"))(key)
    audit_app.command(epilog=format_examples("footnote audit receipt 3f9a1c02b7de > receipt.json"))(receipt)
    audit_app.command(
        epilog=format_examples("footnote audit restored checkpoint.txt --why 'The disk was lost; backup of Monday.'")
    )(restored)


def verify(
    context: typer.Context,
    against: Annotated[
        list[Path] | None,
        typer.Option(parser=parse_path, help="A checkpoint that was kept elsewhere, or a file of several."),
    ] = None,
    keys: Annotated[list[str] | None, typer.Option("--key", help=_KEY_HELP)] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Check all that is on record: each entry, the tree and its checkpoints, and what each answer says against itself.

    Every sentence must cite a source that was found, and every quote must stand word for word in its passage.
    """
    with open_command(context, as_json=as_json) as ctx:
        kept = _read_kept(against or (), keys or ())
        checked = ctx.call_records(lambda records: _verify(records, kept))
        documents, proof_view = rendering.json_documents, rendering.proof_view
        ctx.output.give(documents.build_verification_document(checked), proof_view.render_verification(checked))
        if checked.findings:
            ctx.output.note(f"footnote: {documents.build_record_error(checked)['message']}")
            raise typer.Exit(1)


def checkpoint(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """Sign the record as it is now, and print the checkpoint: keep it where nobody can change it with the record."""
    with open_command(context, as_json=as_json) as ctx:
        signing_key = _load_key(ctx)
        note = ctx.call_records(lambda records: _sign(records, signing_key))
        _print_raw(ctx, note, {"checkpoint": note, "key": str(signing_key.public)})


def key(
    context: typer.Context,
    *,
    new: Annotated[bool, typer.Option("--new", help="Make a key, in place of the one that there is.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the public key of the record, for you to note elsewhere; with --new, make one.

    Checkpoints that an earlier key signed stay good: which key signs from when is on record.
    """
    with open_command(context, as_json=as_json) as ctx:
        made = _make_key(ctx) if new else _load_key(ctx)
        if new:
            ctx.call_records(lambda records: _sign(records, made))
        _print_raw(ctx, f"{made.public}\n", {"key": str(made.public), "path": str(ctx.settings.record.key_path)})


def receipt(
    context: typer.Context,
    answer_id: Annotated[str, typer.Argument(metavar="ID", help="An answer's id, or its first characters.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Print one answer's entries with the proof that they stand in the record; docs/verify_receipt.py checks it."""
    with open_command(context, as_json=as_json) as ctx:
        signing_key = _load_key(ctx)
        text = ctx.call_records(lambda records: _make_receipt(records, answer_id, signing_key))
        _print_raw(ctx, text, {"receipt": text})


def export_proofs(ctx: CommandContext) -> None:
    """Print the whole record, entry by entry, and its checkpoint."""
    signing_key = _load_key(ctx)
    ctx.call_records(lambda records: _export(records, signing_key, ctx.output.out.file.write))


def restored(
    context: typer.Context,
    lost: Annotated[
        Path,
        typer.Argument(parser=parse_path, metavar="CHECKPOINT", help="A checkpoint of what came after the backup."),
    ],
    why: Annotated[str, typer.Option(help="Why a backup was restored.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Put on record that a backup was restored, signed, so that the checkpoints of what was lost are accounted for."""
    with open_command(context, as_json=as_json) as ctx:
        signing_key, (kept, *_) = _load_key(ctx), _read_kept([lost], ())
        note = ctx.call_records(lambda records: _record_restore(records, signing_key, kept.note, why))
        _print_raw(ctx, note, {"checkpoint": note})


async def _verify(records: "Records", against: "list[KeptHead]") -> "RecordCheck":
    from storage.record.proof.record_check import verify_record

    return await verify_record(records.audit.database, against)


async def _sign(records: "Records", signing_key: "SigningKey") -> str:
    from storage.record.proof.checkpoints import Checkpoints

    return await Checkpoints(records.audit.database).make(signing_key)


async def _make_receipt(records: "Records", beginning: str, signing_key: "SigningKey") -> str:
    from bot.cli.audit.audit_commands import load_turn
    from storage.record.proof.receipts import make_receipt

    (first, *_) = await load_turn(records.audit, beginning)
    return await make_receipt(records.audit.database, first.turn_id, signing_key)


async def _export(records: "Records", signing_key: "SigningKey", write: "Callable[[str], object]") -> None:
    from storage.record.proof.record_export import export_record

    await export_record(records.audit.database, signing_key, write)


async def _record_restore(records: "Records", signing_key: "SigningKey", lost: str, why: str) -> str:
    from storage.record.proof.checkpoints import Checkpoints
    from storage.record.proof.signed_notes import NoteInvalid

    try:
        return await Checkpoints(records.audit.database).record_restore(signing_key, lost, why=why, by=BY)
    except NoteInvalid as error:
        hint = "Give a checkpoint that this record's own key signed."
        raise CommandError(Fault("checkpoint_invalid", f"The checkpoint cannot be used: {error}.", hint)) from error


def _load_key(ctx: CommandContext) -> "SigningKey":
    from storage.record.proof.key_file import load_key

    return load_key(ctx.settings.record.key_path)


def _make_key(ctx: CommandContext) -> "SigningKey":
    """Make a key of the same name as the one that there is, which it takes the place of."""
    from storage.record.proof.key_file import KeyUnusable, create_key, load_key

    path = ctx.settings.record.key_path
    try:
        name = load_key(path).name
    except KeyUnusable:
        name = ""
    return create_key(path, name)


def _read_kept(files: "list[Path] | tuple[Path, ...]", keys: "list[str] | tuple[str, ...]") -> "list[KeptHead]":
    from storage.record.proof.record_check import KeptHead, split_heads
    from storage.record.proof.signed_notes import read_public_key

    try:
        trusted = tuple(map(read_public_key, keys))
        notes = [note for file in files for note in split_heads(file.read_text(encoding="utf-8"))]
    except OSError as error:
        raise CommandError(
            Fault("checkpoint_invalid", f"{error.filename} cannot be read: {error.strerror}.")
        ) from error
    except ValueError as error:
        raise CommandError(Fault("checkpoint_invalid", f"It cannot be used: {error}.")) from error

    return [KeptHead(note, trusted) for note in notes]


def _print_raw(ctx: CommandContext, text: str, document: dict[str, str]) -> None:
    """Print a text as it is, to be kept in a file, or the document."""
    if ctx.output.as_json:
        ctx.output.give(build_document(**document), Text())
    else:
        ctx.output.out.file.write(text)
