"""What people see while they wait at a terminal, on stderr: what happens now, and claims as they are checked.

A claim's text is shown only where passages support it: what a model made up by itself is said nowhere.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.status import Status
from rich.text import Text

from bot.console import Output
from bot.printing.tables import counted
from bot.sanitizing import one_line
from pipeline.notes import dated
from pipeline.types import (
    AnsweredSentence,
    ClaimChecked,
    ClaimExplained,
    Drafting,
    Event,
    FoundPassages,
    Quoted,
    Said,
    Searching,
)
from storage.types import CheckedClaim, Evidence, Verdict

Say = Callable[[AnsweredSentence], None]
LONGEST = 60
"""Characters of a query that are shown."""


@contextmanager
def watching(output: Output, say: Say | None = None) -> Iterator[Callable[[Event], None]]:
    """Show what happens within while somebody waits; `say` gets each sentence that has passed, where they are shown."""
    if output.as_json or not output.err.is_terminal:
        yield lambda event: _say(event, say)
        return
    with output.err.status("") as status:
        yield _Screen(status, say).show


def event_line(event: Event) -> str:
    """Say in a line what is happening."""
    match event:
        case Searching(query=query):
            return f"Searching “{one_line(query)[:LONGEST]}” …" if query else "Looking for evidence …"
        case FoundPassages(hits=hits):
            return f"Found {counted(len(hits), 'passage')}, reading …"
        case Quoted(evidence=evidence):
            return quote_line(evidence)
        case ClaimChecked() | ClaimExplained():
            return "Checking claims …"
        case Drafting(evidence=evidence):
            return f"Drafting from {counted(evidence, 'finding')} …"
        case _:
            return "Writing …"


def quote_line(said: Evidence) -> str:
    """Say what a page says in its own words, and that this is no answer yet."""
    return f"Meanwhile, a quotation (not an answer yet): “{one_line(said.text)}” ({one_line(dated(said.document))})"


def claim_line(checked: CheckedClaim) -> str:
    """Say in a line what became of a claim of the model's own."""
    if checked.verdict is Verdict.SUPPORTS:
        return f"confirmed: {one_line(checked.claim.text)}"
    return "a claim could not be confirmed"


class _Screen:
    """A line of what happens, and beneath it what a page says in its own words; both go when the answer comes."""

    def __init__(self, status: Status, say: Say | None) -> None:
        self._status = status
        self._say = say
        self._line = ""
        self._quote = ""

    def show(self, event: Event) -> None:
        """Show what has happened."""
        if isinstance(event, ClaimChecked) and event.checked.claim.origin == "model":
            self._status.console.print(Text(claim_line(event.checked), style="dim"))
        if isinstance(event, Said) and self._say:
            self._status.stop()  # both may be on one screen, and it would paint over the sentence
            self._say(event.sentence)
            return
        if isinstance(event, Quoted):
            self._quote = f"\n{event_line(event)}"
        elif not isinstance(event, ClaimExplained):
            self._line = event_line(event)
        self._status.update(Text.assemble(self._line, (self._quote, "dim")))


def _say(event: Event, say: Say | None) -> None:
    if isinstance(event, Said) and say:
        say(event.sentence)
