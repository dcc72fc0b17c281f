"""Advise on settings, from the measured figures. Pure: each rule is a function of the figures and the settings.

The thresholds are differences that a person would notice.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.doctor.call_kinds import CALL_KINDS
from bot.doctor.prompt_variants import AS_SET, STUDENT, Figures, VariantFigures, count_verdicts, estimate_turn_seconds
from bot.views.text_formats import format_count
from pipeline.llm.model_settings import ModelSettings
from storage.types import Verdict

STRONGER_MODEL = "NAME OF A STRONGER MODEL"  # for the operator to fill in


@dataclass(frozen=True, slots=True)
class Advice:
    """A recommended change of settings, and the reason."""

    why: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Settings by their dotted names; empty if the advice is about something else."""


@dataclass(frozen=True, slots=True)
class ExamFacts:
    """The measurements and settings that advice is based on; advice is for the best variant."""

    measured: Sequence[VariantFigures]  # at least one; the first has all kinds of calls
    settings: ModelSettings
    student: bool  # whether the settings prompt the model as a student
    turn_limit: float  # seconds
    at_once: int  # how many calls ran at once

    @property
    def best(self) -> VariantFigures:
        """The variant with most readable replies; among equals, with most right ones, then the strictest format."""
        offered = [variant for variant in self.measured if variant.way != STUDENT and variant.offered]
        strictness = (AS_SET, "text", "json", "schema")
        return max(
            offered or self.measured[:1],
            key=lambda variant: (round(variant.readable, 2), round(variant.right, 2), strictness.index(variant.way)),
        )

    @property
    def figures(self) -> Mapping[str, Figures]:
        """The figures of the best variant; for kinds of calls that it lacks, the figures of the first variant."""
        return {**self.measured[0].figures, **self.best.figures}

    @property
    def calls(self) -> int:
        return sum(figures.calls for figures in self.figures.values())


def find_stage(kind: str) -> str:
    """Return the stage whose settings apply to a kind of call."""
    return next(call.stage for call in CALL_KINDS if call.name == kind)


GOOD_FORMAT = 0.95  # below it another format is worth trying
POOR_FORMAT = 0.9  # below it the prompts may ask for too much at once
CLEAR_MARGIN = 0.05  # the least difference of two shares that matters, with some 150 cases
CUT_SHARE = 0.02
_BY_SCHEMA = {"claims", "verdicts"}
"""Kinds that `wikichat-fast` streams as text, and `wikichat` requests by a schema, in other calls."""
THINKING_SHARE = 0.2
CONTEXT_MARGIN = 1.5  # real calls have longer passages than the longest gold case
_MIN_CONTEXT = 4_096
_CONTEXT_STEP = 1_024


def advise_student(facts: ExamFacts) -> Advice | None:
    """Advise the student's prompts if the model keeps its format clearly better with them.

    If they are already set without such a gain, advise against them.
    """
    student = next((variant for variant in facts.measured if variant.way == STUDENT), None)
    best = facts.best
    if student is None or not student.structured or not best.structured:
        return None
    better = best.readable < POOR_FORMAT and student.readable >= best.readable + CLEAR_MARGIN
    why = (
        f"It keeps the format in {_percent(student)} of cases with the student's prompts, in {_percent(best)} without."
    )
    if better and not facts.student:
        return Advice(why, {"model.student": True, "model.structured": "text"})
    return Advice(why, {"model.student": False}) if facts.student and not better else None


def advise_reply_format(facts: ExamFacts) -> Advice | None:
    """Advise the format that the model keeps best, if formats were compared and another one is set."""
    best, student = facts.best, advise_student(facts)
    offered = [variant for variant in facts.measured if variant.offered]
    if best.way == AS_SET or not best.offered or (student and student.changes["model.student"]):
        return None
    automatic = "schema" if any(variant.way == "schema" for variant in offered) else "text"
    current = automatic if facts.settings.structured == "auto" else facts.settings.structured
    for variant in offered:
        gain = max(best.readable - variant.readable, best.right - variant.right)
        if variant.way == current and gain < CLEAR_MARGIN:
            return None
    shares = ", ".join(f"{variant.way} {_percent(variant)}" for variant in offered)
    return Advice(
        f"Replies are best when requested as {best.way}. Readable replies: {shares}.", {"model.structured": best.way}
    )


