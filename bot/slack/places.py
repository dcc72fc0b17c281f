"""What is known of channels and people: who else is in a channel, whose they are, what language they read.

Slack is asked once and then seldom: its events say when something changed. What it does not say in time counts against
a place: it is taken to be shared with other organisations.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal

from bot.access import Asker
from bot.lookups import LOOK_SECONDS, Memory
from bot.platform import PlatformError, PlatformUnavailable
from bot.slack.calling import Calling
from bot.slack.happening import Us
from bot.slack.reading import is_direct

Json = Mapping[str, Any]

log = logging.getLogger(__name__)

PATIENT_SECONDS = 20.0
"""So long a question waits for it whose arrival was acknowledged long ago."""


def is_shared(channel: Json) -> bool | None:
    """Return whether people of other organisations are in a channel, as `conversations.info` has it; pure.

    Other workspaces of the same organisation are not others. None where Slack does not say, as of most DMs.
    """
    if channel.get("is_ext_shared") is True or channel.get("connected_team_ids"):
        return True
    if channel.get("is_shared") is True:
        return channel.get("is_org_shared") is not True
    return False if channel.get("is_ext_shared") is False else None


def is_stranger(user: Json, us: Us) -> bool:
    """Return whether somebody is of another organisation, as `users.info` has them; pure."""
    own = user.get("enterprise_user")
    if us.enterprise and isinstance(own, Mapping) and own.get("enterprise_id") == us.enterprise:
        return False
    return user.get("is_stranger") is True or user.get("team_id") != us.team


class Places:
    """What is known of one workspace's channels and people."""

    def __init__(self, call: Calling, us: Us, clock: Callable[[], float] = time.monotonic) -> None:
        """Take the way to Slack, who we are there, and a clock in seconds."""
        self._call, self._us = call, us
        self._channels = Memory[Json](self._channel, clock)
        self._people = Memory[Json](self._person, clock)

    async def asker(self, channel: str, user: str, *, direct: bool, shared: bool = False) -> Asker:
        """Return somebody and where they stand. `shared`: Slack said with what they did that the channel is."""
        if shared:
            self._channels.note(channel, {"is_ext_shared": True})
        others = shared or await self.shared(channel, user if direct else "")
        kind: Literal["dm", "channel"] = "dm" if direct else "channel"
        return Asker("slack", kind, self._us.team, channel, user, shared_with_other_organisations=others)

    async def by_now(self, asker: Asker) -> Asker:
        """Return somebody who asked a while ago, and where they stand by now.

        Raises:
            PlatformUnavailable: Slack does not say so now, but may later.
        """
        try:
            others = await self._shared(asker.channel, asker.user if asker.kind == "dm" else "", PATIENT_SECONDS)
        except TimeoutError as error:
            raise PlatformUnavailable("Slack does not say in time who is in a channel.") from error
        except PlatformUnavailable:
            raise
        except PlatformError as error:
            _log(asker.channel, error)
            others = True
        return replace(asker, shared_with_other_organisations=others)

    async def shared(self, channel: str, user: str = "") -> bool:
        """Return whether people of other organisations may be in a channel, or in the DM with somebody."""
        try:
            return await self._shared(channel, user, LOOK_SECONDS)
        except (PlatformError, TimeoutError) as error:
            _log(channel, error)
            return True

    async def _shared(self, channel: str, user: str, seconds: float) -> bool:
        if user:
            return is_stranger(await self._people.of(user, seconds), self._us)
        return is_shared(await self._channels.of(channel, seconds)) is not False

    async def language(self, user: str) -> str:
        """Return the language that somebody reads Slack in, such as `de`; empty where that is not known."""
        try:
            locale = (await self._people.of(user)).get("locale")
        except (PlatformError, TimeoutError):
            return ""
        return locale.partition("-")[0].lower() if isinstance(locale, str) else ""

    def forget(self, channel: str) -> None:
        """Forget a channel of which something changed."""
        self._channels.forget(channel)

    async def close(self) -> None:
        """Look nothing up any more."""
        await self._channels.close()
        await self._people.close()

    async def _channel(self, channel: str) -> Json:
        found: Json = (await self._call("conversations.info", channel=channel)).get("channel") or {}
        # A DM says nothing of the sort, but who it is with does.
        if is_direct(channel) and is_shared(found) is None and found.get("user"):
            return {"is_ext_shared": is_stranger(await self._people.of(str(found["user"])), self._us)}
        return found

    async def _person(self, user: str) -> Json:
        found: Json = (await self._call("users.info", user=user, include_locale=True)).get("user") or {}
        return found


def _log(channel: str, error: Exception) -> None:
    log.warning("it cannot be told who is in a channel", extra={"channel": channel, "cause": str(error)})
