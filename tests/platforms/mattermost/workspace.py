"""The fake Mattermost as a workspace: users who write there, and what they read."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from bot.platforms.mattermost.messages import hash_key, read_mark
from tests.platforms.clock import SPEED, FastClock
from tests.platforms.mattermost.running import run_bot
from tests.platforms.mattermost.server import FakeMattermost, serve
from tests.platforms.mattermost.state import ANA, BEN, BOT, CLEO, GENERAL, PIER, PRIVATE, TEAM, Post
from tests.platforms.mattermost.transcript import EMOJI, attachments, pressable, words
from tests.platforms.workspace import Read, Workspace


@dataclass
class MattermostWorkspace(Workspace):
    """With `http` the server reaches the bot, so that posts have buttons. Otherwise reactions replace them."""

    server: FakeMattermost

    name = "mattermost"
    team = TEAM
    users = (ANA, BEN, CLEO)
    channels = (GENERAL, PIER, PRIVATE)
    calls = {"post": ("post",), "edit": ("edit",), "delete": ("delete",), "find": ("find",)}  # noqa: RUF012
    run = staticmethod(run_bot)

    def _set_bot_url(self, url: str) -> None:
        self.server.bot_url = url

    async def write(self, text: str, *, user: str, channel: str, thread: str = "", **facts: Any) -> str:
        """Add a post, in the thread of another if one is given, and return its id."""
        root = self.server.state.posts[thread].root or thread if thread else ""
        return self.server.write(user, self.server.state.channels[channel], text, root=root, **facts).id

    async def say(self, text: str, *, user: str = ANA, channel: str = GENERAL, thread: str = "", **more: Any) -> str:
        place = self.server.state.direct(user, BOT).id if more.get("dm") else channel
        silent = bool(more.get("silent"))
        written = text if more.get("dm") or silent or more.get("unasked") else f"@footnote {text}"
        written = f"@footnote !private {text}" if more.get("only_asker") else written
        asked = await self.write(written, user=user, channel=place, thread=thread, silent=silent)
        self.server.state.channels[place].archived |= place in self._closing
        return asked

    async def again(self, message: str) -> None:
        self.server.send_posted_event(self.server.state.posts[message])

    async def rewrite(self, message: str, text: str) -> None:
        post = self.server.state.posts[message]
        self.server.rewrite(post, f"@footnote {text}" if "@footnote" in post.message else text, post.props)

    async def erase(self, message: str) -> None:
        self.server.erase(self.server.state.posts[message])

    async def _press(self, action: str, message: str, user: str) -> None:
        """Press a button, or add the reaction that does the same."""
        post = self.server.state.posts[message]
        assert action in pressable(post), f"there is no {action} to press"
        self.press_anyway(action, post, user)
        for button in (action for attached in attachments(post) for action in attached.get("actions", ())):
            if button["id"] == action:
                await self._call_back(post, button["integration"], user)

    def press_anyway(self, action: str, post: Post, user: str) -> None:
        """React to a post, whether or not it shows that one may."""
        if not self.http:
            post.reactions = [reaction for reaction in post.reactions if reaction != (user, EMOJI[action])]
            self.server.react(user, post, EMOJI[action])

    async def _call_back(self, post: Post, integration: dict[str, Any], user: str) -> None:
        """Send a press to the bot, and show the user its response."""
        facts = {"user_id": user, "channel_id": post.channel, "post_id": post.id, "type": "button"}
        facts |= {"team_id": self.server.state.channels[post.channel].team, "trigger_id": self.server.state.new_id()}
        self.server.triggers[facts["trigger_id"]] = user
        url = self.server.bot_url + urlsplit(integration["url"]).path
        body = {**facts, "context": integration["context"]}
        async with aiohttp.ClientSession() as http, http.post(url, json=body) as response:
            assert response.status == 200, response.status
            text = str((await response.json()).get("ephemeral_text", ""))
        if text:
            self.server.whisper(user, post.channel, text)

    def modal(self, user: str) -> str:
        """Return what the dialog that a user has open shows."""
        dialog = self.server.dialogs.get(user, {}).get("dialog", {"title": "", "elements": ()})
        return "\n".join([dialog["title"], *(str(one) for one in dialog["elements"])]).strip()

    async def submit(self, *, user: str, channel: str = GENERAL, forged: str = "", **values: str) -> tuple[int, Any]:
        """Submit the dialog that a user has open, as the server does, or as `forged` says it was another user.

        Returns the bot's response. A refused dialog stays open.
        """
        opened = self.server.dialogs[user]
        for one in opened["dialog"]["elements"]:
            value = values.get(one["name"], "")
            assert value or one.get("optional"), "a client requires this field"
            assert not one.get("options") or value in {option["value"] for option in one["options"]}
            assert len(value) <= one.get("max_length", 3_000)
        facts = {"type": "dialog_submission", "callback_id": "", "state": opened["dialog"]["state"], "cancelled": False}
        body = {**facts, "user_id": forged or user, "channel_id": channel, "team_id": TEAM, "submission": values}
        url = self.server.bot_url + urlsplit(opened["url"]).path
        async with aiohttp.ClientSession() as http, http.post(url, json=body) as response:
            answer = await response.json() if response.status == 200 else {}
        if response.status == 200 and not answer.get("error"):
            del self.server.dialogs[user]
        return response.status, answer

    async def turn_page(self, user: str) -> None:
        """Do nothing: Mattermost shows all pages at once."""

    async def invite(self, channel: str) -> None:
        """Add the bot to a channel, which the server posts there."""
        kind, props = "system_add_to_channel", {"addedUserId": BOT, "addedUsername": "footnote"}
        await self.write("ana added footnote.", user=ANA, channel=channel, kind=kind, props=props)

    def answer(self, message: str) -> tuple[Read, ...]:
        """Return the posts that are marked as an answer to a message. A private one is in the user's DM."""
        asked = self.server.state.posts[message]
        team = self.server.state.channels[asked.channel].team
        key = hash_key(f"mattermost:{team}/{asked.channel}/{message}")
        found = [post for post in self.server.state.posts.values() if post.user == BOT and not post.delete_at]
        marked = sorted((mark.page, one.create_at, one.id) for one in found if (mark := _mark(one)) and mark.key == key)
        return tuple(_read(self.server.state.posts[number]) for _, _, number in marked)

    def ours(self, channel: str) -> list[Post]:
        return [post for post in self.server.state.here(channel) if post.user == BOT]

    def seen(self, channel: str, *, by: str) -> tuple[Read, ...]:
        """Return the bot's posts in a channel and in the user's DM, and what that user was shown for a while."""
        direct = self.server.state.direct(by, BOT).id
        places = [channel, direct] if direct != channel else [channel]
        whispered = [Read("", text, ()) for who, where, text in self.server.whispered if who == by and where in places]
        return (*(_read(one) for place in places for one in self.ours(place)), *whispered)

    def find_thread(self, text: str) -> str:
        (found,) = [post.root for post in self.server.state.posts.values() if text in words(post.message)]
        return found

    def read_payloads(self, message: str) -> list[Any]:
        posts = self.server.state.posts
        return [(posts[one.id].message, posts[one.id].props) for one in self.answer(message)]

    @property
    def pending(self) -> int:
        return len(self._presses) + self.server.sockets.unread

    @property
    def posted(self) -> int:
        return self.server.posts


def _mark(post: Post) -> Any:
    return read_mark({"props": post.props})


def _read(post: Post) -> Read:
    return Read(post.id, words(post.message), pressable(post))


def workspaces(
    *, http: bool = False, speed: float = SPEED
) -> Callable[[], AbstractAsyncContextManager[MattermostWorkspace]]:
    """Return what opens a workspace whose time passes `speed` as fast as real time."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[MattermostWorkspace]:
        async with serve(clock=FastClock(speed)) as server:
            yield MattermostWorkspace(server, http=http)

    return opened
