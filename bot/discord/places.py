"""What is known of places and people: which servers are the team's own, what a thread is in, who is a member.

Servers tell of their channels and threads when we connect; of a thread that slept Discord is asked. What it does not
say in time counts against a place.
"""

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from bot.access import Asker
from bot.discord.calling import Calling
from bot.discord.happening import DM, Channel, Learned
from bot.discord.reading import channel_of, ids
from bot.discord.refusals import Refused
from bot.discord.routes import CHANNEL, MEMBER
from bot.lookups import MOST, Memory
from bot.platform import PlatformError, PlatformUnavailable
from bot.settings.platform_settings import DiscordSettings

log = logging.getLogger(__name__)

PATIENT_SECONDS = 20.0
"""So long a question waits for it that was taken already."""


@dataclass(frozen=True, slots=True)
class Membership:
    """What somebody is in the team's own servers."""

    member: bool
    roles: frozenset[str] = frozenset()


class Places:
    """What is known of the servers."""

    def __init__(self, call: Calling, settings: DiscordSettings, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the way to Discord, the settings, and a clock in seconds."""
        self._call, self._settings = call, settings
        self._channels: dict[str, Channel] = {}
        self._names: dict[str, str] = {}
        self._ours: dict[str, str] = {}
        self._asked = Memory[Channel](self._look, clock)
        self._members = Memory[Membership](self._membership, clock)

    def learn(self, learned: Learned) -> None:
        """Note what a server tells."""
        for one in learned.channels:
            self._note(one)
        for gone in learned.gone:
            self._channels.pop(gone, None)
            self._asked.forget(gone)
        self._names |= learned.roles
        if learned.ours:
            self._ours[learned.guild] = learned.ours

    def listed(self, guild: str) -> bool:
        """Return whether a server is one of the team's own."""
        return guild in self._settings.servers

    def our_roles(self, guild: str) -> frozenset[str]:
        """Return the roles whose mention is one of us."""
        return frozenset({self._ours[guild]} if guild in self._ours else ())

    @property
    def names(self) -> dict[str, str]:
        """Of channels and roles, by their ids."""
        return self._names

    async def channel(self, number: str, guild: str) -> Channel:
        """Return a channel or thread. Raises `PlatformError`, `TimeoutError` where a server's cannot be looked up."""
        if not guild:
            return Channel(number, DM)
        return self._channels.get(number) or await self._asked.of(number)

    async def asker(self, channel: Channel, user: str, *, direct: bool) -> Asker:
        """Return somebody and where they stand; in a thread that is its channel."""
        where = channel.parent if channel.is_thread else channel.id
        if direct:
            own = (await self.membership(user)).member
            return Asker("discord", "dm", "", where, user, listed_server=own)
        return Asker("discord", "channel", channel.guild, where, user, listed_server=self.listed(channel.guild))

    async def by_now(self, asker: Asker) -> Asker:
        """Return somebody who asked a while ago, and where they stand by now: in a DM they may have left the team.

        Raises:
            PlatformUnavailable: Discord does not say so now, but may later.
        """
        if asker.kind != "dm":
            return asker
        try:
            member = (await self._members.of(asker.user, PATIENT_SECONDS)).member
        except TimeoutError as error:
            raise PlatformUnavailable("Discord does not say in time who somebody is.") from error
        except PlatformUnavailable:
            raise
        except PlatformError as error:
            log.warning("it cannot be told who somebody is", extra={"cause": str(error)})
            member = False
        return replace(asker, listed_server=member)

    async def membership(self, user: str) -> Membership:
        """Return what somebody is in the team's servers: nobody where Discord does not say so in time."""
        try:
            return await self._members.of(user)
        except (PlatformError, TimeoutError) as error:
            log.warning("it cannot be told who somebody is", extra={"cause": str(error)})
            return Membership(member=False)

    async def denied(self, user: str, roles: frozenset[str], *, direct: bool) -> bool:
        """Return whether settings deny somebody an answer; in a DM the roles count that they have in our servers."""
        deny = frozenset(self._settings.deny)
        if not deny or user in deny:
            return bool(deny)
        known = (await self.membership(user)).roles if direct else roles
        return bool(known & deny)

    async def close(self) -> None:
        """Look nothing up any more."""
        await self._asked.close()
        await self._members.close()

    def _note(self, channel: Channel) -> None:
        if len(self._channels) >= MOST:
            self._channels.pop(next(iter(self._channels)))
        self._channels[channel.id] = channel
        if channel.name:
            self._names[channel.id] = channel.name

    async def _look(self, number: str) -> Channel:
        found = channel_of(await self._call(CHANNEL, channel=number) or {})
        if found is None:
            raise PlatformError("Discord does not say what a channel is.")
        self._note(found)
        return found

    async def _membership(self, user: str) -> Membership:
        found = Membership(member=False)
        for guild in self._settings.servers:
            try:
                member = await self._call(MEMBER, guild=guild, user=user) or {}
            except Refused:  # no member there
                continue
            found = replace(found, member=True, roles=found.roles | ids(member.get("roles")))
        return found
