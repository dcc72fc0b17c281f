"""What was asked on a platform while nobody listened, read there and handed to the desk when somebody does again.

All is read from where the last question was taken anywhere, a day back at most: until then nothing was missed. What is
found goes the way of events, under the same keys, so that what was taken before is known. What nobody asked us is left
alone. It is in no hurry: half of what a platform allows stays for answers, and what it refuses for now is tried until
it works.
"""

import itertools
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol, TypeVar

from bot.desk.desk import Desk
from bot.desk.types import IntakeStatus, Question
from bot.gaps import Gaps
from bot.platform import PlatformError, PlatformUnavailable
from storage.errors import StorageError

T = TypeVar("T")
Sleep = Callable[[float], Awaitable[object]]

log = logging.getLogger(__name__)

FURTHEST = timedelta(days=1)
"""What was asked before that is not answered any more."""
SPARE_SECONDS = 1.0
"""How often it is looked whether a platform leaves room."""
LONGEST_SECONDS = 300.0
"""The longest pause before what failed is tried again."""


@dataclass(frozen=True, slots=True)
class Missed:
    """A question that was found."""

    question: Question
    edited: bool
    """Whether its author has changed it since."""


class Archive(Protocol):
    """What a platform keeps of what people wrote. Moments are seconds since 1970."""

    async def since(self) -> float | None:
        """Return when the last question was taken; None where none ever was. Raises `StorageError`."""
        ...

    def channels(self, since: float) -> AsyncIterator[str]:
        """Yield the channels in which something may have been written since then. Raises `PlatformError`."""
        ...

    def missed(self, channel: str, since: float) -> AsyncIterator[Missed]:
        """Yield the questions in one of them, oldest first. Raises `PlatformError`, `StorageError`."""
        ...


class CatchingUp:
    """Takes what was missed on one platform."""

    def __init__(self, archive: Archive, desk: Desk, gaps: Gaps, now: Callable[[], float], sleep: Sleep) -> None:
        """Take what is read, the desk, what is unread, the date in seconds since 1970, and what waits."""
        self._archive, self._desk, self._gaps = archive, desk, gaps
        self._now, self._sleep = now, sleep

    async def since(self) -> float | None:
        """Return until when nothing was missed, in seconds since 1970; None where nothing was ever taken.

        To be asked before events arrive again. What was taken while an earlier run was still catching up says nothing
        of what that had not come to. Raises `StorageError`.
        """
        taken, unread = await self._archive.since(), await self._gaps.earliest()
        return min((one for one in (taken, unread) if one is not None), default=None)

    async def run(self, since: float | None) -> None:
        """Take all that was missed since then; what we may not read is told in the log, and the rest goes on."""
        if since is None:
            return
        since, taken = max(since, self._now() - FURTHEST.total_seconds()), 0
        await self._gaps.begun(since)
        try:
            async for channel in self._archive.channels(since):
                taken += await self._channel(channel, since)
        except PlatformError as error:
            # The next start looks at all of it again.
            log.warning("not all that was missed could be looked for", extra={"cause": str(error)})
        else:
            await self._gaps.closed(since)
        if taken:
            log.info("questions that were asked meanwhile: %d", taken)

    async def _channel(self, channel: str, since: float) -> int:
        """Take what was missed in a channel; as often as it takes where the database is away."""
        taken = 0
        for attempt in itertools.count():
            try:
                async for missed in self._archive.missed(channel, since):
                    taken += await self._take(missed)
            except StorageError as error:
                await _pause(self._sleep, attempt, error)
                continue
            except PlatformError as error:
                log.warning("a channel could not be caught up", extra={"channel": channel, "cause": str(error)})
            break
        return taken

    async def _take(self, missed: Missed) -> int:
        question = missed.question
        if question.unasked:
            return 0
        taken = await self._desk.take(question)
        if taken is IntakeStatus.KNOWN and missed.edited:
            await self._desk.edited(question.key, question.text)
        return int(taken is IntakeStatus.NEW)


async def patiently(call: Callable[[], Awaitable[T]], spare: Callable[[], bool], sleep: Sleep) -> T:
    """Make a call when a platform leaves room, until it answers. Raises `PlatformError` where it refuses for good."""
    for attempt in itertools.count():
        while not spare():
            await sleep(SPARE_SECONDS)
        try:
            return await call()
        except PlatformUnavailable as error:
            await _pause(sleep, attempt, error, error.seconds or 0.0)
    raise AssertionError


async def _pause(sleep: Sleep, attempt: int, error: Exception, least: float = 0.0) -> None:
    log.warning("what was missed is looked for again soon", extra={"cause": str(error), "attempt": attempt})
    await sleep(max(least, min(LONGEST_SECONDS, 2.0 ** min(attempt, 10))))
