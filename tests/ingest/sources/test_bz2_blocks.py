"""Ranges of a bz2 file, unpacked separately, give the same content as the whole file."""

import bz2
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.sources.dumps.bz2_blocks import BlockRange
from ingest.sources.dumps.dump_file import DumpTruncated, read_blocks
from ingest.sources.dumps.page_xml import XmlExport
from ingest.sources.dumps.worker_pool import WorkerPool
from tests.ingest.sources.dumps import dump, page
from tests.thorough import sample

XML = dump(*(page(n, f"Page {n}", " ".join(str(Random(n * 7 + m).random()) for m in range(60))) for n in range(1, 700)))


def unpacked(path, *borders):
    size = path.stat().st_size
    ends = sorted({min(border, size) for border in borders} | {0, size})
    ranges = [BlockRange(path, start, end).unpack() for start, end in pairwise(ends)]
    return b"".join(unpacked.content for unpacked in ranges), [
        unpacked.damage for unpacked in ranges if unpacked.damage
    ]


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """Write a file of many small blocks in three streams, one of them empty."""
    path = tmp_path_factory.mktemp("packed") / "dump.xml.bz2"
    path.write_bytes(bz2.compress(XML[:300_000], 1) + bz2.compress(b"") + bz2.compress(XML[300_000:], 1))
    return path


@settings(max_examples=sample(15))
@given(st.lists(st.integers(0, 400_000), max_size=5))
def test_content_does_not_depend_on_range_size(packed, borders):
    assert unpacked(packed, *borders) == (XML, [])


def test_blocks_before_damage_are_unpacked(packed, tmp_path):
    content = bytearray(packed.read_bytes())
    content[len(content) // 2] ^= 0xFF
    broken, cut = tmp_path / "broken.bz2", tmp_path / "cut.bz2"
    broken.write_bytes(content)
    cut.write_bytes(content[: len(content) // 3])

    for path, message in ((broken, "is damaged near byte"), (cut, "ends too early, at byte")):
        read = []
        with pytest.raises(DumpTruncated, match=message):
            read.extend(read_blocks(path, lambda ranges: (range_.unpack() for range_ in ranges)))
        assert read
        assert XML.startswith(b"".join(read))


def test_pages_do_not_depend_on_range_size(packed):
    with WorkerPool(1) as pool:
        apart = XmlExport(read_blocks(packed, lambda ranges: pool.map(BlockRange.unpack, ranges)))
        whole = XmlExport(read_blocks(packed))

        assert apart.site == whole.site
        assert list(apart.pages()) == list(whole.pages())