def advise_comparison(facts: ExamFacts) -> Advice | None:
    """Advise to compare the formats if the model does not keep the configured one."""
    variant = facts.measured[0]
    examined = any(figures.cases for figures in variant.structured)
    if variant.way != AS_SET or not examined or variant.readable >= GOOD_FORMAT:
        return None
    command = "`footnote doctor --model --compare` finds the format that this model keeps best."
    return Advice(f"Only {_percent(variant)} of the replies with a format could be read. {command}")


def advise_streamed_text(facts: ExamFacts) -> Advice | None:
    """Point out that too many streamed replies, which are always text, cannot be parsed."""
    free = {kind.name for kind in CALL_KINDS if not kind.structured}
    streamed = ((name, figures) for name, figures in facts.figures.items() if name in free)
    poor = {name: figures for name, figures in streamed if figures.readable < POOR_FORMAT * figures.cases}
    if not poor:
        return None
    counts = ", ".join(f"{figures.readable} of {figures.cases} of {name}" for name, figures in poor.items())
    why = f"Streamed replies are always requested as text, whatever `structured` is; too few are readable: {counts}."
    schema = " The system `wikichat` requests claims and verdicts by a schema, if the server supports one."
    return Advice(f"{why} A stronger model would do better.{schema if poor.keys() & _BY_SCHEMA else ''}")


def advise_context(facts: ExamFacts) -> Advice | None:
    """Advise a context window that holds the longest prompt and its reply."""
    measured = facts.figures.values()
    trimmed = sum(figures.trimmed for figures in measured)
    shortened = sum(figures.shortened for figures in measured)
    if not trimmed and not shortened:
        return None
    sent, reply = (max(getattr(figures, name) for figures in measured) for name in ("longest_sent", "longest_reply"))
    longest = sent + reply
    context = max(_MIN_CONTEXT, _CONTEXT_STEP * math.ceil(CONTEXT_MARGIN * longest / _CONTEXT_STEP))
    lost = f"The server seems to have read only a part of {shortened} prompts."
    cut = f"{trimmed} times a prompt did not fit the model's context window, and lost turns, passages or examples."
    remedy = "Give the server a larger window (Ollama: OLLAMA_CONTEXT_LENGTH; llama.cpp: -c; vLLM: --max-model-len)"
    return Advice(f"{lost if shortened else cut} {remedy}, and set its size here.", {"model.context_tokens": context})


def advise_thinking(facts: ExamFacts) -> Advice | None:
    """Advise to declare that a model thinks, so that no extra call is needed to find that out."""
    thought = sum(figures.thought for figures in facts.figures.values())
    if facts.settings.thinks is not None or thought <= THINKING_SHARE * facts.calls:
        return None
    why = "The model thinks before it replies; with this setting, no call is repeated to find that out."
    faster = 'If the server supports it, reasoning_effort = "low" makes it faster.'
    return Advice(f"{why} {faster}", {"model.thinks": True})


def advise_cut_replies(facts: ExamFacts) -> Advice | None:
    """Advise a higher token limit, for replies or for thoughts, if replies were cut off or contained only thoughts."""
    figures, settings = facts.figures, facts.settings
    if any("thinking_tokens" in fault.hint for kind in figures.values() for fault in kind.faults):
        why = "The model thought for so long that no tokens were left for a reply."
        return Advice(why, {"model.thinking_tokens": 2 * settings.thinking_tokens})
    cut = {name: kind for name, kind in figures.items() if kind.cut > CUT_SHARE * kind.calls}
    if not cut:
        return None
    counts = ", ".join(f"{kind.cut} of {name}" for name, kind in cut.items())
    why = f"Replies were cut off at their token limit: {counts}."
    if any(kind.thought for kind in cut.values()):
        return Advice(why, {"model.thinking_tokens": 2 * settings.thinking_tokens})
    limits = {find_stage(name): 200 * math.ceil(kind.longest_reply / 100) for name, kind in cut.items()}
    return Advice(why, {f"model.stages.{stage}.max_tokens": limit for stage, limit in limits.items()})


