"""The fake Mattermost as a street of the contract suite: people who write there, and what they read."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from bot.app import App
from bot.desk.platform_port import Platform
from bot.platforms.mattermost.messages import LIMITS, hash_key, read_mark
from bot.settings.tables.settings_tables import ChannelValues
from tests.platforms.contract import Call, Failure, Read, Street
from tests.platforms.desks import SOONER
from tests.platforms.mattermost import acts
from tests.platforms.mattermost.joining import joined
from tests.platforms.mattermost.seeing import pressable, words
from tests.platforms.mattermost.server import BROKEN, LIMITED, LOST, FakeMattermost, Fault, serve
from tests.platforms.mattermost.world import ANA, BEN, BOT, CLEO, GENERAL, PIER, PRIVATE, TEAM, Post
from tests.platforms.slack.clock import FastClock
from tests.platforms.world import reconfigured

_FAILURES: dict[Failure, Fault] = {"limited": LIMITED, "broken": BROKEN, "lost": LOST}


@dataclass
class MattermostStreet:
    """Implements `contract.Street`."""

    server: FakeMattermost
    buttons: bool = False
    """Whether the server reaches the bot over HTTP, so that there are buttons; else reactions take their place."""
    every: bool = True
    """Whether the channels are set to have every question answered."""
    name: str = "mattermost"
    workspace: str = TEAM
    people: tuple[str, str, str] = (ANA, BEN, CLEO)
    channels: tuple[str, str, str] = (GENERAL, PIER, PRIVATE)
    longest: int = LIMITS.message
    _closing: set[str] = field(default_factory=set)
    _later: list[tuple[str, str, str]] = field(default_factory=list)
    """What was pressed while nobody was there."""
    _up: bool = False

    async def say(self, text: str, *, user: str, channel: str, thread: str = "", dm: bool = False, **more: Any) -> str:
        """Write to the bot: mention it where nothing else is said. `silent` tells nobody."""
        place = self.server.world.direct(user, BOT).id if dm else channel
        silent = bool(more.get("silent"))
        written = text if dm or silent or more.get("unasked") else f"@footnote {text}"
        written = f"@footnote !private {text}" if more.get("only_asker") else written
        asked = await acts.say(self.server, written, user=user, channel=place, thread=thread, silent=silent)
        self.server.world.channels[place].archived |= place in self._closing
        return asked

    async def again(self, message: str) -> None:
        self.server.tell_posted(self.server.world.posts[message])

    async def rewrite(self, message: str, text: str) -> None:
        """Edit a message; it mentions the bot as before."""
        post = self.server.world.posts[message]
        self.server.rewrite(post, f"@footnote {text}" if "@footnote" in post.message else text, post.props)

    async def erase(self, message: str) -> None:
        self.server.erase(self.server.world.posts[message])

    async def press(self, action: str, message: str, *, user: str) -> None:
        """Press a button, or react; who finds nobody there does so again when somebody is."""
        if not self._up:
            self._later.append((action, message, user))
            return
        post = self.server.world.posts[message]
        assert action in pressable(post), f"there is no {action} to press"
        await acts.press(self.server, action, message, user=user)

    async def archive(self, channel: str) -> None:
        """Archive a channel as soon as one more message was written there, for nobody could write one after."""
        self._closing.add(channel)

    async def invite(self, channel: str) -> bool:
        """Take the bot into a channel, which the server posts there."""
        kind, props = "system_add_to_channel", {"addedUserId": BOT, "addedUsername": "footnote"}
        await acts.say(self.server, "ana added footnote.", user=ANA, channel=channel, kind=kind, props=props)
        return True

    def answer(self, message: str) -> tuple[Read, ...]:
        """Return what stands in answer to a message, by its mark; what one person alone sees stands in their DM."""
        asked = self.server.world.posts[message]
        team = self.server.world.channels[asked.channel].team
        key = hash_key(f"mattermost:{team}/{asked.channel}/{message}")
        found = [one for one in self.server.world.posts.values() if one.user == BOT and not one.delete_at]
        marked = sorted((mark.page, one.create_at, one.id) for one in found if (mark := _mark(one)) and mark.key == key)
        return tuple(_read(self.server.world.posts[number]) for _, _, number in marked)

    def seen(self, channel: str, *, by: str) -> tuple[Read, ...]:
        """Return all of the bot's messages that somebody sees in a channel, and in their DM with it."""
        direct = self.server.world.direct(by, BOT).id
        places = [channel, direct] if direct != channel else [channel]
        told = [Read("", text, ()) for who, where, text in self.server.whispered if who == by and where in places]
        return (*(_read(one) for place in places for one in acts.ours(self.server, place)), *told)

    def stumble(self, call: Call, failure: Failure) -> None:
        self.server.faults[call].append(_FAILURES[failure])

    @property
    def pending(self) -> int:
        """How many events were not surely read, and how much was pressed while nobody was there."""
        return len(self._later) + self.server.sockets.unread

    @property
    def refused(self) -> list[str]:
        return self.server.refused

    @property
    def pings(self) -> list[str]:
        return self.server.pings

    @property
    def links(self) -> list[str]:
        return self.server.links

    async def until(self, holds: Callable[[], object]) -> None:
        await self.server.until(holds)

    @asynccontextmanager
    async def joined(self, app: App) -> AsyncIterator[Platform]:
        """Run the bot within the block; it answers without a mention, too."""
        async with joined(
            listening(app, self.channels) if self.every else app, self.server, buttons=self.buttons
        ) as platform:
            self._up = True
            while self._later:
                action, message, user = self._later.pop(0)
                await self.press(action, message, user=user)
            try:
                yield platform
            finally:
                self._up = False
        assert self.server.errors == []


def _mark(post: Post) -> Any:
    return read_mark({"props": post.props})


def _read(post: Post) -> Read:
    return Read(post.id, words(post.message), pressable(post))


def listening(app: App, channels: tuple[str, ...]) -> App:
    """Return the app with these channels answering every question, as settings would have it."""
    kept = {channel.id: channel for channel in app.settings.channel}
    for name in (f"mattermost:{TEAM}/{channel}" for channel in channels):
        kept[name] = kept.get(name, ChannelValues(id=name)).model_copy(update={"answer": "every"})
    return reconfigured(app, channel=tuple(kept.values()))


def house(*, buttons: bool = False) -> Callable[[], AbstractAsyncContextManager[Street]]:
    """Return what the contract suite runs on. Its time passes as fast as the desk's does there."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Street]:
        async with serve(clock=FastClock(SOONER)) as server:
            yield MattermostStreet(server, buttons)

    return opened
