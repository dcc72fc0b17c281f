"""Serve MCP over stdio, and over HTTP as part of a server; only this module imports the official library.

Each call is a task. It is cancelled if its caller cancels it, leaves, or breaks the connection. The cancelled task is
awaited, so that its turn closes its record first.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from secrets import SystemRandom
from typing import Any

import anyio
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser, BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.server.stdio import stdio_server
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    Tool,
    ToolAnnotations,
)
from pydantic import BaseModel, ValidationError
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bot import read_version
from bot.access import Asker
from bot.desk.supervisor import cancel_tasks, run_beside
from bot.server.control.control_server import CLOSE_SECONDS
from bot.server.http_server import MAX_BODY_BYTES
from bot.server.mcp.shared_home import SharedHome
from bot.server.mcp.tool_calls import INSTRUCTIONS, TOOLS, ToolCall, ToolService, is_failed, make_token_asker
from bot.server.mcp.tool_results import render_result
from bot.settings.tables.network_settings import LOOPBACK
from bot.settings.tables.settings_tables import Settings
from bot.views.error_messages import ReportableError, explain_error
from bot.views.view_reducer import apply_event, start_view
from pipeline.types import Event
from storage.language.detection import detect_language

PATH = "/mcp"
MAX_SESSIONS = 1_000  # of clients with older versions of the protocol, which have sessions
_GONE = "footnote.gone"  # key in a request's scope of an event: its client has disconnected
_ANNOTATIONS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)

log = logging.getLogger(__name__)

Context = ServerRequestContext[Any, Request]
LendService = Callable[[Asker], AbstractAsyncContextManager[ToolService]]
Identify = Callable[[Context], Asker]


@dataclass(frozen=True, slots=True)
class _Tools:
    """The tools of the server. For each call, they identify the caller and borrow a service."""

    lend: LendService
    read_settings: Callable[[], Settings]
    identify: Identify

    async def list(self, _: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
        return ListToolsResult(
            tools=[
                Tool(
                    name=name,
                    title=tool.title,
                    description=tool.description,
                    input_schema=tool.arguments.model_json_schema(),
                    output_schema=tool.result.model_json_schema(mode="serialization"),
                    annotations=_ANNOTATIONS,
                )
                for name, tool in TOOLS.items()
            ]
        )

    async def call(self, context: Context, params: CallToolRequestParams) -> CallToolResult:
        if params.name not in TOOLS:
            raise MCPError(INVALID_PARAMS, f"There is no tool of that name; the tools are: {', '.join(TOOLS)}.")
        asker, started = self.identify(context), time.monotonic()
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        work = asyncio.create_task(self._run(asker, params, events), name="call over mcp")
        work.add_done_callback(lambda _: events.put_nowait(None))
        try:
            async with run_beside(_cancel_when_gone(context.request, work), name="caller of mcp"):
                await _report_progress(context, params.arguments or {}, events)
        finally:
            with anyio.CancelScope(shield=True):
                await cancel_tasks([work])
            spent = round((time.monotonic() - started) * 1000, 1)
            log.info("tool called", extra={"tool": params.name, "asker": asker.user_id, "milliseconds": spent})
        return _conclude(work)

    async def _run(self, asker: Asker, params: CallToolRequestParams, events: asyncio.Queue[Event | None]) -> BaseModel:
        tool = TOOLS[params.name]
        parsed = tool.arguments.model_validate(params.arguments or {})
        async with self.lend(asker) as service:
            return await tool.run(ToolCall(asker, service, self.read_settings(), events.put_nowait), parsed)


async def _cancel_when_gone(request: Request | None, work: "asyncio.Task[BaseModel]") -> None:
    if request is not None:
        gone: asyncio.Event = request.scope[_GONE]
        await gone.wait()
        work.cancel()


async def _report_progress(context: Context, arguments: Mapping[str, Any], events: asyncio.Queue[Event | None]) -> None:
    """Report progress, in the language of the question, until the call ends."""
    view, step = start_view(0, detect_language(str(next(iter(arguments.values()), ""))[:2_000])), 0
    while (event := await events.get()) is not None:
        before, view = view, apply_event(view, event)
        if view.status and view.status != before.status:
            step += 1
            await context.session.report_progress(step, message=view.status)


def _conclude(work: "asyncio.Task[BaseModel]") -> CallToolResult:
    """Return the result of a call that has ended. Unexpected errors are logged, and the caller sees no details."""
    if work.cancelled():
        return _fail("The call was cancelled.")
    match error := work.exception():
        case None:
            return _build_result(work.result())
        case ValidationError():
            return _fail("; ".join(f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()))
        case Exception() if isinstance(error, ReportableError):
            return _fail(explain_error(error).line())
    log.error("a call over MCP failed", exc_info=error)
    return _fail("Something went wrong unexpectedly; the log of Footnote has the details.")


def _build_result(done: BaseModel) -> CallToolResult:
    text = TextContent(type="text", text=render_result(done, SystemRandom()))
    return CallToolResult(content=[text], structured_content=done.model_dump(mode="json"), is_error=is_failed(done))


def _fail(why: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=why)], is_error=True)


def _build_server(tools: _Tools) -> "Server[Any]":
    return Server(
        "footnote",
        title="Footnote",
        version=read_version(),
        instructions=INSTRUCTIONS,
        on_list_tools=tools.list,
        on_call_tool=tools.call,
    )


async def serve_stdio(home: SharedHome, settings: Settings, asker: Asker) -> None:
    """Serve the process that started this one until it closes our stdin. Other writes to stdout go to stderr."""
    server = _build_server(_Tools(home.lend, lambda: settings, lambda _: asker))
    try:
        async with home.running(), stdio_server() as (received, sent):
            await server.run(received, sent, server.create_initialization_options())
    except* ConnectionError:
        log.info("client disconnected")


@asynccontextmanager
async def open_mcp_route(lend: LendService, read_settings: Callable[[], Settings]) -> AsyncIterator[Route]:
    """Yield the route by which programs ask; at the end of the block their calls are cancelled."""
    server = _build_server(_Tools(lend, read_settings, _identify_token))
    at = read_settings()
    manager = StreamableHTTPSessionManager(
        server,
        security_settings=_list_names({*LOOPBACK, at.http.host.lower(), *at.mcp.hosts}),
        max_request_body_size=MAX_BODY_BYTES,
        max_sessions=MAX_SESSIONS,
    )
    admitted = RequireAuthMiddleware(StreamableHTTPASGIApp(manager), [])
    known = AuthenticationMiddleware(admitted, BearerAuthBackend(_Tokens(read_settings)))
    async with manager.run():
        # No GET: the server never sends anything on its own.
        yield Route(PATH, _Attended(known), methods=["POST", "DELETE"])


def _list_names(names: set[str]) -> TransportSecuritySettings:
    """Return the host names under which requests may reach us; other names may be a DNS rebinding attack."""
    hosts = [f"[{name}]" if ":" in name else name for name in sorted(names)]
    origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    return TransportSecuritySettings(
        allowed_hosts=[*hosts, *(f"{host}:*" for host in hosts)],
        allowed_origins=[*origins, *(f"{origin}:*" for origin in origins)],
    )


@dataclass(frozen=True, slots=True)
class _Tokens:
    """Identifies the holder of a bearer token by the current settings."""

    read_settings: Callable[[], Settings]

    async def verify_token(self, token: str) -> AccessToken | None:
        holder = self.read_settings().mcp.match_token(token)
        if holder is None:
            log.warning("request with an unknown token")
            return None
        return AccessToken(token="", client_id=holder.name, scopes=list(holder.groups))


def _identify_token(context: Context) -> Asker:
    user = context.request.user if context.request else None
    if not isinstance(user, AuthenticatedUser):
        raise MCPError(INVALID_PARAMS, "The caller is unknown.")
    return make_token_asker(user.username, user.scopes)


@dataclass(frozen=True, slots=True)
class _Attended:
    """Sets an event in a request's scope when its client disconnects, and ends the request when the server stops."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.Event()

        async def watch() -> Message:
            message = await receive()
            if message["type"] == "http.disconnect":
                gone.set()
            return message

        begun = ended = False

        async def note(message: Message) -> None:
            nonlocal begun, ended
            begun, ended = True, message["type"] == "http.response.body" and not message.get("more_body")
            await send(message)

        try:
            await self.app({**scope, _GONE: gone}, watch, note)
        except asyncio.CancelledError:
            # The server stops. The client sees the end of the stream, and nothing is logged as a fault.
            with suppress(TimeoutError, OSError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    if not begun:
                        await PlainTextResponse("The server is stopping.", 503)(scope, receive, send)
                    elif not ended:
                        await send({"type": "http.response.body", "body": b""})
        finally:
            gone.set()
