"""Run `footnote audit verify`, `checkpoint`, `key`, `receipt` and `restored`: prove that the record is unchanged."""

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from bot.app import Records
from bot.cli.audit.turn_lookup import load_turn
from bot.cli.command_context import CommandContext, JsonOption, open_command, parse_path
from bot.cli.rendering.proof_view import build_record_error, build_verification_document, render_verification
from bot.cli.terminal_output import CommandError, build_document
from bot.views.error_messages import Fault
from bot.views.text_layout import Text
from storage.record.proof.checkpoints import Checkpoints, read_keys
from storage.record.proof.receipts import export_record, make_receipt
from storage.record.proof.record_check import RecordCheck, split_heads, verify_record
from storage.record.proof.signed_notes import (
    KeyUnusable,
    NoteInvalid,
    PublicKey,
    SigningKey,
    create_key,
    load_key,
    read_public_key,
)

BY = "terminal"
_KEY_HELP = "A public key that you noted: only such keys, and keys that they endorsed, count. May be repeated."
_UNENDORSED = """\
footnote: The old key could not be read, so it does not endorse the new one. `verify` reports the new key and its \
signatures unless you give `--key` for the old and for the new key. Note both elsewhere now."""


def verify(
    context: typer.Context,
    against: Annotated[
        list[Path] | None, typer.Option(parser=parse_path, help="A file with checkpoints that you stored elsewhere.")
    ] = None,
    keys: Annotated[list[str] | None, typer.Option("--key", help=_KEY_HELP)] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    """Check the whole record: each entry, the hash tree and its checkpoints, and each answer against its sources.

    Each sentence must cite a source that the turn found, and each quotation must be in its passage word for word.
    """
    with open_command(context, as_json=as_json) as ctx:
        heads, pinned = _read_heads(against or (), keys or ())
        checked = ctx.call_records(lambda records: verify_record(records.audit.database, heads, pinned))
        ctx.output.give(build_verification_document(checked), render_verification(checked))
        fail_broken_record(ctx, checked)


def fail_broken_record(ctx: CommandContext, checked: RecordCheck) -> None:
    if checked.findings:
        ctx.output.note(f"footnote: {build_record_error(checked)['message']}")
        raise typer.Exit(1)


def checkpoint(context: typer.Context, *, as_json: JsonOption = False) -> None:
    """Sign the record as it is now, and print the checkpoint. Store it where it cannot be changed with the record."""
    with open_command(context, as_json=as_json) as ctx:
        signing_key = load_key(ctx.settings.record.key_path)
        note = ctx.call_records(lambda records: _sign(records, signing_key))
        _print_raw(ctx, note, {"checkpoint": note, "key": str(signing_key.public)})


def key(
    context: typer.Context,
    *,
    new: Annotated[bool, typer.Option("--new", help="Make a key that replaces the current one.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Print the record's public key, so that you can note it elsewhere. With --new, make a new key first.

    Checkpoints signed by an earlier key stay valid: that key endorses the new one, and the record states since when
    each key has been used.
    """
    with open_command(context, as_json=as_json) as ctx:
        path = ctx.settings.record.key_path
        signing_key = _replace_key(path) if new else load_key(path)
        if new:
            ctx.call_records(lambda records: _sign(records, signing_key))
            if not signing_key.endorsements and len(ctx.call_records(_list_keys)) > 1:
                ctx.output.note(_UNENDORSED)
        _print_raw(ctx, f"{signing_key.public}\n", {"key": str(signing_key.public), "path": str(path)})


def receipt(
    context: typer.Context,
    answer_id: Annotated[str, typer.Argument(metavar="ID", help="An answer's id, or its first characters.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Print one answer's entries with the proof that the record has them; docs/verify_receipt.py checks the proof."""
    with open_command(context, as_json=as_json) as ctx:
        signing_key = load_key(ctx.settings.record.key_path)
        text = ctx.call_records(lambda records: _make_receipt(records, answer_id, signing_key))
        _print_raw(ctx, text, {"receipt": text})


def export_proofs(ctx: CommandContext) -> None:
    """Print the whole record, entry by entry, and its checkpoint."""
    signing_key, write = load_key(ctx.settings.record.key_path), ctx.output.out.file.write
    ctx.call_records(lambda records: export_record(records.audit.database, signing_key, write))


def restored(
    context: typer.Context,
    lost: Annotated[
        Path, typer.Argument(parser=parse_path, metavar="CHECKPOINT", help="A checkpoint made after the backup.")
    ],
    why: Annotated[str, typer.Option(help="Why a backup was restored.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Record and sign that a backup was restored, so that checkpoints of the lost entries no longer count as faults."""
    with open_command(context, as_json=as_json) as ctx:
        signing_key, head = load_key(ctx.settings.record.key_path), _read_heads([lost], ())[0][0]
        note = ctx.call_records(lambda records: _record_restore(records, signing_key, head, why))
        _print_raw(ctx, note, {"checkpoint": note})


async def _sign(records: Records, signing_key: SigningKey) -> str:
    return await Checkpoints(records.audit.database).make(signing_key)


async def _list_keys(records: Records) -> list[PublicKey]:
    return await records.audit.database.read(read_keys)


async def _make_receipt(records: Records, beginning: str, signing_key: SigningKey) -> str:
    entries = await load_turn(records.audit, beginning)
    return await make_receipt(records.audit.database, entries[0].turn_id, signing_key)


async def _record_restore(records: Records, signing_key: SigningKey, lost: str, why: str) -> str:
    try:
        return await Checkpoints(records.audit.database).record_restore(signing_key, lost, why=why, by=BY)
    except NoteInvalid as error:
        hint = "Give a checkpoint that this record's own key signed."
        raise CommandError(Fault("checkpoint_invalid", f"The checkpoint cannot be used: {error}.", hint)) from error


def _replace_key(path: Path) -> SigningKey:
    """Replace the current key by a new one with the same name, which it endorses."""
    try:
        replaced = load_key(path)
    except KeyUnusable:
        replaced = None
    return create_key(path, replaced)


def _read_heads(files: Iterable[Path], keys: Iterable[str]) -> tuple[list[str], list[PublicKey]]:
    try:
        pinned = list(map(read_public_key, keys))
        notes = [note for file in files for note in split_heads(file.read_text(encoding="utf-8"))]
    except OSError as error:
        raise CommandError(
            Fault("checkpoint_invalid", f"{error.filename} cannot be read: {error.strerror}.")
        ) from error
    except ValueError as error:
        raise CommandError(Fault("checkpoint_invalid", f"The key or checkpoint cannot be used: {error}.")) from error
    return notes, pinned


def _print_raw(ctx: CommandContext, text: str, document: dict[str, str]) -> None:
    """Print a text unchanged, so that it can be stored in a file; with `--json`, print the document."""
    if ctx.output.as_json:
        ctx.output.give(build_document(**document), Text())
    else:
        ctx.output.out.file.write(text)
