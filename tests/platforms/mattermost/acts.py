"""What people do on the fake Mattermost."""

from typing import Any
from urllib.parse import urlsplit

import aiohttp

from tests.platforms.mattermost.seeing import EMOJI, attachments
from tests.platforms.mattermost.server import FakeMattermost
from tests.platforms.mattermost.world import BOT, Post


async def say(server: FakeMattermost, text: str, *, user: str, channel: str, thread: str = "", **more: Any) -> str:
    """Write a post, in the thread of another if one is given, and return its id."""
    root = server.world.posts[thread].root or thread if thread else ""
    return server.write(user, server.world.channels[channel], text, root=root, **more).id


async def press(server: FakeMattermost, action: str, message: str, *, user: str) -> str:
    """Press a button, or add the reaction that does the same; return what a button shows whoever pressed."""
    post = server.world.posts[message]
    for button in (one for attached in attachments(post) for one in attached.get("actions", ())):
        if button["id"] == action:
            return await _call_back(server, post, button["integration"], user)
    emoji = EMOJI[action]
    post.reactions = [one for one in post.reactions if one != (user, emoji)]  # taken away, to be added again
    server.react(user, post, emoji)
    return ""


async def _call_back(server: FakeMattermost, post: Post, integration: dict[str, Any], user: str) -> str:
    """Hand on to the bot what somebody pressed, as the server does."""
    team = server.world.channels[post.channel].team
    facts = {"user_id": user, "channel_id": post.channel, "team_id": team, "post_id": post.id, "type": "button"}
    body = {**facts, "trigger_id": "trigger", "context": integration["context"]}
    url = server.reached + urlsplit(integration["url"]).path
    async with aiohttp.ClientSession() as http, http.post(url, json=body) as answer:
        assert answer.status == 200, answer.status
        told = await answer.json()
    words = str(told.get("ephemeral_text", ""))
    if words:
        server.whisper(user, post.channel, words)
    return words


def ours(server: FakeMattermost, channel: str) -> list[Post]:
    """Return the bot's posts that stand in a channel."""
    return [one for one in server.world.here(channel) if one.user == BOT]
