"""The interim quotation: the sentence that probably answers, or nothing."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from pipeline.kit import Limits
from pipeline.stages.quotation import HOPELESS, rank_quotes, show_interim_quote
from pipeline.support.support_check import check_verbatim
from pipeline.types import PageQuoted
from storage.types import PassageKind, SearchQuery
from tests.pipeline.world import Shelf, Stage, hit, question

SHELF = Shelf([
    hit("Everyone has 25 days of leave. It can be taken in half days.", key="leave.md", title="Leave"),
    hit("The office in Ghent opened in May 2019.", key="office.md", title="Office in Ghent"),
    hit(
        "The meal allowance on trips is 38 euros a day.",
        key="meals.md", title="Meal allowance on trips", date=datetime(2024, 2, 5, tzinfo=UTC),
    ),
    hit(
        "The meal allowance on trips is 45 euros a day.",
        key="new.md", title="Travel", date=datetime(2026, 1, 19, tzinfo=UTC),
    ),
])  # fmt: skip


async def quoted(text: str, *, compare=None, shelf=SHELF) -> list[str]:
    """Return the interim quotations from the nearest passages."""
    talk = question(text)
    stage = Stage(shelf, talk, Limits(), None, check_verbatim)
    kit = replace(stage.kit, compare=compare) if compare else stage.kit
    hits = await kit.search(SearchQuery(text), 10)
    async with show_interim_quote(talk, hits, kit):
        for _ in range(100):
            await asyncio.sleep(0.001)
            if any(isinstance(event, PageQuoted) for event in stage.events):
                break
    return [event.evidence.text for event in stage.events if isinstance(event, PageQuoted)]


async def test_likely_answer_is_quoted_early() -> None:
    assert await quoted("How many days of leave has everyone?") == ["Everyone has 25 days of leave."]


async def test_newer_of_disagreeing_pages_is_quoted_early() -> None:
    assert await quoted("What is the meal allowance on trips?") == ["The meal allowance on trips is 45 euros a day."]


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        ("The ferry to Ghent costs 12 euros.", PassageKind.PROSE, True),
        ("It costs 12 euros to Ghent by ferry.", PassageKind.PROSE, False),
        ("Ferry: Ghent; Price of the ferry: 12 euros", PassageKind.TABLE, False),
        ("https://ghent.example/ferry costs 12 euros.", PassageKind.PROSE, False),
        ("Ferry to Ghent, 12 euros", PassageKind.PROSE, False),
    ],
)
async def test_only_self_contained_sentences_are_quoted_early(text: str, kind: PassageKind, *, expected: bool) -> None:
    place = hit(text, kind=kind, title="The ferry to Ghent", key="ferry.md")
    question_text = "What does the ferry to Ghent cost?"
    assert await quoted(question_text, shelf=Shelf([place])) == ([text] if expected else [])


async def test_poor_match_is_not_quoted_early() -> None:
    assert await quoted("Who painted the Mona Lisa in the office?") == []
    assert await quoted("Zebras?") == []


async def test_failed_interim_quote_raises_nothing_in_the_turn() -> None:
    async def broken(text: str, others: Sequence[str]) -> tuple[float, ...]:
        raise OSError(f"no vectors for {text}, {others}")

    assert await quoted("How many days of leave has everyone?", compare=broken) == []


async def test_interim_quote_task_ends_with_the_turn() -> None:
    never = asyncio.Event()

    async def slow(text: str, others: Sequence[str]) -> tuple[float, ...]:
        del text, others
        await never.wait()
        return ()

    assert await quoted("How many days of leave has everyone?", compare=slow) == []
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize(("odds", "sentences"), [(HOPELESS + 1, True), (HOPELESS - 1, False)])
async def test_sentences_of_hopeless_passages_are_not_read(odds: float, *, sentences: bool) -> None:
    read = list[str]()

    async def rerank(query: str, texts: Sequence[str]) -> Sequence[float]:
        del query
        read.extend(texts)
        return [odds] * len(texts)

    talk = question("How many days of leave has everyone?")
    stage = Stage(SHELF, talk, Limits(), None, check_verbatim)
    hits = await stage.kit.search(SearchQuery(talk.question.text), 10)
    quotes = await rank_quotes(talk, hits, 10, replace(stage.kit, rerank=rerank))

    assert ("Leave\nEveryone has 25 days of leave." in read) == sentences
    assert quotes.ranked
