"""Serve a scripted model over HTTP: connections, pace, faults, counts.

`ModelServer` answers with the replies of a script, and `serve` runs it in this process. It uses plain connections
instead of a web framework, because it also resets connections and cuts off replies.
"""

import asyncio
import json
import re
import socket
import struct
import time
import urllib.request
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext, suppress
from dataclasses import asdict, dataclass
from typing import Any

from evaluation.simulated_model.chat_protocol import (
    SIMULATED,
    ChatRequest,
    Ending,
    Fault,
    Reply,
    ServerProfile,
    answer_with,
    encode_reply,
)

Script = Callable[[ChatRequest], Reply | Fault]
"""A function that returns the answer to a request that the rules of the protocol allow."""
_CHAT = (re.compile("/v1/chat/completions"), re.compile(r"/openai/deployments/[^/]+/chat/completions\?api-version=.+"))
_BACKLOG = 1_000


@dataclass(slots=True)
class ServerCounts:
    """What a server has counted since its start."""

    requests: int = 0
    open: int = 0
    busy: int = 0
    busiest: int = 0
    left: int = 0  # requests whose client disconnected before the whole answer
    refused: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0


class ModelServer:
    """A server in this process. `connect` returns the protocol object for a new connection.

    Args:
        script: Returns the answer to each request.
        profile: The kind of server, with the rules that requests must follow.
        places: How many requests are answered at once; 0 for all.
        clock, sleep: The functions for time, which tests replace.
        remember: Whether requests are kept, for tests.
    """

    def __init__(
        self,
        script: Script,
        profile: ServerProfile = SIMULATED,
        *,
        places: int = 0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        remember: bool = False,
    ) -> None:
        self.script, self.profile, self.url = script, profile, ""
        self.counts = ServerCounts()
        self.changed = asyncio.Event()  # set whenever a count changes
        self.requests: list[ChatRequest] = []
        self.rejected: list[str] = []  # why the rules refused requests
        self.connections: list[_Connection] = []
        self._places = asyncio.Semaphore(places) if places else nullcontext()
        self._clock, self._sleep, self._remember = clock, sleep, remember

    async def until(self, holds: Callable[["ModelServer"], bool]) -> None:
        """Wait until a condition holds, at most one minute."""
        async with asyncio.timeout(60):
            while not holds(self):
                self.changed.clear()
                await self.changed.wait()

    def connect(self) -> asyncio.Protocol:
        self.connections.append(_Connection(self))
        return self.connections[-1]

    def respond(
        self, path: str, headers: Mapping[str, str], raw: bytes, out: asyncio.Transport
    ) -> "asyncio.Future[None]":
        """Count one request, and start to answer it."""
        request = self._check(path, headers, raw)
        if isinstance(request, Fault):
            return asyncio.ensure_future(self._fail(request, out))
        self.counts.requests += 1
        self.counts.busy += 1
        self.counts.busiest = max(self.counts.busiest, self.counts.busy)
        self.changed.set()
        return asyncio.ensure_future(self._answer(request, out))

    async def _answer(self, request: ChatRequest, out: asyncio.Transport) -> None:
        try:
            async with self._places:
                if self._remember:
                    self.requests.append(request)
                    self.changed.set()
                answer = self.script(request)
                if isinstance(answer, Fault):
                    self.counts.refused += 1
                    await self._fail(answer, out)
                else:
                    self.counts.prompt_tokens += answer.prompt_tokens
                    self.counts.cached_tokens += answer.cached
                    self.changed.set()
                    await self._reply(request, answer, out)
        except Exception:
            out.abort()  # otherwise the client would wait for ever
            raise
        finally:
            self.counts.busy -= 1
            self.changed.set()

    def _check(self, path: str, headers: Mapping[str, str], raw: bytes) -> Fault | ChatRequest:
        if path == "/counts":
            return answer_with(200, asdict(self.counts))
        if path.endswith("/models"):
            names = [{"id": name, "object": "model"} for name in self.profile.models]
            return answer_with(200, {"object": "list", "data": names})
        if not _CHAT[self.profile.azure].fullmatch(path):
            return answer_with(404, {"detail": "Not Found"})
        body = None
        with suppress(ValueError):
            body = json.loads(raw)
        if wrong := self.profile.rules(self.profile, path, headers, body):
            self.counts.refused += 1
            self.rejected.append(wrong.message)
            return answer_with(wrong.status, self.profile.body(wrong))
        return ChatRequest(path, headers, body or {}, self.profile)

    async def _reply(self, request: ChatRequest, reply: Reply, out: asyncio.Transport) -> None:
        parts = encode_reply(request, reply)
        if reply.schedule:
            await self._reply_on_schedule(request, parts, reply, out)
            return
        if reply.seconds:
            await self._sleep(reply.seconds)
        if not reply.piece_seconds:
            out.write(b"".join(parts))
            return
        for part in parts:
            await self._sleep(reply.piece_seconds)
            out.write(part)

    async def _reply_on_schedule(
        self, request: ChatRequest, parts: tuple[bytes, ...], reply: Reply, out: asyncio.Transport
    ) -> None:
        streamed, schedule = request.streamed, reply.schedule or iter(())
        await self._wait_until(next(schedule))
        pieces = parts[2 : 2 + len(reply.parts)] if streamed else ()
        out.write(b"".join(parts[:2] if streamed else ()))
        for place, due in enumerate(schedule):
            if streamed and place == reply.cut:
                out.close()
                return
            await self._wait_until(due)
            if streamed:
                out.write(pieces[place])
            self.counts.tokens += 1
        out.write(b"".join(parts[2 + len(pieces) :] if streamed else parts))

    async def _wait_until(self, due: float) -> None:
        left = due - self._clock()
        if left > 0:
            await self._sleep(left)

    async def _fail(self, fault: Fault, out: asyncio.Transport) -> None:
        for part in fault.parts:
            if isinstance(part, bytes):
                out.write(part)
            elif isinstance(part, float):
                await self._sleep(part)
            elif part is Ending.HANG:
                await asyncio.Event().wait()
            elif part is Ending.RESET:
                linger = struct.pack("ii", 1, 0)
                out.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                out.abort()
            else:
                out.close()


