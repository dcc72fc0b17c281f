"""The base of the strict fake servers: HTTP, the log of calls, failures on request, posted texts, and waiting."""

import asyncio
from abc import abstractmethod
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Protocol, TypeVar

from aiohttp import web

from tests.platforms import markup
from tests.platforms.clock import Clock
from tests.platforms.reading import Reader


@dataclass(frozen=True)
class Fault:
    """How one call fails. With the defaults it succeeds."""

    status: int | None = None
    """The HTTP status of the response; 0 cuts the connection."""
    retry_after: float = 1.0
    """Seconds, for a 429."""
    everywhere: bool = False
    """Whether a 429 is for all routes."""
    via: bool = True
    """Whether a 429 comes from the platform itself; otherwise a proxy has banned the address."""
    page: bool = False
    """Whether the response is a proxy's page, whatever its status."""
    text: str = "<html>Server Error</html>"
    """The text of that page, and its type."""
    form: str = "text/html"
    code: str | int | None = None
    """The platform's own error, such as `stopped_by_user` or 50013; None: the failed response is a page."""
    done: bool = False
    """Whether the call has its effect, and only its response fails."""
    until: asyncio.Event | None = None
    """An event that the call waits for before it has any effect."""
    seconds: float = 0.0
    """How long the call waits, by the server's clock, before it has any effect."""

    def after(self, event: asyncio.Event) -> "Fault":
        """Return the same fault, delayed until an event."""
        return replace(self, until=event)

    async def wait(self, clock: Clock) -> None:
        if self.until:
            await self.until.wait()
        if self.seconds:
            await clock.sleep(self.seconds)

    def respond_with_page(self, request: web.Request) -> web.Response:
        """Cut the connection, or return the page of a proxy."""
        if self.status == 0 and request.transport:
            request.transport.abort()
        return web.Response(status=self.status or 500, body=self.text.encode("latin-1"), content_type=self.form)


LIMITED = Fault(429, retry_after=0.05)
LIMITED_EVERYWHERE = replace(LIMITED, everywhere=True)
BANNED = Fault(429, via=False)
BROKEN = Fault(500)
UNAVAILABLE = Fault(503)
"""discord.py repeats 500, 502, 504 and 524 itself, after a second and more; not 503."""
RESET = Fault(0)
LOST = Fault(0, done=True)
"""The call has its effect, but the client gets no response."""
LOST_500 = Fault(500, done=True)


def refused(code: str) -> Fault:
    """Return the fault by which Slack refuses a call with an error code."""
    return Fault(code=code)


@dataclass(frozen=True)
class Received:
    """A received call without secrets, and its time by the server's clock."""

    name: str
    body: Any
    at: float
    names: dict[str, str] = field(default_factory=dict)
    """The values in its path."""


@dataclass(frozen=True)
class Refused:
    """A call that was refused, and why."""

    name: str
    code: str | int
    status: int = 200
    detail: Any = ()

    def __str__(self) -> str:
        return f"{self.name}: {self.status} {self.code} {self.detail or ''}".strip()


class Text(Protocol):
    """A text that a client gets, with every ping and link that a client could read into it."""

    @property
    def where(self) -> str: ...
    @property
    def pings(self) -> Sequence[str]: ...
    @property
    def links(self) -> Sequence[str]: ...


@dataclass(frozen=True)
class Piece:
    """A text in a message or a view; `where`: its id. `kind`: a text, or an element that links or pings by itself."""

    text: str
    where: str
    kind: Literal["text", "link", "ping"] = "text"
    read: Reader = field(kw_only=True)

    @property
    def pings(self) -> list[str]:
        if self.kind != "text":
            return [self.text] * (self.kind == "ping")
        return list(self.read(self.text).pings) or markup.pings(self.text)

    @property
    def links(self) -> list[str]:
        if self.kind != "text":
            return [self.text] * (self.kind == "link")
        return [url for url, _ in markup.own_links(self.text)] + markup.links(self.text)


@dataclass
class FakeServer:
    """The state of a server, as tests read it."""

    clock: Clock
    url: str = ""
    faults: dict[str, list[Fault]] = field(default_factory=lambda: defaultdict(list))
    """The failures of the next calls in order, by call."""
    received: list[Received] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    limited: list[Received] = field(default_factory=list)
    """Calls that exceeded a rate limit."""
    errors: list[BaseException] = field(default_factory=list)
    """Errors of the server itself: tests assert that there are none."""
    posts: int = 0
    """Messages that the bot ever wrote."""
    texts: dict[Text, None] = field(default_factory=dict)
    """Every text that a client ever got from the bot, also in earlier states, each once."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def pings(self) -> list[str]:
        """Every user that a client could have notified for the bot, once for each message."""
        return [ping for _, ping in dict.fromkeys((text.where, ping) for text in self.texts for ping in text.pings)]

    @property
    def links(self) -> list[str]:
        """Every address that a client could have linked to for the bot, once for each message."""
        return [link for _, link in dict.fromkeys((text.where, link) for text in self.texts for link in text.links)]

    def calls(self, name: str) -> list[Received]:
        return [call for call in self.received if call.name == name]

    def log(self, name: str, body: Any, names: dict[str, str] | None = None) -> Fault | None:
        """Log a call, and return the fault that it must have; None if it succeeds."""
        fault = self.faults[name].pop(0) if self.faults.get(name) else None
        self.received.append(Received(name, body, self.clock.now(), names or {}))
        self.notify()
        return fault

    def notify(self) -> None:
        """Wake the tests that wait for a change."""
        self._changed.set()

    async def until(self, holds: Callable[[], object], seconds: float = 60) -> None:
        """Wait until `holds` returns something true; checked again after each change of the server."""
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            calls = [(call.name, call.body) for call in self.received[-10:]]
            refused = list(map(str, self.refused[-5:]))
            raise AssertionError(f"timed out; {self.describe()}; refused {refused}; calls {calls}") from None

    @abstractmethod
    def describe(self) -> str:
        """Describe what the bot wrote, for a test that fails."""

    @abstractmethod
    def application(self) -> web.Application: ...

    @abstractmethod
    async def close(self) -> None:
        """Close all connections."""


Server = TypeVar("Server", bound=FakeServer)


@asynccontextmanager
async def serving(server: Server) -> AsyncIterator[Server]:
    """Serve on a free port until the block is left."""
    runner = web.AppRunner(server.application(), access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await server.close()
        await runner.cleanup()


def abort(socket: web.WebSocketResponse) -> None:
    """Cut a connection without closing it."""
    if socket._req and socket._req.transport:
        socket._req.transport.abort()
