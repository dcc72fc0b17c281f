"""Which steps the end of a turn waited for, one after the other, and how much of that was the server's. Pure.

From the end backwards: what came before is what the step waited for in its own task, or, where several tasks were
joined since, the last of their steps to end. Where none ended shortly before, it waited for a piece of a stream, of
which only the time tells. A stream counts as far as it had come when what followed began.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from evaluation.speed.model.settings import Pace
from evaluation.speed.turn.tracing import Cause, Step

HANDOVER = 0.01
"""Seconds within which who waits for a step goes on after it."""


@dataclass(frozen=True, slots=True)
class Leg:
    """A stretch of the way, of one step or between two."""

    step: Step | None
    """None where none that is watched ran."""
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        """How long it is."""
        return self.ended - self.began


def critical_path(steps: Sequence[Step], cause: Cause | None, began: float, ended: float) -> tuple[Leg, ...]:
    """Return the way to a moment, without gaps, from the beginning of the turn.

    Args:
        steps: All of the turn, each at the place that is its id.
        cause: What the moment waited for in its own task.
        began: When the turn began.
        ended: The moment.
    """
    return tuple(reversed(tuple(_backwards(steps, cause, began, ended))))


def _backwards(steps: Sequence[Step], cause: Cause | None, began: float, ended: float) -> Iterator[Leg]:
    passed = set[int]()
    while True:
        cause = _joined([step for step in steps if step.id not in passed], steps, cause, ended) or cause
        if ended > (cause.at if cause else began):
            yield Leg(None, cause.at if cause else began, ended)
        if not cause:
            return
        step = steps[cause.step]
        passed.add(step.id)  # a step that took no time ended when it began, and is not waited for twice
        yield Leg(step, step.began, cause.at)
        cause, ended = step.cause, step.began


def _joined(open_ones: Sequence[Step], steps: Sequence[Step], cause: Cause | None, before: float) -> Cause | None:
    """Return the last that steps brought since a cause, of those that follow from it; None if there is nothing."""
    since = cause.at if cause else -math.inf
    others = [step for step in open_ones if not cause or cause.step in _ancestors(steps, step)]
    ended = [Cause(step.id, step.ended) for step in others if since < step.ended <= before]
    last = max(ended, key=_when, default=None)
    if before - max(since, last.at if last else since) <= HANDOVER:
        return last
    come = [Cause(step.id, at) for step in others for at in step.pieces if since < at <= before]
    return max((*ended, *come), key=_when, default=None)


def _when(cause: Cause) -> float:
    return cause.at


def _ancestors(steps: Sequence[Step], step: Step) -> Iterator[int]:
    while step.cause:
        step = steps[step.cause.step]
        yield step.id


def of_server(leg: Leg, pace: Pace) -> float:
    """Return how many seconds of a leg the server was to take by its pace; 0 for what is no call of a model.

    A leg that ends before its reply did has had as many tokens as pieces had come.
    """
    step = leg.step
    if step is None or step.kind != "model":
        return 0.0
    come = sum(at <= leg.ended for at in step.pieces)
    tokens = come if step.pieces and come < len(step.pieces) else step.tokens
    to_read = step.prompt_tokens - step.cached_tokens * (1 - pace.cached_cost)
    return pace.first_token + to_read / pace.prompt + tokens / pace.out


def shares(path: Sequence[Leg], pace: Pace, search: float) -> Mapping[str, float]:
    """Return where the seconds of a way went, by who took them.

    Args:
        path: The way.
        pace: The server's.
        search: Seconds that a search was to take at least.
    """
    found: dict[str, float] = {"server": 0.0, "search": 0.0}
    for leg in path:
        kind = leg.step.kind if leg.step else "between"
        given = {"model": of_server(leg, pace), "search": search}.get(kind, 0.0)
        if given:
            found["server" if kind == "model" else "search"] += min(given, leg.seconds)
        ours = _OURS[kind]
        found[ours] = found.get(ours, 0.0) + max(0.0, leg.seconds - given)
    return found


_OURS = {
    "model": "calls",
    "search": "searching",
    "prompt": "prompts",
    "check": "checks",
    "think": "thinking",
    "between": "between",
}
"""What we call that which a leg takes beyond what was given."""
