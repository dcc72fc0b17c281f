"""Cut a dump into batches of articles, read them in other processes, and remember the redirects that lead to them."""

import bz2
import os
import sqlite3
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from ingest.sources.dumps import page_xml as mediawiki_page
from ingest.sources.dumps.dump_file import DumpError, DumpTruncated
from ingest.sources.dumps.page_xml import PageHead, RawPage, XmlExport
from ingest.types import Unreadable
from ingest.wikitext.page_layout import PageOutline
from ingest.wikitext.wiki_site import WikiSite, is_disambiguation
from ingest.wikitext.wikitext_parser import parse_wikitext

S = TypeVar("S")
R = TypeVar("R")


def map_in_order(work: Callable[[S], R], items: Iterable[S], processes: int) -> Iterator[R]:
    """Yield the results of `work` in the items' order; made in this process if it is to be the only one.

    `work` is a function of a module; no more than about twice as many items as processes are under way.
    """
    if processes <= 1:
        yield from map(work, items)
        return
    # Threads of the caller could hold locks at a fork: processes are spawned.
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        under_way: deque[Future[R]] = deque()
        try:
            for item in items:
                under_way.append(pool.submit(work, item))
                if len(under_way) > 2 * processes:
                    yield under_way.popleft().result()
            while under_way:
                yield under_way.popleft().result()
        except BrokenProcessPool as error:
            hint = "The system may have run out of memory: run it again with fewer processes."
            raise DumpError("A process that read the dump was ended from outside.", hint=hint) from error
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def count_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_REDIRECT_HOPS = 3  # how far a redirect to a redirect is followed


class RedirectTable:
    """Map the title of a page to the titles that lead to it. One thread at a time."""

    def __init__(self) -> None:
        self._database = sqlite3.connect("", check_same_thread=False)
        # Whoever asks only how many articles there are never goes through them, and so never closes it.
        weakref.finalize(self, self._database.close)
        self._database.execute("CREATE TABLE redirects (title TEXT, target TEXT)")
        self.number = 0  # how many there are

    def add(self, redirects: Iterable[tuple[str, str]]) -> None:
        self.number += self._database.executemany("INSERT INTO redirects VALUES (?, ?)", redirects).rowcount

    def finish(self) -> None:
        """Index what was added. Redirects to redirects lead to the last target."""
        run = self._database.execute
        run("CREATE INDEX by_title ON redirects (title)")
        for _ in range(_REDIRECT_HOPS):
            moved = run(
                "UPDATE redirects SET target = (SELECT next.target FROM redirects AS next WHERE next.title ="
                " redirects.target LIMIT 1) WHERE EXISTS (SELECT 1 FROM redirects AS next WHERE next.title ="
                " redirects.target AND next.target <> redirects.title AND next.title <> next.target)"
            )
            if not moved.rowcount:
                break
        run("CREATE INDEX by_target ON redirects (target, title)")

    def find_aliases(self, target: str) -> tuple[str, ...]:
        if not self.number:
            return ()
        rows = self._database.execute("SELECT DISTINCT title FROM redirects WHERE target = ? ORDER BY title", (target,))
        return tuple(title for (title,) in rows if title != target)

    def close(self) -> None:
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


BATCH_BYTES = 1 << 19  # bytes of XML after which a stretch is full
_AGAIN = "If the wiki shows a text there, download the dump again."


@dataclass(frozen=True, slots=True)
class ReadArticle:
    """Hold an article that was read, or, `known` already, was not."""

    head: PageHead
    size: int
    timestamp: str = ""
    outline: PageOutline = ()
    disambiguation: bool = False
    known: bool = False


ArticleItem = ReadArticle | Unreadable


@dataclass(frozen=True, slots=True)
class ArticleBatch:
    """Hold articles that were found by going through a dump, and what needs no reading but stands between them."""

    site: WikiSite
    articles: list[tuple[RawPage, PageHead]]
    ready: list[ArticleItem]

    def read(self) -> list[ArticleItem]:
        return [*self.ready, *(read_article(page, head, self.site) for page, head in self.articles)]


