"""Estimate the cost of ingesting a dump from samples that are spread over the whole file."""

import bz2
import time
import zlib
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
from operator import add
from pathlib import Path

from ingest.page_cleanup import load_page
from ingest.refresh.document_plan import pack_document
from ingest.sources.dumps.article_batches import ReadArticle, list_article, read_article
from ingest.sources.dumps.bz2_blocks import BlockRange
from ingest.sources.dumps.dump_file import DumpError, detect_compression, find_index, read_blocks, read_streams
from ingest.sources.dumps.page_xml import XmlExport, parse_head
from ingest.types import UnreadableDocument
from ingest.wikitext.wiki_site import WikiSite
from storage.database.bodies import unpack_passages
from storage.database.document_versions import PackedDocument

STRETCHES = 24
_STRETCH_BYTES = 1 << 18  # of a packed file without an index
_PLAIN_BYTES = 1 << 20  # of one that is not packed
_ROW_BYTES = 800  # database rows and indexes per document, without its text
_WORD_SHARE = 0.4  # size of the word index relative to its terms
_STORE_SECONDS = 45e-6  # processor time to store a passage
_MOST_TEXTS = 64
_VECTOR_SHARE = 2.2  # bytes on disk per byte of a vector
_SERVED_BYTES, _READ_BYTES = 700 << 20, 150 << 20  # memory of the bot, and of each process that reads a dump
_KNOWN_BYTES = 60  # memory per known article while a dump is compared


@dataclass(frozen=True, slots=True)
class DumpSample:
    """The contents of samples of a dump: `read_bytes` of its `bytes` were read. Seconds are those of one processor."""

    bytes: int
    read_bytes: float = 0.0
    articles: int = 0
    passages: int = 0
    text_bytes: int = 0
    term_bytes: int = 0
    unpack_seconds: float = 0.0
    parse_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class ModeEstimate:
    """The cost of one mode of ingesting: hours on this machine, bytes on disk without the dump, and bytes of memory."""

    hours: float
    disk: int
    memory: int


@dataclass(frozen=True, slots=True)
class DumpEstimate:
    """The approximate contents of a dump, and the cost of ingesting it."""

    bytes: int
    articles: int
    passages: int
    cores: int
    lazy: ModeEstimate
    eager: ModeEstimate


def estimate_dump(sample: DumpSample, cores: int, embed_seconds: float, dimensions: int) -> DumpEstimate:
    """Extrapolate from a sample. `embed_seconds` is the time to embed one passage if all cores are used."""
    times = sample.bytes / sample.read_bytes if sample.read_bytes else 0.0
    articles, passages = round(sample.articles * times), round(sample.passages * times)
    # The dump is unpacked twice: first for the redirects.
    work = times * (2 * sample.unpack_seconds + sample.parse_seconds) + passages * _STORE_SECONDS
    disk = round(times * (sample.text_bytes + _WORD_SHARE * sample.term_bytes) + articles * _ROW_BYTES)
    memory = _SERVED_BYTES + cores * _READ_BYTES + articles * _KNOWN_BYTES
    vectors = passages * dimensions * 4
    lazy = ModeEstimate(work / cores / 3600, disk, memory)
    eager_hours = lazy.hours + passages * embed_seconds / 3600
    eager = ModeEstimate(eager_hours, round(disk + _VECTOR_SHARE * vectors), memory + vectors)
    return DumpEstimate(sample.bytes, articles, passages, cores, lazy, eager)


def sample_dump(path: Path) -> tuple[DumpSample, list[str]]:
    """Return the contents of samples of a dump, and the texts of some passages. Raises `DumpError`."""
    site = XmlExport(read_blocks(path)).site
    sample, texts = DumpSample(path.stat().st_size), list[str]()
    for taken, xml, seconds in _unpack_stretches(path):
        stretch = replace(_read_stretch(xml, site, texts), read_bytes=taken, unpack_seconds=seconds)
        sample = DumpSample(*map(add, astuple(sample), astuple(stretch)))
    if not sample.articles:
        raise DumpError(f"The samples of {path} contain no articles.", hint="Is it a pages-articles dump?")
    return sample, texts


def _read_stretch(xml: bytes, site: WikiSite, texts: list[str]) -> DumpSample:
    started, packed = time.process_time(), list[PackedDocument]()
    for page in XmlExport([xml, b"</mediawiki>"]).pages():
        head = parse_head(page.xml, site)
        if head and head.namespace == 0 and head.redirect is None:
            read = read_article(page, head, site)
            if isinstance(read, ReadArticle):
                document = list_article(read, site)
                try:
                    packed.append(pack_document("wikipedia", document, load_page(document)))
                except UnreadableDocument:
                    continue
    firsts = (document for document in packed if document.passages and len(texts) < _MOST_TEXTS)
    texts += [unpack_passages(first.document, first.body)[0].text for first in firsts]
    return DumpSample(
        0,
        articles=len(packed),
        passages=sum(document.passages for document in packed),
        text_bytes=sum(len(document.body) for document in packed),
        term_bytes=sum(len(terms) for document in packed for terms in document.terms),
        parse_seconds=time.process_time() - started,
    )


def _unpack_stretches(path: Path) -> Iterator[tuple[float, bytes, float]]:
    """Yield samples: the number of packed bytes, the whole pages in them, and the seconds needed to unpack these."""
    packed, size = detect_compression(path), path.stat().st_size
    for start, end in _choose_stretches(path, packed, size):
        started = time.process_time()
        content = _unpack(path, packed, start, end)
        begin, close = content.find(b"<page>"), content.rfind(b"</page>") + len(b"</page>")
        if 0 <= begin < close:
            whole = content[begin:close]
            # The dump's header and end do not belong to other pages.
            share = ((close if end < size else len(content)) - (begin if start else 0)) / len(content)
            yield share * (end - start), whole, share * (time.process_time() - started)


def _unpack(path: Path, packed: str, start: int, end: int) -> bytes:
    with path.open("rb") as file:
        file.seek(start)
        content = file.read(end - start)
    try:
        if packed == "gz":
            return zlib.decompressobj(wbits=31).decompress(content)
        return bz2.decompress(content) if packed else content
    except (OSError, ValueError, zlib.error):  # not a separate stream, or damaged
        return BlockRange(path, start, end).unpack().content if packed == "bz2" else b""


def _choose_stretches(path: Path, packed: str, size: int) -> list[tuple[int, int]]:
    """Choose samples of a file, as (start, end): streams if it has an index; of a gz file, only its beginning."""
    if packed == "gz":
        return [(0, min(size, STRETCHES * _STRETCH_BYTES))]
    if packed and (index := find_index(path)):
        streams = [(stream.start, stream.end) for stream in read_streams(index, size)]
        return streams[:: max(1, len(streams) // STRETCHES)]
    length = _STRETCH_BYTES if packed else _PLAIN_BYTES
    step = max(size // STRETCHES, length)
    return [(start, min(start + length, size)) for start in range(0, size, step)]
