"""Ask and tell on a terminal, in lines that fit it and break no address."""

import getpass
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from bot.cli.terminal_output import CommandError, Output
from bot.views.error_messages import Fault
from bot.views.sanitize import sanitize_line

WIDEST = 100
UNASKED = Fault("unconfirmed", "Nobody can be asked here.", "Run it in a terminal, or add --yes, which asks nothing.")


class Terminal(Protocol):
    def say(self, text: str = "", *, indent: int = 0, hang: int = 0) -> None:
        """Tell a paragraph, indented, and from its second line on by `hang` more."""
        ...

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        """Return what somebody types. Raises `CommandError` where nobody can."""
        ...


def wrap_paragraph(text: str, width: int, *, indent: int = 0, hang: int = 0) -> str:
    """Break a paragraph into lines of at most this width, but for words that are longer; pure."""
    wrapped = textwrap.wrap(
        sanitize_line(text),
        max(20, min(width, WIDEST)),
        initial_indent=" " * indent,
        subsequent_indent=" " * (indent + hang),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(wrapped)


@dataclass(frozen=True, slots=True)
class ConsoleTerminal:
    """The terminal of this process: what is told goes to stderr, and stdout stays for the answer."""

    output: Output
    read: Callable[[str], str] = input
    read_secret: Callable[[str], str] = getpass.getpass
    is_there: Callable[[], bool] = sys.stdin.isatty

    def say(self, text: str = "", *, indent: int = 0, hang: int = 0) -> None:
        self.output.err.out(wrap_paragraph(text, self.output.err.width, indent=indent, hang=hang), highlight=False)

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        if not self.is_there():
            raise CommandError(UNASKED)
        *above, last = wrap_paragraph(prompt, self.output.err.width).splitlines() or [""]
        for line in above:
            self.output.err.out(line, highlight=False)
        try:
            return (self.read_secret if secret else self.read)(f"{last} ").strip()
        except EOFError as error:
            raise CommandError(UNASKED) from error
