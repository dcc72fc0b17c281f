"""Consolidate evidence: retrieve for written queries, link names to their pages, chain sentences, and prune.

A chain is one retrieved sentence, or such a sentence followed by one from the page of an entity that it names.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pipeline.kit import Kit
from pipeline.stages.augmentation.entity_linker import LinkedEntity, find_entity_names, is_named, link_entities
from pipeline.stages.augmentation.working_memory import WorkingMemory
from pipeline.stages.findings import collect_sentences, deduplicate_findings, order_rivals_by_date, quote_evidence
from pipeline.stages.passage_retrieval import choose_query, retrieve_for_query
from pipeline.stages.turn_context import drop_copies
from storage.language.words import content_terms
from storage.types import Evidence, Hit, SearchQuery

MAX_NAMES = 4  # names that are linked of the question, and again of the sentences found
NAMED_FROM = 8  # sentences nearest to the question whose names are linked
HOP_COST = 0.1  # the score that a second hop costs
MAX_CHARACTERS = 4_000  # of all notes together


@dataclass(frozen=True, slots=True)
class EvidenceChain:
    links: tuple[Evidence, ...]  # one sentence, or one and a sentence about an entity that it names

    @property
    def text(self) -> str:
        return " ".join(f"{link.document.title}: {link.text}" for link in self.links)


async def consolidate(memory: WorkingMemory, kit: Kit) -> WorkingMemory:
    """Return the memory with evidence from the best chains for its query, which is chosen first if it is missing."""
    context = memory.context
    query = memory.lacking or await choose_query(context, kit)
    if query is None:
        return replace(memory, consolidated=True, wants_facts=False)
    need = f"{context.search_query} {query.text}"
    named = [(name, need) for name in find_entity_names(need)[:MAX_NAMES]]
    retrieved = await retrieve_for_query(context, query, kit)
    known = await link_entities(_leave_out_described(named, retrieved), kit)
    hits = (*retrieved, *(entity.hit for entity in known), *context.nearest)
    hits = drop_copies(hits, query.text)[: kit.limits.passages]
    sentences = collect_sentences(hits)
    first = dict(named)
    for sentence in _find_nearest(sentences, need):
        for name in find_entity_names(sentence.text):
            first.setdefault(name, sentence.text)
    unknown = _leave_out_described(list(first.items())[len(named) :], hits)[:MAX_NAMES]
    chains = build_chains(sentences, await link_entities(unknown, kit))
    pruned = prune_chains(chains, await score_chains(chains, query, kit), kit.limits.passages)
    notes = [note for chain in pruned for link in chain.links for note in quote_evidence((link,))]
    evidence = order_rivals_by_date(deduplicate_findings(notes))
    return replace(memory, evidence=evidence or memory.evidence, consolidated=True)


def _leave_out_described(mentions: Iterable[tuple[str, str]], hits: Iterable[Hit]) -> tuple[tuple[str, str], ...]:
    """Return the mentions of names that the hits do not describe yet.

    A name is described if the first passage of its page, which defines it, is among the hits.
    """
    beginnings = [hit for hit in hits if hit.passage.position == 0]
    return tuple((name, text) for name, text in mentions if not any(is_named(hit, name) for hit in beginnings))


def _find_nearest(sentences: Sequence[Evidence], wanted: str) -> list[Evidence]:
    terms = set(content_terms(wanted))
    shared = [len(terms.intersection(content_terms(sentence.text))) for sentence in sentences]
    best = sorted(range(len(sentences)), key=lambda place: -shared[place])[:NAMED_FROM]
    return [sentences[place] for place in best if shared[place]]


def build_chains(sentences: Sequence[Evidence], linked: Sequence[LinkedEntity]) -> tuple[EvidenceChain, ...]:
    """Return a chain for each sentence, and for each pair with a sentence from the page of an entity in it. Pure."""
    alone = [EvidenceChain((sentence,)) for sentence in sentences]
    described = {entity.name: collect_sentences((entity.hit,)) for entity in linked}
    hops = [
        EvidenceChain((sentence, other))
        for sentence in sentences
        for name in find_entity_names(sentence.text)
        for other in described.get(name, ())
    ]
    return (*alone, *hops)


async def score_chains(chains: Sequence[EvidenceChain], query: SearchQuery, kit: Kit) -> tuple[float, ...]:
    """Return each chain's score: the share of the query's words in it, plus its cosine, minus a cost per hop."""
    terms = set(content_terms(query.text))
    cosines = await kit.compare(query.text, [chain.text for chain in chains]) if chains else ()
    shares = (len(terms.intersection(content_terms(chain.text))) / len(terms) if terms else 0.0 for chain in chains)
    return tuple(
        share + cosine - HOP_COST * (len(chain.links) - 1)
        for chain, share, cosine in zip(chains, shares, cosines, strict=True)
    )


def prune_chains(
    chains: Sequence[EvidenceChain], scores: Sequence[float], passages: int, characters: int = MAX_CHARACTERS
) -> tuple[EvidenceChain, ...]:
    """Return the best chains within the limits of passages and characters, counting each sentence once. Pure."""
    kept, used, ids = list[EvidenceChain](), set[Evidence](), set[str]()
    for place in sorted(range(len(chains)), key=lambda place: -scores[place]):
        new = [link for link in chains[place].links if link not in used]
        more = {link.passage.id for link in new} - ids
        room = characters - sum(len(link.text) for link in used)
        if new and len(ids) + len(more) <= passages and sum(len(link.text) for link in new) <= room:
            kept.append(EvidenceChain(tuple(new)))
            used.update(new)
            ids |= more
    return tuple(kept)
