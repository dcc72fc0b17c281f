"""List the variants in which a model can be prompted, and compute the figures of each. Pure.

The configured prompts are one variant. A comparison also requests the structured kinds as text, as JSON and by a
schema, and all kinds with the student's prompts. Shares count cases that got a reply. Seconds and tokens count calls; a
case may take two.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from bot.doctor.call_kinds import CALL_KINDS, CallKind, list_call_kinds
from bot.doctor.examiner import CaseOutcome, Examination, RecordedCall
from pipeline.errors import PipelineError
from pipeline.llm.model_settings import ModelSettings, Structured
from storage.types import Verdict

UNREADABLE = "UnreadableReply"
HIDDEN_THOUGHT_FACTOR = 2  # a reply with this many times its visible tokens had hidden thoughts
TOKEN_TOLERANCE = 60  # the error of our own count of a short reply
SHORTENED_SHARE = 0.55  # a server that counts a smaller share of the sent tokens did not read them all


@dataclass(frozen=True, slots=True)
class Figures:
    """The measurements of one kind of call."""

    cases: int = 0  # how many got a reply
    first: int = 0  # how many replies could be parsed at once
    readable: int = 0  # how many could be parsed, some at the second try
    right: int = 0
    cited: int = 0
    valid: int = 0
    verdicts: Mapping[tuple[Verdict, Verdict], int] = field(default_factory=dict)
    """Counts, by the expected and the given verdict."""
    wrong: Mapping[str, str] = field(default_factory=dict)  # by case
    faults: tuple[PipelineError, ...] = ()  # of the cases that got no reply
    calls: int = 0
    seconds: float = 0.0  # the median
    slow_seconds: float = 0.0  # the 95th percentile
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False
    cost: float | None = None
    longest_sent: int = 0  # tokens, by our own count
    longest_reply: int = 0
    cut: int = 0  # how many replies ended at their limit of tokens
    looped: int = 0  # how many repeated themselves, and were stopped
    retried: int = 0  # how many calls took more than one try
    thought: int = 0
    trimmed: int = 0  # how often a prompt did not fit and was made smaller
    shortened: int = 0  # how many prompts the server seems to have read only in part
    schema: int = 0  # how many replies were requested as JSON


def compute_figures(outcomes: Sequence[CaseOutcome]) -> Figures:
    replied = [outcome for outcome in outcomes if not outcome.fault]
    judged = [(outcome.case, outcome.judgement) for outcome in replied if outcome.judgement]
    calls = [call for outcome in outcomes for call in outcome.calls]
    sent = [call for call in calls if call.error not in {"SchemaNotOffered", "PromptTooLong"}]
    seconds = [call.seconds for call in sent]
    costs = [call.cost for call in sent if call.cost is not None]
    counted = [call for call in sent if not call.estimated]
    return Figures(
        cases=len(replied),
        first=sum(UNREADABLE not in {call.error for call in outcome.calls} for outcome in replied),
        readable=len(judged),
        right=sum(not judgement.wrong for _, judgement in judged),
        cited=sum(judgement.cited for _, judgement in judged),
        valid=sum(judgement.valid for _, judgement in judged),
        verdicts=Counter(judgement.verdicts for _, judgement in judged if judgement.verdicts),
        wrong={case: judgement.wrong for case, judgement in judged if judgement.wrong},
        faults=tuple(outcome.fault for outcome in outcomes if outcome.fault),
        calls=len(sent),
        seconds=median(seconds) if seconds else 0.0,
        slow_seconds=compute_percentile(seconds, 0.95),
        prompt_tokens=sum(call.prompt_tokens for call in sent),
        completion_tokens=sum(call.completion_tokens for call in sent),
        estimated=any(call.estimated for call in sent),
        cost=sum(costs) if costs else None,
        longest_sent=max((call.sent_tokens for call in calls), default=0),
        longest_reply=max((call.completion_tokens for call in sent), default=0),
        cut=sum(call.cut for call in sent),
        looped=sum(call.looped for call in sent),
        retried=sum(call.tries > 1 for call in sent),
        thought=sum(_has_thought(call) for call in sent),
        trimmed=sum(call.error == "PromptTooLong" for call in calls),
        shortened=sum(0 < call.prompt_tokens < SHORTENED_SHARE * call.sent_tokens for call in counted),
        schema=sum(call.schema for call in sent),
    )


def compute_percentile(seconds: Sequence[float], share: float) -> float:
    return sorted(seconds)[math.ceil(share * len(seconds)) - 1] if seconds else 0.0


_TURN_CALLS = (
    (("query", "summarise"), ("generate", "split", "verify"), ("draft", "feedback", "refine")),
    (("query", "bullets"), ("claims", "verdicts"), ("answer",)),
)
"""Each system's calls: two parallel branches, and the calls after them, of which the first is required."""


