"""Write what a command prints: results to stdout, everything else to stderr, an error as one line.

Also has what all views share: the envelope and the values of JSON documents, and progress bars.
"""

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from typing import Any, Literal, TextIO

import typer
from rich.console import Console, Group, RenderableType
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.table import Column

from bot.views.error_messages import Fault, explain_error
from bot.views.sanitize import sanitize_line
from bot.views.text_formats import ProgressCallback, format_duration, format_timestamp
from bot.views.text_layout import UNWRAPPED, Text
from storage.errors import contain_panics

EXIT_INTERRUPTED = 130
_UNSEEN = {char: f"\\u{char:04x}" for char in range(0x7F, 0xA0)}


class CommandError(Exception):
    """A failure that ends the command, such as an answer that could not be given."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.kind = fault.kind
        self.hint = fault.hint
        self.others = fault.others


@dataclass(frozen=True, slots=True)
class Output:
    """The streams of a command, and how to write to them."""

    out: Console
    err: Console
    as_json: bool = False
    debug: bool = False

    def give(self, document: Mapping[str, Any], *views: RenderableType) -> None:
        """Print a result: the document with `--json`, else the views."""
        if self.as_json:
            self.out.file.write(encode_json(document, self.out.encoding) + "\n")
        else:
            self.view(*views)

    def view(self, *views: RenderableType) -> None:
        self.out.print(Group(*views), crop=False, overflow="ignore")  # printed alone, our `Text` would become Rich's

    def note(self, text: str) -> None:
        """Print a line on stderr."""
        self.err.print(Group(Text(sanitize_line(text))), crop=False)

    def fail(self, fault: Fault) -> None:
        """Print a fault and its `others`: a line each on stderr and, with `--json`, a document."""
        faults = (fault, *fault.others)
        for each in faults:
            self.note(f"footnote: {each.line()}")
        if self.as_json:
            first, *others = [
                build_error(each.kind, sanitize_line(each.message), sanitize_line(each.hint)) for each in faults
            ]
            self.give(build_document(error=first | ({"others": others} if others else {})))


def open_output(*, as_json: bool, debug: bool) -> Output:
    """Return the output of this process; plain text if NO_COLOR is set or the stream is not a terminal."""
    return Output(open_console(sys.stdout), open_console(sys.stderr), as_json, debug)


@contextmanager
def report_errors(output: Output) -> Iterator[None]:
    """Turn every exception into one plain line and an exit status; usage errors are left to typer."""
    try:
        with contain_panics():
            yield
    except (typer.Exit, typer.BadParameter, BrokenPipeError):
        raise
    except KeyboardInterrupt as error:
        output.note("footnote: stopped; finished work is kept")
        raise SystemExit(EXIT_INTERRUPTED) from error
    except Exception as error:
        output.fail(explain_error(error))
        if output.debug:
            output.err.out("".join(traceback.format_exception(error)), highlight=False)
        raise SystemExit(1) from error


def encode_json(document: Mapping[str, Any], encoding: str) -> str:
    """Encode a document as JSON that fits a stream of this encoding and holds no terminal control characters."""
    plain = json.dumps(document, indent=2, ensure_ascii=not encoding.lower().startswith("utf"))
    return plain.translate(_UNSEEN)


def open_console(stream: TextIO, environ: Mapping[str, str] = os.environ) -> Console:
    """Return a console on a stream: plain if it is not a terminal, or colour is unwanted or unsupported."""
    # Without a colour system, Rich also writes no links and no bold text, as NO_COLOR should.
    plain = not stream.isatty() or environ.get("NO_COLOR") or environ.get("TERM") == "dumb"
    system: Literal["auto"] | None = None if plain else "auto"
    width = _find_width(stream, environ)
    size: dict[str, Any] = {"width": width, "height": _HEIGHT} if width else {}  # Rich takes one for both, or neither
    return Console(file=stream, color_system=system, highlight=False, emoji=False, markup=False, **size)


def _find_width(stream: TextIO, environ: Mapping[str, str]) -> int | None:
    """Return the width of a stream in columns; None for a terminal that Rich measures itself at each print."""
    if not stream.isatty():
        return UNWRAPPED
    if environ.get("TERM") != "dumb" or environ.get("COLUMNS", "").isdigit():
        return None
    try:  # Rich assumes 80 columns for each dumb terminal
        return os.get_terminal_size(stream.fileno()).columns or None
    except (OSError, ValueError):
        return None


_HEIGHT = 25
_BAR_WIDTH = 100  # a narrower terminal has no room for a bar next to the words
SECONDS_BETWEEN_LINES = 5.0


@contextmanager
def show_progress(
    err: Console, *, label: str, unit: str, clock: Callable[[], float] = time.monotonic
) -> Iterator[ProgressCallback]:
    """Show the progress of the work within the block, its rate and the time left; `unit` is a plural noun."""
    if not err.is_interactive:
        yield _print_progress_lines(err, label, unit, clock)
        return
    started = clock()
    whole = Column(no_wrap=True, overflow="ellipsis")
    bars = [BarColumn()] if err.width >= _BAR_WIDTH else []
    name = TextColumn(
        "{task.description}", table_column=Column(no_wrap=True, min_width=min(len(label), err.width // 2))
    )
    words = (name, *bars, TextColumn("{task.fields[progress]}", table_column=whole))
    with Progress(SpinnerColumn(), *words, console=err) as bar:
        task = bar.add_task(label, total=None, progress="")

        def report(done: int, total: int | None, extra: str = "") -> None:
            progress = format_progress(done, total, unit, clock() - started, extra)
            bar.update(task, completed=done, total=total, progress=progress)

        yield report


def format_progress(done: int, total: int | None, unit: str, seconds: float, extra: str = "") -> str:
    """Format progress: `256 of 883 documents, 1,204 passages, 51 documents/s, 12 s left`."""
    rate = done / seconds if seconds > 0 else 0.0
    parts = [f"{done:,} of {total:,} {unit}" if total is not None else f"{done:,} {unit}", extra]
    if rate:
        parts.append(f"{rate:,.0f} {unit}/s" if rate >= 1 else f"{60 * rate:,.1f} {unit}/min")
    if rate and total is not None and done < total:
        parts.append(f"{format_duration((total - done) / rate)} left")
    return ", ".join(filter(None, parts))


def _print_progress_lines(err: Console, label: str, unit: str, clock: Callable[[], float]) -> ProgressCallback:
    started = printed = clock()
    err.out(f"{label}: started", highlight=False)

    def report(done: int, total: int | None, extra: str = "") -> None:
        nonlocal printed
        if clock() - printed >= SECONDS_BETWEEN_LINES:
            printed = clock()
            err.out(f"{label}: {format_progress(done, total, unit, printed - started, extra)}", highlight=False)

    return report


SCHEMA = 1
Document = dict[str, Any]


def build_error(kind: str, message: str, hint: str) -> Document:
    return {"kind": kind, "message": message, "hint": hint}


def build_document(**content: Any) -> Document:
    """Wrap content in the versioned envelope."""
    return {"schema": SCHEMA, **content}


def pick(value: object, names: str) -> Document:
    """Return the attributes in `names` (separated by spaces) for JSON: times as ISO 8601, enum members as values."""
    return {name: _convert(getattr(value, name)) for name in names.split()}


def _convert(value: object) -> object:
    # pydantic's TypeAdapter would write UTC as Z, which these documents never did.
    match value:
        case datetime():
            return format_timestamp(value)
        case Enum():
            return value.value
        case tuple():
            return [_convert(item) for item in value]
    return value
