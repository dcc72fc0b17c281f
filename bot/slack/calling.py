"""The one way to Slack's Web API: at its pace, with its refusals as the desk's errors, and nothing ever done twice.

None of the SDK's retry handlers is used: the one for cut connections repeats posts, which then stand there twice; the
one for 429 waits where nobody else sees it, while the other calls run into the same limit. So what may be repeated is
repeated here (whatever reads, and what sets a message or a view to what it should be), and a post never: whoever
posts looks for it by its mark before posting again.
"""

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.pacing import Busy
from bot.platform import PlatformError, PlatformUnavailable
from bot.slack.pacing import Pacing
from bot.slack.refusals import LIMITED, refusal

PATIENCE = 40.0
"""Seconds that a call waits for its turn; whoever may be told to come again waits shorter than a desk's call lasts."""
_AGAIN = 1.0
"""Seconds before a call is repeated."""
_TRIES = 4
_REPEATABLE = frozenset(
    {
        "auth.test",
        "chat.delete",
        "chat.update",
        "conversations.history",
        "conversations.info",
        "conversations.replies",
        "users.info",
        "views.update",
    }
)
_SECONDS = 5.0
_OK = 200
_CUT = (aiohttp.ClientError, asyncio.TimeoutError, ConnectionError, SlackClientError)


def web_client(token: str, api_url: str) -> AsyncWebClient:
    """Return the SDK's client as it is meant to be used here."""
    logger = logging.getLogger("slack_sdk.footnote")
    # Below warnings it says what it sends: what people wrote, and triggers, which are secrets.
    logger.setLevel(logging.WARNING)
    return AsyncWebClient(token=token, base_url=api_url, retry_handlers=[], logger=logger)


class Calling:
    """Calls methods of one workspace, at its pace."""

    def __init__(self, client: AsyncWebClient, pacing: Pacing) -> None:
        """Take a client without retry handlers, as `web_client` makes it."""
        self._client, self.pacing = client, pacing

    async def __call__(self, method: str, *, patience: float = PATIENCE, **facts: Any) -> Mapping[str, Any]:
        """Call a method by its name, such as `chat.update`, and return what Slack answers.

        Raises:
            PlatformError: As `refusals` says. Of `PlatformUnavailable` one with `seconds` has done nothing.
        """
        channel, waited, cut = str(facts.get("channel", "")), 0.0, False
        for attempt in range(_TRIES):
            started = self.pacing.now()
            await self._turn(method, channel, patience - waited)
            try:
                return await self._once(method, facts)
            except PlatformUnavailable as error:
                waited += self.pacing.now() - started
                cut = cut or error.seconds is None
                if attempt + 1 == _TRIES or not await self._may_repeat(method, channel, error, patience - waited):
                    raise error.doubted() if cut else error from error.__cause__
        raise AssertionError

    async def respond(self, url: str, body: Mapping[str, Any]) -> None:
        """Post a message to the address that came with a command or an action; once.

        Raises:
            PlatformError: As above; `CannotPost` where the address is used up.
        """
        # The SDK logs the address, which is a secret: it gets a logger that is heard by nobody.
        silent = logging.Logger("silent", logging.CRITICAL + 1)  # noqa: LOG001 - nobody else is to get it
        try:
            answer = await AsyncWebhookClient(url, retry_handlers=[], logger=silent).send_dict(dict(body))
        except aiohttp.ClientConnectorError as error:
            raise _not_reached("response_url") from error
        except _CUT as error:
            raise PlatformUnavailable("Slack does not answer response_url.") from error
        if answer.status_code != _OK:
            code = "" if answer.status_code >= LIMITED else "expired_url"
            raise refusal("response_url", code, answer.status_code, str(answer.headers.get("Retry-After", "")))

    async def _turn(self, method: str, channel: str, patience: float) -> None:
        try:
            await self.pacing.turn(method, channel, patience=max(patience, 0.0))
        except Busy as error:
            raise PlatformUnavailable(f"Too much is going on for {method}.", seconds=error.seconds) from error

    async def _once(self, method: str, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        call = getattr(self._client, method.replace(".", "_"))
        try:
            answer = await call(**facts)
        except SlackApiError as error:
            raise _refused(method, error.response) from error
        except aiohttp.ClientConnectorError as error:
            raise _not_reached(method) from error
        except _CUT as error:
            raise PlatformUnavailable(f"Slack does not answer {method}.") from error
        return answer.data if isinstance(answer.data, dict) else {}

    async def _may_repeat(self, method: str, channel: str, error: PlatformUnavailable, patience: float) -> bool:
        """Wait for what can be repeated, and return whether it can."""
        if error.seconds is not None:
            self.pacing.hold(method, channel, error.seconds)
            return error.seconds <= patience
        if method not in _REPEATABLE or patience < _AGAIN:
            return False
        await self.pacing.sleep(_AGAIN)
        return True


def _refused(method: str, response: Any) -> PlatformError:
    """Return what a response of the SDK's means; of one that is no JSON it hands over aiohttp's own."""
    status = getattr(response, "status_code", 0) or getattr(response, "status", 0)
    data = getattr(response, "data", None)
    code = str(data.get("error", "")) if isinstance(data, dict) else ""
    return refusal(method, code, int(status), str((getattr(response, "headers", None) or {}).get("Retry-After", "")))


def _not_reached(method: str) -> PlatformUnavailable:
    """Return the error of a call that never left: it is certain that nothing was done."""
    return PlatformUnavailable(f"Slack cannot be reached for {method}.", seconds=_SECONDS)
