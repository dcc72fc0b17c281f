"""The fake Discord as a street of the contract suite: people who write there, and what they read.

An adapter's tests give what joins a bot to the server, and get what `contract.HOUSES` holds:

    @asynccontextmanager
    async def joined(app: App, discord: FakeDiscord) -> AsyncIterator[Platform]: ...

    HOUSES = {"discord": house(joined)}
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from bot.app import App
from bot.desk.platform_port import Platform
from bot.platforms.discord.messages import COMPONENTS, build_mark
from bot.settings.tables.settings_tables import ChannelValues
from tests.platforms.contract import Call, Failure, Read, Street
from tests.platforms.desks import SOONER
from tests.platforms.discord.components import nested
from tests.platforms.discord.faults import LIMITED, LOST, UNAVAILABLE, Fault
from tests.platforms.discord.seeing import modal, words
from tests.platforms.discord.server import serve
from tests.platforms.discord.state import FakeDiscord
from tests.platforms.discord.world import BOT, GUILD, LOADING, Message
from tests.platforms.slack.clock import FastClock
from tests.platforms.world import reconfigured

Joined = Callable[[App, FakeDiscord], AbstractAsyncContextManager[Platform]]
"""Runs a bot within the block."""
PREFIX = "footnote:"
_ROUTES: dict[Call, tuple[str, ...]] = {
    "post": ("create_message", "follow_up"),
    "edit": ("edit_message", "edit_response"),
    "delete": ("delete_message", "delete_response"),
    "find": ("get_messages", "get_message"),
}
_FAILURES: dict[Failure, Fault] = {"limited": LIMITED, "broken": UNAVAILABLE, "lost": LOST}


@dataclass
class DiscordStreet:
    """Implements `contract.Street`."""

    discord: FakeDiscord
    opened: Joined
    name: str = "discord"
    workspace: str = GUILD
    people: tuple[str, str, str] = ("101", "102", "103")
    channels: tuple[str, str, str] = ("201", "202", "203")
    longest: int = COMPONENTS.message
    _closing: set[str] = field(default_factory=set)
    _later: list[tuple[str, str, str]] = field(default_factory=list)
    """What was pressed while nobody was there."""
    _up: bool = False

    def __post_init__(self) -> None:
        for routes in _ROUTES.values():
            shared: list[Fault] = []
            self.discord.faults.update(dict.fromkeys(routes, shared))

    async def say(self, text: str, *, user: str, channel: str, thread: str = "", dm: bool = False, **more: Any) -> str:
        """Write to the bot: mention it where nothing else is said. An answer for the asker alone is had by `/ask`.

        `thread` is a message that is replied to, or the last of those that people replied to it with. `silent` tells
        nobody.
        """
        acts = self.discord.acts
        if more.get("only_asker"):
            used = await acts.command("ask", user=user, channel=channel, question=text, private=True)
            return f"command {used.id}"
        place, silent = self.discord.world.dm(user).id if dm else channel, bool(more.get("silent"))
        written = text if dm or silent or more.get("unasked") else f"<@{BOT}> {text}"
        reply = self._last(thread) if thread else ""
        asked = await acts.say(written, user=user, channel=place, reply=reply, silent=silent)
        if place in self._closing:
            await acts.deny(place, whom=GUILD)
        return asked

    async def again(self, message: str) -> None:
        """Deliver a message's event once more."""
        await self.discord.acts.again(message)

    async def rewrite(self, message: str, text: str) -> None:
        """Edit a message; it mentions the bot as before."""
        mention = f"<@{BOT}> " if f"<@{BOT}>" in self.discord.acts.find(message).content else ""
        await self.discord.acts.edit(message, mention + text)

    async def erase(self, message: str) -> None:
        """Delete a message."""
        await self.discord.acts.delete(message)

    async def press(self, action: str, message: str, *, user: str) -> None:
        """Press a button; who finds nobody there presses again when somebody is."""
        if not self._up:
            self._later.append((action, message, user))
            return
        pressed = [one for one in _custom_ids(self.discord.acts.find(message)) if _action(one) == action]
        assert pressed, f"there is no {action} to press"
        await self.discord.acts.press(pressed[0], message, user=user)
        if action == "retract":
            await self._sure(user)

    async def archive(self, channel: str) -> None:
        """Let nobody write to a channel as soon as one more message was written there."""
        self._closing.add(channel)

    async def invite(self, channel: str) -> bool:
        """Take the bot into the guild, whose newcomers are greeted in this channel."""
        self.discord.world.guilds[GUILD].system = channel
        await self.discord.acts.invite(GUILD)
        return True

    def answer(self, message: str) -> tuple[Read, ...]:
        """Return what stands in answer to a message: what replies to it, or answers a command."""
        ours = [one for one in self.discord.world.ours() if not one.flags & LOADING]
        if message.startswith("command "):
            used = message.split()[1]
            sign = build_mark(f"discord:interaction/{used}")
            found = [one for one in ours if used == one.interaction or _mark(one) == sign]
        else:
            found = [one for one in ours if not one.only and (one.reference or {}).get("message_id") == message]
        return tuple(map(self._read, found))

    def seen(self, channel: str, *, by: str) -> tuple[Read, ...]:
        """Return all of the bot's messages that somebody sees in a channel, and the modal that they have open."""
        here = [one for one in self.discord.world.ours() if one.channel == channel and one.only in {"", by}]
        opened = self.discord.modals.get(by)
        shown = [Read(opened.id, modal(opened.modal, self.discord.world), ())] if opened and opened.modal else []
        return (*map(self._read, here), *shown)

    def stumble(self, call: Call, failure: Failure) -> None:
        """Let the next call of a kind fail once."""
        self.discord.faults[_ROUTES[call][0]].append(_FAILURES[failure])

    @property
    def pending(self) -> int:
        """How much of what people did is not acknowledged yet: what was not read surely, and what was pressed."""
        used = [one for one in self.discord.world.interactions.values() if one.told]
        open_yet = sum(not one.acked and not self.discord.too_late(one) for one in used)
        put_off = sum(bool(one.flags & LOADING) for one in self.discord.world.ours())
        unread = sum(session.unread for session in self.discord.gateway.connected)
        return len(self._later) + unread + open_yet + put_off

    @property
    def refused(self) -> list[str]:
        """What Discord refused."""
        return list(map(str, self.discord.refused))

    @property
    def pings(self) -> list[str]:
        """Everybody that a client could have pinged."""
        return self.discord.pings

    @property
    def links(self) -> list[str]:
        """Every address that a client could have linked to."""
        return self.discord.links

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds."""
        await self.discord.until(holds)

    @asynccontextmanager
    async def joined(self, app: App) -> AsyncIterator[Platform]:
        """Run the bot within the block; it answers without a mention, too."""
        async with self.opened(listening(app, self.channels), self.discord) as platform:
            self._up = True
            while self._later:
                action, message, user = self._later.pop(0)
                await self.press(action, message, user=user)
            try:
                yield platform
            finally:
                self._up = False
        assert self.discord.errors == []
        assert self.discord.gateway.closes == []

    async def _sure(self, user: str) -> None:
        """Press that one is sure, when one is asked."""

        def asked() -> list[tuple[str, str]]:
            ours = [one for one in self.discord.world.ours() if one.only == user]
            return [(found, one.id) for one in ours for found in _custom_ids(one) if _action(found) == "back"]

        await self.until(asked)
        await self.discord.acts.press(*asked()[0], user=user)
        await self.until(lambda: not asked())

    def _last(self, message: str) -> str:
        """Return the last message of those that people replied with, one to another."""
        people = [one for one in self.discord.world.messages.values() if one.user != BOT and one.reference]
        replies = [one.id for one in people if (one.reference or {})["message_id"] == message]
        return self._last(replies[-1]) if replies else message

    def _read(self, message: Message) -> Read:
        actions = dict.fromkeys(map(_action, _custom_ids(message)))
        return Read(message.id, words(message, self.discord.world), tuple(actions))


def _custom_ids(message: Message) -> list[str]:
    return [one["custom_id"] for _, one in nested(message.components) if one.get("custom_id")]


def _mark(message: Message) -> int:
    """Return what marks a message as one of an answer: what does not fit where a command is answered stands below."""
    return next((int(one["id"]) for one in message.components), 0)


def _action(custom_id: str) -> str:
    """Return which of the desk's actions a button does."""
    return custom_id.removeprefix(PREFIX).partition(":")[0]


def listening(app: App, channels: tuple[str, ...]) -> App:
    """Return the app with these channels answering every question, as settings would have it."""
    kept = {channel.id: channel for channel in app.settings.channel}
    for name in (f"discord:{GUILD}/{channel}" for channel in channels):
        kept[name] = kept.get(name, ChannelValues(id=name)).model_copy(update={"answer": "every"})
    return reconfigured(app, channel=tuple(kept.values()))


def house(joined: Joined) -> Callable[[], AbstractAsyncContextManager[Street]]:
    """Return what the contract suite runs on. Its time passes as fast as the desk's does there."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Street]:
        async with serve(clock=FastClock(SOONER), leisure=SOONER) as discord:
            yield DiscordStreet(discord, joined)

    return opened
