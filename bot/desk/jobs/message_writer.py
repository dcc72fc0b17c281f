"""Post one question's messages, so that nothing is posted twice.

Before a first post, the intention to post is stored; after it, the messages' ids. After a crash, the platform is asked
for our messages. If the platform cannot be asked, the intention is stored only for the last view, which must not be
posted twice.

Progress views are optional: only the newest is shown, never faster than the platform's pace, and none after a permanent
failure. The answer is retried until it is shown. Progress is first shown by a sign that needs no post, such as that the
bot is typing. An answer within seconds then needs a single post and no edit; platforms allow few edits.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from bot.desk.platform_port import CannotPost, ContentRefused, Platform, PlatformError, PlatformUnavailable, PostGone
from bot.desk.supervisor import Clock, compute_backoff
from bot.types import DeliveryCapabilities, PostedMessages, ProgressSign, Question, log_event
from bot.views.turn_view import View
from bot.views.view_reducer import simplify_view
from storage.errors import StorageError

T = TypeVar("T")

CALL_SECONDS = 120.0  # a platform that takes longer counts as unreachable
SIGN_SECONDS = 3.0  # how long only a sign is shown before something is posted
SIGN_CALL_SECONDS = 10.0  # how long a platform may take to show a sign; the answer waits for it
LASTING_SECONDS = 1.0  # how long to wait before showing a progress view that cannot be edited later
_TRUSTED_TRIES = 3  # attempts at which the platform's own waiting time is trusted


class DeliveryUnknown(Exception):
    """The last view may have been posted, and the platform cannot be asked whether it was."""


class MessageWriter:
    """Shows the views of one question, one at a time. `fault` is the reason if nothing more can be shown."""

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
        """Continue from the stored state.

        `save` stores `sending` and `posted` on disk before it returns, or raises `StorageError`. `on_fault` is called
        once when a view permanently cannot be shown.
        """
        self.question, self.posted, self._stored = question, posted, posted
        self.fault: Exception | None = None
        self.platform, self._save, self._clock, self._on_fault = platform, save, clock, on_fault
        self._sending = self._doubt = sending
        self.foreseen = False
        """Whether the start of the first post is already stored."""
        self.sign = ProgressSign.NONE
        """The last sign that the asker saw before anything was posted."""
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
        """Whether something was posted, or may have been."""
        return self._sending or self._muted or bool(self.posted)

    def offer(self, view: View, *, waiting: bool = False) -> None:
        """Show a progress view as soon as possible, unless a newer one comes first. Never blocks.

        `waiting`: the question is not started yet, so only a sign is shown unless something was posted.
        """
        if self.fault or self._muted or self.question.unasked:
            return
        self._latest, self._waiting = view, waiting and self._waiting
        if self._pump is None or self._pump.done():
            self._pump = asyncio.create_task(self._show_newest())

    @property
    def unstored(self) -> tuple[str, ...] | None:
        """The posted messages, if they are not stored yet; None if they are stored or deleted."""
        return self.posted.messages if self.posted and self.posted != self._stored else None

    async def finish(self, view: View, *, ends: bool = False) -> View:
        """Show the last view, retrying while the platform is unreachable, and return it in the form that was shown.

        `ends` means that the question ends with this view. If the platform can be asked for our posts, they are then
        stored together with the end. Refused content is shown as plain text. If the platform refuses that too, the
        earlier posts are deleted, because they promise an answer.

        Raises `CannotPost` or `PostGone` if the platform refuses the view, `DeliveryUnknown` if it may have been shown,
        and `StorageError`.
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
                log_event(logging.ERROR, "the platform refused the content of an answer", self.question, error)
                refused = error
            except CannotPost as error:
                refused = error
                break
            else:
                return form
        await self._withdraw()
        raise refused or AssertionError

    async def _withdraw(self) -> None:
        """Delete posts that only announce an answer, if the platform permits it."""
        if not self.posted:
            return
        try:
            await self.platform.remove(self.question, self.posted)
        except PlatformError as error:
            log_event(logging.WARNING, "cannot delete the announcement of an answer", self.question, error)
        else:
            self.posted = PostedMessages()

    async def has_posted(self) -> bool:
        """Return whether something is posted, or whether it may be and the platform cannot be asked.

        Raises `PlatformError`.
        """
        await self.settle()
        if self.ways.reads_back and self._sending and not (self.posted or self._muted):
            self.posted = await self.call_patiently(self._find_posts)
            return bool(self.posted)
        return self.begun

    async def remove(self) -> tuple[str, ...]:
        """Delete all posts, and return their ids. Raises `PlatformError`."""
        await self.settle()
        if self.ways.reads_back and self.begun:
            self.posted = await self.call_patiently(self._find_posts)
        removed = self.posted
        if removed:
            await self.call_patiently(lambda: self.platform.remove(self.question, removed))
            self.posted = PostedMessages()
        return removed.messages

    async def settle(self) -> None:
        """Wait for the view that is being shown. It is not cancelled, because it might be shown nevertheless."""
        self._closing.set()
        self._latest = None
        if self._pump is not None:
            await asyncio.wait({self._pump})
        self._closing.clear()

    async def wait_until_shown(self) -> None:
        """Wait until the offered view is shown, or dropped."""
        if self._pump is not None:
            await asyncio.wait({self._pump})

    async def show_once(self, view: View) -> None:
        """Try once to show a view. Used if nothing can be stored. Raises `PlatformError`."""
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
            except Exception as error:  # noqa: BLE001 - whatever it is, the answer is still shown
                log_event(logging.WARNING, "cannot show a progress view", self.question, error)
                self._muted = True
                return
            else:
                attempts, pause = itertools.count(), self.ways.pace
            await self._clock.sleep_unless(self._closing, pause)

    async def _show_by_sign(self, view: View) -> bool:
        """Show a progress sign, such as typing, before a view is posted; return whether no post is needed for now."""
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
            log_event(logging.INFO, "cannot show a sign", self.question, error)
        except Exception as error:  # noqa: BLE001 - whatever it is, the answer is still shown
            log_event(logging.WARNING, "cannot show a sign", self.question, error)
        return ProgressSign.NONE

    async def _show(self, view: View) -> None:
        if self._doubt and self.ways.reads_back:
            self.posted = await self._find_posts()
            if self.posted and not self.ways.edits:
                await self._store()
                return
        elif self._doubt:
            raise DeliveryUnknown("the answer may have been posted; the platform cannot be asked")
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
            self._doubt = self.ways.reads_back  # some of several messages may have been posted
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
        """Handle a view that certainly was not shown (`sure`), or that may have been."""
        if sure:
            self._doubt = False
            if not self.ways.reads_back and self._sending:
                await self._save(sending=False)
                self._sending = False
        elif not (view.done or self.posted or self.ways.reads_back):
            # Each attempt could leave another post that is never edited again.
            self._muted = True

    async def _store(self) -> None:
        """Store the ids of the posts if they changed, and that no post is in progress any more."""
        notes: dict[str, Any] = {}
        if self.posted != self._stored and not (self._ends and self.ways.reads_back):
            notes["posted"] = self.posted.messages
        if self._sending and not self.ways.reads_back:
            notes["sending"] = False
        if notes:
            await self._save(**notes)
            self._stored, self._sending = self.posted, notes.get("sending", self._sending)

    async def _find_posts(self) -> PostedMessages:
        """Ask the platform for our posts. If it returns no post that is new to us, return the stored ones.

        The platform may not return a stored post because it was deleted, which the next edit of it will report. It may
        also be unable to find the post: of messages that only the asker sees, it may know only the first.
        """
        posted = await self.platform.find(self.question)
        return self.posted if set(posted.messages) <= set(self.posted.messages) else posted

    async def call_patiently(self, call: Callable[[], Awaitable[T]]) -> T:
        """Call the platform, retrying while it is unreachable. Other errors are raised immediately."""
        for attempt in itertools.count():
            try:
                return await call()
            except PlatformUnavailable as error:
                log_event(logging.WARNING, "the platform is unreachable", self.question, error, attempt=attempt)
                await self._clock.sleep(_choose_delay(error, attempt))
        raise AssertionError


def _choose_delay(error: PlatformUnavailable, attempt: int) -> float:
    """Return the seconds to wait before a retry: as the platform asks, and longer after several failures."""
    if error.seconds is not None and attempt < _TRUSTED_TRIES:
        return error.seconds
    return max(error.seconds or 0.0, compute_backoff(attempt))
