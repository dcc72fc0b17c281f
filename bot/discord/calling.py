"""The one way to Discord's REST API: at its pace, with its refusals as the desk's errors, and nothing ever done twice.

Not through discord.py's own HTTP client, which is for its gateway. That one repeats a call up to five times and waits
within, so that nobody hears whether one of them was done before the last was refused; it logs addresses, in which the
tokens of interactions stand, as warnings; and a call of it that is broken off while all routes are closed leaves them
closed for good. So what may be repeated is repeated here, on a clock that tests can turn: whatever reads, what sets a
message to what it should be, and a post with a nonce.
"""

import asyncio
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import aiohttp

from bot.discord.pacing import Bucket, Pacing
from bot.discord.refusals import DENIED, LIMITED, refusal
from bot.discord.routes import Route
from bot.pacing import Busy
from bot.platform import PlatformUnavailable

PATIENCE = 40.0
"""Seconds that a call waits for its turn; whoever may be told to come again waits shorter than a desk's call lasts."""
API = "https://discord.com/api/v10"
_AGENT = "DiscordBot (https://github.com/footnote, 0.1)"
_AGAIN = 1.0
"""Seconds before a call is repeated."""
_TRIES = 4
_SECONDS = 5.0
_TIMEOUT = aiohttp.ClientTimeout(total=30.0, sock_connect=10.0)
_GOOD = range(200, 300)
_CUT = (aiohttp.ClientError, asyncio.TimeoutError, ConnectionError)


class Calling:
    """Calls Discord as one bot, at its pace."""

    def __init__(self, session: aiohttp.ClientSession, token: str, api_url: str, pacing: Pacing) -> None:
        """Take what opens connections, the bot's token, where Discord is (empty: where it is), and the pace."""
        self._session, self._api, self.pacing = session, (api_url or API).rstrip("/"), pacing
        self._headers = {"User-Agent": _AGENT}
        self._secret = {"Authorization": f"Bot {token}"}

    async def __call__(
        self,
        route: Route,
        body: Any = None,
        *,
        query: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
        **ids: str,
    ) -> Any:
        """Make a call, and return what Discord answers; None where it answers nothing.

        Args:
            route: What is called.
            body: What is sent, as JSON.
            query: What stands behind the path.
            patience: How many seconds it may wait.
            ids: What the path has to be told.

        Raises:
            PlatformError: As `refusals` says. Of `PlatformUnavailable` one with `seconds` has done nothing.
        """
        waited, cut = 0.0, False
        for attempt in range(_TRIES):
            started = self.pacing.now()
            try:
                bucket = await self._turn(route, ids, patience - waited)
                return await self._once(route, ids, body, query, bucket)
            except PlatformUnavailable as error:
                waited += self.pacing.now() - started
                cut = cut or error.seconds is None
                last = attempt + 1 == _TRIES
                if last or not await self._may_repeat(route, error, patience - waited):
                    raise error.doubted() if cut else error from error.__cause__
        raise AssertionError

    async def _turn(self, route: Route, ids: Mapping[str, str], patience: float) -> Bucket:
        try:
            return await self.pacing.turn(route, ids, patience=max(patience, 0.0))
        except Busy as error:
            raise PlatformUnavailable(f"Too much is going on for {route}.", seconds=error.seconds) from error

    async def _once(
        self, route: Route, ids: Mapping[str, str], body: Any, query: Mapping[str, str] | None, bucket: Bucket
    ) -> Any:
        headers: Mapping[str, str] = {}
        try:
            url = self._api + route.path.format_map({name: quote(value, safe="@") for name, value in ids.items()})
            async with self._session.request(route.method, url, **self._sent(route, body, query)) as response:
                headers = response.headers
                told = _json(await response.read(), response.content_type)
                status = response.status
        except aiohttp.ClientConnectorError as error:
            raise PlatformUnavailable(f"Discord cannot be reached for {route}.", seconds=_SECONDS) from error
        except _CUT as error:
            raise PlatformUnavailable(f"Discord does not answer {route}.") from error
        finally:
            self.pacing.done(bucket, route, ids, headers)
        if status in _GOOD:
            return told
        raise self._refused(route, ids, status, told, headers)

    def _sent(self, route: Route, body: Any, query: Mapping[str, str] | None) -> dict[str, Any]:
        headers = self._headers if route.interaction else {**self._headers, **self._secret}
        sent: dict[str, Any] = {"headers": headers, "params": query, "timeout": _TIMEOUT, "allow_redirects": False}
        if body is not None:
            # Not aiohttp's own: Discord takes no charset beside the type.
            sent["data"] = json.dumps(body).encode()
            sent["headers"] = {**headers, "Content-Type": "application/json"}
        return sent

    def _refused(
        self, route: Route, ids: Mapping[str, str], status: int, told: Any, headers: Mapping[str, str]
    ) -> Exception:
        error = refusal(str(route), status, told, headers.get("Retry-After", ""))
        if status in DENIED and headers.get("X-RateLimit-Scope") != "shared":
            self.pacing.denied()
        if status == LIMITED and isinstance(error, PlatformUnavailable):
            # Without a body it is not Discord that refuses but what stands before it, and all calls alike.
            everywhere = not isinstance(told, Mapping) or told.get("global") is True
            self.pacing.hold(route, ids, error.seconds or _SECONDS, everywhere=everywhere)
        return error

    async def _may_repeat(self, route: Route, error: PlatformUnavailable, patience: float) -> bool:
        """Wait for what can be repeated, and return whether it can."""
        if error.seconds is not None:
            if error.seconds > patience:
                return False
        elif not route.repeatable or patience < _AGAIN:
            return False
        await self.pacing.sleep(_AGAIN if error.seconds is None else error.seconds)
        return True


def _json(data: bytes, content_type: str) -> Any:
    if content_type != "application/json":
        return None
    try:
        return json.loads(data)
    except ValueError:
        return None
