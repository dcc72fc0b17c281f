"""How far a long command has come: a bar in a terminal, else a plain line every few seconds. Both on stderr."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

SECONDS_BETWEEN_LINES = 5.0
_MINUTE = 60


class Tell(Protocol):
    """Hears how far it has come."""

    def __call__(self, done: int, total: int | None, beside: str = "") -> None:
        """Hear how many are done, of how many (None: nobody knows), and what else there is to say."""
        ...


@contextmanager
def told_progress(
    err: Console, *, label: str, unit: str, clock: Callable[[], float] = time.monotonic
) -> Iterator[Tell]:
    """Show how far the work within has come, its rate and the time left; `unit` is what is counted, in the plural."""
    if not err.is_terminal:
        yield _plain_lines(err, label, unit, clock)
        return
    started = clock()
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[told]}"))
    with Progress(*columns, console=err) as bar:
        task = bar.add_task(label, total=None, told="")

        def tell(done: int, total: int | None, beside: str = "") -> None:
            bar.update(task, completed=done, total=total, told=told(done, total, unit, clock() - started, beside))

        yield tell


def told(done: int, total: int | None, unit: str, seconds: float, beside: str = "") -> str:
    """Say how far it has come: `256 of 883 documents, 1,204 passages, 51 documents/s, 12 s left`."""
    rate = done / seconds if seconds > 0 else 0.0
    parts = [f"{done:,} of {total:,} {unit}" if total is not None else f"{done:,} {unit}", beside]
    if rate:
        parts.append(f"{rate:,.0f} {unit}/s" if rate >= 1 else f"{60 * rate:,.1f} {unit}/min")
    if rate and total is not None and done < total:
        parts.append(f"{spell((total - done) / rate)} left")
    return ", ".join(filter(None, parts))


def spell(seconds: float) -> str:
    """Write a duration as people say it: `40 s`, `3 min`, `1 h 20 min`."""
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    hours, minutes = divmod(round(seconds / _MINUTE), _MINUTE)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min"


def _plain_lines(err: Console, label: str, unit: str, clock: Callable[[], float]) -> Tell:
    started = spoken = clock()
    err.out(f"{label}: begun", highlight=False)

    def tell(done: int, total: int | None, beside: str = "") -> None:
        nonlocal spoken
        if clock() - spoken >= SECONDS_BETWEEN_LINES:
            spoken = clock()
            err.out(f"{label}: {told(done, total, unit, spoken - started, beside)}", highlight=False)

    return tell
