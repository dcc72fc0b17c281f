"""The estimated cost of ingesting a dump."""

import bz2
import gzip

import pytest

from ingest.sources.dumps.dump_estimate import DumpSample, estimate_dump, sample_dump
from ingest.sources.dumps.dump_file import DumpError
from tests.ingest.sources.dumps import dump, page

PAGES = [page(n, f"Page {n}", f"The page of {n * 7919} tells of {n * 104729}. " * 60) for n in range(1, 400)]


def test_estimate_extrapolates_the_sample():
    sample = DumpSample(1_000, 10, 50, 400, 100_000, 200_000, unpack_seconds=9.0, parse_seconds=36.0)
    estimate = estimate_dump(sample, 2, embed_seconds=0.009, dimensions=384)

    assert (estimate.articles, estimate.passages, estimate.cores) == (5_000, 40_000, 2)
    assert estimate.lazy.hours == pytest.approx(0.75, rel=0.01)
    assert estimate.eager.hours - estimate.lazy.hours == pytest.approx(0.1)
    assert estimate.eager.memory - estimate.lazy.memory == 40_000 * 384 * 4
    assert estimate.eager.disk > estimate.lazy.disk > 100 * (100_000 + 200_000 * 0.3)


@pytest.mark.parametrize("pack", [bytes, bz2.compress, gzip.compress], ids=["plain", "bz2", "gz"])
def test_small_dump_is_sampled_almost_completely(tmp_path, pack):
    path = tmp_path / "dump"
    path.write_bytes(pack(dump(*PAGES)))
    sample, texts = sample_dump(path)
    estimate = estimate_dump(sample, 1, 0.0, 1)

    assert estimate.articles == pytest.approx(len(PAGES), rel=0.1)
    assert texts[0].startswith("The page of")


def test_dump_without_articles_is_rejected(tmp_path):
    path = tmp_path / "dump.xml"
    path.write_bytes(dump())

    with pytest.raises(DumpError, match="no articles"):
        sample_dump(path)
