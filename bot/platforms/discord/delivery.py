"""Deliver answers in Discord: in a channel, in a thread opened for them, or as the reply to an interaction."""

import logging
import secrets
from collections import deque
from collections.abc import Callable, Mapping, MutableSequence, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, tzinfo
from typing import Any

from bot.desk.platform_port import CannotPost, PlatformError, PostGone
from bot.platforms.discord import client, directory
from bot.platforms.discord.client import ChannelUnavailable, InteractionExpired, ThreadArchived
from bot.platforms.discord.events import DiscordBotIdentity, build_snowflake
from bot.platforms.discord.interactions import InteractionToken, is_token_valid, parse_token
from bot.platforms.discord.messages import (
    EPHEMERAL,
    DiscordMessage,
    build_body,
    build_label,
    build_nonce,
    build_post,
    build_reference,
    choose_channel,
    is_showing,
    render_messages,
    render_page,
)
from bot.platforms.shared.api_client import PATIENCE, ApiClient, RequestRefused, SentMessage, post_once
from bot.platforms.shared.payload_text import Json
from bot.platforms.shared.rate_limit import Route
from bot.types import Place, PostedMessages, Question
from bot.views.catalog import translate
from bot.views.message_layout import MessagePage
from bot.views.sanitize import defang_text
from bot.views.turn_view import View

log = logging.getLogger(__name__)

_THREAD_EXISTS = 160004
_LONGEST = 100
_DEFAULT_NAME = "Footnote"
_ARCHIVE_MINUTES = 1_440


def is_thread_wanted(question: Question) -> bool:
    """Return whether the answer goes to a thread on the question's own message; pure."""
    return bool(question.message) and question.place.thread == question.message


async def open_thread(call: ApiClient, question: Question) -> None:
    """Open a thread on the question's message, unless it has one. Raises `PlatformError`."""
    name = build_label(defang_text(question.text), _LONGEST) if question.text.strip() else _DEFAULT_NAME
    body: dict[str, Any] = {"name": name, "auto_archive_duration": _ARCHIVE_MINUTES}
    try:
        await call(client.OPEN_THREAD, body, channel=question.place.channel, message=question.message)
    except RequestRefused as error:
        if error.code != _THREAD_EXISTS:
            raise


ORIGINAL_REPLY = "@original"
_NO_REPLY = frozenset({50035, 160002})
"""Codes for a message that cannot be replied to: not a person's, or in a history hidden from us."""


