"""Show views as messages in Slack."""

import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Any

from bot.access import Asker
from bot.desk.platform_port import CannotPost, PlatformError, PlatformUnavailable, PostGone
from bot.platforms.shared.api_client import PATIENCE, EditRefused, SentMessage, post_once, show_pages
from bot.platforms.slack import messages
from bot.platforms.slack.client import (
    DELETE,
    POST,
    POST_EPHEMERAL,
    STATUS,
    UPDATE,
    WHO_WE_ARE,
    SlackApiClient,
    StreamClosed,
    ThreadRefused,
)
from bot.platforms.slack.directory import find_help_call, find_our_message, read_thread
from bot.platforms.slack.messages import (
    ANSWER,
    CALL,
    SlackMessage,
    build_mark,
    build_notice,
    escape_mrkdwn,
    render_first,
    render_messages,
)
from bot.platforms.slack.streaming import LiveMessages
from bot.types import ConversationMessage, DeliveryCapabilities, Place, PostedMessages, ProgressSign, Question
from bot.views.catalog import translate
from bot.views.turn_view import View
from bot.views.view_reducer import shorten_question, show_queue_position

log = logging.getLogger(__name__)

STATUS_SECONDS, STATUS_PACE = 90.0, 20.0
"""Seconds after which a status is renewed, which Slack shows for two minutes, and after which it may be changed."""
UPDATES_SPARED = 10  # updates a minute that are not for unfinished answers
FIRST_POST_PATIENCE = 5.0  # seconds that a channel's first post waits for its turn
_REMEMBERED = 1_000
PACE = 1.5  # seconds between two changes of one message


class ProgressSigns:
    """Remembers the latest progress sign of each question, and when it was shown."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._signs: dict[str, tuple[str, float]] = {}

    def __contains__(self, question: Question) -> bool:
        return question.key in self._signs

    def get(self, question: Question) -> tuple[str, float]:
        return self._signs.get(question.key, ("", 0.0))

    def note(self, question: Question, words: str, now: float) -> None:
        while len(self._signs) >= _REMEMBERED:
            self._signs.pop(next(iter(self._signs)))
        self._signs[question.key] = (words, now)

    def forget(self, question: Question) -> None:
        self._signs.pop(question.key, None)

    def announce(self, question: Question, before: int) -> str:
        """Return the acknowledgement of a command as mrkdwn, and note it as its question's sign."""
        self.note(question, "taken", self._now())
        return _render_acknowledgement(question, show_queue_position(View(0, question.language), before))


