"""What passages say to the point of a query: how much of one passage is taken."""

from pipeline.kit import Limits
from pipeline.stages.passage_retrieval import MAX_BULLETS, summarise_passages
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