class ChannelDelivery:
    """Posts, edits and deletes an answer's messages in a channel, a thread or a DM.

    `deleted` collects the ids of messages that we delete, `threadless` the keys of questions that get no thread.
    """

    def __init__(
        self,
        call: ApiClient,
        question: Question,
        deleted: MutableSequence[str],
        threadless: MutableSequence[str],
    ) -> None:
        self._call, self._question, self._deleted, self._threadless = call, question, deleted, threadless

    async def post(
        self, page: int, message: DiscordMessage, *, patience: float = PATIENCE, instead: str = ""
    ) -> SentMessage:
        """Post a page. `instead`: the id of the deleted message that it replaces."""
        nonce = build_nonce(self._question.key, page, instead)
        body = build_post(message, self._question.key, nonce, reply_to=self._reply_to())
        answer = await self._post_in_thread(body, patience)
        number = str(answer["id"])
        if number in self._deleted and number != instead:
            return await self.post(page, message, patience=patience, instead=number)
        if not is_showing(answer, body):  # an earlier post whose reply was lost
            await self.edit(page, number, message, patience=patience)
        return SentMessage(number)

    async def edit(self, page: int, number: str, message: DiscordMessage, *, patience: float = PATIENCE) -> None:  # noqa: ARG002
        await self._change(client.EDIT, number, build_body(message, self._question.key), patience=patience)

    async def delete(self, page: int, number: str) -> None:  # noqa: ARG002 - `InteractionDelivery` needs it
        """Delete a message, if it still exists."""
        self._deleted.append(number)
        with suppress(PostGone, ChannelUnavailable):
            await self._change(client.DELETE, number)

    def spare(self) -> bool:
        return self._call.pacing.spare(client.EDIT, {"channel": self._channel})

    @property
    def _in_thread(self) -> bool:
        """Whether the answer goes to a thread opened for it."""
        return is_thread_wanted(self._question) and self._question.key not in self._threadless

    @property
    def _channel(self) -> str:
        place = self._question.place
        return choose_channel(place) if self._in_thread or not is_thread_wanted(self._question) else place.channel

    async def _post_in_thread(self, body: Json, patience: float) -> Json:
        """Post a message in the answer's thread, and open the thread first if necessary.

        If Discord refuses to open it, post in the channel.
        """
        try:
            return await self._post_as_reply(body, patience)
        except ChannelUnavailable:
            if not self._in_thread:
                raise
        try:
            await open_thread(self._call, self._question)
        except RequestRefused as error:
            log.warning("cannot open a thread; answering in the channel", extra={"cause": str(error)})
            self._threadless.append(self._question.key)
            body = {**body, **build_reference(self._question.message)}
        return await self._post_as_reply(body, patience)

    async def _post_as_reply(self, body: Json, patience: float) -> Json:
        try:
            answer: Json = await self._call(client.POST, body, patience=patience, channel=self._channel)
        except RequestRefused as error:
            if error.code not in _NO_REPLY or "message_reference" not in body:
                raise
            alone = {name: value for name, value in body.items() if name != "message_reference"}
            answer = await self._call(client.POST, alone, patience=patience, channel=self._channel)
        return answer

    async def _change(self, route: Route, number: str, body: Any = None, *, patience: float = PATIENCE) -> None:
        """Edit or delete a message.

        If its thread does not exist, try the channel, where an earlier run may have posted it.
        """
        try:
            await self._change_there(route, number, body, patience)
        except ChannelUnavailable as gone:
            if not self._in_thread:
                raise
            self._threadless.append(self._question.key)
            try:
                await self._change_there(route, number, body, patience)
            except PostGone:
                raise gone from None

    async def _change_there(self, route: Route, number: str, body: Any, patience: float) -> None:
        """Edit or delete a message, reopening an archived thread. Raises `ThreadArchived` if that is refused."""
        try:
            await self._call(route, body, patience=patience, channel=self._channel, message=number)
        except ThreadArchived as archived:
            try:
                await self._call(client.CHANGE_CHANNEL, {"archived": False}, channel=self._channel)
            except CannotPost as error:
                raise archived from error
            await self._call(route, body, patience=patience, channel=self._channel, message=number)

    def _reply_to(self) -> str:
        """Return the id of the question's message; empty if the answer is in a thread, where it needs no reference."""
        return "" if self._in_thread else self._question.message


class InteractionDelivery:
    """Posts, edits and deletes an answer as the reply to an interaction, while its token is valid."""

    def __init__(self, call: ApiClient, question: Question, handle: InteractionToken, channel: ChannelDelivery) -> None:
        self._call, self._question, self._ids, self._channel = call, question, handle.ids, channel

    async def post(self, page: int, message: DiscordMessage, *, patience: float = PATIENCE) -> SentMessage:
        """Post a page. The first one replaces the deferred reply ("thinking…")."""
        if page == 0:
            return SentMessage(await self._edit_reply(ORIGINAL_REPLY, message, patience))
        if not self._question.only_asker:
            try:
                return await self._channel.post(page, message, patience=patience)
            except CannotPost:  # a follow-up is still possible
                pass
        return await self._post_follow_up()

    async def edit(self, page: int, number: str, message: DiscordMessage, *, patience: float = PATIENCE) -> None:
        if page == 0 or self._question.only_asker:
            await self._edit_reply(number, message, patience)
            return
        try:
            await self._channel.edit(page, number, message, patience=patience)
        except ThreadArchived:
            raise
        except RequestRefused:  # it was a follow-up
            await self._edit_reply(number, message, patience)

    async def delete(self, page: int, number: str) -> None:
        if page and not self._question.only_asker:
            try:
                await self._channel.delete(page, number)
            except ThreadArchived:
                raise
            except RequestRefused:  # it was a follow-up
                pass
            else:
                return
        with suppress(PostGone):
            await self._call(client.DELETE_REPLY, message=number, **self._ids)

    def spare(self) -> bool:
        return self._call.pacing.spare(client.EDIT_REPLY, dict[str, str](**self._ids))

    async def original(self) -> Json:
        """Return the first reply to the interaction; an empty object if it was deleted or never made."""
        try:
            reply = await self._call(client.REPLY, **self._ids)
        except (PostGone, InteractionExpired):
            return {}
        return reply if isinstance(reply, Mapping) else {}

    async def _edit_reply(self, number: str, message: DiscordMessage, patience: float) -> str:
        body = build_body(message, self._question.key)
        answer = await self._call(client.EDIT_REPLY, body, patience=patience, message=number, **self._ids)
        return str(answer["id"])

    async def _post_follow_up(self) -> SentMessage:
        empty = build_body(render_page(MessagePage()), self._question.key)
        body = {**empty, "flags": empty["flags"] | (EPHEMERAL if self._question.only_asker else 0)}
        return SentMessage(str((await self._call(client.FOLLOW_UP, body, **self._ids))["id"]), empty=True)