class _Connection(asyncio.Protocol):
    def __init__(self, server: ModelServer) -> None:
        self.transport: Any = None
        self._server = server
        self._received = bytearray()
        self._task: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._server.counts.open += 1
        self._server.changed.set()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, rest = bytes(self._received).partition(b"\r\n\r\n")
        if not found:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        if len(rest) >= length:
            self._received = bytearray(rest[length:])
            self._task = self._server.respond(first.split(" ")[1], headers, rest[:length], self.transport)

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._server.counts.open -= 1
        self._server.connections.remove(self)
        if self._task and not self._task.done():
            self._server.counts.left += 1
            self._task.cancel()
        self._server.changed.set()


@asynccontextmanager
async def serve(
    script: Script,
    profile: ServerProfile = SIMULATED,
    *,
    host: str = "127.0.0.1",
    port: int = 0,
    places: int = 0,
    remember: bool = True,
) -> AsyncIterator[ModelServer]:
    """Serve in this process until the block ends; `url` is the base URL. Raises `OSError` if the port is taken."""
    server = ModelServer(script, profile, places=places, remember=remember)
    listening = await asyncio.get_running_loop().create_server(server.connect, host, port, backlog=_BACKLOG)
    server.url = f"http://{host}:{listening.sockets[0].getsockname()[1]}" + ("" if profile.azure else "/v1")
    try:
        yield server
    finally:
        listening.close()
        for connection in list(server.connections):
            connection.transport.abort()
        await listening.wait_closed()


def fetch_counts(url: str) -> ServerCounts:
    """Return the counts of a running server. Blocks."""
    with urllib.request.urlopen(f"{url.removesuffix('/v1')}/counts") as reply:  # noqa: S310 - our own server
        return ServerCounts(**json.load(reply))
