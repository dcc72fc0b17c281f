"""The fake platform's network: calls and events over HTTP to its server. What a test wraps to be killed there."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import aiohttp

from bot.desk.platform_port import CannotPost, PlatformUnavailable, PostGone

_GONE = {"message_not_found"}


class Wire(Protocol):
    """What the platform's client needs of a network."""

    async def call(self, name: str, **facts: Any) -> Any:
        """Call the server. Raises `PlatformError`."""
        ...

    async def ack(self, socket: aiohttp.ClientWebSocketResponse, event: int) -> None:
        """Acknowledge an event."""
        ...


@dataclass(frozen=True)
class HttpWire:
    """The real one."""

    http: aiohttp.ClientSession
    url: str

    async def call(self, name: str, **facts: Any) -> Any:
        try:
            async with self.http.post(f"{self.url}/call/{name}", json=facts) as answer:
                if answer.status == 429:
                    seconds = float(answer.headers["Retry-After"])
                    raise PlatformUnavailable("The platform asks us to wait.", seconds=seconds)
                if answer.status >= 500:
                    raise PlatformUnavailable(f"The platform answered {answer.status}.")
                body = await answer.json()
        except aiohttp.ClientError as error:
            raise PlatformUnavailable(f"The platform does not answer: {type(error).__name__}.") from error
        if code := body.get("error"):
            raise (PostGone if code in _GONE else CannotPost)(f"The platform refuses: {code}.")
        return body["result"]

    async def ack(self, socket: aiohttp.ClientWebSocketResponse, event: int) -> None:
        await socket.send_json({"ack": event})


@asynccontextmanager
async def wired(url: str) -> AsyncIterator[HttpWire]:
    """Hold a connection to a server."""
    async with aiohttp.ClientSession() as http:
        yield HttpWire(http, url)
