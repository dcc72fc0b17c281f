"""The recording of searches."""

import pytest

from pipeline.errors import SearchUnavailable
from pipeline.recording import Recorder
from pipeline.types import Event, FoundPassages, Searching
from storage.types import Hit, SearchQuery
from tests.pipeline.world import Shelf, hit

LEAVE = hit("Everyone has 30 days of leave.", key="leave.md")
MORE = hit("Leave is booked in the calendar.", key="leave.md", position=1)
SICK = hit("Sick leave needs a note.", key="sick.md")


async def test_every_search_becomes_a_step() -> None:
    """The step says what was looked for and what was found, with its score."""
    recorder = Recorder(Shelf([LEAVE]).search, tell=lambda _: None)

    hits = await recorder.search(SearchQuery("days of leave", 2026), 5)

    (step,) = recorder.steps
    assert step.stage == "search"
    assert step.facts == {"query": "days of leave", "time": 2026, "k": 5, "hits": (("leave.md#0", hits[0].score),)}
    assert step.milliseconds >= 0


async def test_searches_can_be_watched() -> None:
    """A channel can show what is being looked for, and what came of it."""
    events: list[Event] = []
    recorder = Recorder(Shelf([LEAVE]).search, tell=events.append)

    hits = await recorder.search(SearchQuery("leave"), 5)

    assert events == [Searching("leave"), FoundPassages("leave", hits)]


async def test_all_passages_of_the_turn_are_remembered() -> None:
    """Passages of an earlier search can still be cited after a later one."""
    recorder = Recorder(Shelf([LEAVE, SICK]).search, tell=lambda _: None)

    await recorder.search(SearchQuery("sick note"), 1)
    await recorder.search(SearchQuery("30 days"), 1)

    assert set(recorder.found) == {"sick.md#0", "leave.md#0"}


async def test_the_nearest_pages_are_different_pages() -> None:
    """Of each page its best passage stands for it."""
    recorder = Recorder(Shelf([LEAVE, MORE, SICK]).search, tell=lambda _: None)

    await recorder.search(SearchQuery("leave booked calendar"), 5)

    assert [one.passage.id for one in recorder.nearest(2)] == ["leave.md#1", "sick.md#0"]


async def test_a_failed_search_is_noted_and_raised() -> None:
    """An outage is never an empty result, and the record says what went wrong."""

    async def broken(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        raise SearchUnavailable(f"no {k} hits for {query.text}")

    recorder = Recorder(broken, tell=lambda _: None)

    with pytest.raises(SearchUnavailable):
        await recorder.search(SearchQuery("leave"), 5)

    assert recorder.steps[0].facts["error"] == "SearchUnavailable: no 5 hits for leave"
