"""Puts claims to a verifier one at a time and keeps what it says of each, and how long it took.

Milliseconds are those of one core: on Linux the process is bound to one while it judges, and the embedder
heeds that. The first claim is judged once more beforehand, so that nothing is timed that is only loaded once.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from time import perf_counter

from evaluation.claims.types import LabelledClaim
from evaluation.claims.verifying import Judged, Verifier


@dataclass(frozen=True, slots=True)
class Outcome:
    """A claim, and what a verifier made of it in so many milliseconds."""

    claim: LabelledClaim
    judged: Judged
    milliseconds: float


async def judge_all(claims: Sequence[LabelledClaim], verifier: Verifier) -> tuple[Outcome, ...]:
    """Judge claims in order, on one core where the system can bind a process to one."""
    with one_core():
        for claim in claims[:1]:
            await verifier(claim.claim, claim.evidence)
        return tuple([await _judged(claim, verifier) for claim in claims])


@contextmanager
def one_core() -> Iterator[None]:
    """Bind the calling thread, and those it starts, to one of its cores; do nothing where the system cannot."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


async def _judged(claim: LabelledClaim, verifier: Verifier) -> Outcome:
    started = perf_counter()
    judged = await verifier(claim.claim, claim.evidence)
    return Outcome(claim, judged, (perf_counter() - started) * 1000)
