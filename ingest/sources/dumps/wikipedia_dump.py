"""Read a Wikipedia dump: its articles, each with the titles that redirect to it, parsed on all cores."""

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from operator import methodcaller
from pathlib import Path

from ingest.refresh.document_plan import KeySet
from ingest.sources.dumps.article_batches import (
    ArticleBatch,
    ArticleItem,
    KnownArticle,
    ReadArticle,
    ReadStretch,
    StreamRange,
    SurveyedStream,
    list_article,
    make_fingerprint,
    split_batches,
    survey_heads,
)
from ingest.sources.dumps.bz2_blocks import BlockRange, UnpackedRange
from ingest.sources.dumps.dump_file import (
    DumpTruncated,
    detect_compression,
    find_index,
    read_blocks,
    read_streams,
    refuse_single,
)
from ingest.sources.dumps.dump_survey import DumpSurvey
from ingest.sources.dumps.page_xml import RawPage, XmlExport, parse_head
from ingest.sources.dumps.worker_pool import WorkerPool, count_cores
from ingest.types import EMPTY, ChangedDocument, Engine, Listing, Unreadable, list_unchanged
from ingest.wikitext.wiki_site import WikiSite
from ingest.wikitext.wikitext_parser import WIKITEXT_VERSION

_SMALL = 4 << 20  # bytes; starting processes takes longer than reading a smaller file
_PART_PAGES = 1_000  # pages per part of a file without an index


@dataclass(frozen=True, slots=True)
class _SurveyedFile:
    """A file, the names of its streams in order, and whether the whole file is the same as before."""

    path: Path
    index: Path | None
    names: list[str]
    same: bool


@dataclass(frozen=True, slots=True)
class _Survey:
    site: WikiSite
    articles: int
    streams: DumpSurvey
    files: list[_SurveyedFile]
    whole: bool  # whether the dump is complete and undamaged

    def is_known(self, fingerprint: str, stamp: str, aliases: tuple[str, ...]) -> bool:
        """Return whether a page is unchanged. If the dump is incomplete, its redirects are not compared."""
        if self.whole:
            return fingerprint == make_fingerprint(stamp, aliases)
        return fingerprint.rpartition("-")[0] == f"{stamp}-{WIKITEXT_VERSION}"


