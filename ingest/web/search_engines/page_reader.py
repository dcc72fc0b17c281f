"""Fetch a page that a search engine names, and read its beginning: politely, within bounds, and trusting none of it.

Robots.txt is asked before each site's first page, redirects to another site included. Only what is text is read, in a
process of its own, and no more of it than a model is shown.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

import httpx

from ingest.chunking import LARGEST_PASSAGE, measure_words, split_block
from ingest.page_cleanup import clean_page
from ingest.readers import file_formats
from ingest.sandbox import Sandbox, SandboxLimits
from ingest.sources.sites.site_page import declare_encoding, derive_file_name, join_url, parse_page_metadata
from ingest.sources.sites.sitemap import fetch_robots, get_origin, resolve_page_url
from ingest.types import Block, Page, Section, UnreadableDocument
from ingest.web.http_reply import AccessDenied, ResponseTooLarge, parse_http_date
from ingest.web.public_network import PrivateAddress
from ingest.web.search_engines.engine import normalize_address
from ingest.web.web_client import WebClient, WebResponse

PAGE_LIMITS = SandboxLimits(seconds=4.0, memory=512 << 20, clock=8.0)
LARGEST_PAGE = 4 << 20  # bytes, unpacked
_MOST_SITES = 3  # so many sites a page may lead through
_LONGEST_HEADING = 200  # characters
_TOKENS_A_WORD = 4 / 3
_ACCEPT = "text/html, application/xhtml+xml, text/plain;q=0.8, application/pdf;q=0.5"
_READ_TYPES = frozenset(
    {"text/html", "application/xhtml+xml", "text/plain", "text/markdown", "application/pdf", "application/x-pdf"}
)


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """What a server sent for an address."""

    url: str  # where it was found in the end
    content: bytes
    content_type: str
    modified: datetime | None


def fetch_page(web: WebClient, url: str) -> FetchedPage:
    """Get a page as far as it may be had. Blocks.

    Raises:
        UnreadableDocument: It may not be read, or is nothing that is read here.
        SourceUnavailable: Its server cannot be reached, or reading was stopped.
    """
    for _ in range(_MOST_SITES):
        reply = _request(web, url)
        location = reply.headers.get("location", "")
        if not (httpx.codes.is_redirect(reply.status) and location):
            return _accept(reply)
        url = normalize_address(join_url(reply.url, location))
        if not url:
            raise UnreadableDocument("leads to no address of the web")
    raise UnreadableDocument("leads through too many sites")


def _request(web: WebClient, url: str) -> WebResponse:
    origin = get_origin(url)
    try:
        allows = fetch_robots(web, origin).allows
        if not allows(url):
            raise UnreadableDocument("its site asks robots not to read it")
        return web.get(
            url, accept=_ACCEPT, follow=lambda target: bool(resolve_page_url(origin, target)) and allows(target)
        )
    except (AccessDenied, PrivateAddress, ResponseTooLarge) as error:
        raise UnreadableDocument(str(error)) from error


def _accept(reply: WebResponse) -> FetchedPage:
    kind = reply.headers.get("content-type", "")
    if reply.status != httpx.codes.OK:
        raise UnreadableDocument(f"answers HTTP {reply.status}")
    if kind.partition(";")[0].strip().lower() not in _READ_TYPES:
        raise UnreadableDocument("is no page of text")
    modified = parse_http_date(reply.headers.get("last-modified", ""))
    return FetchedPage(normalize_address(reply.url), reply.content, kind, modified)


def read_page(sandbox: Sandbox, fetched: FetchedPage, tokens: int, now: datetime) -> Page:
    """Read the first tokens of a page in a process of its own. Blocks; raises as `Sandbox.page` does."""
    return sandbox.done(partial(read_beginning, fetched, tokens, now))


def read_beginning(fetched: FetchedPage, tokens: int, now: datetime) -> Page:
    """Read the first tokens of a page. Raises `UnreadableDocument`, and whatever a broken page makes of its reader."""
    name = derive_file_name(fetched.url, fetched.content_type)
    is_markup = name.endswith((".html", ".htm", ".xhtml"))
    content = declare_encoding(fetched.content, fetched.content_type) if is_markup else fetched.content
    if is_markup and parse_page_metadata(content, fetched.url, {}).asks_to_log_in:
        raise UnreadableDocument("asks to log in")
    page = file_formats.read_file(content, name, url=fetched.url, modified=fetched.modified)
    # The page may be gone tomorrow: what is cited of it is what was read that day.
    return take_beginning(clean_page(replace(page, revision=f"read {now.astimezone(UTC):%Y-%m-%d}")), tokens)


def count_tokens(text: str) -> int:
    """Estimate what a model reads: a token is about three quarters of a word."""
    return math.ceil(measure_words(text) * _TOKENS_A_WORD)


def take_beginning(page: Page, tokens: int) -> Page:
    """Return a page's first sentences, lines and rows, of no more than so many tokens. Pure.

    Raises `UnreadableDocument` where not even the first fits.
    """
    taken = _make_taker(tokens)
    sections = tuple(
        Section(tuple(_shorten(heading) for heading in section.path), blocks)
        for section in page.sections
        if (blocks := tuple(filter(lambda block: block.text, map(taken, section.blocks))))
    )
    if not sections:
        raise UnreadableDocument("begins with no sentence that could be quoted")
    return replace(page, title=_shorten(page.title), sections=sections, aliases=())


def _make_taker(tokens: int) -> Callable[[Block], Block]:
    left = tokens

    def take(block: Block) -> Block:
        nonlocal left
        return Block("".join(pieces(block)).strip("\n"), block.kind)

    def pieces(block: Block) -> Iterator[str]:
        nonlocal left
        for piece in split_block(block, LARGEST_PASSAGE) if left > 0 else ():
            size = count_tokens(piece.text)
            if size > left:
                left = 0
                return
            left -= size
            yield piece.glue + piece.text

    return take


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_HEADING else f"{text[: _LONGEST_HEADING - 1]}…"
