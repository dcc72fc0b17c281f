"""Print figures: as one JSON document, or as tables in Markdown."""

import json
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Annotated, Any

import typer

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
MISSING = "–"  # shown for a figure that cannot be measured


def print_report(document: Mapping[str, Any], text: str, *, as_json: bool) -> None:
    print(json.dumps({"schema": 1, **document}) if as_json else text)


def fail_unless(holds: Iterable[bool]) -> None:
    """End the command with exit status 1 if a limit does not hold."""
    if not all(holds):
        raise typer.Exit(1)


def render_holds(holds: Mapping[str, bool]) -> list[str]:
    """Return a line for each limit, which says whether it holds."""
    return [f"{name}: {'holds' if held else 'DOES NOT HOLD'}" for name, held in holds.items()]


def render_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    first, *others = (f"| {' | '.join(map(str, row))} |" for row in (head, *rows))
    return "\n".join((first, "|" + "---|" * len(head), *others))


def format_figure(value: object, form: str = ".3f") -> str:
    return MISSING if value is None else format(value, form)


def format_interval(interval: Mapping[str, float] | None, form: str = ".2f") -> str:
    """Return an estimate with the bounds of its interval."""
    return MISSING if interval is None else f"{{value:{form}}} ({{low:{form}}}–{{high:{form}}})".format_map(interval)


def round_figure(value: float | None, digits: int = 4) -> float | None:
    return None if value is None else round(value, digits)


def compute_mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of the values that are not None; None if there are none."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def compute_share(flags: Iterable[object]) -> float | None:
    """Return the share of true values, rounded; None if there are no values."""
    return round_figure(compute_mean(map(bool, flags)))