class SlackPlatform:
    """One workspace. Implements `bot.desk.platform_port.Platform`."""

    name = "slack"

    def __init__(
        self,
        call: SlackApiClient,
        *,
        signs: ProgressSigns,
        refresh_asker: Callable[[Asker], Awaitable[Asker]],
        connected: Callable[[], AbstractAsyncContextManager[None]],
        ready: Callable[[], str],
        zone: tzinfo = UTC,
    ) -> None:
        self._call, self._streaming, self._zone = call, LiveMessages(call), zone
        self.connected, self._ready, self._refresh_asker = connected, ready, refresh_asker
        self._shown: dict[str, SlackMessage] = {}
        self._signs = signs
        self._us = ""

    @property
    def ready(self) -> str:
        return self._ready()

    async def asker(self, question: Question) -> Asker:
        return await self._refresh_asker(question.asker)

    def ways(self, question: Question) -> DeliveryCapabilities:
        """Return how an answer can be shown: a private one can be neither edited nor read."""
        return DeliveryCapabilities(edits=not question.only_asker, reads_back=not question.only_asker, pace=PACE)

    async def show(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        if question.only_asker:
            return await self._show_privately(question, view) if view.done else posted
        show_view = self._show_final if view.done else self._show_partial
        try:
            return await show_view(question, view, posted)
        except (CannotPost, PostGone):
            self._forget(question)
            raise

    async def show_sign(self, question: Question, view: View) -> ProgressSign:
        """Set the status of the question's thread; acknowledge a command once."""
        now, (shown, at) = self._call.pacing.now(), self._signs.get(question)
        pace = STATUS_SECONDS if shown == view.status else STATUS_PACE
        if question.handle:
            if not shown:
                self._signs.note(question, "taken", now)
                notice = build_notice(question, _render_acknowledgement(question, view))
                await self._call.respond(question.handle, notice)
        elif not question.place.thread:
            return ProgressSign.SHOWN  # a status needs a thread, which a welcome lacks
        elif not shown or (now >= at + pace and self._call.pacing.spare(STATUS)):
            await self._set_status(question, translate("slack_status", view.language), view.status)
            self._signs.note(question, view.status, now)
        return ProgressSign.WORDED

    async def find(self, question: Question) -> PostedMessages:
        return await find_our_message(self._call, question, await self._load_user_id())

    async def remove(self, question: Question, posted: PostedMessages) -> None:
        """Delete posts. Private posts cannot be deleted, and disappear by themselves."""
        for ts in () if question.only_asker else posted.messages:
            await self._delete(question, ts)
        self._forget(question)

    async def tell(self, question: Question, text: str) -> None:
        for message in render_messages(View(0, text=text), self._zone):
            await self._post_privately(question, message)

    async def call(self, place: Place, text: str, people: Sequence[str]) -> PostedMessages:
        """Post a sentence that mentions `people`.

        If the response is lost, look for the post before posting again.
        """
        pages = [
            (message, secrets.token_hex(8))
            for message in render_messages(View(0, text=text, mentions=tuple(people)), self._zone)
        ]

        async def post(_: int, page: tuple[SlackMessage, str]) -> str:
            body = messages.build_post(place, page[0], build_mark(CALL, page[1]))
            return str((await self._call(POST, body, channel=place.channel))["ts"])

        async def find(number: int) -> Sequence[str]:
            return (await find_help_call(self._call, place, pages[number][1])).messages

        return await post_once(pages, post, find)

    async def heard(self, question: Question, most: int) -> tuple[ConversationMessage, ...]:
        return await read_thread(self._call, question, await self._load_user_id(), most)

    async def _show_partial(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        if not posted:
            return await self._post_first(question, view)
        ts = posted.messages[0]
        if self._streaming.live(question, ts):
            if await self._streaming.extend(question, view):
                return posted
            await self._streaming.end(question, ts, build_mark(ANSWER, question.key), patience=FIRST_POST_PATIENCE)
        message = render_first(view, self._zone)
        if self._shown.get(question.key) != message and self._call.pacing.spare(UPDATE):
            self._shown[question.key] = message
            with suppress(EditRefused):
                await self._edit(question, ts, message, 0, patience=0.0)
        return posted

    async def _post_first(self, question: Question, view: View) -> PostedMessages:
        if question in self._signs and not self._may_promise_update():
            await self.show_sign(question, view)
            return PostedMessages()
        if self._streaming.possible(question) and (ts := await self._streaming.begin(question, view)):
            return PostedMessages((ts,))
        message = render_first(view, self._zone)
        self._shown[question.key] = message
        return PostedMessages((await self._post(question, message, 0, patience=FIRST_POST_PATIENCE),))

    async def _show_final(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        pages = render_messages(view, self._zone)
        for ts in posted.messages[:1]:
            if self._streaming.live(question, ts):
                await self._streaming.end(question, ts, build_mark(ANSWER, question.key))

        async def edit(number: int, ts: str, message: SlackMessage) -> None:
            await self._edit(question, ts, message, number)

        async def post(number: int, _: str, message: SlackMessage) -> SentMessage:
            return SentMessage(await self._post(question, message, number))

        async def delete(_: int, ts: str) -> None:
            await self._delete(question, ts)

        shown = await show_pages(pages, posted, edit=edit, post=post, delete=delete)
        self._forget(question)
        return shown

    async def _show_privately(self, question: Question, view: View) -> PostedMessages:
        """Show a view to the asker alone. Such messages cannot be found later."""
        sent = list[str]()
        for number, message in enumerate(render_messages(view, self._zone)):
            try:
                await self._post_privately(question, message)
            except PlatformUnavailable as error:
                raise error.doubted() if sent else error from error
            sent.append(f"private-{number}")
        if question in self._signs and not question.handle:
            with suppress(PlatformError):
                await self._set_status(question, "")
        self._forget(question)
        return PostedMessages(tuple(sent))

    async def _post_privately(self, question: Question, message: SlackMessage) -> None:
        """Post to the asker alone: to the command's `response_url` while it is valid, otherwise in the channel."""
        if question.handle:
            try:
                await self._call.respond(question.handle, messages.build_response(question, message))
            except CannotPost:
                pass
            else:
                return
        await self._call(POST_EPHEMERAL, messages.build_ephemeral(question, message))

    async def _post(self, question: Question, message: SlackMessage, page: int, *, patience: float = PATIENCE) -> str:
        mark = build_mark(ANSWER, question.key, page)
        facts = messages.build_post(question.place, message, mark)
        try:
            answer = await self._call(POST, facts, patience=patience, channel=question.place.channel)
        except ThreadRefused as error:
            log.warning("replies are not allowed: answering in the channel", extra={"cause": str(error)})
            facts = messages.build_post(replace(question.place, thread=""), message, mark)
            answer = await self._call(POST, facts, patience=patience, channel=question.place.channel)
        return str(answer["ts"])

    async def _edit(
        self, question: Question, ts: str, message: SlackMessage, page: int, *, patience: float = PATIENCE
    ) -> None:
        metadata = build_mark(ANSWER, question.key, page)
        facts = messages.build_edit(question.place, ts, message, metadata)
        try:
            await self._call(UPDATE, facts, patience=patience)
        except StreamClosed:
            # The message is still live: from before a restart, or given up while Slack was unreachable.
            await self._streaming.end(question, ts, metadata)
            await _call_or_wait(self._call(UPDATE, facts, patience=patience))

    async def _delete(self, question: Question, ts: str) -> None:
        if self._streaming.live(question, ts):
            await self._streaming.end(question, ts, build_mark(ANSWER, question.key))
        try:
            await self._call(DELETE, {"channel": question.place.channel, "ts": ts})
        except PostGone:
            return
        except StreamClosed:
            await self._streaming.end(question, ts, build_mark(ANSWER, question.key))
            await _call_or_wait(self._call(DELETE, {"channel": question.place.channel, "ts": ts}))

    async def _load_user_id(self) -> str:
        if not self._us:
            self._us = str((await self._call(WHO_WE_ARE))["user_id"])
        return self._us

    def _may_promise_update(self) -> bool:
        """Return whether the rate limit allows one more message to be updated with its answer within this minute."""
        return self._call.pacing.room(UPDATE) > len(self._shown) + self._streaming.count + UPDATES_SPARED

    async def _set_status(self, question: Question, *words: str) -> None:
        """Set the status of a question's thread; an empty status removes it.

        Slack shows the first of `words` after our name, and the others without it.
        """
        status, *loading = map(escape_mrkdwn, words)
        facts: dict[str, Any] = {"channel_id": question.place.channel, "thread_ts": question.place.thread}
        facts |= {"status": status, **({"loading_messages": loading} if loading else {})}
        await self._call(STATUS, facts, patience=0.0)

    def _forget(self, question: Question) -> None:
        self._streaming.forget(question)
        self._shown.pop(question.key, None)
        self._signs.forget(question)


def _render_acknowledgement(question: Question, view: View) -> str:
    """Return the reply that acknowledges a command. It cannot be edited later."""
    words = translate("slack_taken", view.language, question=shorten_question(question.text))
    return escape_mrkdwn(f"{words} {view.status}" if view.before else words)


async def _call_or_wait(call: Awaitable[object]) -> None:
    """Make a call. Raises `PlatformUnavailable` if the message is still live, because it will end within minutes."""
    try:
        await call
    except StreamClosed as error:
        raise PlatformUnavailable(str(error), seconds=FIRST_POST_PATIENCE) from error
