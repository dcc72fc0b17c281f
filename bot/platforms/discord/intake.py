"""Turn Discord's messages, also missed ones, into questions for the desk."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from bot.access import Asker, Exclusion
from bot.app import App
from bot.desk.channel_settings import ChannelSettings, load_channel_settings_or_file
from bot.desk.desk import Desk
from bot.desk.platform_port import PostGone
from bot.desk.supervisor import TaskSupervisor
from bot.desk.turn_policy import Cooldown
from bot.platforms.discord import events
from bot.platforms.discord.client import ACTIVE_THREADS, CHANNELS, READ, READ_ONE
from bot.platforms.discord.delivery import Deliveries
from bot.platforms.discord.directory import DiscordDirectory
from bot.platforms.discord.interactions import DiscordInvocation
from bot.platforms.shared.api_client import ApiClient, RequestRefused, call_or_log
from bot.platforms.shared.catch_up import MissedQuestion, call_patiently
from bot.platforms.shared.message_intake import (
    EMPTY_MENTION,
    Audience,
    IncomingMessage,
    MessageIntake,
    build_welcome,
)
from bot.platforms.shared.payload_text import Json
from bot.platforms.shared.rate_limit import Route
from bot.types import DeliveryOutcome, IntakeStatus, Place, Question
from bot.views.catalog import translate
from storage.types import QueuedQuestion

log = logging.getLogger(__name__)


def is_own_server(directory: DiscordDirectory, invocation: DiscordInvocation) -> bool:
    """Return whether an interaction was in the bot's DM, or in one of the team's servers where the app is installed."""
    return invocation.direct or (invocation.installed and directory.listed(invocation.guild))


def detach_from_server(invocation: DiscordInvocation) -> DiscordInvocation:
    """Return an invocation as if it was made in a DM. Used if the bot itself is not in the place."""
    return replace(
        invocation, guild="", channel=replace(invocation.channel, guild="", kind=events.DM, parent=""), permissions=""
    )


def identify_asker(directory: DiscordDirectory, invocation: DiscordInvocation) -> Asker:
    """Return the user of an interaction as an asker, by cached facts alone."""
    if is_own_server(directory, invocation):
        roles = None if invocation.direct else invocation.roles
        asker = directory.newcomer(invocation.channel, invocation.user, direct=invocation.direct, roles=roles)
        return replace(asker, moderates=events.may_moderate(invocation.permissions), name=invocation.shown_name)
    if directory.settings.user_install:
        asker_in_dm = directory.newcomer(detach_from_server(invocation).channel, invocation.user, direct=True)
        return replace(asker_in_dm, name=invocation.shown_name)
    return Asker(
        "discord", "channel", invocation.guild, invocation.channel.id, invocation.user, exclusion=Exclusion.ELSEWHERE
    )


async def locate_asker(directory: DiscordDirectory, invocation: DiscordInvocation) -> Asker:
    """Return the user of an interaction as an asker, after looking up their rights."""
    asker = identify_asker(directory, invocation)
    return asker if asker.exclusion else await directory.look_up(asker)


LOOKED_AT = 20  # latest questions among which a user's conversation is searched


async def thread_conversation(app: App, channel_id: str, thread: events.ChannelInfo) -> str:
    """Return a thread's conversation: that of the message that opened it, which has the thread's id."""
    opener = await app.queue.by_message(channel_id, thread.id)
    return opener.conversation if opener else f"discord:{thread.guild}/{thread.id}"


async def find_conversation(app: App, channel: events.ChannelInfo, user: str, *, direct: bool) -> str:
    """Return the conversation whose sources a user asks for; empty if there is none. Raises `StorageError`.

    In a channel, this is the user's latest conversation; if they have none, it is the latest that everyone there can
    see. `direct`: in the bot's DM.
    """
    if direct:
        return f"discord:/{channel.id}"
    place = f"discord:{channel.guild}/{channel.parent if channel.is_thread else channel.id}"
    if channel.is_thread:
        return await thread_conversation(app, place, channel)
    person = f"discord:{channel.guild}/{user}"
    own = await app.queue.recent(place, user=person, limit=LOOKED_AT)
    return newest_conversation([*own, *await app.queue.recent(place, limit=LOOKED_AT)], person)


def newest_conversation(rows: Iterable[QueuedQuestion], person: str) -> str:
    """Return the conversation of the first row with an answer that the person can see; empty if none. Pure."""
    seen = (row for row in rows if row.user == person or not row.body.get("only_asker"))
    answered = (row for row in seen if row.outcome == DeliveryOutcome.DELIVERED)
    return next((row.conversation for row in answered), "")


_TEXT = frozenset({0, 5})  # channel types whose messages may get threads


class DiscordIntake:
    """Turns messages into questions, and hands them to the desk."""

    def __init__(
        self,
        app: App,
        desk: Desk,
        us: events.DiscordBotIdentity,
        directory: DiscordDirectory,
        tasks: TaskSupervisor,
        cooldown: Cooldown,
        deliveries: Deliveries,
    ) -> None:
        self._deliveries = deliveries
        self._app, self._desk, self._us, self.directory, self._tasks = app, desk, us, directory, tasks
        self.cooldown = cooldown
        self._unlisted = set[str]()
        self._messages = MessageIntake(app, desk, tasks)

    async def take(self, written: events.DiscordMessagePosted) -> IntakeStatus | None:
        return await self._messages.take(written.channel, written.key, partial(self._admit, written))

    async def welcome(self, entered: events.PlaceUpdate) -> None:
        """Introduce the bot in a server that it joined recently, unless settings turn that off.

        Discord lists all servers at each connection, so the time of joining shows whether the bot is new. A whole
        day counts as recent, because a server may be added to the settings after the bot joined it.
        """
        now, enabled = datetime.now(UTC), self._app.settings.welcome and self.directory.listed(entered.guild)
        if not (enabled and entered.is_new(now)):
            return
        if channel := await self.directory.find_channel(entered.lobby, entered.guild):
            by = self.directory.newcomer(channel, self._us.user, direct=False)
            place = Place("discord", entered.guild, entered.lobby)
            await self._desk.take(build_welcome(by, place, now, entered.language))

    async def question(self, written: events.DiscordMessagePosted) -> Question | None:
        """Return a message as a question; None if the bot does not answer it. Raises `StorageError`."""
        if written.guild and not self._is_listed(written.guild):
            return None
        channel = await self.directory.find_channel(written.channel, written.guild)
        if channel is None:
            return None
        roles = self.directory.our_roles(written.guild)
        message, author = self._read(written, channel), f"discord:{written.guild}/{written.user}"
        place, conversation = await self._locate(written, channel)
        settings = await self.settings(place.channel_id)
        every = settings.answer == "every"
        audience = await self._messages.find_audience(message, conversation, author, every=every)
        if audience is Audience.THEIRS:
            return None
        asker = self._identify(written, channel)
        if asker.exclusion:
            return None
        text = events.extract_text(written.raw, self._us, {**self.directory.names, **written.names}, roles)
        if not text and not (message.addressed and (written.raw.strip() or not written.guild)):
            return None
        return Question(
            written.key,
            "ask",
            text or EMPTY_MENTION,
            asker,
            place,
            conversation,
            written.at,
            message=written.id,
            only_asker=settings.ephemeral and bool(written.guild),
            unasked=audience is Audience.ANYBODYS,
        )

    async def edit(self, event: events.DiscordMessageEdited) -> None:
        """Answer an edited question again, or a message that became a question. Raises `StorageError`."""
        now = event.now
        mentions = events.is_addressed(now, self._us, self.directory.our_roles(now.guild))
        take = partial(self.take, now) if mentions else None
        await self._messages.edit(now.channel, now.key, partial(self._read_edit, now), self._admit_edit, take)

    async def delete(self, event: events.DiscordMessageDeleted) -> None:
        """Retract the answers to deleted questions, and answers whose messages a user deleted."""
        await self._messages.delete(event.channel, self._withdraw(event))

    async def conversation(self, invocation: DiscordInvocation) -> str:
        """Return the conversation whose sources an interaction's user asks for. Raises `StorageError`."""
        here = invocation if is_own_server(self.directory, invocation) else detach_from_server(invocation)
        return await find_conversation(self._app, here.channel, invocation.user, direct=invocation.direct)

    async def settings(self, channel_id: str) -> ChannelSettings:
        return await load_channel_settings_or_file(self._app, channel_id)

    async def _admit(self, written: events.DiscordMessagePosted) -> Question | None:
        """Return a message's question; None if the asker has to wait, or must use a command to get a private answer."""
        question = await self.question(written)
        if question is None:
            return None
        if self._has_to_wait(question, question.key):
            return None
        if question.only_asker:
            # A public message cannot be answered privately; a command can.
            if not question.unasked:
                words = translate("discord_ask_by_command", question.language)
                self._tasks.spawn(self._tell_asker(question, words))
            return None
        self.cooldown.begin(written.user, question.key)
        return question

    def _admit_edit(self, question: Question, text: str) -> bool:
        """Return whether an edited question may be answered now; if so, its asker's cooldown begins."""
        key = f"{question.key}#{hash(text)}"
        if self._has_to_wait(question, key):
            return False
        self.cooldown.begin(question.asker.user, key)
        return True

    def _has_to_wait(self, question: Question, key: str) -> bool:
        """Return whether the cooldown forbids the question `key`; notify its asker once, if they addressed the bot."""
        user = question.asker.user
        if not (seconds := self.cooldown.left(user, key)):
            return False
        if not question.unasked and self.cooldown.first_refusal(user):
            self._tasks.spawn(self._tell_asker(question, render_cooldown(seconds, question.language)))
        return True

    def _is_listed(self, guild: str) -> bool:
        if self.directory.listed(guild):
            return True
        if guild not in self._unlisted:
            self._unlisted.add(guild)
            log.info("server %s is not in [discord] servers: not answering there", guild)
        return False

    def _read(self, written: events.DiscordMessagePosted, channel: events.ChannelInfo) -> IncomingMessage:
        addressed = events.is_addressed(written, self._us, self.directory.our_roles(written.guild))
        others = events.is_to_another(written, self._us)
        # A forum post begins with its first message, which addresses the whole forum.
        within = channel.is_thread and channel.id != written.id
        return IncomingMessage(addressed, others, within=within, edited=written.edited)

    def _identify(self, written: events.DiscordMessagePosted, channel: events.ChannelInfo) -> Asker:
        """Return a message's author as an asker, by cached facts.

        Other facts are looked up when the question is answered.
        """
        asker = self.directory.newcomer(channel, written.user, direct=not written.guild, roles=written.roles)
        return replace(asker, name=written.shown_name)

    async def _read_edit(self, now: events.DiscordMessagePosted) -> tuple[str, IncomingMessage] | None:
        """Return an edited message's text, and the facts that decide its audience; None if it is not answered."""
        if now.guild and not self._is_listed(now.guild):
            return None
        channel = await self.directory.find_channel(now.channel, now.guild)
        if channel is None or (await self.directory.look_up(self._identify(now, channel))).exclusion:
            return None
        names, roles = {**self.directory.names, **now.names}, self.directory.our_roles(now.guild)
        text = events.extract_text(now.raw, self._us, names, roles)
        seen = text or now.raw.strip() or not now.guild  # without Message Content the text may be hidden from us
        return (text, self._read(now, channel)) if seen else None

    async def _locate(self, written: events.DiscordMessagePosted, channel: events.ChannelInfo) -> tuple[Place, str]:
        """Return the place and the conversation of a message's answer."""
        if not written.guild:
            return Place("discord", "", written.channel), f"discord:/{written.channel}"
        parent = channel.parent if channel.is_thread else channel.id
        place = Place("discord", written.guild, parent, channel.id if channel.is_thread else "")
        if channel.is_thread:
            return place, await thread_conversation(self._app, place.channel_id, channel)
        before = await self._app.queue.by_message(place.channel_id, written.replied) if written.replied else None
        if before is None:
            return place, f"{place.channel_id}/{written.replied or written.id}"
        settings = await self.settings(place.channel_id)
        opens = settings.threads == "long" and channel.kind in _TEXT and not settings.ephemeral
        return (replace(place, thread=written.id) if opens else place), before.conversation

    async def _withdraw(self, event: events.DiscordMessageDeleted) -> None:
        channel = await self.directory.find_channel(event.channel, event.guild)
        where = channel.parent if channel and channel.is_thread else event.channel
        for id_ in event.ids:
            row = await self._app.queue.by_message(f"discord:{event.guild}/{where}", id_)
            if row is None:
                continue
            if id_ not in row.posted:
                await self._desk.delete_question(row.key)
            elif id_ not in self._deliveries.deleted:
                # Anyone who deletes our message may do so; Discord does not say who it was.
                by = Asker("discord", "channel", event.guild, where, moderates=True)
                await self._desk.retract(row.ticket, by)

    async def _tell_asker(self, question: Question, words: str) -> None:
        await call_or_log(self._deliveries.tell(question, words), "cannot notify an asker who is not answered")


