"""Shows views on a platform as the desk does: retries failures, and in doubt asks the platform for its posts."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from bot.desk.platform_port import PlatformUnavailable
from bot.types import PostedMessages, Question
from bot.views.turn_view import View
from tests.platforms.clock import ManualClock

T = TypeVar("T")

TRIES = 9
NOTHING = PostedMessages()


class Adapter:
    """A platform at a fake server, and the clock of both."""

    platform: Any
    clock: ManualClock

    async def show(self, question: Question, view: View, posted: PostedMessages = NOTHING) -> PostedMessages:
        for _ in range(TRIES):
            try:
                posted = await self.platform.show(question, view, posted)
                if not posted.begun:
                    return posted
            except PlatformUnavailable as error:
                if error.seconds is None and self.platform.ways(question).reads_back:
                    posted = await self.find_posts(question) or posted
                await self.clock.advance(error.seconds or 1)
        raise AssertionError("the view was not shown")

    async def find_posts(self, question: Question) -> PostedMessages:
        return await self._retry(lambda: self.platform.find(question))

    async def _retry(self, call: Callable[[], Awaitable[T]]) -> T:
        for _ in range(TRIES):
            try:
                return await call()
            except PlatformUnavailable as error:
                await self.clock.advance(error.seconds or 1)
        raise AssertionError("the platform did not answer")

    async def show_all(self, question: Question, *views: View) -> PostedMessages:
        """Show one view after the other."""
        posted = NOTHING
        for view in views:
            posted = await self.show(question, view, posted)
        return posted
