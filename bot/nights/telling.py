"""Tells of a night: all of it in the log, and what somebody has to look at in the channel of the admins.

With `[schedule] heartbeat` a line says each day that it was done: where it fails to come, nothing ran. A platform that
is away is tried again for some hours; what cannot be delivered then is logged.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from bot.desk.types import Place
from bot.nights.night import Night
from bot.platform import Platform, PlatformError, PlatformUnavailable
from bot.settings_of.serving import ScheduleSettings

log = logging.getLogger(__name__)

AGAIN_SECONDS = (15.0, 30.0, 60.0, *(300.0,) * 36)
"""How long to wait before each further try: three hours altogether."""


def told_to_admins(night: Night, *, heartbeat: bool) -> tuple[str, ...]:
    """Return what the admins are told, in lines; nothing where all is well and no heartbeat is wanted. Pure."""
    return (*night.troubles(), *((night.summary(),) if heartbeat else ()))


@dataclass(frozen=True)
class NightTelling:
    """Hears of nights."""

    schedule: ScheduleSettings
    platforms: Mapping[str, Platform]
    """Those that there are by now, by name."""
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    async def __call__(self, night: Night) -> None:
        """Tell of one."""
        for line in night.lines():
            log.info("last night: %s", line)
        lines = told_to_admins(night, heartbeat=self.schedule.heartbeat)
        if lines and self.schedule.admin_channel:
            await self._delivered(self.schedule.admin_channel, lines)

    async def _delivered(self, channel: str, lines: Sequence[str]) -> None:
        """Post lines to a channel, as one message; a platform that is away is tried again."""
        name, _, rest = channel.partition(":")
        workspace, _, place = rest.partition("/")
        why = f"{name} is not connected."
        try:
            for seconds in (0.0, *AGAIN_SECONDS):
                await self.sleep(seconds)
                if platform := self.platforms.get(name):
                    try:
                        await platform.call(Place(name, workspace, place), "\n".join(lines), people=())
                    except PlatformUnavailable as error:
                        why = str(error)
                    else:
                        return
        except PlatformError as error:
            why = str(error)
        except asyncio.CancelledError:
            _lost(channel, lines, f"The server stops; {why}")
            raise
        _lost(channel, lines, why)


def _lost(channel: str, lines: Sequence[str], why: str) -> None:
    for line in lines:
        log.warning("the admins were not told: %s", line, extra={"channel": channel, "cause": why})
