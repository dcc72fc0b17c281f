"""Call Slack's Web API: at its rate limits, with its errors as the desk's, and nothing ever done twice.

Limits are data: by method for the workspace, posts by channel. None of the SDK's retry handlers is used: the one for
cut connections repeats posts, which then stand there twice; the one for 429 waits where nobody else sees it, while
other calls run into the same limit. A post is never repeated: whoever posts looks for it by its mark first.
"""

import asyncio
import json
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import aiohttp
from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.web.async_client import AsyncWebClient
from slack_sdk.webhook.async_client import AsyncWebhookClient

from bot.desk.platform_port import (
    AccessDenied,
    CannotPost,
    ContentRefused,
    PlatformError,
    PlatformUnavailable,
    PostGone,
    RateLimited,
)
from bot.desk.supervisor import wait_for_first
from bot.platforms.shared.rate_limit import (
    LIMITED,
    LOCKED_OUT_SECONDS,
    PATIENCE,
    Busy,
    ObserveCall,
    Rate,
    RateWindow,
    ReplyKind,
    build_retry,
    explain_lost_connection,
    ignore_call,
    retry_call,
    sort_reply,
)

RATES: Mapping[str, Rate] = MappingProxyType(
    {
        "chat.startStream": Rate(20),
        "chat.appendStream": Rate(100),
        "chat.stopStream": Rate(20),
        "chat.update": Rate(50),
        "chat.delete": Rate(50),
        "chat.postEphemeral": Rate(100),
        "conversations.replies": Rate(50),
        "conversations.history": Rate(50),
        "conversations.info": Rate(50),
        "users.info": Rate(100),
        "views.open": Rate(100),
        "views.update": Rate(100),
        "views.push": Rate(100),
        "auth.test": Rate(100),
        "assistant.threads.setStatus": Rate(300),  # one of the special limits
    }
)  # from Slack's documents; those of a method that is not here are taken to be `OTHERS`
OTHERS = Rate(20)
POSTS = Rate(1, 1.0)  # `chat.postMessage`, in one channel


def choose_bucket(method: str, channel: str) -> tuple[str, Rate]:
    if method == "chat.postMessage":
        return f"{method} {channel}", POSTS
    return method, RATES.get(method, OTHERS)


@dataclass(slots=True)
class _Lane:
    """The calls that share a limit, and who waits for one of them, in order."""

    window: RateWindow
    waiting: list[object] = field(default_factory=list)
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """Set, and replaced, when somebody waits no longer without having called: those behind may call sooner."""

    def soonest(self, now: float, before: int) -> float:
        """Return when a call may be made that so many others come before."""
        window = self.window
        for _ in range(before):
            window = window.after(window.soonest(now))
        return window.soonest(now)


