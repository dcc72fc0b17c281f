"""Download a large file from the web, completely or not at all. Each try continues where the last one ended.

The bytes received so far are in `NAME.part`, and the server's validator of the file is in `NAME.part.of`. So even
another process can request the rest of the same file (RFC 9110, 13.1.5: If-Range). If the file has changed, the
download starts over.
"""

import errno
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import httpx

from ingest.types import SourceUnavailable, describe_os_error
from ingest.web.http_reply import RETRY_HINT, RetryableWebError, format_url, parse_number, retry
from storage.language.lazy_pattern import lazy_compile

_BLOCK = 1 << 20
_PROGRESS_BYTES = 1 << 20  # a try that receives so many bytes does not count as failed
_RANGE = lazy_compile(r"bytes (\d+)-\d+/(\d+|\*)")


@dataclass(frozen=True, slots=True)
class DownloadRequest:
    """A file to download. `size` is in bytes; `digest` is the name of a hash function and its value in hexadecimal."""

    url: str
    path: Path
    size: int | None
    digest: tuple[str, str] | None
    tries: int

    @property
    def part(self) -> Path:
        return self.path.with_name(self.path.name + ".part")

    @property
    def tag(self) -> Path:
        return self.path.with_name(self.path.name + ".part.of")


@dataclass(frozen=True, slots=True)
class IncomingResponse:
    status: int
    headers: Mapping[str, str]
    blocks: Iterator[bytes]


OpenUrl = Callable[[str, Mapping[str, str]], AbstractContextManager[IncomingResponse]]
ReportProgress = Callable[[int, int | None], None]


def download_file(
    request: DownloadRequest, ask: OpenUrl, rest: Callable[[float | None, int], None], progress: ReportProgress
) -> None:
    """Download a file. After a failed try, `rest` is called as by `retry`, and may raise."""

    def once() -> None:
        before = measure_file(request.part)
        try:
            _fetch(request, ask, progress)
            _check(request)
        except RetryableWebError as error:
            error.progressed = measure_file(request.part) - before >= _PROGRESS_BYTES
            raise

    try:
        retry(request.url, request.tries, once, rest)
        request.part.replace(request.path)
        request.tag.unlink(missing_ok=True)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            _discard_part(request)  # so that the database has room
            hint, message = "Make room, and try again.", f"The disk is full: {request.path.name} does not fit."
        else:
            hint = "Check the folder's permissions."
            message = f"{request.path} cannot be written: {describe_os_error(error)}."
        raise SourceUnavailable(message, hint=hint) from error


def _fetch(request: DownloadRequest, ask: OpenUrl, progress: ReportProgress) -> None:
    have = measure_file(request.part)
    if request.size is not None and have == request.size:
        return
    if request.size is not None and have > request.size:
        have = _discard_part(request)
    request.path.parent.mkdir(parents=True, exist_ok=True)
    validator = request.tag.read_text("utf-8") if have and request.tag.exists() else ""
    # Without a validator, only a digest could show that the rest belongs to another file.
    if have and not validator and not request.digest:
        have = _discard_part(request)
    headers = {"Range": f"bytes={have}-", **({"If-Range": validator} if validator else {})} if have else {}
    with ask(request.url, headers) as answer:
        total = _prepare_part(request, answer, have)
        with request.part.open("ab", buffering=0) as file:  # unbuffered: received bytes survive a crash
            for block in answer.blocks:
                file.write(block)
                progress(file.tell(), total)
            os.fsync(file.fileno())
    if total is not None and (now := measure_file(request.part)) != total:
        if now > total:
            _discard_part(request)
        raise RetryableWebError("closed the connection early" if now < total else "sends more than it announced")


def _prepare_part(request: DownloadRequest, answer: IncomingResponse, have: int) -> int | None:
    """Prepare the partial file for a response, and return the size of the whole file in bytes; None if unknown."""
    if answer.status == httpx.codes.PARTIAL_CONTENT and have:
        content_range = _RANGE.fullmatch(answer.headers.get("content-range", "").strip())
        total = int(content_range[2]) if content_range and content_range[2] != "*" else request.size
        if not content_range or int(content_range[1]) != have or (request.size is not None and total != request.size):
            _discard_part(request)
            raise RetryableWebError("sends a different part than requested")
        return total
    if answer.status == httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE and have:
        _discard_part(request)
        raise RetryableWebError("has a shorter file than before")
    if answer.status != httpx.codes.OK:
        hint = "It may have been deleted, or not exist yet. " + RETRY_HINT
        raise SourceUnavailable(f"{format_url(request.url)} answers HTTP {answer.status}.", hint=hint)
    length = parse_number(answer.headers.get("content-length", ""))
    total = request.size if length is None else length
    if request.size is not None and total != request.size:
        raise RetryableWebError(f"has {total:,} bytes instead of {request.size:,}")
    _discard_part(request)
    request.tag.write_text(_validator(answer.headers), "utf-8")
    return total


def _validator(headers: Mapping[str, str]) -> str:
    """Return the server's validator of a file: its strong ETag, or else its modification date."""
    tag = headers.get("etag", "").strip()
    return tag if tag and not tag.startswith("W/") else headers.get("last-modified", "").strip()


def _discard_part(request: DownloadRequest) -> int:
    request.part.unlink(missing_ok=True)
    request.tag.unlink(missing_ok=True)
    return 0


def _check(request: DownloadRequest) -> None:
    """Compare the downloaded file with the expected size and digest, and delete it if it differs."""
    if not request.digest:
        return
    name, expected = request.digest
    with request.part.open("rb") as file:
        digest = hashlib.file_digest(file, name).hexdigest()
    if digest != expected.lower():
        _discard_part(request)
        raise RetryableWebError(f"sends a file that does not match its {name.upper()} checksum")


def measure_file(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
