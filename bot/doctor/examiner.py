"""Run the gold cases on a model, one kind after another, several cases at once, and store each outcome.

`Examination` holds the outcomes while it grows, so that an interrupted run keeps its measurements.
"""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from random import Random

from bot.doctor.call_kinds import CallKind, GoldCase, Grade
from pipeline.errors import BudgetExceeded, ModelRefused, ModelUnavailable, PipelineError, UnreadableReply
from pipeline.llm.model import LLM, BudgetMeter, ModelCall, ModelReply, ReplyPiece
from pipeline.llm.usage import estimate_prompt_tokens, estimate_tokens
from pipeline.prompts.prompter import Prompter
from pipeline.stages.concurrency import gather_all
from storage.types import Step

MAX_DEAD_CASES = 6
"""After so many consecutive cases without a reply, their kind is stopped; if they are of several kinds or the first
cases, everything is stopped, as the cause is not a single stage."""


@dataclass(frozen=True, slots=True)
class RecordedCall:
    seconds: float
    error: str = ""  # the kind of error; empty for a reply that could be parsed
    prompt_tokens: int = 0
    completion_tokens: int = 0
    sent_tokens: int = 0  # by our own count
    written_tokens: int = 0  # of the visible reply, by our own count
    estimated: bool = False
    cost: float | None = None
    cut: bool = False  # whether the reply ended at its limit of tokens
    looped: bool = False  # whether it repeated itself, and was stopped
    tries: int = 1
    thought: bool = False
    schema: bool = False  # whether JSON was asked for


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    case: str
    calls: tuple[RecordedCall, ...]
    judgement: Grade | None = None  # None if no reply could be parsed
    fault: PipelineError | None = None  # why there was no reply; None if there was one, readable or not


@dataclass(slots=True)
class Examination:
    """The measurements of one variant of the prompts so far."""

    outcomes: dict[str, list[CaseOutcome]] = field(default_factory=dict)  # by kind
    cut_short: dict[str, PipelineError] = field(default_factory=dict)  # why some kinds were not finished

    @property
    def fault(self) -> PipelineError | None:
        """Why nothing was measured; None if anything was measured."""
        ended = [outcome.fault for outcomes in self.outcomes.values() for outcome in outcomes]
        return next(iter((*ended, *self.cut_short.values())), None) if all(ended) else None


@dataclass(slots=True)
class Examiner:
    """Examines a model with one variant of its prompts."""

    llm: LLM
    spent: BudgetMeter
    now: datetime  # the day of the cases
    student: bool
    at_once: int  # how many cases run at once
    sharing: bool = False  # whether all prompts share their beginning
    results: Examination = field(default_factory=Examination)
    _dead: list[str] = field(default_factory=list)

    async def examine(self, kind: CallKind, cases: tuple[GoldCase, ...], report: Callable[[], None]) -> None:
        """Run all cases of a kind; fewer if the model stops replying, or the budget is used up."""
        if self._is_over():
            return
        self.results.outcomes[kind.name] = []
        remaining = iter(cases)
        await gather_all(self._work(kind, remaining, report) for _ in range(self.at_once))

    async def _work(self, kind: CallKind, remaining: Iterator[GoldCase], report: Callable[[], None]) -> None:
        for case in remaining:
            outcome = await self._outcome(kind, case)
            if isinstance(outcome.fault, BudgetExceeded):
                used_up = f"the budget of {self.spent.budget.tokens:,} tokens is used up"
                self.results.cut_short[kind.name] = BudgetExceeded(used_up, hint="raise --tokens")
                return
            self.results.outcomes[kind.name].append(outcome)
            dead = isinstance(outcome.fault, ModelUnavailable) and not isinstance(outcome.fault, ModelRefused)
            self._dead = [*self._dead, kind.name] if dead else []
            report()
            if outcome.fault and (self._dead.count(kind.name) >= MAX_DEAD_CASES or self._is_over()):
                self.results.cut_short[kind.name] = outcome.fault
            if kind.name in self.results.cut_short:
                return

    async def _outcome(self, kind: CallKind, case: GoldCase) -> CaseOutcome:
        calls: list[RecordedCall] = []
        counted = _CountingModel(self.llm)
        prompter = Prompter(
            counted,
            self.spent,
            note=lambda step, _: calls.append(_record_call(step, counted.sent)),
            now=self.now,
            random=Random(case.name),  # noqa: S311 - it draws fences, the same ones for a case each time
            student=self.student,
            sharing=self.sharing,
        )
        try:
            value = await kind.request(case, prompter, student=self.student)
        except UnreadableReply:
            return CaseOutcome(case.name, tuple(calls))
        except PipelineError as error:
            return CaseOutcome(case.name, tuple(calls), fault=error)
        return CaseOutcome(case.name, tuple(calls), kind.judge(case, value))

    def _is_over(self) -> bool:
        """Return whether to stop, because the budget is used up or no kind of call gets replies any more."""
        spent = any(isinstance(fault, BudgetExceeded) for fault in self.results.cut_short.values())
        kinds = len(set(self._dead))
        return spent or (len(self._dead) >= MAX_DEAD_CASES and (kinds > 1 or self.results.fault is not None))


class _CountingModel:
    """Wraps a model, and estimates the tokens of each prompt, to compare them with the server's count."""

    def __init__(self, llm: LLM) -> None:
        self._llm = llm
        self.sent = 0

    def structured(self, stage: str) -> bool:
        return self._llm.structured(stage)

    def busy(self) -> bool:
        return self._llm.busy()

    async def complete(self, call: ModelCall, spent: BudgetMeter) -> ModelReply:
        self.sent = estimate_prompt_tokens(call)
        return await self._llm.complete(call, spent)

    def stream(self, call: ModelCall, spent: BudgetMeter) -> AsyncIterator[ReplyPiece | ModelReply]:
        self.sent = estimate_prompt_tokens(call)
        return self._llm.stream(call, spent)


def _record_call(step: Step, sent: int) -> RecordedCall:
    facts = step.facts
    return RecordedCall(
        seconds=step.milliseconds / 1000,
        error=facts.get("error", "").partition(":")[0],
        prompt_tokens=facts.get("prompt_tokens", 0),
        completion_tokens=facts.get("completion_tokens", 0),
        sent_tokens=sent,
        written_tokens=estimate_tokens(facts.get("reply", "")),
        estimated=facts.get("estimated", False),
        cost=facts.get("cost"),
        cut=facts.get("finish") == "length",
        looped=facts.get("finish") == "loop",
        tries=facts.get("attempts", 1),
        thought=bool(facts.get("reasoning")),
        schema=facts["format"] == "schema",
    )