class SlackRateLimit:
    """The limits of one workspace, and who waits for them."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        self.now, self.sleep = now, sleep
        self._lanes: dict[str, _Lane] = {}

    async def turn(self, method: str, channel: str = "", *, patience: float) -> None:
        """Wait until a call may be made, which is counted then. Raises `Busy`."""
        lane, place, until = self._lane(method, channel), object(), self.now() + patience
        lane.waiting.append(place)
        try:
            await self._wait(lane, place, until)
        except BaseException:
            lane.left.set()
            lane.left = asyncio.Event()
            raise
        finally:
            lane.waiting.remove(place)
        lane.window = lane.window.after(self.now())

    async def _wait(self, lane: _Lane, place: object, until: float) -> None:
        while (at := lane.soonest(now := self.now(), lane.waiting.index(place))) > now:
            if at > until:
                raise Busy(at - now)
            await wait_for_first(lane.left.wait(), self.sleep(at - now))

    def spare(self, method: str, channel: str = "") -> bool:
        """Return whether a call may be made that can be left out: half of what is allowed stays for what cannot."""
        return self.room(method, channel) > self._lane(method, channel).window.rate.calls // 2

    def room(self, method: str, channel: str = "") -> int:
        """Return how many calls could be made at once now, besides those that wait."""
        lane = self._lane(method, channel)
        return lane.window.room(self.now()) - len(lane.waiting)

    def hold(self, method: str, channel: str, seconds: float) -> None:
        """Let no call be made for so long, because Slack says so."""
        lane = self._lane(method, channel)
        lane.window = replace(lane.window, closed=max(lane.window.closed, self.now() + seconds))

    def _lane(self, method: str, channel: str) -> _Lane:
        key, rate = choose_bucket(method, channel)
        return self._lanes.setdefault(key, _Lane(RateWindow(rate)))


_RETRY_SECONDS = 5.0  # how long to wait where Slack does not say
_GONE = frozenset({"message_not_found", "thread_not_found", "no_such_message"})
_AWAY = frozenset(
    {
        *("accesslimited", "fatal_error", "internal_error", "org_login_required", "request_timeout"),
        *("service_unavailable", "team_added_to_org"),
    }
)
_LIMITED = frozenset({"ratelimited", "rate_limited", "message_limit_exceeded"})
_STREAM_OVER = frozenset({"message_not_in_streaming_state", "stopped_by_user"})
_FIXED = frozenset({"edit_window_closed", "cant_update_message"})
_THREADLESS = frozenset(
    {
        *("cannot_reply_to_message", "restricted_action_non_threadable_channel"),
        "restricted_action_thread_locked",
    }
)
_NOT_LET_IN = frozenset({"account_inactive", "invalid_auth", "not_authed", "token_expired", "token_revoked"})
_UNFIT = frozenset(
    {
        *("block_mismatch", "invalid_arguments", "invalid_attachments", "invalid_blocks", "invalid_blocks_format"),
        *("invalid_chunks", "invalid_metadata_format", "invalid_metadata_schema", "metadata_too_large"),
        *("markdown_text_conflict", "msg_blocks_too_long", "msg_too_long", "no_text", "too_many_attachments"),
    }
)  # what Slack says of a message that it cannot take as it is
STREAMING = "streaming_state_conflict"
_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "is_archived": "The channel is archived.",
        "channel_not_found": "The bot is not in the channel, or the channel is gone: invite the bot.",
        "not_in_channel": "The bot is not in the channel: invite it.",
        "missing_scope": "The app lacks a scope: compare it with slack-manifest.yaml, and install it again.",
        "invalid_auth": "The bot token is not valid: copy it anew from the app's page.",
        "not_authed": "There is no bot token.",
        "account_inactive": "The bot was removed from the workspace: install the app again.",
        "token_revoked": "The bot token was revoked: install the app again.",
        "token_expired": "The bot token has expired: turn token rotation off, and install the app again.",
    }
)


class ThreadRefused(CannotPost):
    """There may be no reply to that message: what is to be said stands in the channel."""


class ChannelUnknown(CannotPost):
    """There is no such channel, as far as Slack tells us: of a private one that is so until we are invited."""


class MessageNotEditable(CannotPost):
    """The workspace lets nobody change a message any more. It can be deleted, and said anew."""


class StreamClosed(PlatformError):
    """A message streams no more, or streams still. `still` says which."""

    kind = "not_streaming"

    def __init__(self, message: str, *, still: bool) -> None:
        super().__init__(message)
        self.still = still


def explain_api_error(method: str, code: str, status: int, retry_after: str = "") -> PlatformError:
    """Return the error that a refusal is. `code` is Slack's own word for it; empty where it said none."""
    code = code if re.fullmatch(r"[a-z0-9_]{1,60}", code) else ""
    line = f"Slack refused {method}: {code or f'status {status}'}."
    if status == LIMITED or code in _LIMITED:
        return RateLimited(f"Slack asks to wait before {method}.", seconds=_retry_after(retry_after))
    if code in _NOT_LET_IN:
        return AccessDenied(line, hint=_HINTS[code], seconds=LOCKED_OUT_SECONDS)
    if sort_reply(status, own=bool(code), refused=True, passing=code in _AWAY) is ReplyKind.AGAIN:
        return build_retry(line, status, own=bool(code))
    return _explain_message_error(code, line) or CannotPost(line, hint=_HINTS.get(code, ""))


def _explain_message_error(code: str, line: str) -> PlatformError | None:
    if code in _GONE:
        return PostGone(line)
    if code in _UNFIT:
        return ContentRefused(line)
    if code in _THREADLESS:
        return ThreadRefused(line)
    if code in _STREAM_OVER or code == STREAMING:
        return StreamClosed(line, still=code == STREAMING)
    if code == "channel_not_found":
        return ChannelUnknown(line, hint=_HINTS[code])
    return MessageNotEditable(line) if code in _FIXED else None


def _retry_after(retry_after: str) -> float:
    return float(retry_after) if re.fullmatch(r"\d{1,6}(\.\d{1,6})?", retry_after.strip()) else _RETRY_SECONDS


_REPEATABLE = frozenset(
    {
        "auth.test",
        "chat.delete",
        "chat.update",
        "conversations.history",
        "conversations.info",
        "conversations.replies",
        "usergroups.users.list",
        "users.info",
        "views.update",
    }
)


