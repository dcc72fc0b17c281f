"""Ask and inform the user of `footnote setup`, in lines that fit the terminal, or take defaults without asking."""

import getpass
import sys
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from bot.cli.terminal_output import CommandError, Output
from bot.doctor.diagnosis import CheckResult
from bot.views.error_messages import Fault
from bot.views.sanitize import sanitize_line

T = TypeVar("T")
WIDEST = 100
NO_TERMINAL = Fault("unconfirmed", "This is not a terminal.", "Run it in one, or add --yes, which asks nothing.")


class Terminal(Protocol):
    def say(self, text: str = "", *, indent: int = 0, hang: int = 0) -> None:
        """Print a paragraph, indented; its further lines are indented by `hang` more."""

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        """Return what the user types. Raises `CommandError` without a terminal."""


def wrap_paragraph(text: str, width: int, *, indent: int = 0, hang: int = 0) -> str:
    """Break a paragraph into lines of at most this width; longer words stay whole. Pure."""
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
    """The terminal of this process: text goes to stderr, and stdout is left for the answer."""

    output: Output
    read: Callable[[str], str] = input
    read_secret: Callable[[str], str] = getpass.getpass
    is_terminal: Callable[[], bool] = sys.stdin.isatty

    def say(self, text: str = "", *, indent: int = 0, hang: int = 0) -> None:
        self.output.err.out(wrap_paragraph(text, self.output.err.width, indent=indent, hang=hang), highlight=False)

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        if not self.is_terminal():
            raise CommandError(NO_TERMINAL)
        *above, last = wrap_paragraph(prompt, self.output.err.width).splitlines() or [""]
        for line in above:
            self.output.err.out(line, highlight=False)
        try:
            return (self.read_secret if secret else self.read)(f"{last} ").strip()
        except EOFError as error:
            raise CommandError(NO_TERMINAL) from error


_MARKS = {"ok": "ok", "warn": "note", "fail": "no", "skip": "--"}
KEEP_ANYWAY = "go on"
INDENT = 2


def make_missing_fault(what: str, how: str) -> Fault:
    """Return the fault for a required answer that is missing: `what` it is, and `how` to give it."""
    return Fault("missing_answer", f"Missing answer: {what}.", f"Give {how}.")


def find_choices(answer: str, titles: Sequence[str]) -> list[int]:
    """Return the indexes of the titles that an answer chooses, by number or beginning; empty if invalid. Pure."""
    plain = [title.casefold() for title in titles]
    # A title may contain a comma, or blanks.
    for parts in ([answer], answer.split(","), answer.replace(",", " ").split()):
        indexes = [_find_choice(part.strip().casefold(), plain) for part in parts if part.strip()]
        if indexes and None not in indexes:
            return [index for index in indexes if index is not None]
    return []


def _find_choice(typed: str, titles: Sequence[str]) -> int | None:
    if typed.isdecimal():
        return int(typed) - 1 if 0 < int(typed) <= len(titles) else None
    matches = [index for index, title in enumerate(titles) if title.startswith(typed)]
    return matches[0] if len(matches) == 1 else None


class Prompter:
    """Asks on a terminal; with `quiet` it asks nothing, every answer is empty, and a refused answer is an error."""

    def __init__(self, terminal: Terminal, *, quiet: bool) -> None:
        self._terminal, self.quiet = terminal, quiet

    def head(self, text: str) -> None:
        self._terminal.say()
        self._terminal.say(text)

    def show(self, text: str, mark: str = "") -> None:
        self._terminal.say(f"{mark} {text}" if mark else text, indent=INDENT, hang=len(mark) + 1 if mark else 0)

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        return "" if self.quiet else self._terminal.ask(prompt, secret=secret)

    def ask_until_valid(self, prompt: str, parse: Callable[[str], T], refusal: str = "It {}.") -> T:
        """Ask until `parse` accepts the answer, and return the parsed value.

        `refusal` formats a `ValueError` for the user.
        """
        while True:
            try:
                return parse(self.ask(prompt))
            except ValueError as error:
                self.show(refusal.format(error), "no")

    def confirm(self, prompt: str) -> bool:
        return self.ask(f"{prompt} (Enter: yes, n: no)").lower() not in {"n", "no"}

    def choose(
        self, titles: Sequence[str], *, several: bool = False, default: str = "", keep: bool = False
    ) -> list[int]:
        """Return the indexes of the chosen titles; empty if the user keeps the current choice."""
        for number, title in enumerate(titles, start=1):
            self.show(title, f"{number})")
        more = f" (Enter: {default})" if default else " (Enter: as it is)" if keep else ""
        prompt = f"{'Numbers or names, with commas' if several else 'A number'}{more}:"
        while True:
            answer = self.ask(prompt) or default
            if not answer and keep:
                return []
            chosen = find_choices(answer, titles)
            if chosen and (several or len(chosen) == 1):
                return chosen
            self.show(f"Type a number from 1 to {len(titles)}{', or several' if several else ''}.")

    def refuse(self, fault: Fault) -> None:
        """Show why an answer is refused; with `quiet`, raise it as a `CommandError`."""
        if self.quiet:
            raise CommandError(fault)
        self.show(fault.line(), "no")

    def require(self, what: str, how: str) -> None:
        """Show that an answer is required; with `quiet`, raise that as a `CommandError`."""
        if self.quiet:
            raise CommandError(make_missing_fault(what, how))
        self.show("An answer is required here. Ctrl-C stops without changing anything.")

    def report(self, results: Sequence[CheckResult]) -> bool:
        """Show the results of testing an answer.

        Return whether it works, or the user wants to keep it and fix it later.
        """
        failed = next((result for result in results if result.level == "fail"), None)
        if failed and self.quiet:
            raise CommandError(Fault("setup_refused", failed.what, failed.hint))
        for result in results:
            if not (failed and result.level == "skip"):
                self.show(Fault("", result.what, result.hint).line(), _MARKS[result.level])
        if failed is None:
            return True
        return self.ask(f"Enter asks again; `{KEEP_ANYWAY}` keeps it, to be fixed later:").lower() == KEEP_ANYWAY
