"""Run `footnote backup` and `restore`: write the home into one file, and restore it."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Group

from bot import read_version
from bot.cli.audit.proof_commands import fail_broken_record
from bot.cli.command_context import CommandContext, JsonOption, find_cli_state, open_command, parse_path
from bot.cli.corpora.corpus_commands import describe_reindex, rebuild_indexes
from bot.cli.rendering.proof_view import build_verification_document, render_verification
from bot.cli.terminal_output import CommandError, build_document, pick, show_progress
from bot.server.monitoring.server_log import build_redactor, collect_secrets
from bot.settings.tables.settings_tables import FILE_NAME, Settings
from bot.views.error_messages import Fault
from bot.views.text_formats import format_count
from bot.views.text_layout import Text
from storage.home.backup import (
    RESTORED_SETTINGS,
    BackupManifest,
    Progress,
    explain_target_errors,
    restore_backup,
    write_backup,
)
from storage.record.proof.record_check import verify_record

_MEGABYTE = 1_000_000
_ELSEWHERE = Fault(
    "database_elsewhere",
    "The settings name a PostgreSQL database, which its own tools back up and restore.",
    "Use pg_dump and pg_restore; docs/operating.md explains how, and what else to back up.",
)


def backup(
    context: typer.Context,
    target: Annotated[
        Path,
        typer.Argument(
            parser=parse_path, metavar="FILE", help="A folder, or the file to write; compressed if its name ends in gz."
        ),
    ],
    *,
    as_json: JsonOption = False,
) -> None:
    """The backup contains no indexes, which `restore` rebuilds, no secrets, and not the key that signs the record."""
    with open_command(context, as_json=as_json) as ctx:
        _refuse_postgresql(ctx.settings)
        made, started = datetime.now(UTC), time.monotonic()
        with explain_target_errors(target):
            file = target / f"footnote-{made:%Y%m%dT%H%M%SZ}.tar" if target.is_dir() else target
        plain = _read_plain_settings(context, ctx.settings)
        with _show_bytes(ctx, "backup") as progress:
            done = write_backup(
                ctx.settings.home, file, version=read_version(), made=made, settings=plain, progress=progress
            )
        size, seconds = file.stat().st_size, time.monotonic() - started
        document = build_document(file=str(file), bytes=size, seconds=round(seconds, 3), **_describe(done))
        key = ctx.settings.record.key_path
        text = f"Backed up: {_count(done)}; {size / _MEGABYTE:,.1f} MB in {file}, in {seconds:,.1f} s."
        ctx.output.give(document, Text(f"{text}\nIt contains no secrets, and not the key that signs the record: {key}"))


def restore(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(parser=parse_path, metavar="FILE", help="A backup.")],
    home: Annotated[
        Path | None, typer.Option(parser=parse_path, help="The folder to restore into; default: home in the settings.")
    ] = None,
    *,
    as_json: JsonOption = False,
) -> None:
    with open_command(context, as_json=as_json) as ctx:
        _refuse_postgresql(ctx.settings)
        settings = ctx.settings.model_copy(update={"home": home.absolute()} if home else {})
        with _show_bytes(ctx, "restore") as progress:
            done = restore_backup(file, settings.home, progress)
        ctx.output.note(f"Restored as of {done.made:%Y-%m-%d %H:%M} UTC: {_count(done)}. Its record is verified now.")
        restored = CommandContext(ctx.output, settings, ctx.services)
        checked = restored.call_records(lambda records: verify_record(records.audit.database, []))
        passages, seconds = rebuild_indexes(restored, vectors=not settings.chroma.url)
        document = build_document(
            home=str(settings.home),
            **_describe(done),
            record=build_verification_document(checked),
            indexed=build_document(**describe_reindex(passages, seconds)),
        )
        lines = [f"Restored: {_count(done)}, into {settings.home}; indexed again in {seconds:,.1f} s."]
        if len(done.parts) > 1:
            lines.append(f"The settings of that time, without secrets: {settings.home / RESTORED_SETTINGS}")
        if not settings.record.key_path.exists():
            lines.append(f"The key that signs the record is missing: put it back at {settings.record.key_path}.")
        ctx.output.give(document, Group(render_verification(checked), Text("\n".join(lines))))
        fail_broken_record(ctx, checked)


def _refuse_postgresql(settings: Settings) -> None:
    if settings.database:
        raise CommandError(_ELSEWHERE)


def _read_plain_settings(context: typer.Context, settings: Settings) -> bytes:
    """Return the text of the settings file with secrets redacted; empty if there is no file."""
    path = find_cli_state(context).config or FILE_NAME
    if not path.exists():
        return b""
    return build_redactor(collect_secrets(settings))(path.read_text(encoding="utf-8")).encode()


@contextmanager
def _show_bytes(ctx: CommandContext, label: str) -> Iterator[Progress]:
    """Show the progress in megabytes once the first step is reported, so that a refused backup shows none."""
    with ExitStack() as stack:
        begin = cache(lambda: stack.enter_context(show_progress(ctx.output.err, label=label, unit="MB")))
        yield lambda doing, done, total: begin()(done // _MEGABYTE, total // _MEGABYTE, doing)


def _describe(done: BackupManifest) -> dict[str, object]:
    return {
        "version": done.version,
        "database": done.schema,
        "made": done.made.isoformat(),
        "counts": dict(done.counts),
        "parts": [pick(part, "name bytes sha256") for part in done.parts],
    }


def _count(done: BackupManifest) -> str:
    entries = f"{format_count(done.counts.get('entries', 0), 'entry', 'entries')} of the record"
    # An older database does not count its passages.
    return f"{entries}, {format_count(done.counts['passages'], 'passage')}" if "passages" in done.counts else entries