def advise_loops(facts: ExamFacts) -> Advice | None:
    """Advise a stronger model if replies repeated themselves without end, which longer limits would not help."""
    looped = {name: kind for name, kind in facts.figures.items() if kind.looped > CUT_SHARE * kind.calls}
    if not looped:
        return None
    counts = ", ".join(f"{kind.looped} of {name}" for name, kind in looped.items())
    why = f"Replies repeated themselves without end, and were stopped: {counts}. More tokens would not help"
    return Advice(f"{why}; a stronger model, or a less compressed one, would.")


def _percent(variant: VariantFigures) -> str:
    return f"{variant.readable:.0%}"


ACCURATE_SHARE = 0.8
MISLED_SHARE = 0.1  # share of unsupported claims that are called supported: the bot would state them
WEAK_SHARE = 0.5
MANY_STAGES = 3  # if so many stages go wrong, it is the model
_OTHER_ADVICE = ("timeout_seconds", "thinking_tokens")  # failures whose hints name these have their own advice


def advise_failures(facts: ExamFacts) -> Advice | None:
    """Explain why cases got no reply, if no other advice does."""
    every = (fault for kind in facts.figures.values() for fault in kind.faults)
    faults = [fault for fault in every if not any(name in fault.hint for name in _OTHER_ADVICE)]
    if not faults:
        return None
    (message, hint), often = Counter((str(fault), fault.hint) for fault in faults).most_common(1)[0]
    who = f", {often} of them because" if often < len(faults) else ":"
    advice = f" {hint[:1].upper()}{hint[1:].rstrip('.')}." if hint else ""
    return Advice(f"{format_count(len(faults), 'case')} got no reply{who} {message.rstrip('.')}.{advice}")


def advise_verdicts(facts: ExamFacts) -> Advice | None:
    """Advise a better judge if verdicts are wrong too often, or unsupported claims pass."""
    counts = count_verdicts(facts.figures)
    if not counts:
        return None
    total = sum(counts.values())
    right = sum(count for (expected, verdict), count in counts.items() if expected is verdict)
    others = {pair: count for pair, count in counts.items() if pair[0] is not Verdict.SUPPORTS}
    unsupported = sum(others.values())
    misled = sum(count for (_, verdict), count in others.items() if verdict is Verdict.SUPPORTS)
    if right >= ACCURATE_SHARE * total and misled <= MISLED_SHARE * unsupported:
        return None
    why = f"{right} of {total} verdicts are right; of {unsupported} claims without support it accepts {misled}"
    return Advice(f"{why}: let a stronger model verify.", {"model.stages.verify.name": STRONGER_MODEL})


def advise_weak_stages(facts: ExamFacts) -> Advice | None:
    """Advise a better model for stages that are wrong more often than right."""
    others = ((name, kind) for name, kind in facts.figures.items() if find_stage(name) != "verify")
    wrong = {name: kind for name, kind in others if kind.right < WEAK_SHARE * kind.cases}
    if not wrong:
        return None
    counts = ", ".join(f"{kind.right} of {kind.cases} of {name}" for name, kind in wrong.items())
    stages = dict.fromkeys(find_stage(name) for name in wrong)
    changes = {f"model.stages.{stage}.name": STRONGER_MODEL for stage in stages}
    why = f"Few replies are right: {counts}. A stronger model would do better."
    return Advice(why, changes if len(stages) < MANY_STAGES else {"model.name": STRONGER_MODEL})


