"""Read potentially harmful documents in a separate process with limits; a thread could not be killed.

The process starts with the first document that needs it, and ends with the `with` block. A document that breaks it is
reported as unreadable, and a new process is started. The process is not forked, because threads of this process may
hold locks. It is not made by `multiprocessing`, which would import the main program again and leave a resource tracker
behind.
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
from functools import partial
from typing import Self, Unpack

from ingest.readers import file_formats
from ingest.readers.external_programs import NO_PROGRAMS, ReaderPrograms
from ingest.readers.file_formats import FileFacts
from ingest.sandbox_worker import (
    LONGEST_FRAME,
    MalformedAnswer,
    ReadAnswer,
    ReadFailure,
    decode_answer,
    read_frame,
    write_frame,
)
from ingest.types import Page, ReadingStopped, ReadTask, SourceUnavailable, UnreadableDocument, describe_os_error

_PASSED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "LC_CTYPE", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR", "TZ")
"""Environment variables that the process gets; all others may hold secrets."""
_START_SECONDS = 300.0  # a process starts slowly on a busy machine


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    seconds: float = 60.0  # processor time, if the system limits it
    memory: int = 1 << 30  # bytes, if the system limits it
    clock: float = 1800.0
    """Wall-clock seconds, against endless waiting; many times `seconds`, so that a busy machine refuses nothing."""


@dataclass(frozen=True, slots=True)
class ProcessExit:
    """How a process ended while it read a document."""

    code: int  # as in `subprocess`: negative for a signal
    late: bool = False  # whether it was killed because it exceeded the wall-clock limit


class SandboxProcess:
    """A worker process. One thread uses it; another thread may call `kill`."""

    def __init__(self, limits: SandboxLimits) -> None:
        """Start the process, and wait until it is ready. Raises `SourceUnavailable`."""
        self.limits = limits
        self.documents = 0  # read so far
        self._scratch = tempfile.TemporaryDirectory(prefix="footnote-", ignore_cleanup_errors=True)
        command = [sys.executable, "-P", "-m", "ingest.sandbox_worker", str(limits.seconds), str(limits.memory)]
        pipe = subprocess.PIPE
        try:
            # Programs that it starts belong to its group and are killed with it.
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
            raise _start_failure(describe_os_error(error)) from error
        try:
            greeting = self._exchange(None, _START_SECONDS)
        except BaseException:
            self.end()
            raise
        if greeting != b"":
            self.end()
            raise _start_failure(f"it exited at once with {self._process.returncode}")

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def ask(self, task: bytes) -> bytes | ProcessExit:
        """Send a document to the process, and return its answer, or how it ended. Raises `MalformedAnswer`."""
        self.documents += 1
        return self._exchange(task, self.limits.clock)

    def kill(self) -> None:
        # The number of a reaped process may belong to another.
        if self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)

    def end(self) -> None:
        """Kill the process, and wait for its exit."""
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
        timer.name, timer.daemon = "reading limit", True
        timer.start()
        try:
            if task is not None:
                with suppress(BrokenPipeError):  # there will be no answer either
                    write_frame(self._process.stdin, task)
            answer = read_frame(self._process.stdout, LONGEST_FRAME)
        finally:
            timer.cancel()
        if answer is not None:
            return answer
        with suppress(ChildProcessError):  # it was already reaped
            os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        self.kill()  # the programs that it started
        return ProcessExit(self._process.wait(), late.is_set())


def explain_exit(ended: ProcessExit, limits: SandboxLimits) -> str:
    """Return why a document was not read, by how its process ended. Pure."""
    if ended.late:
        return explain_timeout(limits.clock)
    if ended.code == -getattr(signal, "SIGXCPU", 0):
        return explain_timeout(limits.seconds)
    if ended.code == -getattr(signal, "SIGKILL", 0):
        return "was not read: its process was killed from outside, as happens when memory runs out"
    named = signal.Signals(-ended.code).name if -ended.code in set(signal.Signals) else f"exit {ended.code}"
    return f"crashes its reader ({named}): save it again, or exclude it"


def explain_timeout(seconds: float) -> str:
    return f"takes longer than {seconds:g} s to read: split it, or exclude it"


def explain_memory_limit(memory: int) -> str:
    size = f"{memory / 2**30:g} GB" if memory >= 1 << 30 else f"{memory >> 20} MB"
    return f"needs more than {size} of memory to read: split it, or exclude it"


def minimal_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return only the variables that a process needs to run our code; they contain no secrets."""
    passed = {name: environment[name] for name in _PASSED_VARIABLES if name in environment}
    return {**passed, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}


