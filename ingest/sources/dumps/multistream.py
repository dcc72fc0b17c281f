"""The index that lies beside a multistream dump: where each of its streams begins, and which pages are in it.

A line is `offset:page id:title`. Some tools wrote offsets beyond 2 GiB as signed numbers of 32 bits; as offsets only
ever grow, what they were before can be told.
"""

import bz2
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

from ingest.sources.dumps.file import DumpError

_WRAP = 1 << 32
_ENDING = "-multistream"


@dataclass(frozen=True, slots=True)
class Stream:
    """A stream of a multistream dump: its bytes in the file, end exclusive, and its pages as (id, title)."""

    start: int
    end: int
    pages: tuple[tuple[str, str], ...]


def index_beside(dump: Path) -> Path | None:
    """The index of a multistream dump in the same folder, None if there is none.

    `enwiki-20260101-pages-articles-multistream.xml.bz2` has `enwiki-20260101-pages-articles-multistream-index.txt.bz2`,
    packed or not; parts of a dump have numbers behind `multistream` and `index`.
    """
    before, multistream, after = dump.name.partition(_ENDING)
    if not multistream:
        return None
    after = after.removesuffix(".bz2")
    part = after.replace(".xml", ".txt")
    names = (f"{before}{_ENDING}-index{part}{packed}" for packed in (".bz2", ""))
    return next((path for name in names if (path := dump.with_name(name)).is_file()), None)


def streams(index: Path, size: int) -> Iterator[Stream]:
    """The streams of a dump of `size` bytes, in order. Raises `DumpError` at a line that says nothing."""
    try:
        with (
            bz2.open(index, "rt", encoding="utf-8") if index.suffix == ".bz2" else index.open(encoding="utf-8") as file
        ):
            yield from parsed(file, size)
    except (ValueError, OSError, EOFError) as error:
        hint = "Download the index again, or remove it: without it the dump is read from beginning to end."
        raise DumpError(f"The index {index} is damaged: {error}.", hint=hint) from error


def parsed(lines: Iterable[str], size: int) -> Iterator[Stream]:
    """The streams that the lines of an index tell of; pure. Raises `ValueError`."""
    start = -1
    pages: tuple[tuple[str, str], ...] = ()
    for offset, group in groupby(_entries(lines), key=lambda entry: entry[0]):
        if start >= 0:
            yield Stream(start, offset, pages)
        start, pages = offset, tuple((page, title) for _, page, title in group)
    if start >= 0:
        yield Stream(start, size, pages)


def _entries(lines: Iterable[str]) -> Iterator[tuple[int, str, str]]:
    before = 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        written, _, rest = line.rstrip("\n").partition(":")
        page, colon, title = rest.partition(":")
        if not colon or not written.lstrip("-").isdigit():
            raise ValueError(f"line {number} is not offset:id:title")
        # The least number not below the last one that is the same in 32 bits, where it was cut to them.
        offset = int(written)
        if offset < before:
            offset += (before - offset + _WRAP - 1) // _WRAP * _WRAP
        before = offset
        yield offset, page, title
