"""Serve `/healthz`, `/readyz` and the routes that platforms add over HTTP, by uvicorn on a socket already bound."""

import asyncio
import errno
import logging
import socket
import time
from collections.abc import AsyncIterator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from bot.desk.supervisor import wait_for_first
from bot.server.monitoring.health import ADVISORY, Readiness, ReadinessCheck
from bot.server.monitoring.server_log import Redact
from bot.settings.tables.network_settings import HttpSettings


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How much of the server is available to clients that do not send complete requests."""

    patience: float = 5.0  # seconds between two checks; a connection without progress in between is closed
    connections: int = 100  # the most that may be open; then the one that has waited longest for a request is closed


@asynccontextmanager
async def serve_socket(
    app: ASGIApp,
    bound: socket.socket,
    *,
    grace: int,
    hurried: asyncio.Event | None = None,
    limits: ConnectionLimits = ConnectionLimits(),
) -> AsyncIterator[None]:
    """Serve within the block. At its end, requests get `grace` seconds to finish; then they are cancelled.

    The end of cancelled requests is awaited, because they may still have to close a turn's record. Setting `hurried`
    ends the grace period.
    """
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="off",
        http=partial(_Connection, limits),  # type: ignore[arg-type]  # any callable that makes a protocol
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
        try:
            await wait_for_first(task, (hurried or asyncio.Event()).wait())
        finally:
            server.force_exit = True
            await _cancel_requests(task, *server.server_state.tasks)


class _Connection(H11Protocol):
    """A connection that is closed if it makes no progress in time, or if others need its place."""

    def __init__(self, limits: ConnectionLimits, **facts: Any) -> None:
        super().__init__(**facts)
        self._limits, self.opened = limits, self.loop.time()
        self._watch: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._look(None)
        if len(self.connections) > self._limits.connections:
            others = [
                connection
                for connection in self.connections
                if isinstance(connection, _Connection) and connection is not self
            ]
            waiting = [other for other in others if other.is_waiting and not other.transport.is_closing()]
            min(waiting, key=lambda one: one.opened, default=self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._watch:
            self._watch.cancel()
        super().connection_lost(exc)

    @property
    def is_waiting(self) -> bool:
        """Whether we wait for the client: for the rest of a request, a new one, or its reading of the response."""
        return self.cycle is None or self.cycle.more_body or self._is_answered or self.flow.write_paused

    @property
    def _is_answered(self) -> bool:
        return self.cycle is not None and self.cycle.response_complete

    def _look(self, before: object) -> None:
        """Close the connection if it still waits for the client at the same point as at the last check."""
        now = (self.cycle, self._is_answered)
        if now == before and self.is_waiting:
            self.transport.abort()
        else:
            self._watch = self.loop.call_later(self._limits.patience, self._look, now)


class _Server(uvicorn.Server):
    """A uvicorn server that reports when it listens, and installs no signal handlers."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._listens = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._listens.set()

    async def ready(self, task: "asyncio.Task[None]") -> None:
        """Wait until the server listens. If `task`, which runs the server, ends before that, raise its error."""
        await wait_for_first(task, self._listens.wait())
        if task.done():
            task.result()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield


async def _cancel_requests(task: "asyncio.Task[None]", *requests: "asyncio.Task[None]") -> None:
    for request in requests:
        if not request.cancelling():  # a request that is already being cancelled is cleaning up
            request.cancel()
    await asyncio.gather(task, *requests, return_exceptions=True)


log = logging.getLogger(__name__)

PROBES = ("/healthz", "/readyz")
METRICS = "/metrics"
MAX_BODY_BYTES = 1024 * 1024  # platforms send at most some tens of thousands
GRACE_SECONDS = 3
CLIENT_GONE = 499  # logged if the client disconnects before its request is complete


class CannotListen(Exception):
    kind = "cannot_listen"

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@asynccontextmanager
async def serve_http(
    at: HttpSettings, app: ASGIApp, hurried: asyncio.Event | None = None, limits: ConnectionLimits = ConnectionLimits()
) -> AsyncIterator[str]:
    """Serve an application within the block, and yield its address; `hurried` ends the grace period.

    Raises `CannotListen` if the address cannot be used, such as because another program listens there.
    """
    with bind_socket(at.host, at.port) as listener:
        host, port = listener.getsockname()[:2]
        async with serve_socket(app, listener, grace=GRACE_SECONDS, hurried=hurried, limits=limits):
            yield f"http://{f'[{host}]' if ':' in host else host}:{port}"


def bind_socket(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    hint = (
        "Set host and port of [http] or [pages] to a free address of this machine, a different one for each bot on it; "
        "port 0 takes any free port."
    )
    try:
        host.encode("idna")  # if that failed later, the socket would not be closed
        return socket.create_server((host, port), family=family)
    except UnicodeError as error:
        raise CannotListen(f"Cannot listen at {host}:{port}: it is not a host name.", hint=hint) from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CannotListen(f"Another program listens at {host}:{port}.", hint=hint) from error
        raise CannotListen(f"Cannot listen at {host}:{port}: {_explain_bind_error(error)}.", hint=hint) from error


def _explain_bind_error(error: OSError) -> str:
    if (error.errno or 0) < 0:  # the resolver's own numbers
        return "this machine cannot resolve the name"
    if error.errno == errno.EADDRNOTAVAIL:
        return "it is not an address of this machine"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return "this user may not listen there; ports below 1024 are reserved"
    return f"the system refuses it ({errno.errorcode.get(error.errno or 0, 'unknown')})"


def build_http_app(checks: Mapping[str, ReadinessCheck], redact: Redact, routes: Sequence[BaseRoute] = ()) -> Starlette:
    """Build the application: `/healthz`, `/readyz` with the results of `checks`, and `routes`; more may be added."""
    readiness = Readiness(checks, redact)

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def readyz(_: Request) -> Response:
        reasons = await readiness.reasons()
        is_ready = reasons.keys() <= ADVISORY.keys()
        status = "degraded" if "model" in reasons else "ready"
        payload = {"status": status if is_ready else "not ready", "reasons": reasons}
        return JSONResponse(payload, status_code=200 if is_ready else 503)

    probes = [Route(path, probe) for path, probe in zip(PROBES, (healthz, readyz), strict=True)]
    return Starlette(routes=[*probes, *routes], middleware=[Middleware(RequestLog)], max_body_size=MAX_BODY_BYTES)


@dataclass(frozen=True, slots=True)
class RequestLog:
    """Logs each request: method, path without query, status, time."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        status, started = 500, time.monotonic()

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self.app(scope, receive, noting)
        except ClientDisconnect:
            status = CLIENT_GONE
        finally:
            level = logging.DEBUG if scope["path"] in {*PROBES, METRICS} else logging.INFO
            spent = round((time.monotonic() - started) * 1000, 1)
            about = {"method": scope["method"], "path": scope["path"], "status": status, "milliseconds": spent}
            log.log(level, "request", extra=about)
