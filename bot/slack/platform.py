"""Slack as the desk sees it: a view becomes messages, and what stands there is brought to what the view shows.

An answer is on its way as a live message where there can be one, else as one message that is updated as often as the
limits of the workspace leave room; views that come faster are left out. When it is whole, it stands there whole, in as
many messages as it needs. What only its asker sees is posted once, when it is whole.
"""

import secrets
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from datetime import UTC, tzinfo

from bot.access import Asker
from bot.desk.types import ConversationMessage, DeliveryCapabilities, Place, PostedMessages, Question
from bot.platform import CannotPost, PlatformUnavailable, PostGone
from bot.slack import posting, reading_back
from bot.slack.calling import PATIENCE, Calling
from bot.slack.posting import ANSWER, CALL, mark
from bot.slack.refusals import CannotEdit, NotStreaming
from bot.slack.rendering import Message, first, messages
from bot.slack.streaming import Streaming
from bot.views.turn_view import View

SOON = 5.0
"""Seconds that the first sign of life waits for its turn in a channel."""
_REMEMBERED = 1_000
PACE = 1.5
"""Seconds between two changes of one message."""


class SlackPlatform:
    """One workspace. Implements `bot.platform.Platform`."""

    name = "slack"

    def __init__(
        self,
        call: Calling,
        *,
        by_now: Callable[[Asker], Awaitable[Asker]],
        connected: Callable[[], AbstractAsyncContextManager[None]],
        ready: Callable[[], str],
        zone: tzinfo = UTC,
    ) -> None:
        """Take what it works with.

        Args:
            call: The way to Slack.
            by_now: Says where somebody stands by now.
            connected: Receives Slack's events.
            ready: Says whether it does.
            zone: Whose days dates are.
        """
        self._call, self._streaming, self._zone = call, Streaming(call), zone
        self.connected, self._ready, self._by_now = connected, ready, by_now
        self._shown: dict[str, Message] = {}
        self._us = ""
        self._deleted = deque[str](maxlen=_REMEMBERED)

    @property
    def ready(self) -> str:
        """Why events cannot arrive just now; empty when all is well."""
        return self._ready()

    async def asker(self, question: Question) -> Asker:
        """Return who asked, and where they stand by now. Raises `PlatformUnavailable` where Slack does not say."""
        return await self._by_now(question.asker)

    def ways(self, question: Question) -> DeliveryCapabilities:
        """Say what can be done: what only the asker sees can be neither changed nor read back."""
        return DeliveryCapabilities(edits=not question.only_asker, reads_back=not question.only_asker, pace=PACE)

    async def show(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        """Bring what stands there to what the view shows."""
        if question.only_asker:
            return await self._privately(question, view) if view.done else posted
        bring = self._whole if view.done else self._on_the_way
        try:
            return await bring(question, view, posted)
        except (CannotPost, PostGone):
            self._forget(question)
            raise

    async def find(self, question: Question) -> PostedMessages:
        """Read our messages in answer to a question."""
        return await reading_back.posted(self._call, question, await self._our_id())

    async def remove(self, question: Question, posted: PostedMessages) -> None:
        """Delete what was posted. What only the asker sees is gone when they look away, and cannot be deleted."""
        for ts in () if question.only_asker else posted.messages:
            await self._delete(question, ts)
        self._forget(question)

    def deleted_by_us(self, ts: str) -> bool:
        """Return whether it was we who deleted a message: Slack tells of that as of anybody's."""
        return ts in self._deleted

    async def tell(self, question: Question, text: str) -> None:
        """Say a sentence to the asker alone."""
        for message in messages(View(0, text=text), self._zone):
            await self._say(question, message)

    async def call(self, place: Place, text: str, people: Sequence[str]) -> PostedMessages:
        """Post a sentence that mentions these people; one whose post is in doubt is looked for, not repeated."""
        sent = list[str]()
        for message in messages(View(0, text=text, mentions=tuple(people)), self._zone):
            key = secrets.token_hex(8)
            try:
                answer = await self._call("chat.postMessage", **posting.post(place, message, mark(CALL, key)))
            except PlatformUnavailable as error:
                found = (
                    PostedMessages() if error.seconds is not None else await reading_back.called(self._call, place, key)
                )
                if not found:
                    raise
                sent += found.messages
            else:
                sent.append(str(answer["ts"]))
        return PostedMessages(tuple(sent))

    async def heard(self, question: Question, most: int) -> tuple[ConversationMessage, ...]:
        """Read the conversation before a question."""
        return await reading_back.heard(self._call, question, await self._our_id(), most)

    async def _on_the_way(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        """Show a view that others follow, or leave it out."""
        if not posted:
            return await self._begin(question, view)
        ts = posted.messages[0]
        if self._streaming.live(question, ts):
            if await self._streaming.go_on(question, view):
                return posted
            await self._streaming.end(question, ts, mark(ANSWER, question.key), patience=SOON)
        message = first(view, self._zone)
        if self._shown.get(question.key) != message and self._call.pacing.spare("chat.update"):
            self._shown[question.key] = message
            with suppress(CannotEdit):
                await self._edit(question, ts, message, 0, patience=0.0)
        return posted

    async def _begin(self, question: Question, view: View) -> PostedMessages:
        """Show the first sign of life."""
        if self._streaming.possible(question) and (ts := await self._streaming.begin(question, view)):
            return PostedMessages((ts,))
        message = first(view, self._zone)
        self._shown[question.key] = message
        return PostedMessages((await self._post(question, message, 0, patience=SOON),))

    async def _whole(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        """Show the whole of it, in as many messages as it takes."""
        pages = messages(view, self._zone)
        for ts in posted.messages[:1]:
            if self._streaming.live(question, ts):
                await self._streaming.end(question, ts, mark(ANSWER, question.key))
        left, fixed, shown = deque(posted.messages), list[str](), list[str]()
        try:
            for number, message in enumerate(pages):
                edited = await self._into(question, left, fixed, message, number)
                shown.append(edited or await self._post(question, message, number))
            for ts in (*fixed, *left):
                await self._delete(question, ts)
        except PlatformUnavailable as error:
            raise error.doubted() if set(shown) - set(posted.messages) else error from error
        self._forget(question)
        return PostedMessages(tuple(shown))

    async def _into(self, question: Question, left: deque[str], fixed: list[str], message: Message, page: int) -> str:
        """Let the first of our messages that can be changed show a page, and return it; those that cannot are fixed."""
        while left:
            ts = left.popleft()
            try:
                await self._edit(question, ts, message, page)
            except CannotEdit:
                fixed.append(ts)
            else:
                return ts
        return ""

    async def _privately(self, question: Question, view: View) -> PostedMessages:
        """Show the asker alone. Of such messages nothing is known later, not even where they stand."""
        sent = list[str]()
        for number, message in enumerate(messages(view, self._zone)):
            try:
                await self._say(question, message)
            except PlatformUnavailable as error:
                raise error.doubted() if sent else error from error
            sent.append(f"private-{number}")
        return PostedMessages(tuple(sent))

    async def _say(self, question: Question, message: Message) -> None:
        """Post to one person: where they asked, as long as the address that came with it lives."""
        if question.handle:
            try:
                await self._call.respond(question.handle, posting.response(question, message))
            except CannotPost:
                pass
            else:
                return
        await self._call("chat.postEphemeral", **posting.private(question, message))

    async def _post(self, question: Question, message: Message, page: int, *, patience: float = PATIENCE) -> str:
        facts = posting.post(question.place, message, mark(ANSWER, question.key, page))
        return str((await self._call("chat.postMessage", patience=patience, **facts))["ts"])

    async def _edit(
        self, question: Question, ts: str, message: Message, page: int, *, patience: float = PATIENCE
    ) -> None:
        metadata = mark(ANSWER, question.key, page)
        facts = posting.edit(question.place, ts, message, metadata)
        try:
            await self._call("chat.update", patience=patience, **facts)
        except NotStreaming:
            # It is live still: begun before a restart, or given up while Slack could not be reached.
            await self._streaming.end(question, ts, metadata)
            await _once_over(self._call("chat.update", patience=patience, **facts))

    async def _delete(self, question: Question, ts: str) -> None:
        if self._streaming.live(question, ts):
            await self._streaming.end(question, ts, mark(ANSWER, question.key))
        self._deleted.append(ts)
        try:
            await self._call("chat.delete", channel=question.place.channel, ts=ts)
        except PostGone:
            return
        except NotStreaming:
            await self._streaming.end(question, ts, mark(ANSWER, question.key))
            await _once_over(self._call("chat.delete", channel=question.place.channel, ts=ts))

    async def _our_id(self) -> str:
        if not self._us:
            self._us = str((await self._call("auth.test"))["user_id"])
        return self._us

    def _forget(self, question: Question) -> None:
        self._streaming.forget(question)
        self._shown.pop(question.key, None)


async def _once_over(call: Awaitable[object]) -> None:
    """Make a call that waits for the end of a live message, which comes by itself after some minutes."""
    try:
        await call
    except NotStreaming as error:
        raise PlatformUnavailable(str(error), seconds=SOON) from error
