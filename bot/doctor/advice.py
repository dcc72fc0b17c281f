"""Advise on settings, by what was measured. Pure: each rule is a function of the figures and the settings.

Thresholds are ours: below them a person would notice.
"""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bot.doctor.call_kinds import CALL_KINDS
from bot.doctor.prompt_variants import AS_SET, STUDENT, Figures, VariantFigures, estimate_turn_seconds
from bot.doctor.prompt_variants import count_verdicts as given_verdicts
from bot.views.text_formats import format_count
from pipeline.llm.model_settings import ModelSettings
from storage.types import Verdict

STRONGER_MODEL = "NAME OF A STRONGER MODEL"  # only the operator knows which one that is


@dataclass(frozen=True, slots=True)
class Advice:
    """What to change, and why."""

    why: str
    changes: Mapping[str, Any] = field(default_factory=dict)
    """Settings by their dotted names; none where the change is not one of settings."""


@dataclass(frozen=True, slots=True)
class ExamFacts:
    """What advice follows from. Advice is for the variant that did best."""

    measured: Sequence[VariantFigures]  # at least one; the first was asked all kinds
    settings: ModelSettings
    student: bool  # whether the model is set to be asked as a student
    turn_limit: float  # seconds
    at_once: int  # how many calls ran at once

    @property
    def best(self) -> VariantFigures:
        """The best variant: readable replies count most, then right ones, then the stricter variant."""
        offered = [one for one in self.measured if one.way != STUDENT and one.offered] or self.measured[:1]
        strictness = (AS_SET, "text", "json", "schema")
        return max(offered, key=lambda one: (round(one.readable, 2), round(one.right, 2), strictness.index(one.way)))

    @property
    def figures(self) -> Mapping[str, Figures]:
        """The figures of the best variant, and of what is the same in all."""
        return {**self.measured[0].figures, **self.best.figures}

    @property
    def calls(self) -> int:
        return sum(one.calls for one in self.figures.values())


def find_stage(kind: str) -> str:
    """Return the stage whose settings apply to a kind of call."""
    return next(one.stage for one in CALL_KINDS if one.name == kind)


GOOD_FORMAT = 0.95  # below it another format is worth trying
POOR_FORMAT = 0.9  # below it the model may be asked for too much at once
CLEAR_MARGIN = 0.05  # the least difference of two shares that matters, with some 150 cases
CUT_SHARE = 0.02
_BY_SCHEMA = {"claims", "verdicts"}
"""What `wikichat-fast` streams, and `wikichat` asks for in other calls that can have a schema."""
THINKING_SHARE = 0.2
CONTEXT_MARGIN = 1.5  # how much longer than the longest gold case a real call may be: passages there are longer
_MIN_CONTEXT = 4_096
_CONTEXT_STEP = 1_024


def advise_student(facts: ExamFacts) -> Advice | None:
    """Advise the student's prompts for a model that keeps the format only then, and against them otherwise."""
    student, best = next((one for one in facts.measured if one.way == STUDENT), None), facts.best
    if student is None or not student.structured or not best.structured:
        return None
    better = best.readable < POOR_FORMAT and student.readable >= best.readable + CLEAR_MARGIN
    why = f"Asked as a student it keeps the format in {_percent(student)} of the cases, otherwise in {_percent(best)}."
    if better and not facts.student:
        return Advice(why, {"model.student": True, "model.structured": "text"})
    return Advice(why, {"model.student": False}) if facts.student and not better else None


def advise_reply_format(facts: ExamFacts) -> Advice | None:
    """Advise the format that is kept best, if formats were compared and another one is set."""
    best, offered, student = facts.best, [one for one in facts.measured if one.offered], advise_student(facts)
    if best.way == AS_SET or not best.offered or (student and student.changes["model.student"]):
        return None
    by_itself = "schema" if any(one.way == "schema" for one in offered) else "text"
    now = by_itself if facts.settings.structured == "auto" else facts.settings.structured
    for one in offered:
        if one.way == now and max(best.readable - one.readable, best.right - one.right) < CLEAR_MARGIN:
            return None
    shares = ", ".join(f"{one.way} {_percent(one)}" for one in offered)
    return Advice(
        f"Replies are best when asked for as {best.way}. Readable are: {shares}.", {"model.structured": best.way}
    )


def advise_comparison(facts: ExamFacts) -> Advice | None:
    """Advise a comparison where the model does not keep its format."""
    found = facts.measured[0]
    if found.way != AS_SET or not any(one.cases for one in found.structured) or found.readable >= GOOD_FORMAT:
        return None
    how = "`footnote doctor --model --compare` finds the way of asking that this model keeps best."
    return Advice(f"Only {_percent(found)} of the replies with a format could be read. {how}")


