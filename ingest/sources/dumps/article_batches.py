"""Read the articles of a dump in stretches, in any process. A stretch is a stream of the file, or a batch of pages."""

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
from ingest.sources.dumps import page_xml
from ingest.sources.dumps.dump_file import DumpTruncated
from ingest.sources.dumps.dump_survey import ArticleHead, StreamContent
from ingest.sources.dumps.page_xml import PageHead, RawPage, XmlExport
from ingest.types import ChangedDocument, Page, Unreadable, UnreadableDocument, refuse_load
from ingest.wikitext.page_layout import PageOutline
from ingest.wikitext.wiki_site import WikiSite, is_disambiguation
from ingest.wikitext.wikitext_parser import WIKITEXT_VERSION, make_sections, parse_wikitext

BATCH_BYTES = 1 << 19  # bytes of XML after which a stretch is full
_DIGEST_BYTES = 16
_AGAIN = "If the page has text in the wiki, download the dump again."

Aliases = Mapping[str, tuple[str, ...]]  # the titles that redirect to an article, by its title
NO_ALIASES: Aliases = {}


@dataclass(frozen=True, slots=True)
class KnownArticle:
    """An article that has not changed since it was last read."""

    key: str


@dataclass(frozen=True, slots=True)
class ReadArticle:
    head: PageHead
    size: int
    timestamp: str
    outline: PageOutline
    disambiguation: bool
    aliases: tuple[str, ...]


ArticleItem = KnownArticle | ReadArticle | ChangedDocument | Unreadable  # ChangedDocument: packed while reading


@dataclass(frozen=True, slots=True)
class ReadStretch:
    """The articles of a stretch. `name` is the name of its stream; empty for a batch of pages."""

    name: str
    items: list[ArticleItem]


@dataclass(frozen=True, slots=True)
class ArticleBatch:
    """A batch from a sequential pass over a dump: articles to read, and in `ready` items that need no more work."""

    site: WikiSite
    articles: list[tuple[RawPage, PageHead]]
    aliases: Aliases
    ready: list[ArticleItem]
    corpus: str = ""  # pack articles for this corpus; empty: do not pack

    def read(self) -> ReadStretch:
        read = (read_article(page, head, self.site, self.aliases) for page, head in self.articles)
        return ReadStretch("", [*self.ready, *(_pack_article(item, self.site, self.corpus) for item in read)])


@dataclass(frozen=True, slots=True)
class SurveyedStream:
    """A stream's digest, and its contents unless the digest was the expected one. Both are empty if it is damaged."""

    digest: bytes
    content: StreamContent | None


@dataclass(frozen=True, slots=True)
class StreamRange:
    """One stream of a multistream dump. `known` has the stamps of its unchanged articles by id."""

    site: WikiSite
    path: Path
    start: int
    end: int
    name: str = ""
    known: Mapping[str, str] = field(default_factory=dict)
    aliases: Aliases = field(default_factory=dict)
    corpus: str = ""  # as in `ArticleBatch`
    content: bytes | None = None  # the packed stream, for processes without the file

    def with_content(self) -> Self:
        return replace(self, content=self._packed())

    def read(self) -> ReadStretch:
        """Read every article in the stream except unchanged ones."""
        items: list[ArticleItem] = []
        for page in self._pages(self._packed(), items):
            _add_page(page, self, items)
        return ReadStretch(self.name, [_pack_article(item, self.site, self.corpus) for item in items])

    def survey(self, expected: bytes) -> SurveyedStream:
        """Return the heads of all pages in the stream, unless the stream's bytes have the expected digest."""
        packed = self._packed()
        digest = hashlib.blake2b(packed, digest_size=_DIGEST_BYTES).digest()
        if digest == expected:
            return SurveyedStream(digest, None)
        broken: list[ArticleItem] = []
        heads = [page_xml.parse_head(page.xml, self.site) for page in self._pages(packed, broken)]
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
            stream = f"the stream at bytes {self.start:,} to {self.end:,} of the file"
            reason = f"{stream} is damaged or missing: {error}. Download the dump again."
            broken.append(Unreadable(self.path.name, reason))