def estimate_turn_seconds(measured: Mapping[str, Figures]) -> float | None:
    """Estimate the seconds of a turn: the slower of its two parallel branches, and the calls after them.

    Each kind of call counts with its median. Returns None if a required kind was not measured.
    """
    for retrieving, recalling, writing in _TURN_CALLS:
        if all(measured.get(name, Figures()).calls for name in (*retrieving, *recalling, writing[0])):
            parallel = max(sum(measured[name].seconds for name in side) for side in (retrieving, recalling))
            return parallel + sum(measured[name].seconds for name in writing if name in measured)
    return None


def count_verdicts(measured: Mapping[str, Figures]) -> Mapping[tuple[Verdict, Verdict], int]:
    """Count how often each verdict was given for each expected verdict, over all kinds of calls."""
    return sum((Counter(figures.verdicts) for figures in measured.values()), Counter())


def _has_thought(call: RecordedCall) -> bool:
    visible = HIDDEN_THOUGHT_FACTOR * call.written_tokens + TOKEN_TOLERANCE
    return call.thought or (not call.estimated and call.completion_tokens > visible)


AS_SET = "as set"
STUDENT = "student"
_COMPARED: tuple[Structured, ...] = ("text", "json", "schema")


@dataclass(frozen=True, slots=True)
class PromptVariant:
    name: str
    settings: ModelSettings
    kinds: tuple[CallKind, ...]
    student: bool = False


@dataclass(frozen=True, slots=True)
class VariantFigures:
    """The figures of a variant by kind of call."""

    way: str
    figures: Mapping[str, Figures]
    cut_short: Mapping[str, str]  # why some kinds were not finished

    @property
    def offered(self) -> bool:
        """Whether the server supports this variant at all."""
        return any(figures.readable for figures in self.structured) and (
            self.way not in {"json", "schema"} or any(figures.schema for figures in self.structured)
        )

    @property
    def structured(self) -> tuple[Figures, ...]:
        """The figures of the kinds whose format can vary."""
        names = {kind.name for kind in CALL_KINDS if kind.structured}
        return tuple(figures for name, figures in self.figures.items() if name in names)

    @property
    def readable(self) -> float:
        """The share of structured replies that could be parsed."""
        return self._compute_share("readable")

    @property
    def right(self) -> float:
        """The share of structured replies that were right."""
        return self._compute_share("right")

    def _compute_share(self, count: str) -> float:
        cases = sum(figures.cases for figures in self.structured)
        return sum(getattr(figures, count) for figures in self.structured) / cases if cases else 0.0


def list_prompt_variants(
    settings: ModelSettings, *, student: bool, compare: bool, stages: Sequence[str], system: str
) -> tuple[PromptVariant, ...]:
    """List the variants to examine; empty if the stages make no calls."""
    if not compare:
        kinds = list_call_kinds(student=student, system=system, stages=stages)
        return (PromptVariant(AS_SET, settings, kinds, student=student),) if kinds else ()
    every = list_call_kinds(student=False, system=system, stages=stages)
    structured = tuple(kind for kind in every if kind.structured)
    compared = (
        PromptVariant(name, force_format(settings, name), every if name == "text" else structured) for name in _COMPARED
    )
    merged = list_call_kinds(student=True, system=system, stages=stages)
    student_variant = PromptVariant(STUDENT, force_format(settings, "text"), merged, student=True)
    return tuple(way for way in (*compared, student_variant) if way.kinds)


def measure_variant(variant: PromptVariant, examined: Examination) -> VariantFigures:
    figures = {kind: compute_figures(outcomes) for kind, outcomes in examined.outcomes.items()}
    return VariantFigures(variant.name, figures, {kind: str(fault) for kind, fault in examined.cut_short.items()})


def force_format(settings: ModelSettings, structured: Structured) -> ModelSettings:
    """Return settings that request one format at every stage."""
    stages = {name: replace(own, structured=None) for name, own in settings.stages.items()}
    return replace(settings, structured=structured, stages=stages)
