"""Open a dump: detect its compression and encoding, and stream its XML as UTF-8."""

import bz2
import codecs
import zlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, BinaryIO, NoReturn, TypeVar

from ingest.sources.dumps.bz2_blocks import BlockRange, UnpackedRange, split_ranges
from ingest.types import SingleReadUnsupported, SourceUnavailable
from storage.language.lazy_pattern import lazy_compile

T = TypeVar("T")

BLOCK_BYTES = 1 << 20  # bytes to read, and roughly to unpack, at a time

_WRONG_KINDS = (
    (b"PK\x03\x04", "is a zip archive", "Unpack it first: unzip"),
    (b"7z\xbc\xaf\x27\x1c", "is a 7z archive", "Unpack it first: 7z x"),
    (b"\xfd7zXZ", "is packed with xz", "Unpack it first: unxz"),
    (b"\x28\xb5\x2f\xfd", "is packed with zstd", "Unpack it first: unzstd"),
    (b"%PDF", "is a PDF file", ""),
    (b"SQLite format 3", "is a database", ""),
    (b"-- M", "is an SQL dump", ""),
)
_DUMP_HINT = "Give a pages-articles dump of a wiki, as on dumps.wikimedia.org: .xml, .xml.bz2 or .xml.gz."
_ENCODING = lazy_compile(rb"<\?xml[^>]*encoding=[\"']([A-Za-z0-9._-]+)[\"']")


class DumpError(SourceUnavailable):
    """The dump cannot be used at all."""

    kind = "dump"


def refuse_single(address: str, known: Mapping[str, str]) -> NoReturn:
    """Raise `SingleReadUnsupported`, as a page's position in a dump is unknown. The method `one` of all dumps."""
    del known
    raise SingleReadUnsupported(
        f"{address} cannot be read alone: its corpus comes from a dump, which is read as a whole.",
        hint="It is refreshed with the next dump, or by `footnote ingest all`.",
    )


class DumpTruncated(Exception):
    """The dump is damaged or truncated. `str()` says where; everything before that was read."""


UnpackRanges = Callable[[Iterable[BlockRange]], Iterator[UnpackedRange]]  # may unpack ahead, in order


def read_blocks(path: Path, unpack: UnpackRanges | None = None) -> Iterator[bytes]:
    """Yield the dump's XML as UTF-8 in blocks of some megabytes. `unpack`, or else a separate thread, unpacks it.

    Raises `DumpError` at the first block, and `DumpTruncated` after all readable blocks.
    """
    with _open_dump(path) as file:
        start = file.read(16)
        file.seek(0)
        if not start:
            raise DumpError(f"{path} is empty.", hint="Download it again.")
        if unpack and start.startswith(b"BZh"):
            yield from _decode_utf8(_join_ranges(unpack(split_ranges(path))), path)
            return
        unpacked = _unpack(file, start)
        if start.startswith(b"<"):
            yield from _decode_utf8(unpacked, path)
            return
        # Close explicitly: the garbage collector could run, and join the thread, in any thread, even in this one.
        with closing(_read_ahead(unpacked)) as ahead:
            yield from _decode_utf8(ahead, path)


def detect_compression(path: Path) -> str:
    """Return `bz2`, `gz` or "" by the file's first bytes. Raises `DumpError` if it cannot be opened."""
    with _open_dump(path) as file:
        start = file.read(4)
    return "bz2" if start.startswith(b"BZh") else "gz" if start.startswith(b"\x1f\x8b") else ""


