"""Advice on what the model cannot do: no reply at all, wrong verdicts, replies that are seldom right. Pure."""

from collections import Counter

from bot.doctoring.advice.facts import STRONGER, Advice, Facts, stage_of
from bot.doctoring.figures import verdicts as given_verdicts
from bot.printing.tables import counted
from storage.types import Verdict

ACCURATE = 0.8
MISLED = 0.1
"""Share of claims that are called supported though they are not: such claims are what the bot would say."""
HALF = 0.5
MANY_STAGES = 3
"""Where so many stages go wrong it is not the stage."""
_TOLD_ELSEWHERE = ("timeout_seconds", "thinking_tokens")
"""Hints that name these are advice of their own."""


def failures(facts: Facts) -> Advice | None:
    """Say why cases got no reply, where no other advice does."""
    every = (fault for one in facts.figures.values() for fault in one.faults)
    faults = [fault for fault in every if not any(name in fault.hint for name in _TOLD_ELSEWHERE)]
    if not faults:
        return None
    (message, hint), often = Counter((str(fault), fault.hint) for fault in faults).most_common(1)[0]
    who = f", {often} of them because" if often < len(faults) else ":"
    do = f" {hint[:1].upper()}{hint[1:].rstrip('.')}." if hint else ""
    return Advice(f"{counted(len(faults), 'case')} got no reply{who} {message.rstrip('.')}.{do}")


def verdicts(facts: Facts) -> Advice | None:
    """Want a better judge where verdicts are wrong too often, or claims are let through that nothing supports."""
    found = given_verdicts(facts.figures)
    if not found:
        return None
    given = sum(found.values())
    right = sum(often for (expected, said), often in found.items() if expected is said)
    others = {pair: often for pair, often in found.items() if pair[0] is not Verdict.SUPPORTS}
    unsupported, misled = sum(others.values()), sum(n for (_, said), n in others.items() if said is Verdict.SUPPORTS)
    if right >= ACCURATE * given and misled <= MISLED * unsupported:
        return None
    why = f"{right} of {given} verdicts are right; of {unsupported} claims without support it lets {misled} through"
    return Advice(f"{why}: let a stronger model verify.", {"model.stages.verify.name": STRONGER})


def weak(facts: Facts) -> Advice | None:
    """Want a better model for what goes wrong more often than right."""
    others = ((name, one) for name, one in facts.figures.items() if stage_of(name) != "verify")
    wrong = {name: one for name, one in others if one.right < HALF * one.cases}
    if not wrong:
        return None
    told = ", ".join(f"{one.right} of {one.cases} of {name}" for name, one in wrong.items())
    stages = dict.fromkeys(stage_of(name) for name in wrong)
    changes = {f"model.stages.{stage}.name": STRONGER for stage in stages}
    why = f"Few replies are right: {told}. A stronger model would do better."
    return Advice(why, changes if len(stages) < MANY_STAGES else {"model.name": STRONGER})
