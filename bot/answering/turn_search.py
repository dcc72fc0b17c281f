"""What one turn searches: the corpora of its scope, and the web where that is in its scope.

Pages of the web are in no manifest: their corpus is there while an engine is configured, and a page of it until it is
forgotten.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from bot import read_version
from ingest.types import SourceUnavailable
from pipeline.errors import QuestionTooLong, QuestionWithoutWords, SearchUnavailable
from pipeline.kit import Limits, Search, Supports
from pipeline.types import Support
from storage.errors import StorageError
from storage.language.words import words
from storage.manifest import Manifest
from storage.passages import PassageStore
from storage.types import Document, Evidence, Hit, SearchQuery, is_web_corpus

if TYPE_CHECKING:
    from bot.settings.tables.search_engine_settings import SearchEngineSettings
    from ingest.web.search_engines.web_search import WebSearch

FindDocument = Callable[[str, str], Awaitable[Document | None]]
"""Returns a document by its corpus and key; None where it is there no more."""


def open_web_search(given: "SearchEngineSettings") -> "WebSearch | None":
    """Return the configured search engine, which works within a `with` block; None where none is."""
    if not given.corpus:
        return None
    # Imported late: most who start a command search no web.
    from ingest.web.search_engines.engine import ENGINES, EngineAccess
    from ingest.web.search_engines.web_search import ReadingBounds, WebSearch
    from ingest.web.web_client import build_user_agent

    agent = build_user_agent(given.contact or "no contact given", read_version())
    access = EngineAccess(given.address, agent, given.api_key.get_secret_value(), given.seconds)
    bounds = ReadingBounds(agent, given.seconds, given.page_tokens, given.hosts)
    return WebSearch(ENGINES[given.type](access), bounds)


def validate_query(text: str) -> str:
    """Return a query. Raises `PipelineError`, as asking does, where it has no words or too many."""
    if len(text) > (most := Limits().question_characters):
        message = f"The query has {len(text):,} characters; at most {most:,} are read."
        raise QuestionTooLong(message, hint="Search for a few words.")
    if not words(text):
        raise QuestionWithoutWords("There are no words in the query.", hint="Search for a few words.")
    return text


def build_search(passages: PassageStore, scope: Sequence[str]) -> Search:
    kept = tuple(name for name in scope if not is_web_corpus(name))

    async def search(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        with _report_search_outage():
            return await passages.search(query.text, kept, k)

    return search


def build_engine(web: "WebSearch | None", manifest: Manifest, scope: Sequence[str]) -> Search | None:
    """Return the search engine where it is in scope; its `k` counts pages. None where it is not."""
    if web is None or web.corpus not in scope:
        return None

    async def search(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        with _report_search_outage():
            return await web.search(query.text, k, await manifest.forgotten(web.corpus))

    return search


def build_find_document(manifest: Manifest) -> FindDocument:
    async def find(corpus: str, key: str) -> Document | None:
        with _report_search_outage():
            if not is_web_corpus(corpus):
                return await manifest.document(corpus, key)
            return None if key in await manifest.forgotten(corpus) else Document(corpus, key, "")

    return find


def snapshot_search(search: Search) -> Search:
    """Return a search of one turn that leaves out what is of another version of a document than it found before."""
    versions: dict[tuple[str, str], Document] = {}

    async def search_snapshot(query: SearchQuery, k: int) -> tuple[Hit, ...]:
        hits = await search(query, k)
        for hit in hits:
            versions.setdefault((hit.document.corpus, hit.document.key), hit.document)
        return tuple(hit for hit in hits if versions[hit.document.corpus, hit.document.key] == hit.document)

    return search_snapshot


def require_existing(supports: Supports, find: FindDocument) -> Supports:
    """Return a check that also wants every document to be there still.

    One that has a new version by now may be cited in the old one: that is what this turn has seen of it.
    """

    async def check(sentence: str, evidence: Sequence[Evidence], *, asked: Sequence[str] = ()) -> Support:
        support = await supports(sentence, evidence, asked=asked)
        if not support.holds and not support.appealable:
            return support
        for corpus, key in dict.fromkeys((one.document.corpus, one.document.key) for one in evidence):
            if await find(corpus, key) is None:
                reason = "a document that it cites was removed meanwhile"
                return Support(support.score, holds=False, reasons=(reason,))
        return support

    return check


@contextmanager
def _report_search_outage() -> Iterator[None]:
    """Report an outage of the storage or of the engine as one of search: it must never look like "I don't know"."""
    try:
        yield
    except StorageError as error:
        raise SearchUnavailable(f"The documents cannot be searched: {error}", hint=error.hint) from error
    except SourceUnavailable as error:
        raise SearchUnavailable(f"The web cannot be searched: {error}", hint=error.hint) from error
