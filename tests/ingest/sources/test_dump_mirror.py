"""The latest finished dump of a mirror is read once; otherwise one line gives the reason."""

import bz2
import json
from random import Random
from zlib import crc32

import pytest

from ingest.sources.dumps.dump_mirror import DumpMirror, make_article_finder
from ingest.types import SingleReadUnsupported, SourceUnavailable
from ingest.web.web_client import RequestPolicy, WebClient, build_user_agent
from tests.ingest.servers.dump_mirror import FakeMirror, as_ever, half, no_ranges, resets, says, wrong
from tests.ingest.servers.web import serve
from tests.ingest.sources.dumps import dump, pack_streams, page

WIKI = "simplewiki"
PLAIN = "pages-articles-multistream.xml.bz2"
INDEX = "pages-articles-multistream-index.txt.bz2"
AGENT = build_user_agent("ops@example.com", "1")
FILLER = Random(1).randbytes(3_000).hex(" ", 3)  # hardly compressible, so that a transfer can end midway


def packed(*pages):
    """Return a dump as the mirror has it: the file and its index."""
    content, lines, _ = pack_streams(pages)
    return {PLAIN: content, INDEX: bz2.compress(lines.encode())}


def about(word):
    return page(1, "Ada", f"Ada was a {word}. {FILLER}", revision=crc32(word.encode()))


@pytest.fixture
def mirror():
    fake_mirror = FakeMirror()
    fake_mirror.publish(WIKI, "20261001", packed(about("poet")))
    fake_mirror.publish(WIKI, "20261101", packed(about("mathematician")))
    return fake_mirror


class World:
    """A server, a folder, and the state of refreshes."""

    def __init__(self, server, folder):
        self.server = server
        self.folder = folder
        self.waits = []
        self.mark = ""
        self.known = {}
        self.edition = ""

    def source(self, *, keep=1, free=10**12, agent=AGENT):
        web = WebClient(RequestPolicy(agent, gap=0.5, tries=4), wait=self._wait, clock=lambda: 0.0)
        find = make_article_finder(self.server.url + "/", WIKI)
        return DumpMirror(WIKI, web, self.folder / "dumps", find=find, keep=keep, free=lambda _: free)

    def _wait(self, seconds):
        self.waits.append(seconds)
        return False

    def refresh(self, **changes):
        """Refresh; return the first words of each changed page."""
        source = self.source(**changes)
        listing = source.documents(self.known, self.mark)
        titles = []
        for item in listing.items:
            if self.known.get(item.key) != item.fingerprint:
                titles.append(item.load().sections[0].blocks[0].text.partition(".")[0])
                self.known[item.key] = item.fingerprint
        self.mark, self.edition = listing.mark(), listing.edition
        return titles

    def refused(self, **changes):
        with pytest.raises(SourceUnavailable) as raised:
            self.refresh(**changes)
        message = f"{raised.value} {raised.value.hint}"
        assert "\n" not in message
        return message

    def files(self):
        return sorted(path.name for path in (self.folder / "dumps").glob("*"))


@pytest.fixture
def world(mirror, tmp_path):
    with serve(mirror) as server:
        yield World(server, tmp_path)


LATEST = ["Ada was a mathematician"]


def test_latest_dump_is_read_once(mirror, world):
    assert world.refresh() == LATEST
    assert (world.edition, world.mark.partition("-")[0]) == ("2026-11-01", "20261101")
    assert world.files() == [f"simplewiki-20261101-{name}" for name in (INDEX, PLAIN)]

    requests = len(world.server.requests)
    assert world.refresh() == []
    assert world.edition == "2026-11-01"
    assert world.server.paths()[requests:] == ["/simplewiki/", "/simplewiki/20261101/dumpstatus.json"]

    mirror.publish(WIKI, "20261120", packed(about("countess")))
    assert world.refresh() == ["Ada was a countess"]
    assert world.files() == [f"simplewiki-20261120-{name}" for name in (INDEX, PLAIN)]


def test_old_dumps_are_deleted_after_the_new_one_is_read(mirror, world):
    world.refresh(keep=2)
    mirror.publish(WIKI, "20261120", packed(about("countess")))
    listing = world.source(keep=1).documents(world.known, world.mark)
    before = world.files()
    list(listing.items)
    assert world.files() == before
    assert len(before) == 4
    listing.mark()
    assert len(world.files()) == 2

    mirror.publish(WIKI, "20261121", packed(about("programmer")))
    world.refresh(keep=0)
    assert world.files() == []
    assert world.refresh(keep=0) == []


