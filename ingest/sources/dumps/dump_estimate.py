"""Tell what a dump will take before it is ingested, by reading some stretches of it from beginning to end."""

import bz2
import time
import zlib
from collections.abc import Iterator
from dataclasses import astuple, dataclass, replace
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
_ROW_BYTES = 800  # of a document beside its text, in the database with its indexes
_WORD_SHARE = 0.4  # of the bytes of the terms that the index of words takes
_STORE_SECONDS = 45e-6  # of a processor, for a passage that is stored
_MOST_TEXTS = 64
_VECTOR_SHARE = 2.2  # bytes on disk for each of a vector
_SERVED_BYTES, _READ_BYTES = 700 << 20, 150 << 20  # of memory: a bot, and each process that reads a dump
_KNOWN_BYTES = 60  # of memory, for what is known of an article while a dump is compared with it


@dataclass(frozen=True, slots=True)
class DumpSample:
    """What stretches of a dump hold: `read_bytes` of its `bytes`, in so many seconds of one processor."""

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
    """What one way of ingesting takes: hours of this machine, bytes on disk beside the dump, bytes of memory."""

    hours: float
    disk: int
    memory: int


@dataclass(frozen=True, slots=True)
class DumpEstimate:
    """What a dump holds, about, and what it takes to ingest it."""

    bytes: int
    articles: int
    passages: int
    cores: int
    lazy: ModeEstimate
    eager: ModeEstimate


def estimate_dump(sample: DumpSample, cores: int, embed_seconds: float, dimensions: int) -> DumpEstimate:
    """Calculate from a sample, as if all of the dump were like it; `embed_seconds` all cores take for a passage."""
    times = sample.bytes / sample.read_bytes if sample.read_bytes else 0.0
    articles, passages = round(sample.articles * times), round(sample.passages * times)
    # Unpacked twice: at first for the redirects.
    work = times * (2 * sample.unpack_seconds + sample.parse_seconds) + passages * _STORE_SECONDS
    disk = round(times * (sample.text_bytes + _WORD_SHARE * sample.term_bytes) + articles * _ROW_BYTES)
    memory = _SERVED_BYTES + cores * _READ_BYTES + articles * _KNOWN_BYTES
    vectors = passages * dimensions * 4
    lazy = ModeEstimate(work / cores / 3600, disk, memory)
    eager_hours = lazy.hours + passages * embed_seconds / 3600
    eager = ModeEstimate(eager_hours, round(disk + _VECTOR_SHARE * vectors), memory + vectors)
    return DumpEstimate(sample.bytes, articles, passages, cores, lazy, eager)


def sample_dump(path: Path) -> tuple[DumpSample, list[str]]:
    """Read some stretches of a dump; return what they hold, and the texts of some passages. Raises `DumpError`."""
    site = XmlExport(read_blocks(path)).site
    sample, texts = DumpSample(path.stat().st_size), list[str]()
    for taken, xml, seconds in _unpack_stretches(path):
        found = replace(_read_stretch(xml, site, texts), read_bytes=taken, unpack_seconds=seconds)
        sample = DumpSample(*(one + other for one, other in zip(astuple(sample), astuple(found), strict=True)))
    if not sample.articles:
        raise DumpError(f"{path} holds no articles where it was looked at.", hint="Is it a pages-articles dump?")
    return sample, texts


def _read_stretch(xml: bytes, site: WikiSite, texts: list[str]) -> DumpSample:
    started, packed = time.process_time(), list[PackedDocument]()
    for page in XmlExport([xml, b"</mediawiki>"]).pages():
        head = parse_head(page.xml, site)
        if head and head.namespace == 0 and head.redirect is None:
            read = read_article(page, head, site)
            if isinstance(read, ReadArticle):
                found = list_article(read, site)
                try:
                    packed.append(pack_document("wikipedia", found, load_page(found)))
                except UnreadableDocument:
                    continue
    firsts = (one for one in packed if one.passages and len(texts) < _MOST_TEXTS)
    texts += [unpack_passages(first.document, first.body)[0].text for first in firsts]
    return DumpSample(
        0,
        articles=len(packed),
        passages=sum(one.passages for one in packed),
        text_bytes=sum(len(one.body) for one in packed),
        term_bytes=sum(len(terms) for one in packed for terms in one.terms),
        parse_seconds=time.process_time() - started,
    )


def _unpack_stretches(path: Path) -> Iterator[tuple[float, bytes, float]]:
    """Yield whole pages, the bytes that they take in the file, and the seconds of unpacking them."""
    packed, size = detect_compression(path), path.stat().st_size
    for start, end in _choose_stretches(path, packed, size):
        started = time.process_time()
        content = _unpack(path, packed, start, end)
        begin, close = content.find(b"<page>"), content.rfind(b"</page>") + len(b"</page>")
        if 0 <= begin < close:
            whole = content[begin:close]
            # What stands before the first page of a dump and behind its last is no part of another page.
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
    except (OSError, ValueError, zlib.error):  # no stream of its own, or damaged
        return BlockRange(path, start, end).unpack().content if packed == "bz2" else b""


def _choose_stretches(path: Path, packed: str, size: int) -> list[tuple[int, int]]:
    """Choose stretches all over a file: streams where an index tells them, the beginning where nothing else can be."""
    if packed == "gz":
        return [(0, min(size, STRETCHES * _STRETCH_BYTES))]
    if packed and (index := find_index(path)):
        streams = [(stream.start, stream.end) for stream in read_streams(index, size)]
        return streams[:: max(1, len(streams) // STRETCHES)]
    length = _STRETCH_BYTES if packed else _PLAIN_BYTES
    step = max(size // STRETCHES, length)
    return [(start, min(start + length, size)) for start in range(0, size, step)]
