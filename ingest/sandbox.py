"""Read documents that could do harm in a process of their own, with limits; a thread could not be ended.

The process is started with the first document that needs one and ended with the `with` block. After a document that
broke it, which is reported as unreadable, another is started. It is neither forked, as threads of this
process may hold locks, nor made by `multiprocessing`, which would import whatever program this process was started by
once more, and leave a process behind to track resources.
"""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Self

from ingest.readers import file_formats
from ingest.readers.external_programs import NO_PROGRAMS, ReaderPrograms
from ingest.sandbox_worker import (
    LONGEST_FRAME,
    MalformedAnswer,
    ReadAnswer,
    ReadFailure,
    decode_answer,
    read_frame,
    write_frame,
)
from ingest.types import Page, ReadTask, SourceUnavailable, UnreadableDocument

_PASSED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "TZ")
"""Of the environment; all else may hold a secret."""
_START_SECONDS = 300.0  # a process may take so long to start, where many others run


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """Limits for reading one document."""

    seconds: float = 60.0  # of the processor's time, where the system counts it
    memory: int = 1 << 30  # bytes, where the system limits it
    clock: float = 1800.0
    """Seconds by the clock, for what waits for ever; many times `seconds`, as a busy machine must refuse nothing."""


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """The end of a process in the middle of a document."""

    code: int  # as `subprocess` has it: negative for a signal
    late: bool = False  # whether it was killed as its time was up by the clock


class SandboxProcess:
    """One process, for one thread; `kill` may come from another."""

    def __init__(self, limits: SandboxLimits) -> None:
        """Start it, and wait until it is ready. Raises `SourceUnavailable`."""
        self.limits = limits
        self.documents = 0
        """How many it has read."""
        self._scratch = tempfile.TemporaryDirectory(prefix="footnote-", ignore_cleanup_errors=True)
        command = [sys.executable, "-P", "-m", "ingest.sandbox_worker", str(limits.seconds), str(limits.memory)]
        pipe = subprocess.PIPE
        try:
            # What it starts belongs to its group, and is ended with it.
            self._process = subprocess.Popen(  # noqa: S603 - this program itself
                command,
                stdin=pipe,
                stdout=pipe,
                stderr=subprocess.DEVNULL,
                env=minimal_environment(os.environ) | {"TMPDIR": self._scratch.name},
                process_group=0,
            )
        except OSError as error:
            self._scratch.cleanup()
            raise _start_failure((error.strerror or type(error).__name__).lower()) from error
        try:
            greeting = self._exchange(None, _START_SECONDS)
        except BaseException:
            self.end()
            raise
        if greeting != b"":
            self.end()
            raise _start_failure(f"it ended at once, with {self._process.returncode}")

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, task: bytes) -> bytes | ProcessExit:
        """Have a document read, and return the answer or the end of the process. Raises `MalformedAnswer`."""
        self.documents += 1
        return self._exchange(task, self.limits.clock)

    def kill(self) -> None:
        # A process that was waited for may have left its number to another.
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill it, and wait for its end."""
        self.kill()
        self._process.wait()
        self._scratch.cleanup()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with suppress(OSError):  # unwritten bytes are lost
                    pipe.close()

    def _exchange(self, task: bytes | None, seconds: float) -> bytes | ProcessExit:
        assert self._process.stdin is not None  # noqa: S101 - it was started with pipes
        assert self._process.stdout is not None  # noqa: S101
        late = threading.Event()

        def time_out() -> None:
            late.set()
            self.kill()

        timer = threading.Timer(seconds, time_out)
        timer.name, timer.daemon = "reading's limit", True
        timer.start()
        try:
            if task is not None:
                with suppress(BrokenPipeError):  # then there is no answer either
                    write_frame(self._process.stdin, task)
            answer = read_frame(self._process.stdout, LONGEST_FRAME)
        finally:
            timer.cancel()
        if answer is not None:
            return answer
        with suppress(ChildProcessError):  # it was waited for before
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        self.kill()  # what it had started
        return ProcessExit(self._process.wait(), late.is_set())


def explain_exit(ended: ProcessExit, limits: SandboxLimits) -> str:
    """Explain why a document could not be read whose process has ended. Pure."""
    if ended.late:
        return explain_timeout(limits.clock)
    if ended.code == -getattr(signal, "SIGXCPU", 0):
        return explain_timeout(limits.seconds)
    if ended.code == -getattr(signal, "SIGKILL", 0):
        return "was not read: its process was ended from outside, as is done where memory runs out"
    named = signal.Signals(-ended.code).name if -ended.code in set(signal.Signals) else f"exit {ended.code}"
    return f"makes the program crash that reads it ({named}): save it anew, or leave it out"


def explain_timeout(seconds: float) -> str:
    return f"takes longer than {seconds:g} s to be read: split it, or leave it out"


def explain_memory_limit(memory: int) -> str:
    size = f"{memory / 2**30:g} GB" if memory >= 1 << 30 else f"{memory >> 20} MB"
    return f"needs more than {size} of memory to be read: split it, or leave it out"


def minimal_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return what a process needs to run our code, without a secret."""
    kept = {name: environment[name] for name in _PASSED_VARIABLES if name in environment}
    return {**kept, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}


