"""Fetch a page that a search engine has found, and read its beginning, within limits.

The robots.txt of a site is read before its first page, also after a redirect to another site. Only text is read, in the
sandbox, and no more than a model is shown.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import httpx

from ingest.sandbox import Sandbox, SandboxLimits
from ingest.sources.sites.page_metadata import declare_encoding, derive_file_name, join_url
from ingest.sources.sites.sitemap import fetch_robots, get_origin, resolve_page_url
from ingest.types import Page, UnreadableDocument
from ingest.web.http_reply import AccessDenied, ResponseTooLarge, parse_http_date
from ingest.web.search_engines.engine import normalize_address
from ingest.web.search_engines.page_beginning import read_beginning, read_nothing
from ingest.web.web_client import WebClient, WebResponse

PAGE_LIMITS = SandboxLimits(seconds=4.0, memory=512 << 20, clock=8.0)
LARGEST_PAGE = 4 << 20  # bytes, unpacked
_MOST_SITES = 3  # that an address may redirect through
_ACCEPT = "text/html, application/xhtml+xml, text/plain;q=0.8, application/pdf;q=0.5"
_READ_TYPES = frozenset(
    {"text/html", "application/xhtml+xml", "text/plain", "text/markdown", "application/pdf", "application/x-pdf"}
)


@dataclass(frozen=True, slots=True)
class FetchedPage:
    url: str  # after redirects
    content: bytes
    content_type: str
    modified: datetime | None


def fetch_page(web: WebClient, url: str) -> FetchedPage:
    """Fetch a page, if its site allows that. Blocks.

    Raises:
        UnreadableDocument: The page may not be read, does not exist, or is not text.
        SourceUnavailable: Its server cannot or must not be reached, or reading was stopped.
    """
    for _ in range(_MOST_SITES):
        reply = _request(web, url)
        location = reply.headers.get("location", "")
        if not (httpx.codes.is_redirect(reply.status) and location):
            return _accept(reply)
        url = normalize_address(join_url(reply.url, location))
        if not url:
            raise UnreadableDocument("redirects to an invalid address")
    raise UnreadableDocument("redirects through too many sites")


def _request(web: WebClient, url: str) -> WebResponse:
    origin = get_origin(url)
    try:
        allows = fetch_robots(web, origin).allows
        if not allows(url):
            raise UnreadableDocument("robots.txt disallows it")
        return web.get(
            url, accept=_ACCEPT, follow=lambda target: bool(resolve_page_url(origin, target)) and allows(target)
        )
    except (AccessDenied, ResponseTooLarge) as error:
        raise UnreadableDocument(str(error)) from error


def _accept(reply: WebResponse) -> FetchedPage:
    kind = reply.headers.get("content-type", "")
    if reply.status != httpx.codes.OK:
        raise UnreadableDocument(f"answers HTTP {reply.status}")
    if kind.partition(";")[0].strip().lower() not in _READ_TYPES:
        raise UnreadableDocument("is not text")
    modified = parse_http_date(reply.headers.get("last-modified", ""))
    return FetchedPage(normalize_address(reply.url), reply.content, kind, modified)


def read_page(sandbox: Sandbox, fetched: FetchedPage, tokens: int, now: datetime) -> Page:
    """Read the first tokens of a page in the sandbox. Blocks; raises as `Sandbox.page` does."""
    name = derive_file_name(fetched.url, fetched.content_type)
    is_markup = name.endswith((".html", ".htm", ".xhtml"))
    content = declare_encoding(fetched.content, fetched.content_type) if is_markup else fetched.content
    page = sandbox.call(partial(read_beginning, content, name, fetched.url, fetched.modified, tokens))
    # The page may be deleted tomorrow, so its citation is dated by the day it was read.
    return replace(page, revision=f"read {now.astimezone(UTC):%Y-%m-%d}")


def warm_up(sandbox: Sandbox) -> None:
    """Start the sandbox's process before it is needed for a page. Blocks."""
    sandbox.call(read_nothing)