Delivery = ChannelDelivery | InteractionDelivery
_REMEMBERED = 1_000


class Deliveries:
    """Chooses how each answer is delivered."""

    def __init__(self, call: ApiClient, now: Callable[[], float], zone: tzinfo = UTC) -> None:
        """`now` returns seconds since 1970."""
        self._call, self._now, self._zone = call, now, zone
        self.late = deque[str](maxlen=_REMEMBERED)  # questions whose token expired early
        self.deleted = deque[str](
            maxlen=_REMEMBERED
        )  # our messages that we deleted; Discord reports them like any other
        self._threadless = deque[str](maxlen=_REMEMBERED)

    def choose(self, question: Question) -> Delivery | None:
        """Return how to deliver an answer; None if only its asker may see it and cannot be reached any more."""
        return self.choose_reply(question) or (None if question.only_asker else self.choose_channel(question))

    def choose_reply(self, question: Question) -> InteractionDelivery | None:
        """Return how to reply to a question's interaction; None if there is none, or its token is not valid."""
        handle = parse_token(question.handle) if question.handle else None
        is_valid = is_token_valid(question.at.timestamp(), self._now()) and question.key not in self.late
        if not (handle and is_valid):
            return None
        return InteractionDelivery(self._call, question, handle, self.choose_channel(question))

    def choose_channel(self, question: Question) -> ChannelDelivery:
        return ChannelDelivery(self._call, question, self.deleted, self._threadless)

    async def tell(self, question: Question, text: str) -> None:
        """Post a sentence as the reply to the question's interaction, or in its channel. Raises `PlatformError`."""
        notice = replace(question, key=f"{question.key}#told")
        way = self.choose(notice) or self.choose_channel(notice)
        for page, message in enumerate(render_messages(View(0, text=text), self._zone)):
            await way.post(page, message)


_SKEW = 60.0  # seconds by which our clock may be ahead of Discord's


async def call_for_help(
    call: ApiClient, us: DiscordBotIdentity, place: Place, text: str, people: Sequence[str], now: float
) -> PostedMessages:
    """Post a sentence that mentions `people`. Raises `PlatformError`.

    If the response to the post is lost, look for the post instead of repeating it. `now` is in seconds since 1970.
    """
    key, after = secrets.token_hex(8), str(build_snowflake(now - _SKEW))

    async def post(page: int, message: DiscordMessage) -> str:
        body = build_post(message, f"{key}/{page}", build_nonce(f"{key}/{page}", page))
        return str((await call(client.POST, body, channel=choose_channel(place)))["id"])

    async def find(page: int) -> Sequence[str]:
        return (await directory.find_our_pages(call, place, f"{key}/{page}", after, us)).messages

    return await post_once(render_messages(View(0, text=text, mentions=tuple(people))), post, find)


async def notify_unseen(call: ApiClient, channel: ChannelDelivery, question: Question, language: str) -> None:
    """Notify an asker, if possible, that their answer can no longer be shown privately.

    A user of a command gets a DM without any part of the answer, which they may not be allowed to read there. Other
    askers are notified in the channel.
    """
    sentence = "discord_late" if question.handle else "discord_ask_by_command"
    (message, *_) = render_messages(View(0, text=translate(sentence, language or "en")))
    try:
        if not question.handle:
            await channel.post(0, message)
            return
        opened = await call(client.OPEN_DM, {"recipient_id": question.asker.user})
        key = mark_unseen_notice(question).key
        await call(client.POST, build_post(message, key, build_nonce(key, 0)), channel=str(opened["id"]))
    except PlatformError as error:
        log.warning("cannot notify an asker that the answer cannot be shown", extra={"cause": str(error)})


def mark_unseen_notice(question: Question) -> Question:
    return replace(question, key=f"{question.key}#unseen")
