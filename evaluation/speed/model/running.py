"""A simulated server in a process of its own, so that what a benchmark measures is the client alone."""

import asyncio
import json
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager

from evaluation.speed.model.server import Counts, ModelServer
from evaluation.speed.model.settings import Simulated, written

_WAITING = 1_000
"""Connections that may wait to be taken."""
_LARGEST = 1 << 22
"""Bytes of a request's head that are read at once."""


@contextmanager
def running(simulated: Simulated) -> Iterator[str]:
    """Run a server, and give its base URL; it ends with the context, and with this process."""
    command = [sys.executable, "-m", "evaluation.speed.model", written(simulated)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - it is a pipe
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def counted(url: str) -> Counts:
    """Ask a running server what it has counted. Blocks."""
    with urllib.request.urlopen(f"{url.removesuffix('/v1')}/counts") as reply:  # noqa: S310 - our own server's
        return Counts(**json.load(reply))


async def listen(simulated: Simulated, host: str = "127.0.0.1", port: int = 0) -> tuple[asyncio.Server, str]:
    """Begin to serve in this process; return the server and its base URL. Raises `OSError` where the port is taken."""
    server = await asyncio.start_server(ModelServer(simulated).serve, host, port, limit=_LARGEST, backlog=_WAITING)
    return server, f"http://{host}:{server.sockets[0].getsockname()[1]}/v1"


async def until_input_ends(simulated: Simulated) -> None:
    """Serve, print the base URL, and end when the input of this process does."""
    server, url = await listen(simulated)
    print(url, flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()
