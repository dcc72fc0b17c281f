"""Outcomes as figures. Pure.

Shares are of cases that a reply came to: what a server refused says nothing of how well its model keeps a format.
Seconds and tokens are of calls, and a case that was asked twice has two.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from bot.doctoring.examining import Call, Outcome
from pipeline.errors import PipelineError
from storage.types import Verdict

UNREADABLE = "UnreadableReply"
HIDDEN = 2
"""A reply that cost this many times the tokens that it shows was thought over, though no thoughts are shown."""
A_FEW = 60
"""Tokens. Our own count of a short reply may be off by as much."""
SHORTENED = 0.55
"""A server that counts less than this share of what was sent has not read all of it; our count is not so far off."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured of one kind of call."""

    cases: int = 0
    """How many a reply came to."""
    first: int = 0
    """How many replies could be read at once."""
    readable: int = 0
    """How many could be read, some of them after asking once more."""
    right: int = 0
    cited: int = 0
    valid: int = 0
    verdicts: Mapping[tuple[Verdict, Verdict], int] = field(default_factory=dict)
    """By the verdict that was expected and the one that was given."""
    wrong: Mapping[str, str] = field(default_factory=dict)
    """By case what is wrong with its reply."""
    faults: tuple[PipelineError, ...] = ()
    """Why no reply came, for each case that none came to."""
    calls: int = 0
    seconds: float = 0.0
    """The median."""
    slow_seconds: float = 0.0
    """What 95 of 100 calls stay within."""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    estimated: bool = False
    cost: float | None = None
    longest_prompt: int = 0
    """Tokens, by the server's count."""
    longest_sent: int = 0
    """Tokens, by our own count."""
    longest_reply: int = 0
    cut: int = 0
    """How many replies ended at their limit of tokens."""
    retried: int = 0
    """How many calls the server took only after more than one try, or not at all."""
    thought: int = 0
    trimmed: int = 0
    """How often a prompt did not fit and was made smaller."""
    shortened: int = 0
    """How many prompts the server seems not to have read to their end."""
    schema: int = 0
    """How many replies were asked for as JSON."""

    def share(self, count: int) -> float:
        """Return what share of the cases a count is, 0 where there are none."""
        return count / self.cases if self.cases else 0.0


def figures(outcomes: Sequence[Outcome]) -> Figures:
    """Return the figures of the outcomes of one kind."""
    replied = [outcome for outcome in outcomes if not outcome.fault]
    judged = [(one.case, one.judgement) for one in replied if one.judgement]
    calls = [call for outcome in outcomes for call in outcome.calls]
    asked = [call for call in calls if call.error not in {"SchemaNotOffered", "PromptTooLong"}]
    seconds = [call.seconds for call in asked]
    costs = [call.cost for call in asked if call.cost is not None]
    return Figures(
        cases=len(replied),
        first=sum(UNREADABLE not in {call.error for call in one.calls} for one in replied),
        readable=len(judged),
        right=sum(not judgement.wrong for _, judgement in judged),
        cited=sum(judgement.cited for _, judgement in judged),
        valid=sum(judgement.valid for _, judgement in judged),
        verdicts=Counter(judgement.verdicts for _, judgement in judged if judgement.verdicts),
        wrong={case: judgement.wrong for case, judgement in judged if judgement.wrong},
        faults=tuple(one.fault for one in outcomes if one.fault),
        calls=len(asked),
        seconds=median(seconds) if seconds else 0.0,
        slow_seconds=within(seconds, 0.95),
        prompt_tokens=sum(call.prompt_tokens for call in asked),
        completion_tokens=sum(call.completion_tokens for call in asked),
        estimated=any(call.estimated for call in asked),
        cost=sum(costs) if costs else None,
        longest_prompt=max((call.prompt_tokens for call in asked), default=0),
        longest_sent=max((call.sent_tokens for call in calls), default=0),
        longest_reply=max((call.completion_tokens for call in asked), default=0),
        cut=sum(call.cut for call in asked),
        retried=sum(call.tries > 1 for call in asked),
        thought=sum(_thought(call) for call in asked),
        trimmed=sum(call.error == "PromptTooLong" for call in calls),
        shortened=sum(_shortened(call) for call in asked),
        schema=sum(call.schema for call in asked),
    )


def within(seconds: Sequence[float], share: float) -> float:
    """Return the least of the values that a share of them do not exceed; 0 where there are none."""
    return sorted(seconds)[math.ceil(share * len(seconds)) - 1] if seconds else 0.0


_TURNS = (
    (("query", "summarise"), ("generate", "split", "verify"), ("draft", "feedback", "refine")),
    (("query", "bullets"), ("claims", "verdicts"), ("answer",)),
)
"""Of each system its calls: those of two ways that run at once, and those after them, of which the first is needed."""


def turn_seconds(found: Mapping[str, Figures]) -> float | None:
    """Return about how long the model takes for a turn, by medians: what runs at once is counted once.

    None unless every kind was examined that a turn needs.
    """
    for looked_up, recalled, written in _TURNS:
        if all(found.get(name, Figures()).calls for name in (*looked_up, *recalled, written[0])):
            abreast = max(sum(found[name].seconds for name in side) for side in (looked_up, recalled))
            return abreast + sum(found[name].seconds for name in written if name in found)
    return None


def verdicts(found: Mapping[str, Figures]) -> Mapping[tuple[Verdict, Verdict], int]:
    """Return how often which verdict was given where which was expected, in all kinds that give any."""
    return sum((Counter(one.verdicts) for one in found.values()), Counter())


def _thought(call: Call) -> bool:
    hidden = not call.estimated and call.completion_tokens > HIDDEN * call.written_tokens + A_FEW
    return call.thought or hidden


def _shortened(call: Call) -> bool:
    return not call.estimated and 0 < call.prompt_tokens < SHORTENED * call.sent_tokens
