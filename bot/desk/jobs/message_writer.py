"""Write one question's messages, so that nothing is posted twice.

That a first post is begun is stored before it is made, and the messages' ids after; whoever is not sure asks the
platform. Where it cannot be asked, what is stored is that the last view is being shown, and that it no longer is:
that one alone must not be shown twice. Views on the way are for those who wait: of several only the newest is shown,
never faster than the platform's pace, and nobody waits for them: one that cannot be shown is the last of them. The
answer is shown whatever it takes.

At first they are shown by a sign, such as that we are typing: an answer that comes within seconds is posted once, and
needs no change of a message, of which platforms allow few.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from bot.desk.platform_port import (
    CannotPost,
    ContentRefused,
    Platform,
    PlatformError,
    PlatformUnavailable,
    PostGone,
)
from bot.desk.supervisor import Clock, compute_backoff
from bot.types import DeliveryCapabilities, PostedMessages, ProgressSign, Question, log_event
from bot.views.turn_view import View
from bot.views.view_reducer import simplify_view
from storage.errors import StorageError

T = TypeVar("T")

CALL_SECONDS = 120.0  # a platform that has said nothing for so long is taken for one that does not answer
SIGN_SECONDS = 3.0  # so long a sign stands alone before something is posted
SIGN_CALL_SECONDS = 10.0  # so long a platform may take to show one: the answer waits for it
LASTING_SECONDS = 1.0  # so long an answer may take before its asker is told something that cannot be changed later
_TRUSTED_TRIES = 3  # how often it is tried again as soon as the platform says


class DeliveryUnknown(Exception):
    """The last view may be posted or not, and the platform cannot be asked."""


class MessageWriter:
    """Shows the views of one question, one at a time. `fault` is why nothing more can be shown."""

    def __init__(
        self,
        platform: Platform,
        question: Question,
        posted: PostedMessages,
        save: Callable[..., Awaitable[None]],
        clock: Clock,
        *,
        sending: bool,
        on_fault: Callable[[], None],
    ) -> None:
        """Take up a post as it is stored.

        `save` stores whether it is `sending` and what is `posted`; it is on the disk when that returns, or it raises
        `StorageError`. `on_fault` is called once when a view cannot be shown for good.
        """
        self.question, self.posted, self._stored = question, posted, posted
        self.fault: Exception | None = None
        self.platform, self._save, self._clock, self._on_fault = platform, save, clock, on_fault
        self._sending = self._doubt = sending
        self.foreseen = False
        """Whether it is stored that a first post is begun, before it is."""
        self.sign = ProgressSign.NONE
        """What the asker saw last of a question of which nothing is posted."""
        self._latest: View | None = None
        self._waiting, self._signed, self._muted = True, False, False
        self._ends = False
        self._closing = asyncio.Event()
        self._pump: asyncio.Task[None] | None = None

    @property
    def ways(self) -> DeliveryCapabilities:
        return self.platform.ways(self.question)

    @property
    def begun(self) -> bool:
        """Whether something of it is posted, or may be."""
        return self._sending or self._muted or bool(self.posted)

    def offer(self, view: View, *, waiting: bool = False) -> None:
        """Show a view on the way as soon as may be, unless a newer one comes first. Never blocks.

        `waiting`: the question's turn has not come; nothing is posted of it, until something was to be.
        """
        if self.fault or self._muted or self.question.unasked:
            return
        self._latest, self._waiting = view, waiting and self._waiting
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._show_newest())

    @property
    def unstored(self) -> tuple[str, ...] | None:
        """The messages that are posted, where that is not stored yet; those that are gone stay known."""
        return self.posted.messages if self.posted and self.posted != self._stored else None

    async def finish(self, view: View, *, ends: bool = False) -> View:
        """Show the last view, however long the platform is away, and return it as it is shown.

        Where that `ends` the question, what is posted is stored with its end, if the platform can be asked until then.

        What the platform refuses for what it is made of is shown as plain text. Where it takes nothing, what is posted
        goes: nobody is to wait for what does not come.

        Raises:
            CannotPost, PostGone: The platform will not have it.
            DeliveryUnknown: It may have been shown.
            StorageError: How far it came could not be stored.
        """
        await self.settle()
        if self.fault:
            raise self.fault
        self._ends = ends
        refused: CannotPost | None = None
        for form in (view, *simplify_view(view)):
            try:
                await self.call_patiently(partial(self._show, form))
            except ContentRefused as error:
                log_event(logging.ERROR, "the platform refuses what an answer is made of", self.question, error)
                refused = error
            except CannotPost as error:
                refused = error
                break
            else:
                return form
        await self._withdraw()
        raise refused or AssertionError

    async def _withdraw(self) -> None:
        """Remove what only says that an answer comes, if the platform lets us."""
        if not self.posted:
            return
        try:
            await self.platform.remove(self.question, self.posted)
        except PlatformError as error:
            log_event(logging.WARNING, "what is posted still promises an answer", self.question, error)
        else:
            self.posted = PostedMessages()

    async def stands(self) -> bool:
        """Return whether something of it is posted, or may be where the platform cannot be asked.

        Raises `PlatformError` where it refuses to tell.
        """
        await self.settle()
        if self.ways.reads_back and self._sending and not (self.posted or self._muted):
            self.posted = await self.call_patiently(self._found)
            return bool(self.posted)
        return self.begun

    async def remove(self) -> tuple[str, ...]:
        """Remove all that was posted, and return the messages' ids. Raises `PlatformError` where it cannot."""
        await self.settle()
        if self.ways.reads_back and self.begun:
            self.posted = await self.call_patiently(self._found)
        removed = self.posted
        if removed:
            await self.call_patiently(lambda: self.platform.remove(self.question, removed))
            self.posted = PostedMessages()
        return removed.messages

    async def settle(self) -> None:
        """Wait until no view is on its way. None is cancelled: nobody would know whether it arrived."""
        self._closing.set()
        self._latest = None
        if self._pump is not None:
            await asyncio.wait({self._pump})
        self._closing.clear()

    async def wait_until_shown(self) -> None:
        """Wait until what was offered is shown, or never will be."""
        if self._pump is not None:
            await asyncio.wait({self._pump})

    async def show_once(self, view: View) -> None:
        """Show a view once, without storing anything: for when nothing can be stored. Raises `PlatformError`."""
        if self.posted and self.ways.edits:
            await self.platform.show(self.question, view, self.posted)
        elif not self._sending:
            await self.platform.tell(self.question, view.text)

    def close(self) -> None:
        if self._pump is not None:
            self._pump.cancel()

    async def _show_newest(self) -> None:
        attempts = itertools.count()
        while (view := self._latest) is not None and not self._closing.is_set():
            self._latest = None
            if await self._show_by_sign(view):
                continue
            try:
                await self._show(view)
            except PlatformUnavailable as error:
                self._latest = None if self._muted else self._latest or view
                pause = _choose_delay(error, next(attempts))
            except (PostGone, StorageError) as error:
                self.fault = error
                self._on_fault()
                return
            except Exception as error:  # noqa: BLE001 - whatever it is, the answer is tried all the same
                log_event(logging.WARNING, "a view on the way could not be shown", self.question, error)
                self._muted = True
                return
            else:
                attempts, pause = itertools.count(), self.ways.pace
            await self._clock.sleep_unless(self._closing, pause)

    async def _show_by_sign(self, view: View) -> bool:
        """Show a view by a sign; return whether that is enough for now."""
        waiting, changeable = self._waiting, self.ways.edits
        if self.begun or (self._signed and not waiting):
            return not changeable
        if not changeable:
            await self._clock.sleep_unless(self._closing, LASTING_SECONDS)
        if self._closing.is_set():
            return True
        self.sign, self._signed = await self._ask_for_sign(view), not waiting
        if self.sign and changeable and not waiting:
            await self._clock.sleep_unless(self._closing, SIGN_SECONDS)
            self._latest = None if self._closing.is_set() else self._latest or view
        return waiting or not changeable or bool(self.sign)

    async def _ask_for_sign(self, view: View) -> ProgressSign:
        try:
            async with asyncio.timeout(SIGN_CALL_SECONDS):
                return await self.platform.show_sign(self.question, view)
        except (PlatformError, TimeoutError) as error:
            log_event(logging.INFO, "a sign could not be shown", self.question, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the answer is tried all the same
            log_event(logging.WARNING, "a sign could not be shown", self.question, error)
        return ProgressSign.NONE

    async def _show(self, view: View) -> None:
        if self._doubt and self.ways.reads_back:
            self.posted = await self._found()
            if self.posted and not self.ways.edits:
                await self._store()
                return
        elif self._doubt:
            raise DeliveryUnknown("the answer was perhaps posted, and the platform cannot be asked")
        self._doubt = view.done or self.ways.reads_back
        if self._doubt and not self._sending:
            if not self.foreseen:
                await self._save(sending=True)
            self._sending = True
        try:
            self.posted = await self._call(view)
            while self.posted.begun:
                self.posted = replace(self.posted, begun=False)
                await self._save(posted=self.posted.messages)
                self._stored = self.posted
                self.posted = await self._call(view)
        except PlatformUnavailable as error:
            await self._failed_to_show(view, sure=error.seconds is not None)
            raise
        except ContentRefused:
            self._doubt = self.ways.reads_back  # of several messages some may be posted
            raise
        self._doubt = False
        await self._store()

    async def _call(self, view: View) -> PostedMessages:
        try:
            async with asyncio.timeout(CALL_SECONDS):
                return await self.platform.show(self.question, view, self.posted)
        except TimeoutError as error:
            raise PlatformUnavailable("The platform does not answer.") from error

    async def _failed_to_show(self, view: View, *, sure: bool) -> None:
        """Note what is known of a view that was not shown, or perhaps was: `sure` says that nothing was posted."""
        if sure:
            self._doubt = False
            if not self.ways.reads_back and self._sending:
                await self._save(sending=False)
                self._sending = False
        elif not (view.done or self.posted or self.ways.reads_back):
            # Each attempt could leave another line that nobody ever changes again.
            self._muted = True

    async def _store(self) -> None:
        """Store what is posted, if that changed, and that nothing is in doubt any more."""
        notes: dict[str, Any] = {}
        if self.posted != self._stored and not (self._ends and self.ways.reads_back):
            notes["posted"] = self.posted.messages
        if self._sending and not self.ways.reads_back:
            notes["sending"] = False
        if notes:
            await self._save(**notes)
            self._stored, self._sending = self.posted, notes.get("sending", self._sending)

    async def _found(self) -> PostedMessages:
        """Ask for what is posted. What is stored and not found was deleted, as an edit of it will say.

        Or the platform cannot find it: of what only the asker sees it may know the first message alone.
        """
        found = await self.platform.find(self.question)
        return self.posted if set(found.messages) <= set(self.posted.messages) else found

    async def call_patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call the platform until it is there. Raises all but `PlatformUnavailable`."""
        for attempt in itertools.count():
            try:
                return await call()
            except PlatformUnavailable as error:
                log_event(logging.WARNING, "the platform is away", self.question, error, attempt=attempt)
                await self._clock.sleep(_choose_delay(error, attempt))
        raise AssertionError


def _choose_delay(error: PlatformUnavailable, attempt: int) -> float:
    """Return how many seconds to wait: what the platform asks for, and longer where that does not help."""
    if error.seconds is not None and attempt < _TRUSTED_TRIES:
        return error.seconds
    return max(error.seconds or 0.0, compute_backoff(attempt))
