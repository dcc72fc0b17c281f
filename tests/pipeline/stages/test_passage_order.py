"""The cross-encoder's order of passages."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pipeline.kit import Kit, Limits, remember_scores
from pipeline.stages.passage_order import FIRST_READ, MOST_READ, SURE, order_by_logits, read_passages
from pipeline.stages.turn_context import prepare_context
from pipeline.support.support_check import check_verbatim
from storage.types import Hit
from tests.pipeline.world import Shelf, Stage, hit, question

HITS = tuple(hit(f"Leave is fine in {number} towns.", key=f"{number}", title="Leave") for number in range(12))
QUESTION = "Where is leave fine?"


def make_kit(odds: dict[str, float], read: list[str], hits: Sequence[Hit] = HITS) -> Kit:
    """Return a kit whose cross-encoder records what it reads; `odds` are by the passage's text, others get -5."""

    async def rerank(_: str, texts: Sequence[str]) -> Sequence[float]:
        read.extend(texts)
        return [odds.get(text.splitlines()[-1], -5.0) for text in texts]

    stage = Stage(Shelf(hits), question(QUESTION), Limits(), None, check_verbatim)
    return replace(stage.kit, rerank=rerank)


@pytest.mark.parametrize(
    ("best", "second", "count"),
    [(SURE - 1, -5.0, MOST_READ), (SURE, -5.0, FIRST_READ), (SURE, SURE - 1, MOST_READ), (SURE, SURE - 4, FIRST_READ)],
)
async def test_fewer_passages_are_read_if_one_is_far_ahead(best: float, second: float, count: int) -> None:
    read, odds = list[str](), {HITS[1].passage.text: best, HITS[2].passage.text: second}
    logits = await read_passages(QUESTION, "en", HITS, make_kit(odds, read))
    assert len(logits) == len(read) == count
    assert read[0] == f"Leave\n{HITS[0].passage.text}"


@pytest.mark.parametrize(
    ("text", "language"), [("Wo ist Urlaub?", "de"), ("Wie viel Urlaub habe ich?", "en"), ("年假多少天？", "zh")]
)
async def test_passages_are_not_read_for_other_languages(text: str, language: str) -> None:
    read = list[str]()
    assert await read_passages(text, language, HITS, make_kit({}, read)) == {}
    assert read == []


def test_unread_passages_follow_those_that_were_read() -> None:
    ordered = order_by_logits(HITS[:4], {HITS[1].passage.id: -3.0, HITS[2].passage.id: 2.0})
    assert ordered == (HITS[2], HITS[1], HITS[0], HITS[3])


async def test_turn_context_has_the_best_passage_first() -> None:
    context = await prepare_context(question(QUESTION), make_kit({HITS[5].passage.text: 4.0}, []))
    assert context.nearest[0].passage == HITS[5].passage
    assert context.found[0].passage == HITS[0].passage


async def test_no_text_is_read_twice_for_one_question_even_at_the_same_time() -> None:
    read = list[str]()

    async def read_slowly(_: str, texts: Sequence[str]) -> Sequence[float]:
        read.extend(texts)
        await asyncio.sleep(0)
        return [1.0 if text == "a" else -5.0 for text in texts]

    rerank = remember_scores(read_slowly)
    scores = await asyncio.gather(*(rerank("q", texts) for texts in (["a", "b"], ["b", "a"], [])))
    assert scores == [[1.0, -5.0], [-5.0, 1.0], []]
    assert read == ["a", "b"]
