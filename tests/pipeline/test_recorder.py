"""How searches, model calls and claims are recorded."""

import asyncio
import time

import pytest

from pipeline.errors import SearchUnavailable
from pipeline.gate import Recorder
from pipeline.types import ClaimChecked, DraftStarted, Event, PassagesFound, SearchStarted, Usage
from storage.types import CheckedClaim, Claim, Hit, SearchQuery, Step, Verdict
from tests.pipeline.world import Shelf, hit

LEAVE = hit("Everyone has 30 days of leave.", key="leave.md")
MORE = hit("Leave is booked in the calendar.", key="leave.md", position=1)
SICK = hit("Sick leave needs a note.", key="sick.md")


async def test_every_search_becomes_a_step() -> None:
    events: list[Event] = []
    recorder = Recorder(Shelf([LEAVE]).search, report=events.append)

    hits = await recorder.search(SearchQuery("days of leave", 2026), 5)

    assert events == [SearchStarted("days of leave"), PassagesFound("days of leave", hits)]
    (step,) = recorder.steps
    assert step.stage == "search"
    assert step.facts == {
        "query": "days of leave",
        "time": 2026,
        "k": 5,
        "hits": ((*("leave.md#0", hits[0].score), "handbook", "leave.md"),),
    }
    assert step.milliseconds >= 0


async def test_passages_of_all_searches_are_remembered() -> None:
    recorder = Recorder(Shelf([LEAVE, SICK]).search, report=lambda _: None)
    await recorder.search(SearchQuery("sick note"), 1)
    await recorder.search(SearchQuery("30 days"), 1)
    assert set(recorder.found) == {"sick.md#0", "leave.md#0"}


async def test_nearest_sources_have_one_passage_per_page() -> None:
    recorder = Recorder(Shelf([LEAVE, MORE, SICK]).search, report=lambda _: None)
    await recorder.search(SearchQuery("leave booked calendar"), 5)
    assert [source.passage.id for source in recorder.nearest(2)] == ["leave.md#1", "sick.md#0"]


@pytest.mark.parametrize("error", [SearchUnavailable("no hits"), asyncio.CancelledError()])
async def test_failed_search_is_recorded_and_raised(error: BaseException) -> None:
    async def broken(_: SearchQuery, __: int) -> tuple[Hit, ...]:
        raise error

    recorder = Recorder(broken, report=lambda _: None)

    with pytest.raises(type(error)):
        await recorder.search(SearchQuery("leave"), 5)

    assert recorder.steps[0].facts["error"] == f"{type(error).__name__}: {error}".rstrip(": ")


def call(stage: str, **facts: object) -> Step:
    return Step(stage, {"attempts": 1, "prompt_tokens": 10, "completion_tokens": 2, **facts}, 5.0)


async def test_recorded_steps_are_in_order_of_their_start() -> None:
    recorder = Recorder(Shelf([LEAVE]).search, report=lambda _: None)
    began = time.perf_counter()
    await recorder.search(SearchQuery("leave"), 1)
    recorder.note(call("generate"), began)
    assert [step.stage for step in recorder.steps] == ["generate", "search"]


def test_usage_counts_only_calls_that_were_sent() -> None:
    recorder = Recorder(Shelf([]).search, report=lambda _: None)
    recorder.note(call("query"), time.perf_counter())
    recorder.note(call("query", attempts=0, error="SchemaNotOffered"), time.perf_counter())
    recorder.note(Step("query", {"attempts": 1, "error": "ModelUnavailable"}, 1.0), time.perf_counter())
    assert recorder.usage == Usage(llm_calls=2, llm_rounds=2, prompt_tokens=10, completion_tokens=2)
    assert len(recorder.steps) == 3


def test_overlapping_model_calls_count_as_one_round() -> None:
    recorder = Recorder(Shelf([]).search, report=lambda _: None)
    start = time.perf_counter()
    for _ in range(3):
        recorder.note(call("summarise"), start)
    recorder.note(call("draft"), time.perf_counter())
    assert (recorder.usage.llm_calls, recorder.usage.llm_rounds) == (4, 2)


async def test_events_are_passed_on_and_their_claims_stored() -> None:
    events: list[Event] = []
    recorder = Recorder(Shelf([]).search, report=events.append)
    checked = CheckedClaim(Claim("It rings.", "model"), Verdict.REFUTES)
    recorder.tell(DraftStarted(1))
    recorder.tell(ClaimChecked(checked))
    assert recorder.claims == (checked,)
    assert events == [DraftStarted(1), ClaimChecked(checked)]


async def test_unchecked_claim_is_not_shown() -> None:
    events: list[Event] = []
    recorder = Recorder(Shelf([hit("The office opens at nine.")]).search, report=events.append)
    await recorder.search(SearchQuery("The office opens at ten.", unchecked=True), 3)
    assert not any("ten" in repr(event) for event in events)
    assert recorder.steps[0].facts["query"] == "The office opens at ten."
