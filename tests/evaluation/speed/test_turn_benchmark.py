"""A turn's arithmetic, by steps that are written down here: what its end waited for, prefixes, marks, its picture."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from evaluation.simulated_model.model_pace import ServerPace
from evaluation.speed.turn_benchmark import (
    Timeline,
    TimelineBar,
    build_timeline,
    draw_timelines,
    render_bills,
    render_figures,
    render_parts,
    render_stages,
    render_timeline,
)
from evaluation.speed.turn_figures import (
    StagePrompts,
    SystemRuns,
    compute_figures,
    count_cached,
    count_resent_passages,
    critical_path,
    measure_bill,
    measure_prefixes,
    plain_seconds,
    server_seconds,
    split_seconds,
)
from evaluation.speed.turn_trace import Cause, MeasuredTurn, StepKind, TraceStep
from pipeline.llm.model import ChatMessage
from storage.types import Passage
from tests.pipeline.world import hit

PACE = ServerPace(first_token=0.5, out=10, prompt=1_000)


def step(place: int, kind: StepKind, name: str, began: float, ended: float, cause: Cause | None = None) -> TraceStep:
    return TraceStep(place, kind, name, began, cause, ended)


def call(
    place: int, name: str, began: float, ended: float, cause: Cause | None = None, prompt: str = "", pieces: int = 0
) -> TraceStep:
    """A call of 100 prompt tokens that replies one token each tenth of a second, its last at its end."""
    made = step(place, "model", name, began, ended, cause)
    made.messages = (ChatMessage("system", "Rules."), ChatMessage("user", prompt))
    made.prompt_tokens, made.tokens = 100, round((ended - began - 0.6) * 10)
    made.pieces = [round(ended - 0.1 * (pieces - one - 1), 6) for one in range(pieces)]
    return made


def streamed_turn() -> Sequence[TraceStep]:
    """Claims of 4 tokens, of which the second begins a search and that a check; a query beside; then the draft.

    The draft is asked for by a task that waited for both and whose own last step is the search at the beginning.
    """
    opening = step(0, "search", "search", 0.0, 0.1)
    claims = call(1, "claims", 0.1, 1.1, Cause(0, 0.1), pieces=4)
    query = call(2, "query", 0.1, 1.0, Cause(0, 0.1))
    search = step(3, "search", "search", 0.9, 1.0, Cause(1, 0.9))
    verify = call(4, "verify", 1.0, 2.2, Cause(3, 1.0), pieces=6)
    check = step(5, "check", "check", 2.001, 2.05, Cause(3, 1.0))
    draft = call(6, "draft", 2.051, 4.051, Cause(0, 0.1), pieces=14)
    return opening, claims, query, search, verify, check, draft


def test_critical_path_follows_causes() -> None:
    steps = streamed_turn()

    way = critical_path(steps, Cause(6, 4.051), 0.0, 4.06)

    assert [(leg.step and leg.step.name, round(leg.began, 3), round(leg.ended, 3)) for leg in way] == [
        ("search", 0.0, 0.1),
        ("claims", 0.1, 0.9),
        ("search", 0.9, 1.0),
        ("verify", 1.0, 2.0),
        (None, 2.0, 2.001),
        ("check", 2.001, 2.05),
        (None, 2.05, 2.051),
        ("draft", 2.051, 4.051),
        (None, 4.051, 4.06),
    ]  # fmt: skip
    assert sum(leg.seconds for leg in way) == pytest.approx(4.06)


def test_seconds_are_split_by_server_and_own_work() -> None:
    steps = streamed_turn()
    way = critical_path(steps, Cause(6, 4.051), 0.0, 4.06)
    spent = split_seconds(way, PACE, 0.08)

    assert [round(server_seconds(leg, PACE), 3) for leg in way] == [0, 0.8, 0, 1.0, 0, 0, 0, 2.0, 0]
    assert spent["server"] == pytest.approx(3.8)
    assert spent["search"] == pytest.approx(0.16)
    assert {name: round(seconds, 3) for name, seconds in spent.items() if name not in {"server", "search"}} == {
        "searching": 0.04, "calls": 0.0, "between": 0.011, "checks": 0.049
    }  # fmt: skip
    assert sum(spent.values()) == pytest.approx(4.06)


def test_cached_tokens_cost_less_time() -> None:
    steps = [replace(call(0, "draft", 0.0, 2.0), cached_tokens=80)]
    (way,) = critical_path(steps, Cause(0, 2.0), 0.0, 2.0)

    assert server_seconds(way, PACE) == pytest.approx(0.5 + 0.02 + 1.4)
    assert server_seconds(way, replace(PACE, cached_cost=0.5)) == pytest.approx(0.5 + 0.06 + 1.4)


def test_turn_without_steps_is_one_unwatched_leg() -> None:
    assert [(leg.step, leg.seconds) for leg in critical_path([], None, 1.0, 3.0)] == [(None, 2.0)]


@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 5), st.integers(-1, 20)), max_size=12), st.floats(10, 12))
def test_critical_path_has_no_gaps(drawn_steps: list[tuple[float, float, int]], end: float) -> None:
    steps: list[TraceStep] = []
    for place, (after, lasts, which) in enumerate(drawn_steps):
        before = steps[which % place] if place and which >= 0 else None
        began = (before.ended if before else 0.0) + after
        cause = Cause(before.id, before.ended) if before else None
        steps.append(step(place, "check", "check", began, began + lasts, cause))
    ended = max([end, *(one.ended for one in steps)])

    way = critical_path(steps, None, 0.0, ended)

    assert (way[0].began, way[-1].ended) == (0.0, ended)
    assert all(one.ended == other.began for one, other in pairwise(way))


def test_stable_prefix_is_shared_with_any_earlier_prompt() -> None:
    rules = "r" * 400
    prompts = (("query", f"{rules}one"), ("verify", f"{rules}two"), ("verify", "other" * 80))
    calls = [
        replace(call(place, name, 0, 1), messages=(ChatMessage("user", text),))
        for place, (name, text) in enumerate(prompts)
    ]
    empty = measure_prefixes([], calls)
    again = measure_prefixes([f"<user>\n{rules}before"], calls)

    assert empty == {"query": StagePrompts(1, 102, 0), "verify": StagePrompts(2, 204, 101 + 1)}
    assert again["query"] == StagePrompts(1, 102, 101)


def test_bill_discounts_cached_prefixes() -> None:
    """It knows whole steps of what calls before began with, their schemas first, once they were read: from 1,024 on."""
    rules = "r" * 4 * 1_300
    asked = [
        replace(call(0, "claims", 0.0, 3.0, pieces=14), messages=(ChatMessage("system", f"{rules}a"),)),
        replace(call(1, "query", 0.1, 1.0), messages=(ChatMessage("system", f"{rules}b"),), schema={"type": "object"}),
        replace(call(2, "verify", 1.8, 2.0), messages=(ChatMessage("system", f"{rules}c"),)),
        replace(call(3, "verify", 1.8, 2.0), messages=(ChatMessage("system", "short" * 400),)),
    ]
    bill = measure_bill(asked, asked)

    assert (bill.tokens, bill.cached_alone) == (3 * 1_302 + 4 + 503, 1_280)
    assert bill.cached == 3 * 1_280
    assert bill.billed(0.5, alone=True) == bill.tokens - 640
    assert count_cached("x" * 4 * 1_023, ["x" * 8_000]) == 0
    assert count_cached("x" * 4 * 1_024, ["x" * 8_000]) == 1_024
    found = compute_figures(
        SystemRuns("a", [replace(turned("one", asked, 4.0), first=None, last=None)] * 2, [in_rounds(3)], PACE, 0.1, 2.0)
    )
    assert found["bills"] == {"short": bill}
    assert (
        render_bills(found).splitlines()[-1].startswith(f"| short | {bill.tokens:,} | 1,280 | {bill.tokens - 640:,} |")
    )


def test_resent_passages_are_counted_by_round() -> None:
    passages = [
        hit("The bell was cast in 1887. It hangs on the quay.").passage,
        hit("The quay is long.", key="quay.md").passage,
    ]
    bell, quay = "1: The bell was cast in 1887.\n2: It hangs on the quay.", "3: The quay is long."
    calls = [
        call(place, "verify", 0, 1, prompt=text) for place, text in enumerate((bell, f"{bell}\n{quay}", quay, bell))
    ]

    assert count_resent_passages(calls, passages, [1, 1, 1, 2]) == 2
    assert count_resent_passages(calls, passages, [1, 2, 3, 4]) == 0
    assert count_resent_passages(calls[:1], [passage_without_sentences()], [1]) == 0


def passage_without_sentences() -> Passage:
    return hit(" ").passage


def turned(question: str, steps: Sequence[TraceStep], end: float) -> MeasuredTurn:
    return MeasuredTurn(
        question, 0.0, end, "answered", list(steps), [3.0, 4.0], Cause(6, 2.95), Cause(6, 4.051), [2.0], 2.051
    )


def in_rounds(rounds: int) -> MeasuredTurn:
    """A turn of so many calls, each after the other, half a second of ours between them."""
    calls = [
        call(place, "any", 1.5 * place, 1.5 * place + 1, Cause(place - 1, 1.5 * place - 0.5) if place else None)
        for place in range(rounds)
    ]
    return replace(turned("x", calls, 1.5 * rounds), said=[], first=None, last=Cause(rounds - 1, 1.5 * rounds - 0.5))


def test_figures_of_a_system() -> None:
    turns = [turned(name, streamed_turn(), 4.06) for name in ("one", "two", "three")]
    found = compute_figures(SystemRuns("wikichat-fast", turns, [in_rounds(3)], PACE, 0.08, plain=2.0))

    assert plain_seconds(PACE) == pytest.approx(0.5 + 0.2 + 12)
    assert (found["first_ratio"], found["end_ratio"], found["rounds"]) == (1.5, 2.03, 3)
    assert (found["calls"], found["prompt_tokens"], found["verdicts"], found["late_verdicts"]) == (4, 400, 3, 0)
    assert found["end_ratio_without_ours"] == pytest.approx((3.8 + 0.16) / 12.7)
    assert found["stages"]["verify"].calls == 1
    assert [name for name, kept in found["marks"].items() if not kept] == ["first_ratio"]
    assert len(found["marks"]) == 5
    slow = compute_figures(SystemRuns("wikichat-fast", turns, [in_rounds(5)], PACE, 0.08, plain=1.0))
    assert [name for name, kept in slow["marks"].items() if not kept] == ["first_ratio", "end_ratio", "rounds"]


def test_printed_figures_show_marks_and_parts() -> None:
    """Marks beside their figures, WikiChat 2.1 last, and where the time went."""
    turns = [turned(name, streamed_turn(), 4.06) for name in ("one", "two")]
    found = compute_figures(SystemRuns("wikichat-fast", turns, [in_rounds(5)], PACE, 0.08, plain=2.0))
    lines = render_figures([found]).splitlines()

    assert lines[0] == "| | wikichat-fast | WikiChat 2.1 |"
    assert "| end, over the end of a plain call | 2.03 (keeps at most 2.30) | 3.17 (4.25 refined) |" in lines
    assert "| rounds: seconds of a server that takes one for any reply | 5 (MISSES at most 4) | 3 |" in lines
    assert "| the same with ours | 7.50 |  |" in lines
    assert (
        "to the end: server 3.80 s, index 0.16 s, ours 100 ms (searching 40, calls 0, between 11, checks 49)"
        in render_parts(found)
    )
    assert any(line.startswith("| verify | 1 |") for line in render_stages(found).splitlines())


def test_silent_turn_has_no_first_sentence() -> None:
    silent = replace(turned("one", streamed_turn(), 4.06), said=[], first=None, how="abstained")
    found = compute_figures(SystemRuns("wikichat-fast", [silent, silent], [silent], PACE, 0.08, plain=2.0))

    assert math.isnan(found["first_ratio"])
    assert found["marks"]["first_ratio"] is False
    assert found["ended"] == {"abstained": 2}
    assert "nan" not in render_figures([found])


def test_timeline_marks_the_critical_path() -> None:
    timeline = build_timeline("a system", replace(turned("one", streamed_turn(), 4.06), said=[]))
    lines = timeline.bars
    text = render_timeline(timeline).splitlines()[1:]

    assert [line.label for line in lines] == [
        "search 1", "claims 1", "query 1", "search 2", "verify 1", "check 1", "draft 1"
    ]  # fmt: skip
    assert [line.critical is None for line in lines] == [False, False, True, False, False, False, False]
    assert lines[4].critical == pytest.approx((1.0, 2.0))
    assert (
        text[2] == "query 1  |  ----------------                                                       |   0.10   1.00"
    )
    assert "#################----" in text[4]
    assert text[-1].endswith("^|   4.06 end")


def test_timeline_is_drawn_as_png(tmp_path: Path) -> None:
    bar = TimelineBar("draft 1", 0.0, 4.0, (0.0, 2.0))
    timeline = Timeline("a system", [bar], [("first sentence", 3.0), ("end", 4.0)])

    draw_timelines([timeline, timeline], 2.0, tmp_path / "turn.png")

    with Image.open(tmp_path / "turn.png") as image:
        drawn_in = {colour for _, colour in image.convert("RGB").getcolors(1 << 20)}
        assert image.format == "PNG"
        assert {(0x25, 0x63, 0xC9), (0xB9, 0xD0, 0xF5)} <= drawn_in
        assert image.width == 1_500
