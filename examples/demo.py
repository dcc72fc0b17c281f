"""`make demo`: ingests the example handbook, asks one question, replays a turn with a model, and ends in a chat.

It runs the usual commands with its own settings (`demo.toml`), so that nothing of yours changes. It never calls a
model: the turn is scripted, and if a model is configured, it only prints how to ask it.
"""

import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from bot.cli.entry_point import app
from bot.cli.terminal_output import open_output, report_errors
from bot.settings.settings_reader import load_settings
from bot.views.text_formats import format_duration
from examples import scripted_turn

SETTINGS = Path(__file__).with_name("demo.toml")
QUESTION = "What is the meal allowance on business trips?"
NEXT = "May I bring my dog to the office?"


def main(*, talk: bool) -> int:
    """Run the demonstration, ending in a chat if `talk`, and return its exit status."""
    for name in [name for name in os.environ if name.upper().startswith("FOOTNOTE_")]:
        if not name.upper().startswith("FOOTNOTE_MODEL"):  # the demo shows whether a model is configured
            del os.environ[name]  # other settings of the user would change the demo
    screen, started = Console(highlight=False), time.monotonic()
    for command in (["ingest", "all"], ["ask", "--system", "extractive", QUESTION]):
        if status := _run(screen, command):
            return status
    _show_model(screen)
    screen.print()
    duration = format_duration(time.monotonic() - started)
    happened = f"The example handbook was ingested, and questions were answered from it, in {duration}."
    screen.print(Text("Your own documents: make install, then footnote setup."))
    screen.print(Text(f"{happened} Try next: {_typed(['ask', NEXT])}"), soft_wrap=True)
    return _run(screen, ["chat"]) if talk else 0


def _show_model(screen: Console) -> None:
    """Show a turn with a scripted model or, if a model is configured, how to ask it."""
    output = open_output(as_json=False, debug=False)
    with report_errors(output):
        settings = load_settings(SETTINGS)
        if not settings.model.configured:
            scripted_turn.show(output, settings)
            return
    named = f"A model is configured ({settings.model.names})" if settings.model.names else "A model is configured"
    usage = f"and was not called so far. This calls it, as any question in `chat` does: {_typed(['ask', QUESTION])}"
    screen.print(Text(f"{named} {usage}"), soft_wrap=True)


def _run(screen: Console, command: Sequence[str]) -> int:
    """Print a command, run it, and return its exit status."""
    screen.print(Text(f"$ {_typed(command)}", style="bold"), soft_wrap=True)
    try:
        status = app(["--config", str(SETTINGS), *command], standalone_mode=False)
    except SystemExit as stopped:
        status = stopped.code
    screen.print()
    return int(status or 0)


def _typed(command: Sequence[str]) -> str:
    program = Path(sys.executable).with_name("footnote")
    return shlex.join([os.path.relpath(program), "--config", os.path.relpath(SETTINGS), *command])


if __name__ == "__main__":
    sys.exit(main(talk=sys.stdin.isatty()))
