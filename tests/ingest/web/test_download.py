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


def download(script, path, *, digest=SHA1, tries=4):
    """Download the file as a new process; return the Range headers of its requests."""
    with serve(script) as server:
        policy = RequestPolicy("Test (ops@example.com)", gap=0.0, tries=tries)
        try:
            WebClient(policy, wait=lambda _: False).download(
                server.url + "/dump.bz2?key=secret", path, size=len(CONTENT), digest=digest
            )
        finally:
            download.ranges = [request.headers.get("range", "") for request in server.requests]
    return download.ranges


def fail_download(script, path, **changes):
    """Return the message of a download that fails."""
    with pytest.raises(SourceUnavailable) as raised:
        download(script, path, **changes)
    assert not path.exists()
    assert "secret" not in str(raised.value)
    return str(raised.value)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "dumps" / "dump.bz2"


def is_complete(path):
    """Return whether the folder contains the complete file and nothing else."""
    return path.read_bytes() == CONTENT and [found.name for found in path.parent.iterdir()] == [path.name]


def test_download_resumes_after_a_broken_connection(path):
    """Received bytes are kept, and progress does not count as a failed attempt."""
    ranges = download(Mirror(1_000, 0, 50_000), path)

    assert is_complete(path)
    assert ranges[0] == ""
    offsets = [int(value.removeprefix("bytes=").removesuffix("-")) for value in ranges[1:]]
    assert offsets == sorted(offsets)
    assert offsets[-1] <= 51_000


def test_download_resumes_in_another_process(path):
    fail_download(Mirror(60_000), path, tries=1)
    received = path.with_name("dump.bz2.part").stat().st_size

    assert download(Mirror(), path) == [f"bytes={received}-"]
    assert is_complete(path)
    assert 0 < received <= 60_000


@pytest.mark.parametrize(("extra", "ranges"), [(b"", []), (b"more", [""])])
def test_partial_file_is_verified_or_discarded_if_too_long(path, extra, ranges):
    """It is complete if a process died after it received the last byte."""
    path.parent.mkdir()
    path.with_name("dump.bz2.part").write_bytes(CONTENT + extra)

    assert download(Mirror(), path) == ranges
    assert is_complete(path)


def test_server_without_ranges_restarts_the_download(path):
    mirror = Mirror(60_000)
    mirror.ranges = False
    assert len(download(mirror, path)) == 2
    assert is_complete(path)


@pytest.mark.parametrize(
    ("etags", "digest", "ranged_requests"),
    [(('"old"', '"one"'), SHA1, [True]), (('"old"', '"one"'), None, [True]), (("", ""), SHA1, [True, False]),
     (("", ""), None, [False])],
)  # fmt: skip
def test_file_that_changes_between_ranges_is_downloaded_again(path, etags, digest, ranged_requests):
    """Its ETag or checksum shows the change; without either, the download restarts."""
    fail_download(Mirror(60_000, content=OTHER, etag=etags[0]), path, tries=1, digest=digest)

    assert [bool(value) for value in download(Mirror(etag=etags[1]), path, digest=digest)] == ranged_requests
    assert is_complete(path)


def test_wrong_checksum_is_rejected(path):
    """It is reported after all attempts, and no partial file remains."""
    message = fail_download(Mirror(content=OTHER), path, tries=3)

    assert message.endswith("/dump.bz2 sends a file that does not match its SHA1 checksum.")
    assert len(download.ranges) == 3
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (Answer(404), "answers HTTP 404"),
        (Answer(503, headers={"Retry-After": "5"}), "answers HTTP 503"),
        (Answer(200, CONTENT[:500]), "has 500 bytes instead of 102,400"),
        (Answer(200, CONTENT[:500], unsized=True), "closed the connection early"),
        (Answer(206, CONTENT, {"Content-Range": "bytes 5-9/102400"}), "answers HTTP 206"),
    ],
)
def test_unusable_response_is_reported_in_one_line(path, answer, message):
    assert message in fail_download(in_turn(answer), path)


@pytest.mark.parametrize("fits", [False, True])
def test_range_at_another_offset_is_discarded(path, fits):
    """Even if its length fits and there is no checksum."""
    fail_download(Mirror(60_000), path, tries=1, digest=None)
    missing = len(CONTENT) - path.with_name("dump.bz2.part").stat().st_size
    first, length = (0, missing) if fits else (5, 3)
    wrong = Answer(206, CONTENT[:length], {"Content-Range": f"bytes {first}-{first + length - 1}/{len(CONTENT)}"})

    assert len(download(in_turn(wrong, Answer(200, CONTENT)), path, digest=None)) == 2
    assert is_complete(path)


def test_unwritable_folder_is_reported(tmp_path):
    (tmp_path / "dumps").write_text("a file")
    assert "cannot be written" in fail_download(Mirror(), tmp_path / "dumps" / "dump.bz2")


def test_old_file_stays_until_the_new_one_is_complete(path):
    path.parent.mkdir()
    path.write_bytes(b"old")
    with pytest.raises(SourceUnavailable):
        download(Mirror(content=OTHER), path, tries=1)
    assert path.read_bytes() == b"old"
    download(Mirror(), path)
    assert is_complete(path)