def render_cooldown(seconds: float, language: str) -> str:
    """Return the notice to an asker who has to wait; pure."""
    return translate("discord_cooldown", language, seconds=max(round(seconds), 1))


PAGE = 100
_NOT_OURS = frozenset({10003, 10004, 50001, 50013})  # codes for places where the bot is absent or may not read
_WITHOUT_MESSAGES = frozenset({4, 14, 15, 16})  # categories, directories, and forums, whose posts are threads


class DiscordHistoryReader:
    """Reads missed messages of the team's servers. Implements `bot.platforms.shared.catch_up.HistoryReader`."""

    platform = "discord"

    def __init__(
        self,
        call: ApiClient,
        us: events.DiscordBotIdentity,
        intake: DiscordIntake,
        guilds: Callable[[], Collection[str]],
    ) -> None:
        self._call, self._us, self._intake = call, us, intake
        self._guilds = guilds
        self._guild: dict[str, str] = {}

    def asked_at(self, last: QueuedQuestion) -> float | None:
        """Return when a question was asked, by the Discord id in its key; None if the key has no such id."""
        number = last.key.partition("#")[0].rpartition("/")[2]
        is_id = number.isascii() and number.isdigit()
        return events.parse_snowflake_time(number).timestamp() if is_id else None

    async def channels(self, since: float) -> AsyncIterator[str]:
        """Yield the channels and open threads with messages since a moment. Raises `PlatformError`."""
        for guild in tuple(self._guilds()):
            try:
                listed = list(await self._read(CHANNELS, {"guild": guild}) or ())
                listed += (await self._read(ACTIVE_THREADS, {"guild": guild}) or {}).get("threads") or ()
            except RequestRefused as error:
                if error.code not in _NOT_OURS:
                    raise
                log.warning("catch-up of a server failed", extra={"server": guild, "cause": str(error)})
                continue
            channels = [channel for data in listed if (channel := events.read_channel(data, guild))]
            self._intake.directory.learn(events.PlaceUpdate(guild, tuple(channels)))
            quiet = {str(data.get("id")) for data in listed if _has_nothing_new(data, since)}
            for channel in channels:
                if channel.id not in quiet:
                    self._guild[channel.id] = guild
                    yield channel.id

    async def missed(self, channel: str, since: float) -> AsyncIterator[MissedQuestion]:
        """Yield the questions since a moment in a channel or thread, except those that need a private answer.

        Raises `PlatformError`, `StorageError`.
        """
        async for message in self._written(channel, since):
            written = events.parse_posted(message, self._us, self._guild.get(channel, ""))
            question = await self._intake.question(written) if written else None
            if written and question and not question.only_asker:
                yield MissedQuestion(question, written.edited)

    async def look_again(self, question: QueuedQuestion) -> None:
        guild, channel, number = question.key.removeprefix("discord:").split("/")
        try:
            message = await self._read(READ_ONE, {"channel": channel, "message": number})
        except PostGone:
            await self._intake.delete(events.DiscordMessageDeleted(guild, channel, (number,)))
            return
        now = events.parse_posted(message, self._us, guild)
        if now and now.edited:
            await self._intake.edit(events.DiscordMessageEdited(now))

    async def _written(self, channel: str, since: float) -> AsyncIterator[Json]:
        """Yield a channel's messages since a moment, oldest first; none if the bot may not read it."""
        after = str(events.build_snowflake(since))
        while True:
            try:
                listed = await self._read(READ, {"channel": channel}, {"after": after, "limit": str(PAGE)})
            except RequestRefused as error:
                if error.code not in _NOT_OURS:
                    raise
                return
            page = sorted(listed or (), key=lambda message: int(message["id"]))
            for message in page:
                yield message
            if len(page) < PAGE:
                return
            after = str(page[-1]["id"])

    async def _read(self, route: Route, ids: Mapping[str, str], query: Mapping[str, str] | None = None) -> Any:
        call: Callable[..., Awaitable[Any]] = self._call
        pacing = self._call.pacing
        return await call_patiently(
            lambda: call(route, query=query, **ids), lambda: pacing.spare(route, ids), pacing.sleep
        )


def _has_nothing_new(channel: Json, since: float) -> bool:
    """Return whether a channel's description shows that it has no message since a moment."""
    last = channel.get("last_message_id")
    never = channel.get("type") in _WITHOUT_MESSAGES
    return never or (isinstance(last, str) and last.isdecimal() and int(last) < events.build_snowflake(since))