def test_requests_are_serial_paced_and_identified(mirror, world):
    mirror.fault(PLAIN, says(503, Retry_After="17"), says(429, Retry_After="3"))
    assert world.refresh() == LATEST
    assert world.server.most_open == 1
    assert {request.headers["user-agent"] for request in world.server.requests} == {AGENT}
    assert [seconds for seconds in world.waits if seconds != 0.5] == [17.0, 3.0]
    assert world.waits.count(0.5) == len(world.server.requests) - 1


def test_agent_without_contact_is_denied(world):
    assert "denies access (HTTP 403)" in world.refused(agent="python-httpx/0.28")


@pytest.mark.parametrize("status", ["in-progress", "waiting", "failed", "skipped", "", None])
def test_unfinished_dump_is_skipped(mirror, world, status):
    mirror.publish(WIKI, "20261120", packed(about("countess")), status=status)
    assert world.refresh() == LATEST
    assert world.refresh() == []

    mirror.publish(WIKI, "20261120", packed(about("countess")))
    assert world.refresh() == ["Ada was a countess"]


def _status(jobs):
    return json.dumps({"version": "0.8", "jobs": jobs}).encode()


@pytest.mark.parametrize(
    "content",
    [
        b'{"version": "0.8", "jobs": {"articlesmultistreamdump": {"status": "do',
        b"",
        b"<html>Moved</html>",
        b"[]",
        b"null",
        b"[" * 100_000,
        _status([]),
        _status({"articlesmultistreamdump": "done"}),
        _status({"articlesmultistreamdump": {"status": "done"}}),
        _status({"articlesmultistreamdump": {"status": "done", "files": {"../../etc/passwd": {"size": 1}}}}),
        _status(
            {"articlesmultistreamdump": {"status": "done", "files": {f"simplewiki-20261120-{PLAIN}": {"url": "/x"}}}}
        ),
    ],
)
def test_invalid_status_is_skipped(mirror, world, content):
    mirror.status(WIKI, "20261120", content)
    assert world.refresh() == LATEST
    assert world.edition == "2026-11-01"


def test_older_dump_never_replaces_a_newer_one(mirror, world):
    world.refresh()
    mirror.status(WIKI, "20261101", b"{")
    assert world.refresh() == []
    del mirror.files["/simplewiki/20261101/dumpstatus.json"]
    assert world.refresh() == []
    assert world.mark.startswith("20261101")


def test_download_progress_is_reported(mirror, world):
    mirror.fault("20261101-" + PLAIN, resets(2_000))
    steps = []
    web = WebClient(
        RequestPolicy(AGENT, gap=0.5, tries=4), wait=lambda _: steps.append(source.doing), clock=lambda: 0.0
    )
    find = make_article_finder(world.server.url + "/", WIKI)
    source = DumpMirror(WIKI, web, world.folder / "dumps", find=find, free=lambda _: 10**12)
    source.documents()

    assert steps[0] == "looks for the latest dump of simplewiki"
    assert f"downloads simplewiki-20261101-{PLAIN}, 0.0 MB of 0.0 MB" in steps


def test_unusable_dumps_are_reported_with_reasons(mirror, world):
    mirror.status(WIKI, "20261101", b"{")
    mirror.publish(WIKI, "20261001", packed(about("poet")), status="in-progress")
    message = world.refused()
    assert "2026-11-01: its dumpstatus.json is truncated or broken; 2026-10-01: its articles are still being" in message


@pytest.mark.parametrize(
    "faults",
    [
        (resets(1_000), resets(0), resets(10)),
        (half,),
        (wrong, wrong),
        (resets(900), no_ranges),
        (says(503), says(500), says(502)),
        (says(404), as_ever),
        (as_ever, says(503)),
    ],
    ids=["resets", "half a file", "wrong bytes", "ignores ranges", "errors", "404 once", "fine"],
)
@pytest.mark.parametrize("ending", [PLAIN, INDEX])
def test_transient_faults_are_retried(mirror, world, faults, ending):
    mirror.fault("20261101-" + ending, *faults)
    try:
        titles = world.refresh()
    except SourceUnavailable as error:
        assert "HTTP 404" in str(error)  # noqa: PT017 - either may happen
        assert world.known == {}
        titles = world.refresh()
    assert titles == LATEST


