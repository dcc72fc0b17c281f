"""Read a Wikipedia dump: its articles, each with the titles that redirect to it, parsed on all cores."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from itertools import chain
from operator import methodcaller
from pathlib import Path
from typing import NoReturn

from ingest.sources.dumps.article_batches import (
    ArticleBatch,
    ArticleItem,
    ReadArticle,
    RedirectTable,
    StreamRange,
    count_cores,
    map_in_order,
    split_batches,
)
from ingest.sources.dumps.dump_file import (
    DumpStream,
    DumpTruncated,
    detect_compression,
    find_index,
    read_blocks,
    read_streams,
    refuse_single,
)
from ingest.sources.dumps.page_xml import PageHead, XmlExport, parse_head
from ingest.types import EMPTY, ChangedDocument, Listing, Page, Unreadable, list_unchanged
from ingest.wikitext.wiki_site import WikiSite
from ingest.wikitext.wikitext_parser import WIKITEXT_VERSION, make_sections

_SMALL = 4 << 20  # bytes of a file below which starting processes takes longer than reading it


@dataclass(frozen=True, slots=True)
class _DumpSurvey:
    site: WikiSite
    articles: int
    redirects: RedirectTable
    whole: bool  # whether it came to the end of the dump, undamaged

    def knows(self, fingerprint: str, stamp: str, title: str) -> bool:
        """Tell whether a page is unchanged. Where a dump is not whole, redirects may be missing, and do not count."""
        if self.whole:
            return fingerprint == _make_fingerprint(stamp, self.redirects.find_aliases(title))
        return fingerprint.rpartition("-")[0] == f"{stamp}-{WIKITEXT_VERSION}"


def _make_fingerprint(stamp: str, aliases: tuple[str, ...]) -> str:
    """Name a revision, how we read, and the aliases: a new redirect changes an article that nobody edited."""
    others = hashlib.sha256("\n".join(aliases).encode()).hexdigest()[:12] if aliases else "0"
    return f"{stamp}-{WIKITEXT_VERSION}-{others}"


class WikipediaDump:
    """Read the articles of one dump: `.xml`, `.xml.bz2`, `.xml.gz`, or multistream `.bz2` with its index beside it.

    The dump of a large wiki may come in several files, each a dump of its own with some of the pages.
    """

    reference = True

    def __init__(self, path: Path | str, *more: Path, processes: int = 0) -> None:
        """Use so many `processes` to parse pages; 0 is one for each core, or none but this one if the dump is small."""
        self._paths = (Path(path), *more)
        self._processes = processes
        self._surveyed: _DumpSurvey | None = None
        self._articles: int | None = None

    def site(self) -> WikiSite:
        return XmlExport(read_blocks(self._paths[0])).site

    def expected(self) -> int:
        """Count the articles. Blocks for the first pass over the dump, once. Raises `DumpError`."""
        if self._articles is None:
            self._surveyed = self._survey()
            self._articles = self._surveyed.articles
        return self._articles

    def documents(self, known: Mapping[str, str] = EMPTY, since: str = "") -> Listing:
        """List every article, in the order of the dump. Blocks. Raises `DumpError` at once.

        Of a damaged dump, what is known and was not met is listed as known, as nobody can tell that it is gone.
        """
        del since  # a dump holds every page
        survey, self._surveyed = self._surveyed or self._survey(), None
        self._articles = survey.articles
        return Listing(self._list_documents(survey, known))

    def one(self, address: str, known: Mapping[str, str]) -> NoReturn:
        del known
        refuse_single(address)

    def stop(self) -> None:
        """Nothing here blocks for long."""

    def _list_documents(self, survey: _DumpSurvey, known: Mapping[str, str]) -> Iterator[ChangedDocument | Unreadable]:
        with survey.redirects as redirects:
            seen = _SeenIds()
            whole = True
            files = {path.name for path in self._paths}
            for item in self._read_articles(survey, known):
                if isinstance(item, Unreadable):
                    whole = whole and item.key not in files
                    yield item
                elif seen.add(key := item.head.key):
                    aliases = redirects.find_aliases(item.head.title)
                    load, fingerprint = partial(_make_page, item, survey.site, aliases), item.head.stamp
                    if item.known:
                        yield list_unchanged(key, known[key])
                    else:
                        yield ChangedDocument(key, _make_fingerprint(fingerprint, aliases), item.size, load)
            if seen.twice:
                reason = f"{seen.twice:,} pages stand in the dump more than once: the first of each was taken"
                yield Unreadable(f"{self._paths[0].name} (repeated pages)", reason)
            if not whole:
                yield from (list_unchanged(key, known[key]) for key in known if seen.add(key))

    def _survey(self) -> _DumpSurvey:
        header = self.site()
        redirects = RedirectTable()
        articles, whole = 0, True
        for heads in self._read_heads(header):
            mine = [head for head in heads or () if head.namespace == 0]
            moved = [(head.title, header.title(head.redirect)) for head in mine if head.redirect is not None]
            redirects.add(moved)
            articles += len(mine) - len(moved)
            whole = whole and heads is not None
        redirects.finish()
        return _DumpSurvey(header, articles, redirects, whole)

    def _read_heads(self, site: WikiSite) -> Iterator[list[PageHead] | None]:
        """Return what pages say of themselves; None where the dump is damaged, as the second pass will report."""
        indexed = {path: index for path in self._paths if (index := _find_index(path))}
        ranges = (
            _make_range(path, site, stream)
            for path, index in indexed.items()
            for stream in read_streams(index, path.stat().st_size)
        )
        yield from map_in_order(methodcaller("heads"), ranges, self._count_workers())
        for path in self._paths:
            if path not in indexed:
                yield from _heads_of(path, site)

    def _read_articles(self, survey: _DumpSurvey, known: Mapping[str, str]) -> Iterator[ArticleItem]:
        failures: list[ArticleItem] = []
        work = self._split_work(survey, known, failures)
        yield from chain.from_iterable(map_in_order(methodcaller("read"), work, self._count_workers()))
        yield from failures

    def _split_work(
        self, survey: _DumpSurvey, known: Mapping[str, str], failures: list[ArticleItem]
    ) -> Iterator[StreamRange | ArticleBatch]:
        """Yield what is to be read; where a file ends too early, that is reported."""

        def is_known(head: PageHead) -> bool:
            return survey.knows(known.get(head.key, ""), head.stamp, head.title)

        for path in self._paths:
            if index := _find_index(path):
                for stream in read_streams(index, path.stat().st_size):
                    yield _make_range(path, survey.site, stream, _known_revisions(stream, known, survey))
                continue
            try:
                yield from split_batches(XmlExport(read_blocks(path)).pages(), survey.site, is_known)
            except DumpTruncated as error:
                hint = "What stands before it was read. Download the dump again for the rest."
                failures.append(Unreadable(path.name, f"{error}. {hint}"))

    def _count_workers(self) -> int:
        if self._processes:
            return self._processes
        return 1 if sum(path.stat().st_size for path in self._paths) < _SMALL else count_cores()


def _find_index(path: Path) -> Path | None:
    return find_index(path) if detect_compression(path) == "bz2" else None


def _heads_of(path: Path, site: WikiSite) -> Iterator[list[PageHead] | None]:
    try:
        for page in XmlExport(read_blocks(path)).pages():
            found = parse_head(page.xml, site)
            yield [found] if found else []
    except DumpTruncated:
        yield None


def _make_range(path: Path, site: WikiSite, stream: DumpStream, known: Mapping[str, str] = EMPTY) -> StreamRange:
    return StreamRange(site, path, stream.start, stream.end, dict(known))


def _known_revisions(stream: DumpStream, known: Mapping[str, str], survey: _DumpSurvey) -> dict[str, str]:
    """Return the revisions of a stream's pages that are known with their present aliases."""
    found = ((key, known[key].partition("-")[0], title) for key, title in stream.pages if key in known)
    return {key: stamp for key, stamp, title in found if survey.knows(known[key], stamp, title)}


