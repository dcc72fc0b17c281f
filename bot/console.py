"""What a command says and how it fails: results on stdout, everything else on stderr, a failure in one plain line.

What results look like stands in `terminal`, `tables` and, for programs, in `documents`.
"""

import json
import os
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from textwrap import shorten
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TextIO, runtime_checkable

import typer
from rich.console import Console, RenderableType

from bot.printing import documents
from bot.sanitizing import one_line

if TYPE_CHECKING:
    from bot.turns import Failure

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
    return Output(_console(sys.stdout), _console(sys.stderr), as_json, debug)


@contextmanager
def told_plainly(output: Output) -> Iterator[None]:
    """Turn whatever goes wrong within into one plain line and an exit status."""
    try:
        yield
    except (typer.Exit, BrokenPipeError):
        raise
    except KeyboardInterrupt as error:
        output.note("footnote: stopped; what was done so far is kept")
        raise SystemExit(INTERRUPTED) from error
    except Exception as error:
        output.fail(fault_of(error))
        if output.debug:
            output.err.out("".join(traceback.format_exception(error)), highlight=False)
        raise SystemExit(1) from error


def fault_of(error: Exception) -> Fault:
    """Say what an error means to a person."""
    if isinstance(error, Mendable):
        return Fault(error.kind, str(error), error.hint)
    if isinstance(error, OSError) and error.strerror:
        place = f": {error.filename}" if error.filename else ""
        return Fault("system", f"{error.strerror}{place}.", "Mend that, and run the command again.")
    # A library's message may hold whole documents, or what was asked: its beginning says enough.
    said = shorten(f"{type(error).__name__}: {error}", 200, placeholder=" …")
    return Fault("internal", f"Something went wrong that should not have: {said}", "`footnote --debug …` shows where.")


def fault_in(failure: "Failure") -> Fault:
    """Return why a turn failed, to be told as any other failure."""
    return Fault(failure.kind, failure.message, failure.hint)


def encoded(document: Mapping[str, Any], encoding: str) -> str:
    """Return a document as JSON that a stream of this encoding can carry and that no terminal obeys."""
    plain = json.dumps(document, indent=2, ensure_ascii=not encoding.lower().startswith("utf"))
    return plain.translate(_UNSEEN)


def _console(stream: TextIO) -> Console:
    # Without a colour system rich writes no links and nothing bold either, which is what NO_COLOR asks for here.
    system: Literal["auto"] | None = None if os.environ.get("NO_COLOR") else "auto"
    return Console(file=stream, color_system=system, highlight=False, emoji=False, markup=False)
