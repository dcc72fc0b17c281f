"""The newest finished dump of CirrusSearch, in its current folder or in the former one."""

import bz2
import gzip

import pytest

from ingest.sources.dumps import dump_mirror
from ingest.sources.dumps.cirrus_dump import CIRRUS_VERSION, CirrusDump
from ingest.sources.dumps.dump_mirror import DumpMirror
from ingest.types import SourceUnavailable
from ingest.web.web_client import RequestPolicy, WebClient, build_user_agent
from tests.ingest.servers.dump_mirror import FakeMirror
from tests.ingest.servers.web import serve
from tests.ingest.sources.test_cirrus_dump import ADA, lines

PARTS = "/other/cirrus_search_index/{day}/index_name=simplewiki_content/"


def parts(mirror, day, *contents, finished=True):
    """Publish a dump in parts."""
    for number, content in enumerate(contents):
        mirror.files[f"{PARTS.format(day=day)}simplewiki_content-{day}-{number:05}.json.bz2"] = bz2.compress(content)
    if finished:
        mirror.files[PARTS.format(day=day) + "_SUCCESS"] = b""


@pytest.fixture
def mirror():
    return FakeMirror()


@pytest.fixture
def source(mirror, tmp_path):
    with serve(mirror) as server:
        web = WebClient(RequestPolicy(build_user_agent("ops@example.com", "1"), gap=0.0), wait=lambda _: False)
        find = dump_mirror.make_cirrus_finder(server.url, "simplewiki")
        yield DumpMirror(
            "simplewiki",
            web,
            tmp_path,
            find=find,
            read=lambda paths: CirrusDump(*paths, wiki="simplewiki"),
            version=CIRRUS_VERSION,
        )


def titles(listing):
    return [item.load().title for item in listing.items]


def test_newest_finished_dump_is_read(mirror, source, tmp_path):
    parts(mirror, "20261101", lines(("1", ADA)), lines(("2", {**ADA, "title": "Bob"})))
    parts(mirror, "20261108", lines(("3", ADA)), finished=False)
    listing = source.documents()
    assert (titles(listing), listing.edition) == (["Ada Lovelace", "Bob"], "2026-11-01")
    mark = listing.mark()

    again = source.documents({"1": "x"}, mark)
    assert (titles(again), again.whole, again.mark()) == ([], False, mark)

    parts(mirror, "20261115", lines(("4", ADA)))
    newer = source.documents({"1": "x"}, mark)
    assert titles(newer) == ["Ada Lovelace"]
    newer.mark()
    assert [path.name for path in tmp_path.iterdir()] == ["simplewiki_content-20261115-00000.json.bz2"]


def test_dump_in_the_former_folder_of_the_mirror_is_found(mirror, source):
    name = "simplewiki-20251229-cirrussearch-content.json.gz"
    mirror.files[f"/other/cirrussearch/20251229/{name}"] = gzip.compress(lines(("1", ADA)))
    assert titles(source.documents()) == ["Ada Lovelace"]


def test_missing_dump_is_reported_with_reasons(mirror, source):
    with pytest.raises(SourceUnavailable, match="it lists none"):
        source.documents()
    parts(mirror, "20261101", lines(("1", ADA)), finished=False)
    mirror.files["/other/cirrus_search_index/20261025/index_name=enwiki_content/_SUCCESS"] = b""
    with pytest.raises(SourceUnavailable) as raised:
        source.documents()
    assert "2026-11-01: it is still being written; 2026-10-25: it contains no simplewiki_content" in str(raised.value)
