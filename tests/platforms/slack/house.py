"""The fake Slack as a street of the contract suite: people who write there, and what they read.

An adapter's tests give what joins a bot to the server, and get what `contract.HOUSES` holds:

    @asynccontextmanager
    async def joined(app: App, slack: FakeSlack) -> AsyncIterator[Platform]: ...

    HOUSES = {"slack": house(joined), "slack over HTTP": house(joined, mode="http")}
"""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from bot.app import App
from bot.desk.platform_port import Platform
from bot.platforms.slack.messages import SECTIONS
from bot.settings.tables.settings_tables import ChannelValues
from tests.platforms.contract import Call, Failure, Read, Street
from tests.platforms.desks import SOONER
from tests.platforms.slack import interactions
from tests.platforms.slack.clock import FastClock
from tests.platforms.slack.delivery import Delivery
from tests.platforms.slack.faults import LIMITED, LOST, UNAVAILABLE, Fault
from tests.platforms.slack.seeing import modal, words
from tests.platforms.slack.server import serve
from tests.platforms.slack.state import FakeSlack, Mode
from tests.platforms.slack.world import BOT, TEAM, Message
from tests.platforms.world import reconfigured

Joined = Callable[[App, FakeSlack], AbstractAsyncContextManager[Platform]]
"""Runs a bot within the block."""
PREFIX = "footnote:"
_METHODS: dict[Call, tuple[str, ...]] = {
    "post": ("chat.postMessage", "chat.startStream"),
    "edit": ("chat.update", "chat.appendStream", "chat.stopStream"),
    "delete": ("chat.delete",),
    "find": ("conversations.replies", "conversations.history"),
}
_FAILURES: dict[Failure, Fault] = {"limited": LIMITED, "broken": UNAVAILABLE, "lost": LOST}
_OPINIONS = {"up": "positive", "down": "negative"}


