"""How sources have documents read: here where that is harmless, else in a process of its own, with limits.

The process is begun with the first document that needs one and ended with the `with` block. It is begun anew after a
document that broke it, which is told as unreadable; all others are read.
"""

import pickle
import threading
from collections.abc import Callable
from datetime import datetime
from functools import partial
from types import TracebackType
from typing import Self

from ingest import converting
from ingest.apart import deciding, passing, process
from ingest.apart.process import Ended, Limits, Process
from ingest.types import Page, SourceUnavailable, UnreadableDocument

_NO_LIMITS = Limits()


class Apart:
    """Reads documents for one thread; `stop` may come from another.

    Within a `with` block the process is kept for the next document; outside of one, each document has its own.
    """

    def __init__(self, limits: Limits = _NO_LIMITS) -> None:
        """`limits` are for each document."""
        self._limits = limits
        self._process: Process | None = None
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
        work = partial(converting.page, content, name, url=url, revision=revision, modified=modified)
        return self.done(work, harmless=deciding.harmless(name, len(content)))

    def done(self, work: Callable[[], Page], *, harmless: bool = False) -> Page:
        """Do what makes a page: a function of a module, its arguments bound by `partial`. Blocks; raises as `page`."""
        if self._stopped:
            raise _was_stopped()
        if harmless:
            return work()
        task = pickle.dumps(work)
        try:
            used = self._process is not None and self._process.documents > 0
            answer = self._answer(task)
            # What those before have left behind is no fault of this one.
            if used and isinstance(answer, passing.Failed) and answer.memory:
                answer = self._answer(task)
        finally:
            if not self._within:
                self._end()
        if isinstance(answer, passing.Failed):
            raise UnreadableDocument(process.large(self._limits.memory) if answer.memory else answer.reason)
        return answer

    def _answer(self, task: bytes) -> passing.Answer:
        try:
            there = self._begun()
            said = there.ask(task)
            answer = self._told(said) if isinstance(said, Ended) else passing.unpacked(said)
        except passing.Garbled:
            self._end()
            return passing.Failed("was not read: what came of it is no document")
        except BaseException:
            self._end()
            raise
        if isinstance(answer, passing.Failed) and answer.memory:
            self._end()
        return answer

    def _told(self, ended: Ended) -> passing.Failed:
        if self._stopped:
            raise _was_stopped()
        return passing.Failed(process.told(ended, self._limits))

    def _begun(self) -> Process:
        if self._process is not None and not self._process.alive:
            self._end()
        if self._process is None:
            begun = Process(self._limits)
            with self._lock:
                self._process = begun
                stopped = self._stopped
            if stopped:
                self._end()
                raise _was_stopped()
        return self._process

    def _end(self) -> None:
        with self._lock:
            there, self._process = self._process, None
        if there is not None:
            there.end()


def _was_stopped() -> SourceUnavailable:
    return SourceUnavailable("Reading was stopped.", hint="Run the same command again to go on.")