def _start_failure(cause: str) -> SourceUnavailable:
    hint = "This machine may be short of memory or of processes: run the same command again."
    return SourceUnavailable(f"No process could be started to read a document in: {cause}.", hint=hint)


def plan_reading(
    content: bytes,
    name: str,
    *,
    url: str = "",
    revision: str = "",
    modified: datetime | None = None,
    programs: ReaderPrograms = NO_PROGRAMS,
) -> ReadTask:
    """Plan the reading of a file's bytes, as `file_formats.read_file` does it."""
    given = partial(file_formats.read_file, content, name, url=url, revision=revision, modified=modified)
    work = partial(given, programs=programs)
    return ReadTask(work, harmless=file_formats.is_harmless(name, len(content)), slow=programs.ocr)


_DEFAULT_LIMITS = SandboxLimits()
OCR_LIMITS = SandboxLimits(seconds=600.0, clock=4 * 3600.0)  # a book of scanned pages takes hours


class Sandbox:
    """Read documents for one thread; `stop` may come from another.

    Within a `with` block the process is kept for the next document; outside of one, each document has its own.
    """

    def __init__(self, limits: SandboxLimits | None = None, programs: ReaderPrograms = NO_PROGRAMS) -> None:
        self._limits = limits or (OCR_LIMITS if programs.ocr else _DEFAULT_LIMITS)
        self.programs = programs
        """Of this machine, which readers may call."""
        self._process: SandboxProcess | None = None
        self._within = 0
        self._stopped = False
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        self._within += 1
        self._stopped = False
        return self

    def __exit__(self, *_error: object) -> None:
        self._within -= 1
        if not self._within:
            self._end()

    def stop(self) -> None:
        """Interrupt the reading, and read nothing more in this block."""
        with self._lock:
            self._stopped = True
            if self._process:
                self._process.kill()

    def page(
        self, content: bytes, name: str, *, url: str = "", revision: str = "", modified: datetime | None = None
    ) -> Page:
        """Read a file's bytes as `file_formats.read_file` does. Blocks.

        Raises:
            UnreadableDocument: With a reason that a person can act upon; also for exceeded limits.
            SourceUnavailable: No process could be started, or reading was stopped.
        """
        return self.run(
            plan_reading(content, name, url=url, revision=revision, modified=modified, programs=self.programs)
        )

    def run(self, task: ReadTask) -> Page:
        """Do what a task says. Blocks; raises as `page`."""
        return self.done(task.work, harmless=task.harmless)

    def done(self, work: Callable[[], Page], *, harmless: bool = False) -> Page:
        """Run a module's function, its arguments bound by `partial`, that makes a page. Blocks; raises as `page`."""
        if self._stopped:
            raise _stopped_error()
        if harmless:
            return work()
        task = pickle.dumps(work)
        try:
            used = self._process is not None and self._process.documents > 0
            answer = self._answer(task)
            # What earlier documents left behind is no fault of this one.
            if used and isinstance(answer, ReadFailure) and answer.memory:
                answer = self._answer(task)
        finally:
            if not self._within:
                self._end()
        if isinstance(answer, ReadFailure):
            raise UnreadableDocument(explain_memory_limit(self._limits.memory) if answer.memory else answer.reason)
        return answer

    def _answer(self, task: bytes) -> ReadAnswer:
        try:
            reply = self._started().ask(task)
            answer = self._explain(reply) if isinstance(reply, ProcessExit) else decode_answer(reply)
        except MalformedAnswer:
            self._end()
            return ReadFailure("was not read: the result is no document")
        except BaseException:
            self._end()
            raise
        if isinstance(answer, ReadFailure) and answer.memory:
            self._end()
        return answer

    def _explain(self, ended: ProcessExit) -> ReadFailure:
        if self._stopped:
            raise _stopped_error()
        return ReadFailure(explain_exit(ended, self._limits))

    def _started(self) -> SandboxProcess:
        if self._process is not None and not self._process.alive:
            self._end()
        if self._process is None:
            started = SandboxProcess(self._limits)
            with self._lock:
                self._process = started
                stopped = self._stopped
            if stopped:
                self._end()
                raise _stopped_error()
        return self._process

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.end()


def _stopped_error() -> SourceUnavailable:
    return SourceUnavailable("Reading was stopped.", hint="Run the same command again to go on.")