@pytest.mark.parametrize(
    ("path", "fault", "message"),
    [
        ("/simplewiki/", says(404), "/simplewiki/ answers HTTP 404. Check the name of the wiki"),
        ("/simplewiki/", says(200), "lists no dumps"),
        ("/simplewiki/", says(503, Retry_After="86400"), "asks to wait 86,400 seconds"),
        ("dumpstatus.json", says(500), "dumpstatus.json answers HTTP 500"),
        ("20261101-" + PLAIN, wrong, "does not match its SHA1 checksum"),
        ("20261101-" + PLAIN, half, "bytes instead of"),
        ("20261101-" + PLAIN, says(404), "answers HTTP 404"),
        ("20261101-" + PLAIN, resets(0), "closed the connection early"),
    ],
)
def test_permanent_faults_are_reported_in_one_line(mirror, world, path, fault, message):
    mirror.fault(path, *[fault] * 20)
    assert message in world.refused()
    assert (world.known, world.mark) == ({}, "")


def test_file_changed_between_ranges_is_downloaded_again(mirror, world):
    mirror.fault("20261101-" + PLAIN, *[resets(600)] * 4)
    world.refused()
    mirror.publish(WIKI, "20261101", packed(about("translator")))
    assert world.refresh() == ["Ada was a translator"]


def test_interrupted_download_resumes(mirror, world):
    mirror.fault("20261101-" + PLAIN, resets(4_000), says(500), says(500), says(500))
    world.refused()
    left = (world.folder / "dumps" / f"simplewiki-20261101-{PLAIN}.part").stat().st_size
    assert left > 0
    requests = len(world.server.requests)
    assert world.refresh() == LATEST
    assert [r.headers["range"] for r in world.server.requests[requests:] if "range" in r.headers] == [f"bytes={left}-"]


def test_free_disk_space_is_checked_first(mirror, world):
    message = world.refused(free=5_000)
    assert "0.0 MB are free" in message
    assert "The dump of simplewiki of 2026-11-01 needs about 0.1 MB with its index" in message
    assert not [path for path in world.server.paths() if path.endswith(".bz2")]

    size = sum(len(content) for name, content in mirror.files.items() if "20261101" in name and "dumpst" not in name)
    assert "are free" in world.refused(free=size * 8)
    assert world.refresh(free=size * 15) == LATEST
    mirror.publish(WIKI, "20261120", packed(about("countess")))
    assert world.refresh(free=size * 8) == ["Ada was a countess"]


@pytest.mark.parametrize(("mark", "known"), [("20261101-older", "changed"), (None, "")], ids=["version", "partly read"])
def test_dump_is_read_again_without_a_download(world, mark, known):
    world.refresh()
    requests = len(world.server.requests)
    world.mark = mark or world.mark
    world.known = {"1": known}
    assert world.refresh() == LATEST
    assert not [path for path in world.server.paths()[requests:] if path.endswith(".bz2")]


@pytest.mark.parametrize("index", [True, False])
def test_large_wiki_is_read_in_parts(mirror, world, index):
    parts = {}
    for number, text in ((2, page(7, "Bob", "#REDIRECT [[Ada]]", redirect="Ada")), (10, about("pioneer"))):
        files = packed(text)
        parts[f"pages-articles-multistream{number}.xml-p{number}p{number}.bz2"] = files[PLAIN]
        if index:
            parts[f"pages-articles-multistream-index{number}.txt-p{number}p{number}.bz2"] = files[INDEX]
    whole = {"articlesmultistreamdumprecombine": {"status": "waiting", "files": {}}}
    mirror.publish(WIKI, "20261120", parts, others=whole)

    assert world.refresh() == ["Ada was a pioneer"]
    assert len([name for name in world.files() if name.startswith("simplewiki-20261120")]) == (4 if index else 2)


def test_plain_dump_is_read_without_multistream(mirror, world):
    content = bz2.compress(dump(about("logician")))
    mirror.publish(WIKI, "20261120", {"pages-articles.xml.bz2": content}, job="articlesdump")
    assert world.refresh() == ["Ada was a logician"]


def test_damaged_dump_is_read_again(mirror, world):
    content = bz2.compress(dump(about("logician")))[:-30]
    mirror.publish(WIKI, "20261120", {"pages-articles.xml.bz2": content}, job="articlesdump")
    listing = world.source().documents({}, "")
    assert [type(item).__name__ for item in listing.items][-1] == "Unreadable"
    assert listing.mark() == ""


def test_single_pages_are_refused(world):
    source = world.source()
    assert source.expected() is None
    with pytest.raises(SingleReadUnsupported, match="read as a whole"):
        source.one("https://simple.wikipedia.org/wiki/Ada", {})
    source.documents()
    assert source.expected() == 1


def test_stop_ends_the_listing(world):
    source = world.source()
    source.stop()
    with pytest.raises(SourceUnavailable, match="stopped"):
        source.documents()
