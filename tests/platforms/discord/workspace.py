"""The fake Discord as a workspace: users who write there, and what they read."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bot.platforms.discord.messages import build_mark
from tests.platforms.clock import SPEED, FastClock
from tests.platforms.discord.components import nested
from tests.platforms.discord.running import run_bot
from tests.platforms.discord.server import FakeDiscord, serve
from tests.platforms.discord.state import BOT, GUILD, LOADING, Message
from tests.platforms.discord.transcript import modal, words
from tests.platforms.workspace import Read, Workspace


@dataclass
class DiscordWorkspace(Workspace):
    server: FakeDiscord

    name = "discord"
    team = GUILD
    users = ("101", "102", "103")
    channels = ("201", "202", "203")
    required = {"token": "x"}  # noqa: RUF012
    calls = {  # noqa: RUF012
        "post": ("create_message", "follow_up"),
        "edit": ("edit_message", "edit_response"),
        "delete": ("delete_message", "delete_response"),
        "find": ("get_messages", "get_message"),
    }
    run = staticmethod(run_bot)

    def _set_bot_url(self, url: str) -> None:
        """Do nothing: Discord never calls the bot."""

    def check(self) -> None:
        super().check()
        assert self.server.gateway.closes == []

    async def say(self, text: str, *, user: str = "101", channel: str = "201", thread: str = "", **more: Any) -> str:
        """Write a message, or use `/ask` with `command` or `only_asker`.

        `thread` is a message that is replied to, or the last of those that people replied to it with.
        """
        people = self.server.people
        if more.get("only_asker") or more.get("command"):
            options = {"private": True} if more.get("only_asker") else {}
            used = await people.command("ask", user=user, channel=channel, question=text, **options)
            return f"command {used.id}"
        place, silent = self.server.state.dm(user).id if more.get("dm") else channel, bool(more.get("silent"))
        written = text if more.get("dm") or silent or more.get("unasked") else f"<@{BOT}> {text}"
        reply = self._last(thread) if thread else ""
        asked = await people.say(written, user=user, channel=place, reply=reply, silent=silent)
        if place in self._closing:
            await people.deny(place, who=GUILD)
        return asked

    async def again(self, message: str) -> None:
        await self.server.people.again(message)

    async def rewrite(self, message: str, text: str) -> None:
        mention = f"<@{BOT}> " if f"<@{BOT}>" in self.server.people.find(message).content else ""
        await self.server.people.edit(message, mention + text)

    async def erase(self, message: str) -> None:
        await self.server.people.delete(message)

    async def _press(self, action: str, message: str, user: str) -> None:
        await self.server.people.press(actions(self.server.people.find(message))[action], message, user=user)
        if action == "retract":
            await self._confirm(user)

    async def _confirm(self, user: str) -> None:
        """Press the button that confirms a retraction."""

        def asked() -> list[tuple[str, str]]:
            ours = [one for one in self.server.state.ours() if one.only == user]
            return [(actions(one)["back"], one.id) for one in ours if "back" in actions(one)]

        await self.until(asked)
        await self.server.people.press(*asked()[0], user=user)
        await self.until(lambda: not asked())

    async def turn_page(self, user: str) -> None:
        pages = [(one.id, actions(one)["page"]) for one in self.server.state.ours() if "page" in actions(one)]
        ((message, forward),) = [(message, button) for message, button in pages if "footnote:page:on:" in button]
        await self.server.people.press(forward, message, user=user)

    async def invite(self, channel: str) -> None:
        """Add the bot to the guild, whose newcomers are greeted in this channel."""
        self.server.state.guilds[GUILD].system = channel
        await self.server.people.invite(GUILD)

    def answer(self, message: str) -> tuple[Read, ...]:
        """Return what replies to a message, or answers a command."""
        ours = [message for message in self.server.state.ours() if not message.flags & LOADING]
        if message.startswith("command "):
            used = message.split()[1]
            mark = build_mark(f"discord:interaction/{used}")
            found = [one for one in ours if used == one.interaction or _mark(one) == mark]
        else:
            found = [one for one in ours if not one.only and (one.reference or {}).get("message_id") == message]
        return tuple(map(self._read, found))

    def seen(self, channel: str, *, by: str) -> tuple[Read, ...]:
        """Return the bot's messages that a user sees in a channel, and the modal that they have open."""
        here = [one for one in self.server.state.ours() if one.channel == channel and one.only in {"", by}]
        return (*map(self._read, here), *([Read("", self.modal(by), ())] if self.modal(by) else []))

    def modal(self, user: str) -> str:
        opened = self.server.modals.get(user)
        return modal(opened.modal, self.server.state) if opened and opened.modal else ""

    def find_thread(self, text: str) -> str:
        replies = {one.reference["message_id"] for one in self.server.state.ours() if one.reference}
        (found,) = [asks for asks in replies if any(text in one.text for one in self.answer(asks))]
        return str(found)

    def read_payloads(self, message: str) -> list[Any]:
        return [one.components for one in self.server.people.answers(message)]

    def question_key(self, message: str) -> str:
        kind, _, used = message.partition(" ")
        return f"discord:interaction/{used}" if used else super().question_key(kind)

    @property
    def pending(self) -> int:
        used = [interaction for interaction in self.server.state.interactions.values() if interaction.sessions]
        open_yet = sum(not one.acked and not self.server.too_late(one) for one in used)
        deferred = sum(bool(one.flags & LOADING) for one in self.server.state.ours())
        return len(self._presses) + self.unread + open_yet + deferred

    @property
    def unread(self) -> int:
        """How many events the bot may not have read yet."""
        return sum(session.unread for session in self.server.gateway.connected)

    @property
    def posted(self) -> int:
        return self.server.posts

    async def settled(self) -> None:
        """Use a command: it is answered after all that happened before was handled."""
        used = await self.server.people.command("privacy", user="103", channel="203")
        await self.until(lambda: used.acked)

    def _last(self, message: str) -> str:
        """Return the last message of those that people replied with, one to another."""
        people = [one for one in self.server.state.messages.values() if one.user != BOT and one.reference]
        replies = [person.id for person in people if (person.reference or {})["message_id"] == message]
        return self._last(replies[-1]) if replies else message

    def _read(self, message: Message) -> Read:
        return Read(message.id, words(message, self.server.state), tuple(actions(message)))


def actions(message: Message) -> dict[str, str]:
    """Return the custom ids of a message's buttons by what they do."""
    found = [one["custom_id"] for _, one in nested(message.components) if one.get("custom_id")]
    return {one.split(":")[1]: one for one in found}


def _mark(message: Message) -> int:
    """Return what marks a message as part of an answer: what does not fit a command's response is posted below."""
    return next((int(component["id"]) for component in message.components), 0)


def workspaces(*, speed: float = SPEED) -> Callable[[], AbstractAsyncContextManager[DiscordWorkspace]]:
    """Return what opens a workspace whose time passes `speed` as fast as real time."""

    @asynccontextmanager
    async def opened() -> AsyncIterator[DiscordWorkspace]:
        async with serve(clock=FastClock(speed), leisure=speed) as discord:
            yield DiscordWorkspace(discord)

    return opened
