"""Ask a search engine for the addresses of pages: SearXNG by its JSON, Brave by its API.

Of an engine's results only the addresses are used, because titles and summaries are not evidence. If an engine fails,
an error is raised, so that this is not mistaken for a search without results.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from types import MappingProxyType
from typing import Any, Protocol

import httpx

from ingest.types import EMPTY, SourceUnavailable
from ingest.web.http_reply import AccessDenied, parse_json_object
from ingest.web.search_engines.wiki_address import parse_wiki_address
from ingest.web.web_client import QueryParams, RequestPolicy, WebClient, WebResponse, is_web_address
from storage.types import QueryTime

LONGEST_QUERY, MOST_WORDS = 400, 50  # characters and words that Brave accepts
MOST_RESULTS = 20
FIRST_YEAR = 1995  # earlier years limit no search: hardly any page is older
_LONGEST_ADDRESS = 2_000
_LARGEST_REPLY = 4 << 20


class SearchEngine(Protocol):
    @property
    def name(self) -> str: ...

    def open_client(self) -> WebClient:
        """Return a client for one search. The client may be stopped from another thread."""
        ...

    def limit_time(self, time: QueryTime, today: date) -> QueryParams:
        """Return the parameters that limit a search to pages of a time; none if the engine has none for it."""
        ...

    def find(self, web: WebClient, query: str, count: int, limits: QueryParams = EMPTY) -> tuple[str, ...]:
        """Return the addresses of about `count` pages, best first. Blocks. Raises `SourceUnavailable`."""
        ...


@dataclass(frozen=True, slots=True)
class EngineAccess:
    """An engine's address, and the parameters of its requests."""

    url: str = field(repr=False)
    agent: str
    api_key: str = field(default="", repr=False)
    seconds: float = 10.0

    def open_client(self, headers: Mapping[str, str], credential: str) -> WebClient:
        policy = RequestPolicy(
            self.agent, gap=0.0, tries=2, longest_wait=2.0, seconds=self.seconds, largest=_LARGEST_REPLY
        )
        return WebClient(policy, headers=headers if self.api_key else EMPTY, credential=credential)


_KEY = "[search_engine] api_key"


@dataclass(frozen=True, slots=True)
class SearxngEngine:
    """SearXNG on a server of your own; most public ones do not answer with JSON."""

    access: EngineAccess
    name: str = "searxng"

    def open_client(self) -> WebClient:
        # Its own API has no keys; a key is for a proxy in front of it.
        return self.access.open_client({"Authorization": f"Bearer {self.access.api_key}"}, _KEY)

    def limit_time(self, time: QueryTime, today: date) -> QueryParams:
        """Return `time_range`: the last day, week, month or year; other values are refused with HTTP 400.

        Of the engines behind it, SearXNG then asks only those that know time ranges
        (https://docs.searxng.org/dev/search_api.html; `parse_time_range` in its webadapter.py).
        """
        return {"time_range": "year"} if time in {"recent", today.year} else EMPTY

    def find(self, web: WebClient, query: str, count: int, limits: QueryParams = EMPTY) -> tuple[str, ...]:
        address = f"{self.access.url.rstrip('/')}/search"
        try:
            reply = ask_engine(web, address, {"q": shorten_query(query), "format": "json", **limits})
        except AccessDenied as error:
            hint = 'Add "json" to search.formats in its settings.yml, or check api_key in [search_engine].'
            raise SourceUnavailable(str(error), hint=hint) from error
        body = read_reply(reply, self.name)
        addresses = list_addresses([*list_articles(body.get("infoboxes")), *_as_list(body.get("results"))], count)
        silent = body.get("unresponsive_engines")
        if not addresses and silent:
            hint = "Check its statistics, or enable other engines in it."
            raise SourceUnavailable("None of SearXNG's engines answered.", hint=hint)
        return addresses


