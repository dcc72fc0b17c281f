"""Put errors into words for people: one plain line, and what to do about it. Pure."""

from collections.abc import Callable, Collection
from textwrap import shorten
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

from bot.views.sanitize import sanitize_line

if TYPE_CHECKING:
    from bot.types import Failure


@runtime_checkable
class ReportableError(Protocol):
    """An error that a person can mend, as all of ours are: `str()` is one plain line, and `hint` says what to do."""

    kind: str
    hint: str


class Fault(NamedTuple):
    """A failure as it is told: its kind for programs, a line for people, and what to do."""

    kind: str
    message: str
    hint: str = ""
    others: "tuple[Fault, ...]" = ()  # what else is wrong, and is told with it

    def line(self) -> str:
        message, hint = sanitize_line(self.message), sanitize_line(self.hint)
        return f"{message.removesuffix('.')} — {hint}" if hint else message

    def redacted(self, redact: Callable[[str], str]) -> "Fault":
        """Return it with each text passed through `redact`."""
        others = tuple(other.redacted(redact) for other in self.others)
        return Fault(self.kind, redact(self.message), redact(self.hint), others)


def explain_error(error: Exception) -> Fault:
    """Say what an error means to a person."""
    if isinstance(error, ReportableError):
        others = (one if isinstance(one, Fault) else explain_error(one) for one in getattr(error, "others", ()))
        return Fault(error.kind, str(error), error.hint, tuple(others))
    if isinstance(error, OSError) and error.strerror:
        place = f": {error.filename}" if error.filename else ""
        return Fault("system", f"{error.strerror}{place}.", "Fix that, and run the command again.")
    # A library's message may hold whole documents, or what was asked: its beginning says enough.
    said = shorten(f"{type(error).__name__}: {error}", 200, placeholder=" …")
    return Fault("internal", f"Something went wrong unexpectedly: {said}", "`footnote --debug …` shows where.")


def explain_nothing_ingested(sources: Collection[str]) -> Fault:
    """Say that nothing is ingested, and how to begin, by which corpora of the settings have a source."""
    if sources:
        hint = f"`footnote ingest all` reads in what the settings name: {', '.join(sources)}."
    else:
        hint = "`footnote setup` begins; or `footnote ingest folder PATH --corpus NAME` ingests a folder."
    return Fault("unknown_corpus", "Nothing is ingested yet.", hint)


def explain_failure(failure: "Failure") -> Fault:
    """Return why a turn failed, to be told as any other failure."""
    return Fault(failure.kind, failure.message, failure.hint)
