"""The server's side of the control socket: what is asked for is done by the home, and what happens is sent as lines.

Who hangs up stops the work; a turn's record then says that it was cancelled. Only the home's owner can connect.
"""

import asyncio
import logging
import math
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from bot.console import Mendable, fault_in, fault_of
from bot.control import wire
from bot.control.address import listening
from bot.home import Home
from bot.sanitizing import encodable
from bot.turns import Answered, Failure
from bot.versions import VERSION
from bot.web_server import served
from pipeline.types import Status

log = logging.getLogger(__name__)

LARGEST = 16 * 1024 * 1024
"""Bytes of a request."""
LAST_SECONDS = 1.0
"""How long it may take to hang up when a command in a shell is broken off."""
Tell = Callable[[object], None]
Work = Callable[[Any, Tell], Awaitable[object]]


@asynccontextmanager
async def controlled(
    home: Home, folder: Path, *, grace: float, hurried: asyncio.Event | None = None
) -> AsyncIterator[None]:
    """Offer a home at the socket of its folder within the block.

    At its end commands in shells get `grace` seconds to finish; nobody waits who is `hurried`.

    Raises:
        OSError: There is no place for a socket.
    """
    with listening(folder) as bound:
        async with served(application(home), bound, grace=math.ceil(grace), hurried=hurried):
            yield


def application(home: Home) -> Starlette:
    """Return all that can be asked of a home."""

    async def answer(asked: Any, tell: Tell) -> object:
        return _noted(await home.answer(asked, tell))

    async def check(asked: Any, tell: Tell) -> object:
        return _noted(await home.check(asked, tell))

    async def search(wanted: Any, _: Tell) -> object:
        return wire.Hits(await home.search(wanted.query, wanted.corpora, wanted.count))

    async def corpora(_: Any, __: Tell) -> object:
        return wire.Corpora(await home.corpora())

    async def refresh(wanted: Any, tell: Tell) -> object:
        return await home.refresh(wanted.corpus, wanted.source, tell, confirm_removal=wanted.confirm_removal)

    async def read_one(wanted: Any, _: Tell) -> object:
        return wire.Reports(await home.read_one(wanted.address, wanted.sources))

    async def forget(wanted: Any, _: Tell) -> object:
        return await home.forget(wanted.address, wanted.corpus)

    works = {
        "/answer": answer,
        "/check": check,
        "/search": search,
        "/corpora": corpora,
        "/refresh": refresh,
        "/read_one": read_one,
        "/forget": forget,
    }
    routes = [Route(path, _endpoint(work), methods=["POST"]) for path, work in works.items()]
    return Starlette(routes=[Route("/hello", _hello), *routes], max_body_size=LARGEST)


def _noted(done: Answered) -> Answered:
    """Log why a turn of a command failed, as far as it is not for whoever asked to mend."""
    if done.failure and done.answer.status is Status.FAILED:
        cause = fault_in(done.failure).line()
        log.warning("a turn of a command in a shell failed", extra={"turn": done.answer_id, "cause": cause})
    return done


async def _hello(_: Request) -> Response:
    return Response(wire.encoded(wire.Hello(os.getpid(), VERSION, wire.digest())))


def _endpoint(work: Work) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        body = await request.body()
        try:
            wanted = wire.decoded(body) if body else None
        except wire.Garbled as error:
            return Response(str(error), status_code=400)
        return _Lines(lambda tell: work(wanted, tell))

    return endpoint


@dataclass
class _Lines(Response):
    """Sends what some work tells and what it ends with, a line each; it is stopped when nobody listens any more."""

    work: Callable[[Tell], Awaitable[object]]
    background: None = field(default=None, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        lines: asyncio.Queue[bytes] = asyncio.Queue()
        task = asyncio.create_task(_done(self.work, lines), name="control")
        hung_up = asyncio.create_task(_hung_up(receive, task))
        try:
            headers = [(b"content-type", b"application/x-ndjson")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while line := await lines.get():
                await send({"type": "http.response.body", "body": line, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except asyncio.CancelledError:
            # The server stops. Who waits sees the end of what was told, and nothing is left to be logged as a fault.
            await _hang_up(send)
        finally:
            task.cancel()
            hung_up.cancel()
            await asyncio.gather(task, hung_up, return_exceptions=True)


async def _done(work: Callable[[Tell], Awaitable[object]], lines: "asyncio.Queue[bytes]") -> None:
    """Do the work, and put a line for all it tells and for what came of it; at the end an empty one."""
    try:
        lines.put_nowait(wire.encoded(await work(lambda value: lines.put_nowait(wire.encoded(value)))))
    except Exception as error:
        if isinstance(error, Mendable):
            # It may well be a slip of whoever asked; what is wrong with the home itself, readiness tells as a warning.
            log.info("a command in a shell failed", extra={"cause": fault_of(error).line()})
        else:
            log.exception("a command through the control socket failed")
        lines.put_nowait(wire.encoded(Failure(*map(encodable, fault_of(error)))))
    finally:
        lines.put_nowait(b"")


async def _hang_up(send: Send) -> None:
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(LAST_SECONDS):
            await send({"type": "http.response.body", "body": b""})


async def _hung_up(receive: Receive, task: "asyncio.Task[None]") -> None:
    """Cancel a task as soon as whoever waits for it has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
    task.cancel()