def _make_page(item: ReadArticle, site: WikiSite, aliases: tuple[str, ...]) -> Page:
    head = item.head
    return Page(
        title=head.title,
        sections=make_sections(item.outline),
        url=site.url(head.title, head.revision),
        revision=head.revision,
        date=_parse_timestamp(item.timestamp),
        language=site.language,
        aliases=aliases,
        disambiguation=item.disambiguation,
    )


def _parse_timestamp(timestamp: str) -> datetime | None:
    try:
        date = datetime.fromisoformat(timestamp)
    except ValueError:
        return None
    return date if date.tzinfo else None


class _SeenIds:
    """Remember page ids, a bit for each: a Wikipedia has many millions of them."""

    def __init__(self) -> None:
        self._bits = bytearray()
        self._others: set[str] = set()
        self.twice = 0

    def add(self, key: str) -> bool:
        """Note a key; return False if it was met before."""
        if not key.isdigit() or len(key) > 9:  # noqa: PLR2004 - more digits would take hundreds of megabytes
            new = key not in self._others
            self._others.add(key)
        else:
            place, bit = divmod(int(key), 8)
            if place >= len(self._bits):
                self._bits.extend(bytes(place + 1 - len(self._bits) + (len(self._bits) >> 2)))
            new = not self._bits[place] & (1 << bit)
            self._bits[place] |= 1 << bit
        self.twice += not new
        return new
