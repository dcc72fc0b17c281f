"""Ask and tell in the form that all questions of `footnote setup` have; or take the defaults, and ask nothing."""

from collections.abc import Sequence

from bot.cli.setup.setup_terminal import Terminal
from bot.cli.terminal_output import CommandError
from bot.doctor.diagnosis import CheckResult
from bot.views.error_messages import Fault

_MARKS = {"ok": "ok", "warn": "note", "fail": "no", "skip": "--"}
KEEP_ANYWAY = "go on"
INDENT = 2


def name_missing(what: str, how: str) -> Fault:
    """Return the fault that an answer is missing which nobody is asked for."""
    return Fault("missing_answer", f"Nothing says {what}.", f"Give {how}.")


def find_choices(answer: str, titles: Sequence[str]) -> list[int]:
    """Return the places of what an answer names, by numbers or how titles begin; nothing if it is none; pure."""
    plain = [title.casefold() for title in titles]
    # A title may hold a comma, or blanks.
    for said in ([answer], answer.split(","), answer.replace(",", " ").split()):
        found = [_find_choice(one.strip().casefold(), plain) for one in said if one.strip()]
        if found and None not in found:
            return [place for place in found if place is not None]
    return []


def _find_choice(said: str, titles: Sequence[str]) -> int | None:
    if said.isdecimal():
        return int(said) - 1 if 0 < int(said) <= len(titles) else None
    named = [place for place, title in enumerate(titles) if title.startswith(said)]
    return named[0] if len(named) == 1 else None


class Prompter:
    """Asks on a terminal; with `quiet` it asks nothing, every answer is empty, and what is refused is an error."""

    def __init__(self, terminal: Terminal, *, quiet: bool) -> None:
        self._terminal, self.quiet = terminal, quiet

    def head(self, text: str) -> None:
        self._terminal.say()
        self._terminal.say(text)

    def tell(self, text: str, mark: str = "") -> None:
        self._terminal.say(f"{mark} {text}" if mark else text, indent=INDENT, hang=len(mark) + 1 if mark else 0)

    def ask(self, prompt: str, *, secret: bool = False) -> str:
        return "" if self.quiet else self._terminal.ask(prompt, secret=secret)

    def confirm(self, prompt: str) -> bool:
        return self.ask(f"{prompt} (Enter: yes, n: no)").lower() not in {"n", "no"}

    def choose(
        self, titles: Sequence[str], *, several: bool = False, default: str = "", keep: bool = False
    ) -> list[int]:
        """Return the places of what is chosen, by numbers or names; nothing where it stays as it is."""
        for number, title in enumerate(titles, start=1):
            self.tell(title, f"{number})")
        more = f" (Enter: {default})" if default else " (Enter: as it is)" if keep else ""
        prompt = f"{'Numbers or names, with commas' if several else 'A number'}{more}:"
        while True:
            answer = self.ask(prompt) or default
            if not answer and keep:
                return []
            chosen = find_choices(answer, titles)
            if chosen and (several or len(chosen) == 1):
                return chosen
            self.tell(f"Type a number from 1 to {len(titles)}{', or several' if several else ''}.")

    def refuse(self, fault: Fault) -> None:
        """Tell why an answer will not do. Raises `CommandError` where nobody can give another."""
        if self.quiet:
            raise CommandError(fault)
        self.tell(fault.line(), "no")

    def require(self, what: str, how: str) -> None:
        """Tell that an answer is needed. Raises `CommandError` where nobody can give one."""
        if self.quiet:
            raise CommandError(name_missing(what, how))
        self.tell("That is needed here. Ctrl-C leaves everything as it is.")

    def report(self, results: Sequence[CheckResult]) -> bool:
        """Tell what a try found; return whether the answer is kept: it was well, or is to be mended later."""
        failed = next((result for result in results if result.level == "fail"), None)
        if failed and self.quiet:
            raise CommandError(Fault("setup_refused", failed.what, failed.hint))
        for result in results:
            if not (failed and result.level == "skip"):
                self.tell(Fault("", result.what, result.hint).line(), _MARKS[result.level])
        if failed is None:
            return True
        told = f"Enter asks again; `{KEEP_ANYWAY}` keeps it, to be mended later:"
        return self.ask(told).lower() == KEEP_ANYWAY