def survey_heads(heads: list[PageHead | None], site: WikiSite) -> StreamContent:
    main = [head for head in heads if head and head.namespace == 0]
    return StreamContent(
        tuple(ArticleHead(head.key, head.title, head.stamp) for head in main if head.redirect is None),
        tuple((head.key, head.title, site.title(head.redirect)) for head in main if head.redirect is not None),
    )


def make_fingerprint(stamp: str, aliases: tuple[str, ...]) -> str:
    """Return revision, reader version and a hash of the aliases: a redirect changes an article without an edit."""
    others = hashlib.sha256("\n".join(aliases).encode()).hexdigest()[:12] if aliases else "0"
    return f"{stamp}-{WIKITEXT_VERSION}-{others}"


def split_batches(pages: Iterator[RawPage], site: WikiSite) -> Iterator[ArticleBatch]:
    """Group articles into batches of about half a megabyte. Raises `DumpTruncated` if `pages` does."""
    batch = ArticleBatch(site, [], NO_ALIASES, [])
    size = 0
    try:
        for page in pages:
            head = page_xml.parse_head(page.xml, site)
            if head is None:
                batch.ready.append(_make_untitled(page))
            elif head.namespace == 0 and head.redirect is None:
                batch.articles.append((page, head))
                size += len(page.xml)
            if size >= BATCH_BYTES or len(batch.ready) >= BATCH_BYTES >> 8:
                yield batch
                batch, size = ArticleBatch(site, [], NO_ALIASES, []), 0
    except DumpTruncated:
        yield batch
        raise
    yield batch


def _add_page(page: RawPage, stream: StreamRange, items: list[ArticleItem]) -> None:
    head = page_xml.parse_head(page.xml, stream.site)
    if head is None:
        items.append(_make_untitled(page))
    elif head.namespace == 0 and head.redirect is None:
        known = stream.known.get(head.key) == head.stamp
        items.append(KnownArticle(head.key) if known else read_article(page, head, stream.site, stream.aliases))


def _make_untitled(page: RawPage) -> Unreadable:
    key = page_xml.parse_page_id(page.xml) or f"page in line {page.line}"
    return Unreadable(key, f"the page has no title ({page.place}). {_AGAIN}")


def read_article(page: RawPage, head: PageHead, site: WikiSite, aliases: Aliases = NO_ALIASES) -> ArticleItem:
    """Parse one page and read its wikitext. Never raises."""
    parsed = page_xml.parse_text(page.xml)
    reason = parsed.reason
    if not reason:
        try:
            sections = parse_wikitext(parsed.wikitext, title=head.title, language=site.language, hidden=site.hidden)
        except Exception as error:  # noqa: BLE001 - a bug triggered by one page must not end the refresh
            reason = f"its text could not be read: {error!r}"
        else:
            reason = "" if sections else "it contains no text except headings, templates and links"
    if reason:
        return Unreadable(head.key, f"“{head.title}”: {reason} ({page.place}). {_AGAIN}")
    marked = is_disambiguation(head.title, parsed.wikitext)
    return ReadArticle(head, len(page.xml), parsed.timestamp, sections, marked, aliases.get(head.title, ()))


def _pack_article(item: ArticleItem, site: WikiSite, corpus: str) -> ArticleItem:
    if not corpus or not isinstance(item, ReadArticle):
        return item
    document = list_article(item, site)
    try:
        packed = isolate_errors(lambda: pack_document(corpus, document, load_page(document)))
    except UnreadableDocument as error:
        return Unreadable(document.key, f"“{item.head.title}”: {error}")
    return replace(document, load=partial(refuse_load, document.key), packed=packed)


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
