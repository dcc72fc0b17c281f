"""The way to the end of a turn as text: every step on a line, its time as a bar, the way itself marked. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from evaluation.speed.turn.path import Leg
from evaluation.speed.turn.tracing import Step

WIDTH = 72
SHORTEST = 0.02
"""Seconds of a step that is shown though the end did not wait for it."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One line of a timeline; times are seconds from the turn's beginning."""

    label: str
    kind: str
    began: float
    ended: float
    critical: tuple[float, float] | None
    """The stretch that the end waited for; None where it did not."""
    first_piece: float | None = None


def bars(steps: Sequence[Step], path: Sequence[Leg], began: float) -> tuple[Bar, ...]:
    """Return a line for each step that lasts, or that the end waited for, in the order in which they began."""
    legs = {leg.step.id: leg for leg in path if leg.step}
    numbers: dict[str, int] = {}
    found = []
    for step in steps:
        if step.ended - step.began < SHORTEST:
            continue
        name = f"prompt of {step.name}" if step.kind == "prompt" else step.name
        numbers[name] = numbers.get(name, 0) + 1
        leg = legs.get(step.id)
        critical = (leg.began - began, leg.ended - began) if leg else None
        first = step.pieces[0] - began if step.pieces else None
        label = f"{name} {numbers[name]}"
        found.append(Bar(label, step.kind, step.began - began, step.ended - began, critical, first))
    return tuple(found)


def drawn(lines: Sequence[Bar], moments: Sequence[tuple[str, float]], end: float) -> str:
    """Return a timeline: `#` is what the end waited for, `-` what ran beside it.

    Args:
        lines: The steps.
        moments: What to mark beneath, with its time.
        end: How long the turn took.
    """
    wide = max((len(line.label) for line in lines), default=0)
    shown = []
    for line in lines:
        marks = [" "] * (WIDTH + 1)
        _fill(marks, line.began, line.ended, "-", end)
        if line.critical:
            _fill(marks, *line.critical, "#", end)
        shown.append(f"{line.label:<{wide}} |{''.join(marks)}| {line.began:6.2f} {line.ended:6.2f}")
    for label, at in moments:
        marks = [" "] * (WIDTH + 1)
        marks[_place(at, end)] = "^"
        shown.append(f"{'':<{wide}} |{''.join(marks)}| {at:6.2f} {label}")
    return "\n".join(shown)


def _fill(marks: list[str], began: float, ended: float, mark: str, end: float) -> None:
    for place in range(_place(began, end), max(_place(ended, end), _place(began, end) + 1)):
        marks[place] = mark


def _place(at: float, end: float) -> int:
    return min(WIDTH, round(at / end * WIDTH)) if end else 0