class WikipediaDump:
    """Reads the articles of one dump: `.xml`, `.xml.bz2`, `.xml.gz`, or multistream `.bz2` with its index next to it.

    The dump of a large wiki may consist of several files, each of which is a complete dump of some pages.
    """

    reference = True
    one = staticmethod(refuse_single)

    def __init__(
        self,
        path: Path | str,
        *more: Path,
        processes: int = 0,
        survey: Path | None = None,
        engine: Engine | None = None,
    ) -> None:
        """Set up the reading.

        Pages are parsed in `processes`; 0 means one per core, or only this process for a small dump. An `engine`
        replaces these processes, and is sent the bytes of each stream. The file `survey` stores the results of the
        first pass, so that unchanged parts of the next dump are not unpacked.
        """
        self._paths = (Path(path), *more)
        self._processes = processes
        self._survey_file_path = survey
        self._engine = engine
        self._corpus = ""
        self._surveyed: _Survey | None = None
        self._articles: int | None = None

    def expected(self) -> int:
        """Count the articles, in a first pass over the dump. Blocks. Raises `DumpError`."""
        if self._articles is None:
            self._surveyed = self._survey()
            self._articles = self._surveyed.articles
        return self._articles

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """List every article, roughly in the order of the dump. Blocks. Raises `DumpError` at once.

        If the dump is damaged, known articles that were not found are listed as unchanged.
        """
        del since  # a dump contains every page
        survey, self._surveyed = self._surveyed or self._survey(), None
        self._articles = survey.articles
        return Listing(self._list_documents(survey, known))

    def pack_for(self, corpus: str) -> None:
        self._corpus = corpus

    def stop(self) -> None:
        """Do nothing: the caller ends the reading by ending the iteration."""

    def _list_documents(self, survey: _Survey, known: Mapping[str, str]) -> Iterator[ChangedDocument | Unreadable]:
        with survey.streams as streams, streams.translating_errors(), WorkerPool(self._count_workers()) as pool:
            seen = KeySet()
            repeated = 0
            whole = True
            files = {path.name for path in self._paths}
            for stretch in self._read_articles(survey, known, pool):
                for item in stretch.items:
                    if isinstance(item, Unreadable):
                        whole = whole and item.key not in files
                        if stretch.name and item.key not in files:
                            streams.note_unreadable(stretch.name, item.key, item.reason)
                        yield item
                        continue
                    listed = _list_item(item, survey.site, known)
                    if listed.key in seen:
                        repeated += 1
                    else:
                        seen.add(listed.key)
                        yield listed
            if repeated:
                reason = f"{repeated:,} pages appear in the dump more than once: only the first of each was read"
                yield Unreadable(f"{self._paths[0].name} (repeated pages)", reason)
            if not whole:
                for key in streams.redirect_keys():
                    seen.add(key)  # an article that became a redirect was found, so it counts as deleted
                yield from (list_unchanged(key, known[key]) for key in known if key not in seen)

    def _survey(self) -> _Survey:
        site = XmlExport(read_blocks(self._paths[0])).site
        streams = DumpSurvey(self._survey_file_path)
        try:
            with streams.translating_errors(), WorkerPool(self._count_workers()) as pool:
                files = [self._survey_file(path, site, streams, pool) for path in self._paths]
                streams.finish()
        except BaseException:
            streams.close()
            raise
        articles = sum(number for _, number, _ in files)
        return _Survey(site, articles, streams, [file for file, _, _ in files], all(whole for _, _, whole in files))

    def _survey_file(
        self, path: Path, site: WikiSite, streams: DumpSurvey, pool: WorkerPool
    ) -> tuple[_SurveyedFile, int, bool]:
        """Survey a file. Return it, its number of articles, and whether it is undamaged."""
        if index := find_index(path) if detect_compression(path) == "bz2" else None:
            return self._survey_streams(path, index, site, streams, pool)
        return self._survey_pages(path, site, streams, pool)

    def _survey_streams(
        self, path: Path, index: Path, site: WikiSite, streams: DumpSurvey, pool: WorkerPool
    ) -> tuple[_SurveyedFile, int, bool]:
        names: list[str] = []

        def list_work() -> Iterator[tuple[StreamRange, bytes]]:
            for stream in read_streams(index, path.stat().st_size):
                name = stream.pages[0][0]
                names.append(name)
                yield StreamRange(site, path, stream.start, stream.end, name), streams.digest(name)

        articles, whole, same = 0, True, True
        for number, surveyed in enumerate(pool.map(_survey_stream, list_work())):
            name = names[number]
            if surveyed.content is None and surveyed.digest:
                articles += streams.keep(name)
                continue
            same = False
            if surveyed.content is None or streams.has(name):
                whole = whole and surveyed.content is not None
                name = names[number] = ""  # damaged, or a second stream with its name: always read
            if surveyed.content:
                streams.put(name or f"{path.name} {number}", surveyed.digest, surveyed.content)
                articles += len(surveyed.content.articles)
        return _SurveyedFile(path, index, names, same), articles, whole

    def _survey_pages(
        self, path: Path, site: WikiSite, streams: DumpSurvey, pool: WorkerPool
    ) -> tuple[_SurveyedFile, int, bool]:
        digest = _digest_file(path) if self._survey_file_path else b""
        if digest and (names := _list_unchanged_parts(streams, path, digest)):
            return _SurveyedFile(path, None, names, same=True), sum(map(streams.keep, names)), True
        names, articles = [], 0
        truncated: list[DumpTruncated] = []
        heads = (parse_head(page.xml, site) for page in _note_truncated(_read_pages(path, pool), truncated))
        while part := list(islice(heads, _PART_PAGES)):
            content = survey_heads(part, site)
            names.append(_name_part(path, len(names)))
            streams.put(names[-1], b"", content)
            articles += len(content.articles)
        if not truncated:
            streams.stamp(names, digest)
        return _SurveyedFile(path, None, names, same=False), articles, not truncated

    def _read_articles(self, survey: _Survey, known: Mapping[str, str], pool: WorkerPool) -> Iterator[ReadStretch]:
        failures: list[ArticleItem] = []
        work = self._split_work(survey, known, failures, pool)
        if self._engine is not None:
            carried = (part.with_content() if isinstance(part, StreamRange) else part for part in work)
            yield from self._engine.map(methodcaller("read"), carried)
        else:
            yield from pool.map(methodcaller("read"), work)
        yield ReadStretch("", failures)

    def _split_work(
        self, survey: _Survey, known: Mapping[str, str], failures: list[ArticleItem], pool: WorkerPool
    ) -> Iterator[StreamRange | ArticleBatch | list[ReadStretch]]:
        """Yield the stretches to read, and unchanged ones as results. Report files that end too early in `failures`."""
        for file in survey.files:
            if file.index:
                for stream, name in zip(read_streams(file.index, file.path.stat().st_size), file.names, strict=True):
                    compared = _compare_stream(survey, name, known)
                    if compared.done:
                        yield [compared.ready]
                        continue
                    work = StreamRange(survey.site, file.path, stream.start, stream.end, name)
                    yield replace(work, known=compared.stamps, aliases=compared.aliases, corpus=self._corpus)
                continue
            if file.same:
                parts = [_compare_stream(survey, name, known) for name in file.names]
                if all(part.done for part in parts):
                    yield [part.ready for part in parts]
                    continue
            truncated: list[DumpTruncated] = []
            pages = _note_truncated(_read_pages(file.path, pool), truncated)
            for batch in split_batches(pages, survey.site):
                yield _skip_unchanged(replace(batch, corpus=self._corpus), survey, known)
            if truncated:
                hint = "The pages before that were read. Download the dump again for the rest."
                failures.append(Unreadable(file.path.name, f"{truncated[0]}. {hint}"))

    def _count_workers(self) -> int:
        if self._processes:
            return self._processes
        return 1 if sum(path.stat().st_size for path in self._paths) < _SMALL else count_cores()


