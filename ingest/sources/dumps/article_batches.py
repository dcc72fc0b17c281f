"""Read the articles of a dump by stretches, in whichever process: of a stream, or of pages that were cut already."""

import bz2
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Self

from ingest.page_cleanup import isolate_errors, load_page
from ingest.refresh.document_plan import pack_document
from ingest.sources.dumps import page_xml as mediawiki_page
from ingest.sources.dumps.dump_file import DumpTruncated
from ingest.sources.dumps.dump_survey import ArticleHead, StreamContent
from ingest.sources.dumps.page_xml import PageHead, RawPage, XmlExport
from ingest.types import ChangedDocument, Page, Unreadable, UnreadableDocument, refuse_load
from ingest.wikitext.page_layout import PageOutline
from ingest.wikitext.wiki_site import WikiSite, is_disambiguation
from ingest.wikitext.wikitext_parser import WIKITEXT_VERSION, make_sections, parse_wikitext

BATCH_BYTES = 1 << 19  # bytes of XML after which a stretch is full
_DIGEST_BYTES = 16
_AGAIN = "If the wiki shows a text there, download the dump again."

Aliases = Mapping[str, tuple[str, ...]]
"""The titles that lead to an article, by its title; articles that none leads to are left out."""
NO_ALIASES: Aliases = {}


@dataclass(frozen=True, slots=True)
class KnownArticle:
    """An article that was read before, and is the same."""

    key: str


@dataclass(frozen=True, slots=True)
class ReadArticle:
    """An article that was read."""

    head: PageHead
    size: int
    timestamp: str
    outline: PageOutline
    disambiguation: bool
    aliases: tuple[str, ...]


ArticleItem = KnownArticle | ReadArticle | ChangedDocument | Unreadable
"""Where articles are packed as they are read, they come as documents."""


@dataclass(frozen=True, slots=True)
class ReadStretch:
    """The articles of a stretch in order; `name` is that of a stream, or empty."""

    name: str
    items: list[ArticleItem]


@dataclass(frozen=True, slots=True)
class ArticleBatch:
    """Hold articles that were found by going through a dump, and what needs no reading but stands between them."""

    site: WikiSite
    articles: list[tuple[RawPage, PageHead]]
    aliases: Aliases
    ready: list[ArticleItem]
    corpus: str = ""  # for which articles are packed, if any

    def read(self) -> ReadStretch:
        read = (read_article(page, head, self.site, self.aliases) for page, head in self.articles)
        return ReadStretch("", [*self.ready, *(_pack_article(one, self.site, self.corpus) for one in read)])


@dataclass(frozen=True, slots=True)
class SurveyedStream:
    """A stream's digest, and what it holds unless that digest was expected. Of a damaged one it has neither."""

    digest: bytes
    content: StreamContent | None


@dataclass(frozen=True, slots=True)
class StreamRange:
    """Name a stream of a multistream dump by its place in the file; `known` are the stamps of articles by id."""

    site: WikiSite
    path: Path
    start: int
    end: int
    name: str = ""
    known: Mapping[str, str] = field(default_factory=dict)
    aliases: Aliases = field(default_factory=dict)
    corpus: str = ""  # as of `ArticleBatch`
    content: bytes | None = None  # of the stream, for processes that have not the file

    def carry(self) -> Self:
        return replace(self, content=self._packed())

    def read(self) -> ReadStretch:
        """Read every article in the stream unless its revision is known."""
        found: list[ArticleItem] = []
        for page in self._pages(self._packed(), found):
            _add_page(page, self, found)
        return ReadStretch(self.name, [_pack_article(item, self.site, self.corpus) for item in found])

    def survey(self, expected: bytes) -> SurveyedStream:
        """Return what every page in the stream says of itself, unless its bytes have the expected digest."""
        packed = self._packed()
        digest = hashlib.blake2b(packed, digest_size=_DIGEST_BYTES).digest()
        if digest == expected:
            return SurveyedStream(digest, None)
        broken: list[ArticleItem] = []
        heads = [mediawiki_page.parse_head(page.xml, self.site) for page in self._pages(packed, broken)]
        return SurveyedStream(b"", None) if broken else SurveyedStream(digest, survey_heads(heads, self.site))

    def _packed(self) -> bytes:
        if self.content is not None:
            return self.content
        with self.path.open("rb") as file:
            file.seek(self.start)
            return file.read(self.end - self.start)

    def _pages(self, packed: bytes, broken: list[ArticleItem]) -> Iterator[RawPage]:
        try:
            yield from XmlExport([bz2.decompress(packed), b"</mediawiki>"]).pages()
        except (OSError, ValueError, DumpTruncated) as error:
            where = f"the stream at bytes {self.start:,} to {self.end:,} of the file"
            broken.append(
                Unreadable(self.path.name, f"{where} is damaged or missing: {error}. Download the dump again.")
            )


