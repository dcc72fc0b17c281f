"""An engine on Ray Data: it sends documents in blocks to the processes of a cluster, and receives the results.

Ray itself is used by `ray_driver`, a separate process. That process gets no secrets, captures Ray's output, and may die
with its cluster without ending this process. Blocks are sent in windows, each of which is one Ray data set; the next
window runs while the last one ends. If a worker or machine is lost, Ray computes its blocks again.
"""

import hashlib
import os
import pickle
import platform
import socket
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, TypeVar

from ingest.sandbox import minimal_environment
from ingest.types import STOPPED_HINT, SourceUnavailable

S = TypeVar("S")
R = TypeVar("R")

WINDOW_BYTES = 32 << 20  # bytes of items after which a window is full
WINDOW_BLOCKS = 8  # the least number of blocks in a window; two per core on larger machines
LOOPBACK_ALONE = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""Unless this is 0, Ray takes 127.0.0.1 for the machine's address, and listens to all."""
STOP_SECONDS = 20.0  # seconds in which the driver may end by itself
INSTALL_HINT = "`make ray` installs it from requirements/ray.lock; or omit --engine ray."


class EngineUnavailable(SourceUnavailable):
    """The engine cannot be used. `str()` is one plain line; `hint` says what to do."""

    kind = "engine"


@cache
def hash_code() -> str:
    """Return Python's version and a hash of `ingest` and `storage`. Both must be the same in all processes."""
    whole = hashlib.sha256()
    for package in ("ingest", "storage"):
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            for file in sorted(Path(folder).rglob("*.py")):
                whole.update(file.relative_to(folder).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return f"{platform.python_version()}/{whole.hexdigest()[:12]}"


class RayEngine:
    """Ray, on the cluster at `address` or else on this machine. For one thread; another may only call `stop`."""

    def __init__(self, address: str = "", *, environment: Mapping[str, str] = os.environ) -> None:
        """Use the cluster at `address`, or else at RAY_ADDRESS. Nothing is started yet."""
        self.doing = ""
        self._address = address or environment.get("RAY_ADDRESS", "")
        self._environment = environment
        self._folder: tempfile.TemporaryDirectory[str] | None = None  # of a cluster that is started here
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe: Connection | None = None
        self._blocks = WINDOW_BLOCKS
        self._arrived: dict[int, deque[tuple[str, Any]]] = {}
        self._stopped = False

    def check(self) -> None:
        """Raise `EngineUnavailable` if Ray is not installed."""
        if find_spec("ray") is None:
            raise EngineUnavailable("Ray is not installed here.", hint=INSTALL_HINT)

    def map(self, work: Callable[[S], R], items: Iterable[S | list[R]]) -> Iterator[R]:
        """Yield results as `Engine.map` does. About two windows are in progress at any time."""
        number, called = len(self._arrived), pickle.dumps(work)
        self._arrived[number] = deque()
        window = list[bytes]()
        sent: deque[int] = deque()  # the bytes of each item that Ray has
        order: deque[list[R] | None] = deque()  # finished results, and None for each that is awaited
        for item in items:
            if isinstance(item, list):
                order.append(item)
            else:
                self._start()
                window.append(pickle.dumps(item))
                order.append(None)
            long = len(order) > 4 * self._blocks
            if window and (long or len(window) >= self._blocks or sum(map(len, window)) >= WINDOW_BYTES):
                self._send((number, called, window))
                sent.extend(map(len, window))
                window = []
            while order and (order[0] is not None or (sent and (long or self._is_ahead(sent)))):
                yield from self._results(number, order.popleft(), sent)
        if window:
            self._send((number, called, window))
            sent.extend(map(len, window))
        while order:
            yield from self._results(number, order.popleft(), sent)

    def _is_ahead(self, sent: deque[int]) -> bool:
        return len(sent) > self._blocks or sum(sent) > WINDOW_BYTES

    def _results(self, number: int, ready: list[R] | None, sent: deque[int]) -> Iterator[R]:
        if ready is not None:
            yield from ready
            return
        while not self._arrived[number]:
            owner, kind, content = self._receive()
            self._arrived[owner].append((kind, content))
        sent.popleft()
        yield _unpack(*self._arrived[number].popleft())

    def _send(self, message: tuple[Any, ...]) -> None:
        with self._connected() as pipe:
            pipe.send(message)

    def _receive(self) -> tuple[Any, ...]:
        with self._connected() as pipe:
            return tuple(pipe.recv())

    @contextmanager
    def _connected(self) -> Iterator[Connection]:
        assert self._pipe is not None  # noqa: S101 - `_start` made it
        try:
            yield self._pipe
        except (OSError, EOFError) as error:
            if self._stopped:
                raise EngineUnavailable("Reading was stopped.", hint=STOPPED_HINT) from error
            hint = "Check the cluster with `ray status`, and run the same command again to continue."
            raise EngineUnavailable("The connection to Ray was lost.", hint=hint) from error

    def _start(self) -> None:
        if self._process is not None:
            return
        self.check()
        self.doing = f"connects to Ray at {self._address}" if self._address else "starts Ray"
        if not self._address:
            self._folder = tempfile.TemporaryDirectory(prefix="ray-", ignore_cleanup_errors=True)
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - this program itself
                [sys.executable, "-P", "-m", "ingest.refresh.ray_driver", str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=build_environment(self._environment, self._address),
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # so that Ctrl-C reaches this process alone
            )
        self._pipe = Connection(ours.detach())
        if self._stopped:
            self._process.kill()
        self._send((self._address, self._folder.name if self._folder else "", hash_code()))
        self._blocks = max(WINDOW_BLOCKS, 2 * int(_unpack(*self._receive())))
        self.doing = ""

    def stop(self) -> None:
        """Interrupt running work; its caller gets `EngineUnavailable`."""
        self._stopped = True
        if self._process is not None:
            self._process.kill()

    def close(self) -> None:
        """End the driver, and the cluster if the driver started it. Blocks."""
        if self._process is None:
            return
        if self._pipe is not None:
            self._pipe.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(STOP_SECONDS)
        self._process.kill()
        self._process.wait()
        if self._folder is not None:
            self._folder.cleanup()


def build_environment(environment: Mapping[str, str], address: str) -> dict[str, str]:
    """Return the environment variables for the driver, and for its workers if it starts the cluster. Pure.

    Ray's own variables say how to reach a cluster, so they are left out if the cluster is started here.
    """
    own = {name: value for name, value in environment.items() if name.startswith("RAY_") and name != "RAY_ADDRESS"}
    ray_variables = own if address else {LOOPBACK_ALONE: "0"}
    return minimal_environment(environment) | ray_variables | {"RAY_USAGE_STATS_ENABLED": "0"}


def _unpack(kind: str, content: Any) -> Any:
    """Return a received result, or raise the error that was sent instead."""
    if kind == "result":
        return pickle.loads(content)  # noqa: S301 - our own code made it
    if kind == "error":
        raise pickle.loads(content)  # noqa: S301 - the same
    message, hint = content
    raise EngineUnavailable(message, hint=hint)
