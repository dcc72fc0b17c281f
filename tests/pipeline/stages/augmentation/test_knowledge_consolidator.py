"""Evidence chains: built in two hops, scored by the query, and limited in length."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pipeline.kit import Limits
from pipeline.stages.augmentation.entity_linker import LinkedEntity
from pipeline.stages.augmentation.knowledge_consolidator import (
    EvidenceChain,
    build_chains,
    consolidate,
    prune_chains,
    score_chains,
)
from pipeline.stages.augmentation.working_memory import open_memory
from pipeline.stages.findings import collect_sentences
from pipeline.stages.turn_context import TurnContext
from storage.types import SearchQuery
from tests.pipeline.world import Shelf, Stage, hit, question

FOUND = hit("The lens was ground by Tove Lind. It is kept in the cellar.", key="lens.md", title="Lens")
LINKED = hit("Tove Lind is a grinder. She was born in Bergen.", key="lind.md", title="Tove Lind")
GROUND, KEPT = collect_sentences([FOUND])
GRINDER, BORN = collect_sentences([LINKED])
HOPS = (EvidenceChain((GROUND, GRINDER)), EvidenceChain((GROUND, BORN)))


def test_chains_link_sentences_to_pages_of_named_entities() -> None:
    chains = build_chains((GROUND, KEPT), [LinkedEntity("Tove Lind", LINKED), LinkedEntity("Bergen", LINKED)])
    assert chains == (EvidenceChain((GROUND,)), EvidenceChain((KEPT,)), *HOPS)


async def test_second_hop_of_a_chain_raises_its_score_by_further_words_of_the_query() -> None:
    """Shares of the query's five words (lens, ground, grinder, born, bergen), computed by hand."""
    stage = Stage(Shelf(()), question("?"), Limits(), None, None)
    query = SearchQuery("lens ground grinder born Bergen")
    chains = (EvidenceChain((GROUND,)), EvidenceChain((KEPT,)), *HOPS)
    scores = await score_chains(chains, query, stage.kit)
    assert [round(score, 2) for score in scores] == [0.8, 0.4, 1.1, 1.5]
    assert prune_chains(chains, scores, passages=2)[0] == HOPS[1]


def test_pruned_chains_have_no_repetition_and_fit_the_limits() -> None:
    chains, scores = (EvidenceChain((KEPT,)), *HOPS), (0.5, 0.9, 0.8)
    assert prune_chains(chains, scores, passages=2) == (HOPS[0], EvidenceChain((BORN,)), EvidenceChain((KEPT,)))
    assert prune_chains(chains, scores, passages=1) == (EvidenceChain((KEPT,)),)
    assert prune_chains(chains, scores, passages=2, characters=60) == (HOPS[0],)


@given(st.lists(st.floats(-1, 2), min_size=4, max_size=4), st.integers(0, 3), st.integers(0, 200))
def test_pruning_fits_the_limits_for_any_scores(scores: list[float], passages: int, characters: int) -> None:
    links = [link for chain in prune_chains((EvidenceChain((GROUND,)), EvidenceChain((KEPT,)), *HOPS), scores, passages,
                                          characters) for link in chain.links]  # fmt: skip
    assert len(links) == len(set(links))
    assert len({link.passage.id for link in links}) <= passages
    assert sum(len(link.text) for link in links) <= characters


async def test_entity_is_linked_to_its_pages_opening_although_a_later_passage_was_found() -> None:
    beginning = hit("A grinder of the north.", key="lind.md", title="Tove Lind")
    later = hit("Tove Lind ground the first lens.", key="lind.md", title="Tove Lind", position=4)
    stage = Stage(Shelf((FOUND, later, beginning)), question("?"), Limits(looked_up=2), None, None)
    context = TurnContext(question("Who ground the lens?"), search_query="Who ground the lens?", nearest=(FOUND,))
    memory = replace(open_memory(context, 1), lacking=SearchQuery("lens ground"))
    evidence = (await consolidate(memory, stage.kit)).evidence
    assert [note.text for note in evidence if note.evidence[0].passage == beginning.passage] == [beginning.passage.text]
