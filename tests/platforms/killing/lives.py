"""Children of the nursery, as a test sees them: born, killed by themselves or by the test."""

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

from tests.platforms.killing.fuses import NOWHERE, Point

_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Life:
    """How a process lives, and where it dies."""

    home: str
    bot: str
    """Which of `bots.BOTS` it is."""
    url: str
    """Where its platform is."""
    traits: Mapping[str, Any] = field(default_factory=dict)
    """What else that bot wants to know."""
    point: Point = NOWHERE

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
    """A process that lives, and what it told."""

    pid: int
    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    _heard: Callable[[str, str], None]
    told: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def over(self, key: str) -> bool:
        """Return whether a question is done with: one that was taken in an earlier life may have been by then."""
        began = bool(self.told["left"])
        return key in self.told["finished"] or (began and key not in self.told["left"][0].split())

    async def until(self, holds: Callable[[], object], seconds: float = 20) -> None:
        """Wait until something holds of what it told."""
        async with asyncio.timeout(seconds):
            while not holds():
                assert "end" not in self.told, "it ended"
                self._changed.clear()
                await self._changed.wait()

    async def listen(self) -> None:
        """Hear what it tells, until it has ended."""
        while line := (await self._reader.readline()).decode():
            word, _, what = line.strip("\n").partition(" ")
            self.told[word].append(what)
            self._heard(word, what)
            self._changed.set()

    async def end(self) -> int:
        """Wait until it has ended, and return its exit code, or the negative signal that ended it."""
        async with asyncio.timeout(60):
            while "end" not in self.told:
                self._changed.clear()
                await self._changed.wait()
        self._writer.close()
        return int(self.told["end"][0])

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
    async def child(self, life: Life, heard: Callable[[str, str], None]) -> AsyncIterator[Child]:
        """Let one live, until it dies or the block is left. `heard` hears every word that it tells."""
        told, writer = await asyncio.open_unix_connection(self.path)
        writer.write(f"{life.line}\n".encode())
        pid = int((await told.readline()).split()[1])
        born = Child(pid, told, writer, heard)
        listening = asyncio.create_task(born.listen())
        try:
            yield born
        finally:
            if not writer.is_closing():
                await born.kill()
            await listening


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
