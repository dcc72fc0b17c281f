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

from ingest.page_cleanup import describe_error, limit_length
from ingest.types import Block, Page, Section, UnreadableDocument
from storage.types import PassageKind

try:
    import resource as _resource
except ImportError:  # only the parent's clock limits it there
    resource: ModuleType | None = None
else:
    resource = _resource

_PARENT_CHECK_SECONDS = 1.0  # seconds between two checks that the parent is alive
LONGEST_FRAME = 256 << 20  # bytes of an answer: the longest document stays below it in any script
_FRAME_HEAD = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class ReadFailure:
    """Why a document was not read; `memory` if there was too little."""

    reason: str = ""
    memory: bool = False


ReadAnswer = Page | ReadFailure


class MalformedAnswer(Exception):
    """The worker sent no valid answer."""


def write_frame(pipe: IO[bytes], content: bytes) -> None:
    pipe.write(_FRAME_HEAD.pack(len(content)))
    pipe.write(content)
    pipe.flush()


def read_frame(pipe: IO[bytes], longest: int | None = None) -> bytes | None:
    """Wait for a frame; None where the other side has ended. Raises `MalformedAnswer` if it is too long."""
    head = pipe.read(_FRAME_HEAD.size)
    if len(head) < _FRAME_HEAD.size:
        return None
    length = _FRAME_HEAD.unpack(head)[0]
    if longest is not None and length > longest:
        raise MalformedAnswer
    content = pipe.read(length)
    return content if len(content) == length else None


def encode_answer(answer: ReadAnswer) -> bytes:
    if isinstance(answer, ReadFailure):
        fields: Any = {"reason": answer.reason, "memory": answer.memory}
    else:
        fields = {
            "title": answer.title,
            "sections": [[part.path, [[block.text, block.kind] for block in part.blocks]] for part in answer.sections],
            "url": answer.url,
            "revision": answer.revision,
            "date": answer.date.isoformat() if answer.date else None,
            "language": answer.language,
            "aliases": answer.aliases,
            "disambiguation": answer.disambiguation,
        }
    # Halves of surrogate pairs are replaced later, by `page_cleanup`.
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "surrogatepass")


def decode_answer(content: bytes) -> ReadAnswer:
    """Decode an answer. Raises `MalformedAnswer`."""
    try:
        fields = json.loads(content.decode("utf-8", "surrogatepass"))
        if "reason" in fields:
            return ReadFailure(str(fields["reason"]), bool(fields["memory"]))
        return Page(
            title=str(fields["title"]),
            sections=tuple(map(_decode_section, fields["sections"])),
            url=str(fields["url"]),
            revision=str(fields["revision"]),
            date=datetime.fromisoformat(fields["date"]) if fields["date"] else None,
            language=str(fields["language"]),
            aliases=tuple(map(str, fields["aliases"])),
            disambiguation=bool(fields["disambiguation"]),
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise MalformedAnswer from error


def _decode_section(fields: Any) -> Section:
    path, blocks = fields
    return Section(tuple(map(str, path)), tuple(Block(str(text), PassageKind(kind)) for text, kind in blocks))


def serve_documents(seconds: float, memory: int) -> None:
    """Read documents, each within so many seconds of computing and bytes of memory, until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends this one
    # What a library prints must not come among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    threading.Thread(target=_exit_with_parent, args=(os.getppid(),), name="parent", daemon=True).start()
    if resource is not None:
        # Else each crash would write the process to the disk.
        _set_limit(resource, resource.RLIMIT_CORE, 0)
        _set_limit(resource, resource.RLIMIT_DATA, memory)
    with suppress(BrokenPipeError):
        write_frame(answers, b"")
        while answer := _answer_next(seconds):
            write_frame(answers, answer)


def _answer_next(seconds: float) -> bytes:
    """Wait for a document, and return the answer; empty at the end."""
    try:
        task = read_frame(sys.stdin.buffer)
        if task is None:
            return b""
        if resource is not None:
            # The system counts whole seconds.
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
        return ReadFailure(describe_error(error))


def _set_limit(limits: ModuleType, which: int, most: int) -> None:
    _, hard = limits.getrlimit(which)
    with suppress(ValueError, OSError):  # some systems know a limit and refuse it
        limits.setrlimit(which, (most if hard == limits.RLIM_INFINITY else min(most, hard), hard))


def _exit_with_parent(parent: int) -> None:
    """Exit once the parent was killed: nothing else notices while a document is read."""
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_SECONDS)
    os.killpg(os.getpgrp(), signal.SIGKILL)  # its own group, with the programs that it called


if __name__ == "__main__":
    serve_documents(float(sys.argv[1]), int(sys.argv[2]))
