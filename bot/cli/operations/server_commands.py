"""Run `footnote serve` and `reload`: start the server, and make a running one read its settings again."""

import asyncio
import logging
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import typer

from bot.cli.command_context import JsonOption, find_cli_state, open_bare_command, open_command
from bot.cli.terminal_output import CommandError, build_document
from bot.server.control.control_socket import connect_service
from bot.server.monitoring.server_log import build_live_redactor, configure_logging, set_own_level
from bot.settings.live.live_settings import LiveSettings, ReloadReport
from bot.settings.settings_reader import SettingsFile, find_home
from bot.views.error_messages import Fault, ReportableError, explain_error
from bot.views.sanitize import sanitize_line
from bot.views.text_layout import Text

NO_SERVER = Fault(
    "no_server", "No server is running here, so nothing was reloaded.", "The next `footnote serve` reads the settings."
)
log = logging.getLogger(__name__)


def serve(context: typer.Context) -> None:
    with open_command(context, as_json=False) as ctx:
        live, file = LiveSettings(ctx.settings), SettingsFile(find_cli_state(context).config)
        if not ctx.output.debug:
            live.observers.append(lambda settings: set_own_level(settings.log.level))
        redact = build_live_redactor(lambda: live.current)
        with configure_logging(sys.stderr, level=ctx.settings.log.level, redact=redact, debug=ctx.output.debug):
            try:
                asyncio.run(ctx.services.serve(live, file.read))
            except Exception as error:
                fault = explain_error(error).redacted(redact)
                if not isinstance(error, ReportableError | OSError):
                    log.exception("the server failed")
                # Not chained: the log has the traceback, without secrets.
                raise CommandError(fault) from None


def reload(context: typer.Context, *, as_json: JsonOption = False) -> None:
    with open_bare_command(context, as_json=as_json) as output:
        report = asyncio.run(_request_reload(find_home(find_cli_state(context).config)))
        if report.faults and not as_json:
            for fault in report.faults:
                output.note(f"footnote: {fault}")
            output.note("Nothing was changed: the server keeps its current settings.")
        else:
            output.give(build_document(**asdict(report)), Text("\n".join(_list_reloaded(report))))
        if report.faults:
            raise typer.Exit(1)


def _list_reloaded(report: ReloadReport) -> Iterator[str]:
    yield f"In effect from the next question on: {', '.join(map(sanitize_line, report.changed)) or 'nothing new'}."
    if report.waiting:
        yield f"Waits for a restart of the server: {', '.join(map(sanitize_line, report.waiting))}."
    yield from (f"{sanitize_line(note)}." for note in report.notes)


async def _request_reload(home: Path) -> ReloadReport:
    async with connect_service(home) as service:
        if service is None:
            raise CommandError(NO_SERVER)
        return await service.reload()
