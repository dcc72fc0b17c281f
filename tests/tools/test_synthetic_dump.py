"""Large dumps composed of a small one."""

import pytest

from ingest.sources.dumps.wikipedia_dump import WikipediaDump
from tests.ingest.sources.dumps import dump, page
from tools.benchmarks.synthetic_dump import write_dump

TEXT = "Ada met [[Babbage|Charles]] in 1833 &amp; {{birth|1815}} wrote. " * 40 + "\n== Life ==\n" + "She lived. " * 400


@pytest.mark.parametrize("name", ["large.xml", "large-multistream.xml.bz2"])
def test_articles_and_redirects_are_distinct(tmp_path, name):
    small = tmp_path / "small.xml"
    small.write_bytes(dump(page(1, "Ada", TEXT), page(2, "Countess", "#REDIRECT [[Ada]]", redirect="Ada")))

    made = write_dump(small, tmp_path / name, 1, processes=1)
    items = list(WikipediaDump(made.path, processes=1).documents())
    pages = [item.load() for item in items]
    aliases = {alias for loaded in pages for alias in loaded.aliases}

    assert [int(item.key) for item in items] == sorted(int(item.key) for item in items)
    assert len({loaded.title for loaded in pages}) == made.articles == len(items)
    assert aliases
    assert not aliases & {loaded.title for loaded in pages}
    assert made.bytes >= 1_000_000
