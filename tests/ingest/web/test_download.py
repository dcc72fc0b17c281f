"""Downloads of large files are complete or fail, resume, and are verified."""

import hashlib

import pytest

from ingest.types import SourceUnavailable
from ingest.web.web_client import RequestPolicy, WebClient
from tests.ingest.servers.web import Answer, in_turn, ranged, serve

CONTENT = bytes(range(256)) * 400
OTHER = bytes(reversed(CONTENT))
SHA1 = ("sha1", hashlib.sha1(CONTENT).hexdigest())


class Mirror:
    """Serves one file; a script has the number of bytes that each request gets before the connection closes."""

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
    """Download the file as a new process; return the Range headers of its requests."""
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
    """Return whether the folder contains the complete file and nothing else."""
    return path.read_bytes() == CONTENT and [found.name for found in path.parent.iterdir()] == [path.name]


def test_download_resumes_after_a_broken_connection(path):
    """Received bytes are kept, and progress does not count as a failed attempt."""
    asked = fetched(Mirror(1_000, 0, 50_000), path)

    assert whole(path)
    assert asked[0] == ""
    have = [int(said.removeprefix("bytes=").removesuffix("-")) for said in asked[1:]]
    assert have == sorted(have)
    assert have[-1] <= 51_000


def test_download_resumes_in_another_process(path):
    failed(Mirror(60_000), path, tries=1)
    left = path.with_name("dump.bz2.part").stat().st_size
    asked = fetched(Mirror(), path)

    assert whole(path)
    assert 0 < left <= 60_000
    assert asked == [f"bytes={left}-"]


def test_complete_download_is_only_verified(path):
    """A process died after it received the last byte."""
    path.parent.mkdir()
    path.with_name("dump.bz2.part").write_bytes(CONTENT)

    assert fetched(Mirror(), path) == []
    assert whole(path)


def test_server_without_ranges_restarts_the_download(path):
    mirror = Mirror(60_000)
    mirror.ranges = False
    assert len(fetched(mirror, path)) == 2
    assert whole(path)


@pytest.mark.parametrize("digest", [SHA1, None])
def test_file_that_changes_between_ranges_is_downloaded_again(path, digest):
    """Its ETag shows the change, with or without a checksum."""
    failed(Mirror(60_000, content=OTHER, etag='"old"'), path, tries=1, digest=digest)
    fetched(Mirror(), path, digest=digest)

    assert whole(path)


def test_checksum_detects_a_changed_file_without_an_etag(path):
    """The partial file is discarded and the download restarted."""
    failed(Mirror(60_000, content=OTHER, etag=""), path, tries=1)
    asked = fetched(Mirror(etag=""), path)

    assert whole(path)
    assert asked[0].startswith("bytes=")
    assert asked[1] == ""


def test_without_etag_and_checksum_the_download_restarts(path):
    failed(Mirror(60_000, content=OTHER, etag=""), path, tries=1, digest=None)

    assert fetched(Mirror(etag=""), path, digest=None) == [""]
    assert whole(path)


def test_wrong_checksum_is_rejected(path):
    """It is reported after all attempts, and no partial file remains."""
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
        (Answer(200, CONTENT[:500], unsized=True), "closed the connection early"),
        (Answer(206, CONTENT, {"Content-Range": "bytes 5-9/102400"}), "answers HTTP 206"),
    ],
)
def test_unusable_response_is_reported_in_one_line(path, answer, said):
    assert said in failed(in_turn(answer), path)


def test_wrong_range_is_discarded(path):
    """A longer file is discarded, too; the download restarts."""
    failed(Mirror(60_000), path, tries=1)
    wrong = Answer(206, b"xyz", {"Content-Range": "bytes 5-7/102400"})
    answers = [wrong, Answer(200, CONTENT)]
    assert len(fetched(lambda _: answers.pop(0), path)) == 2
    assert whole(path)


def test_range_at_another_offset_is_discarded(path):
    """Even if its length fits and there is no checksum."""
    failed(Mirror(60_000), path, tries=1, digest=None)
    have = path.with_name("dump.bz2.part").stat().st_size
    missing = len(CONTENT) - have
    wrong = Answer(206, CONTENT[:missing], {"Content-Range": f"bytes 0-{missing - 1}/{len(CONTENT)}"})
    fetched(in_turn(wrong, Answer(200, CONTENT)), path, digest=None)
    assert whole(path)


def test_partial_file_that_is_too_long_is_discarded(path):
    path.parent.mkdir()
    path.with_name("dump.bz2.part").write_bytes(CONTENT + b"more")

    assert fetched(Mirror(), path) == [""]
    assert whole(path)


def test_unwritable_folder_is_reported(tmp_path):
    (tmp_path / "dumps").write_text("a file")
    told = failed(Mirror(), tmp_path / "dumps" / "dump.bz2")
    assert "cannot be written" in told


def test_old_file_stays_until_the_new_one_is_complete(path):
    path.parent.mkdir()
    path.write_bytes(b"old")
    with pytest.raises(SourceUnavailable):
        fetched(Mirror(content=OTHER), path, tries=1)
    assert path.read_bytes() == b"old"
    fetched(Mirror(), path)
    assert whole(path)
