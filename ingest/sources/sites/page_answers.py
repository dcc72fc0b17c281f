"""What a site answers for its pages, and whether each answer is the page: some sites answer anything with a smile.

Never taken for a page: what another address answers that leads elsewhere, what asks to log in, what an address answers
that does not exist, and what says the same as another page. A site that refuses page after page is left alone.
"""

import hashlib
import secrets
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from urllib.parse import urlsplit

import httpx

from ingest.apart.reading import Apart
from ingest.converting import READER_VERSION
from ingest.sources.sites.kept import kept
from ingest.sources.sites.sitemap_file import Entry
from ingest.sources.sites.sitemap_list import address_of, key_of
from ingest.sources.sites.web_page import Marks, likeness, marks, name_of, with_encoding
from ingest.types import Found, Gone, Item, Page, SourceUnavailable, Unreadable, UnreadableDocument
from ingest.web.errors import Denied, ReplyTooLarge, Stopped
from ingest.web.fetching import Reply, Web

_ACCEPT = "text/html, application/xhtml+xml, application/pdf;q=0.9, */*;q=0.5"
_MOST_REFUSED = 5
"""Pages in a row that may not be had before the site is left alone."""
_GONE = frozenset({httpx.codes.NOT_FOUND, httpx.codes.GONE})
_CONDITIONS = {" etag-": "If-None-Match", " modified-": "If-Modified-Since"}


@dataclass(frozen=True, slots=True)
class _Read:
    """A page that was read, and what is the same for all that say the same."""

    found: Found
    likeness: bytes


class Answers:
    """Gets the pages of one site, one after the other; the last one is only told of once the next is seen."""

    def __init__(
        self, web: Web, apart: Apart, origin: str, may_read: Callable[[str], bool], listed: Collection[str]
    ) -> None:
        """Read what `may_read` allows.

        Args:
            web: The way there.
            apart: What reads the pages.
            origin: The address of the site, up to the path.
            may_read: What robots.txt allows, by address.
            listed: The keys of all pages that are listed.
        """
        self._web, self._apart, self._origin, self._may_read, self._listed = web, apart, origin, may_read, listed
        self._seen: dict[bytes, str] = {}
        self._waiting: _Read | None = None
        self._refused = 0
        self._nowhere: bytes | None = None

    def items(self, key: str, entry: Entry, known: str = "", stamp: str = "") -> Iterator[Item]:
        """Get one page, and yield what is settled by it: perhaps the page before, perhaps nothing yet.

        Args:
            key: Of the page.
            entry: Where it is.
            known: Its fingerprint, if it was read before.
            stamp: Its fingerprint, if that is told already.

        Raises:
            SourceUnavailable: The site refuses page after page, or we are told to stop.
        """
        found = self._read(key, entry, known, stamp)
        if isinstance(found, _Read):
            yield from self._compared(found, is_known=bool(known))
        else:
            yield found

    def last(self) -> Iterator[Item]:
        """Yield the last page, if it was not yet."""
        if self._waiting:
            yield self._waiting.found
        self._waiting = None

    def _compared(self, read: _Read, *, is_known: bool) -> Iterator[Item]:
        key, before = read.found.key, self._waiting
        other = self._seen.get(read.likeness, "")
        # A site that shows its front page at addresses that do not exist has one, unless that is new of it.
        if (key != self._origin or is_known) and read.likeness == self._nobodys():
            yield Unreadable(key, "says what the site says at addresses that do not exist")
        elif not other:
            yield from self.last()
            self._seen[read.likeness] = key
            # What was never read replaces nothing: it need not wait for the next one.
            if is_known:
                self._waiting = read
            else:
                yield read.found
        else:
            if before and before.likeness == read.likeness:
                self._waiting = None
                yield Unreadable(before.found.key, f"says the same as {key}, as an error or a login would")
            yield Unreadable(key, f"says the same as {other}, as an error or a login would")

    def _nobodys(self) -> bytes:
        """What the site says where there is nothing; empty where it says 404, as it should."""
        if self._nowhere is None:
            self._nowhere = b""
            url = f"{self._origin}/{secrets.token_hex(12)}"
            reply = self._reply("", url, "") if self._may_read(url) else None
            if isinstance(reply, Reply) and reply.status == httpx.codes.OK and reply.url == url:
                page = _page(self._apart, reply, Entry(url), url)
                self._nowhere = likeness(page, url) if isinstance(page, Page) else b""
        return self._nowhere

    def _read(self, key: str, entry: Entry, known: str, stamp: str) -> "_Read | Item":
        reply = self._reply(key, entry.url, "" if stamp else known)
        if not isinstance(reply, Reply):
            return reply
        if reply.status == httpx.codes.NOT_MODIFIED and known:
            return kept(key, known)
        if reply.status in _GONE:
            return Gone(key)
        if reply.status != httpx.codes.OK:
            led = " to a place that is not read here" if 300 <= reply.status < 400 else ""  # noqa: PLR2004 - redirects
            return Unreadable(key, f"answers HTTP {reply.status}{led}")
        if not _same_page(entry.url, reply.url):
            return self._elsewhere(key, reply.url)
        return self._taken(key, entry, reply, known, stamp)

    def _taken(self, key: str, entry: Entry, reply: Reply, known: str, stamp: str) -> "_Read | Item":
        said = _marks(reply)
        if said.noindex:
            return Gone(key)
        if said.asks_to_log_in:
            return Unreadable(key, "asks to log in")
        url = entry.url
        if canonical := address_of(self._origin, said.canonical):
            better = key_of(canonical)
            # A site that calls all its pages the front page is mistaken.
            if better != key and better in self._listed and better != self._origin:
                return Gone(key)
            url = canonical if better != self._origin else url
        fingerprint = stamp or _fingerprint(reply)
        if fingerprint == known:
            return kept(key, known)
        page = _page(self._apart, reply, entry, url)
        if isinstance(page, str):
            return Unreadable(key, page)
        return _Read(Found(key, fingerprint, len(reply.content), lambda: page), likeness(page, entry.url))

    def _elsewhere(self, key: str, url: str) -> Item:
        """What it means that a page leads to another: moved, if that is listed; else perhaps a login."""
        target = key_of(address_of(self._origin, url))
        if target in self._listed and target != self._origin:
            return Gone(key)
        return Unreadable(key, f"leads to {urlsplit(url).path}, which is another page")

    def _reply(self, key: str, url: str, known: str) -> Reply | Unreadable:
        headers = {name: known.partition(kind)[0] for kind, name in _CONDITIONS.items() if _is_of_kind(known, kind)}
        try:
            reply = self._web.get(url, accept=_ACCEPT, headers=headers, follow=self._follows)
        except Stopped:
            raise
        except ReplyTooLarge as error:
            return Unreadable(key, str(error))
        except SourceUnavailable as error:
            self._refused += 1
            if self._refused >= _MOST_REFUSED:
                raise
            what = "does not let us in" if isinstance(error, Denied) else "cannot be had now"
            return Unreadable(key, f"{what}: {error}")
        self._refused = 0
        return reply

    def _follows(self, target: str) -> bool:
        return bool(address_of(self._origin, target)) and self._may_read(target)


