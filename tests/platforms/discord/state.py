"""The fake Discord's state: what there is, what came, what was refused, and what requests do to it."""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.platforms.discord import limits
from tests.platforms.discord.acts import Acts
from tests.platforms.discord.calls import Received, Refused
from tests.platforms.discord.faults import Fault
from tests.platforms.discord.gateway import Gateway
from tests.platforms.discord.jsons import channel_json, guild_json, member_json, message_json
from tests.platforms.discord.mentions import ping
from tests.platforms.discord.permissions import VIEW, permissions
from tests.platforms.discord.pieces import Piece, of_message, of_modal
from tests.platforms.discord.rates import Rates
from tests.platforms.discord.seeing import transcript
from tests.platforms.discord.sessions import (
    DIRECT_MESSAGES,
    DIRECT_TYPING,
    GUILD_MESSAGES,
    GUILD_TYPING,
    GUILDS,
    MESSAGE_CONTENT,
)
from tests.platforms.discord.world import BOT, Channel, Interaction, Message, World
from tests.platforms.slack.clock import Clock
from tests.platforms.waiting import until


@dataclass
class FakeDiscord:
    """The server's state. What people do is in `acts`, what there is in `world`."""

    clock: Clock
    world: World
    gateway: Gateway
    rates: Rates
    url: str = ""
    ack_seconds: float = limits.ACK_SECONDS
    token_seconds: float = limits.TOKEN_SECONDS
    faults: dict[str, list[Fault]] = field(default_factory=lambda: defaultdict(list))
    """By a route's name how its next requests fail, one after the other."""
    received: list[Received] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    limited: list[Received] = field(default_factory=list)
    """What came too soon."""
    posts: int = 0
    """How many messages the bot ever wrote, ephemeral ones among them."""
    texts: dict[Piece, None] = field(default_factory=dict)
    """All that a client ever got, as it stood after each change, each once."""
    notified: list[tuple[str, str]] = field(default_factory=list)
    """Whom the bot's messages really pinged: the message, and the user, `&role` or `everyone`."""
    unfurled: list[str] = field(default_factory=list)
    """The addresses of which Discord would have fetched a preview for the bot."""
    modals: dict[str, Interaction] = field(default_factory=dict)
    """By user the interaction whose modal they have open."""
    errors: list[BaseException] = field(default_factory=list)
    """What went wrong in the server itself: tests hold it empty."""
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self.acts = Acts(self)

    @property
    def api(self) -> str:
        """The base of the API, for clients."""
        return f"{self.url}/api/v10"

    # What tests look at.

    def calls(self, route: str) -> list[Received]:
        """Return every request of a route, in order."""
        return [one for one in self.received if one.name == route]

    def seen(self, channel: str, *, by: str) -> str:
        """Return what somebody sees in a channel, as plain text."""
        return transcript(self, channel, by)

    def sees(self, channel: Channel, user: str = BOT) -> bool:
        """Return whether somebody sees a channel."""
        return bool(permissions(self.world, user, channel) & VIEW)

    @property
    def pings(self) -> list[str]:
        """Everybody that a client could have pinged for the bot, at worst, once for each message."""
        return [ping for _, ping in dict.fromkeys((one.where, ping) for one in self.texts for ping in one.pings)]

    @property
    def links(self) -> list[str]:
        """Every address that a client could have linked to for the bot, at worst, once for each message."""
        return [link for _, link in dict.fromkeys((one.where, link) for one in self.texts for link in one.links)]

    async def until(self, holds: Callable[[], object], seconds: float = 20) -> None:
        """Wait until something holds, looked at again after everything that happens here."""
        await until(holds, self._changed, seconds, self._happened)

    def _happened(self) -> str:
        """Return what tests are told who waited in vain."""
        ours = [(one.channel, one.id, one.content or one.components) for one in self.world.ours()]
        last = [(one.name, one.names, one.body) for one in self.received[-10:]]
        return f"we posted {ours}; refused {list(map(str, self.refused[-5:]))}; requests {last}"

    def notify(self) -> None:
        """Wake whoever waits for a change."""
        self._changed.set()

    def too_late(self, interaction: Interaction) -> bool:
        """Return whether an interaction was not answered in time: the person reads so."""
        return not interaction.acked and self.clock.now() > interaction.at + self.ack_seconds

    # What requests do.

    def json(self, message: Message) -> dict[str, Any]:
        """Return a message as the API gives it to the bot."""
        return message_json(self.world, message, readable=bool(self.gateway.granted & MESSAGE_CONTENT))

    def earlier(self, body: Mapping[str, Any]) -> Message | None:
        """Return the message of the last minutes that has the same nonce, if that is enforced."""
        nonce = body.get("nonce")
        if nonce is None or not body.get("enforce_nonce"):
            return None
        since = self.clock.now() - limits.NONCE_SECONDS
        known = [*self.world.ours(), *self.world.gone.values()]
        found = [one for one in known if one.user == BOT and one.nonce is not None and str(one.nonce) == str(nonce)]
        return next((one for one in found if one.wrote >= since), None)

    def write(self, message: Message, allowed: Mapping[str, Any] | None) -> Message:
        """Let everybody know of a new message, of the bot's or of a person's."""
        message.wrote = self.clock.now()
        self.world.messages[message.id] = message
        ping(self.world, message, allowed)
        self.world.typing.pop((message.channel, message.user), None)
        if message.user == BOT:
            self.posts += 1
            self.notified += [(message.id, one) for one in message.notified]
            self._showed(message)
        if not message.only:
            self.tell_message("MESSAGE_CREATE", message)
        self.notify()
        return message

    def changed(self, message: Message, allowed: Mapping[str, Any] | None = None) -> None:
        """Let everybody know that a message was changed; it pings nobody anew, but what it unfurls may be new."""
        before = message.notified
        ping(self.world, message, allowed)
        message.notified = before
        self._showed(message)
        if not message.only:
            self.tell_message("MESSAGE_UPDATE", message)
        self.notify()

    def _showed(self, message: Message) -> None:
        if message.user == BOT:
            self.texts |= dict.fromkeys(of_message(message))
            self.unfurled += [one for one in message.unfurls if one not in self.unfurled]

    def showed_modal(self, modal: dict[str, Any]) -> None:
        """Keep what a modal says."""
        self.texts |= dict.fromkeys(of_modal(modal, f"modal {len(self.texts)}"))

    def remove(self, message: Message) -> None:
        """Take a message away, by whomever."""
        self.world.gone[message.id] = self.world.messages.pop(message.id)
        if message.only:
            self.notify()
            return
        channel = self.world.channels[message.channel]
        body = {"id": message.id, "channel_id": channel.id, **_guild(channel)}
        self.tell("MESSAGE_DELETE", body, channel)

    # What the gateway tells.

    def tell_message(self, name: str, message: Message) -> None:
        """Tell of a message."""
        channel = self.world.channels[message.channel]
        if not self.sees(channel):
            return
        more: dict[str, Any] = _guild(channel)
        if channel.guild and not message.webhook:
            more["member"] = member_json(self.world, channel.guild, message.user, whole=False)
        needed = GUILD_MESSAGES if channel.guild else DIRECT_MESSAGES

        def body(readable: bool) -> dict[str, Any]:  # noqa: FBT001  the gateway asks
            return {**message_json(self.world, message, readable=readable), **more}

        self.gateway.tell(name, body, needed=needed, guild=channel.guild)

    def tell_channel(self, name: str, channel: Channel, **more: Any) -> None:
        """Tell of a channel or thread."""
        body = {**channel_json(self.world, channel), **more}
        if self.sees(channel):
            self.gateway.tell(name, lambda _: body, needed=GUILDS, guild=channel.guild)

    def tell(self, name: str, body: dict[str, Any], channel: Channel) -> None:
        """Tell of something else that happened to messages of a channel."""
        needed = GUILD_MESSAGES if channel.guild else DIRECT_MESSAGES
        if self.sees(channel):
            self.gateway.tell(name, lambda _: body, needed=needed, guild=channel.guild)
        self.notify()

    def tell_guild(self, guild: str) -> None:
        """Tell of a guild that the bot is in."""
        body = guild_json(self.world, self.world.guilds[guild])
        self.gateway.tell("GUILD_CREATE", lambda _: body, needed=GUILDS, guild=guild)

    def typed(self, channel: str, user: str) -> None:
        """Tell that somebody types."""
        place = self.world.channels[channel]
        body = {"channel_id": channel, "user_id": user, "timestamp": int(self.clock.now()), **_guild(place)}
        if place.guild:
            body["member"] = member_json(self.world, place.guild, user)
        needed = GUILD_TYPING if place.guild else DIRECT_TYPING
        self.gateway.tell("TYPING_START", lambda _: body, needed=needed, guild=place.guild)


def _guild(channel: Channel) -> dict[str, Any]:
    return {"guild_id": channel.guild} if channel.guild else {}
