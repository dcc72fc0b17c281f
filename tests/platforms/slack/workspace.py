"""The fake Slack as a workspace: users who write there, and what they read."""

import hashlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.platforms.clock import SPEED, FastClock
from tests.platforms.fake_server import refused
from tests.platforms.slack import interactions
from tests.platforms.slack.delivery import Delivery
from tests.platforms.slack.running import run_bot
from tests.platforms.slack.server import FakeSlack, serve
from tests.platforms.slack.state import BOT, TEAM, Message
from tests.platforms.slack.transcript import modal, words
from tests.platforms.workspace import Read, Workspace

_OPINIONS = {"up": "positive", "down": "negative"}


@dataclass
class SlackWorkspace(Workspace):
    server: FakeSlack
    _asked: dict[str, str] = field(default_factory=dict)
    """The messages that asked, by ts, and their channel; of commands also who asked, and when."""

    name = "slack"
    team = TEAM
    users = ("U1", "U2", "U3")
    channels = ("C1", "C2", "C3")
    required = {"bot_token": "x", "app_token": "x"}  # noqa: RUF012
    calls = {  # noqa: RUF012
        "post": ("chat.postMessage", "chat.startStream"),
        "edit": ("chat.update", "chat.appendStream", "chat.stopStream"),
        "delete": ("chat.delete",),
        "find": ("conversations.replies", "conversations.history"),
    }
    run = staticmethod(run_bot)

    def _set_bot_url(self, url: str) -> None:
        self.server.requests.url = url

    def hear(self, word: str, value: str) -> None:
        super().hear(word, value)
        if word == "ready":  # Slack would send its events again within minutes
            self.server.courier.redeliver()

    def check(self) -> None:
        super().check()
        assert self.server.sockets.strange == []

    def forbid_streams(self) -> None:
        """Refuse live messages, as workspaces without them do."""
        self.server.faults["chat.startStream"] = [refused("feature_not_enabled")] * 20

    async def say(self, text: str, *, user: str = "U1", channel: str = "C1", thread: str = "", **more: Any) -> str:
        if more.get("only_asker"):
            delivery = await self.server.people.command("/ask", text, user=user, channel=channel)
            asked = f"command {delivery.payload['trigger_id']}"
            self._asked[asked] = f"{channel} {user} {self.server.state.ts()}"
            return asked
        place = self.server.state.dm(user).id if more.get("dm") else channel
        silent = bool(more.get("silent"))
        written = text if more.get("dm") or silent or more.get("unasked") else f"<@{BOT}> {text}"
        asked = await self.server.people.say(written, user=user, channel=place, thread=thread, silent=silent)
        self.server.state.channels[place].archived |= place in self._closing
        self._asked |= {} if silent else {asked: place}
        return asked

    async def again(self, message: str) -> None:
        await self.server.people.again(message)

    async def rewrite(self, message: str, text: str) -> None:
        mention = f"<@{BOT}> " if f"<@{BOT}>" in self.server.people.find(message).text else ""
        await self.server.people.edit(message, mention + text)

    async def erase(self, message: str) -> None:
        await self.server.people.delete(message)

    async def _press(self, action: str, message: str, user: str) -> None:
        for _, element in _pressable(self.server.people.find(message)):
            chosen = _OPINIONS.get(action) if element["type"] == "feedback_buttons" else None
            if action in _actions(element):
                await self.server.people.press(element["action_id"], message, user=user, chosen=chosen)
                return
        raise AssertionError(f"there is no button {action}")

    async def turn_page(self, user: str) -> None:
        await self.server.people.press_in_modal("footnote:page:on", user=user)

    async def invite(self, channel: str) -> None:
        await self.server.people.invite(channel)

    def answer(self, message: str) -> tuple[Read, ...]:
        """Return the messages that are marked as an answer to a message, or that stream while they are unmarked."""
        if message.startswith("command "):
            channel, user, after = self._asked[message].split()
            # A message without blocks only says that an answer comes.
            mine = [
                one for one in self.server.state.ours() if (one.channel, one.only) == (channel, user) and one.blocks
            ]
            return tuple(self._read(one) for one in mine if one.ts > after)
        found = [one for one in self.server.state.ours() if not one.only and self._owner(one) == message]
        return tuple(map(self._read, found))

    def seen(self, channel: str, *, by: str) -> tuple[Read, ...]:
        """Return the bot's messages that a user sees in a channel, and the modal that they have open."""
        here = [one for one in self.server.state.ours() if one.channel == channel and one.only in {"", by}]
        return (*map(self._read, here), *([Read("", self.modal(by), ())] if self.modal(by) else []))

    def modal(self, user: str) -> str:
        view = self.server.state.views.get(user)
        return modal(view, self.server.state) if view else ""

    def find_thread(self, text: str) -> str:
        (found,) = [message.thread for message in self.server.state.ours() if text in words(message, self.server.state)]
        return found

    def read_payloads(self, message: str) -> list[Any]:
        return [one.blocks for one in self.server.people.answers(message)]

    def question_key(self, message: str) -> str:
        kind, _, trigger = message.partition(" ")
        if trigger:
            return f"slack:{TEAM}/{kind}/{hashlib.sha256(trigger.encode()).hexdigest()[:32]}"
        return super().question_key(message)

    @property
    def pending(self) -> int:
        return sum(map(_is_by_user, self.server.courier.unacked)) + len(self._presses)

    @property
    def event_sent(self) -> bool:
        unacked = self.server.courier.unacked
        return bool(unacked and unacked[0].sent)

    async def settled(self) -> None:
        await self.until(lambda: not self.server.courier.unacked)

    @property
    def posted(self) -> int:
        state = self.server.state
        return sum(one.user == BOT for kept in (state.messages, state.gone) for one in kept.values())

    def _owner(self, message: Message) -> str:
        """Return which message the bot's answers; questions of a thread are answered one after another."""
        if message.metadata:
            return _key(message).rpartition("/")[2]
        if not message.stream:
            return ""
        marked = {self._owner(one) for one in self.server.state.ours() if one.metadata}
        asked = [one for one in self.server.state.thread(message.channel, message.root) if one.ts in self._asked]
        open_yet = [one.ts for one in asked if one.ts < message.ts and one.ts not in marked and one.user != "USLACKBOT"]
        return open_yet[0] if open_yet else ""

    def _read(self, message: Message) -> Read:
        actions = [action for _, element in _pressable(message) for action in _actions(element)]
        return Read(message.ts, words(message, self.server.state), tuple(dict.fromkeys(actions)))


def _is_by_user(delivery: Delivery) -> bool:
    """Return whether an event is not an echo of the bot's own messages."""
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
    if element["type"] == "feedback_buttons":
        return list(_OPINIONS)
    return [str(element["action_id"]).removeprefix("footnote:")]


def workspaces(
    *, http: bool = False, speed: float = SPEED
) -> Callable[[], AbstractAsyncContextManager[SlackWorkspace]]:
    """Return what opens a workspace whose time passes `speed` as fast as real time."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[SlackWorkspace]:
        async with serve(clock=FastClock(speed), mode="http" if http else "socket", leisure=speed) as slack:
            yield SlackWorkspace(slack, http=http)

    return opened
