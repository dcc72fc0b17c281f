"""Stages 1 and 2: what to look up, the passages of the right time, and what they say to the point."""

from collections.abc import Sequence

from pipeline.errors import ModelRefused, UnreadableReply
from pipeline.findings import Finding, quoted, sentences_of
from pipeline.follow_ups import resolve
from pipeline.kit import Kit
from pipeline.parsing.bullets import Bullet, bullets
from pipeline.parsing.query import QUERY
from pipeline.reranking import fetched, reranked
from pipeline.stages.scene import Scene
from pipeline.stages.together import those_that_work
from storage.types import Evidence, Hit, SearchQuery

MOST = 8
"""Bullets of one passage."""


async def choose_query(scene: Scene, kit: Kit) -> SearchQuery | None:
    """Return what to look up, and of what time; None where the user wants no fact.

    A model that declines, or whose reply cannot be read, keeps nobody from looking up the question as it stands.
    """
    try:
        return await kit.ask("query", QUERY, stage="query", talk=scene.talk, reading=scene.reading)
    except (UnreadableReply, ModelRefused):
        return SearchQuery(resolve(scene.talk).query)


async def retrieve(query: SearchQuery, k: int, kit: Kit) -> tuple[Hit, ...]:
    """Return the `k` passages that fit a query and its time best. Raises `SearchUnavailable`."""
    return reranked(await kit.search(query, fetched(query, k)), query)[:k]


async def retrieve_written(scene: Scene, query: SearchQuery, kit: Kit) -> tuple[Hit, ...]:
    """Return the passages that fit the written query best; where it is the question itself, they were found already.

    Raises:
        SearchUnavailable: the search failed.
    """
    k = kit.limits.looked_up
    known = query.time is None and query.text == scene.sought and kit.limits.passages >= k
    return scene.nearest[:k] if known else await retrieve(query, k, kit)


async def summarise(query: SearchQuery, hits: Sequence[Hit], kit: Kit) -> tuple[Finding, ...]:
    """Return what passages say to the point of a query, each statement bound to sentences of its passage.

    Raises:
        PipelineError: no passage could be summarised.
    """
    found = await those_that_work(_summary("summarise", query, (hit,), kit) for hit in hits)
    return tuple(finding for findings in found for finding in findings)


async def take_out(query: SearchQuery, hits: Sequence[Hit], kit: Kit) -> tuple[Finding, ...]:
    """Return the same by a shorter prompt: a call for each passage, but one for all where calls would have to wait.

    Raises:
        PipelineError: no passage could be summarised.
    """
    groups = (tuple(hits),) if kit.busy() else tuple((hit,) for hit in hits)
    found = await those_that_work(_summary("bullets", query, group, kit) for group in groups)
    return tuple(finding for findings in found for finding in findings)


async def _summary(template: str, query: SearchQuery, hits: Sequence[Hit], kit: Kit) -> tuple[Finding, ...]:
    sentences = sentences_of(hits)
    if not sentences:
        return ()
    form = bullets(len(sentences))
    found = await kit.ask(template, form, stage="summarise", query=query.text, sentences=sentences)
    bound = [await _bound(bullet, sentences, kit) for bullet in found[: MOST * len(hits)] if bullet.sentences]
    return tuple(finding for findings in bound for finding in findings)


async def _bound(bullet: Bullet, sentences: Sequence[Evidence], kit: Kit) -> tuple[Finding, ...]:
    """Return a bullet that its passage supports; in the place of one that it does not, the sentences it names."""
    evidence = tuple(sentences[number - 1] for number in bullet.sentences)
    support = await kit.supports(bullet.text, evidence)
    return (Finding(bullet.text, evidence),) if support.holds else quoted(evidence)