def advise_streamed_text(facts: ExamFacts) -> Advice | None:
    """Point out streamed replies, which are text whatever is set, that cannot be parsed often enough."""
    free = {kind.name for kind in CALL_KINDS if not kind.structured}
    poor = {name: one for name, one in facts.figures.items() if name in free and one.readable < POOR_FORMAT * one.cases}
    if not poor:
        return None
    told = ", ".join(f"{one.readable} of {one.cases} of {name}" for name, one in poor.items())
    why = f"What is streamed is asked for as text whatever `structured` says, and too little of it can be read: {told}."
    schema = " The system `wikichat` asks for claims and verdicts by a schema, where the server keeps one."
    return Advice(f"{why} A stronger model would do better.{schema if poor.keys() & _BY_SCHEMA else ''}")


def advise_context(facts: ExamFacts) -> Advice | None:
    """Advise a context window that holds a whole call."""
    found = facts.figures.values()
    trimmed, shortened = sum(one.trimmed for one in found), sum(one.shortened for one in found)
    if not trimmed and not shortened:
        return None
    longest = max(one.longest_sent for one in found) + max(one.longest_reply for one in found)
    wanted = max(_MIN_CONTEXT, _CONTEXT_STEP * math.ceil(CONTEXT_MARGIN * longest / _CONTEXT_STEP))
    lost = f"The server seems to have read only a part of {shortened} prompts."
    cut = f"{trimmed} times a prompt did not fit the model's context window, and lost turns, passages or examples."
    how = "Give the server a larger window (Ollama: OLLAMA_CONTEXT_LENGTH; llama.cpp: -c; vLLM: --max-model-len)"
    return Advice(f"{lost if shortened else cut} {how}, and say so here.", {"model.context_tokens": wanted})


def advise_thinking(facts: ExamFacts) -> Advice | None:
    """Advise to declare that a model thinks, so that no first call has to detect it."""
    thought = sum(one.thought for one in facts.figures.values())
    if facts.settings.thinks is not None or thought <= THINKING_SHARE * facts.calls:
        return None
    why = "It thinks before it replies; said beforehand, no call has to be made twice to find that out."
    faster = 'Where the server knows it, reasoning_effort = "low" makes it faster.'
    return Advice(f"{why} {faster}", {"model.thinks": True})


def advise_cut_replies(facts: ExamFacts) -> Advice | None:
    """Advise longer replies where they were cut off, or were nothing but thoughts."""
    figures, settings = facts.figures, facts.settings
    if any("thinking_tokens" in fault.hint for one in figures.values() for fault in one.faults):
        why = "It thought for so long that no room was left for a reply."
        return Advice(why, {"model.thinking_tokens": 2 * settings.thinking_tokens})
    cut = {name: one for name, one in figures.items() if one.cut > CUT_SHARE * one.calls}
    if not cut:
        return None
    told = ", ".join(f"{one.cut} of {name}" for name, one in cut.items())
    why = f"Replies were cut off at their limit of tokens: {told}."
    if any(one.thought for one in cut.values()):
        return Advice(why, {"model.thinking_tokens": 2 * settings.thinking_tokens})
    limits = {find_stage(name): 200 * math.ceil(one.longest_reply / 100) for name, one in cut.items()}
    return Advice(why, {f"model.stages.{stage}.max_tokens": limit for stage, limit in limits.items()})


def _percent(found: VariantFigures) -> str:
    return f"{found.readable:.0%}"


ACCURATE_SHARE = 0.8
MISLED_SHARE = 0.1  # share of claims that are called supported though they are not: the bot would say such claims
WEAK_SHARE = 0.5
MANY_STAGES = 3  # where so many stages go wrong it is the model
_OTHER_ADVICE = ("timeout_seconds", "thinking_tokens")  # hints that name these are advice of their own


def advise_failures(facts: ExamFacts) -> Advice | None:
    """Explain why cases got no reply, where no other advice does."""
    every = (fault for one in facts.figures.values() for fault in one.faults)
    faults = [fault for fault in every if not any(name in fault.hint for name in _OTHER_ADVICE)]
    if not faults:
        return None
    (message, hint), often = Counter((str(fault), fault.hint) for fault in faults).most_common(1)[0]
    who = f", {often} of them because" if often < len(faults) else ":"
    do = f" {hint[:1].upper()}{hint[1:].rstrip('.')}." if hint else ""
    return Advice(f"{format_count(len(faults), 'case')} got no reply{who} {message.rstrip('.')}.{do}")


