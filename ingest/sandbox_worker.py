"""The process that reads documents for `ingest.sandbox`, and the frames in which both processes exchange messages.

It is started as `python -m ingest.sandbox_worker SECONDS BYTES`, without secrets in its environment. It exits at the
end of its input, or when its parent is gone. A document may take over a library and write anything into the pipe, so
answers are text in frames of limited length. Only tasks are pickled, as our own process writes them.
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
except ImportError:  # on such systems only the parent's clock limits it
    resource: ModuleType | None = None
else:
    resource = _resource

_PARENT_CHECK_SECONDS = 1.0  # between two checks that the parent is alive
LONGEST_FRAME = 256 << 20  # bytes of an answer; more than the longest document in any script
_FRAME_HEAD = struct.Struct(">Q")


@dataclass(frozen=True, slots=True)
class ReadFailure:
    """The reason why a document was not read. `memory`: whether it needed too much memory."""

    reason: str = ""
    memory: bool = False


ReadAnswer = Page | ReadFailure


class MalformedAnswer(Exception):
    """The worker sent an invalid answer."""


def write_frame(pipe: IO[bytes], content: bytes) -> None:
    pipe.write(_FRAME_HEAD.pack(len(content)))
    pipe.write(content)
    pipe.flush()


def read_frame(pipe: IO[bytes], longest: int | None = None) -> bytes | None:
    """Wait for a frame; None if the other process has closed the pipe.

    Raises `MalformedAnswer` if the frame is too long.
    """
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
    # `page_cleanup` replaces unpaired surrogates later.
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
    """Read documents until the input ends, each within `seconds` of processor time and `memory` bytes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent gets Ctrl-C too, and ends this process
    # Libraries that print must not corrupt the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    threading.Thread(target=_exit_with_parent, args=(os.getppid(),), name="parent", daemon=True).start()
    if resource is not None:
        # A crash must not dump the memory of the process to disk.
        _set_limit(resource, resource.RLIMIT_CORE, 0)
        _set_limit(resource, resource.RLIMIT_DATA, memory)
    with suppress(BrokenPipeError):
        write_frame(answers, b"")
        while answer := _answer_next(seconds):
            write_frame(answers, answer)


def _answer_next(seconds: float) -> bytes:
    """Wait for a document, read it, and return the answer; empty at the end of the input."""
    try:
        task = read_frame(sys.stdin.buffer)
        if task is None:
            return b""
        if resource is not None:
            # The limit is in whole seconds.
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
    except Exception as error:  # noqa: BLE001 - the libraries below may raise anything for a malformed file
        return ReadFailure(describe_error(error))


def _set_limit(limits: ModuleType, which: int, most: int) -> None:
    _, hard = limits.getrlimit(which)
    with suppress(ValueError, OSError):  # some systems define a limit and refuse it
        limits.setrlimit(which, (most if hard == limits.RLIM_INFINITY else min(most, hard), hard))


def _exit_with_parent(parent: int) -> None:
    """Exit as soon as the parent is gone, even if a document is being read."""
    while os.getppid() == parent:
        time.sleep(_PARENT_CHECK_SECONDS)
    os.killpg(os.getpgrp(), signal.SIGKILL)  # our own group, including the programs that we called


if __name__ == "__main__":
    serve_documents(float(sys.argv[1]), int(sys.argv[2]))