def _list_item(
    item: KnownArticle | ReadArticle | ChangedDocument, site: WikiSite, known: Mapping[str, str]
) -> ChangedDocument:
    if isinstance(item, ReadArticle):
        return list_article(item, site)
    return list_unchanged(item.key, known[item.key]) if isinstance(item, KnownArticle) else item


def _survey_stream(work: tuple[StreamRange, bytes]) -> SurveyedStream:
    stream, expected = work
    return stream.survey(expected)


@dataclass(frozen=True, slots=True)
class _Compared:
    """A stream, compared with the known articles. If `done`, `ready` has all its articles, and it need not be read."""

    done: bool
    ready: ReadStretch
    stamps: dict[str, str]
    aliases: dict[str, tuple[str, ...]]


def _compare_stream(survey: _Survey, name: str, known: Mapping[str, str]) -> _Compared:
    articles = (survey.streams.articles(name) if name else None) or ()
    aliases = survey.streams.find_aliases(article.title for article in articles)
    items: list[ArticleItem] = []
    stamps: dict[str, str] = {}
    for article in articles:
        if survey.is_known(known.get(article.key, ""), article.stamp, aliases.get(article.title, ())):
            items.append(KnownArticle(article.key))
            stamps[article.key] = article.stamp
        elif article.reason:
            items.append(Unreadable(article.key, article.reason))
    return _Compared(bool(name) and len(items) == len(articles), ReadStretch(name, items), stamps, aliases)


def _skip_unchanged(batch: ArticleBatch, survey: _Survey, known: Mapping[str, str]) -> ArticleBatch | list[ReadStretch]:
    aliases = survey.streams.find_aliases(head.title for _, head in batch.articles)
    same = {
        head.key
        for _, head in batch.articles
        if survey.is_known(known.get(head.key, ""), head.stamp, aliases.get(head.title, ()))
    }
    ready: list[ArticleItem] = [*batch.ready, *map(KnownArticle, same)]
    unknown = [(page, head) for page, head in batch.articles if head.key not in same]
    return replace(batch, articles=unknown, aliases=aliases, ready=ready) if unknown else [ReadStretch("", ready)]


def _read_pages(path: Path, pool: WorkerPool) -> Iterator[RawPage]:
    def unpack(ranges: Iterable[BlockRange]) -> Iterator[UnpackedRange]:
        return pool.map(methodcaller("unpack"), ranges)

    apart = pool.processes > 1 and detect_compression(path) == "bz2"
    yield from XmlExport(read_blocks(path, unpack if apart else None)).pages()


def _note_truncated(pages: Iterator[RawPage], truncated: list[DumpTruncated]) -> Iterator[RawPage]:
    try:
        yield from pages
    except DumpTruncated as error:
        truncated.append(error)


def _name_part(path: Path, part: int) -> str:
    return f"{path.name} {part}"


def _list_unchanged_parts(streams: DumpSurvey, path: Path, digest: bytes) -> list[str]:
    """Return the names of a file's parts if the file still has this digest; empty otherwise."""
    names: list[str] = []
    while streams.digest(name := _name_part(path, len(names))) == digest:
        names.append(name)
    return names


def _digest_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").digest()
