"""The ways in which a model can be asked, and what was measured of each. Pure.

As set is one way; to compare is to ask the structured kinds as text, as JSON and by a schema, and all kinds as a
student is asked. Free text is asked the same way in all but the last, so it is asked once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bot.doctoring.examining import Examination
from bot.doctoring.figures import Figures, figures
from bot.doctoring.kinds import KINDS, Kind, kinds
from pipeline.llm.settings import ModelSettings, Structured

AS_SET = "as set"
STUDENT = "student"
_COMPARED: tuple[Structured, ...] = ("text", "json", "schema")


@dataclass(frozen=True, slots=True)
class Way:
    """A way to ask."""

    name: str
    settings: ModelSettings
    kinds: tuple[Kind, ...]
    student: bool = False


@dataclass(frozen=True, slots=True)
class Measured:
    """What was measured of a way: the figures of each kind."""

    way: str
    figures: Mapping[str, Figures]
    cut_short: Mapping[str, str]
    """Why some kinds were not examined to their end."""

    @property
    def offered(self) -> bool:
        """Whether the server could be asked this way at all."""
        return any(one.readable for one in self.structured) and (
            self.way not in {"json", "schema"} or any(one.schema for one in self.structured)
        )

    @property
    def structured(self) -> tuple[Figures, ...]:
        """The figures of those kinds that can be asked in several ways."""
        names = {kind.name for kind in KINDS if kind.structured}
        return tuple(one for name, one in self.figures.items() if name in names)

    @property
    def readable(self) -> float:
        """What share of the structured replies could be read."""
        return _share(sum(one.readable for one in self.structured), self.structured)

    @property
    def right(self) -> float:
        """What share of the structured replies was right."""
        return _share(sum(one.right for one in self.structured), self.structured)


def ways(
    settings: ModelSettings, *, student: bool, compare: bool, stages: Sequence[str], system: str
) -> tuple[Way, ...]:
    """Return the ways to examine, as set or each that there is; none where the stages have nothing to ask."""
    if not compare:
        as_set = Way(AS_SET, settings, kinds(student=student, system=system, stages=stages), student=student)
        return (as_set,) if as_set.kinds else ()
    every = kinds(student=False, system=system, stages=stages)
    structured = tuple(kind for kind in every if kind.structured)
    compared = (Way(name, asked(settings, name), every if name == "text" else structured) for name in _COMPARED)
    merged = Way(STUDENT, asked(settings, "text"), kinds(student=True, system=system, stages=stages), student=True)
    return tuple(way for way in (*compared, merged) if way.kinds)


def measured(way: Way, found: Examination) -> Measured:
    """Return what was measured of a way."""
    cut_short = {kind: str(fault) for kind, fault in found.cut_short.items()}
    return Measured(way.name, {kind: figures(outcomes) for kind, outcomes in found.outcomes.items()}, cut_short)


def asked(settings: ModelSettings, structured: Structured) -> ModelSettings:
    """Return settings by which every stage is asked in one way."""
    stages = {name: replace(own, structured=None) for name, own in settings.stages.items()}
    return replace(settings, structured=structured, stages=stages)


def _share(count: int, among: Sequence[Figures]) -> float:
    cases = sum(one.cases for one in among)
    return count / cases if cases else 0.0
