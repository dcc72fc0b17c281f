"""Stretches of a dump, and how one is read: bytes in, outlines of articles out.

A stretch is read by whichever process it is given to (`parallel`); what travels is bytes, strings and tuples, as
sections would cost ten times as much. Whoever takes a page makes its sections (`wikipedia_dump`).
"""

import bz2
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ingest.sources.dumps.file import DumpCutShort
from ingest.sources.dumps.mediawiki_xml import Export, RawPage
from ingest.sources.mediawiki import page as mediawiki_page
from ingest.sources.mediawiki.page import Head, Site
from ingest.types import Unreadable
from ingest.wikitext.disambiguation import is_disambiguation
from ingest.wikitext.layout import Outline
from ingest.wikitext.reading import outline

STRETCH = 1 << 19
"""Bytes of XML after which a stretch is full."""
_AGAIN = "If the wiki shows a text there, download the dump again."


@dataclass(frozen=True, slots=True)
class ReadPage:
    """An article that was read, or, `known` already, was not."""

    head: Head
    size: int
    timestamp: str = ""
    outline: Outline = ()
    disambiguation: bool = False
    known: bool = False


Item = ReadPage | Unreadable


@dataclass(frozen=True, slots=True)
class Pages:
    """Articles that were found by going through a dump, and what needs no reading but stands between them."""

    site: Site
    articles: list[tuple[RawPage, Head]]
    ready: list[Item]

    def read(self) -> list[Item]:
        """Every article, read."""
        return [*self.ready, *(read_page(page, head, self.site) for page, head in self.articles)]


@dataclass(frozen=True, slots=True)
class Range:
    """A stream of a multistream dump by its place in the file, and the revisions of pages that are known by id."""

    site: Site
    path: Path
    start: int
    end: int
    known: Mapping[str, str]

    def read(self) -> list[Item]:
        """Every article in the stream, read unless its revision is known."""
        found: list[Item] = []
        for stretch in stretches(self._pages(found), self.site, lambda head: self.known.get(head.id) == head.stamp):
            found += stretch.read()
        return found

    def heads(self) -> list[Head] | None:
        """What every page in the stream says of itself, broken ones left out; None if the stream is damaged."""
        broken: list[Item] = []
        heads = [mediawiki_page.head(page.xml, self.site) for page in self._pages(broken)]
        return None if broken else [head for head in heads if head]

    def _pages(self, broken: list[Item]) -> Iterator[RawPage]:
        with self.path.open("rb") as file:
            file.seek(self.start)
            packed = file.read(self.end - self.start)
        try:
            xml = bz2.decompress(packed)
            yield from Export([xml, b"</mediawiki>"]).pages()
        except (OSError, ValueError, DumpCutShort) as error:
            where = f"the stream at bytes {self.start:,} to {self.end:,} of the file"
            broken.append(
                Unreadable(self.path.name, f"{where} is damaged or missing: {error}. Download the dump again.")
            )


def stretches(pages: Iterator[RawPage], site: Site, is_known: Callable[[Head], bool]) -> Iterator[Pages]:
    """The articles among pages in stretches of about half a megabyte. Redirects and other namespaces are left out.

    Raises `DumpCutShort` as `pages` does, after all that stands before.
    """
    gathered = Pages(site, [], [])
    size = 0
    try:
        for page in pages:
            size += _gather(page, gathered, is_known)
            if size >= STRETCH or len(gathered.ready) >= STRETCH >> 8:
                yield gathered
                gathered, size = Pages(site, [], []), 0
    except DumpCutShort:
        yield gathered
        raise
    yield gathered


def _gather(page: RawPage, stretch: Pages, is_known: Callable[[Head], bool]) -> int:
    """Add a page to a stretch if it is an article; the bytes that are to be read because of it."""
    head = mediawiki_page.head(page.xml, stretch.site)
    if head is None:
        named = mediawiki_page.page_id(page.xml) or f"page in line {page.line}"
        stretch.ready.append(Unreadable(named, f"the page has no title ({page.place}). {_AGAIN}"))
    elif head.namespace == 0 and head.redirect is None:
        if not is_known(head):
            stretch.articles.append((page, head))
            return len(page.xml)
        stretch.ready.append(ReadPage(head, len(page.xml), known=True))
    return 0


def read_page(page: RawPage, head: Head, site: Site) -> Item:
    """Parse one page and read its wikitext. Never raises."""
    parsed = mediawiki_page.text(page.xml)
    reason = parsed.reason
    if not reason:
        try:
            sections = outline(parsed.wikitext, language=site.language, hidden=site.hidden)
        except Exception as error:  # noqa: BLE001 - a mistake of ours in one page must not end a night's work
            reason = f"its text could not be read: {error!r}"
        else:
            reason = "" if sections else "there is no text in it but templates and links"
    if reason:
        return Unreadable(head.key, f"“{head.title}”: {reason} ({page.place}). {_AGAIN}")
    marked = is_disambiguation(head.title, parsed.wikitext)
    return ReadPage(head, len(page.xml), parsed.timestamp, sections, marked)
