"""A real `footnote serve` process for tests."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from bot.cli.entry_point import app

ROOT = Path(__file__).parents[3]


@dataclass
class Server:
    """The process and its log."""

    process: "subprocess.Popen[str]"
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def address(self) -> str:
        return re.search(r"http://\S+:\d+", self.lines[0]["event"])[0]  # type: ignore[index]

    def read_until(self, event: str) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.lines.append(json.loads(line))
            if self.lines[-1]["event"].startswith(event):
                return
        raise AssertionError(f"it ended before it said {event!r}: {self.lines}")

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        assert self.process.stderr
        self.lines += [json.loads(line) for line in self.process.stderr]
        return self.process.wait(timeout=30)


@contextmanager
def process(*arguments: str, **variables: str) -> "Iterator[subprocess.Popen[str]]":
    """Run a command in this folder, with warnings as errors except one by discord.py."""
    warnings = ("-W", "error", "-W", "ignore:'audioop':DeprecationWarning")
    command = [sys.executable, *warnings, "-m", "bot", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **variables}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, stdin=pipe, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


@contextmanager
def serving(**variables: str) -> Iterator[Server]:
    """Serve this folder's home; it is ready within the block."""
    with process("serve", **variables) as started:
        server = Server(started)
        server.read_until("ready")
        yield server


def run(*arguments: str, typed: str = "") -> Result:
    return CliRunner().invoke(app, arguments, input=typed, prog_name="footnote")


def run_json(*arguments: str, status: int = 0) -> Mapping[str, Any]:
    """Run a command and return its JSON document."""
    result = run(*arguments, "--json")
    assert result.exit_code == status, result.output
    document: Mapping[str, Any] = json.loads(result.stdout)
    return document
