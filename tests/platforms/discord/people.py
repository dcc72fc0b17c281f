"""Actions of users in the fake Discord: each changes the state, and sends the bot the events that Discord sends."""

from datetime import UTC, datetime
from typing import Any

from tests.platforms.discord import interacting
from tests.platforms.discord.components import nested
from tests.platforms.discord.sessions import GUILDS
from tests.platforms.discord.state import (
    BOT,
    FORUM,
    SEND,
    THREAD,
    Channel,
    Interaction,
    Member,
    Message,
    permissions,
    sends,
)


class People:
    """The users. A returned `Interaction` shows whether and how the bot answered it."""

    def __init__(self, discord: Any) -> None:
        self._discord = discord

    # Messages.

    async def say(
        self, text: str, *, user: str = "101", channel: str = "201", reply: str = "", silent: bool = False
    ) -> str:
        """Write a message, perhaps in reply to another, and return its id. `silent` sends no event."""
        state = self._discord.state
        place = state.channels[channel]
        assert permissions(state, user, place) & sends(place), f"{user} cannot write to {channel}"
        assert not place.locked, f"{channel} is locked"
        place.archived = False
        message = Message(state.snowflake(), channel, user, text)
        if reply:
            message.kind, message.reference = 19, {"message_id": reply, "channel_id": channel}
            message.reference |= {"guild_id": place.guild} if place.guild else {}
        if silent:
            state.messages[message.id] = message
        else:
            self._discord.write(message, None)
        return message.id

    async def mention(self, text: str, **more: Any) -> str:
        return await self.say(f"<@{BOT}> {text}", **more)

    async def dm(self, text: str, *, user: str = "101", **more: Any) -> str:
        return await self.say(text, user=user, channel=self._discord.state.dm(user).id, **more)

    async def again(self, message: str) -> None:
        self._discord.send_message_event("MESSAGE_CREATE", self.find(message))

    async def edit(self, message: str, text: str) -> None:
        found = self.find(message)
        found.content, found.edited = text, self._discord.clock.now()
        self._discord.changed(found)

    async def unfurl(self, message: str) -> None:
        """Let a preview appear under a message: a change without an author or a time of editing."""
        found = self.find(message)
        found.embeds = [{"type": "link", "url": "https://example.com/", "title": "Example"}]
        self._discord.send_message_event("MESSAGE_UPDATE", found)

    async def delete(self, message: str) -> None:
        self._discord.remove(self.find(message))

    # Threads and channels.

    async def thread(self, name: str, *, channel: str = "201", message: str = "", user: str = "101") -> str:
        """Start a thread, at a message or without one, and return its id."""
        state = self._discord.state
        made = Channel(
            message or state.snowflake(), name, THREAD, state.channels[channel].guild, {user}, parent=channel
        )
        made.owner = user
        state.channels[made.id] = made
        if message:
            state.messages[message].thread = made.id
            state.start(made)
        self._discord.send_channel_event("THREAD_CREATE", made, newly_created=True)
        return made.id

    async def post(self, name: str, text: str, *, forum: str = "206", user: str = "101") -> str:
        """Write a post of a forum, and return its thread's id, which is also its first message's."""
        assert self._discord.state.channels[forum].kind == FORUM
        thread = await self.thread(name, channel=forum, user=user)
        self._discord.write(Message(thread, thread, user, text), None)
        return thread

    async def archive(self, thread: str, *, lock: bool = False, undo: bool = False) -> None:
        found = self._discord.state.channels[thread]
        found.archived, found.locked = not undo, lock
        self._discord.send_channel_event("THREAD_UPDATE", found)
        self._discord.notify()

    async def deny(self, channel: str, bits: int = SEND, *, who: str = BOT) -> None:
        found = self._discord.state.channels[channel]
        deny, allow = found.overwrites.get(who, (0, 0))
        found.overwrites[who] = deny | bits, allow & ~bits
        self._discord.send_channel_event("CHANNEL_UPDATE", found)

    async def remove_channel(self, channel: str) -> None:
        """Delete a channel or thread with all that is in it."""
        state = self._discord.state
        found = state.channels[channel]
        self._discord.send_channel_event("THREAD_DELETE" if found.is_thread else "CHANNEL_DELETE", found)
        for message in state.here(channel):
            state.gone[message.id] = state.messages.pop(message.id)
        del state.channels[channel]
        self._discord.notify()

    async def kick(self, guild: str = "301") -> None:
        self._discord.gateway.send_event("GUILD_DELETE", lambda _: {"id": guild}, needed=GUILDS, guild=guild)
        self._discord.state.guilds[guild].members.pop(BOT)
        self._discord.notify()

    async def invite(self, guild: str) -> None:
        self._discord.state.guilds[guild].members.setdefault(BOT, Member(BOT))
        self._discord.state.guilds[guild].joined = datetime.now(UTC).isoformat()
        self._discord.send_guild_event(guild)

    async def revoke(self) -> None:
        """Replace the bot's token: the old one is invalid, and its connections end."""
        self._discord.state.tokens.clear()
        await self._discord.gateway.close(4004)

    # Interactions.

    async def command(self, name: str, *, user: str = "101", channel: str = "201", **options: Any) -> Interaction:
        """Use a registered slash command; `options` by name."""
        data = interacting.slash(self._discord, name, options)
        return interacting.hand_out(self._discord, 2, user, channel, data, name=name)

    async def menu(self, name: str, target: str, *, user: str = "101", channel: str = "") -> Interaction:
        data = interacting.menu(self._discord, name, target)
        message = self._discord.state.messages.get(target)
        place = channel or (message.channel if message else "201")
        return interacting.hand_out(self._discord, 2, user, place, data, name=name)

    async def press(self, custom_id: str, message: str, *, user: str = "101") -> Interaction:
        """Press a button of a message that the user sees."""
        found = self.find(message)
        assert found.only in {"", user}, "the user does not see this message"
        (one,) = [one for _, one in nested(found.components) if one.get("custom_id") == custom_id]
        assert not one.get("disabled"), "the button is disabled"
        data = {"custom_id": custom_id, "component_type": one["type"], "id": one["id"]}
        return interacting.hand_out(self._discord, 3, user, found.channel, data, message=message)

    async def submit(self, *, user: str = "101", **values: str) -> Interaction:
        """Submit the modal that the user has open, with texts by custom id (or its last part)."""
        opened = self._discord.modals.pop(user)
        data = interacting.submitted(opened.modal, values)
        return interacting.hand_out(self._discord, 5, user, opened.channel, data, message=opened.message)

    # Reading.

    def find(self, message: str) -> Message:
        found: Message = self._discord.state.messages[message]
        return found

    def answers(self, message: str) -> list[Message]:
        """Return the bot's replies to a message, and its messages in the thread that starts there."""
        ours = self._discord.state.ours()
        return [one for one in ours if (one.reference or {}).get("message_id") == message or one.channel == message]
