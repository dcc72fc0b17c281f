"""Show a turn's progress on stderr while the user waits at a terminal.

A claim's text is shown only if passages support it: what a model invented is never shown.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.status import Status

from bot.cli.terminal_output import Output
from bot.views.sanitize import sanitize_line
from bot.views.text_formats import format_count
from bot.views.text_layout import Text
from pipeline.replies.footnotes import write_dated_note
from pipeline.types import (
    AnsweredSentence,
    ClaimChecked,
    ClaimExplained,
    DraftStarted,
    Event,
    PageQuoted,
    PassagesFound,
    SearchStarted,
    SentencePassed,
)
from storage.types import CheckedClaim, Evidence, Verdict

ShowSentence = Callable[[AnsweredSentence], None]
_MAX_QUERY_SHOWN = 60  # characters of a query that are shown


@contextmanager
def watch_turn(output: Output, say: ShowSentence | None = None) -> Iterator[Callable[[Event], None]]:
    """Show the progress within the block; `say` gets each sentence that passed."""
    if output.as_json or not output.err.is_terminal:
        yield lambda event: _pass_sentence(event, say)
        return
    with output.err.status("") as status:
        yield _ProgressScreen(status, say).show


def render_event_line(event: Event) -> str:
    match event:
        case SearchStarted(query=query):
            return f"Searching “{sanitize_line(query)[:_MAX_QUERY_SHOWN]}” …" if query else "Looking for evidence …"
        case PassagesFound(hits=hits):
            return f"Found {format_count(len(hits), 'passage')}, reading …"
        case PageQuoted(evidence=evidence):
            return render_quote_line(evidence)
        case ClaimChecked() | ClaimExplained():
            return "Checking claims …"
        case DraftStarted(evidence=evidence):
            return f"Drafting from {format_count(evidence, 'finding')} …"
        case _:
            return "Writing …"


def render_quote_line(said: Evidence) -> str:
    """Return a page's own words, marked as not an answer yet."""
    page = sanitize_line(write_dated_note(said.document))
    return f"Meanwhile, a quotation (not an answer yet): “{sanitize_line(said.text)}” ({page})"


def render_claim_line(checked: CheckedClaim) -> str:
    """Return the outcome of a claim of the model's own."""
    if checked.verdict is Verdict.SUPPORTS:
        return f"confirmed: {sanitize_line(checked.claim.text)}"
    return "a claim could not be confirmed"


class _ProgressScreen:
    """A line of progress, and below it a page's own words; both disappear when the answer arrives."""

    def __init__(self, status: Status, say: ShowSentence | None) -> None:
        self._status = status
        self._say = say
        self._line = ""
        self._quote = ""

    def show(self, event: Event) -> None:
        if isinstance(event, ClaimChecked) and event.checked.claim.origin == "model":
            self._status.console.print(Text(render_claim_line(event.checked), style="dim"))
        if isinstance(event, SentencePassed) and self._say:
            self._status.stop()  # both may be on one screen, and it would paint over the sentence
            self._say(event.sentence)
            return
        if isinstance(event, PageQuoted):
            self._quote = f"\n{render_event_line(event)}"
        elif not isinstance(event, ClaimExplained):
            self._line = render_event_line(event)
        self._status.update(Text.assemble(self._line, (self._quote, "dim")))


def _pass_sentence(event: Event, say: ShowSentence | None) -> None:
    if isinstance(event, SentencePassed) and say:
        say(event.sentence)
