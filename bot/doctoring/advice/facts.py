"""What advice is, and all that it follows from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.doctoring.figures import Figures
from bot.doctoring.kinds import KINDS
from bot.doctoring.ways import AS_SET, STUDENT, Measured
from pipeline.llm.settings import ModelSettings

STRONGER = "NAME OF A STRONGER MODEL"
"""Only the operator knows which one that is."""


@dataclass(frozen=True, slots=True)
class Advice:
    """What to change, and why."""

    why: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Settings by their dotted names; none where the change is not one of settings."""


@dataclass(frozen=True, slots=True)
class Facts:
    """All that advice follows from. Advice is for the way of asking that did best."""

    measured: Sequence[Measured]
    """At least one; the first was asked all kinds."""
    settings: ModelSettings
    student: bool
    """Whether the model is set to be asked as a student."""
    turn_limit: float
    """How many seconds a turn may take."""
    at_once: int
    """How many calls ran at once."""

    @property
    def best(self) -> Measured:
        """The way that did best: replies that can be read count most, then right ones, then the stricter way."""
        offered = [one for one in self.measured if one.way != STUDENT and one.offered] or self.measured[:1]
        strictness = (AS_SET, "text", "json", "schema")
        return max(offered, key=lambda one: (round(one.readable, 2), round(one.right, 2), strictness.index(one.way)))

    @property
    def figures(self) -> Mapping[str, Figures]:
        """The figures of the best way, and of what is asked alike in all."""
        return {**self.measured[0].figures, **self.best.figures}

    @property
    def calls(self) -> int:
        """How many calls these figures are of."""
        return sum(one.calls for one in self.figures.values())


def stage_of(kind: str) -> str:
    """Return the stage whose settings rule a kind of call."""
    return next(one.stage for one in KINDS if one.name == kind)
