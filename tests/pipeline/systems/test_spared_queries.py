"""The call that only writes a query is spared for a self-contained question."""

import pytest

from pipeline.kit import Limits, System
from pipeline.systems import SYSTEMS
from pipeline.types import Conversation, Turn
from tests.pipeline.skarholm import BUILT, QUESTION, WRITTEN, run

WRITERS = ["in-context", "search-engine", "wikichat"]


@pytest.fixture(params=WRITERS)
def system(request: pytest.FixtureRequest) -> System:
    return SYSTEMS[request.param].answer


@pytest.mark.parametrize(
    ("talk", "limits", "calls"),
    [
        (QUESTION, Limits(), 0),
        (QUESTION, WRITTEN, 1),
        ("When was it built?", Limits(), 1),
        ("Was Skarholm lighthouse open last year?", Limits(), 1),
        ("What colour have the walls of the town hall?", Limits(), 1),
        (Conversation((Turn("user", "What is Skarholm?"), Turn("bot", "An island."), Turn("user", "And its pier?"))),
         Limits(), 1),
    ],
    ids=["plain", "always", "pronoun", "relative time", "nothing found", "follow-up"],
)  # fmt: skip
async def test_plain_question_is_searched_as_asked(
    system: System, talk: Conversation | str, limits: Limits, calls: int
) -> None:
    script = {**BUILT, "query": "Search: yes\nQuery: Skarholm lighthouse built\nTime: none"}
    outcome, llm = await run(talk, script, limits, system=system)
    assert len(llm.of("query")) == calls
    searches = [step.facts["query"] for step in outcome.recorder.steps if step.stage == "search"]
    assert ("Skarholm lighthouse built" in searches) == bool(calls)
