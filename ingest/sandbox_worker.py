"""The process that reads documents for `ingest.sandbox`, and the frames that travel between the two.

Started as `python -m ingest.sandbox_worker SECONDS BYTES`. It is given no secrets: of its parent's environment it has
what a process needs to run. It ends when its input does, or when its parent is gone. A library that a document has
taken over may write what it likes into the pipe: all that comes back is text, in a frame of limited length. Only what
goes to the worker is pickled, and we wrote that ourselves.
"""

import json
import os
import pickle
import signal
import struct
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from types import ModuleType
from typing import IO, Any

from ingest import page_cleanup
from ingest.page_cleanup import limit_length
from ingest.types import Block, Page, Section, UnreadableDocument
from storage.types import PassageKind

LONGEST_FRAME = 256 << 20
"""Bytes of an answer: a document of as many characters as are taken in stays below it in any script."""
_FRAME_HEAD = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class ReadFailure:
    """A document that was not read, and why; `memory` if for want of it."""

    reason: str = ""
    memory: bool = False


ReadAnswer = Page | ReadFailure


class MalformedAnswer(Exception):
    """What came is no answer."""


def write_frame(pipe: IO[bytes], content: bytes) -> None:
    """Send a frame."""
    pipe.write(_FRAME_HEAD.pack(len(content)))
    pipe.write(content)
    pipe.flush()


def read_frame(pipe: IO[bytes], longest: int | None = None) -> bytes | None:
    """Wait for a frame; None where the other side has ended. Raises `Garbled` if it is longer than `longest`."""
    head = pipe.read(_FRAME_HEAD.size)
    if len(head) < _FRAME_HEAD.size:
        return None
    length = _FRAME_HEAD.unpack(head)[0]
    if longest is not None and length > longest:
        raise MalformedAnswer
    content = pipe.read(length)
    return content if len(content) == length else None


def encode_answer(answer: ReadAnswer) -> bytes:
    """An answer as bytes."""
    if isinstance(answer, ReadFailure):
        said: Any = {"reason": answer.reason, "memory": answer.memory}
    else:
        said = {
            "title": answer.title,
            "sections": [[part.path, [[block.text, block.kind] for block in part.blocks]] for part in answer.sections],
            "url": answer.url,
            "revision": answer.revision,
            "date": answer.date.isoformat() if answer.date else None,
            "language": answer.language,
            "aliases": answer.aliases,
            "disambiguation": answer.disambiguation,
        }
    # Halves of surrogate pairs are mended later, by `cleaning`.
    return json.dumps(said, ensure_ascii=False).encode("utf-8", "surrogatepass")


def decode_answer(content: bytes) -> ReadAnswer:
    """Return the answer. Raises `Garbled` if there is none."""
    try:
        said = json.loads(content.decode("utf-8", "surrogatepass"))
        if "reason" in said:
            return ReadFailure(str(said["reason"]), bool(said["memory"]))
        return Page(
            title=str(said["title"]),
            sections=tuple(map(_decode_section, said["sections"])),
            url=str(said["url"]),
            revision=str(said["revision"]),
            date=datetime.fromisoformat(said["date"]) if said["date"] else None,
            language=str(said["language"]),
            aliases=tuple(map(str, said["aliases"])),
            disambiguation=bool(said["disambiguation"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MalformedAnswer from error


def _decode_section(said: Any) -> Section:
    path, blocks = said
    return Section(tuple(map(str, path)), tuple(Block(str(text), PassageKind(kind)) for text, kind in blocks))


try:
    import resource as _resource
except ImportError:  # Only the parent's clock limits it there
    resource: ModuleType | None = None
else:
    resource = _resource

_PARENT_CHECK_SECONDS = 1.0
"""Seconds between two looks at whether the parent is there."""


def serve_documents(seconds: float, memory: int) -> None:
    """Read what comes, each for at most so many seconds of computing, with at most so many bytes of memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends this one
    # What a library prints must not come among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    threading.Thread(target=_exit_with_parent, args=(os.getppid(),), name="parent", daemon=True).start()
    if resource is not None:
        # A part of the system would be written to disk with each crash.
        _set_limit(resource, resource.RLIMIT_CORE, 0)
        _set_limit(resource, resource.RLIMIT_DATA, memory)
    with suppress(BrokenPipeError):
        write_frame(answers, b"")
        while answer := _answer_next(seconds):
            write_frame(answers, answer)


def _answer_next(seconds: float) -> bytes:
    """Wait for a document, and return the answer; nothing at the end."""
    try:
        task = read_frame(sys.stdin.buffer)
        if task is None:
            return b""
        if resource is not None:
            # The next whole second: the system counts no less.
            _set_limit(resource, resource.RLIMIT_CPU, int(time.process_time() + seconds) + 1)
        work: Callable[[], Page] = pickle.loads(task)  # noqa: S301 - our parent wrote it
        del task
        return encode_answer(_read_document(work))
    except MemoryError:
        return encode_answer(ReadFailure(memory=True))


def _read_document(work: Callable[[], Page]) -> ReadAnswer:
    try:
        return limit_length(work())
    except MemoryError:
        raise
    except UnreadableDocument as error:
        return ReadFailure(str(error))
    except Exception as error:  # noqa: BLE001 - the libraries below may raise anything over an odd file
        return ReadFailure(page_cleanup.describe_error(error))


def _set_limit(limits: ModuleType, which: int, most: int) -> None:
    _, hard = limits.getrlimit(which)
    with suppress(ValueError, OSError):  # some systems know a limit and take none
        limits.setrlimit(which, (most if hard == limits.RLIM_INFINITY else min(most, hard), hard))


def _exit_with_parent(parent: int) -> None:
    """End once the parent was killed, which is told by nothing else while a document is read."""
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    serve_documents(float(sys.argv[1]), int(sys.argv[2]))
