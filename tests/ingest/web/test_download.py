"""A large file comes whole or not at all, goes on where it ended, and is what it was said to be."""

import hashlib

import pytest

from ingest.types import SourceUnavailable
from ingest.web.web_client import RequestPolicy, WebClient
from tests.ingest.servers.web import Answer, in_turn, ranged, serve

CONTENT = bytes(range(256)) * 400
OTHER = bytes(reversed(CONTENT))
SHA1 = ("sha1", hashlib.sha1(CONTENT).hexdigest())


class Mirror:
    """Serves one file; each request takes a step of a script: how many bytes are sent before it breaks off."""

    def __init__(self, *cuts, content=CONTENT, etag='"one"'):
        self.cuts = list(cuts)
        self.content = content
        self.etag = etag
        self.ranges = True

    def __call__(self, request):
        cut = self.cuts.pop(0) if self.cuts else None
        if self.ranges:
            return ranged(request, self.content, etag=self.etag, sent=cut)
        return Answer(200, self.content, sent=cut)


def fetched(script, path, *, digest=SHA1, tries=4):
    """Download once, as one process would; return what was asked, by Range."""
    with serve(script) as server:
        waits = []
        line = WebClient(
            RequestPolicy("Test (ops@example.com)", gap=0.0, tries=tries), wait=lambda s: waits.append(s) or False
        )
        try:
            line.download(server.url + "/dump.bz2?key=secret", path, size=len(CONTENT), digest=digest)
        finally:
            fetched.asked = [request.headers.get("range", "") for request in server.requests]
    return fetched.asked


def failed(script, path, **changes):
    with pytest.raises(SourceUnavailable) as raised:
        fetched(script, path, **changes)
    assert not path.exists()
    assert "secret" not in str(raised.value)
    return str(raised.value)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "dumps" / "dump.bz2"


def whole(path):
    """Whether it is there, and nothing else."""
    return path.read_bytes() == CONTENT and [found.name for found in path.parent.iterdir()] == [path.name]


def test_it_goes_on_where_the_connection_broke(path):
    """Resets cost what was on its way, not what had come; a file that grows is not a failed try."""
    asked = fetched(Mirror(1_000, 0, 50_000), path)

    assert whole(path)
    assert asked[0] == ""
    have = [int(said.removeprefix("bytes=").removesuffix("-")) for said in asked[1:]]
    assert have == sorted(have)
    assert have[-1] <= 51_000


def test_another_process_goes_on(path):
    """What an earlier process left is not asked for again."""
    failed(Mirror(60_000), path, tries=1)
    left = path.with_name("dump.bz2.part").stat().st_size
    asked = fetched(Mirror(), path)

    assert whole(path)
    assert 0 < left <= 60_000
    assert asked == [f"bytes={left}-"]


def test_what_is_whole_already_is_only_checked(path):
    """A process that died after the last byte left nothing to ask for."""
    path.parent.mkdir()
    path.with_name("dump.bz2.part").write_bytes(CONTENT)

    assert fetched(Mirror(), path) == []
    assert whole(path)


def test_a_server_that_ignores_ranges_begins_anew(path):
    mirror = Mirror(60_000)
    mirror.ranges = False
    assert len(fetched(mirror, path)) == 2
    assert whole(path)


@pytest.mark.parametrize("digest", [SHA1, None])
def test_a_file_that_changed_between_two_ranges_is_not_glued_together(path, digest):
    """Its tag tells, whether there is a checksum or not: it begins anew."""
    failed(Mirror(60_000, content=OTHER, etag='"old"'), path, tries=1, digest=digest)
    fetched(Mirror(), path, digest=digest)

    assert whole(path)


def test_without_a_tag_the_checksum_tells(path):
    """A part of another file is found out, thrown away, and all of it asked for."""
    failed(Mirror(60_000, content=OTHER, etag=""), path, tries=1)
    asked = fetched(Mirror(etag=""), path)

    assert whole(path)
    assert asked[0].startswith("bytes=")
    assert asked[1] == ""


def test_without_tag_and_checksum_nothing_is_glued(path):
    failed(Mirror(60_000, content=OTHER, etag=""), path, tries=1, digest=None)

    assert fetched(Mirror(etag=""), path, digest=None) == [""]
    assert whole(path)


def test_a_wrong_checksum_is_never_taken(path):
    """After all tries it is told, and nothing is left that the next try would build upon."""
    told = failed(Mirror(content=OTHER), path, tries=3)

    assert told.endswith("/dump.bz2 sends a file that does not match its SHA1 checksum.")
    assert len(fetched.asked) == 3
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Answer(404), "answers HTTP 404"),
        (Answer(503, headers={"Retry-After": "5"}), "answers HTTP 503"),
        (Answer(200, CONTENT[:500]), "has 500 bytes instead of 102,400"),
        (Answer(200, CONTENT[:500], unsized=True), "broke off"),
        (Answer(206, CONTENT, {"Content-Range": "bytes 5-9/102400"}), "answers HTTP 206"),
    ],
)
def test_what_is_not_the_file_is_told_in_one_line(path, answer, said):
    assert said in failed(in_turn(answer), path)


def test_a_wrong_part_is_thrown_away(path):
    """A server that answers another range than it was asked for, or a longer file, is asked for all of it."""
    failed(Mirror(60_000), path, tries=1)
    wrong = Answer(206, b"xyz", {"Content-Range": "bytes 5-7/102400"})
    answers = [wrong, Answer(200, CONTENT)]
    assert len(fetched(lambda _: answers.pop(0), path)) == 2
    assert whole(path)


def test_a_part_from_another_place_is_not_glued_on(path):
    """Also where it has just the length that is missing, and no checksum would tell."""
    failed(Mirror(60_000), path, tries=1, digest=None)
    have = path.with_name("dump.bz2.part").stat().st_size
    missing = len(CONTENT) - have
    wrong = Answer(206, CONTENT[:missing], {"Content-Range": f"bytes 0-{missing - 1}/{len(CONTENT)}"})
    fetched(in_turn(wrong, Answer(200, CONTENT)), path, digest=None)
    assert whole(path)


def test_a_part_that_is_too_long_is_thrown_away(path):
    path.parent.mkdir()
    path.with_name("dump.bz2.part").write_bytes(CONTENT + b"more")

    assert fetched(Mirror(), path) == [""]
    assert whole(path)


def test_a_folder_that_cannot_be_written_is_told(tmp_path):
    (tmp_path / "dumps").write_text("a file")
    told = failed(Mirror(), tmp_path / "dumps" / "dump.bz2")
    assert "cannot be written" in told


def test_an_old_file_stays_until_the_new_one_is_whole(path):
    path.parent.mkdir()
    path.write_bytes(b"old")
    with pytest.raises(SourceUnavailable):
        fetched(Mirror(content=OTHER), path, tries=1)
    assert path.read_bytes() == b"old"
    fetched(Mirror(), path)
    assert whole(path)