@dataclass(frozen=True, slots=True)
class BraveEngine:
    """Brave's web search API, which requires a key."""

    access: EngineAccess
    name: str = "brave"

    def open_client(self) -> WebClient:
        return self.access.open_client({"X-Subscription-Token": self.access.api_key}, _KEY)

    def limit_time(self, time: QueryTime, today: date) -> QueryParams:
        """Return `freshness`: `pd`, `pw`, `pm`, `py` (24 hours, 7, 31, 365 days), or `YYYY-MM-DDtoYYYY-MM-DD`.

        It is compared with the day on which Brave discovered a page, so pages about a year may be as new as today
        (https://api-dashboard.search.brave.com/api-reference/web/search/get).
        """
        if isinstance(time, int):
            return {"freshness": f"{time}-01-01to{today}"} if FIRST_YEAR <= time <= today.year else EMPTY
        return {"freshness": "py"} if time else EMPTY

    def find(self, web: WebClient, query: str, count: int, limits: QueryParams = EMPTY) -> tuple[str, ...]:
        params: QueryParams = {"q": shorten_query(query), "count": min(count, MOST_RESULTS), "result_filter": "web"}
        reply = ask_engine(web, self.access.url, {**params, **limits})
        if reply.status == httpx.codes.UNPROCESSABLE_ENTITY:  # also its response to a wrong key
            hint = f"Check {_KEY}: it may be mistyped, or for another plan."
            raise SourceUnavailable("Brave rejects the request.", hint=hint)
        web_results = read_reply(reply, self.name).get("web")
        return list_addresses(web_results.get("results") if isinstance(web_results, Mapping) else None, count)


ENGINES: Mapping[str, Callable[[EngineAccess], SearchEngine]] = MappingProxyType(
    {"searxng": SearxngEngine, "brave": BraveEngine}
)
"""Search engines by their names, which are the values of the setting `type`."""


def shorten_query(query: str) -> str:
    """Return the first words of a query, as many as every engine accepts."""
    return " ".join(query.split()[:MOST_WORDS])[:LONGEST_QUERY]


def ask_engine(web: WebClient, url: str, params: QueryParams) -> WebResponse:
    """Send a query. Raises `SourceUnavailable`, with a hint for searches: the usual one is for refreshes."""
    try:
        return web.get(url, params, "application/json")
    except AccessDenied:
        raise
    except SourceUnavailable as error:
        hint = "Ask again; if it keeps failing, check [search_engine] url, and that this machine can reach it."
        raise SourceUnavailable(str(error), hint=hint) from error


def read_reply(reply: WebResponse, name: str) -> Mapping[str, Any]:
    """Parse an engine's response, which must be a JSON object. Raises `SourceUnavailable` for anything else."""
    if reply.status != httpx.codes.OK:
        hint = "Check [search_engine] url, and the engine's own log."
        raise SourceUnavailable(f"The search engine {name} answers HTTP {reply.status}.", hint=hint)
    body = parse_json_object(reply.content)
    if body is None:
        hint = "Check [search_engine] url: it may be the engine's web page instead of its API."
        raise SourceUnavailable(f"The search engine {name} does not answer with JSON.", hint=hint)
    return body


def list_articles(boxes: object) -> list[Mapping[str, Any]]:
    """Return as results the Wikipedia articles that have SearXNG's infoboxes; by default, it lists them nowhere else.

    It makes one if an article has the query as its title (`display_type` in its wikipedia.py; `id` is the address).
    """
    named = (box.get("id") for box in _as_list(boxes) if isinstance(box, Mapping))
    return [{"url": url} for url in named if isinstance(url, str) and parse_wiki_address(url)]


def _as_list(value: object) -> Sequence[Any]:
    return value if isinstance(value, list) else ()


def list_addresses(results: object, count: int) -> tuple[str, ...]:
    """Return the valid web addresses among the results, each once. Pure."""
    named = (result.get("url") for result in _as_list(results) if isinstance(result, Mapping))
    return tuple(dict.fromkeys(filter(None, map(normalize_address, named))))[:count]


def normalize_address(url: object) -> str:
    """Return a page's address without its fragment; empty if it is not a web address or contains a password."""
    if not isinstance(url, str) or len(url) > _LONGEST_ADDRESS:
        return ""
    try:
        address = httpx.URL(url.strip())
    except (httpx.InvalidURL, UnicodeError):
        return ""
    if not is_web_address(address) or address.userinfo:
        return ""
    return str(address.copy_with(fragment=None)).replace("|", "%7C")