def advise_verdicts(facts: ExamFacts) -> Advice | None:
    """Advise a better judge where verdicts are wrong too often, or unsupported claims pass."""
    found = given_verdicts(facts.figures)
    if not found:
        return None
    given = sum(found.values())
    right = sum(often for (expected, said), often in found.items() if expected is said)
    others = {pair: often for pair, often in found.items() if pair[0] is not Verdict.SUPPORTS}
    unsupported, misled = sum(others.values()), sum(n for (_, said), n in others.items() if said is Verdict.SUPPORTS)
    if right >= ACCURATE_SHARE * given and misled <= MISLED_SHARE * unsupported:
        return None
    why = f"{right} of {given} verdicts are right; of {unsupported} claims without support it lets {misled} through"
    return Advice(f"{why}: let a stronger model verify.", {"model.stages.verify.name": STRONGER_MODEL})


def advise_weak_stages(facts: ExamFacts) -> Advice | None:
    """Advise a better model for stages that are wrong more often than right."""
    others = ((name, one) for name, one in facts.figures.items() if find_stage(name) != "verify")
    wrong = {name: one for name, one in others if one.right < WEAK_SHARE * one.cases}
    if not wrong:
        return None
    told = ", ".join(f"{one.right} of {one.cases} of {name}" for name, one in wrong.items())
    stages = dict.fromkeys(find_stage(name) for name in wrong)
    changes = {f"model.stages.{stage}.name": STRONGER_MODEL for stage in stages}
    why = f"Few replies are right: {told}. A stronger model would do better."
    return Advice(why, changes if len(stages) < MANY_STAGES else {"model.name": STRONGER_MODEL})


BUSY_SHARE = 0.05  # a server that rejects a larger share of the calls is asked too many at once
SLOW_SHARE = 0.5  # calls and turns that take a larger share of their time are close to being cut off


def advise_silence(facts: ExamFacts) -> Advice | None:
    """Advise longer timeouts where the server fell silent."""
    silent = sum("timeout_seconds" in fault.hint for one in facts.figures.values() for fault in one.faults)
    if not silent:
        return None
    names = ("timeout_seconds", "first_token_seconds", "idle_seconds")
    longer = {f"model.{name}": 2 * getattr(facts.settings, name) for name in names}
    return Advice(f"{silent} cases got no reply because the server was silent for too long: wait longer.", longer)


def advise_concurrency(facts: ExamFacts) -> Advice | None:
    """Advise fewer calls at once where the server rejected calls."""
    retried = sum(one.retried for one in facts.figures.values())
    if facts.at_once == 1 or retried <= BUSY_SHARE * facts.calls or advise_silence(facts):
        return None
    why = f"{retried} of {facts.calls} calls had to be tried again, as the server was busy: ask fewer at once."
    return Advice(why, {"model.max_concurrency": facts.at_once // 2})


def advise_slow_calls(facts: ExamFacts) -> Advice | None:
    """Advise more time for calls that nearly used it up."""
    slowest, settings = max((one.slow_seconds for one in facts.figures.values()), default=0.0), facts.settings
    if slowest <= SLOW_SHARE * settings.timeout_seconds or advise_silence(facts):
        return None
    wanted = _triple(slowest)
    longer: dict[str, Any] = {"model.timeout_seconds": wanted}
    if wanted > settings.first_token_seconds:
        longer["model.first_token_seconds"] = wanted
    return Advice(f"Slow calls take {slowest:.0f} s of the {settings.timeout_seconds:g} s that they may.", longer)


def advise_slow_turns(facts: ExamFacts) -> Advice | None:
    """Advise more time for turns that nearly used it up."""
    seconds = estimate_turn_seconds(facts.figures)
    if seconds is None or seconds <= SLOW_SHARE * facts.turn_limit:
        return None
    refining = sum(facts.figures[name].seconds for name in ("feedback", "refine") if name in facts.figures)
    spared = f" Or spare {refining:.0f} s of it by refine = false." if refining else ""
    why = f"An answer takes about {seconds:.0f} s of the {facts.turn_limit:g} s that it may.{spared}"
    return Advice(why, {"limits.seconds": _triple(seconds)})


def _triple(seconds: float) -> int:
    """Return three times so many seconds, rounded up to tens."""
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
    advise_verdicts,
    advise_weak_stages,
    advise_concurrency,
    advise_slow_calls,
    advise_slow_turns,
)
"""The gravest first."""


def collect_advice(facts: ExamFacts) -> tuple[Advice, ...]:
    return tuple(advice for rule in RULES for advice in [rule(facts)] if advice)
