"""What every command stands in: the options they share, the settings, the output, and failures told plainly."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from bot.console import Output, opened_output, told_plainly
from bot.doors import Doors

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bot.settings import Settings

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print one JSON document and nothing else.")]


@dataclass(frozen=True, slots=True)
class Invocation:
    """What was said before the command's name, and what commands do their work with."""

    doors: Doors = field(default_factory=Doors)
    config: Path | None = None
    debug: bool = False


@dataclass(frozen=True, slots=True)
class Frame:
    """What a command gets."""

    output: Output
    settings: Settings
    doors: Doors


@contextmanager
def command(context: typer.Context, *, as_json: bool) -> Iterator[Frame]:
    """Read the settings and run a command within, its failures told plainly."""
    from bot.settings_reading import load

    invocation = invocation_of(context)
    with speaking(context, as_json=as_json) as output:
        yield Frame(output, load(invocation.config), invocation.doors)


@contextmanager
def speaking(context: typer.Context, *, as_json: bool) -> Iterator[Output]:
    """Run a command that needs no settings within: what goes wrong is told in one plain line and an exit status."""
    output = opened_output(as_json=as_json, debug=invocation_of(context).debug)
    with told_plainly(output):
        yield output


def invocation_of(context: typer.Context) -> Invocation:
    """Return what was said before the command's name."""
    return context.find_object(Invocation) or Invocation()


def examples(*lines: str) -> str:
    """Return the end of a command's help: what to type."""
    heading = "Example:" if len(lines) == 1 else "Examples:"
    return "\n\n".join((heading, *lines))
