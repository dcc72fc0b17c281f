"""Advice on how to ask: which format, as a student or not, how long prompts, thoughts and replies may be. Pure."""

import math

from bot.doctoring.advice.facts import Advice, Facts, stage_of
from bot.doctoring.kinds import KINDS
from bot.doctoring.ways import AS_SET, STUDENT, Measured

IN_FORMAT = 0.95
"""A model whose replies can be read less often is worth asking another way."""
POOR_FORMAT = 0.9
"""One that can be read less often than this is perhaps asked too much: a student is asked less."""
CLEARLY = 0.05
"""By how much one share must be above another to matter, with some 150 cases."""
CUT_OFTEN = 0.02
_BY_SCHEMA = {"claims", "verdicts"}
"""What `wikichat-fast` streams, and `wikichat` asks for in other calls that can have a schema."""
THINKING = 0.2
ROOM = 1.5
"""How much longer than the longest gold case a call in earnest may be: passages there are longer."""
_LEAST_CONTEXT = 4_096
_STEP = 1_024


def as_student(facts: Facts) -> Advice | None:
    """Ask less at once of a model that keeps the format only then, and more of one that keeps it anyway."""
    student, best = next((one for one in facts.measured if one.way == STUDENT), None), facts.best
    if student is None or not student.structured or not best.structured:
        return None
    better = best.readable < POOR_FORMAT and student.readable >= best.readable + CLEARLY
    why = f"Asked as a student it keeps the format in {_percent(student)} of the cases, otherwise in {_percent(best)}."
    if better and not facts.student:
        return Advice(why, {"model.student": True, "model.structured": "text"})
    return Advice(why, {"model.student": False}) if facts.student and not better else None


def reply_format(facts: Facts) -> Advice | None:
    """Ask for replies in the format that is kept best, if formats were compared and another one is set."""
    best, offered = facts.best, [one for one in facts.measured if one.offered]
    if best.way == AS_SET or not best.offered or _wanted_as_student(facts):
        return None
    by_itself = "schema" if any(one.way == "schema" for one in offered) else "text"
    now = by_itself if facts.settings.structured == "auto" else facts.settings.structured
    if any(one.way == now and not _clearly_better(best, one) for one in offered):
        return None
    shares = ", ".join(f"{one.way} {_percent(one)}" for one in offered)
    return Advice(
        f"Replies are best when asked for as {best.way}. Readable are: {shares}.", {"model.structured": best.way}
    )


def format_kept(facts: Facts) -> Advice | None:
    """Send those to the comparison whose model does not keep the format as it is asked."""
    found = facts.measured[0]
    if found.way != AS_SET or not any(one.cases for one in found.structured) or found.readable >= IN_FORMAT:
        return None
    how = "`footnote doctor --model --compare` finds the way of asking that this model keeps best."
    return Advice(f"Only {_percent(found)} of the replies with a format could be read. {how}")


def text_kept(facts: Facts) -> Advice | None:
    """Say what is streamed, and so asked for as text whatever is set, that cannot be read often enough."""
    free = {kind.name for kind in KINDS if not kind.structured}
    poor = {name: one for name, one in facts.figures.items() if name in free and one.readable < POOR_FORMAT * one.cases}
    if not poor:
        return None
    told = ", ".join(f"{one.readable} of {one.cases} of {name}" for name, one in poor.items())
    why = f"What is streamed is asked for as text whatever `structured` says, and too little of it can be read: {told}."
    schema = " The system `wikichat` asks for claims and verdicts by a schema, where the server keeps one."
    return Advice(f"{why} A stronger model would do better.{schema if poor.keys() & _BY_SCHEMA else ''}")


def context(facts: Facts) -> Advice | None:
    """Ask for a context window that holds a whole call."""
    found = facts.figures.values()
    trimmed, shortened = sum(one.trimmed for one in found), sum(one.shortened for one in found)
    if not trimmed and not shortened:
        return None
    longest = max(one.longest_sent for one in found) + max(one.longest_reply for one in found)
    wanted = max(_LEAST_CONTEXT, _STEP * math.ceil(ROOM * longest / _STEP))
    lost = f"The server seems to have read only a part of {shortened} prompts."
    cut = f"{trimmed} times a prompt did not fit the model's context window, and lost turns, passages or examples."
    how = "Give the server a larger window (Ollama: OLLAMA_CONTEXT_LENGTH; llama.cpp: -c; vLLM: --max-model-len)"
    return Advice(f"{lost if shortened else cut} {how}, and say so here.", {"model.context_tokens": wanted})


def thoughts(facts: Facts) -> Advice | None:
    """Say that a model thinks, so that no first call has to find it out."""
    thought = sum(one.thought for one in facts.figures.values())
    if facts.settings.thinks is not None or thought <= THINKING * facts.calls:
        return None
    why = "It thinks before it replies; said beforehand, no call has to be made twice to find that out."
    faster = 'Where the server knows it, reasoning_effort = "low" makes it faster.'
    return Advice(f"{why} {faster}", {"model.thinks": True})


def cut_replies(facts: Facts) -> Advice | None:
    """Let replies be longer that were cut off, or were nothing but thoughts."""
    figures, settings = facts.figures, facts.settings
    if any("thinking_tokens" in fault.hint for one in figures.values() for fault in one.faults):
        why = "It thought for so long that no room was left for a reply."
        return Advice(why, {"model.thinking_tokens": 2 * settings.thinking_tokens})
    cut = {name: one for name, one in figures.items() if one.cut > CUT_OFTEN * one.calls}
    if not cut:
        return None
    told = ", ".join(f"{one.cut} of {name}" for name, one in cut.items())
    why = f"Replies were cut off at their limit of tokens: {told}."
    if any(one.thought for one in cut.values()):
        return Advice(why, {"model.thinking_tokens": 2 * settings.thinking_tokens})
    limits = {stage_of(name): 200 * math.ceil(one.longest_reply / 100) for name, one in cut.items()}
    return Advice(why, {f"model.stages.{stage}.max_tokens": limit for stage, limit in limits.items()})


def _wanted_as_student(facts: Facts) -> bool:
    advice = as_student(facts)
    return bool(advice and advice.changes["model.student"])


def _clearly_better(one: Measured, other: Measured) -> bool:
    return max(one.readable - other.readable, one.right - other.right) >= CLEARLY


def _percent(found: Measured) -> str:
    return f"{found.readable:.0%}"
