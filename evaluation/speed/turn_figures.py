"""Compute a turn's critical path and prompts, the figures of many turns, and whether these keep set limits. Pure.

The path is followed backwards from the end. A step is preceded by the step for which it waited in its own task, or, if
it waited for several tasks, by the step that ended last. Of a streamed step, only the part before the start of the next
step is on the path.
"""

import json
import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass
from statistics import median
from typing import Any

from evaluation.simulated_model.model_pace import CHARACTERS_A_TOKEN, ServerPace, count_tokens
from evaluation.speed.turn_trace import PLAIN_PROMPT, PLAIN_REPLY, Cause, MeasuredTurn, TraceStep, join_prompt
from pipeline.support.support_check import find_quotable_spans
from storage.types import Passage

HANDOVER = 0.01  # seconds within which a waiting task continues


@dataclass(frozen=True, slots=True)
class PathLeg:
    """A part of the critical path: one step, or the time between steps."""

    step: TraceStep | None  # None between traced steps
    began: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.began


def critical_path(steps: Sequence[TraceStep], cause: Cause | None, began: float, ended: float) -> tuple[PathLeg, ...]:
    """Return the critical path from the start of a turn to a moment, without gaps.

    `steps` are all steps of the turn, by their ids. `cause` is the last step before the moment, in the moment's own
    task.
    """
    return tuple(reversed(tuple(_backwards(steps, cause, began, ended))))


def _backwards(steps: Sequence[TraceStep], cause: Cause | None, began: float, ended: float) -> Iterator[PathLeg]:
    passed = set[int]()
    while True:
        cause = _find_joined([step for step in steps if step.id not in passed], steps, cause, ended) or cause
        if ended > (cause.at if cause else began):
            yield PathLeg(None, cause.at if cause else began, ended)
        if not cause:
            return
        step = steps[cause.step]
        passed.add(step.id)  # a step of no duration ended when it started, and must not be visited twice
        yield PathLeg(step, step.began, cause.at)
        cause, ended = step.cause, step.began


def _find_joined(
    candidates: Sequence[TraceStep], steps: Sequence[TraceStep], cause: Cause | None, before: float
) -> Cause | None:
    """Return the last end of a candidate that depends on `cause`, or the last arrival of its pieces; None if none.

    Only moments after `cause` count. Pieces count only if neither `cause` nor an end directly precedes `before`.
    """
    since = cause.at if cause else -math.inf
    others = [step for step in candidates if not cause or cause.step in _ancestors(steps, step)]
    ended = [Cause(step.id, step.ended) for step in others if since < step.ended <= before]
    last = max(ended, key=lambda joined: joined.at, default=None)
    if before - max(since, last.at if last else since) <= HANDOVER:
        return last
    arrived = [Cause(step.id, at) for step in others for at in step.pieces if since < at <= before]
    return max((*ended, *arrived), key=lambda joined: joined.at, default=None)


def _ancestors(steps: Sequence[TraceStep], step: TraceStep) -> Iterator[int]:
    while step.cause:
        step = steps[step.cause.step]
        yield step.id


def server_seconds(leg: PathLeg, pace: ServerPace) -> float:
    """Return how long a server with this pace takes for a part of the path; 0 if that is not a model call.

    If the part ends before the reply does, only the pieces that have arrived count as tokens.
    """
    step = leg.step
    if step is None or step.kind != "model":
        return 0.0
    arrived = sum(at <= leg.ended for at in step.pieces)
    tokens = arrived if step.pieces and arrived < len(step.pieces) else step.tokens
    to_read = step.prompt_tokens - step.cached_tokens * (1 - pace.cached_cost)
    return pace.first_token + to_read / pace.prompt + tokens / pace.out


