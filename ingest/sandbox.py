"""Read documents that could do harm in a process of their own, with limits; a thread could not be ended.

The process is started with the first document that needs one and ended with the `with` block. It is started anew after
a document that broke it, which is reported as unreadable; all others are read. It is neither forked, as threads of this
process may hold locks, nor made by `multiprocessing`, which would import whatever program this process was started by
once more, and leave a process behind to track resources.
"""

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Self

from ingest import sandbox_worker
from ingest.readers import file_formats
from ingest.types import Page, SourceUnavailable, UnreadableDocument

_PASSED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "TZ")
"""Of the environment. All else may hold a secret."""
_START_SECONDS = 60.0
"""Seconds that a process may take to begin."""


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What reading one document may take."""

    seconds: float = 60.0
    """Of computing, where the system can count it."""
    memory: int = 1 << 30
    """Bytes, where the system can limit it."""
    clock: float = 240.0
    """Seconds by the clock, for what waits and does not compute, and for what must share its processor."""


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """The process ended, or was, in the middle of a document."""

    code: int
    """As `subprocess` has it: a signal's number below zero."""
    late: bool = False
    """Whether it was ended as its time was up by the clock."""


class SandboxProcess:
    """One process, for one thread; `kill` may come from another."""

    def __init__(self, limits: SandboxLimits) -> None:
        """Begin it. Blocks until it is ready. Raises `SourceUnavailable`."""
        self.limits = limits
        self.documents = 0
        """How many it was given."""
        command = [sys.executable, "-P", "-m", "ingest.sandbox_worker", str(limits.seconds), str(limits.memory)]
        pipe = subprocess.PIPE
        try:
            self._it = subprocess.Popen(  # noqa: S603 - this program itself
                command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=_child_environment()
            )
        except OSError as error:
            raise _start_failure((error.strerror or type(error).__name__).lower()) from error
        try:
            said = self._said(None, _START_SECONDS)
        except BaseException:
            self.end()
            raise
        if said != b"":
            self.end()
            raise _start_failure(f"it ended at once, with {self._it.returncode}")

    @property
    def alive(self) -> bool:
        """Whether it can be asked."""
        return self._it.poll() is None

    def ask(self, task: bytes) -> bytes | ProcessExit:
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

    def _said(self, task: bytes | None, seconds: float) -> bytes | ProcessExit:
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
                    sandbox_worker.write_frame(self._it.stdin, task)
            answer = sandbox_worker.read_frame(self._it.stdout, sandbox_worker.LONGEST_FRAME)
        finally:
            timer.cancel()
        return ProcessExit(self._it.wait(), late.is_set()) if answer is None else answer


def explain_exit(ended: ProcessExit, limits: SandboxLimits) -> str:
    """Why a document could not be read whose process has ended, in plain words. Pure."""
    if ended.late:
        return explain_timeout(limits.clock)
    if ended.code == -getattr(signal, "SIGXCPU", 0):
        return explain_timeout(limits.seconds)
    if ended.code == -getattr(signal, "SIGKILL", 0):
        return "was not read: its process was ended from outside, as is done where memory runs out"
    named = signal.Signals(-ended.code).name if -ended.code in set(signal.Signals) else f"exit {ended.code}"
    return f"makes the program crash that reads it ({named}): save it anew, or leave it out"


def explain_timeout(seconds: float) -> str:
    """Why a document was given up that took so long."""
    return f"takes longer than {seconds:g} s to be read: split it, or leave it out"


def explain_memory_limit(memory: int) -> str:
    """Why a document was given up that needed so much."""
    size = f"{memory / 2**30:g} GB" if memory >= 1 << 30 else f"{memory >> 20} MB"
    return f"needs more than {size} of memory to be read: split it, or leave it out"


def _child_environment() -> dict[str, str]:
    kept = {name: os.environ[name] for name in _PASSED_VARIABLES if name in os.environ}
    return {**kept, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}


def _start_failure(cause: str) -> SourceUnavailable:
    hint = "This machine may be short of memory or of processes: run the same command again."
    return SourceUnavailable(f"No process could be begun to read a document in: {cause}.", hint=hint)


_NO_LIMITS = SandboxLimits()


class Sandbox:
    """Reads documents for one thread; `stop` may come from another.

    Within a `with` block the process is kept for the next document; outside of one, each document has its own.
    """

    def __init__(self, limits: SandboxLimits = _NO_LIMITS) -> None:
        """`limits` are for each document."""
        self._limits = limits
        self._process: SandboxProcess | None = None
        self._within = 0
        self._stopped = False
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        """Keep the process from now on."""
        self._within += 1
        self._stopped = False
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self._within -= 1
        if not self._within:
            self._end()

    def stop(self) -> None:
        """End what is being read, and read nothing more in this block."""
        with self._lock:
            self._stopped = True
            if self._process:
                self._process.kill()

    def page(
        self, content: bytes, name: str, *, url: str = "", revision: str = "", modified: datetime | None = None
    ) -> Page:
        """Read a file's bytes as `converting.page` does. Blocks.

        Raises:
            UnreadableDocument: With a reason that a person can act upon; also for what takes too much.
            SourceUnavailable: No process could be begun, or reading was stopped.
        """
        work = partial(file_formats.read_file, content, name, url=url, revision=revision, modified=modified)
        return self.done(work, harmless=file_formats.is_harmless(name, len(content)))

    def done(self, work: Callable[[], Page], *, harmless: bool = False) -> Page:
        """Do what makes a page: a function of a module, its arguments bound by `partial`. Blocks; raises as `page`."""
        if self._stopped:
            raise _stopped_error()
        if harmless:
            return work()
        task = pickle.dumps(work)
        try:
            used = self._process is not None and self._process.documents > 0
            answer = self._answer(task)
            # What those before have left behind is no fault of this one.
            if used and isinstance(answer, sandbox_worker.ReadFailure) and answer.memory:
                answer = self._answer(task)
        finally:
            if not self._within:
                self._end()
        if isinstance(answer, sandbox_worker.ReadFailure):
            raise UnreadableDocument(explain_memory_limit(self._limits.memory) if answer.memory else answer.reason)
        return answer

    def _answer(self, task: bytes) -> sandbox_worker.ReadAnswer:
        try:
            there = self._begun()
            said = there.ask(task)
            answer = self._told(said) if isinstance(said, ProcessExit) else sandbox_worker.decode_answer(said)
        except sandbox_worker.MalformedAnswer:
            self._end()
            return sandbox_worker.ReadFailure("was not read: what came of it is no document")
        except BaseException:
            self._end()
            raise
        if isinstance(answer, sandbox_worker.ReadFailure) and answer.memory:
            self._end()
        return answer

    def _told(self, ended: ProcessExit) -> sandbox_worker.ReadFailure:
        if self._stopped:
            raise _stopped_error()
        return sandbox_worker.ReadFailure(explain_exit(ended, self._limits))

    def _begun(self) -> SandboxProcess:
        if self._process is not None and not self._process.alive:
            self._end()
        if self._process is None:
            begun = SandboxProcess(self._limits)
            with self._lock:
                self._process = begun
                stopped = self._stopped
            if stopped:
                self._end()
                raise _stopped_error()
        return self._process

    def _end(self) -> None:
        with self._lock:
            there, self._process = self._process, None
        if there is not None:
            there.end()


def _stopped_error() -> SourceUnavailable:
    return SourceUnavailable("Reading was stopped.", hint="Run the same command again to go on.")
