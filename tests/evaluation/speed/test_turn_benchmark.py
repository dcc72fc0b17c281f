"""Figures of single turns from given steps, and a turn traced with a simulated server."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.simulated_model.model_pace import ServerPace, SimulatedModel
from evaluation.speed.turn_benchmark import (
    build_timeline,
    draw_timelines,
    render_bills,
    render_figures,
    render_parts,
    render_stages,
    render_timeline,
)
from evaluation.speed.turn_figures import SystemRuns, compute_figures, critical_path, server_seconds, split_seconds
from evaluation.speed.turn_trace import (
    Cause,
    MeasuredTurn,
    StepKind,
    TraceStep,
    join_prompt,
    measure_turn,
    open_bench,
    open_second_server,
)
from pipeline.llm.model import ChatMessage
from tests.evaluation.speed.two_pages import PAGES
from tests.fakes import PageSource

PACE = ServerPace(first_token=0.5, out=10, prompt=1_000)
AT_ONCE = SimulatedModel(ServerPace(first_token=0, out=math.inf, prompt=math.inf))


def step(place: int, kind: StepKind, name: str, began: float, ended: float, cause: Cause | None = None) -> TraceStep:
    return TraceStep(place, kind, name, began, cause, ended)


def call(
    place: int, name: str, began: float, ended: float, cause: Cause | None = None, prompt: str = "", pieces: int = 0
) -> TraceStep:
    """Return a call of 100 prompt tokens, with a reply token every tenth of a second, the last at its end."""
    made = step(place, "model", name, began, ended, cause)
    made.messages = (ChatMessage("system", "Rules."), ChatMessage("user", prompt))
    made.prompt_tokens, made.tokens = 100, round((ended - began - 0.6) * 10)
    made.pieces = [round(ended - 0.1 * (pieces - number - 1), 6) for number in range(pieces)]
    return made


def make_steps() -> Sequence[TraceStep]:
    """Return a call for claims, whose second claim starts a search and a check, a query at the same time, and a draft.

    The task of the draft waited for both, and its own last step is the search at the beginning.
    """
    opening = step(0, "search", "search", 0.0, 0.1)
    claims = call(1, "claims", 0.1, 1.1, Cause(0, 0.1), pieces=4)
    query = call(2, "query", 0.1, 1.0, Cause(0, 0.1))
    search = step(3, "search", "search", 0.9, 1.0, Cause(1, 0.9))
    verify = call(4, "verify", 1.0, 2.2, Cause(3, 1.0), pieces=6)
    check = step(5, "check", "check", 2.001, 2.05, Cause(3, 1.0))
    draft = call(6, "draft", 2.051, 4.051, Cause(0, 0.1), pieces=14)
    return opening, claims, query, search, verify, check, draft


def make_turn(steps: Sequence[TraceStep], end: float = 4.06) -> MeasuredTurn:
    causes = Cause(6, 2.95), Cause(6, 4.051)
    return MeasuredTurn("q", 0.0, end, "answered", list(steps), [3.0, 4.0], *causes, [2.0], 2.051)


def make_rounds(rounds: int) -> MeasuredTurn:
    """Return a turn of calls that follow each other, with half a second of our own work between them."""
    calls = [
        call(place, "any", 1.5 * place, 1.5 * place + 1, Cause(place - 1, 1.5 * place - 0.5) if place else None)
        for place in range(rounds)
    ]
    last = Cause(rounds - 1, 1.5 * rounds - 0.5)
    return replace(make_turn(calls, 1.5 * rounds), said=[], first=None, last=last)


def test_critical_path_lists_the_steps_waited_for_and_splits_their_seconds() -> None:
    path = critical_path(make_steps(), Cause(6, 4.051), 0.0, 4.06)
    spent = split_seconds(path, PACE, 0.08)

    assert [(leg.step and leg.step.name, round(leg.began, 3), round(leg.ended, 3)) for leg in path] == [
        ("search", 0.0, 0.1),
        ("claims", 0.1, 0.9),
        ("search", 0.9, 1.0),
        ("verify", 1.0, 2.0),
        (None, 2.0, 2.001),
        ("check", 2.001, 2.05),
        (None, 2.05, 2.051),
        ("draft", 2.051, 4.051),
        (None, 4.051, 4.06),
    ]
    assert [round(server_seconds(leg, PACE), 3) for leg in path] == [0, 0.8, 0, 1.0, 0, 0, 0, 2.0, 0]
    assert {name: round(seconds, 3) for name, seconds in spent.items()} == {
        "server": 3.8, "search": 0.16, "searching": 0.04, "calls": 0.0, "between": 0.011, "checks": 0.049
    }  # fmt: skip
    cached = replace(call(0, "draft", 0.0, 2.0), cached_tokens=80)
    (leg,) = critical_path([cached], Cause(0, 2.0), 0.0, 2.0)
    assert server_seconds(leg, replace(PACE, cached_cost=0.5)) == pytest.approx(0.5 + 0.06 + 1.4)


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 5), st.integers(-1, 20)), max_size=12), st.floats(10, 12))
def test_critical_path_has_no_gaps(drawn_steps: list[tuple[float, float, int]], end: float) -> None:
    steps: list[TraceStep] = []
    for place, (after, lasts, which) in enumerate(drawn_steps):
        before = steps[which % place] if place and which >= 0 else None
        began = (before.ended if before else 0.0) + after
        cause = Cause(before.id, before.ended) if before else None
        steps.append(step(place, "check", "check", began, began + lasts, cause))
    ended = max([end, *(drawn.ended for drawn in steps)])

    path = critical_path(steps, None, 0.0, ended)

    assert (path[0].began, path[-1].ended) == (0.0, ended)
    assert all(leg.ended == following.began for leg, following in pairwise(path))


def test_printed_figures_state_whether_they_keep_their_limits() -> None:
    turns = [make_turn(make_steps())] * 2
    figures = compute_figures(SystemRuns("wikichat-fast", turns, [make_rounds(5)], PACE, 0.08, plain=2.0))
    lines = render_figures([figures]).splitlines()

    assert (figures["first_ratio"], figures["end_ratio"], figures["rounds"]) == (1.5, 2.03, 5)
    assert (figures["calls"], figures["prompt_tokens"], figures["verdicts"], figures["late_verdicts"]) == (4, 400, 2, 0)
    assert figures["end_ratio_without_ours"] == pytest.approx((3.8 + 0.16) / (0.5 + 0.2 + 12))
    assert [name for name, holds in figures["marks"].items() if not holds] == ["rounds"]
    assert lines[0] == "|  | wikichat-fast | WikiChat 2.1 |"
    assert "| end, over the end of a plain call | 2.03 (keeps at most 2.30) | 3.17 (4.25 refined) |" in lines
    assert "| rounds: seconds of a server that takes one for any reply | 5 (MISSES at most 4) | 3 |" in lines
    parts = "to the end: server 3.80 s, index 0.16 s, ours 100 ms (searching 40, calls 0, between 11, checks 49)"
    assert parts in render_parts(figures)
    assert any(line.startswith("| verify | 1 |") for line in render_stages(figures).splitlines())


async def test_benchmark_traces_a_turn_and_reports_its_critical_path(tmp_path) -> None:
    async with open_bench(AT_ONCE, 0.0, PageSource(PAGES)) as bench, open_second_server(bench, AT_ONCE, 0.0) as second:
        turns = [await measure_turn(on, "wikichat-fast", "When was the lighthouse built?") for on in (bench, second)]

    for turn in turns:
        path = critical_path(turn.steps, turn.last, turn.began, turn.ended)
        assert (turn.how, bool(turn.verdicts)) == ("answered", True)
        assert turn.drafting < turn.said[0]
        assert max(turn.verdicts) < turn.ended
        assert {"summarise", "generate", "verify", "draft"} <= {model_call.name for model_call in turn.calls}
        assert {traced.kind for traced in turn.steps} >= {"model", "search", "prompt", "check"}
        assert sum(leg.seconds for leg in path) == pytest.approx(turn.seconds)
    first_prompts = [
        {join_prompt(made) for made in turn.calls if made.name in {"generate", "summarise"}} for turn in turns
    ]
    assert first_prompts[0] == first_prompts[1]
    figures = compute_figures(SystemRuns("wikichat-fast", turns, turns, PACE, 0.0, 1.0, turns))
    timeline = build_timeline("wikichat-fast", turns[0])
    draw_timelines([timeline], 1.0, tmp_path / "turn.png")
    assert "| summarise |" in render_stages(figures)
    assert "| shared |" in render_bills(figures)
    assert "wikichat-fast, to the end: server" in render_parts(figures)
    assert render_timeline(timeline).endswith(" end")
    assert (tmp_path / "turn.png").read_bytes().startswith(b"\x89PNG")
