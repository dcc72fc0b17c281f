"""Starts bots fast: it has imported all that they need, and forks one for each connection to its socket.

A connection sends a `BotSpec` in one line, and gets `pid N` when its bot starts, and `end N` when it has ended: its
exit code, or the negative signal that ended it. In between the bot itself reports, line by line.

    python -m tests.platforms.crashes.fork_server SOCKET
"""

import asyncio
import gc
import os
import socket
import sys
import traceback
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import chromadb.api.rust  # noqa: F401 - what takes long to import is imported once
import tantivy  # noqa: F401

from pipeline.stages.question_analysis import detect_small_talk
from pipeline.systems import SYSTEMS
from storage.language.detection import detect_language
from tests.pipeline.world import registered
from tests.platforms.clock import SPEED, FastClock
from tests.platforms.crashes.bot_processes import BotSpec
from tests.platforms.crashes.crash_points import Crash, CrashingClient, CrashingPlatform, Report, crashing_app
from tests.platforms.discord import running as discord
from tests.platforms.example_app import open_example_app
from tests.platforms.mattermost import running as mattermost
from tests.platforms.slack import running as slack
from tests.platforms.systems import recite
from tests.platforms.workspace import Target

PLATFORMS: dict[str, Any] = {"slack": slack, "discord": discord, "mattermost": mattermost}


async def run_bot(spec: BotSpec, report: Report) -> None:
    """Be a bot until killed."""
    crash, platform = Crash(spec.point), PLATFORMS[spec.platform]
    with open_example_app(Path(spec.home)) as opened:
        app = replace(opened, systems={**opened.systems, **(registered(extractive=recite) if spec.recites else {})})
        async with platform.run_bot(
            crashing_app(app, crash, report, lingers=spec.lingers),
            Target(spec.url, FastClock(SPEED, spec.now), spec.http, lambda url: report("listens", url)),
            wrap_client=lambda client: CrashingClient(client, crash, platform.ACTIONS),
            wrap_platform=lambda inner: CrashingPlatform(inner, crash),
            **spec.settings,
        ):
            report("ready", "")
            await asyncio.Event().wait()


def _prepare() -> None:
    """Load in advance what each bot would load at its first question: patterns, tables, modules."""
    dict(SYSTEMS)
    detect_language("What was it?")
    detect_small_talk("What was it?")
    gc.freeze()


def _fork(line: str, connection: socket.socket) -> int:
    # The bot starts when its pid was sent, so that its reports come after.
    reading, writing = os.pipe()
    pid = os.fork()
    if pid:
        connection.sendall(f"pid {pid}\n".encode())
        os.close(reading)
        os.close(writing)
        return pid
    os.close(writing)
    os.read(reading, 1)
    code = 1
    try:
        report = lambda word, value: connection.sendall(f"{word} {value}\n".encode())  # noqa: E731
        asyncio.run(run_bot(BotSpec.parse(line), report))
        code = 0
    except BaseException:  # noqa: BLE001 - a fork must not continue as its parent
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def serve(path: str) -> None:
    _prepare()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
        listening.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while True:
            connection, _ = listening.accept()
            with connection, connection.makefile("r") as lines:
                pid = _fork(lines.readline(), connection)
                _, status = os.waitpid(pid, 0)
                with suppress(OSError):
                    connection.sendall(f"end {os.waitstatus_to_exitcode(status)}\n".encode())


if __name__ == "__main__":
    serve(sys.argv[1])
