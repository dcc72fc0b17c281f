"""What runs in the process that reads: documents come in one after the other, each is answered or the process dies.

Begun by `process` as `python -m ingest.apart.child SECONDS BYTES`. It is given no secrets: of its parent's environment
it has what a process needs to run. It ends when its input does, or when its parent is no more.
"""

import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from types import ModuleType

from ingest import cleaning
from ingest.apart import passing
from ingest.apart.passing import Answer, Failed
from ingest.looking import not_too_long
from ingest.types import Page, UnreadableDocument

try:
    import resource as _resource
except ImportError:  # Only the parent's clock limits it there
    resource: ModuleType | None = None
else:
    resource = _resource

_LOOKS = 1.0
"""Seconds between two looks at whether the parent is there."""


def main(seconds: float, memory: int) -> None:
    """Read what comes, each for at most so many seconds of computing, with at most so many bytes of memory."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent too, which ends this one
    # What a library prints must not come among the answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    threading.Thread(target=_end_with, args=(os.getppid(),), name="parent", daemon=True).start()
    if resource is not None:
        # A part of the system would be written to disk with each crash.
        _limit(resource, resource.RLIMIT_CORE, 0)
        _limit(resource, resource.RLIMIT_DATA, memory)
    with suppress(BrokenPipeError):
        passing.write(answers, b"")
        while answer := _next(seconds):
            passing.write(answers, answer)


def _next(seconds: float) -> bytes:
    """Wait for a document, and return the answer; nothing at the end."""
    try:
        task = passing.read(sys.stdin.buffer)
        if task is None:
            return b""
        if resource is not None:
            # The next whole second: the system counts no less.
            _limit(resource, resource.RLIMIT_CPU, int(time.process_time() + seconds) + 1)
        work: Callable[[], Page] = pickle.loads(task)  # noqa: S301 - our parent wrote it
        del task
        return passing.packed(_answer(work))
    except MemoryError:
        return passing.packed(Failed(memory=True))


def _answer(work: Callable[[], Page]) -> Answer:
    try:
        return not_too_long(work())
    except MemoryError:
        raise
    except UnreadableDocument as error:
        return Failed(str(error))
    except Exception as error:  # noqa: BLE001 - the libraries below may raise anything over an odd file
        return Failed(cleaning.reason(error))


def _limit(limits: ModuleType, which: int, most: int) -> None:
    _, hard = limits.getrlimit(which)
    with suppress(ValueError, OSError):  # some systems know a limit and take none
        limits.setrlimit(which, (most if hard == limits.RLIM_INFINITY else min(most, hard), hard))


def _end_with(parent: int) -> None:
    """End once the parent was killed, which is told by nothing else while a document is read."""
    while os.getppid() == parent:
        time.sleep(_LOOKS)
    os._exit(1)


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]))
