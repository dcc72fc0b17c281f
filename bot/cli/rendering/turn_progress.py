"""Show a turn's progress on stderr while the user waits at a terminal.

A claim's text is shown only if passages support it: what a model invented is never shown.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.status import Status

from bot.cli.terminal_output import Output
from bot.views.sanitize import sanitize_line
from bot.views.text_layout import Text
from bot.views.view_reducer import describe_event
from pipeline.replies.footnotes import write_dated_note
from pipeline.types import AnsweredSentence, ClaimChecked, ClaimExplained, Event, PageQuoted, SentencePassed
from storage.types import CheckedClaim, Evidence, Verdict

ShowSentence = Callable[[AnsweredSentence], None]


@contextmanager
def watch_turn(output: Output, say: ShowSentence | None = None) -> Iterator[Callable[[Event], None]]:
    """Show a turn's progress within the block; `say` gets each sentence that passed the checks."""
    if output.as_json or not output.err.is_terminal:
        yield lambda event: _pass_sentence(event, say)
        return
    with output.err.status("") as status:
        yield _ProgressScreen(status, say).show


def render_event_line(event: Event) -> str:
    if isinstance(event, PageQuoted):
        return render_quote_line(event.evidence)
    return sanitize_line(describe_event(event, "en"))


def render_quote_line(evidence: Evidence) -> str:
    """Return a quotation with its page, marked as not an answer yet."""
    page = sanitize_line(write_dated_note(evidence.document))
    return f"Meanwhile, a quotation (not an answer yet): “{sanitize_line(evidence.text)}” ({page})"


def render_claim_line(checked: CheckedClaim) -> str:
    """Return a line about a claim that the model made, with its text only if passages support it."""
    if checked.verdict is Verdict.SUPPORTS:
        return f"confirmed: {sanitize_line(checked.claim.text)}"
    return "a claim could not be confirmed"


class _ProgressScreen:
    """A line of progress, and below it a quotation; both disappear when the answer arrives."""

    def __init__(self, status: Status, say: ShowSentence | None) -> None:
        self._status = status
        self._say = say
        self._line = ""
        self._quote = ""

    def show(self, event: Event) -> None:
        if isinstance(event, ClaimChecked) and event.checked.claim.origin == "model":
            self._status.console.print(Text(render_claim_line(event.checked), style="dim"))
        if isinstance(event, SentencePassed) and self._say:
            self._status.stop()  # stdout may be the same terminal: the status would overwrite the sentence
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
