"""Show views on a platform as the desk does: retry failures, and in doubt ask the platform for its posts."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from bot.desk.platform_port import Platform, PlatformUnavailable
from bot.types import PostedMessages, Question
from bot.views.turn_view import View
from tests.platforms.clock import ManualClock

T = TypeVar("T")

TRIES = 9


async def shown(
    platform: Platform, clock: ManualClock, asked: Question, view: View, posted: PostedMessages
) -> PostedMessages:
    for _ in range(TRIES):
        try:
            posted = await platform.show(asked, view, posted)
            if not posted.begun:
                return posted
        except PlatformUnavailable as error:
            if error.seconds is None and platform.ways(asked).reads_back:
                posted = await found(platform, clock, asked) or posted
            await clock.advance(error.seconds or 1)
    raise AssertionError("it never came to be shown")


async def found(platform: Platform, clock: ManualClock, asked: Question) -> PostedMessages:
    return await until_it_answers(lambda: platform.find(asked), clock)


async def until_it_answers(call: Callable[[], Awaitable[T]], clock: ManualClock) -> T:
    for _ in range(TRIES):
        try:
            return await call()
        except PlatformUnavailable as error:
            await clock.advance(error.seconds or 1)
    raise AssertionError("it never came to be known")


async def told(platform: Platform, clock: ManualClock, asked: Question, *views: View) -> PostedMessages:
    posted = PostedMessages()
    for view in views:
        posted = await shown(platform, clock, asked, view, posted)
    return posted
