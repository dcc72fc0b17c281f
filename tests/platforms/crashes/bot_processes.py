"""Bots in processes of their own, which crash at a point or are killed by a test."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.platforms.crashes.crash_points import NOWHERE, Point

_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class BotSpec:
    """The arguments of a bot's process."""

    platform: str
    home: str
    url: str
    """Where its platform is."""
    now: float
    """The platform's time at its start."""
    http: bool = False
    recites: bool = False
    """Whether it says every sentence of all search hits."""
    lingers: bool = False
    """Whether it waits after its first sentence until that is shown."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """More settings of the platform."""
    point: Point = NOWHERE

    @classmethod
    def parse(cls, line: str) -> "BotSpec":
        facts = json.loads(line)
        return cls(**{**facts, "point": Point(**facts["point"])})


@dataclass
class BotProcess:
    """A bot's process, and its reports."""

    pid: int
    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    _hear: Callable[[str, str], None]
    reports: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def is_over(self, key: str) -> bool:
        """Return whether a question is done, perhaps by an earlier process."""
        has_begun = bool(self.reports["open"])
        return key in self.reports["finished"] or (has_begun and key not in self.reports["open"][0].split())

    async def until(self, holds: Callable[[], object], seconds: float = 60) -> None:
        """Wait until `holds` returns something true; checked again after each report."""
        async with asyncio.timeout(seconds):
            while not holds():
                assert "end" not in self.reports, "the process ended"
                self._changed.clear()
                await self._changed.wait()

    async def until_ready(self) -> None:
        await self.until(lambda: "ready" in self.reports)

    async def listen(self) -> None:
        """Read its reports until it ends."""
        while line := (await self._reader.readline()).decode():
            word, _, value = line.strip("\n").partition(" ")
            self.reports[word].append(value)
            self._hear(word, value)
            self._changed.set()

    async def end(self) -> int:
        """Wait until it ends, and return its exit code, or the negative signal that ended it."""
        async with asyncio.timeout(60):
            while "end" not in self.reports:
                self._changed.clear()
                await self._changed.wait()
        self._writer.close()
        return int(self.reports["end"][0])

    async def kill(self) -> int:
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        return await self.end()


@dataclass(frozen=True)
class ForkServer:
    """A server process that forks bots, one at a time, so that they start fast."""

    path: str

    @asynccontextmanager
    async def start(self, spec: BotSpec, hear: Callable[[str, str], None]) -> AsyncIterator[BotProcess]:
        """Run a bot until it ends or the block is left. `hear` gets every report."""
        reader, writer = await asyncio.open_unix_connection(self.path)
        writer.write(f"{json.dumps(asdict(spec))}\n".encode())
        pid = int((await reader.readline()).split()[1])
        process = BotProcess(pid, reader, writer, hear)
        listening = asyncio.create_task(process.listen())
        try:
            yield process
        finally:
            if not writer.is_closing():
                await process.kill()
            await listening


@contextmanager
def fork_server() -> Iterator[ForkServer]:
    # A socket's path may have a hundred characters, and the folders of tests have more.
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/fork-server"
        command = (sys.executable, "-m", "tests.platforms.crashes.fork_server", path)
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        with subprocess.Popen(command, cwd=_ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout
                assert process.stdout.readline() == "ready\n"
                yield ForkServer(path)
            finally:
                process.kill()