def _open_dump(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise DumpError(f"There is no file {path}.", hint="Check the path.") from error
    except IsADirectoryError as error:
        raise DumpError(f"{path} is a folder, not a dump.", hint="Give one of the files in it.") from error
    except OSError as error:
        raise DumpError(f"{path} cannot be read: {error.strerror}.", hint="Check its permissions.") from error


def _unpack(file: BinaryIO, start: bytes) -> Iterator[bytes]:
    if start.startswith(b"BZh"):
        return _unpack_streams(file, bz2.BZ2Decompressor)
    if start.startswith(b"\x1f\x8b"):
        return _unpack_streams(file, lambda: zlib.decompressobj(wbits=31))
    return iter(lambda: file.read(BLOCK_BYTES), b"")


def _unpack_streams(file: BinaryIO, unpacker: Callable[[], Any]) -> Iterator[bytes]:
    """Unpack all streams of a packed file in order."""
    current = unpacker()
    fresh = True
    # Pieces are small, so that no unpacked block exceeds some megabytes.
    while piece := file.read(BLOCK_BYTES // 8):
        while piece:
            try:
                data = current.decompress(piece)
            except (OSError, zlib.error) as error:
                if fresh and file.tell() > BLOCK_BYTES // 8 and not piece.strip(b"\0"):
                    return  # padding after the last stream
                position = file.tell() - len(piece)
                raise DumpTruncated(f"the packed data is damaged near byte {position:,} of the file") from error
            fresh = False
            if data:
                yield data
            piece = current.unused_data if current.eof else b""
            if current.eof:
                current, fresh = unpacker(), True
    if not fresh:
        raise DumpTruncated(f"the packed data ends too early, at byte {file.tell():,} of the file")


def _join_ranges(ranges: Iterator[UnpackedRange]) -> Iterator[bytes]:
    for unpacked in ranges:
        if unpacked.content:
            yield unpacked.content
        if unpacked.damage:
            raise DumpTruncated(unpacked.damage)


def _read_ahead(items: Iterator[T]) -> Generator[T, None, None]:
    """Yield the same items. A separate thread prepares the next item while the caller uses one."""
    with ThreadPoolExecutor(1, thread_name_prefix="unpack") as pool:
        upcoming = pool.submit(next, items, None)
        while (item := upcoming.result()) is not None:
            upcoming = pool.submit(next, items, None)
            yield item


def _decode_utf8(data: Iterator[bytes], path: Path) -> Iterator[bytes]:
    first = next(data, b"")
    encoding = _declared_encoding(first)
    if encoding == "utf-8":
        first = first.removeprefix(codecs.BOM_UTF8)
        _check_kind(first, path)
        yield first
        yield from data
        return
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    decoded = decoder.decode(first).removeprefix("\ufeff").encode()
    _check_kind(decoded, path)
    yield decoded
    for block in data:
        yield decoder.decode(block).encode()
    yield decoder.decode(b"", final=True).encode()


def _declared_encoding(start: bytes) -> str:
    if start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    if start[:4] in (b"<\0?\0", b"<\0m\0"):
        return "utf-16-le"
    if start[:4] in (b"\0<\0?", b"\0<\0m"):
        return "utf-16-be"
    declared = _ENCODING.match(start)
    try:
        return codecs.lookup(declared[1].decode()).name if declared else "utf-8"
    except LookupError:
        return "utf-8"


def _check_kind(start: bytes, path: Path) -> None:
    text = start.lstrip()
    head = text[:4096].lower()
    if b"<mediawiki" in text[:65536] or text.startswith(b"<page>"):
        return
    for magic, kind, fix in _WRONG_KINDS:
        if text.startswith(magic):
            raise DumpError(f"{path} {kind}, not an XML dump.", hint=f"{fix} {path.name}" if fix else _DUMP_HINT)
    if text[:1] in (b"{", b"["):
        raise DumpError(f"{path} is JSON, not an XML dump.", hint=_DUMP_HINT)
    if b"<html" in head or b"<!doctype html" in head:
        hint = "A failed download often looks like this: download the dump again."
        raise DumpError(f"{path} is a web page, not an XML dump.", hint=hint)
    if not text:
        raise DumpError(f"{path} contains no text.", hint="Download it again.")
    kind = "XML, but not a wiki's export (it has no <mediawiki> element)" if text.startswith(b"<") else "not XML"
    raise DumpError(f"{path} is {kind}.", hint=_DUMP_HINT)


_WRAP = 1 << 32
_MULTISTREAM_ENDING = "-multistream"


@dataclass(frozen=True, slots=True)
class DumpStream:
    """A stream of a multistream dump: the range of its bytes in the file, end exclusive, and its pages: (id, title)."""

    start: int
    end: int
    pages: tuple[tuple[str, str], ...]


def find_index(dump: Path) -> Path | None:
    """Find the index of a multistream dump in the same folder: `…-multistream-index.txt.bz2`, packed or not."""
    before, multistream, after = dump.name.partition(_MULTISTREAM_ENDING)
    if not multistream:
        return None
    after = after.removesuffix(".bz2")
    part = after.replace(".xml", ".txt")
    names = (f"{before}{_MULTISTREAM_ENDING}-index{part}{packed}" for packed in (".bz2", ""))
    return next((path for name in names if (path := dump.with_name(name)).is_file()), None)


def read_streams(index: Path, size: int) -> Iterator[DumpStream]:
    """Yield the streams of a dump of `size` bytes, in order. Raises `DumpError` at an invalid line."""
    try:
        with (
            bz2.open(index, "rt", encoding="utf-8") if index.suffix == ".bz2" else index.open(encoding="utf-8") as file
        ):
            yield from parse_streams(file, size)
    except (ValueError, OSError, EOFError) as error:
        hint = "Download the index again, or remove it: the dump is then read from beginning to end."
        raise DumpError(f"The index {index} is damaged: {error}.", hint=hint) from error


def parse_streams(lines: Iterable[str], size: int) -> Iterator[DumpStream]:
    """Yield the streams that the lines of an index name. Raises `ValueError`."""
    start = -1
    pages: tuple[tuple[str, str], ...] = ()
    for offset, group in groupby(_parse_entries(lines), key=lambda entry: entry[0]):
        if start >= 0:
            yield DumpStream(start, offset, pages)
        start, pages = offset, tuple((page, title) for _, page, title in group)
    if start >= 0:
        yield DumpStream(start, size, pages)


def _parse_entries(lines: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    before = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        written, _, rest = line.rstrip("\n").partition(":")
        page, colon, title = rest.partition(":")
        if not colon or not written.lstrip("-").isdigit():
            raise ValueError(f"line {number} is not offset:id:title")
        # Offsets may be truncated to 32 bits: restore the smallest value not below the previous one.
        offset = int(written)
        if offset < before:
            offset += (before - offset + _WRAP - 1) // _WRAP * _WRAP
        before = offset
        yield offset, page, title
