"""An HTTP server on a socket that is already bound, as a block: uvicorn without its own signals and its own logs."""

import asyncio
import socket
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager

import uvicorn
from starlette.types import ASGIApp


@asynccontextmanager
async def served(
    app: ASGIApp, bound: socket.socket, *, grace: int, hurried: asyncio.Event | None = None
) -> AsyncIterator[None]:
    """Serve within the block. At its end requests under way get `grace` seconds, then they are cancelled.

    What they still do when they are cancelled, such as closing a record, is waited for. Who is `hurried` gives no
    grace.
    """
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        http="h11",
        ws="none",
        interface="asgi3",
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=grace,
    )
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[bound]), name="web server")
    try:
        await server.ready(task)
        yield
    finally:
        server.should_exit = True
        hurry = asyncio.ensure_future((hurried or asyncio.Event()).wait())
        try:
            await asyncio.wait({task, hurry}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            hurry.cancel()
            server.force_exit = True
            await _ended(task, *server.server_state.tasks)


class _Server(uvicorn.Server):
    """Says when it listens, and leaves signals to us."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._listens = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._listens.set()

    async def ready(self, task: "asyncio.Task[None]") -> None:
        """Wait until it listens. Raises what `task`, which serves, ended with instead."""
        waiting = asyncio.create_task(self._listens.wait())
        await asyncio.wait({waiting, task}, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done():
            task.result()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def _ended(task: "asyncio.Task[None]", *requests: "asyncio.Task[None]") -> None:
    for request in requests:
        if not request.cancelling():  # who is cancelled already is closing what it has open
            request.cancel()
    await asyncio.gather(task, *requests, return_exceptions=True)
