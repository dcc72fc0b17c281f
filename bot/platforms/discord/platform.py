"""Show views as messages in Discord."""

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import replace
from datetime import UTC, tzinfo

from bot.access import Asker
from bot.desk.platform_port import CannotPost, PlatformError, PostGone
from bot.platforms.discord import client, delivery, directory, messages
from bot.platforms.discord.client import InteractionExpired, ThreadArchived
from bot.platforms.discord.delivery import Deliveries, Delivery
from bot.platforms.discord.events import DiscordBotIdentity
from bot.platforms.shared.api_client import ApiClient, RequestRefused, SentMessage, show_pages
from bot.types import ConversationMessage, DeliveryCapabilities, Place, PostedMessages, ProgressSign, Question
from bot.views.turn_view import View

FIRST_POST_PATIENCE = 5.0  # seconds that a channel's first post waits for its turn
PACE = 1.5  # seconds between two changes of one message
SIGN_PATIENCE = 2.0  # seconds that a message's first sign waits for its turn
TYPING_SECONDS = 8.0  # Discord shows typing for 10 s


class DiscordPlatform:
    """All servers and DMs of one bot. Implements `bot.desk.platform_port.Platform`."""

    name = "discord"

    def __init__(
        self,
        call: ApiClient,
        us: DiscordBotIdentity,
        deliveries: Deliveries,
        *,
        connected: Callable[[], AbstractAsyncContextManager[None]],
        ready: Callable[[], str],
        refused: Callable[[], Awaitable[PlatformError]],
        refresh_asker: Callable[[Asker], Awaitable[Asker]],
        settled: Callable[[str], Awaitable[None]],
        now: Callable[[], float] = time.time,
        zone: tzinfo = UTC,
    ) -> None:
        self._deliveries = deliveries
        self._call, self._us, self._settled, self._now, self._zone = call, us, settled, now, zone
        self.connected, self.refused, self._ready, self._refresh_asker = connected, refused, ready, refresh_asker
        self._shown: dict[str, messages.DiscordMessage] = {}
        self._typed: dict[str, float] = {}

    @property
    def ready(self) -> str:
        return self._ready()

    async def asker(self, question: Question) -> Asker:
        return await self._refresh_asker(question.asker)

    def ways(self, question: Question) -> DeliveryCapabilities:
        """Return how an answer can be shown: a private one can be edited and read while its token is valid."""
        possible = not question.only_asker or self._deliveries.choose_reply(question) is not None
        return DeliveryCapabilities(edits=possible, reads_back=possible, pace=PACE)

    async def show(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        await self._settled(question.key)
        try:
            return await self._update(question, view, posted)
        except InteractionExpired:
            self._deliveries.late.append(question.key)
            return await self._update(question, view, posted)
        except (CannotPost, PostGone):
            self._shown.pop(question.key, None)
            raise

    async def show_sign(self, question: Question, view: View) -> ProgressSign:
        """Show that the bot is typing; for a command, show the queue position in place of "thinking"."""
        reply = self._deliveries.choose_reply(question)
        if reply is None:
            channel = _choose_typing_channel(question)
            shown = not question.only_asker and await self._show_typing(channel, patience=SIGN_PATIENCE)
            return ProgressSign.SHOWN if shown else ProgressSign.NONE
        if not view.before:
            return ProgressSign.SHOWN
        await self._settled(question.key)
        message = messages.render_first(view, self._zone)
        if self._shown.get(question.key) != message and reply.spare():
            await reply.edit(0, delivery.ORIGINAL_REPLY, message, patience=0.0)
            self._shown[question.key] = message
        return ProgressSign.WORDED

    async def find(self, question: Question) -> PostedMessages:
        reply, ids = self._deliveries.choose_reply(question), set[str]()
        if reply:
            original = await reply.original()
            if messages.parse_mark(original) == messages.build_mark(question.key):
                ids.add(str(original["id"]))
        if not question.only_asker:
            ids |= set(await self._find_in_channel(question, replied=reply is not None))
        return PostedMessages(tuple(sorted(ids, key=int)))

    async def remove(self, question: Question, posted: PostedMessages) -> None:
        """Delete posts. Private posts that can no longer be deleted disappear by themselves."""
        for page, number in enumerate(posted.messages):
            await self._delete(question, page, number)
        self._shown.pop(question.key, None)

    async def tell(self, question: Question, text: str) -> None:
        """Post a sentence as the reply to the question's interaction, or in its channel."""
        await self._settled(question.key)
        await self._deliveries.tell(question, text)

    async def call(self, place: Place, text: str, people: Sequence[str]) -> PostedMessages:
        """Post a sentence that mentions `people`.

        If the response is lost, look for the post before posting again.
        """
        return await delivery.call_for_help(self._call, self._us, place, text, people, self._now())

    async def heard(self, question: Question, most: int) -> tuple[ConversationMessage, ...]:
        return await directory.read_conversation(self._call, question, self._us, most)

    async def _update(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        way = self._deliveries.choose(question)
        if way is None:
            return await self._refuse_unseen(question, view, posted)
        show_view = self._show_final if view.done else self._show_partial
        shown = await show_view(way, question, view, posted)
        if shown != posted:  # Discord ends typing with a post
            self._typed.pop(_choose_typing_channel(question), None)
        return shown

    async def _show_partial(
        self, way: Delivery, question: Question, view: View, posted: PostedMessages
    ) -> PostedMessages:
        message = messages.render_first(view, self._zone)
        if not posted:
            sent = await way.post(0, message, patience=FIRST_POST_PATIENCE)
            self._shown[question.key] = message
            return PostedMessages((sent.id,))
        if self._shown.get(question.key) != message and way.spare():
            with suppress(ThreadArchived):
                await way.edit(0, posted.messages[0], message, patience=0.0)
            self._shown[question.key] = message
        if not question.handle:
            await self._show_typing(_choose_typing_channel(question))
        return posted

    async def _show_final(
        self, way: Delivery, question: Question, view: View, posted: PostedMessages
    ) -> PostedMessages:

        async def edit(page: int, number: str, message: messages.DiscordMessage) -> None:
            await way.edit(page, number, message)

        async def post(page: int, instead: str, message: messages.DiscordMessage) -> SentMessage:
            if not instead:
                return await way.post(page, message)
            # Posting reopens an archived thread, and is the only way in a thread that we did not open.
            return await self._deliveries.choose_channel(question).post(page, message, instead=instead)

        pages = messages.render_messages(view, self._zone)
        shown = await show_pages(pages, posted, edit=edit, post=post, delete=way.delete)
        if not shown.begun:
            self._shown.pop(question.key, None)
        return shown

    async def _refuse_unseen(self, question: Question, view: View, posted: PostedMessages) -> PostedMessages:
        """Notify the asker that the answer can no longer be shown privately, and raise `CannotPost`."""
        if not view.done:
            return posted
        notice = self._deliveries.choose_channel(delivery.mark_unseen_notice(question))
        await delivery.notify_unseen(self._call, notice, question, view.language)
        raise CannotPost("Discord no longer allows showing this to its asker alone.")

    async def _show_typing(self, channel: str, *, patience: float = 0.0) -> bool:
        """Show that the bot is typing, unless it is shown already; return whether it is shown.

        If `patience` is 0, the call is made only if the rate limit has room for optional calls.
        """
        now = self._call.pacing.now()
        if now < self._typed.get(channel, 0.0):
            return True
        if not patience and not self._call.pacing.spare(client.TYPING, {"channel": channel}):
            return False
        self._typed = {name: until for name, until in self._typed.items() if until > now}
        self._typed[channel] = now + TYPING_SECONDS
        try:
            await self._call(client.TYPING, patience=patience, channel=channel)
        except PlatformError:
            return False
        return True

    async def _find_in_channel(self, question: Question, *, replied: bool) -> tuple[str, ...]:
        """Return the ids of our messages in the channel.

        If the channel may not be read, this raises `RequestRefused`, or returns nothing if the bot already `replied`
        elsewhere.
        """
        after, place = directory.question_time(question), question.place
        try:
            pages = await directory.find_our_pages(self._call, place, question.key, after, self._us)
            if not pages and delivery.is_thread_wanted(question):  # opening the thread may have failed
                place = replace(place, thread="")
                pages = await directory.find_our_pages(self._call, place, question.key, after, self._us)
        except RequestRefused:
            if not replied:
                raise
            return ()
        return pages.messages

    async def _delete(self, question: Question, page: int, number: str) -> None:
        try:
            if way := self._deliveries.choose(question):
                await way.delete(page, number)
        except InteractionExpired:
            self._deliveries.late.append(question.key)
            await self._delete(question, page, number)


def _choose_typing_channel(question: Question) -> str:
    """Return the channel or thread in which to show typing; a thread for the answer may not exist yet."""
    place = question.place
    return place.channel if delivery.is_thread_wanted(question) else messages.choose_channel(place)
