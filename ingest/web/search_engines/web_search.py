"""Search the web for passages: an engine finds pages, and the beginnings of the best are read, all within seconds.

Pages are fetched concurrently, but only one at a time from each host, over all turns. An unreadable page is replaced by
the next one in the engine's order. If no page can be read, that counts as a failure of the search.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Self, TypeVar
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from ingest.chunking import split_page
from ingest.page_cleanup import describe_error
from ingest.sandbox import Sandbox
from ingest.types import EMPTY, Page, SourceUnavailable, UnreadableDocument
from ingest.web.http_reply import format_url
from ingest.web.public_network import PrivateAddress, PublicTransport, Resolve, resolve_host
from ingest.web.search_engines.engine import SearchEngine
from ingest.web.search_engines.page_beginning import count_tokens
from ingest.web.search_engines.page_reader import LARGEST_PAGE, PAGE_LIMITS, fetch_page, read_page, warm_up
from ingest.web.web_client import QueryParams, RequestPolicy, WebClient
from storage.clock import Clock, utc_now
from storage.database.worker_threads import ThreadPool
from storage.types import WEB_PREFIX, Document, Hit, QueryTime

T = TypeVar("T")
FindLocal = Callable[[str], Awaitable[tuple[Hit, ...]]]
"""Returns the passages of the page at an address from a corpus that the asker may read; empty if it is in none."""
MOST_PAGES = 10  # of one search
SPARE = 2  # addresses requested for each page to read, as some cannot be read
PATIENCE = 3  # a page's server must answer within this fraction of the seconds: 1/3
RECENT_SECONDS, MOST_RECENT = 60.0, 64
REST_SECONDS = 30.0  # how long searches that need not succeed leave out an engine that failed
FAIR_SECONDS = 1.0  # a search that had less time says nothing about its engine
_THREADS = 16
_OUTAGE_HINT = "Ask again; if it keeps failing, check that this machine can reach the web."

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ReadingBounds:
    """Limits for reading the pages that an engine finds."""

    agent: str  # the User-Agent
    seconds: float = 10.0  # for the engine and all pages together
    page_tokens: int = 256  # of each page's beginning
    hosts: tuple[str, ...] = ()  # hosts that may be read although they are not on the public web


class WebSearch:
    """One engine, and the threads that fetch and read pages for it. It is used as a `with` block."""

    def __init__(
        self,
        engine: SearchEngine,
        bounds: ReadingBounds,
        *,
        resolve: Resolve = resolve_host,
        now: Clock = utc_now,
        sandbox: Sandbox | None = None,
    ) -> None:
        self.corpus = f"{WEB_PREFIX}{engine.name}"
        self._engine, self._bounds, self._resolve, self._now = engine, bounds, resolve, now
        self._sandbox = sandbox or Sandbox(PAGE_LIMITS)
        self._stack = ExitStack()
        self._clients = set[WebClient]()
        self._hosts = WeakValueDictionary[str, asyncio.Lock]()
        self._recent = dict[str, tuple[float, Page | Exception]]()  # by address: when it expires, and the result
        self._rests_until = 0.0

    def __enter__(self) -> Self:
        self._fetching = self._stack.enter_context(ThreadPool("web search", threads=_THREADS))
        self._stack.enter_context(self._sandbox)
        self._reading = self._stack.enter_context(ThreadPool("web pages"))
        return self

    def __exit__(self, *_error: object) -> None:
        for client in tuple(self._clients):
            client.stop()
        self._sandbox.stop()
        self._stack.close()

    async def search(
        self,
        query: str,
        pages: int,
        skip: Collection[str] = (),
        time: QueryTime = None,
        *,
        local: FindLocal | None = None,
        seconds: float | None = None,
    ) -> tuple[Hit, ...]:
        """Return passages from the beginnings of up to `pages` pages, in the engine's order; skip addresses in `skip`.

        Pages of another time than `time` follow only if the engine knows fewer of that time. A page that is in a corpus
        is not fetched: `local` finds it. With `seconds`, the search ends earlier.

        Raises:
            SourceUnavailable: The engine failed, or none of the pages that it found can be read.
        """
        pages = min(pages, MOST_PAGES)
        most = self._bounds.seconds if seconds is None else min(seconds, self._bounds.seconds)
        deadline = asyncio.get_running_loop().time() + most
        # Started during the engine's search, because starting a process takes longer than reading a page.
        warming = asyncio.ensure_future(self._reading.run(warm_up, self._sandbox))
        warming.add_done_callback(_note_failed_start)
        limits = self._engine.limit_time(time, self._now().date())
        named = await self.find(query, SPARE * pages, limits, deadline)
        if limits and len(named) < pages:
            named += await self.find(query, SPARE * pages, EMPTY, deadline)
        candidates = enumerate(url for url in dict.fromkeys(named) if url not in skip)
        read, outages = dict[int, tuple[Hit, ...]](), list[Exception]()

        async def fill_place() -> None:
            for place, url in candidates:
                try:
                    stored = await local(url) if local else ()
                    hits = self._shorten(stored) if stored else await self._read(url, skip)
                    read[place] = tuple(replace(hit, score=1 / (place + 1)) for hit in hits)
                except Exception as error:  # noqa: BLE001 - no error of one page may affect the others
                    _log_skipped(url, error)
                    outages.extend([error] * isinstance(error, SourceUnavailable))
                else:
                    return

        try:
            async with asyncio.timeout_at(deadline), asyncio.TaskGroup() as group:
                for _ in range(pages):
                    group.create_task(fill_place())
        except TimeoutError as error:
            outages.append(error)
        if not read and outages:
            hint = next((error.hint for error in outages if isinstance(error, PrivateAddress)), _OUTAGE_HINT)
            message = f"None of the pages that the search engine {self._engine.name} found could be read."
            raise SourceUnavailable(message, hint=hint) from outages[0]
        return tuple(hit for place in sorted(read) for hit in read[place])

    def refuse_while_resting(self) -> None:
        """Raise `SourceUnavailable` if the engine has just failed. For searches that need not succeed."""
        if asyncio.get_running_loop().time() < self._rests_until:
            message = f"The search engine {self._engine.name} failed less than {REST_SECONDS:g} seconds ago."
            raise SourceUnavailable(message, hint=_OUTAGE_HINT)

    async def find(
        self, query: str, count: int, limits: QueryParams = EMPTY, deadline: float | None = None
    ) -> tuple[str, ...]:
        """Return the addresses that the engine finds. Raises `SourceUnavailable`."""
        client, name = self._engine.open_client(), self._engine.name
        begun = asyncio.get_running_loop().time()
        deadline = begun + self._bounds.seconds if deadline is None else deadline
        try:
            async with asyncio.timeout_at(deadline):
                return await self._fetch(client, partial(self._engine.find, client, query, count, limits))
        except SourceUnavailable:
            self._rests_until = begun + REST_SECONDS
            raise
        except TimeoutError as error:
            self._rests_until = begun + REST_SECONDS * (deadline - begun >= FAIR_SECONDS)
            hint = "Check that it is running, or raise seconds or wait_seconds in [search_engine] if it is slow."
            raise SourceUnavailable(f"The search engine {name} did not answer in time.", hint=hint) from error

    def _shorten(self, hits: tuple[Hit, ...]) -> tuple[Hit, ...]:
        """Return the first passages of a page, with at most as many tokens as are read of others, but at least one."""
        sizes = accumulate(count_tokens(hit.passage.text) for hit in hits)
        return hits[: max(1, sum(size <= self._bounds.page_tokens for size in sizes))]

    async def _read(self, url: str, skip: Collection[str]) -> tuple[Hit, ...]:
        page = await self._load(url)
        if page.url in skip:
            raise UnreadableDocument("redirects to a page that was forgotten")
        document = Document(self.corpus, page.url, page.title, page.url, page.revision, page.date, page.language)
        return tuple(Hit(passage, document, 0.0) for passage in split_page(self.corpus, page.url, page))

    async def _load(self, url: str) -> Page:
        """Return a page. Concurrent searches share one request for it, even if the request fails."""
        async with self._hosts.setdefault(urlsplit(url).netloc, asyncio.Lock()):
            now = asyncio.get_running_loop().time()
            until, loaded = self._recent.get(url, (now, None))
            if loaded is None or until <= now:
                try:
                    loaded = await self._fetch_page(url)
                except (UnreadableDocument, SourceUnavailable) as error:
                    loaded = error
                self._recent[url] = (now + RECENT_SECONDS, loaded)
                for oldest in list(self._recent)[:-MOST_RECENT]:
                    del self._recent[oldest]
        if isinstance(loaded, Exception):
            raise loaded
        return loaded

    async def _fetch_page(self, url: str) -> Page:
        client = self._open_client()
        fetched = await self._fetch(client, partial(fetch_page, client, url))
        tokens = self._bounds.page_tokens
        return await self._reading.run(read_page, self._sandbox, fetched, tokens, self._now())

    def _open_client(self) -> WebClient:
        policy = RequestPolicy(
            self._bounds.agent,
            gap=0.0,
            tries=1,
            longest_wait=0.0,
            seconds=self._bounds.seconds / PATIENCE,
            largest=LARGEST_PAGE,
        )
        return WebClient(policy, transport=PublicTransport(self._bounds.hosts, resolve=self._resolve))

    async def _fetch(self, client: WebClient, work: Callable[[], T]) -> T:
        """Run `work`, which uses `client`, in a thread. If the caller is cancelled, the client is stopped."""
        self._clients.add(client)
        try:
            return await self._fetching.run(_run_within, client, work)
        except asyncio.CancelledError:
            client.stop()
            raise
        finally:
            self._clients.discard(client)


def _note_failed_start(warming: "asyncio.Future[None]") -> None:
    if not warming.cancelled() and (error := warming.exception()):
        log.info("cannot start the page reader", extra={"cause": str(error)})


def _run_within(client: WebClient, work: Callable[[], T]) -> T:
    with client:
        return work()


def _log_skipped(url: str, error: Exception) -> None:
    expected = isinstance(error, UnreadableDocument | SourceUnavailable)
    cause = str(error) if expected else describe_error(error)
    log.info("page skipped", extra={"page": format_url(url), "cause": cause})
