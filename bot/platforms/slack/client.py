"""Slack's Web API: its methods with their rates, its error codes, and replies to a `response_url`.

A post is never repeated: callers look for it by its mark first.
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

from bot.desk.platform_port import (
    AccessDenied,
    ContentRefused,
    PlatformError,
    PlatformUnavailable,
    PostGone,
    RateLimited,
)
from bot.platforms.shared.api_client import (
    LIMITED,
    Api,
    ApiClient,
    EditRefused,
    ObserveCall,
    RequestRefused,
    ignore_call,
    open_session,
    send,
)
from bot.platforms.shared.rate_limit import Lanes, Rate, Reply, Route


def _method(name: str, calls: int, *, repeatable: bool = False) -> Route:
    """Return a method that Slack allows `calls` times a minute."""
    return Route("POST", f"/{name}", repeatable, name=name, rate=Rate(calls))


POST = Route("POST", "/chat.postMessage", repeatable=False, name="chat.postMessage", rate=Rate(1, 1.0), by_channel=True)
POST_EPHEMERAL = _method("chat.postEphemeral", 100)
UPDATE = _method("chat.update", 50, repeatable=True)
DELETE = _method("chat.delete", 50, repeatable=True)
START_STREAM = _method("chat.startStream", 20)
APPEND_STREAM = _method("chat.appendStream", 100)
STOP_STREAM = _method("chat.stopStream", 20)
REPLIES = _method("conversations.replies", 50, repeatable=True)
HISTORY = _method("conversations.history", 50, repeatable=True)
CHANNEL = _method("conversations.info", 50, repeatable=True)
CHANNELS = _method("conversations.list", 20)
OUR_CHANNELS = _method("users.conversations", 20)
USER = _method("users.info", 100, repeatable=True)
GROUP_MEMBERS = _method("usergroups.users.list", 20, repeatable=True)
OPEN_VIEW = _method("views.open", 100)
UPDATE_VIEW = _method("views.update", 100, repeatable=True)
PUBLISH_HOME = _method("views.publish", 20)
STATUS = _method("assistant.threads.setStatus", 300)  # a special limit
SUGGEST_PROMPTS = _method("assistant.threads.setSuggestedPrompts", 20)
WHO_WE_ARE = _method("auth.test", 100, repeatable=True)
OPEN_SOCKET = _method("apps.connections.open", 20)
RESPOND = Route("POST", "", name="response_url")


class ThreadRefused(RequestRefused):
    """The message does not allow replies: the answer is posted in the channel."""


class ChannelUnknown(RequestRefused):
    """The channel does not exist, or is private and the bot is not in it."""


class StreamClosed(PlatformError):
    """A message is not live any more and cannot grow, or is still live and cannot be edited."""

    kind = "not_streaming"


KINDS: Mapping[str | int, type[PlatformError]] = MappingProxyType(
    {
        **dict.fromkeys(("message_not_found", "thread_not_found", "no_such_message"), PostGone),
        **dict.fromkeys(("ratelimited", "rate_limited", "message_limit_exceeded"), RateLimited),
        **dict.fromkeys(
            ("message_not_in_streaming_state", "stopped_by_user", "streaming_state_conflict"), StreamClosed
        ),
        **dict.fromkeys(("edit_window_closed", "cant_update_message"), EditRefused),
        "channel_not_found": ChannelUnknown,
        **dict.fromkeys(
            (
                "cannot_reply_to_message",
                "restricted_action_non_threadable_channel",
                "restricted_action_thread_locked",
            ),
            ThreadRefused,
        ),
        **dict.fromkeys(
            ("account_inactive", "invalid_auth", "not_authed", "token_expired", "token_revoked"), AccessDenied
        ),
        **dict.fromkeys(
            (
                *("accesslimited", "fatal_error", "internal_error", "org_login_required", "request_timeout"),
                *("service_unavailable", "team_added_to_org"),
            ),
            PlatformUnavailable,
        ),
        **dict.fromkeys(
            (
                *("block_mismatch", "invalid_arguments", "invalid_attachments", "invalid_blocks"),
                *("invalid_blocks_format", "invalid_chunks", "invalid_metadata_format", "invalid_metadata_schema"),
                *("metadata_too_large", "markdown_text_conflict", "msg_blocks_too_long", "msg_too_long", "no_text"),
                "too_many_attachments",
            ),
            ContentRefused,
        ),
    }
)
HINTS: Mapping[str | int, str] = MappingProxyType(
    {
        "is_archived": "The channel is archived.",
        "channel_not_found": "The bot is not in the channel, or the channel is gone: invite the bot.",
        "not_in_channel": "The bot is not in the channel: invite it.",
        "missing_scope": "The app lacks a scope: compare it with slack-manifest.yaml, and install it again.",
        "invalid_auth": "The bot token is not valid: copy it again from the app's page.",
        "not_authed": "The bot token is missing.",
        "account_inactive": "The bot was removed from the workspace: install the app again.",
        "token_revoked": "The bot token was revoked: install the app again.",
        "token_expired": "The bot token has expired: turn token rotation off, and install the app again.",
    }
)


class SlackApiClient(ApiClient):
    """Calls Slack's methods in one workspace."""

    pacing: Lanes

    async def respond(self, url: str, body: Mapping[str, Any]) -> None:
        """Post a message to the `response_url` of a command or button, once. Raises `PlatformError`."""
        reply = await send(self.session, "Slack", RESPOND, url, json=dict(body))
        word = reply.content.decode("ascii", "replace")
        is_word = _WORD.fullmatch(word) and word != "null"
        ok = word == "ok" if is_word else reply.field("ok")
        if ok is True and reply.status not in {LIMITED, *range(500, 600)}:
            return
        # After any refusal of this address, even by a proxy, the API can still post the message.
        refused = isinstance(ok, bool) or reply.status not in _IN_DOUBT
        worded = {"ok": False, "error": "expired_url"} if refused else None
        error = self.api.explain(RESPOND, Reply(reply.status, reply.headers, worded))
        raise error or PlatformUnavailable("Slack does not answer response_url.")


_WORD = re.compile(r"[a-z_]{1,60}")
_IN_DOUBT = frozenset({200, 408})  # statuses after which a foreign reply leaves the post in doubt


@asynccontextmanager
async def open_api(
    token: str, url: str, pacing: Lanes | None = None, observe: ObserveCall = ignore_call
) -> AsyncIterator[SlackApiClient]:
    """Open the API client of one workspace for the block."""
    api = Api(
        "Slack",
        url.rstrip("/"),
        authorization=f"Bearer {token}",
        form=True,
        ok_field="ok",
        code_field="error",
        kinds=KINDS,
        hints=HINTS,
    )
    async with open_session() as session:
        yield SlackApiClient(session, api, pacing or Lanes(), observe)
