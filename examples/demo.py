"""`make demo`: reads the example handbook in, asks one question and, in a terminal, goes on as a chat.

It types the commands that anyone would type, with settings of its own (`demo.toml`), so that nothing of yours changes.
"""

import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.text import Text

from bot.cli import app
from bot.progress import spell

SETTINGS = Path(__file__).with_name("demo.toml")
QUESTION = "What is the meal allowance on business trips?"
NEXT = "May I bring my dog to the office?"


def main(*, talk: bool) -> int:
    """Run the demonstration, ending in a chat if `talk`, and return its exit status."""
    for name in [name for name in os.environ if name.upper().startswith("FOOTNOTE_")]:
        del os.environ[name]  # settings of one's own do not belong in a demonstration
    screen, started = Console(highlight=False), time.monotonic()
    for command in (["ingest", "all"], ["ask", QUESTION]):
        if status := _run(screen, command):
            return status
    took = spell(time.monotonic() - started)
    happened = f"The example handbook was read in, and a question was answered from it, in {took}."
    screen.print(Text(f"{happened} Try next: {_typed(['ask', NEXT])}"), soft_wrap=True)
    return _run(screen, ["chat"]) if talk else 0


def _run(screen: Console, command: Sequence[str]) -> int:
    """Show a command as it would be typed, run it, and return its exit status."""
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