def split_seconds(path: Sequence[PathLeg], pace: ServerPace, search: float) -> Mapping[str, float]:
    """Divide the seconds of a path among server, search, and the kinds of our own work.

    A search takes `search` seconds; any more counts as our own work.
    """
    spent: dict[str, float] = {"server": 0.0, "search": 0.0}
    for leg in path:
        kind = leg.step.kind if leg.step else "between"
        expected = {"model": server_seconds(leg, pace), "search": search}.get(kind, 0.0)
        if expected:
            spent["server" if kind == "model" else "search"] += min(expected, leg.seconds)
        ours = _OWN_PARTS[kind]
        spent[ours] = spent.get(ours, 0.0) + max(0.0, leg.seconds - expected)
    return spent


_OWN_PARTS = {"model": "calls", "search": "searching", "prompt": "prompts"} | {
    "check": "checks", "think": "thinking", "between": "between"
}  # fmt: skip
"""Names of our own work by the kind of its step."""


@dataclass(frozen=True, slots=True)
class StagePrompts:
    """The prompt tokens of one stage in one turn, and how many of them a server may have cached."""

    calls: int
    tokens: int
    stable: int  # the longest common prefix with an earlier call


def measure_prefixes(earlier: Iterable[str], calls: Sequence[TraceStep]) -> Mapping[str, StagePrompts]:
    """Return a turn's prompt tokens by stage. `earlier` are the prompts of earlier turns, with other questions."""
    before, stages = list(earlier), dict[str, StagePrompts]()
    for call in calls:
        prompt = join_prompt(call)
        same = max((_common_prefix(prompt, so_far) for so_far in before), default=0)
        so_far, size = stages.get(call.name, StagePrompts(0, 0, 0)), count_tokens(prompt)
        stable = min(count_tokens("x" * same) if same else 0, size)
        stages[call.name] = StagePrompts(so_far.calls + 1, so_far.tokens + size, so_far.stable + stable)
        before.append(prompt)
    return stages


def count_resent_passages(calls: Sequence[TraceStep], passages: Iterable[Passage], rounds: Sequence[int]) -> int:
    """Count how often a passage is sent again within a round. `rounds` has the round of each call.

    A call sends a passage if all sentences of the passage are in its last message.
    """
    by_passage = {
        passage.id: [_plain(passage.text[start:end]) for start, end in find_quotable_spans(passage)]
        for passage in passages
    }
    times = Counter[tuple[int, str]]()
    for call, number in zip(calls, rounds, strict=True):
        text = _plain(call.messages[-1].text)
        times.update(
            (number, key)
            for key, sentences in by_passage.items()
            if sentences and all(map(text.__contains__, sentences))
        )
    return sum(count - 1 for count in times.values())


def _common_prefix(first: str, second: str) -> int:
    """Return the length of the beginning that two texts have in common."""
    return bisect_left(range(min(len(first), len(second))), 1, key=lambda at: first[: at + 1] != second[: at + 1])


CACHED_FROM, CACHED_STEP = 1_024, 128
"""OpenAI, Azure and others cache prefixes from this number of tokens, in these steps."""
DISCOUNTS = (0.5, 0.75, 0.9)
"""Discounts for cached tokens of OpenAI's models of 2024, of GPT-4.1, and of later ones."""


@dataclass(frozen=True, slots=True)
class PromptBill:
    """The prompt tokens of a turn, with schemas, and how many of them a provider has cached."""

    tokens: int
    cached_alone: int  # without earlier turns
    cached: int  # after other turns

    def billed(self, discount: float, *, alone: bool) -> float:
        """Return the cost of the prompts, in tokens at full price. `alone`: only this turn's own prompts are cached."""
        return self.tokens - discount * (self.cached_alone if alone else self.cached)


def measure_bill(earlier: Sequence[TraceStep], calls: Sequence[TraceStep]) -> PromptBill:
    """Return the bill of a turn's calls. `earlier` are the calls of earlier turns, with other questions.

    A prompt of the same turn counts as cached as soon as its reply has started.
    """
    tokens = alone = after = 0
    for call in calls:
        prompt = _join_billed(call)
        own = [_join_billed(other) for other in calls if _read_by(other) <= call.began]
        tokens += count_tokens(prompt)
        alone += count_cached(prompt, own)
        after += count_cached(prompt, (*own, *map(_join_billed, earlier)))
    return PromptBill(tokens, alone, after)


