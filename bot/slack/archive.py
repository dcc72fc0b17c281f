"""What a workspace keeps of what was written: every channel that we are in, with the threads of the last week."""

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from typing import Any

from bot.catching_up import Missed, patiently
from bot.slack import reading
from bot.slack.calling import Calling
from bot.slack.happening import Us, Written
from bot.slack.taking import Taking
from storage.queue import Queue

Json = Mapping[str, Any]

THREADS = timedelta(days=7)
"""How old a thread may be in which somebody asks on."""
PAGE = 200
_SKEW = 1.0
"""Seconds that may pass between when something is written and when it is taken."""
_TYPES = "public_channel,private_channel,im,mpim"


class SlackArchive:
    """One workspace. Implements `bot.catching_up.Archive`."""

    def __init__(self, queue: Queue, call: Calling, us: Us, taking: Taking) -> None:
        """Take the queue, the way to Slack, who we are, and what makes questions of messages."""
        self._queue, self._call, self._us, self._taking = queue, call, us, taking
        self._kinds: dict[str, str] = {}

    async def since(self) -> float | None:
        """Return when the last question was taken. Raises `StorageError`."""
        last = await self._queue.newest("slack")
        return last.taken_at.timestamp() - _SKEW if last else None

    async def channels(self, since: float) -> AsyncIterator[str]:  # noqa: ARG002 - Slack does not say where it is quiet
        """Yield the channels and DMs that we are in. Raises `PlatformError`."""
        async for channel in self._pages("users.conversations", "channels", types=_TYPES, exclude_archived=True):
            name = str(channel.get("id", ""))
            self._kinds[name] = "im" if channel.get("is_im") else "mpim" if channel.get("is_mpim") else "channel"
            yield name

    async def missed(self, channel: str, since: float) -> AsyncIterator[Missed]:
        """Yield the questions in a channel, with those in threads that began before. Raises `PlatformError`."""
        where = {"channel": channel, "channel_type": self._kinds.get(channel, "")}
        async for message in self._written(channel, since):
            written = reading.read({"event": {"type": "message", **message, **where}}, self._us)
            if isinstance(written, Written) and (question := await self._taking.question(written)):
                yield Missed(question, written.edited)

    async def _written(self, channel: str, since: float) -> AsyncIterator[Json]:
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

    async def _pages(self, method: str, what: str, **facts: Any) -> AsyncIterator[Json]:
        """Yield the items of a list, all pages of it. Raises `PlatformError`, but not that Slack is away."""
        pacing = self._call.pacing
        while True:
            page: Json = await patiently(
                lambda: self._call(method, limit=PAGE, **facts), lambda: pacing.spare(method), pacing.sleep
            )
            for item in page.get(what) or ():
                yield item
            if not (cursor := str((page.get("response_metadata") or {}).get("next_cursor") or "")):
                return
            facts["cursor"] = cursor
