"""A model server on 127.0.0.1 that speaks OpenAI's chat protocol, strictly, and fails as told.

A script, `(Request) -> Reply | Fault`, decides each answer after the rules of `fake_model_rules` have passed. It is
written on bare sockets, because resets, drips and cuts are what it is for.

    async with serve(lambda request: Reply("Paris.")) as server:
        ...  # server.url, server.requests, server.open, server.disconnects
"""

import asyncio
import json
import re
import socket
import struct
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any

from tests.fake_model_rules import OPENAI, Profile, objection
from tests.fake_model_wire import Ending, Fault, Reply, Request, refuse, wire

_CHAT = (re.compile("/v1/chat/completions"), re.compile(r"/openai/deployments/[^/]+/chat/completions\?api-version=.+"))
Script = Callable[[Request], Reply | Fault]


def in_turn(*answers: Reply | Fault) -> Script:
    """Return a script that gives each answer once, and the last for ever."""
    left = list(answers)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


class FakeModelServer:
    def __init__(self, script: Script, profile: Profile) -> None:
        self.script = script
        self.profile = profile
        self.url = ""
        self.requests: list[Request] = []
        """Those that the rules passed, in order."""
        self.rejected: list[str] = []
        """What was objected to in the others."""
        self.open = 0
        """Connections now."""
        self.busy = 0
        """Requests being answered now."""
        self.busiest = 0
        self.disconnects = 0
        """How often a client left before its answer was whole."""
        self._changed = asyncio.Event()

    async def until(self, holds: Callable[["FakeModelServer"], bool]) -> None:
        """Wait until something holds; five seconds at most."""
        async with asyncio.timeout(5):
            while not holds(self):
                self._changed.clear()
                await self._changed.wait()

    def changed(self) -> None:
        self._changed.set()

    def answer(self, path: str, headers: Mapping[str, str], raw: bytes) -> Reply | Fault | tuple[Request, Reply]:
        if path.endswith("/models"):
            return refuse(
                200, {"object": "list", "data": [{"id": name, "object": "model"} for name in self.profile.models]}
            )
        if not _CHAT[self.profile.azure].fullmatch(path):
            return refuse(404, {"detail": "Not Found"})
        body = None
        with suppress(ValueError):
            body = json.loads(raw)
        if wrong := objection(self.profile, path, headers, body):
            self.rejected.append(wrong.message)
            return refuse(wrong.status, self.profile.body(wrong))
        request = Request(path, headers, body, self.profile)
        self.requests.append(request)
        self.changed()
        answer = self.script(request)
        return (request, answer) if isinstance(answer, Reply) else answer


class _Connection(asyncio.Protocol):
    def __init__(self, server: FakeModelServer) -> None:
        self._server = server
        self._received = bytearray()
        self._task: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport
        self._server.open += 1
        self._server.changed()

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, found, rest = bytes(self._received).partition(b"\r\n\r\n")
        if not found:
            return
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = int(headers.get("content-length", 0))
        if len(rest) < length:
            return
        self._received = bytearray(rest[length:])
        self._server.busy += 1
        self._server.busiest = max(self._server.busiest, self._server.busy)
        self._task = asyncio.ensure_future(self._handle(first.split(" ")[1], headers, rest[:length]))

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        self._server.open -= 1
        if self._task and not self._task.done():
            self._server.disconnects += 1
            self._task.cancel()
        self._server.changed()

    async def _handle(self, path: str, headers: Mapping[str, str], raw: bytes) -> None:
        try:
            answer = self._server.answer(path, headers, raw)
            await (self._send(answer.parts) if isinstance(answer, Fault) else self._reply(*answer))
        finally:
            self._server.busy -= 1
            self._server.changed()

    async def _reply(self, request: Request, reply: Reply) -> None:
        if reply.seconds:
            await asyncio.sleep(reply.seconds)
        parts = wire(request, reply)
        if not reply.piece_seconds:
            self._transport.write(b"".join(parts))
            return
        for part in parts:
            await asyncio.sleep(reply.piece_seconds)
            self._transport.write(part)

    async def _send(self, parts: tuple[bytes | float | Ending, ...]) -> None:
        for part in parts:
            if isinstance(part, bytes):
                self._transport.write(part)
            elif isinstance(part, float):
                await asyncio.sleep(part)
            elif part is Ending.HANG:
                await asyncio.Event().wait()
            elif part is Ending.RESET:
                linger = struct.pack("ii", 1, 0)
                self._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self._transport.abort()
            else:
                self._transport.close()


@asynccontextmanager
async def serve(script: Script, profile: Profile = OPENAI) -> AsyncIterator[FakeModelServer]:
    """Serve on a free port until the context is left."""
    fake = FakeModelServer(script, profile)
    connections: list[_Connection] = []

    def connect() -> _Connection:
        connections.append(_Connection(fake))
        return connections[-1]

    listening = await asyncio.get_running_loop().create_server(connect, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    fake.url = f"http://127.0.0.1:{port}" + ("" if profile.azure else "/v1")
    try:
        yield fake
    finally:
        listening.close()
        for connection in connections:
            connection._transport.abort()
        await listening.wait_closed()
