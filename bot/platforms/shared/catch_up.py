"""Hand the desk the questions that were asked while the bot was not connected.

Messages since the last accepted question are read, at most a day back. A missed question gets the key that its event
would have given it, so that an already accepted question is recognised. Half of a platform's rate limit is reserved for
answers; failed calls are retried with backoff. A resume marker in a file survives an interrupted catch-up. Finally,
questions of the last days are rechecked: edited ones are answered again, answers to deleted ones are retracted.
"""

import asyncio
import itertools
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Protocol, TypeVar

from bot.desk.desk import Desk
from bot.desk.platform_port import PlatformError, PlatformUnavailable
from bot.desk.supervisor import compute_backoff
from bot.types import IntakeStatus, Question
from storage.database.queue import Queue
from storage.errors import StorageError
from storage.types import QueuedQuestion

log = logging.getLogger(__name__)


class ResumeMarker:
    """A file with the time since which messages are unread, in seconds since 1970. Failures are only logged."""

    def __init__(self, home: Path, platform: str) -> None:
        self.file, self._open = home / f"{platform}-unread-since", list[float]()

    async def earliest(self) -> float | None:
        """Return since when an earlier run left messages unread; None if it read all of them."""
        return await asyncio.to_thread(self._load)

    async def begun(self, since: float) -> None:
        """Store that messages since a moment are unread."""
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
StartCatchUp = Callable[[float | None], Awaitable[None]]  # catches up since a moment, in seconds since 1970

MAX_AGE = timedelta(days=1)  # older questions are not answered any more
REVIEWED_AGE, MAX_REVIEWED = timedelta(days=3), 200  # of questions that are rechecked
POLL_SECONDS = 1.0  # between checks of the rate limit
MAX_BACKOFF_SECONDS = 300.0  # before a retry
_SKEW = 1.0  # seconds between writing and accepting a message


@dataclass(frozen=True, slots=True)
class MissedQuestion:
    """A question that was asked while the bot was away."""

    question: Question
    edited: bool  # its author has edited it


class HistoryReader(Protocol):
    """A platform's message history. Moments are seconds since 1970."""

    platform: str

    def asked_at(self, last: QueuedQuestion) -> float | None:
        """Return when the last accepted question was asked; None if unknown."""
        ...

    def channels(self, since: float) -> AsyncIterator[str]:
        """Yield the channels that may have messages since a moment. Raises `PlatformError`."""
        ...

    def missed(self, channel: str, since: float) -> AsyncIterator[MissedQuestion]:
        """Yield a channel's questions since a moment, oldest first. Raises `PlatformError`, `StorageError`."""
        ...

    async def look_again(self, asked: QueuedQuestion) -> None:
        """Handle an edit or deletion of an accepted question's message. Raises `PlatformError`, `StorageError`."""
        ...


def read_acceptance_time(last: QueuedQuestion) -> float:
    """Return approximately when a question was asked: shortly before it was accepted, in seconds since 1970."""
    return last.taken_at.timestamp() - _SKEW


class CatchUpRun:
    def __init__(
        self,
        archive: HistoryReader,
        queue: Queue,
        desk: Desk,
        marker: ResumeMarker,
        now: Callable[[], float],
        sleep: Sleep,
    ) -> None:
        self._archive, self._queue, self._desk, self._marker = archive, queue, desk, marker
        self._now, self._sleep, self._reviewing = now, sleep, False

    async def since(self) -> float | None:
        """Return since when questions may have been missed, in seconds since 1970; None if none was ever accepted.

        Call it before events arrive again: a newly accepted question would hide the missed ones before it. Raises
        `StorageError`.
        """
        last, unread = await self._queue.newest(self._archive.platform), await self._marker.earliest()
        accepted = self._archive.asked_at(last) if last else None
        return min((moment for moment in (accepted, unread) if moment is not None), default=None)

    async def run(self, since: float | None) -> None:
        """Accept all questions since a moment; do nothing for None.

        Channels that cannot be read are logged and skipped.
        """
        if since is None:
            return
        since, new_questions = max(since, self._now() - MAX_AGE.total_seconds()), 0
        await self._marker.begun(since)
        try:
            async for channel in self._archive.channels(since):
                new_questions += await self._catch_up_channel(channel, since)
        except PlatformError as error:
            # The marker stays, so that the next start reads everything again.
            log.warning("catch-up incomplete", extra={"cause": str(error)})
        else:
            await self._marker.closed(since)
        if new_questions:
            log.info("missed questions found: %d", new_questions)
        await self._review()

    async def _review(self) -> None:
        """Recheck recent questions, unless a recheck is in progress."""
        if self._reviewing:
            return
        self._reviewing = True
        try:
            since = datetime.fromtimestamp(self._now(), UTC) - REVIEWED_AGE
            for question in await self._queue.standing(self._archive.platform, since=since, limit=MAX_REVIEWED):
                try:
                    await self._archive.look_again(question)
                except PlatformError as error:
                    facts = {"key": question.key, "cause": str(error)}
                    log.info("cannot check whether a question was edited or deleted", extra=facts)
        except StorageError as error:
            log.warning("cannot list recent questions to recheck", extra={"cause": str(error)})
        finally:
            self._reviewing = False

    async def _catch_up_channel(self, channel: str, since: float) -> int:
        """Catch up with a channel, and return the number of new questions; retry while the database is unreachable."""
        new_questions = 0
        for attempt in itertools.count():
            try:
                async for missed in self._archive.missed(channel, since):
                    new_questions += await self._take_missed(missed)
            except StorageError as error:
                await _back_off(self._sleep, attempt, error)
                continue
            except PlatformError as error:
                log.warning("catch-up of a channel failed", extra={"channel": channel, "cause": str(error)})
            break
        return new_questions

    async def _take_missed(self, missed: MissedQuestion) -> int:
        question = missed.question
        if question.unasked:
            return 0
        status = await self._desk.take(question, missed=True)
        if status is IntakeStatus.KNOWN and missed.edited:
            await self._desk.edit_question(question.key, question.text)
        return int(status is IntakeStatus.NEW)


async def call_patiently(call: Callable[[], Awaitable[T]], spare: Callable[[], bool], sleep: Sleep) -> T:
    """Make a call once the rate limit has room; retry while the platform is unreachable. Raises `PlatformError`."""
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
