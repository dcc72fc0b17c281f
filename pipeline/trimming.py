"""What to leave out of a call that does not fit a model's context window. Pure.

The oldest turns go first, half of those before the question at a time; then the last passage, as passages come best
first; then the examples. A call that has none of these left cannot be made smaller.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pipeline.findings import Finding
from pipeline.types import Conversation
from storage.types import Evidence


@dataclass(frozen=True, slots=True)
class Load:
    """What a call carries: its facts, and whether examples stand before them."""

    facts: Mapping[str, Any]
    examples: bool = True


def smaller(load: Load) -> Load | None:
    """Return the next smaller load; None if there is none."""
    for name, value in load.facts.items():
        if isinstance(value, Conversation) and value.earlier:
            kept = value.earlier[(len(value.earlier) + 1) // 2 :]
            return replace(load, facts={**load.facts, name: Conversation((*kept, value.question))})
    for name, value in load.facts.items():
        fewer = _without_last_passage(value)
        if fewer:
            return replace(load, facts={**load.facts, name: fewer})
    return replace(load, examples=False) if load.examples else None


def _without_last_passage(value: object) -> tuple[Any, ...]:
    """Return sentences or findings without those of the last passage; nothing if there is only one, or none."""
    if not isinstance(value, tuple) or not all(isinstance(one, Evidence | Finding) for one in value):
        return ()
    passages = [_passage(one) for one in value]
    return tuple(one for one, passage in zip(value, passages, strict=True) if passage != passages[-1])


def _passage(one: Evidence | Finding) -> str:
    return (one if isinstance(one, Evidence) else one.evidence[0]).passage.id
