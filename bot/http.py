"""The HTTP server of `footnote serve`: whether it is alive and ready, and the routes that platforms add.

It tells nobody what is asked or answered, and names no secret.
"""

import asyncio
import errno
import logging
import socket
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot.console import fault_of
from bot.redacting import Redact
from bot.settings_of.serving import HttpSettings
from bot.web_server import served

log = logging.getLogger(__name__)

Check = Callable[[], Awaitable[str]]
"""Says in a line why something is not ready; nothing when it is."""
PROBES = ("/healthz", "/readyz")
LARGEST = 1024 * 1024
"""Bytes of a request's body; platforms send some tens of thousands at most."""
CHECK_SECONDS = 3.0
FRESH_SECONDS = 1.0
"""So long a result counts: anybody may ask, and each answer costs a look at the disk."""
GRACE_SECONDS = 3


class CannotListen(Exception):
    """The address cannot be listened at. `str()` is one plain line; `hint` says what to do."""

    kind = "cannot_listen"

    def __init__(self, message: str, *, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


@asynccontextmanager
async def listening(at: HttpSettings, app: ASGIApp, hurried: asyncio.Event | None = None) -> AsyncIterator[str]:
    """Serve an application within the block, and give its address; at the end nobody waits who is `hurried`.

    Raises:
        CannotListen: Another program listens there, or the address is not this machine's.
    """
    with bound(at.host, at.port) as listener:
        host, port = listener.getsockname()[:2]
        async with served(app, listener, grace=GRACE_SECONDS, hurried=hurried):
            yield f"http://{f'[{host}]' if ':' in host else host}:{port}"


def bound(host: str, port: int) -> socket.socket:
    """Return a socket that listens there. Raises `CannotListen`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    hint = "Set [http] host and port to an address of this machine that is free; port 0 takes any."
    try:
        host.encode("idna")  # where that fails, the socket would not be closed
        return socket.create_server((host, port), family=family)
    except UnicodeError as error:
        raise CannotListen(f"Nothing can listen at {host}:{port}: it is no name of a host.", hint=hint) from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CannotListen(f"Another program listens at {host}:{port}.", hint=hint) from error
        raise CannotListen(f"Nothing can listen at {host}:{port}: {_reason(error)}.", hint=hint) from error


def _reason(error: OSError) -> str:
    """Say why an address cannot be listened at."""
    if (error.errno or 0) < 0:  # the resolver's own numbers
        return "this machine knows no such name"
    if error.errno == errno.EADDRNOTAVAIL:
        return "it is not an address of this machine"
    if error.errno in {errno.EACCES, errno.EPERM}:
        return "this user may not listen there; ports below 1024 are the system's"
    return f"the system refuses it ({errno.errorcode.get(error.errno or 0, 'unknown')})"


def application(checks: Mapping[str, Check], redact: Redact, routes: Sequence[BaseRoute] = ()) -> Starlette:
    """Return the server's application: `/healthz`, `/readyz` by these checks, and these routes; more may be added."""
    readiness = Readiness(checks, redact)

    async def healthz(_: Request) -> Response:
        return JSONResponse({"status": "alive"})

    async def readyz(_: Request) -> Response:
        reasons = await readiness.reasons()
        status = "not ready" if reasons else "ready"
        return JSONResponse({"status": status, "reasons": reasons}, status_code=503 if reasons else 200)

    probes = [Route(path, probe) for path, probe in zip(PROBES, (healthz, readyz), strict=True)]
    return Starlette(routes=[*probes, *routes], middleware=[Middleware(Logged)], max_body_size=LARGEST)


@dataclass
class Readiness:
    """What is not ready, looked up at most once in a while."""

    checks: Mapping[str, Check]
    redact: Redact
    clock: Callable[[], float] = time.monotonic
    _looking: asyncio.Lock = field(default_factory=asyncio.Lock)
    _found: dict[str, str] = field(default_factory=dict)
    _until: float = float("-inf")

    async def reasons(self) -> Mapping[str, str]:
        """Return why things are not ready, by their names; nothing where all is well."""
        async with self._looking:
            if self.clock() >= self._until:
                said = await asyncio.gather(*(_asked(check) for check in self.checks.values()))
                found = dict(zip(self.checks, said, strict=True))
                self._found = {name: self.redact(reason) for name, reason in found.items() if reason}
                self._until = self.clock() + FRESH_SECONDS
            return self._found


async def _asked(check: Check) -> str:
    try:
        async with asyncio.timeout(CHECK_SECONDS):
            return await check()
    except TimeoutError:
        return f"It does not answer within {CHECK_SECONDS:g} seconds."
    except Exception as error:  # noqa: BLE001 - whatever it is, it is a reason
        return fault_of(error).line()


@dataclass(frozen=True, slots=True)
class Logged:
    """Logs each request: how, where without its query, with what outcome, and how long it took."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
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
        finally:
            level = logging.DEBUG if scope["path"] in PROBES else logging.INFO
            spent = round((time.monotonic() - started) * 1000, 1)
            about = {"method": scope["method"], "path": scope["path"], "status": status, "milliseconds": spent}
            log.log(level, "request", extra=about)
