"""How much of each passage is used, and how the time of a question ranks passages."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.kit import Limits
from pipeline.replies.stage_replies import MAX_BULLETS
from pipeline.stages.passage_retrieval import (
    rank_by_time,
    retrieve_for_query,
    retrieve_passages,
    summarise_passages,
)
from pipeline.stages.turn_context import TurnContext, drop_copies, prepare_context
from pipeline.types import Turn
from storage.types import Hit, SearchQuery
from tests.pipeline.scripted import ScriptedLLM
from tests.pipeline.world import NOW, Shelf, Stage, hit, question, reads_alike

COUNTED = [f"Boat number {number} lies in the harbour." for number in range(1, MAX_BULLETS + 5)]


async def test_statements_from_one_passage_are_limited() -> None:
    bullets = "\n".join(f"- {text} [{number}]" for number, text in enumerate(COUNTED, start=1))
    stage = Stage(
        Shelf([]), question("Which boats lie there?"), Limits(), ScriptedLLM({"summarise": bullets}), reads_alike
    )
    findings = await summarise_passages(SearchQuery("boats in the harbour"), [hit(" ".join(COUNTED))], stage.kit)
    assert [finding.text for finding in findings] == COUNTED[:MAX_BULLETS]


async def test_two_queries_find_the_pages_of_both() -> None:
    shelf = Shelf(
        [
            hit("The ferry costs 12 crowns.", key="fare.md"),
            hit("The ferry sails at noon.", key="time.md"),
            hit("The pier is made of oak.", key="pier.md"),
        ]
    )
    talk = question("What does the ferry cost, and what is the pier made of?")
    stage = Stage(shelf, talk, Limits(), None, reads_alike)

    for text in ("ferry costs | pier made of oak | Zebras", "ferry costs | the ferry costs"):
        hits = await retrieve_for_query(TurnContext(talk), SearchQuery(text), stage.kit)
        first = [source.document.key for source in hits][:2]
        assert first == (["fare.md", "pier.md"] if "oak" in text else ["fare.md", "time.md"])
        assert len(hits) == len({source.passage.id for source in hits})
    assert not [query for query in shelf.queries if "|" in query or "Zebras" in query]


RULE = "Whoever stays past six may have a warm meal kept for them until eight, as long as they said so by noon."
LATE = hit(RULE, key="late.md", title="Late work")


@pytest.mark.parametrize(
    ("other", "kept"),
    [
        (RULE, 1),
        (f"*{RULE.upper()}*", 1),
        (f"{RULE} Enjoy!", 1),
        (RULE.replace("until eight", "until 8"), 2),
        (RULE.replace("may have", "may not have"), 2),
        (RULE.replace("eight", "noon").replace("by noon", "by eight"), 2),
        ("The canteen is closed in August.", 2),
    ],
)
def test_copies_with_the_same_words_are_dropped(other: str, kept: int) -> None:
    hits = (LATE, hit(other, key="other.md", title="Kitchen"))
    assert drop_copies(hits, "a warm meal in the evening") == hits[:kept]


def test_copy_on_a_page_that_the_query_names_is_not_dropped() -> None:
    hits = tuple(hit("The warranty is two years.", key=f"{name}.md", title=f"Pump {name}") for name in ("Ada", "Berta"))
    assert drop_copies(hits, "warranty of pumps Ada and Berta") == hits
    assert drop_copies(hits, "warranty of pump Ada") == hits[:1]


async def test_passages_dropped_as_copies_are_replaced_by_the_next_hits() -> None:
    copies = [hit(RULE, key=f"{number}.md", title="Meals") for number in range(3)]
    others = [hit(f"A warm meal costs {number} crowns.", key=f"fare{number}.md") for number in (4, 5)]
    talk = question("Who gets a warm meal?")
    stage = Stage(Shelf([*copies, *others]), talk, Limits(), None, reads_alike)
    hits = await retrieve_for_query(TurnContext(talk), SearchQuery("warm meal eight noon"), stage.kit)
    assert {source.document.key for source in hits} == {"0.md", "fare4.md", "fare5.md"}


async def test_question_hits_are_interleaved_with_query_hits() -> None:
    shelf = Shelf(
        [
            *(hit(f"Stipend {number} is for health.", key=f"stipend{number}.md") for number in range(4)),
            hit("An intern gets a phone, and no stipend.", key="intern.md"),
        ]
    )
    talk = question("Does an intern get the stipend?")
    stage = Stage(shelf, talk, Limits(), None, reads_alike)
    context = await prepare_context(talk, stage.kit)
    query = SearchQuery("stipend health")

    hits = await retrieve_for_query(context, query, stage.kit)
    assert [source.document.key for source in hits] == ["stipend0.md", "intern.md", "stipend1.md"]


async def test_follow_up_is_searched_as_asked_beside_the_written_query() -> None:
    shelf = Shelf([
        *(hit(f"Stipend {number} is for health.", key=f"stipend{number}.md") for number in range(4)),
        hit("Payment is made twice a year.", key="twice.md"),
    ])  # fmt: skip
    talk = question("Is it made twice a year?", Turn("user", "Does an intern get the stipend?"))
    stage = Stage(shelf, talk, Limits(), None, reads_alike)
    context = await prepare_context(talk, stage.kit)
    hits = await retrieve_for_query(context, SearchQuery("stipend health"), stage.kit)
    assert "twice.md" in [source.document.key for source in hits]


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
async def test_time_of_a_query_does_not_displace_the_best_hit(time: object) -> None:
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
