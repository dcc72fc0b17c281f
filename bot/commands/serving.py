"""`footnote serve`: Slack, Discord, the nights and the HTTP server, whichever are configured, until it is stopped."""

import asyncio
import logging
import sys
from typing import TYPE_CHECKING

import typer

from bot.commands.frame import command
from bot.console import Failed, Fault, Mendable, fault_of

if TYPE_CHECKING:
    from bot.commands.frame import Frame


def serve(context: typer.Context) -> None:
    """Serve the platforms that are configured, until a signal asks to stop; other commands work beside it."""
    with command(context, as_json=False) as frame:
        _serve(frame)


def _serve(frame: "Frame") -> None:
    from bot.logs import logging_to
    from bot.redacting import redactor, secrets_in

    redact = redactor(secrets_in(frame.settings))
    with logging_to(sys.stderr, level=frame.settings.log.level, redact=redact, debug=frame.output.debug):
        try:
            asyncio.run(frame.doors.serve(frame.settings))
        except Exception as error:
            fault = Fault(*map(redact, fault_of(error)))
            if not isinstance(error, Mendable | OSError):
                logging.getLogger(__name__).exception("the server failed")
            # Not chained: what is shown of it with --debug stands in the log, without secrets.
            raise Failed(fault) from None
