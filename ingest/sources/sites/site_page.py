"""Fetch the pages of a site, and decide whether each response is the page: some sites answer errors with status 200.

These are not accepted as the page: a redirect to another page, a login page, a response equal to that for an address
that does not exist, and a response equal to another page. Reading ends after several refused pages in a row.
"""

import hashlib
import re
import secrets
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx

from ingest.readers.file_formats import READER_VERSION
from ingest.sandbox import Sandbox
from ingest.sources.sites.page_metadata import PageMetadata, declare_encoding, derive_file_name, parse_page_metadata
from ingest.sources.sites.sitemap import SitemapEntry, make_page_key, resolve_page_url
from ingest.types import (
    ChangedDocument,
    DeletedDocument,
    ListedItem,
    Page,
    ReadingStopped,
    SourceUnavailable,
    Unreadable,
    UnreadableDocument,
    list_unchanged,
)
from ingest.web.http_reply import AccessDenied, ResponseTooLarge, parse_http_date
from ingest.web.web_client import WebClient, WebResponse
from storage.language.lazy_pattern import lazy_compile

# Text that changes with every request: times, dates, request ids. Other numbers may be the page's only content.
_MOMENT_TEXT = lazy_compile(r"\d{1,2}:\d{1,2}(?::\d\d)?|\b\d{1,4}([-./])\d{1,2}\1\d{1,4}\b|\b(?=[a-f]*\d)[\da-f]{8,}\b")


def make_page_signature(page: Page, url: str) -> bytes:
    """Return a hash of a page's text without its address and times; two addresses may show the same page."""
    text = " ".join(block.text for section in page.sections for block in section.blocks).lower()
    for part in (url.lower(), urlsplit(url).path.lower(), *urlsplit(url).path.lower().split("/")):
        if len(part) > 1:
            text = text.replace(part, "")
    return hashlib.sha256(re.sub(r"[\W_]+", " ", _MOMENT_TEXT.sub(" ", text)).encode()).digest()[:12]


_ACCEPT = "text/html, application/xhtml+xml, application/pdf;q=0.9, */*;q=0.5"
_MOST_REFUSALS = 5  # refused pages in a row before reading ends
_GONE_STATUSES = frozenset({httpx.codes.NOT_FOUND, httpx.codes.GONE})
_CONDITIONS = {" etag-": "If-None-Match", " modified-": "If-Modified-Since"}


@dataclass(frozen=True, slots=True)
class _FetchedPage:
    document: ChangedDocument
    signature: bytes


