"""What a command says and how it fails: results on stdout, everything else on stderr, a failure in one plain line.

What results look like stands in `terminal`, `tables` and, for programs, in `documents`.
"""

import json
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import typer
from rich.console import Console, RenderableType

from bot import documents
from bot.sanitizing import one_line

INTERRUPTED = 130
_UNSEEN = {char: f"\\u{char:04x}" for char in range(0x7F, 0xA0)}


@runtime_checkable
class Mendable(Protocol):
    """An error that a person can mend, as all of ours are: `str()` is one plain line, and `hint` says what to do."""

    kind: str
    hint: str


class Fault(NamedTuple):
    """A failure as it is told."""

    kind: str
    message: str
    hint: str = ""

    def line(self) -> str:
        """Return it as one line."""
        message, hint = one_line(self.message), one_line(self.hint)
        return f"{message.removesuffix('.')} — {hint}" if hint else message


class Failed(Exception):
    """A failure that a value told of, such as an answer that could not be given, and that ends the command."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.kind = fault.kind
        self.hint = fault.hint


@dataclass(frozen=True, slots=True)
class Output:
    """Where a command speaks."""

    out: Console
    err: Console
    as_json: bool = False
    debug: bool = False

    def give(self, document: Mapping[str, Any], *views: RenderableType) -> None:
        """Print a result: the document with `--json`, the views for people otherwise."""
        if self.as_json:
            self.out.file.write(encoded(document, self.out.encoding) + "\n")
        else:
            self.view(*views)

    def view(self, *views: RenderableType) -> None:
        """Print what people read, one below the other."""
        if self.out.color_system:
            self.out.print(*views, sep="\n")
            return
        with self.out.capture() as capture:
            self.out.print(*views, sep="\n")
        # Rich fills lines up to the width, which a file or a pipe has no use for.
        self.out.file.write("".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))

    def note(self, text: str) -> None:
        """Say something beside the result, on one line of stderr."""
        self.err.out(one_line(text), highlight=False)

    def fail(self, fault: Fault) -> None:
        """Say a failure: a line on stderr and, with `--json`, a document."""
        self.note(f"footnote: {fault.line()}")
        if self.as_json:
            self.give(documents.failed(fault.kind, one_line(fault.message), one_line(fault.hint)))


def opened_output(*, as_json: bool, debug: bool) -> Output:
    """Return the output of this process as it is now; plain text where nobody sees colours or nobody wants them."""
    return Output(_console(stderr=False), _console(stderr=True), as_json, debug)


@contextmanager
def told_plainly(output: Output) -> Iterator[None]:
    """Turn whatever goes wrong within into one plain line and an exit status."""
    try:
        yield
    except (typer.Exit, BrokenPipeError):
        raise
    except KeyboardInterrupt as error:
        output.note("footnote: stopped; what was done is kept, and the same command can be run again")
        raise typer.Exit(INTERRUPTED) from error
    except Exception as error:
        output.fail(fault_of(error))
        if output.debug:
            output.err.out("".join(traceback.format_exception(error)), highlight=False)
        raise typer.Exit(1) from error


def fault_of(error: Exception) -> Fault:
    """Say what an error means to a person."""
    if isinstance(error, Mendable):
        return Fault(error.kind, str(error), error.hint)
    if isinstance(error, OSError) and error.strerror:
        place = f": {error.filename}" if error.filename else ""
        return Fault("system", f"{error.strerror}{place}.", "Mend that, and run the command again.")
    message = f"Something went wrong that should not have: {type(error).__name__}: {error}"
    return Fault("internal", message, "`footnote --debug …` shows where.")


def encoded(document: Mapping[str, Any], encoding: str) -> str:
    """Return a document as JSON that a stream of this encoding can carry and that no terminal obeys."""
    plain = json.dumps(document, indent=2, ensure_ascii=not encoding.lower().startswith("utf"))
    return plain.translate(_UNSEEN)


def _console(*, stderr: bool) -> Console:
    stream = sys.stderr if stderr else sys.stdout
    console = Console(file=stream, highlight=False, emoji=False, markup=False)
    # Without colours rich would still write links and bold.
    return (
        Console(file=stream, highlight=False, emoji=False, markup=False, color_system=None)
        if console.no_color
        else console
    )
