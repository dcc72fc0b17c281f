"""From what is wanted to what was found: which cases are asked in which ways, each on a model opened for it.

`examining` asks one model in one way; here are all of them, under one budget.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from bot.app import MODELLED
from bot.doctoring.advice.facts import Facts
from bot.doctoring.cases import Case, read
from bot.doctoring.examining import Examination, Examiner
from bot.doctoring.kinds import KINDS
from bot.doctoring.report import Report
from bot.doctoring.ways import Way, measured, ways
from bot.progress import Tell
from bot.settings import Settings
from pipeline.errors import PipelineError
from pipeline.llm.settings import ModelSettings
from pipeline.model import LLM, Budget, Spent

_ENDLESS = 1_000_000


@dataclass(frozen=True, slots=True)
class Wanted:
    """How much is to be examined."""

    stages: Sequence[str] = ()
    """None is all."""
    limit: int = _ENDLESS
    """Cases of each kind."""
    tokens: int = _ENDLESS
    compare: bool = False
    """Whether to try every way of asking."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked: the ways, and the cases by kind."""

    ways: Sequence[Way]
    cases: Mapping[str, tuple[Case, ...]]

    @property
    def total(self) -> int:
        """How many cases that is, each once a way."""
        return sum(len(self.cases[kind.name]) for way in self.ways for kind in way.kinds)


@dataclass(slots=True)
class Findings:
    """What was found so far, way by way; it grows, so that whoever stops has it."""

    ways: list[tuple[Way, Examination]] = field(default_factory=list)

    @property
    def fault(self) -> PipelineError | None:
        """Why nothing was measured, by what was tried last; None if anything was."""
        faults = [found.fault for _, found in self.ways if found.outcomes]
        return faults[-1] if all(faults) and faults else None

    @property
    def anything(self) -> bool:
        """Whether any case got a reply."""
        return any(not found.fault for _, found in self.ways if any(found.outcomes.values()))


def plan(wanted: Wanted, settings: Settings, now: datetime) -> Plan:
    """Return what is to be asked; no ways where the stages have nothing to ask."""
    model = settings.model
    system = settings.system if settings.system in {kind.system for kind in KINDS} and settings.system else MODELLED
    tried = ways(model.plain(), student=model.student, compare=wanted.compare, stages=wanted.stages, system=system)
    cases = {kind.name: read(kind.file, now.date()) for way in tried for kind in way.kinds}
    if "refine" in cases:
        cases["refine"] = tuple(case for case in cases["refine"] if case.expected)
    return Plan(tried, {name: found[: wanted.limit] for name, found in cases.items()})


async def run(
    asked: Plan,
    open_model: Callable[[ModelSettings], AbstractAsyncContextManager[LLM]],
    *,
    tokens: int,
    now: datetime,
    tell: Tell,
    findings: Findings,
) -> None:
    """Ask all of it, way after way, until so many tokens are used; what comes of it goes into `findings`.

    Raises:
        ModelUnavailable: the model's settings lack something.
    """
    spent, done = Spent(Budget(_ENDLESS, tokens)), 0

    def count(beside: str) -> None:
        nonlocal done
        done += 1
        tell(done, asked.total, beside)

    for way in asked.ways:
        if findings.fault:
            return  # who gives no reply at all gives none when asked otherwise
        async with open_model(way.settings) as llm:
            examiner = Examiner(llm, spent, now=now, student=way.student, at_once=way.settings.max_concurrency)
            findings.ways.append((way, examiner.found))
            for kind in way.kinds:
                await examiner.examine(kind, asked.cases[kind.name], partial(count, f"{kind.name} {way.name}"))


def report(findings: Findings, settings: Settings) -> Report:
    """Return the report of what was found, of those ways that got a reply."""
    model = settings.model.plain()
    replied = tuple(measured(way, found) for way, found in findings.ways if not found.fault)
    facts = Facts(replied, model, settings.model.student, settings.limits.seconds, model.max_concurrency)
    return Report(settings.model.names, model.server, facts)
