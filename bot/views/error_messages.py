"""Render errors for people: one line, and what to do about it; pure."""

from collections.abc import Callable, Collection
from textwrap import shorten
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from bot.views.sanitize import sanitize_line

if TYPE_CHECKING:
    from bot.types import Failure  # imports the settings, which `--help` does without


@runtime_checkable
class ReportableError(Protocol):
    """An error that a person can fix, as all of ours are: `str()` is one line, and `hint` says what to do."""

    kind: str
    hint: str


class Fault(NamedTuple):
    """An error as it is reported: a kind for programs, a line for people, and what to do."""

    kind: str
    message: str
    hint: str = ""
    others: "tuple[Fault, ...]" = ()  # further errors that are reported with it

    def line(self) -> str:
        message, hint = sanitize_line(self.message), sanitize_line(self.hint)
        return f"{message.removesuffix('.')} — {hint}" if hint else message

    def redacted(self, redact: Callable[[str], str]) -> "Fault":
        """Return the fault with each of its texts passed through `redact`."""
        others = tuple(other.redacted(redact) for other in self.others)
        return Fault(self.kind, redact(self.message), redact(self.hint), others)


def explain_error(error: Exception) -> Fault:
    """Return a `Fault` that reports an error."""
    if isinstance(error, ReportableError):
        others = (other if isinstance(other, Fault) else explain_error(other) for other in getattr(error, "others", ()))
        return Fault(error.kind, str(error), error.hint, tuple(others))
    if isinstance(error, OSError) and error.strerror:
        place = f": {error.filename}" if error.filename else ""
        return Fault("system", f"{error.strerror}{place}.", "Fix that, and run the command again.")
    # Shortened: a library's message may contain whole documents, or the question.
    cause = shorten(f"{type(error).__name__}: {error}", 200, placeholder=" …")
    return Fault("internal", f"An unexpected error occurred: {cause}", "`footnote --debug …` shows where.")


def explain_nothing_ingested(sources: Collection[str]) -> Fault:
    """Return the error that nothing is ingested; `sources` are the corpora of the settings that have a source."""
    if sources:
        hint = f"`footnote ingest all` ingests the corpora of the settings: {', '.join(sources)}."
    else:
        hint = "Start with `footnote setup`, or ingest a folder: `footnote ingest folder PATH --corpus NAME`."
    return Fault("unknown_corpus", "Nothing is ingested yet.", hint)


def explain_failure(failure: "Failure") -> Fault:
    """Convert a failed turn to a `Fault`."""
    return Fault(failure.kind, failure.message, failure.hint)
