"""Plan and run the examination of a model, and report it.

`examiner` tests one model in one variant; this module runs all variants under one budget.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

from bot.doctor.advice import Advice, ExamFacts, collect_advice
from bot.doctor.call_kinds import GoldCase, read_cases
from bot.doctor.examiner import Examination, Examiner
from bot.doctor.prompt_variants import PromptVariant, list_prompt_variants, measure_variant
from bot.settings.settings_lines import format_toml
from bot.settings.tables.settings_tables import Settings
from bot.views.text_formats import ProgressCallback
from pipeline.errors import PipelineError
from pipeline.llm.model import LLM, Budget, BudgetMeter
from pipeline.llm.model_settings import ModelSettings, StageSettings
from pipeline.systems import DEFAULT_SYSTEM, SYSTEMS


def format_settings(advice: Iterable[Advice], stages: Mapping[str, StageSettings]) -> tuple[str, ...]:
    """Format all advice as lines of `footnote.toml`.

    Advice changes `key`, `TABLE.key` or `model.stages.STAGE.key`. As each stage is one inline table, its current
    settings in `stages` are repeated.
    """
    tables: dict[str, dict[str, Any]] = {"": {}}  # the keys of no table come first
    for name, value in (change for each in advice for change in each.changes.items()):
        table, _, key = name.partition(".") if "." in name else ("", "", name)
        place = tables.setdefault(table, {})
        path = key.split(".")
        if path[0] == "stages":
            place.setdefault("stages", _list_stage_settings(stages)).setdefault(path[1], {})[path[2]] = value
        else:
            place[key] = value
    return tuple(
        line
        for table, values in tables.items()
        for line in (
            *([f"[{table}]"] if table else ()),
            *(f"{key} = {format_toml(one)}" for key, one in values.items()),
        )
    )


def _list_stage_settings(stages: Mapping[str, StageSettings]) -> dict[str, dict[str, Any]]:
    plain = {
        stage: {key: value for key, value in asdict(own).items() if value is not None} for stage, own in stages.items()
    }
    return {stage: own for stage, own in plain.items() if own}


@dataclass(frozen=True, slots=True)
class ModelReport:
    model: str
    server: str
    facts: ExamFacts

    @property
    def advice(self) -> tuple[Advice, ...]:
        return collect_advice(self.facts)

    @property
    def lines(self) -> tuple[str, ...]:
        """The advice as lines of `footnote.toml`."""
        return format_settings(self.advice, self.facts.settings.stages)


_ENDLESS = 1_000_000
PATIENCE = 300.0  # seconds that a reply may take at least, so that slow servers are measured and not cut off


_TIMEOUTS = ("timeout_seconds", "first_token_seconds", "idle_seconds")


@dataclass(frozen=True, slots=True)
class ExamRequest:
    stages: Sequence[str] = ()  # empty for all
    limit: int = _ENDLESS  # cases of each kind
    tokens: int = _ENDLESS
    compare: bool = False  # whether to try every variant


@dataclass(frozen=True, slots=True)
class ExamPlan:
    ways: Sequence[PromptVariant]
    cases: Mapping[str, tuple[GoldCase, ...]]

    @property
    def total(self) -> int:
        """The number of cases, each counted once for every variant."""
        return sum(len(self.cases[kind.name]) for way in self.ways for kind in way.kinds)


@dataclass(slots=True)
class ExamResults:
    """The results so far; they grow, so that an interrupted run keeps them."""

    ways: list[tuple[PromptVariant, Examination]] = field(default_factory=list)

    @property
    def fault(self) -> PipelineError | None:
        """Why nothing was measured in the last attempt; None if anything was measured."""
        faults = [examined.fault for _, examined in self.ways if examined.outcomes]
        return faults[-1] if all(faults) and faults else None

    @property
    def anything(self) -> bool:
        return any(not examined.fault for _, examined in self.ways if any(examined.outcomes.values()))


def plan_exam(request: ExamRequest, settings: Settings, now: datetime) -> ExamPlan:
    """Plan the cases; the plan has no variants if the stages make no calls."""
    model = settings.model
    entry = SYSTEMS.get(settings.system)
    system = settings.system if entry and entry.calls else DEFAULT_SYSTEM
    variants = list_prompt_variants(
        model.plain(), student=model.student, compare=request.compare, stages=request.stages, system=system
    )
    cases = {kind.name: read_cases(kind.file, now.date()) for variant in variants for kind in variant.kinds}
    if "refine" in cases:
        cases["refine"] = tuple(case for case in cases["refine"] if case.expected)
    return ExamPlan(variants, {name: listed[: request.limit] for name, listed in cases.items()})


async def run_exam(
    plan: ExamPlan,
    open_model: Callable[[ModelSettings], AbstractAsyncContextManager[LLM]],
    *,
    tokens: int,
    now: datetime,
    report: ProgressCallback,
    results: ExamResults,
    patience: float = PATIENCE,
) -> None:
    """Run the plan, one variant after another, until `tokens` are used; add to `results`.

    Calls have at least `patience` seconds, whatever the settings say.

    Raises `ModelUnavailable` if the model's settings are incomplete.
    """
    spent = BudgetMeter(Budget(_ENDLESS, tokens))
    done = 0

    def count(doing: str) -> None:
        nonlocal done
        done += 1
        report(done, plan.total, doing)

    for way in plan.ways:
        if results.fault:
            return  # a model without any reply will not reply to another variant
        longer = {name: max(patience, getattr(way.settings, name)) for name in _TIMEOUTS}
        async with open_model(replace(way.settings, **longer)) as llm:
            sharing, at_once = way.settings.shares_beginning, way.settings.max_concurrency
            examiner = Examiner(llm, spent, now=now, student=way.student, at_once=at_once, sharing=sharing)
            results.ways.append((way, examiner.results))
            for kind in way.kinds:
                await examiner.examine(kind, plan.cases[kind.name], partial(count, f"{kind.name} {way.name}"))


def build_report(results: ExamResults, settings: Settings) -> ModelReport:
    """Return the report on the variants that got any reply."""
    model = settings.model.plain()
    replied = tuple(measure_variant(way, examined) for way, examined in results.ways if not examined.fault)
    facts = ExamFacts(replied, model, settings.model.student, settings.limits.seconds, model.max_concurrency)
    return ModelReport(settings.model.names, model.server, facts)
