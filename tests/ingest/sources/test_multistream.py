"""The index of a multistream dump locates its streams."""

import bz2
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.sources.dumps.dump_file import DumpError, DumpStream, find_index, parse_streams, read_streams

DATA = Path(os.environ.get("FOOTNOTE_DATA", Path(__file__).parents[4] / "shared" / "data"))
SAMPLE = DATA / "wikipedia_dumps" / "multistream-index-sample.txt"


def test_index_lines_with_the_same_offset_form_one_stream():
    lines = ["499:10:A\n", "499:12:B: C\n", "900:13:D\n"]

    assert list(parse_streams(lines, 1000)) == [
        DumpStream(499, 900, (("10", "A"), ("12", "B: C"))),
        DumpStream(900, 1000, (("13", "D"),)),
    ]


@given(st.lists(st.integers(1, 2**31 - 1), min_size=1, max_size=20))
def test_offsets_truncated_to_32_bits_are_restored(steps):
    offsets = [sum(steps[: end + 1]) for end in range(len(steps))]
    cut = [(offset + 2**31) % 2**32 - 2**31 for offset in offsets]

    streams = list(parse_streams((f"{offset}:1:A" for offset in cut), offsets[-1] + 1))

    assert [stream.start for stream in streams] == offsets


@pytest.mark.skipif(not SAMPLE.exists(), reason="FOOTNOTE_DATA can name the folder of data sets")
def test_negative_offsets_of_a_real_index_are_restored():
    """The third stream of the sample begins above 2 GiB."""
    streams = list(parse_streams(SAMPLE.read_text(encoding="utf-8").splitlines(), 2**32))

    assert [stream.start for stream in streams] == [499, 2147418907, 2**32 - 2147469295]
    assert [len(stream.pages) for stream in streams] == [10, 6, 4]


@pytest.mark.parametrize("packed", [True, False])
def test_index_is_found_next_to_its_dump(tmp_path, packed):
    dump = tmp_path / "enwiki-x-pages-articles-multistream3.xml-p1p9.bz2"
    index = tmp_path / f"enwiki-x-pages-articles-multistream-index3.txt-p1p9{'.bz2' if packed else ''}"
    index.write_bytes(bz2.compress(b"5:1:A\n") if packed else b"5:1:A\n")

    assert find_index(dump) == index
    assert list(read_streams(index, 9)) == [DumpStream(5, 9, (("1", "A"),))]
    assert find_index(tmp_path / "other.xml.bz2") is None


def test_damaged_index_is_reported_with_a_hint(tmp_path):
    index = tmp_path / "index.txt"
    index.write_text("5:1:A\nnonsense\n")

    with pytest.raises(DumpError, match="line 2 is not offset:id:title") as failure:
        list(read_streams(index, 9))
    assert "remove it" in failure.value.hint
