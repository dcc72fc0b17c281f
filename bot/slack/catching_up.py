"""What was asked while nobody listened: mentions, messages in DMs, and follow-ups in threads that we take part in.

Every channel that we are in is read from where the last question was taken anywhere, a day back at most: until then
nothing was missed. What is found goes the way of events, under the same keys, so that what was taken before is known.
What nobody asked us is left alone.

It is in no hurry: half of what Slack allows stays for answers, and what Slack refuses for now is tried until it works.
"""

import itertools
import logging
import time
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import timedelta
from typing import Any

from bot.desk.desk import Desk
from bot.desk.types import Taken
from bot.platform import PlatformError, PlatformUnavailable
from bot.slack import reading
from bot.slack.calling import Calling
from bot.slack.gaps import Gaps
from bot.slack.happening import Us, Written
from bot.slack.taking import Taking
from storage.errors import StorageError
from storage.queue import Queue

Json = Mapping[str, Any]

log = logging.getLogger(__name__)

FURTHEST = timedelta(days=1)
"""What was asked before that is not answered any more."""
THREADS = timedelta(days=7)
"""How old a thread may be in which somebody asks on."""
PAGE = 200
SPARE_SECONDS = 1.0
"""How often it is looked whether Slack leaves room."""
LONGEST_SECONDS = 300.0
"""The longest pause before what failed is tried again."""
_TYPES = "public_channel,private_channel,im,mpim"


class CatchingUp:
    """Takes what was missed in one workspace."""

    def __init__(
        self,
        queue: Queue,
        desk: Desk,
        call: Calling,
        us: Us,
        taking: Taking,
        gaps: Gaps,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Take the queue, the desk, the way to Slack, who we are, what takes messages, what is unread, and the date."""
        self._queue, self._desk, self._call, self._us, self._taking = queue, desk, call, us, taking
        self._gaps, self._now = gaps, now

    async def since(self) -> float | None:
        """Return until when nothing was missed, in seconds since 1970; None where nothing was ever taken.

        To be asked before events arrive again. What was taken while an earlier run was still catching up says nothing
        of what that had not come to. Raises `StorageError`.
        """
        last, unread = await self._queue.newest("slack"), await self._gaps.earliest()
        taken = last.taken_at.timestamp() - 1.0 if last else None
        return min((one for one in (taken, unread) if one is not None), default=None)

    async def run(self, since: float | None) -> None:
        """Take all that was missed since then; what we may not read is told in the log, and the rest goes on."""
        if since is None:
            return
        since, taken = max(since, self._now() - FURTHEST.total_seconds()), 0
        await self._gaps.begun(since)
        try:
            async for channel in self._pages("users.conversations", "channels", types=_TYPES, exclude_archived=True):
                taken += await self._channel(channel, since)
        except PlatformError as error:
            # The next start looks at all of it again.
            log.warning("not all that was missed could be looked for", extra={"cause": str(error)})
        else:
            await self._gaps.closed(since)
        if taken:
            log.info("questions that were asked meanwhile: %d", taken)

    async def _channel(self, channel: Json, since: float) -> int:
        """Take what was missed in a channel; as often as it takes where the database is away."""
        name, taken = str(channel.get("id", "")), 0
        kind = "im" if channel.get("is_im") else "mpim" if channel.get("is_mpim") else "channel"
        for attempt in itertools.count():
            try:
                async for message in self._missed(name, since):
                    taken += await self._take({**message, "channel": name, "channel_type": kind})
            except StorageError as error:
                await self._pause(attempt, error)
                continue
            except PlatformError as error:
                log.warning("a channel could not be caught up", extra={"channel": name, "cause": str(error)})
            break
        return taken

    async def _missed(self, channel: str, since: float) -> AsyncIterator[Json]:
        """Yield a channel's messages since then, with those of threads that were begun before; oldest first."""
        oldest = f"{since - THREADS.total_seconds():.6f}"
        roots = [one async for one in self._pages("conversations.history", "messages", channel=channel, oldest=oldest)]
        for root in reversed(roots):
            if float(root.get("ts", 0)) > since:
                yield root
            if float(root.get("latest_reply") or 0) > since:
                facts: dict[str, Any] = {"channel": channel, "ts": root["ts"], "oldest": f"{since:.6f}"}
                async for reply in self._pages("conversations.replies", "messages", **facts):
                    if reply.get("ts") != root.get("ts"):
                        yield reply

    async def _take(self, event: Json) -> int:
        written = reading.read({"event": {"type": "message", **event}}, self._us)
        if not isinstance(written, Written):
            return 0
        question = await self._taking.question(written)
        if question is None or question.unasked:
            return 0
        taken = await self._desk.take(question)
        if taken is Taken.KNOWN and written.edited:
            await self._desk.edited(question.key, question.text)
        return int(taken is Taken.NEW)

    async def _pages(self, method: str, what: str, **facts: Any) -> AsyncIterator[Json]:
        """Yield the items of a list, all pages of it. Raises `PlatformError`, but not that Slack is away."""
        while True:
            page = await self._patiently(method, limit=PAGE, **facts)
            for item in page.get(what) or ():
                yield item
            if not (cursor := str((page.get("response_metadata") or {}).get("next_cursor") or "")):
                return
            facts["cursor"] = cursor

    async def _patiently(self, method: str, **facts: Any) -> Json:
        """Call a method when Slack leaves room, until Slack answers. Raises `PlatformError` where it refuses."""
        for attempt in itertools.count():
            while not self._call.pacing.spare(method):
                await self._call.pacing.sleep(SPARE_SECONDS)
            try:
                return await self._call(method, **facts)
            except PlatformUnavailable as error:
                await self._pause(attempt, error, error.seconds or 0.0)
        raise AssertionError

    async def _pause(self, attempt: int, error: Exception, least: float = 0.0) -> None:
        log.warning("what was missed is looked for again soon", extra={"cause": str(error), "attempt": attempt})
        await self._call.pacing.sleep(max(least, min(LONGEST_SECONDS, 2.0 ** min(attempt, 10))))
