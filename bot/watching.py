"""What people see while they wait at a terminal, on stderr: what happens now, and claims as they are checked.

A claim's text is shown only where passages support it: what a model made up by itself is said nowhere.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.status import Status
from rich.text import Text

from bot.console import Output
from bot.sanitizing import one_line
from bot.tables import counted
from pipeline.types import AnsweredSentence, ClaimChecked, Drafting, Event, FoundPassages, Said, Searching
from storage.types import CheckedClaim, Verdict

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
        yield lambda event: _show(event, status, say)


def event_line(event: Event) -> str:
    """Say in a line what is happening."""
    match event:
        case Searching(query=query):
            return f"Searching “{one_line(query)[:LONGEST]}” …" if query else "Looking for evidence …"
        case FoundPassages(hits=hits):
            return f"Found {counted(len(hits), 'passage')}, reading …"
        case ClaimChecked():
            return "Checking claims …"
        case Drafting(evidence=evidence):
            return f"Drafting from {counted(evidence, 'finding')} …"
        case _:
            return "Writing …"


def claim_line(checked: CheckedClaim) -> str:
    """Say in a line what became of a claim of the model's own."""
    if checked.verdict is Verdict.SUPPORTS:
        return f"confirmed: {one_line(checked.claim.text)}"
    return "a claim could not be confirmed"


def _show(event: Event, status: Status, say: Say | None) -> None:
    if isinstance(event, ClaimChecked) and event.checked.claim.origin == "model":
        status.console.print(Text(claim_line(event.checked), style="dim"))
    if isinstance(event, Said) and say:
        status.stop()  # both may be on one screen, and it would paint over the sentence
        say(event.sentence)
        return
    status.update(Text(event_line(event)))


def _say(event: Event, say: Say | None) -> None:
    if isinstance(event, Said) and say:
        say(event.sentence)