@dataclass(frozen=True, slots=True)
class StreamRange:
    """Name a stream of a multistream dump by its place in the file, and the revisions of pages that are known by id."""

    site: WikiSite
    path: Path
    start: int
    end: int
    known: Mapping[str, str]

    def read(self) -> list[ArticleItem]:
        """Yield every article in the stream, read unless its revision is known."""
        found: list[ArticleItem] = []
        for stretch in split_batches(self._pages(found), self.site, lambda head: self.known.get(head.id) == head.stamp):
            found += stretch.read()
        return found

    def heads(self) -> list[PageHead] | None:
        """Return what every page in the stream says of itself, broken ones left out; None if the stream is damaged."""
        broken: list[ArticleItem] = []
        heads = [mediawiki_page.parse_head(page.xml, self.site) for page in self._pages(broken)]
        return None if broken else [head for head in heads if head]

    def _pages(self, broken: list[ArticleItem]) -> Iterator[RawPage]:
        with self.path.open("rb") as file:
            file.seek(self.start)
            packed = file.read(self.end - self.start)
        try:
            xml = bz2.decompress(packed)
            yield from XmlExport([xml, b"</mediawiki>"]).pages()
        except (OSError, ValueError, DumpTruncated) as error:
            where = f"the stream at bytes {self.start:,} to {self.end:,} of the file"
            broken.append(
                Unreadable(self.path.name, f"{where} is damaged or missing: {error}. Download the dump again.")
            )


def split_batches(
    pages: Iterator[RawPage], site: WikiSite, is_known: Callable[[PageHead], bool]
) -> Iterator[ArticleBatch]:
    """Group articles into stretches of about half a megabyte. Raises `DumpTruncated` as `pages` does."""
    gathered = ArticleBatch(site, [], [])
    size = 0
    try:
        for page in pages:
            size += _add_page(page, gathered, is_known)
            if size >= BATCH_BYTES or len(gathered.ready) >= BATCH_BYTES >> 8:
                yield gathered
                gathered, size = ArticleBatch(site, [], []), 0
    except DumpTruncated:
        yield gathered
        raise
    yield gathered


def _add_page(page: RawPage, stretch: ArticleBatch, is_known: Callable[[PageHead], bool]) -> int:
    """Add a page to a stretch if it is an article; return the bytes that are to be read because of it."""
    head = mediawiki_page.parse_head(page.xml, stretch.site)
    if head is None:
        named = mediawiki_page.parse_page_id(page.xml) or f"page in line {page.line}"
        stretch.ready.append(Unreadable(named, f"the page has no title ({page.place}). {_AGAIN}"))
    elif head.namespace == 0 and head.redirect is None:
        if not is_known(head):
            stretch.articles.append((page, head))
            return len(page.xml)
        stretch.ready.append(ReadArticle(head, len(page.xml), known=True))
    return 0


def read_article(page: RawPage, head: PageHead, site: WikiSite) -> ArticleItem:
    """Parse one page and read its wikitext. Never raises."""
    parsed = mediawiki_page.parse_text(page.xml)
    reason = parsed.reason
    if not reason:
        try:
            sections = parse_wikitext(parsed.wikitext, language=site.language, hidden=site.hidden)
        except Exception as error:  # noqa: BLE001 - a mistake of ours in one page must not end a night's work
            reason = f"its text could not be read: {error!r}"
        else:
            reason = "" if sections else "there is no text in it but templates and links"
    if reason:
        return Unreadable(head.key, f"“{head.title}”: {reason} ({page.place}). {_AGAIN}")
    marked = is_disambiguation(head.title, parsed.wikitext)
    return ReadArticle(head, len(page.xml), parsed.timestamp, sections, marked)