BUSY_SHARE = 0.05  # a server that rejects a larger share of calls gets too many at once
SLOW_SHARE = 0.5  # calls and turns that take a larger share of their time are close to being cut off
MOST_PATIENCE = 120  # seconds of a turn from which one call must do for an answer


def advise_silence(facts: ExamFacts) -> Advice | None:
    """Advise longer timeouts if the server stopped replying."""
    silent = sum("timeout_seconds" in fault.hint for kind in facts.figures.values() for fault in kind.faults)
    if not silent:
        return None
    names = ("timeout_seconds", "first_token_seconds", "idle_seconds")
    longer = {f"model.{name}": 2 * getattr(facts.settings, name) for name in names}
    return Advice(f"{silent} cases got no reply because the server was silent for too long: wait longer.", longer)


def advise_concurrency(facts: ExamFacts) -> Advice | None:
    """Advise fewer calls at once if the server rejected calls."""
    retried = sum(kind.retried for kind in facts.figures.values())
    if facts.at_once == 1 or retried <= BUSY_SHARE * facts.calls or advise_silence(facts):
        return None
    why = f"{retried} of {facts.calls} calls had to be retried, because the server was busy: make fewer at once."
    return Advice(why, {"model.max_concurrency": facts.at_once // 2})


def advise_slow_calls(facts: ExamFacts) -> Advice | None:
    """Advise a longer time limit if calls nearly used it up."""
    settings = facts.settings
    slowest = max((kind.slow_seconds for kind in facts.figures.values()), default=0.0)
    if slowest <= SLOW_SHARE * settings.timeout_seconds or advise_silence(facts):
        return None
    timeout = _triple(slowest)
    longer: dict[str, Any] = {"model.timeout_seconds": timeout}
    if timeout > settings.first_token_seconds:
        longer["model.first_token_seconds"] = timeout
    return Advice(f"Slow calls take {slowest:.0f} s of the allowed {settings.timeout_seconds:g} s.", longer)


def advise_slow_turns(facts: ExamFacts) -> Advice | None:
    """Advise a longer time limit for a turn if turns nearly used it up."""
    seconds = estimate_turn_seconds(facts.figures)
    if seconds is None or seconds <= SLOW_SHARE * facts.turn_limit:
        return None
    if seconds > MOST_PATIENCE:
        single = sum(facts.figures[name].seconds for name in ("answer", "verdicts") if name in facts.figures)
        why = f"An answer takes about {seconds:.0f} s. These settings answer by one call."
        fewer: dict[str, Any] = {"system": "retrieve-then-generate", "effort": "quick"}
        return Advice(why, fewer | {"limits.seconds": max(math.ceil(facts.turn_limit), _triple(single))})
    refining = sum(facts.figures[name].seconds for name in ("feedback", "refine") if name in facts.figures)
    saving = f" Or save {refining:.0f} s of it with refine = false." if refining else ""
    why = f"An answer takes about {seconds:.0f} s of the allowed {facts.turn_limit:g} s.{saving}"
    return Advice(why, {"limits.seconds": _triple(seconds)})


def _triple(seconds: float) -> int:
    """Return three times the seconds, rounded up to tens."""
    return 10 * math.ceil(3 * seconds / 10)


RULES: tuple[Callable[[ExamFacts], Advice | None], ...] = (
    advise_failures,
    advise_silence,
    advise_student,
    advise_reply_format,
    advise_comparison,
    advise_streamed_text,
    advise_context,
    advise_thinking,
    advise_cut_replies,
    advise_loops,
    advise_verdicts,
    advise_weak_stages,
    advise_concurrency,
    advise_slow_calls,
    advise_slow_turns,
)
"""The most serious first."""


def collect_advice(facts: ExamFacts) -> tuple[Advice, ...]:
    return tuple(advice for rule in RULES for advice in [rule(facts)] if advice)
