"""Children of the nursery, as a test sees them: born, killed by themselves or by the test."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.platforms.killing.fuses import NOWHERE, Point

_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Life:
    """How a process lives, and where it dies."""

    home: str
    url: str
    dialect: str
    point: Point = NOWHERE
    edits: bool = True
    reads_back: bool = True
    pace: float = 0.0
    message: int = 0
    """The longest message there, where it is not the dialect's."""

    @property
    def line(self) -> str:
        """What `parsed` reads."""
        return json.dumps(asdict(self))


def parsed(line: str) -> Life:
    """Read a life."""
    facts = json.loads(line)
    return Life(**{**facts, "point": Point(**facts["point"])})


@dataclass
class Child:
    """A process that lives."""

    pid: int
    _told: asyncio.StreamReader
    _writer: asyncio.StreamWriter

    async def end(self, seconds: float = 10) -> int:
        """Wait until it has ended, and return its exit code, or the negative signal that ended it."""
        async with asyncio.timeout(seconds):
            line = await self._told.readline()
        self._writer.close()
        return int(line.split()[1])

    async def kill(self) -> int:
        """End it, and return how it ended."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        return await self.end()


@dataclass(frozen=True)
class Nursery:
    """Where children are born, one at a time."""

    path: str

    @asynccontextmanager
    async def child(self, life: Life) -> AsyncIterator[Child]:
        """Let one live, until it dies or the block is left."""
        told, writer = await asyncio.open_unix_connection(self.path)
        writer.write(f"{life.line}\n".encode())
        pid = int((await told.readline()).split()[1])
        born = Child(pid, told, writer)
        try:
            yield born
        finally:
            if not writer.is_closing():
                await born.kill()


@contextmanager
def nursery() -> Iterator[Nursery]:
    """Run a nursery within the block."""
    # A socket's path may have a hundred characters, and folders of tests have more.
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/nursery"
        command = (sys.executable, "-m", "tests.platforms.killing.nursery", path)
        environment = {**os.environ, "PYTHONPATH": str(_ROOT)}
        with subprocess.Popen(command, cwd=_ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout
                assert process.stdout.readline() == "ready\n"
                yield Nursery(path)
            finally:
                process.kill()
