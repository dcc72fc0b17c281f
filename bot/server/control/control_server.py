"""Serve the control socket: run commands, and stream their progress as lines.

A closed connection cancels the work; a turn's record then says that it was cancelled. Only the home's owner can
connect.
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

from bot import read_version
from bot.desk.supervisor import cancel_tasks
from bot.server.control import control_protocol as protocol
from bot.server.control.control_socket import open_socket
from bot.server.http_server import serve_socket
from bot.server.service import BotService
from bot.types import Failure, TurnResult
from bot.views.error_messages import ReportableError, explain_error, explain_failure
from bot.views.sanitize import replace_unencodable
from pipeline.types import Status

log = logging.getLogger(__name__)

MAX_REQUEST_BYTES = 16 * 1024 * 1024
CLOSE_SECONDS = 1.0  # the longest wait for closing a broken stream
Report = Callable[[object], None]
Work = Callable[[Any, Report], Awaitable[object]]


@asynccontextmanager
async def serve_control(
    home: BotService, folder: Path, *, grace: float, hurried: asyncio.Event | None = None
) -> AsyncIterator[None]:
    """Serve the control socket of a folder within the block. Raises `OSError` if no socket can be created.

    At the end of the block, running commands get `grace` seconds to finish, or none once `hurried` is set.
    """
    with open_socket(folder) as bound:
        async with serve_socket(build_control_app(home), bound, grace=math.ceil(grace), hurried=hurried):
            yield


def build_control_app(home: BotService) -> Starlette:
    async def answer(asked: Any, report: Report) -> object:
        return _log_failure(await home.answer(asked, report))

    async def check(asked: Any, report: Report) -> object:
        return _log_failure(await home.check(asked, report))

    async def search(search_request: Any, _: Report) -> object:
        return protocol.HitList(await home.search(search_request.query, search_request.corpora, search_request.count))

    async def corpora(_: Any, __: Report) -> object:
        return protocol.CorpusList(await home.corpora())

    async def refresh(refresh_request: Any, report: Report) -> object:
        options = {name: getattr(refresh_request, name) for name in ("confirm_removal", "restore", "engine", "dense")}
        return await home.refresh(refresh_request.corpus, refresh_request.source, report, **options)

    async def read_one(name_request: Any, _: Report) -> object:
        return protocol.ReportList(await home.read_one(name_request.address, name_request.sources))

    async def remove(name_request: Any, _: Report) -> object:
        return await home.remove(name_request.corpus)

    async def forget(name_request: Any, _: Report) -> object:
        return await home.forget(name_request.address, name_request.corpus)

    async def reload(_: Any, __: Report) -> object:
        return await home.reload()

    works = (answer, check, search, corpora, refresh, read_one, remove, forget, reload)
    routes = [Route(f"/{work.__name__}", _build_endpoint(work), methods=["POST"]) for work in works]
    return Starlette(routes=[Route("/hello", _hello), *routes], max_body_size=MAX_REQUEST_BYTES)


def _log_failure(done: TurnResult) -> TurnResult:
    """Log why a turn of a command failed, or its model did; not if it was refused, which the asker can correct."""
    if done.fault and done.answer.status is not Status.REFUSED:
        cause = explain_failure(done.fault).line()
        log.warning("a turn of a command in a shell failed", extra={"turn": done.answer_id, "cause": cause})
    return done


async def _hello(_: Request) -> Response:
    hello = protocol.ServerHello(os.getpid(), read_version(), protocol.hash_protocol())
    return Response(protocol.encode_message(hello))


def _build_endpoint(work: Work) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        body = await request.body()
        try:
            message = protocol.decode_message(body) if body else None
        except protocol.MalformedMessage as error:
            return Response(str(error), status_code=400)
        return _LineStream(lambda report: work(message, report))

    return endpoint


@dataclass
class _LineStream(Response):
    """Streams the events and the result of some work, one per line; a closed connection cancels the work."""

    work: Callable[[Report], Awaitable[object]]
    background: None = field(default=None, init=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope
        lines: asyncio.Queue[bytes] = asyncio.Queue()
        task = asyncio.create_task(_run_work(self.work, lines), name="control")
        hung_up = asyncio.create_task(_cancel_on_disconnect(receive, task))
        try:
            headers = [(b"content-type", b"application/x-ndjson")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            while line := await lines.get():
                await send({"type": "http.response.body", "body": line, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
        except asyncio.CancelledError:
            # The server stops. The client sees the end of the stream, and nothing is logged as a fault.
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await send({"type": "http.response.body", "body": b""})
        finally:
            await cancel_tasks([task, hung_up])


async def _run_work(work: Callable[[Report], Awaitable[object]], lines: "asyncio.Queue[bytes]") -> None:
    """Run the work, and queue a line for each event and for the result, then an empty line."""

    def report(value: object) -> None:
        lines.put_nowait(protocol.encode_message(value))

    try:
        report(await work(report))
    except Exception as error:
        if isinstance(error, ReportableError):
            # The caller may have made a mistake; faults of the home are logged by the readiness checks.
            log.info("a command in a shell failed", extra={"cause": explain_error(error).line()})
        else:
            log.exception("a command through the control socket failed")
        fault = explain_error(error).redacted(replace_unencodable)
        report(Failure(fault.kind, fault.message, fault.hint))
    finally:
        lines.put_nowait(b"")


async def _cancel_on_disconnect(receive: Receive, task: "asyncio.Task[None]") -> None:
    """Cancel a task as soon as the client has disconnected."""
    while (await receive())["type"] != "http.disconnect":
        pass
    task.cancel()
