"""Read what was asked on a platform while nobody listened, and hand it to the desk.

All is read from where the last question was taken anywhere, a day back at most: until then nothing was missed. What is
found goes the way of events, under the same idempotency keys, so that what was taken before is known. It is in no
hurry: half of what a platform allows stays for answers, and what it refuses for now is tried again with backoff. A
resume marker in a file keeps an interrupted catch-up from being forgotten. Last it is looked at what became of the
messages that asked within the last days: who edited or deleted one meanwhile is answered anew, or not any more.
"""

import asyncio
import itertools
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Protocol, TypeVar

from bot.desk.desk import Desk
from bot.desk.platform_port import PlatformError, PlatformUnavailable
from bot.desk.supervisor import compute_backoff
from bot.types import IntakeStatus, Question
from storage.errors import StorageError
from storage.types import QueuedQuestion

log = logging.getLogger(__name__)


class ResumeMarker:
    """The moments, in seconds since 1970, since which not all was read yet. What cannot be kept is told in the log."""

    def __init__(self, home: Path, platform: str) -> None:
        self.file, self._open = home / f"{platform}-unread-since", list[float]()

    async def earliest(self) -> float | None:
        """Return since when an earlier run left something unread; None where it left nothing."""
        return await asyncio.to_thread(self._load)

    async def begun(self, since: float) -> None:
        """Note that what was written since then is to be read."""
        self._open.append(since)
        await asyncio.to_thread(self._save)

    async def closed(self, since: float) -> None:
        self._open.remove(since)
        await asyncio.to_thread(self._save)

    def _load(self) -> float | None:
        try:
            since = float(self.file.read_text("ascii"))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            log.warning("cannot read resume marker", extra={"cause": str(error)})
            return None
        return since if math.isfinite(since) else None

    def _save(self) -> None:
        try:
            if self._open:
                self.file.write_text(f"{min(self._open):.6f}", "ascii")
            else:
                self.file.unlink(missing_ok=True)
        except OSError as error:
            log.warning("cannot store resume marker", extra={"cause": str(error)})


T = TypeVar("T")
Sleep = Callable[[float], Awaitable[object]]
StartCatchUp = Callable[[float | None], Awaitable[None]]  # takes what was missed since a moment, in seconds since 1970

MAX_AGE = timedelta(days=1)  # what was asked before that is not answered any more
REVIEWED_AGE, MAX_REVIEWED = timedelta(days=3), 200  # how old a question may be that is looked at again, and how many
POLL_SECONDS = 1.0  # how often it is looked whether a platform leaves room
MAX_BACKOFF_SECONDS = 300.0  # the longest pause before what failed is tried again


@dataclass(frozen=True, slots=True)
class MissedQuestion:
    """A question that was found."""

    question: Question
    edited: bool  # whether its author has changed it since


class HistoryReader(Protocol):
    """What a platform keeps of what people wrote. Moments are seconds since 1970."""

    async def since(self) -> float | None:
        """Return when the last question was taken; None where none ever was. Raises `StorageError`."""
        ...

    def channels(self, since: float) -> AsyncIterator[str]:
        """Yield the channels in which something may have been written since then. Raises `PlatformError`."""
        ...

    def missed(self, channel: str, since: float) -> AsyncIterator[MissedQuestion]:
        """Yield the questions in one of them, oldest first. Raises `PlatformError`, `StorageError`."""
        ...

    async def standing(self, since: float, limit: int) -> Sequence[QueuedQuestion]:
        """Return the questions of messages that may have an answer, newest first. Raises `StorageError`."""
        ...

    async def look_again(self, asked: QueuedQuestion) -> None:
        """Take it that a message was edited or deleted, if it was. Raises `PlatformError`, `StorageError`."""
        ...


class CatchUpRun:
    """Takes what was missed on one platform."""

    def __init__(
        self, archive: HistoryReader, desk: Desk, marker: ResumeMarker, now: Callable[[], float], sleep: Sleep
    ) -> None:
        self._archive, self._desk, self._marker = archive, desk, marker
        self._now, self._sleep, self._reviewing = now, sleep, False

    async def since(self) -> float | None:
        """Return until when nothing was missed, in seconds since 1970; None where nothing was ever taken.

        To be asked before events arrive again. What was taken while an earlier run was still catching up says nothing
        of what that had not come to. Raises `StorageError`.
        """
        taken, unread = await self._archive.since(), await self._marker.earliest()
        return min((one for one in (taken, unread) if one is not None), default=None)

    async def run(self, since: float | None) -> None:
        """Take all that was missed since then; what we may not read is told in the log, and the rest goes on."""
        if since is None:
            return
        since, taken = max(since, self._now() - MAX_AGE.total_seconds()), 0
        await self._marker.begun(since)
        try:
            async for channel in self._archive.channels(since):
                taken += await self._catch_up_channel(channel, since)
        except PlatformError as error:
            # The next start looks at all of it again.
            log.warning("catch-up incomplete", extra={"cause": str(error)})
        else:
            await self._marker.closed(since)
        if taken:
            log.info("missed questions found: %d", taken)
        await self._review()

    async def _review(self) -> None:
        """Look again at the messages that asked of late, unless that is being done."""
        if self._reviewing:
            return
        self._reviewing = True
        try:
            for asked in await self._archive.standing(self._now() - REVIEWED_AGE.total_seconds(), MAX_REVIEWED):
                try:
                    await self._archive.look_again(asked)
                except PlatformError as error:
                    facts = {"key": asked.key, "cause": str(error)}
                    log.info("cannot check whether a question was edited or deleted", extra=facts)
        except StorageError as error:
            log.warning("cannot list recent questions to recheck", extra={"cause": str(error)})
        finally:
            self._reviewing = False

    async def _catch_up_channel(self, channel: str, since: float) -> int:
        """Take what was missed in a channel; as often as it takes where the database is away."""
        taken = 0
        for attempt in itertools.count():
            try:
                async for missed in self._archive.missed(channel, since):
                    taken += await self._take_missed(missed)
            except StorageError as error:
                await _back_off(self._sleep, attempt, error)
                continue
            except PlatformError as error:
                log.warning("catch-up of a channel failed", extra={"channel": channel, "cause": str(error)})
            break
        return taken

    async def _take_missed(self, missed: MissedQuestion) -> int:
        question = missed.question
        if question.unasked:
            return 0
        taken = await self._desk.take(question, missed=True)
        if taken is IntakeStatus.KNOWN and missed.edited:
            await self._desk.edit_question(question.key, question.text)
        return int(taken is IntakeStatus.NEW)


async def call_patiently(call: Callable[[], Awaitable[T]], spare: Callable[[], bool], sleep: Sleep) -> T:
    """Make a call when a platform leaves room, until it answers. Raises `PlatformError` where it refuses for good."""
    for attempt in itertools.count():
        while not spare():
            await sleep(POLL_SECONDS)
        try:
            return await call()
        except PlatformUnavailable as error:
            await _back_off(sleep, attempt, error, error.seconds or 0.0)
    raise AssertionError


async def _back_off(sleep: Sleep, attempt: int, error: Exception, least: float = 0.0) -> None:
    log.warning("catch-up call failed; retrying", extra={"cause": str(error), "attempt": attempt})
    await sleep(max(least, compute_backoff(attempt, longest=MAX_BACKOFF_SECONDS)))
