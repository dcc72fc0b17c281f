"""A strict fake Discord on 127.0.0.1: its API v10 and its gateway, over real HTTP and websockets.

async with serve() as discord:
    asked = await discord.people.mention("When was the lighthouse built?")
    await discord.until(lambda: discord.people.answers(asked))
    print(discord.seen("201", by="101"))
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.platforms.clock import Clock, FastClock
from tests.platforms.discord import limits
from tests.platforms.discord.api import answering, unknown
from tests.platforms.discord.gateway import Gateway
from tests.platforms.discord.jsons import channel_json, guild_json, member_json, message_json
from tests.platforms.discord.mentions import ping
from tests.platforms.discord.methods import ROUTES
from tests.platforms.discord.people import People
from tests.platforms.discord.rates import Rates
from tests.platforms.discord.sessions import DIRECT_MESSAGES, GUILD_MESSAGES, GUILDS, MESSAGE_CONTENT
from tests.platforms.discord.state import BOT, VIEW, Channel, Interaction, Message, State, make_state, permissions
from tests.platforms.discord.transcript import of_message, of_modal, transcript
from tests.platforms.fake_server import FakeServer, serving


@dataclass(kw_only=True)
class FakeDiscord(FakeServer):
    """The server. `people` acts as the users; `state` holds the data."""

    state: State
    rates: Rates
    ack_seconds: float = limits.ACK_SECONDS
    token_seconds: float = limits.TOKEN_SECONDS
    notified: list[tuple[str, str]] = field(default_factory=list)
    """Notifications by the bot's messages: the message, and the user, `&role` or `everyone`."""
    unfurled: list[str] = field(default_factory=list)
    """The addresses of which Discord would have fetched a preview for the bot."""
    modals: dict[str, Interaction] = field(default_factory=dict)
    """The interaction whose modal is open, by user."""

    def __post_init__(self) -> None:
        self.people = People(self)
        self.gateway = Gateway(self.clock, self.state, self.notify)

    @property
    def api(self) -> str:
        """The base of the API, for clients."""
        return f"{self.url}/api/v10"

    def seen(self, channel: str, *, by: str) -> str:
        """Return what a user sees in a channel, as plain text."""
        return transcript(self, channel, by)

    def sees(self, channel: Channel, user: str = BOT) -> bool:
        return bool(permissions(self.state, user, channel) & VIEW)

    def describe(self) -> str:
        return f"the bot wrote {[(one.channel, one.id, one.content or one.components) for one in self.state.ours()]}"

    def application(self) -> web.Application:
        app = web.Application(client_max_size=10**8)
        app.add_routes([web.get(path, self.gateway.connect) for path in ("/", "/resume", "/resume/")])
        for route in ROUTES:
            app.router.add_route(route.verb, f"/api/v10{route.path}", answering(self, route))
        app.router.add_route("*", "/{rest:.*}", unknown)
        return app

    async def close(self) -> None:
        await self.gateway.close()

    def too_late(self, interaction: Interaction) -> bool:
        """Return whether an interaction was not answered in time: its user reads so."""
        return not interaction.acked and self.clock.now() > interaction.at + self.ack_seconds

    # Effects of requests.

    def json(self, message: Message) -> dict[str, Any]:
        """Return a message as the API gives it to the bot."""
        return message_json(self.state, message, readable=bool(self.gateway.granted & MESSAGE_CONTENT))

    def earlier(self, body: Mapping[str, Any]) -> Message | None:
        """Return the message of the last minutes with the same nonce, if that is enforced."""
        nonce = body.get("nonce")
        if nonce is None or not body.get("enforce_nonce"):
            return None
        since = self.clock.now() - limits.NONCE_SECONDS
        known = [*self.state.ours(), *self.state.gone.values()]
        found = [one for one in known if one.user == BOT and one.nonce is not None and str(one.nonce) == str(nonce)]
        return next((one for one in found if one.wrote >= since), None)

    def write(self, message: Message, allowed: Mapping[str, Any] | None) -> Message:
        """Add a message, of the bot's or of a user's, and send its event."""
        message.wrote = self.clock.now()
        self.state.messages[message.id] = message
        ping(self.state, message, allowed)
        self.state.typing.pop((message.channel, message.user), None)
        if message.user == BOT:
            self.posts += 1
            self.notified += [(message.id, one) for one in message.notified]
            self._showed(message)
        if not message.only:
            self.send_message_event("MESSAGE_CREATE", message)
        self.notify()
        return message

    def changed(self, message: Message, allowed: Mapping[str, Any] | None = None) -> None:
        """Send the event that a message was changed. It notifies no user again, but may unfurl new addresses."""
        before = message.notified
        ping(self.state, message, allowed)
        message.notified = before
        self._showed(message)
        if not message.only:
            self.send_message_event("MESSAGE_UPDATE", message)
        self.notify()

    def _showed(self, message: Message) -> None:
        if message.user == BOT:
            self.texts |= dict.fromkeys(of_message(message))
            self.unfurled += [unfurl for unfurl in message.unfurls if unfurl not in self.unfurled]

    def showed_modal(self, modal: dict[str, Any]) -> None:
        self.texts |= dict.fromkeys(of_modal(modal, f"modal {len(self.texts)}"))

    def remove(self, message: Message) -> None:
        self.state.gone[message.id] = self.state.messages.pop(message.id)
        if message.only:
            self.notify()
            return
        channel = self.state.channels[message.channel]
        self.send_event("MESSAGE_DELETE", {"id": message.id, "channel_id": channel.id, **_guild(channel)}, channel)

    # Events.

    def send_message_event(self, name: str, message: Message) -> None:
        channel = self.state.channels[message.channel]
        if not self.sees(channel):
            return
        more: dict[str, Any] = _guild(channel)
        if channel.guild and not message.webhook:
            more["member"] = member_json(self.state, channel.guild, message.user, whole=False)
        needed = GUILD_MESSAGES if channel.guild else DIRECT_MESSAGES

        def body(readable: bool) -> dict[str, Any]:  # noqa: FBT001  the gateway asks
            return {**message_json(self.state, message, readable=readable), **more}

        self.gateway.send_event(name, body, needed=needed, guild=channel.guild)

    def send_channel_event(self, name: str, channel: Channel, **more: Any) -> None:
        body = {**channel_json(self.state, channel), **more}
        if self.sees(channel):
            self.gateway.send_event(name, lambda _: body, needed=GUILDS, guild=channel.guild)

    def send_event(self, name: str, body: dict[str, Any], channel: Channel) -> None:
        needed = GUILD_MESSAGES if channel.guild else DIRECT_MESSAGES
        if self.sees(channel):
            self.gateway.send_event(name, lambda _: body, needed=needed, guild=channel.guild)
        self.notify()

    def send_guild_event(self, guild: str) -> None:
        body = guild_json(self.state, self.state.guilds[guild])
        self.gateway.send_event("GUILD_CREATE", lambda _: body, needed=GUILDS, guild=guild)


def _guild(channel: Channel) -> dict[str, Any]:
    return {"guild_id": channel.guild} if channel.guild else {}


@asynccontextmanager
async def serve(
    *, clock: Clock | None = None, state: State | None = None, leisure: float = 1, pace: float = 1
) -> AsyncIterator[FakeDiscord]:
    """Serve until the block is left.

    `leisure`: how many times longer than on Discord an interaction waits for its answer, so that a fast clock does not
    hurry the machine. `pace`: how many of the clock's seconds pass in one of the client's, in which waits are given; a
    client that waits by the server's clock has the same ones.
    """
    clock = clock or FastClock()
    discord = FakeDiscord(clock=clock, state=state or make_state(clock), rates=Rates(clock, pace))
    discord.ack_seconds = limits.ACK_SECONDS * leisure
    async with serving(discord):
        discord.gateway.url = discord.url.replace("http", "ws")
        yield discord
