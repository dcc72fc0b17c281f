"""The process that reads, as its parent sees it: begun, asked, ended.

It is neither forked, as threads of this process may hold locks, nor made by `multiprocessing`, which would import
whatever program this process was started by once more, and leave a process behind to track resources.
"""

import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import dataclass

from ingest.apart import passing
from ingest.types import SourceUnavailable

_KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "TZ")
"""Of the environment. All else may hold a secret."""
_START = 60.0
"""Seconds that a process may take to begin."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What reading one document may take."""

    seconds: float = 60.0
    """Of computing, where the system can count it."""
    memory: int = 1 << 30
    """Bytes, where the system can limit it."""
    clock: float = 240.0
    """Seconds by the clock, for what waits and does not compute, and for what must share its processor."""


@dataclass(frozen=True, slots=True)
class Ended:
    """The process ended, or was, in the middle of a document."""

    code: int
    """As `subprocess` has it: a signal's number below zero."""
    late: bool = False
    """Whether it was ended as its time was up by the clock."""


class Process:
    """One process, for one thread; `kill` may come from another."""

    def __init__(self, limits: Limits) -> None:
        """Begin it. Blocks until it is ready. Raises `SourceUnavailable`."""
        self.limits = limits
        self.documents = 0
        """How many it was given."""
        command = [sys.executable, "-P", "-m", "ingest.apart.child", str(limits.seconds), str(limits.memory)]
        pipe = subprocess.PIPE
        try:
            self._it = subprocess.Popen(  # noqa: S603 - this program itself
                command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=_environment()
            )
        except OSError as error:
            raise _not_begun((error.strerror or type(error).__name__).lower()) from error
        try:
            said = self._said(None, _START)
        except BaseException:
            self.end()
            raise
        if said != b"":
            self.end()
            raise _not_begun(f"it ended at once, with {self._it.returncode}")

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._it.poll() is None

    def ask(self, task: bytes) -> bytes | Ended:
        """Have a document read: what the process answers, or that it has ended. Raises `passing.Garbled`."""
        self.documents += 1
        return self._said(task, self.limits.clock)

    def kill(self) -> None:
        """End it in the middle of whatever it does."""
        self._it.kill()

    def end(self) -> None:
        """End it, and wait until it has."""
        self.kill()
        self._it.wait()
        for pipe in (self._it.stdin, self._it.stdout):
            if pipe is not None:
                with suppress(OSError):  # what was not yet written is lost
                    pipe.close()

    def _said(self, task: bytes | None, seconds: float) -> bytes | Ended:
        assert self._it.stdin is not None  # noqa: S101 - it was begun with pipes
        assert self._it.stdout is not None  # noqa: S101
        late = threading.Event()

        def too_late() -> None:
            late.set()
            self.kill()

        timer = threading.Timer(seconds, too_late)
        timer.name, timer.daemon = "reading's limit", True
        timer.start()
        try:
            if task is not None:
                with suppress(BrokenPipeError):  # then there is no answer either
                    passing.write(self._it.stdin, task)
            answer = passing.read(self._it.stdout, passing.LONGEST)
        finally:
            timer.cancel()
        return Ended(self._it.wait(), late.is_set()) if answer is None else answer


def told(ended: Ended, limits: Limits) -> str:
    """Why a document could not be read whose process has ended, in plain words. Pure."""
    if ended.late:
        return slow(limits.clock)
    if ended.code == -getattr(signal, "SIGXCPU", 0):
        return slow(limits.seconds)
    if ended.code == -getattr(signal, "SIGKILL", 0):
        return "was not read: its process was ended from outside, as is done where memory runs out"
    named = signal.Signals(-ended.code).name if -ended.code in set(signal.Signals) else f"exit {ended.code}"
    return f"makes the program crash that reads it ({named}): save it anew, or leave it out"


def slow(seconds: float) -> str:
    """Why a document was given up that took so long."""
    return f"takes longer than {seconds:g} s to be read: split it, or leave it out"


def large(memory: int) -> str:
    """Why a document was given up that needed so much."""
    size = f"{memory / 2**30:g} GB" if memory >= 1 << 30 else f"{memory >> 20} MB"
    return f"needs more than {size} of memory to be read: split it, or leave it out"


def _environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}


def _not_begun(cause: str) -> SourceUnavailable:
    hint = "This machine may be short of memory or of processes: run the same command again."
    return SourceUnavailable(f"No process could be begun to read a document in: {cause}.", hint=hint)