def count_cached(prompt: str, known: Iterable[str]) -> int:
    """Return how many tokens of a prompt are cached, if a provider has read the `known` prompts."""
    same = max((_common_prefix(prompt, other) for other in known), default=0) // CHARACTERS_A_TOKEN
    return same - same % CACHED_STEP if same >= CACHED_FROM else 0


def _join_billed(call: TraceStep) -> str:
    """Return the text of a call that is billed. Providers put the schema before the prompt."""
    return f"{json.dumps(call.schema) if call.schema else ''}{join_prompt(call)}"


def _read_by(call: TraceStep) -> float:
    """Return when the reply to a call started."""
    return call.pieces[0] if call.pieces else call.ended


def _plain(text: str) -> str:
    return " ".join(text.split())


IN_ROUNDS = ServerPace(first_token=1.0, out=math.inf, prompt=math.inf)
"""A server that takes a second for each reply, however long."""
MARKS: Mapping[str, Mapping[str, tuple[str, float]]] = {
    "wikichat-fast": {
        "first_ratio": ("at most", 1.5),
        "end_ratio": ("at most", 2.3),
        "rounds": ("at most", 4),
        "prompt_tokens": ("at most", 9_000),
        "stable_share": ("at least", 0.71),  # .72 to .77 by question; less if any stage loses its prefix
    }
}
WIKICHAT_2_1: Mapping[str, float] = {"first_ratio": 3.17, "end_ratio": 3.17, "end_ratio_refined": 4.25} | {
    "rounds": 3, "calls": 16, "prompt_tokens": 33_567
}  # fmt: skip
"""Figures of WikiChat 2.1 on a server of the same pace, without refinement and re-ranking; it verifies no claim."""


@dataclass(frozen=True, slots=True)
class SystemRuns:
    """The turns of one system, measured on three servers."""

    system: str
    turns: Sequence[MeasuredTurn]  # at the chosen pace
    in_rounds: Sequence[MeasuredTurn]  # if each call takes a second
    pace: ServerPace
    search: float
    plain: float
    sharing: Sequence[MeasuredTurn] = ()  # with a prefix that all prompts share


def plain_seconds(pace: ServerPace) -> float:
    """Return how long a plain call takes on a server with this pace."""
    return pace.first_token + PLAIN_PROMPT / pace.prompt + PLAIN_REPLY / pace.out


def compute_figures(runs: SystemRuns) -> dict[str, Any]:
    """Return the figures of a system. Seconds and ratios are medians over its turns."""
    turns = runs.turns
    sent = _stage_prompts(turns)
    all_sent = sum(stage.tokens for stage in sent.values())
    whole = [split_seconds(_turn_path(turn), runs.pace, runs.search) for turn in turns]
    to_first = [critical_path(turn.steps, turn.first, turn.began, turn.said[0]) for turn in turns if turn.said]
    first = [split_seconds(path, runs.pace, runs.search) for path in to_first]
    figures: dict[str, Any] = {
        "system": runs.system,
        "turns": len(turns),
        "ended": dict(Counter(turn.how for turn in turns)),
        "first_seconds": median_figure([turn.first_seconds for turn in turns]),
        "end_seconds": median_figure([turn.seconds for turn in turns]),
        "first_ratio": median_figure([turn.first_seconds for turn in turns]) / runs.plain,
        "end_ratio": median_figure([turn.seconds for turn in turns]) / runs.plain,
        "first_ratio_without_ours": _median_without_ours(first) / plain_seconds(runs.pace),
        "end_ratio_without_ours": _median_without_ours(whole) / plain_seconds(runs.pace),
        "seconds_in_rounds": median_figure([turn.seconds for turn in runs.in_rounds]),
        "rounds": median_figure([_count_rounds(_turn_path(turn)) for turn in runs.in_rounds]),
        "calls": median_figure([len(turn.calls) for turn in turns]),
        "prompt_tokens": median_figure([sum(call.prompt_tokens for call in turn.calls) for turn in turns]),
        "reply_tokens": median_figure([sum(call.tokens for call in turn.calls) for turn in turns]),
        "stable_share": sum(stage.stable for stage in sent.values()) / all_sent if all_sent else math.nan,
        "stages": sent,
        "bills": {name: _median_bill(of) for name, of in (("short", turns), ("shared", runs.sharing)) if len(of) > 1},
        "sent_again": median_figure([_count_repeats(turn) for turn in runs.in_rounds]),
        "late_verdicts": sum(sum(at > turn.drafting for at in turn.verdicts) for turn in turns),
        "verdicts": sum(len(turn.verdicts) for turn in turns),
        "to_the_first": _medians(first),
        "to_the_end": _medians(whole),
    }
    return figures | {"marks": _check_marks(figures)}


