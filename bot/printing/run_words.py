"""Words for what became of a refresh, when, and who did it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.progress import spell
from bot.sanitizing import one_line

if TYPE_CHECKING:
    from datetime import datetime

    from storage.refresh_types import Run

DAY = 86_400


def age(at: datetime | None, now: datetime) -> str:
    """Say how long ago a moment was: `3 h 20 min`; empty for none."""
    if at is None:
        return ""
    seconds = max((now - at).total_seconds(), 0.0)
    days = int(seconds // DAY)
    if days > 1:
        return f"{days:,} days"
    return spell(seconds)


def named(corpus: str, edition: str) -> str:
    """Return a corpus with the edition of its source, if that has a name, on a line of its own."""
    return f"{corpus}\n{one_line(edition)}" if edition else corpus


def outcome(run: Run) -> str:
    """Say in a word or two what became of a run, on two lines where tables would become too wide."""
    held = f",\n{run.held_back:,} held back" if run.held_back else ""
    return f"{run.state.value}{held}"


def process(owner: str) -> str:
    """Say which process an owner is: `process 7 on host`."""
    host, _, rest = owner.partition(":")
    number = rest.partition(":")[0]
    return f"process {number} on {host}" if number else owner
