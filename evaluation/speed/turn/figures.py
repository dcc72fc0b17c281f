"""The figures of many turns: medians, and whether they keep their marks. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from evaluation.speed.model.settings import Pace
from evaluation.speed.turn.measuring import PLAIN_PROMPT, PLAIN_REPLY, Turned
from evaluation.speed.turn.path import Leg, critical_path, shares
from evaluation.speed.turn.prompts import Sent, prompt_of, sent_again, stable_prefixes

IN_ROUNDS = Pace(first_token=1.0, out=math.inf, prompt=math.inf)
"""Of a server on which each round takes a second, and nothing else does."""
MARKS: Mapping[str, Mapping[str, tuple[str, float]]] = {
    "wikichat-fast": {
        "first_ratio": ("at most", 2.1),
        "end_ratio": ("at most", 2.7),
        "rounds": ("at most", 3),
        "prompt_tokens": ("at most", 12_000),
        "stable_share": ("at least", 0.6),
        "late_verdicts": ("at most", 0),
    }
}
"""What a system is to keep to, by the names of its figures."""
WIKICHAT_2_1: Mapping[str, float] = {
    "first_ratio": 3.17,
    "end_ratio": 3.17,
    "end_ratio_refined": 4.25,
    "rounds": 3,
    "calls": 16,
    "prompt_tokens": 33_567,
}
"""WikiChat 2.1 itself on a server of the same pace, its refinement and re-ranking off; it verifies no claim."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The turns of one system: on the server of the table, and on one that takes a second for whatever it is asked."""

    system: str
    turns: Sequence[Turned]
    in_rounds: Sequence[Turned]
    pace: Pace
    search: float
    plain: float
    """Seconds that one plain call took."""


def plain_seconds(pace: Pace) -> float:
    """Return how long a plain call takes by the server's pace alone."""
    return pace.first_token + PLAIN_PROMPT / pace.prompt + PLAIN_REPLY / pace.out


def figures(runs: Runs) -> dict[str, Any]:
    """Return what is printed of a system; seconds and ratios are medians over its turns."""
    turns = runs.turns
    sent = _sent(turns)
    whole = [shares(_path(turn, first=False), runs.pace, runs.search) for turn in turns]
    first = [shares(_path(turn, first=True), runs.pace, runs.search) for turn in turns if turn.said]
    found: dict[str, Any] = {
        "system": runs.system,
        "turns": len(turns),
        "ended": _counted(turn.how for turn in turns),
        "first_seconds": middle([turn.first_seconds for turn in turns]),
        "end_seconds": middle([turn.seconds for turn in turns]),
        "first_ratio": middle([turn.first_seconds for turn in turns]) / runs.plain,
        "end_ratio": middle([turn.seconds for turn in turns]) / runs.plain,
        "first_ratio_without_ours": _given(first) / plain_seconds(runs.pace),
        "end_ratio_without_ours": _given(whole) / plain_seconds(runs.pace),
        "seconds_in_rounds": middle([turn.seconds for turn in runs.in_rounds]),
        "rounds": middle([_rounds(_path(turn, first=False)) for turn in runs.in_rounds]),
        "calls": middle([len(turn.calls) for turn in turns]),
        "prompt_tokens": middle([sum(call.prompt_tokens for call in turn.calls) for turn in turns]),
        "reply_tokens": middle([sum(call.tokens for call in turn.calls) for turn in turns]),
        "stable_share": _share(sent),
        "stages": sent,
        "sent_again": middle([_again(turn) for turn in runs.in_rounds]),
        "late_verdicts": sum(sum(at > turn.drafting for at in turn.verdicts) for turn in turns),
        "verdicts": sum(len(turn.verdicts) for turn in turns),
        "to_the_first": _medians(first),
        "to_the_end": _medians(whole),
    }
    return found | {"marks": _marks(found)}


def middle(values: Sequence[float]) -> float:
    """Return the median; not a number where there is none, or where one is none."""
    return median(values) if values and not any(map(math.isnan, values)) else math.nan


def _path(turn: Turned, *, first: bool) -> tuple[Leg, ...]:
    if first:
        return critical_path(turn.steps, turn.first, turn.began, turn.said[0])
    return critical_path(turn.steps, turn.last, turn.began, turn.ended)


def _sent(turns: Sequence[Turned]) -> dict[str, Sent]:
    """Return what each stage sends in a turn, as medians over all turns but the first, which finds nothing before."""
    earlier = [prompt_of(call) for turn in turns[:1] for call in turn.calls]
    each = []
    for turn in turns[1:]:
        each.append(stable_prefixes(earlier, turn.calls))
        earlier += [prompt_of(call) for call in turn.calls]
    names = dict.fromkeys(name for one in each for name in one)
    return {name: _middle_of([one.get(name, Sent(0, 0, 0)) for one in each]) for name in names}


def _middle_of(sent: Sequence[Sent]) -> Sent:
    calls, size, stable = (int(median(getattr(one, name) for one in sent)) for name in ("calls", "tokens", "stable"))
    return Sent(calls, size, stable)


def _share(sent: Mapping[str, Sent]) -> float:
    all_of = sum(one.tokens for one in sent.values())
    return sum(one.stable for one in sent.values()) / all_of if all_of else math.nan


def _again(turn: Turned) -> int:
    passages = [hit.passage for step in turn.steps for hit in step.found]
    ways = [critical_path(turn.steps, call.cause, turn.began, call.began) for call in turn.calls]
    return sent_again(turn.calls, passages, [_rounds(way) for way in ways])


def _rounds(way: Sequence[Leg]) -> int:
    """Return how many rounds lie on a way: seconds of a server that takes one for each reply."""
    return round(shares(way, IN_ROUNDS, 0.0)["server"])


def _given(ways: Sequence[Mapping[str, float]]) -> float:
    return middle([way["server"] + way["search"] for way in ways])


def _medians(ways: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for way in ways for name in way)
    return {name: middle([way.get(name, 0.0) for way in ways]) for name in names}


def _counted(names: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        found[name] = found.get(name, 0) + 1
    return found


def _marks(found: Mapping[str, Any]) -> dict[str, bool]:
    """Return which marks a system keeps, by their figures."""
    marks = MARKS.get(found["system"], {})
    return {
        name: found[name] <= mark if way == "at most" else found[name] >= mark for name, (way, mark) in marks.items()
    }