@dataclass
class SlackStreet:
    """Implements `contract.Street`."""

    slack: FakeSlack
    opened: Joined
    name: str = "slack"
    workspace: str = TEAM
    people: tuple[str, str, str] = ("U1", "U2", "U3")
    channels: tuple[str, str, str] = ("C1", "C2", "C3")
    longest: int = SECTIONS.message
    _asked: dict[str, str] = field(default_factory=dict)
    """The messages that asked, by ts, and where; of commands who asked."""
    _closing: set[str] = field(default_factory=set)
    _later: list[tuple[str, str, str]] = field(default_factory=list)
    """What was pressed while nobody was there."""
    _up: bool = False

    def __post_init__(self) -> None:
        for methods in _METHODS.values():
            shared: list[Fault] = []
            self.slack.faults.update(dict.fromkeys(methods, shared))

    async def say(self, text: str, *, user: str, channel: str, thread: str = "", dm: bool = False, **more: Any) -> str:
        """Write to the bot: mention it where nothing else is said. An answer for the asker alone is had by `/ask`.

        `silent` tells nobody.
        """
        if more.get("only_asker"):
            delivery = await self.slack.acts.command("/ask", text, user=user, channel=channel)
            asked = f"command {delivery.payload['trigger_id']}"
            self._asked[asked] = f"{channel} {user} {self.slack.world.ts()}"
            return asked
        place = self.slack.world.dm(user).id if dm else channel
        silent = bool(more.get("silent"))
        written = text if dm or silent or more.get("unasked") else f"<@{BOT}> {text}"
        asked = await self.slack.acts.say(written, user=user, channel=place, thread=thread, silent=silent)
        self.slack.world.channels[place].archived |= place in self._closing
        self._asked |= {} if silent else {asked: place}
        return asked

    async def again(self, message: str) -> None:
        """Deliver a message's events once more, as new ones."""
        await self.slack.acts.again(message)

    async def rewrite(self, message: str, text: str) -> None:
        """Edit a message; it mentions the bot as before."""
        mention = f"<@{BOT}> " if f"<@{BOT}>" in self.slack.acts.find(message).text else ""
        await self.slack.acts.edit(message, mention + text)

    async def erase(self, message: str) -> None:
        """Delete a message."""
        await self.slack.acts.delete(message)

    async def press(self, action: str, message: str, *, user: str) -> None:
        """Press a button; who finds nobody there presses again when somebody is."""
        if not self._up:
            self._later.append((action, message, user))
            return
        for _, element in _pressable(self.slack.acts.find(message)):
            chosen = _OPINIONS.get(action) if element["type"] == "feedback_buttons" else None
            if action in _actions(element):
                await self.slack.acts.press(element["action_id"], message, user=user, chosen=chosen)
                return
        raise AssertionError(f"there is no {action} to press")

    async def archive(self, channel: str) -> None:
        """Archive a channel as soon as one more message was written there, for nobody could write one after."""
        self._closing.add(channel)

    async def invite(self, channel: str) -> bool:
        """Take the bot into a channel."""
        await self.slack.acts.invite(channel)
        return True

    def answer(self, message: str) -> tuple[Read, ...]:
        """Return what stands in answer to a message: what is marked so, and what is streamed while it is unmarked."""
        if message.startswith("command "):
            channel, user, after = self._asked[message].split()
            # What has no blocks only says that an answer comes.
            mine = [one for one in self.slack.world.ours() if (one.channel, one.only) == (channel, user) and one.blocks]
            return tuple(self._read(one) for one in mine if one.ts > after)
        found = [one for one in self.slack.world.ours() if not one.only and self._owner(one) == message]
        return tuple(map(self._read, found))

    def seen(self, channel: str, *, by: str) -> tuple[Read, ...]:
        """Return all of the bot's messages that somebody sees in a channel, and the modal that they have open."""
        here = [one for one in self.slack.world.ours() if one.channel == channel and one.only in {"", by}]
        views = self.slack.world.views.get(by, [])[-1:]
        return (*map(self._read, here), *(Read(one.id, modal(one, self.slack.world), ()) for one in views))

    def stumble(self, call: Call, failure: Failure) -> None:
        """Let the next call of a kind fail once."""
        self.slack.faults[_METHODS[call][0]].append(_FAILURES[failure])

    @property
    def pending(self) -> int:
        """How much of what people did is not acknowledged yet."""
        return sum(map(_of_people, self.slack.courier.unacked)) + len(self._later)

    @property
    def refused(self) -> list[str]:
        """What Slack refused."""
        return [f"{one.method}: {one.error} {' '.join(one.messages)}".strip() for one in self.slack.refused]

    @property
    def pings(self) -> list[str]:
        """Everybody that a client would have pinged."""
        return self.slack.pings

    @property
    def links(self) -> list[str]:
        """Every address that a client would have linked to."""
        return self.slack.links

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds."""
        await self.slack.until(holds)

    @asynccontextmanager
    async def joined(self, app: App) -> AsyncIterator[Platform]:
        """Run the bot within the block; it answers without a mention, too."""
        async with self.opened(listening(app, self.channels), self.slack) as platform:
            self._up = True
            # Slack would come again within minutes; that is now.
            self.slack.courier.redeliver()
            while self._later:
                action, message, user = self._later.pop(0)
                await self.press(action, message, user=user)
            try:
                yield platform
            finally:
                self._up = False
        assert self.slack.errors == []
        assert self.slack.sockets.strange == []

    def _owner(self, message: Message) -> str:
        """Return which message a message of the bot's answers; questions of a thread are answered one after another."""
        if message.metadata:
            return _key(message).rpartition("/")[2]
        if not message.stream:
            return ""
        marked = {self._owner(one) for one in self.slack.world.ours() if one.metadata}
        asked = [one for one in self.slack.world.thread(message.channel, message.root) if one.ts in self._asked]
        open_yet = [one.ts for one in asked if one.ts < message.ts and one.ts not in marked and one.user != "USLACKBOT"]
        return open_yet[0] if open_yet else ""

    def _read(self, message: Message) -> Read:
        actions = [action for _, element in _pressable(message) for action in _actions(element)]
        return Read(message.ts, words(message, self.slack.world), tuple(dict.fromkeys(actions)))


def _of_people(delivery: Delivery) -> bool:
    """Return whether it is not an echo of what the bot did itself."""
    event = delivery.payload.get("event", {})
    written = event.get("message") or event.get("previous_message") or event
    return "bot_id" not in written


def _key(message: Message) -> str:
    metadata = message.metadata or {}
    return str(metadata["event_payload"].get("key", "")) if metadata.get("event_type") == "footnote_answer" else ""


def _pressable(message: Message) -> list[tuple[str, dict[str, Any]]]:
    streamed = message.stream.parts if message.stream else ()
    blocks = [block for kind, part in streamed if kind == "blocks" for block in part] + message.blocks
    return list(interactions.elements(blocks))


def _actions(element: dict[str, Any]) -> list[str]:
    """Return which of the desk's actions an element does."""
    if element["type"] == "feedback_buttons":
        return list(_OPINIONS)
    return [str(element["action_id"]).removeprefix(PREFIX)]


def listening(app: App, channels: tuple[str, ...]) -> App:
    """Return the app with these channels answering every question, as settings would have it."""
    kept = {channel.id: channel for channel in app.settings.channel}
    for name in (f"slack:{TEAM}/{channel}" for channel in channels):
        kept[name] = kept.get(name, ChannelValues(id=name)).model_copy(update={"answer": "every"})
    return reconfigured(app, channel=tuple(kept.values()))


def house(joined: Joined, *, mode: Mode = "socket") -> Callable[[], AbstractAsyncContextManager[Street]]:
    """Return what the contract suite runs on. Its time passes as fast as the desk's does there."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[Street]:
        async with serve(clock=FastClock(SOONER), mode=mode, leisure=SOONER) as slack:
            yield SlackStreet(slack, joined)

    return opened
