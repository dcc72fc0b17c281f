"""What can be set about a simulated model server. Plain values."""

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Length:
    """How long a kind of reply is: so many tokens an item, and how many items where that is not asked for."""

    tokens: int
    items: int = 1


LENGTHS: Mapping[str, Length] = {
    "query": Length(15),
    "summarise": Length(40),
    "generate": Length(125),
    "split": Length(25, items=5),
    "verify": Length(20),
    "verdicts": Length(20),
    "draft": Length(120),
    "feedback": Length(60),
    "refine": Length(120),
}
"""Of each kind of reply: about what small models of today write to our prompts."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast the server is. Rates are tokens a second, `math.inf` without a limit."""

    first_token: float = 0.4
    """Seconds from a request to the beginning of its first token, besides what its prompt takes."""
    out: float = 60.0
    """Of one reply."""
    prompt: float = 4_000.0
    """At which one prompt is read."""
    total_out: float = math.inf
    """Of all replies together."""
    total_prompt: float = math.inf
    """Of all prompts together."""
    concurrency: int = 0
    """Requests worked on at once; the others wait in their order. 0: all."""
    cache: bool = False
    """Whether prompts that begin as an earlier one did are read from a cache so far."""
    cached_cost: float = 0.0
    """What a token in the cache takes to read, as a share of what one takes that is not."""


@dataclass(frozen=True, slots=True)
class Faults:
    """Which share of requests fails, and how."""

    busy: float = 0.0
    """Refused with 429."""
    broken: float = 0.0
    """Refused with 500."""
    cut: float = 0.0
    """Begun, and cut off half-way without a word."""


@dataclass(frozen=True, slots=True)
class Simulated:
    """A simulated model server."""

    pace: Pace = Pace()
    faults: Faults = Faults()
    lengths: Mapping[str, Length] = field(default_factory=lambda: LENGTHS)
    spread: float = 0.0
    """By how much lengths differ: their standard deviation, as a share of the mean."""
    seed: int = 1


def written(simulated: Simulated) -> str:
    """Return settings as text for another process."""
    return json.dumps(asdict(simulated))


def read(text: str) -> Simulated:
    """Return settings from what `written` returned."""
    found: dict[str, Any] = json.loads(text)
    lengths = {kind: Length(**length) for kind, length in found.pop("lengths").items()}
    return Simulated(Pace(**found.pop("pace")), Faults(**found.pop("faults")), lengths, **found)
