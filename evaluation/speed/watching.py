"""Runs a program and watches what it takes: time on the clock, time of processors, memory of all its processes."""

import os
import resource
import subprocess
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluation.errors import EvaluationError

_EVERY = 0.1


@dataclass(frozen=True)
class Run:
    """What a program took, and what it printed. Memory is the sum over its processes, what they share counted twice."""

    seconds: float
    processor_seconds: float
    memory_mb: int
    output: str


def watched(command: Sequence[str]) -> Run:
    """Run a command to its end. Raises `EvaluationError` with its last words if it fails."""
    before = _processor_seconds()
    started = time.perf_counter()
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
    except OSError as error:
        raise EvaluationError(f"{command[0]} cannot be run: {error.strerror}.", hint="Check its path.") from error
    ended = threading.Event()
    peak = [0]
    watcher = threading.Thread(target=_watch, args=(process.pid, ended, peak), name="watch")
    watcher.start()
    output, words = process.communicate()
    seconds = time.perf_counter() - started
    ended.set()
    watcher.join()
    if process.returncode:
        last = words.strip().splitlines()[-1:] or [f"it ended with {process.returncode}"]
        raise EvaluationError(f"{command[0]} failed: {last[0]}")
    return Run(seconds, _processor_seconds() - before, peak[0] >> 20, output)


def _processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _watch(session: int, ended: threading.Event, peak: list[int]) -> None:
    while not ended.wait(_EVERY):
        peak[0] = max(peak[0], _resident(session))


def _resident(session: int) -> int:
    """Bytes in memory of all processes of a session, by Linux's own account."""
    pages = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session:
            pages += int(fields[21])
    return pages * os.sysconf("SC_PAGE_SIZE")
