"""Search the web next to the corpora, for every system with a model; the settings must ask for it.

The turn's first search starts the web search; everything after waits for it, up to a limit. After the limit, only the
corpora's passages are used; the failure is recorded, and shown except in a study. The engine gets one query, which the
model writes; its prompt says that strangers read it, but nothing compares it with the question. No claim is sent. The
pages found serve all of the turn's searches.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from ingest.web.search_engines.wiki_address import is_article, parse_wiki_address
from pipeline.errors import PipelineError, SearchUnavailable
from pipeline.kit import Kit, Search
from pipeline.replies.stage_replies import query_format
from pipeline.stages.passage_order import find_answer_language, order_by_logits, read_passages
from pipeline.stages.passage_retrieval import take_turns
from pipeline.stages.turn_context import drop_copies, read_conversation
from pipeline.systems.search_engine import search as search_pages
from pipeline.types import Conversation, Turn
from storage.language.words import content_terms
from storage.passages import PassageStore
from storage.search.title_lookup import find_titled
from storage.types import Hit, QueryTime, SearchQuery

SPARE_SECONDS = 0.2  # of the limit: then the pages read so far are taken

log = logging.getLogger(__name__)


@dataclass
class WebBeside:
    """The web search of one turn. `connect` it before the first search, and `close` it at the turn's end."""

    seconds: float
    fault: PipelineError | None = None
    _find: Callable[[], Awaitable[tuple[Hit, ...]]] | None = None
    _task: asyncio.Task[tuple[Hit, ...]] | None = None
    _deadline: float = 0.0

    def connect(self, find: Callable[[], Awaitable[tuple[Hit, ...]]]) -> None:
        self._find = find

    @property
    def seconds_left(self) -> float:
        """Seconds in which the engine and the pages must answer."""
        return max(self._deadline - asyncio.get_running_loop().time() - SPARE_SECONDS, 0.0)

    def join(self, search: Search) -> Search:
        """Return a search of the corpora that, from the second time on, also returns fitting web passages."""

        async def search_both(query: SearchQuery, k: int) -> tuple[Hit, ...]:
            if self._task is None:
                self._deadline = asyncio.get_running_loop().time() + self.seconds
                self._task = asyncio.create_task(self._run())
                return await search(query, k)
            own, web = await search(query, k), await self.hits()
            return merge_by_words(query.text, own, web)[:k]

        return search_both

    async def hits(self) -> tuple[Hit, ...]:
        """Return the web's passages when they are there, or none once the time is up."""
        return await asyncio.shield(self._task) if self._task else ()

    async def close(self) -> None:
        if self._task and not self._task.done():
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> tuple[Hit, ...]:
        try:
            async with asyncio.timeout_at(self._deadline):
                return await self._find() if self._find else ()
        except TimeoutError:
            hint = "Raise wait_seconds in [search_engine], if the model or the engine is slow."
            self.fault = SearchUnavailable(f"The web was not searched within {self.seconds:g} seconds.", hint=hint)
        except PipelineError as error:
            self.fault = error
        log.warning("web search failed; answering from the corpora", extra={"cause": str(self.fault)})
        return ()


async def find_pages(talk: Conversation, kit: Kit) -> tuple[Hit, ...]:
    """Return passages of the pages found by a query that the model writes; none if it declines. Raises `PipelineError`.

    Unlike in `search-engine`, the question is not searched in its place if the reply cannot be read.
    """
    context = read_conversation(talk, kit)
    query = await kit.ask("web_query", query_format(), stage="query", talk=context.talk, reading="")
    return await search_pages(query, kit) if query else ()


async def rank_with_web(web: WebBeside, question: Turn, kit: Kit, query: str, own: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return passages of the corpora and of the web in the one order of the cross-encoder, without copies.

    Raises the web's fault if no corpus is in the turn's scope.
    """
    pages = await web.hits()
    if web.fault and not kit.corpora:
        raise web.fault
    if not pages:
        return tuple(own)
    hits = drop_copies(take_turns((own, pages)), query)
    language = find_answer_language(question, hits)
    return order_by_logits(hits, await read_passages(query, language, hits, kit))[: kit.limits.passages]


def merge_by_words(query: str, own: Sequence[Hit], web: Sequence[Hit]) -> tuple[Hit, ...]:
    """Return both in one ranking: a web passage precedes those with fewer of the query's words. Pure."""
    terms, merged, known = set(content_terms(query)), list[Hit](), {hit.passage.id for hit in own}
    new = [(_count_shared(terms, hit), hit) for hit in web if hit.passage.id not in known]
    left = sorted((pair for pair in new if pair[0]), key=lambda pair: -pair[0])
    for hit in own:
        while left and left[0][0] > _count_shared(terms, hit):
            merged.append(left.pop(0)[1])
        merged.append(hit)
    return (*merged, *(hit for _, hit in left))


def _count_shared(terms: set[str], hit: Hit) -> int:
    return len(terms.intersection(content_terms(f"{hit.document.title} {hit.passage.section} {hit.passage.text}")))


async def find_stored_article(
    store: PassageStore, corpora: Sequence[str], time: QueryTime, url: str
) -> tuple[Hit, ...]:
    """Return the passages of a Wikipedia article that one of these corpora has; none if it must be fetched."""
    address = parse_wiki_address(url)
    if address is None or time == "recent":
        return ()
    async for version in find_titled(store, address.title, corpora):
        if is_article(version.document, address, time):
            return tuple(Hit(passage, version.document, 0.0) for passage in version.passages)
    return ()