def build_web_client(token: str, api_url: str) -> AsyncWebClient:
    logger = logging.getLogger("slack_sdk.footnote")
    # Below warnings it says what it sends: what people wrote, and triggers, which are secrets.
    logger.setLevel(logging.WARNING)
    return AsyncWebClient(token=token, base_url=api_url, retry_handlers=[], logger=logger)


@asynccontextmanager
async def open_web_client(token: str, api_url: str) -> AsyncIterator[AsyncWebClient]:
    """Give a client that keeps its connections; the SDK's own opens one for each call."""
    client = build_web_client(token, api_url)
    timeout = aiohttp.ClientTimeout(total=client.timeout)
    async with aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()) as client.session:
        yield client


class SlackApiClient:
    """Calls methods of one workspace, at its pace, by a client without retry handlers."""

    def __init__(self, client: AsyncWebClient, pacing: SlackRateLimit, observe: ObserveCall = ignore_call) -> None:
        self._client, self.pacing, self._observe = client, pacing, observe

    async def __call__(self, method: str, *, patience: float = PATIENCE, **facts: Any) -> Mapping[str, Any]:
        """Call a method by its name, such as `chat.update`, and return what Slack answers. Raises `PlatformError`."""
        channel = str(facts.get("channel", ""))

        async def attempt(seconds: float) -> Mapping[str, Any]:
            await self.pacing.turn(method, channel, patience=seconds)
            try:
                return await self._send(method, facts)
            except PlatformUnavailable as error:
                if error.seconds is not None:
                    self.pacing.hold(method, channel, error.seconds)
                raise

        repeatable = method in _REPEATABLE
        return await retry_call(
            attempt, method, self.pacing, patience=patience, repeatable=repeatable, observe=self._observe
        )

    async def respond(self, url: str, body: Mapping[str, Any]) -> None:
        """Post a message to the address that came with a command or an action; once. Raises `PlatformError`."""
        # The SDK logs the address, which is a secret: it gets a logger that is heard by nobody.
        silent = logging.Logger("silent", logging.CRITICAL + 1)  # noqa: LOG001 - nobody else is to get it
        with explain_lost_connection("Slack", "response_url", *_SDK_ERRORS):
            answer = await AsyncWebhookClient(url, retry_handlers=[], logger=silent).send_dict(dict(body))
        if error := _explain_response(answer.status_code, answer.body, str(answer.headers.get("Retry-After", ""))):
            raise error

    async def _send(self, method: str, facts: Mapping[str, Any]) -> Mapping[str, Any]:
        call = getattr(self._client, method.replace(".", "_"))
        with explain_lost_connection("Slack", method, *_SDK_ERRORS):
            try:
                answer = await call(**facts)
            except SlackApiError as error:
                raise _explain_reply(method, error.response) from error
        if not isinstance(answer.data, dict):
            raise PlatformUnavailable(f"It is not Slack that answers {method}.")
        return answer.data


_SDK_ERRORS = (SlackClientError, AttributeError, ValueError)
"""What the SDK raises: the last two over a reply that is no object, or no text at all."""
_IN_DOUBT = frozenset({200, 408})  # statuses of a reply that is not Slack's, after which it may have the message


def _explain_response(status: int, body: str, retry_after: str) -> PlatformError | None:
    """Return what a reply of a response_url means; None where it took the message.

    Whoever else refuses it there is passed by: the same can be said by a method.
    """
    try:
        told = json.loads(body)
    except ValueError:
        told = {"ok": body == "ok"} if re.fullmatch(r"[a-z_]{1,60}", body) else None
    own = isinstance(told, dict) and isinstance(told.get("ok"), bool)
    if own and told["ok"] and sort_reply(status, own=own) is ReplyKind.DONE:
        return None
    turned_away = own or status not in _IN_DOUBT
    return explain_api_error("response_url", "expired_url" if turned_away else "", status, retry_after)


def _explain_reply(method: str, response: Any) -> PlatformError:
    """Return what a response of the SDK's means; of one that is no JSON it hands over aiohttp's own."""
    status = getattr(response, "status_code", 0) or getattr(response, "status", 0)
    data = getattr(response, "data", None)
    code = str(data.get("error", "")) if isinstance(data, dict) and data.get("ok") is False else ""
    retry_after = str((getattr(response, "headers", None) or {}).get("Retry-After", ""))
    return explain_api_error(method, code, int(status), retry_after)
