"""Large dumps that are made from a small one."""

import bz2

import pytest

from ingest.sources.dumps.dump_file import read_streams
from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from tests.ingest.sources.dumps import dump, page
from tools.benchmarks.synthetic_dump import write_dump


@pytest.fixture
def small(tmp_path):
    """Write a dump with a lead, a section, links and numbers."""
    path = tmp_path / "small.xml"
    text = (
        "Ada met [[Babbage|Charles]] in 1833 &amp; {{birth|1815}} wrote. " * 40 + "\n== Life ==\n" + "She lived. " * 400
    )
    path.write_bytes(dump(page(1, "Ada", text), page(2, "Countess", "#REDIRECT [[Ada]]", redirect="Ada")))
    return path


def test_articles_and_redirects_are_consistent(small, tmp_path):
    """Ids ascend, titles differ, redirects lead to articles of the dump."""
    made = write_dump(small, tmp_path / "large.xml", 1, processes=1)
    items = list(WikipediaDump(made.path, processes=1).documents())
    pages = [item.load() for item in items]
    aliases = {alias for page in pages for alias in page.aliases}

    assert [int(item.key) for item in items] == sorted(int(item.key) for item in items)
    assert len({page.title for page in pages}) == made.articles == len(items)
    assert aliases
    assert not aliases & {page.title for page in pages}
    assert made.bytes >= 1_000_000


def test_changed_dump_differs_only_in_some_streams(small, tmp_path):
    """All other streams have the same bytes, and the index has the start of each stream."""
    names = ("before", "after")
    before, after = (
        write_dump(small, tmp_path / f"{name}-multistream.xml.bz2", 3, changed=share, in_streams=0.3, processes=1)
        for name, share in zip(names, (0.0, 0.1), strict=True)
    )
    content = [
        [made.path.read_bytes()[stream.start : stream.end] for stream in read_streams(index, made.path.stat().st_size)]
        for made in (before, after)
        for index in [made.path.with_name(made.path.name.replace(".xml.bz2", "-index.txt.bz2"))]
    ]
    different = [number for number, (one, other) in enumerate(zip(*content, strict=True)) if one != other]

    assert 0 < after.changed < 0.3 * before.articles * 2
    assert 0 < len(different) < before.streams
    assert all(bz2.decompress(stream) for stream in content[1][:-1])
