"""What passages say to the point of a query: how much of one passage is taken."""

from pipeline.kit import Limits
from pipeline.stages.passage_retrieval import MAX_BULLETS, retrieve_for_query, summarise_passages
from pipeline.stages.turn_context import TurnContext
from storage.types import SearchQuery
from tests.pipeline.scripted import ScriptedLLM
from tests.pipeline.world import Shelf, Stage, hit, question, reads_alike

COUNTED = [f"Boat number {number} lies in the harbour." for number in range(1, MAX_BULLETS + 5)]


async def test_of_one_passage_no_more_than_the_first_statements_are_taken() -> None:
    """A model that repeats a whole passage does not drown what others say."""
    bullets = "\n".join(f"- {text} [{number}]" for number, text in enumerate(COUNTED, start=1))
    stage = Stage(
        Shelf([]), question("Which boats lie there?"), Limits(), ScriptedLLM({"summarise": bullets}), reads_alike
    )

    found = await summarise_passages(SearchQuery("boats in the harbour"), [hit(" ".join(COUNTED))], stage.kit)

    assert [finding.text for finding in found] == COUNTED[:MAX_BULLETS]


async def test_two_queries_find_the_pages_of_both() -> None:
    """Each has its share, the best of each first and no passage twice; a third is not searched for."""
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
        first = [one.document.key for one in hits][:2]
        assert first == (["fare.md", "pier.md"] if "oak" in text else ["fare.md", "time.md"])
        assert len(hits) == len({one.passage.id for one in hits})
    assert not [query for query in shelf.queries if "|" in query or "Zebras" in query]
