"""All advice, in the order in which to follow it."""

from collections.abc import Callable

from bot.doctoring.advice import formats, judgements, times
from bot.doctoring.advice.facts import Advice, Facts

RULES: tuple[Callable[[Facts], Advice | None], ...] = (
    judgements.failures,
    times.silence,
    formats.as_student,
    formats.reply_format,
    formats.format_kept,
    formats.text_kept,
    formats.context,
    formats.thoughts,
    formats.cut_replies,
    judgements.verdicts,
    judgements.weak,
    times.busy,
    times.slow_calls,
    times.turns,
)
"""The gravest first."""


def advise(facts: Facts) -> tuple[Advice, ...]:
    """Return what follows; nothing where all is well."""
    return tuple(advice for rule in RULES for advice in [rule(facts)] if advice)
