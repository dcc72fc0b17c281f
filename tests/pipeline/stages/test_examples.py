"""Which worked examples are chosen, and how their knowledge is written."""

from collections.abc import Sequence
from datetime import date
from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.prompts.demo_ranking import (
    MAX_COMPARED,
    TurnDemos,
    choose_diverse,
    combine_scores,
    find_next,
    rank_demos,
    rescale,
    score_by_words,
)
from pipeline.prompts.demonstrations import find_triple, write_demo_triples
from pipeline.types import DemoNote, Demonstration, RankedDemo


def demo(name: str, *, pinned: bool = False) -> Demonstration:
    """Return an example that only its name can match."""
    return Demonstration(name, (("user", name),), date(2026, 3, 1), (), "", (), pinned=pinned)


async def lookup(text: str, others: Sequence[str]) -> tuple[float, ...]:
    """Return similarities from a table."""
    table = {frozenset(pair): alike for *pair, alike in TABLE}
    return tuple(table[frozenset((text, other))] for other in others)


TABLE = (("ask", "a", 0.9), ("ask", "b", 0.8), ("ask", "c", 0.5), ("a", "b", 0.95), ("a", "c", 0.2), ("b", "c", 0.3))


def test_sparse_scores_are_bm25() -> None:
    """Two texts of 2 and 4 words, mean 3: k1 = 1.2, b = 0.75; "harbour" is in both, "crane" in the second."""
    scores = score_by_words("harbour crane", ["harbour opens", "harbour crane lifts crane"])
    both, one = log(1 + 0.5 / 2.5), log(1 + 1.5 / 1.5)
    short, long = 1.2 * (0.25 + 0.75 * 2 / 3), 1.2 * (0.25 + 0.75 * 4 / 3)
    assert scores[0] == pytest.approx(both * 2.2 / (1 + short))
    assert scores[1] == pytest.approx(both * 2.2 / (1 + long) + one * 2 * 2.2 / (2 + long))


def test_dense_and_sparse_scores_are_rescaled_and_averaged() -> None:
    """Dense 0.2, 0.4, 0.6 becomes 0, ½, 1; sparse 8, 0, 4 becomes 1, 0, ½: the means are ½, ¼, ¾."""
    assert combine_scores((0.2, 0.4, 0.6), (8, 0, 4)) == pytest.approx((0.5, 0.25, 0.75))
    assert combine_scores((0.3, 0.3), (0, 0)) == (0, 0)


@given(st.lists(st.floats(-1e6, 1e6), max_size=8))
def test_rescaled_scores_keep_their_order_between_0_and_1(scores: list[float]) -> None:
    scaled = rescale(scores)
    assert all(0 <= score <= 1 for score in scaled)
    assert all(
        a <= b for x, a in zip(scores, scaled, strict=True) for y, b in zip(scores, scaled, strict=True) if x < y
    )


def test_next_example_is_chosen_by_relevance_and_distance_to_chosen_ones() -> None:
    """S = (1 - w) · distance + w · score: with w = 0.5 it is 0.5 · 0.05 + 0.5 · 0.8 against 0.5 · 0.8 + 0.5 · 0.5."""
    assert find_next((0.8, 0.5), (0.05, 0.8), 0.5) == 1
    assert find_next((0.8, 0.5), (0.05, 0.8), 0.9) == 0  # 0.725 against 0.53


@pytest.mark.parametrize(
    ("relevance", "chosen"), [(0.5, ["a", "c", "b"]), (0.9, ["a", "b", "c"]), (1.0, ["a", "b", "c"])]
)
async def test_best_example_comes_first_and_then_diverse_ones(relevance: float, chosen: list[str]) -> None:
    ranked = [RankedDemo(demo("a"), 0.9), RankedDemo(demo("b"), 0.8), RankedDemo(demo("c"), 0.5)]
    assert [demo.id for demo in await choose_diverse(ranked, 3, relevance, lookup)] == chosen
    assert [demo.id for demo in await choose_diverse(ranked, 2, relevance, lookup)] == chosen[:2]
    assert await choose_diverse(ranked, 0, relevance, lookup) == await choose_diverse([], 3, relevance, lookup) == ()


async def test_pinned_examples_come_first() -> None:
    pool = (demo("a"), demo("b"), demo("c", pinned=True))
    ranked = await rank_demos("ask", pool, 2, lookup)
    assert [(candidate.demo.id, candidate.score) for candidate in ranked] == [("c", 1.0), ("a", 0.5)]
    assert [demo.id for demo in await choose_diverse(ranked, 3, 1.0, lookup)] == ["c", "a"]


async def test_only_the_nearest_by_words_of_a_large_pool_are_compared() -> None:
    compared = list[str]()

    async def compare(_: str, others: Sequence[str]) -> tuple[float, ...]:
        compared.extend(others)
        return tuple(0.5 for _ in others)

    pool = [demo(f"harbour {number}") for number in range(MAX_COMPARED)]
    pool = [demo("dock"), *pool, demo("pier", pinned=True), demo("quay")]
    ranked = await rank_demos("harbour", pool, 3, compare)
    assert len(compared) == MAX_COMPARED
    assert "pier" in compared
    assert not {"dock", "quay"} & set(compared)
    assert [candidate.demo.id for candidate in ranked] == ["pier", "harbour 0", "harbour 1"]


async def test_example_pool_is_loaded_once_at_its_first_use() -> None:
    loads = list[int]()

    async def load() -> tuple[Demonstration, ...]:
        loads.append(1)
        return (demo("a"), demo("b"))

    demos = TurnDemos(load, lookup)
    assert not loads
    assert [candidate.demo.id for candidate in await demos("ask", 1)] == ["a"]
    assert await demos("ask", 0) == ()
    assert len(loads) == 1


@pytest.mark.parametrize(
    ("sentence", "triple"),
    [
        ("Toni Ferrol was born in Lund.", ("Toni Ferrol", "was born in", "Lund")),
        ("The kiln reaches 1,240 degrees.", None),
        ("Porcelain may not be fired here.", ("Porcelain", "may not be fired", "here")),
        ("A bicycle costs 2 crowns more.", ("A bicycle", "costs", "2 crowns more")),
        ("The lighthouse was built in 1871!", ("The lighthouse", "was built in", "1871")),
        ("Everyone has 25 days of leave.", ("Everyone", "has", "25 days of leave")),
        ("The crew has ten members.", ("The crew", "has", "ten members")),
        ("If it rains, the yard is closed.", None),
        ("Opening hours", None),
        ("It is.", None),
        ("", None),
    ],
)
def test_triple_is_found_only_in_a_plain_sentence(sentence: str, triple: tuple[str, str, str] | None) -> None:
    assert find_triple(sentence) == triple


def test_demonstration_notes_become_triples_if_plain() -> None:
    notes = (DemoNote("A bicycle costs 2 crowns.", "Fares"), DemoNote("Opening hours", "Fares"))
    written = write_demo_triples(Demonstration("a", (), date(2026, 3, 1), notes, "", ()))
    assert [note.text for note in written.notes] == ["(A bicycle, costs, 2 crowns)", "Opening hours"]
    assert written.triples