def _start_failure(cause: str) -> SourceUnavailable:
    hint = "This machine may be short of memory or of processes: run the same command again."
    return SourceUnavailable(f"Cannot start a process to read documents: {cause}.", hint=hint)


def plan_reading(
    content: bytes, name: str, *, programs: ReaderPrograms = NO_PROGRAMS, **facts: Unpack[FileFacts]
) -> ReadTask:
    """Make the task of reading a file's bytes with `file_formats.read_file`."""
    work = partial(file_formats.read_file, content, name, programs=programs, **facts)
    return ReadTask(work, harmless=file_formats.is_harmless(name, len(content)), slow=programs.ocr)


_DEFAULT_LIMITS = SandboxLimits()
OCR_LIMITS = SandboxLimits(seconds=600.0, clock=4 * 3600.0)  # a book of scanned pages takes hours


class Sandbox:
    """Reads documents in a separate process. One thread uses it; another thread may call `stop`.

    Within a `with` block, one process reads all documents. Outside of a block, each document gets its own process.
    """

    def __init__(self, limits: SandboxLimits | None = None, programs: ReaderPrograms = NO_PROGRAMS) -> None:
        self._limits = limits or (OCR_LIMITS if programs.ocr else _DEFAULT_LIMITS)
        self.programs = programs
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
        """Interrupt reading, and refuse further documents within this block."""
        with self._lock:
            self._stopped = True
            if self._process:
                self._process.kill()

    def page(self, content: bytes, name: str, **facts: Unpack[FileFacts]) -> Page:
        """Read a file's bytes as `file_formats.read_file` does. Blocks.

        Raises:
            UnreadableDocument: The document cannot be read, or exceeds a limit; the reason says what to do.
            SourceUnavailable: The process cannot be started, or reading was stopped.
        """
        return self.run(plan_reading(content, name, programs=self.programs, **facts))

    def run(self, task: ReadTask) -> Page:
        """Run a task in the sandbox. Blocks; raises as `page` does."""
        return self.call(task.work, harmless=task.harmless)

    def call(self, work: Callable[[], Page], *, harmless: bool = False) -> Page:
        """Call a picklable function that makes a page, in this process if `harmless`. Blocks; raises as `page` does."""
        if self._stopped:
            raise ReadingStopped
        if harmless:
            return work()
        task = pickle.dumps(work)
        try:
            used = self._process is not None and self._process.documents > 0
            answer = self._answer(task)
            # Earlier documents may have used up the memory: retry in a new process.
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
            reply = self._ensure_started().ask(task)
            answer = self._explain(reply) if isinstance(reply, ProcessExit) else decode_answer(reply)
        except MalformedAnswer:
            self._end()
            return ReadFailure("was not read: its reader returned an invalid result")
        except BaseException:
            self._end()
            raise
        if isinstance(answer, ReadFailure) and answer.memory:
            self._end()
        return answer

    def _explain(self, ended: ProcessExit) -> ReadFailure:
        if self._stopped:
            raise ReadingStopped
        return ReadFailure(explain_exit(ended, self._limits))

    def _ensure_started(self) -> SandboxProcess:
        if self._process is not None and not self._process.alive:
            self._end()
        if self._process is None:
            started = SandboxProcess(self._limits)
            with self._lock:
                self._process = started
                stopped = self._stopped
            if stopped:
                self._end()
                raise ReadingStopped
        return self._process

    def _end(self) -> None:
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.end()