def median_figure(values: Sequence[float]) -> float:
    """Return the median; NaN if there are no values, or if one of them is NaN."""
    return median(values) if values and not any(map(math.isnan, values)) else math.nan


def _turn_path(turn: MeasuredTurn) -> tuple[PathLeg, ...]:
    return critical_path(turn.steps, turn.last, turn.began, turn.ended)


def _stage_prompts(turns: Sequence[MeasuredTurn]) -> dict[str, StagePrompts]:
    """Return the median prompt tokens of each stage. The first turn does not count: nothing precedes its prompts."""
    earlier = [join_prompt(call) for turn in turns[:1] for call in turn.calls]
    each = []
    for turn in turns[1:]:
        each.append(measure_prefixes(earlier, turn.calls))
        earlier += [join_prompt(call) for call in turn.calls]
    names = dict.fromkeys(name for stages in each for name in stages)
    return {
        name: StagePrompts(*_median_fields([stages.get(name, StagePrompts(0, 0, 0)) for stages in each]))
        for name in names
    }


def _median_bill(turns: Sequence[MeasuredTurn]) -> PromptBill:
    """Return the median bill of a turn, over all turns except the first."""
    bills = [
        measure_bill([call for earlier in turns[:place] for call in earlier.calls], turn.calls)
        for place, turn in enumerate(turns)
    ]
    return PromptBill(*_median_fields(bills[1:]))


def _median_fields(values: Sequence[StagePrompts | PromptBill]) -> list[int]:
    return [int(median(column)) for column in zip(*map(astuple, values), strict=True)]


def _count_repeats(turn: MeasuredTurn) -> int:
    passages = [hit.passage for step in turn.steps for hit in step.found]
    paths = [critical_path(turn.steps, call.cause, turn.began, call.began) for call in turn.calls]
    return count_resent_passages(turn.calls, passages, list(map(_count_rounds, paths)))


def _count_rounds(path: Sequence[PathLeg]) -> int:
    """Return how many model calls follow each other on a path.

    A server that takes one second for each call would need as many seconds.
    """
    return round(split_seconds(path, IN_ROUNDS, 0.0)["server"])


def _median_without_ours(splits: Sequence[Mapping[str, float]]) -> float:
    return median_figure([split["server"] + split["search"] for split in splits])


def _medians(splits: Sequence[Mapping[str, float]]) -> dict[str, float]:
    names = dict.fromkeys(name for split in splits for name in split)
    return {name: median_figure([split.get(name, 0.0) for split in splits]) for name in names}


def _check_marks(report: Mapping[str, Any]) -> dict[str, bool]:
    """Return whether a system's figures keep their limits in `MARKS`, by the name of the figure."""
    marks = MARKS.get(report["system"], {})
    return {
        name: report[name] <= mark if way == "at most" else report[name] >= mark for name, (way, mark) in marks.items()
    }