def _is_of_kind(fingerprint: str, kind: str) -> bool:
    return fingerprint.endswith(kind + READER_VERSION)


def _marks(reply: Reply) -> Marks:
    kind = reply.headers.get("content-type", "").lower()
    is_html = "html" in kind or (not kind and reply.content.lstrip()[:1] == b"<")
    return marks(reply.content if is_html else b"", reply.url, reply.headers)


def _fingerprint(reply: Reply) -> str:
    etag, modified = reply.headers.get("etag", "").strip(), reply.headers.get("last-modified", "").strip()
    if etag:
        return f"{etag} etag-{READER_VERSION}"
    if modified:
        return f"{modified} modified-{READER_VERSION}"
    return f"{hashlib.sha256(reply.content).hexdigest()[:32]} hash-{READER_VERSION}"


def _page(apart: Apart, reply: Reply, entry: Entry, url: str) -> Page | str:
    """Read what was answered; why it cannot be read otherwise."""
    kind = reply.headers.get("content-type", "")
    name = name_of(entry.url, kind)
    content = with_encoding(reply.content, kind) if name.endswith(".html") else reply.content
    revision = f"sha256:{hashlib.sha256(reply.content).hexdigest()[:12]}"
    try:
        return apart.page(content, name, url=url, revision=revision, modified=entry.changed or _modified(reply))
    except UnreadableDocument as error:
        return str(error)


def _modified(reply: Reply) -> datetime | None:
    try:
        moment = parsedate_to_datetime(reply.headers.get("last-modified", ""))
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _same_page(asked: str, got: str) -> bool:
    """Whether two addresses differ only as servers mend them: by a slash, a case, or the name of an index."""
    return _mended(asked) == _mended(got)


def _mended(url: str) -> tuple[str, str]:
    parts = urlsplit(str(httpx.URL(url)))
    path = parts.path.lower().rstrip("/")
    for ending in ("/index.html", "/index.htm", "/index.php", ".html", ".htm"):
        path = path.removesuffix(ending)
    return path, parts.query
