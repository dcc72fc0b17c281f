"""Mattermost's API v4: its routes, its rate limit and its error codes.

A post is never repeated: callers look for it first if the response was lost. `pending_post_id` prevents duplicates of a
post that the server is still saving, for half a minute and on one node of a cluster.
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import Any

from bot.desk.platform_port import PlatformError, PostGone
from bot.platforms.shared.api_client import (
    Api,
    ApiClient,
    EditRefused,
    ObserveCall,
    RequestRefused,
    ignore_call,
    open_session,
)
from bot.platforms.shared.payload_text import Json
from bot.platforms.shared.rate_limit import Lanes, Rate, Route

ME = Route("GET", "/users/me")
MY_TEAMS = Route("GET", "/users/me/teams")
MY_CHANNELS = Route("GET", "/users/me/teams/{team}/channels")
USER = Route("GET", "/users/{user}")
TEAM_MEMBER = Route("GET", "/teams/{team}/members/{user}")
CHANNEL = Route("GET", "/channels/{channel}")
CHANNEL_MEMBER = Route("GET", "/channels/{channel}/members/{user}")
DIRECT = Route("POST", "/channels/direct")  # returns the DM of two users, creating it once
READ = Route("GET", "/channels/{channel}/posts")
READ_ONE = Route("GET", "/posts/{post}")
THREAD = Route("GET", "/posts/{post}/thread")
POST = Route("POST", "/posts", repeatable=False)
EDIT = Route("PUT", "/posts/{post}/patch")
DELETE = Route("DELETE", "/posts/{post}")
REACT = Route("POST", "/reactions")
UNREACT = Route("DELETE", "/users/me/posts/{post}/reactions/{emoji}")
TYPING = Route("POST", "/users/me/typing")
OPEN_DIALOG = Route("POST", "/actions/dialogs/open", repeatable=False)

PAGE = 200  # posts of a call, the most that Mattermost allows


class NotAllowed(RequestRefused):
    """The bot lacks permission, or the server hides from it whether something exists."""


class NotFound(RequestRefused):
    """The channel, person or membership does not exist."""


KINDS: Mapping[str | int, type[PlatformError]] = MappingProxyType(
    {
        "app.post.get.app_error": PostGone,
        "api.post.update_post.permissions_details.app_error": PostGone,
        "api.post.update_post.permissions_time_limit.app_error": EditRefused,
    }
)
_UNFIT = ("model.post.is_valid.", "api.post.create_post.attachment", "app.post.save.props")
HINTS: Mapping[str | int, str] = MappingProxyType(
    {
        "api.context.session_expired.app_error": "The token is not valid: make one on the bot account's page.",
        "api.context.permissions.app_error": "The bot is not in the channel, or may not post there: add it.",
        "api.post.create_post.can_not_post_to_deleted.error": "The channel is archived.",
    }
)
_BURST = 10  # seconds whose calls may be made at once: at 10 a second the server accepts 100 at once


def build_pacing(calls: int, *clock: Any) -> Lanes:
    """Return the rate limit of one account: `calls` a second, of all routes together."""
    return Lanes(*clock, together=Rate(calls * _BURST, _BURST))


@asynccontextmanager
async def open_api(
    token: str, url: str, pacing: Lanes | None = None, observe: ObserveCall = ignore_call
) -> AsyncIterator[ApiClient]:
    """Open the API client of one account for the block."""
    api = Api(
        "Mattermost",
        f"{url}/api/v4",
        authorization=f"Bearer {token}",
        safe="+",
        code_field="id",
        kinds=KINDS,
        unfit=_UNFIT,
        by_status={403: NotAllowed, 404: NotFound},
        hints=HINTS,
        wait_headers=("Retry-After", "X-RateLimit-Reset"),
        wait_seconds=1.0,
        banned_seconds=1.0,
    )
    async with open_session() as session:
        yield ApiClient(session, api, pacing or build_pacing(10), observe)


def list_posts(page: Json) -> list[Json]:
    """Return the posts that a page lists, newest first, without deleted ones and older versions; pure."""
    posts = page.get("posts")
    by_id = posts if isinstance(posts, Mapping) else {}
    listed = [by_id[post] for post in page.get("order") or () if isinstance(by_id.get(post), Mapping)]
    present = [post for post in listed if not post.get("delete_at") and not post.get("original_id")]
    return sorted(present, key=lambda post: (post.get("create_at", 0), str(post.get("id"))), reverse=True)
