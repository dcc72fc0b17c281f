"""How the time of a question ranks passages."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.kit import Limits
from pipeline.stages.passage_retrieval import rank_by_time, retrieve_passages
from storage.types import Hit, SearchQuery
from tests.pipeline.world import Shelf, Stage, hit, question, reads_alike

NOW = datetime(2026, 3, 1, tzinfo=UTC)


def dated(key: str, days_old: int | None, text: str = "Fares.", **options: str) -> Hit:
    return hit(text, key=key, date=None if days_old is None else NOW - timedelta(days=days_old), **options)


def keys(hits: tuple[Hit, ...]) -> list[str]:
    return [source.document.key for source in hits]


def test_hits_that_mention_the_year_rank_first() -> None:
    hits = [
        dated("none", 1),
        dated("part", 1, text="No. 12016 and 20161."),
        dated("text", 1, text="Fares of 2016."),
        dated("section", 1, section="Fares › 2016"),
        dated("title", 1, title="Fares (2016)"),
    ]

    assert keys(rank_by_time(hits, SearchQuery("fares", 2016))) == ["text", "section", "title", "none", "part"]


@pytest.mark.parametrize(
    ("ages", "time", "expected"),
    [
        ({"old": 900, "new": 1}, None, ["old", "new"]),
        ({"nearest": 500, "near": 2, "far": 900, "farthest": 1}, "recent", ["near", "nearest", "farthest", "far"]),
        ({"undated": None, "dated": 4_000}, "recent", ["dated", "undated"]),
    ],
)
def test_recent_query_adds_ranks_by_relevance_and_date(ages: dict, time: str | None, expected: list[str]) -> None:
    hits = [dated(key, age) for key, age in ages.items()]

    assert keys(rank_by_time(hits, SearchQuery("fares", time))) == expected


async def test_more_hits_are_fetched_than_returned() -> None:
    fares = [dated(str(age), age, text=f"Fares of {age}.") for age in range(20)]
    stage = Stage(Shelf(fares), question("fares"), Limits(), None, reads_alike)

    for time in (None, "recent"):
        assert len(await retrieve_passages(SearchQuery("fares", time), 3, stage.kit)) == 3

    assert [step.facts["k"] for step in stage.recorder.steps] == [12, 12]


@pytest.mark.parametrize("time", [2016, "recent"])
async def test_a_time_does_not_displace_the_best_hit(time: object) -> None:
    best = dated("best", 900, text="The ferry to Skarholm costs 12 crowns.")
    others = [dated(str(age), age, text=f"Ferry timetable of 2016, page {age}.") for age in range(20)]
    stage = Stage(Shelf([best, *others]), question("fares"), Limits(), None, reads_alike)

    hits = await retrieve_passages(SearchQuery("ferry to Skarholm costs", time), 2, stage.kit)

    assert keys(hits)[1] == "best"
    assert len(hits) == 2


@given(ages=st.lists(st.none() | st.integers(0, 9_000)), time=st.sampled_from([None, "recent", 2016]))
def test_time_ranking_keeps_every_hit(ages: list[int | None], time: object) -> None:
    hits = [dated(str(place), age) for place, age in enumerate(ages)]

    assert sorted(keys(rank_by_time(hits, SearchQuery("fares", time)))) == sorted(keys(tuple(hits)))