def survey_heads(heads: list[PageHead | None], site: WikiSite) -> StreamContent:
    mine = [head for head in heads if head and head.namespace == 0]
    return StreamContent(
        tuple(ArticleHead(head.key, head.title, head.stamp) for head in mine if head.redirect is None),
        tuple((head.key, head.title, site.title(head.redirect)) for head in mine if head.redirect is not None),
    )


def make_fingerprint(stamp: str, aliases: tuple[str, ...]) -> str:
    """Name a revision, how we read, and the aliases: a new redirect changes an article that nobody edited."""
    others = hashlib.sha256("\n".join(aliases).encode()).hexdigest()[:12] if aliases else "0"
    return f"{stamp}-{WIKITEXT_VERSION}-{others}"


def split_batches(pages: Iterator[RawPage], site: WikiSite) -> Iterator[ArticleBatch]:
    """Group articles into stretches of about half a megabyte. Raises `DumpTruncated` as `pages` does."""
    gathered = ArticleBatch(site, [], NO_ALIASES, [])
    size = 0
    try:
        for page in pages:
            head = mediawiki_page.parse_head(page.xml, site)
            if head is None:
                gathered.ready.append(_untitled(page))
            elif head.namespace == 0 and head.redirect is None:
                gathered.articles.append((page, head))
                size += len(page.xml)
            if size >= BATCH_BYTES or len(gathered.ready) >= BATCH_BYTES >> 8:
                yield gathered
                gathered, size = ArticleBatch(site, [], NO_ALIASES, []), 0
    except DumpTruncated:
        yield gathered
        raise
    yield gathered


def _add_page(page: RawPage, stream: StreamRange, found: list[ArticleItem]) -> None:
    """Read a page if it is an article."""
    head = mediawiki_page.parse_head(page.xml, stream.site)
    if head is None:
        found.append(_untitled(page))
    elif head.namespace == 0 and head.redirect is None:
        known = stream.known.get(head.key) == head.stamp
        found.append(KnownArticle(head.key) if known else read_article(page, head, stream.site, stream.aliases))


def _untitled(page: RawPage) -> Unreadable:
    named = mediawiki_page.parse_page_id(page.xml) or f"page in line {page.line}"
    return Unreadable(named, f"the page has no title ({page.place}). {_AGAIN}")


def read_article(page: RawPage, head: PageHead, site: WikiSite, aliases: Aliases = NO_ALIASES) -> ArticleItem:
    """Parse one page and read its wikitext. Never raises."""
    parsed = mediawiki_page.parse_text(page.xml)
    reason = parsed.reason
    if not reason:
        try:
            sections = parse_wikitext(parsed.wikitext, title=head.title, language=site.language, hidden=site.hidden)
        except Exception as error:  # noqa: BLE001 - a mistake of ours in one page must not end a night's work
            reason = f"its text could not be read: {error!r}"
        else:
            reason = "" if sections else "there is no text in it but headings, templates and links"
    if reason:
        return Unreadable(head.key, f"“{head.title}”: {reason} ({page.place}). {_AGAIN}")
    marked = is_disambiguation(head.title, parsed.wikitext)
    return ReadArticle(head, len(page.xml), parsed.timestamp, sections, marked, aliases.get(head.title, ()))


def _pack_article(item: ArticleItem, site: WikiSite, corpus: str) -> ArticleItem:
    if not corpus or not isinstance(item, ReadArticle):
        return item
    found = list_article(item, site)
    try:
        packed = isolate_errors(lambda: pack_document(corpus, found, load_page(found)))
    except UnreadableDocument as error:
        return Unreadable(found.key, f"“{item.head.title}”: {error}")
    return ChangedDocument(found.key, found.fingerprint, found.size, partial(refuse_load, found.key), packed)


def list_article(item: ReadArticle, site: WikiSite) -> ChangedDocument:
    fingerprint = make_fingerprint(item.head.stamp, item.aliases)
    return ChangedDocument(item.head.key, fingerprint, item.size, partial(_make_page, item, site))


def _make_page(item: ReadArticle, site: WikiSite) -> Page:
    head = item.head
    return Page(
        title=head.title,
        sections=make_sections(item.outline),
        url=site.url(head.title, head.revision),
        revision=head.revision,
        date=_parse_timestamp(item.timestamp),
        language=site.language,
        aliases=item.aliases,
        disambiguation=item.disambiguation,
    )


def _parse_timestamp(timestamp: str) -> datetime | None:
    try:
        date = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return date if date.tzinfo else None
