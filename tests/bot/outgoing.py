"""Show views on a platform as the desk does: retry failures, and in doubt ask the platform for its posts."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from bot.desk.platform_port import Platform, PlatformUnavailable
from bot.types import PostedMessages, Question
from bot.views.turn_view import View
from tests.platforms.clock import ManualClock

T = TypeVar("T")

TRIES = 9


async def show(
    platform: Platform, clock: ManualClock, question: Question, view: View, posted: PostedMessages
) -> PostedMessages:
    for _ in range(TRIES):
        try:
            posted = await platform.show(question, view, posted)
            if not posted.begun:
                return posted
        except PlatformUnavailable as error:
            if error.seconds is None and platform.ways(question).reads_back:
                posted = await find_posts(platform, clock, question) or posted
            await clock.advance(error.seconds or 1)
    raise AssertionError("it never came to be shown")


async def find_posts(platform: Platform, clock: ManualClock, question: Question) -> PostedMessages:
    return await call_until_answered(lambda: platform.find(question), clock)


async def call_until_answered(call: Callable[[], Awaitable[T]], clock: ManualClock) -> T:
    for _ in range(TRIES):
        try:
            return await call()
        except PlatformUnavailable as error:
            await clock.advance(error.seconds or 1)
    raise AssertionError("it never came to be known")


async def show_all(platform: Platform, clock: ManualClock, question: Question, *views: View) -> PostedMessages:
    posted = PostedMessages()
    for view in views:
        posted = await show(platform, clock, question, view, posted)
    return posted
