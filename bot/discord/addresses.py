"""Where Discord is, told to discord.py from settings: a proxy, or a server of tests.

discord.py keeps its addresses in class attributes, which is to say for the whole process. Here one client alone is
told, by an HTTP client of its own.
"""

import asyncio
import copy
from typing import Any

import discord
from discord.gateway import DiscordWebSocket
from discord.http import HTTPClient, Route

from bot.discord.heartbeats import end_heartbeats


def readdressed(route: Route, api_url: str) -> Route:
    """Return the same route at another server; what is counted for rate limits stays."""
    made = copy.copy(route)
    made.url = api_url.rstrip("/") + route.url.removeprefix(Route.BASE)
    return made


class AddressedHttp(HTTPClient):
    """discord.py's HTTP client, at these addresses."""

    def __init__(self, api_url: str, gateway_url: str, **options: Any) -> None:
        super().__init__(**options)
        self._api_url, self._gateway_url = api_url, gateway_url

    async def request(self, route: Route, **options: Any) -> Any:
        """Send a request. Raises what discord.py raises."""
        return await super().request(readdressed(route, self._api_url) if self._api_url else route, **options)

    async def ws_connect(self, url: str, *, compress: int = 0) -> Any:
        """Open the gateway; where a session is resumed is for the server to say."""
        usual = str(DiscordWebSocket.DEFAULT_GATEWAY)
        if self._gateway_url and url.startswith(usual):
            url = self._gateway_url.rstrip("/") + "/" + url.removeprefix(usual)
        return await super().ws_connect(url, compress=compress)


class AddressedShards(discord.AutoShardedClient):
    """A client that asks for Discord at these addresses; empty ones are Discord's own."""

    def __init__(self, *, api_url: str = "", gateway_url: str = "", **options: Any) -> None:
        self._addresses = api_url, gateway_url
        super().__init__(**options)

    async def close(self) -> None:
        """Close all connections, and end their heartbeats. Who is cancelled meanwhile does not keep it from closing.

        While a session begins it may have to be called once more, when that has ended.
        """
        await asyncio.shield(self._close_all())

    async def _close_all(self) -> None:
        await super().close()
        await end_heartbeats(lambda socket: getattr(socket, "_connection", None) is self._connection)

    def _get_state(self, **options: Any) -> Any:
        # discord.py's own shards override this too: it is called once `http` is there, and before it is used.
        patience = options.get("max_ratelimit_timeout")
        self.http = AddressedHttp(*self._addresses, loop=self.loop, max_ratelimit_timeout=patience)
        return super()._get_state(**options)