class PageFetcher:
    """Fetches the pages of one site in order. A known page is held back until the next one can be compared with it."""

    def __init__(
        self, web: WebClient, sandbox: Sandbox, origin: str, may_read: Callable[[str], bool], listed: Collection[str]
    ) -> None:
        """Fetch the pages that `may_read` allows. `listed` are the keys of all pages of the site."""
        self._web, self._sandbox, self._origin, self._may_read, self._listed = web, sandbox, origin, may_read, listed
        self._seen: dict[bytes, str] = {}
        self._waiting: _FetchedPage | None = None
        self._refused = 0
        self._missing_signature: bytes | None = None

    def items(self, key: str, entry: SitemapEntry, known: str = "", stamp: str = "") -> Iterator[ListedItem]:
        """Fetch one page, and yield the items that are now certain. The page itself may be held back until the next.

        `known` is the page's previous fingerprint, if any. `stamp` is its current one, if that is known in advance.
        """
        fetched = self._fetch(key, entry, known, stamp)
        if isinstance(fetched, _FetchedPage):
            yield from self._compare(fetched, is_known=bool(known))
        else:
            yield fetched

    def last(self) -> Iterator[ListedItem]:
        if self._waiting:
            yield self._waiting.document
        self._waiting = None

    def _compare(self, page: _FetchedPage, *, is_known: bool) -> Iterator[ListedItem]:
        key, previous = page.document.key, self._waiting
        other = self._seen.get(page.signature, "")
        # Some sites show their front page at missing addresses: a new front page is accepted all the same.
        if (key != self._origin or is_known) and page.signature == self._missing_page_signature():
            yield Unreadable(key, "equals the site's response to addresses that do not exist")
        elif not other:
            yield from self.last()
            self._seen[page.signature] = key
            # A new page replaces nothing, so it need not wait for the next one.
            if is_known:
                self._waiting = page
            else:
                yield page.document
        else:
            if previous and previous.signature == page.signature:
                self._waiting = None
                yield Unreadable(previous.document.key, f"has the same text as {key}, as error and login pages do")
            yield Unreadable(key, f"has the same text as {other}, as error and login pages do")

    def _missing_page_signature(self) -> bytes:
        """Return the signature of the response for an address that does not exist; empty if its status is an error."""
        if self._missing_signature is None:
            self._missing_signature = b""
            url = f"{self._origin}/{secrets.token_hex(12)}"
            reply = self._request("", url, "") if self._may_read(url) else None
            if isinstance(reply, WebResponse) and reply.status == httpx.codes.OK and reply.url == url:
                page = _read_page(self._sandbox, reply, SitemapEntry(url), url)
                self._missing_signature = make_page_signature(page, url) if isinstance(page, Page) else b""
        return self._missing_signature

    def _fetch(self, key: str, entry: SitemapEntry, known: str, stamp: str) -> "_FetchedPage | ListedItem":
        reply = self._request(key, entry.url, "" if stamp else known)
        if not isinstance(reply, WebResponse):
            return reply
        if reply.status == httpx.codes.NOT_MODIFIED and known:
            return list_unchanged(key, known)
        if reply.status in _GONE_STATUSES:
            return DeletedDocument(key)
        if reply.status != httpx.codes.OK:
            is_redirect = httpx.codes.is_redirect(reply.status)
            return Unreadable(key, f"answers HTTP {reply.status}{', a redirect that is not followed' * is_redirect}")
        if _normalize_url(entry.url) != _normalize_url(reply.url):
            return self._explain_redirect(key, reply.url)
        return self._accept(key, entry, reply, known, stamp)

    def _accept(
        self, key: str, entry: SitemapEntry, reply: WebResponse, known: str, stamp: str
    ) -> "_FetchedPage | ListedItem":
        metadata = _read_metadata(reply)
        if metadata.noindex:
            return DeletedDocument(key)
        if metadata.asks_to_log_in:
            return Unreadable(key, "asks to log in")
        url = entry.url
        if canonical := resolve_page_url(self._origin, metadata.canonical):
            better = make_page_key(canonical)
            # Ignore canonical links of all pages to the front page.
            if better != key and better in self._listed and better != self._origin:
                return DeletedDocument(key)
            url = canonical if better != self._origin else url
        fingerprint = stamp or _make_fingerprint(reply)
        if fingerprint == known:
            return list_unchanged(key, known)
        page = _read_page(self._sandbox, reply, entry, url)
        if isinstance(page, str):
            return Unreadable(key, page)
        return _FetchedPage(
            ChangedDocument(key, fingerprint, len(reply.content), lambda: page), make_page_signature(page, entry.url)
        )

    def _explain_redirect(self, key: str, url: str) -> ListedItem:
        """Report a page as deleted if it redirects to a listed page; otherwise as unreadable, as it may be a login."""
        target = make_page_key(resolve_page_url(self._origin, url))
        if target in self._listed and target != self._origin:
            return DeletedDocument(key)
        return Unreadable(key, f"redirects to {urlsplit(url).path}, which is another page")

    def _request(self, key: str, url: str, known: str) -> WebResponse | Unreadable:
        headers = {
            name: known.partition(kind)[0]
            for kind, name in _CONDITIONS.items()
            if known.endswith(kind + READER_VERSION)
        }
        try:
            reply = self._web.get(
                url,
                accept=_ACCEPT,
                headers=headers,
                follow=lambda target: bool(resolve_page_url(self._origin, target)) and self._may_read(target),
            )
        except ReadingStopped:
            raise
        except ResponseTooLarge as error:
            return Unreadable(key, str(error))
        except SourceUnavailable as error:
            self._refused += 1
            if self._refused >= _MOST_REFUSALS:
                raise
            failure = "denies access" if isinstance(error, AccessDenied) else "cannot be fetched now"
            return Unreadable(key, f"{failure}: {error}")
        self._refused = 0
        return reply


def _read_metadata(reply: WebResponse) -> PageMetadata:
    kind = reply.headers.get("content-type", "").lower()
    is_html = "html" in kind or (not kind and reply.content.lstrip()[:1] == b"<")
    return parse_page_metadata(reply.content if is_html else b"", reply.url, reply.headers)


def _make_fingerprint(reply: WebResponse) -> str:
    etag, modified = reply.headers.get("etag", "").strip(), reply.headers.get("last-modified", "").strip()
    if etag:
        return f"{etag} etag-{READER_VERSION}"
    if modified:
        return f"{modified} modified-{READER_VERSION}"
    return f"{hashlib.sha256(reply.content).hexdigest()[:32]} hash-{READER_VERSION}"


def _read_page(sandbox: Sandbox, reply: WebResponse, entry: SitemapEntry, url: str) -> Page | str:
    """Read a response, or return the reason why it cannot be read."""
    kind = reply.headers.get("content-type", "")
    name = derive_file_name(entry.url, kind)
    content = declare_encoding(reply.content, kind) if name.endswith(".html") else reply.content
    revision = f"sha256:{hashlib.sha256(reply.content).hexdigest()[:12]}"
    try:
        return sandbox.page(
            content,
            name,
            url=url,
            revision=revision,
            modified=entry.changed or parse_http_date(reply.headers.get("last-modified", "")),
        )
    except UnreadableDocument as error:
        return str(error)


def _normalize_url(url: str) -> tuple[str, str]:
    parts = urlsplit(str(httpx.URL(url)))
    path = parts.path.lower().rstrip("/")
    for ending in ("/index.html", "/index.htm", "/index.php", ".html", ".htm"):
        path = path.removesuffix(ending)
    return path, parts.query
