"""Turn Slack's messages into questions for the desk, also those that were missed, and know places and people.

`SlackIntake.take` returns once a question is on the disk; only then is Slack told that it arrived. What could not be
kept has been told, so that it need not come again; where nothing can be told, it raises, and Slack delivers once more.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from bot.access import Asker
from bot.app import App
from bot.desk.channel_settings import load_channel_settings_or_file
from bot.desk.desk import Desk
from bot.desk.platform_port import PlatformError, PostGone
from bot.desk.supervisor import TaskSupervisor
from bot.platforms.shared.addressing import Audience, IncomingMessage
from bot.platforms.shared.catch_up import MissedQuestion, call_patiently
from bot.platforms.shared.lookup_cache import (
    LOOK_SECONDS,
    PATIENT_SECONDS,
    PEOPLE_SECONDS,
    LookupCache,
    lookup_or_default,
    lookup_or_raise,
)
from bot.platforms.shared.message_intake import EMPTY_MENTION, MessageIntake
from bot.platforms.shared.payload_text import Json, read_object
from bot.platforms.shared.welcome import build_welcome
from bot.platforms.slack import events, find_user_groups
from bot.platforms.slack.client import ChannelUnknown, SlackApiClient
from bot.settings.live.channel_names import NamedChannel
from bot.types import IntakeStatus, Place, Question, QuestionState
from storage.database.queue import Queue
from storage.types import QueuedQuestion


def is_shared(channel: Json) -> bool | None:
    """Return whether people of other organisations are in a channel, as `conversations.info` has it; pure.

    Other workspaces of the same organisation are not others. None where Slack does not say, as of most DMs.
    """
    if channel.get("is_ext_shared") is True or channel.get("connected_team_ids"):
        return True
    if channel.get("is_shared") is True:
        return channel.get("is_org_shared") is not True
    return False if channel.get("is_ext_shared") is False else None


def is_stranger(user: Json, us: events.SlackBotIdentity) -> bool:
    """Return whether somebody is of another organisation, or has left this one, as `users.info` has them; pure."""
    if user.get("deleted") is True:
        return True
    own = user.get("enterprise_user")
    if us.enterprise and isinstance(own, Mapping) and own.get("enterprise_id") == us.enterprise:
        return False
    return user.get("is_stranger") is True or user.get("team_id") != us.team


def is_guest(user: Json) -> bool:
    """Return whether somebody is a guest of the workspace, in one channel or in several; pure."""
    return user.get("is_restricted") is True or user.get("is_ultra_restricted") is True


def read_name(user: Json) -> str:
    """Return the name that somebody is shown by; empty where Slack does not say it; pure."""
    profile = read_object(user, "profile")
    names = (profile.get("display_name"), profile.get("real_name"), user.get("real_name"), user.get("name"))
    return next((one for one in names if isinstance(one, str) and one.strip()), "")


class SlackDirectory:
    """What is known of one workspace's channels, people and user groups. What cannot be told counts against them."""

    def __init__(
        self,
        call: SlackApiClient,
        us: events.SlackBotIdentity,
        clock: Callable[[], float] = time.monotonic,
        *,
        guests: Callable[[], bool] = bool,
        readers: Callable[[], Iterable[str]] = tuple,
    ) -> None:
        """Set it up. By the settings in force: `guests`, whether they count as members; `readers`, whom they name."""
        self._call, self._us, self._is_open_to_guests, self._readers = call, us, guests, readers
        self._channels = LookupCache[Json](self._channel, clock)
        self._people = LookupCache[Json](self._person, clock, PEOPLE_SECONDS)
        self._groups = LookupCache[frozenset[str]](self._members, clock, PEOPLE_SECONDS)

    def newcomer(self, channel: str, user: str, *, direct: bool, shared: bool = False) -> Asker:
        """Return somebody whose question is only being taken: who they are is looked up when its turn comes.

        `shared`: Slack said with what they did that the channel is.
        """
        if shared:
            self._channels.note(channel, {"is_ext_shared": True})
        return Asker("slack", "dm" if direct else "channel", self._us.team, channel, user)

    async def asker(self, channel: str, user: str, *, direct: bool) -> Asker:
        """Return somebody and where they stand."""
        return await self._place(self.newcomer(channel, user, direct=direct), lookup_or_default, LOOK_SECONDS)

    async def refresh_asker(self, asker: Asker) -> Asker:
        """Return somebody who asked a while ago, and where they stand by now. Raises `PlatformUnavailable`."""
        return await self._place(asker, partial(lookup_or_raise, platform="Slack"), PATIENT_SECONDS)

    async def shared(self, channel: str, user: str = "") -> bool:
        """Return whether people of other organisations may be in a channel, or in the DM with somebody."""
        asker = Asker("slack", "dm" if user else "channel", self._us.team, channel, user)
        return await lookup_or_default(partial(self._is_shared, asker), "who is in a channel", otherwise=True)

    async def language(self, user: str) -> str:
        """Return the language that somebody reads Slack in, such as `de`; empty where that is not known."""
        try:
            locale = (await self._people.of(user)).get("locale")
        except (PlatformError, TimeoutError):
            return ""
        return locale.partition("-")[0].lower() if isinstance(locale, str) else ""

    async def name(self, user: str) -> str:
        """Return the name that somebody is shown by; empty where that is not known."""
        try:
            return read_name(await self._people.of(user))
        except (PlatformError, TimeoutError):
            return ""

    def forget(self, channel: str) -> None:
        self._channels.forget(channel)

    async def close(self) -> None:
        for cache in (self._channels, self._people, self._groups):
            await cache.close()

    async def _place(self, asker: Asker, lookup: Callable[..., Awaitable[Any]], seconds: float) -> Asker:
        named = find_user_groups(self._readers(), self._us.team) if asker.kind == "dm" else {}
        others, uninvited, guest, *members = await asyncio.gather(
            lookup(partial(self._is_shared, asker, seconds), what="who is in a channel", otherwise=True),
            lookup(partial(self._is_uninvited, asker, seconds), what="whether we are in a channel", otherwise=False),
            lookup(partial(self._is_guest, asker.user, seconds), what="who is a guest", otherwise=True),
            *(
                lookup(
                    partial(self._groups.of, group, seconds), what="who is in a user group", otherwise=frozenset[str]()
                )
                for group in named.values()
            ),
        )
        groups = tuple(name for name, found in zip(named, members, strict=True) if asker.user in found)
        known = {"shared_with_other_organisations": others, "uninvited": uninvited, "guest": guest}
        return self._name(replace(asker, **known, principals=groups))

    def _name(self, asker: Asker) -> Asker:
        """Return somebody with the names that are known without asking for them."""
        channel = (self._channels.known(asker.channel) or {}).get("name")
        person = read_name(self._people.known(asker.user) or {})
        return replace(asker, name=person, channel_name=channel if isinstance(channel, str) else "")

    async def _is_shared(self, asker: Asker, seconds: float = LOOK_SECONDS) -> bool:
        if asker.kind == "dm":
            return is_stranger(await self._people.of(asker.user, seconds), self._us)
        return is_shared(await self._channels.of(asker.channel, seconds)) is not False

    async def _is_uninvited(self, asker: Asker, seconds: float) -> bool:
        """Return whether we are not in a private channel; that is not remembered, as nobody tells us of an end."""
        if asker.kind == "dm":
            return False
        try:
            await self._channels.of(asker.channel, seconds)
        except ChannelUnknown:
            return True
        return False

    async def _is_guest(self, user: str, seconds: float = LOOK_SECONDS) -> bool:
        return not self._is_open_to_guests() and is_guest(await self._people.of(user, seconds))

    async def _channel(self, channel: str) -> Json:
        found: Json = (await self._call("conversations.info", channel=channel)).get("channel") or {}
        # A DM says nothing of the sort, but who it is with does.
        if events.is_direct(channel) and is_shared(found) is None and found.get("user"):
            return {"is_ext_shared": is_stranger(await self._people.of(str(found["user"])), self._us)}
        return found

    async def _person(self, user: str) -> Json:
        found: Json = (await self._call("users.info", user=user, include_locale=True)).get("user") or {}
        return found

    async def _members(self, group: str) -> frozenset[str]:
        """Return who is in a user group that is not disabled, all pages of it."""
        members, facts = set[str](), dict[str, Any](usergroup=group)
        while True:
            page = await self._call("usergroups.users.list", **facts)
            members |= set(map(str, page.get("users") or ()))
            cursor = str((page.get("response_metadata") or {}).get("next_cursor") or "")
            if not cursor or cursor == facts.get("cursor"):
                return frozenset(members)
            facts["cursor"] = cursor


_CHANNELS_AT_ONCE = 999  # the most that Slack gives


async def list_channels(call: SlackApiClient, team: str) -> tuple[NamedChannel, ...]:
    """List the channels that the bot sees: the public ones, and private ones that it is in. Raises `PlatformError`."""
    found, facts = list[NamedChannel](), dict[str, Any](types="public_channel,private_channel", exclude_archived=True)
    while True:
        page = await call("conversations.list", limit=_CHANNELS_AT_ONCE, **facts)
        listed = (one for one in page.get("channels") or () if one.get("id") and one.get("name"))
        found += [NamedChannel(f"slack:{team}/{one['id']}", str(one["name"])) for one in listed]
        cursor = str((page.get("response_metadata") or {}).get("next_cursor") or "")
        if not cursor or cursor == facts.get("cursor"):
            return tuple(found)
        facts["cursor"] = cursor


RECENT_QUESTIONS = 5  # how many questions of a conversation may be the one that is stopped


class SlackIntake:
    """Takes questions of one workspace."""

    announce: Callable[[Question, int], str]  # the platform's own, which is made after this

    def __init__(
        self, app: App, desk: Desk, us: events.SlackBotIdentity, directory: SlackDirectory, tasks: TaskSupervisor
    ) -> None:
        self._app, self._desk, self._us, self.directory = app, desk, us, directory
        self._messages = MessageIntake(app, desk, tasks)

    async def take(self, written: events.SlackMessagePosted) -> IntakeStatus | None:
        return await self._messages.take(written.channel, written.key, partial(self.question, written))

    async def take_invoked(self, invoked: events.SlackInvocation) -> Question:
        asker = self.directory.newcomer(invoked.channel, invoked.user, direct=invoked.direct)
        question = events.build_invocation_question(invoked, self._us, asker, datetime.now(UTC))
        await self._desk.take(question)
        return question

    async def welcome(self, invited: events.Invited) -> None:
        """Introduce ourselves in a channel that we were invited to, unless settings say not to."""
        if not self._app.settings.welcome:
            return
        by = self.directory.newcomer(invited.channel, invited.by, direct=False)
        place, language = Place("slack", invited.team, invited.channel), await self.directory.language(invited.by)
        await self._desk.take(build_welcome(by, place, datetime.now(UTC), language))

    def word_wait(self, question: Question) -> str:
        """Return what somebody is told at once whose question has to wait; empty where it is being answered."""
        before = self._desk.count_before(question.key)
        return self.announce(question, before) if before else ""

    async def question(self, written: events.SlackMessagePosted) -> Question | None:
        """Return the question that a message is; None where it is none to us. Raises `StorageError`."""
        settings = await load_channel_settings_or_file(self._app, f"slack:{written.team}/{written.channel}")
        message, author = self._read(written), f"slack:{written.team}/{written.user}"
        every = settings.answer == "every"
        audience = await self._messages.find_audience(message, written.conversation, author, every=every)
        if audience is Audience.THEIRS:
            return None
        asker = self.directory.newcomer(written.channel, written.user, direct=written.direct, shared=written.shared)
        found = events.build_message_question(
            written, self._us, asker, only_asker=settings.ephemeral, unasked=audience is Audience.ANYBODYS
        )
        wordless = replace(found, text=EMPTY_MENTION) if message.addressed else None
        return found if found.text else wordless

    async def edit(self, event: events.SlackMessageEdited) -> None:
        """Have an edited question answered anew. Raises `StorageError`."""
        await self._messages.edit(event.now.channel, event.now.key, partial(self._read_edit, event.now))

    async def delete(self, event: events.SlackMessageDeleted) -> None:
        """Take back the answer to a deleted question. Raises `StorageError`."""
        await self._messages.delete(event.channel, self._desk.delete_question(event.key))

    async def stop(self, event: events.StopRequested) -> None:
        """Stop answering where somebody pressed Slack's own button for that. Raises `StorageError`."""
        channel = f"slack:{event.team}/{event.channel}"
        rows = [await self._app.queue.by_message(channel, one) for one in event.messages]
        if not any(rows):
            rows = [*await self._app.queue.conversation(event.conversation, limit=RECENT_QUESTIONS)]
        by = self.directory.newcomer(event.channel, event.user, direct=events.is_direct(event.channel))
        for ticket in {row.ticket for row in rows if row and row.state == QuestionState.RUNNING}:
            await self._desk.stop(ticket, by)

    def _read(self, written: events.SlackMessagePosted) -> IncomingMessage:
        addressed, others = written.direct or written.mentions(self._us), written.to_others(self._us)
        return IncomingMessage(addressed, others, within=bool(written.thread), edited=written.edited)

    async def _read_edit(self, now: events.SlackMessagePosted) -> tuple[str, IncomingMessage]:
        return events.extract_text(now.raw, self._us), self._read(now)


THREAD_AGE = timedelta(days=7)  # how old a thread may be in which somebody asks on
PAGE = 200
_SKEW = 1.0  # seconds that may pass between when something is written and when it is taken
_TYPES = "public_channel,private_channel,im,mpim"


class SlackHistoryReader:
    """One workspace. Implements `bot.platforms.shared.catch_up.HistoryReader`."""

    def __init__(self, queue: Queue, call: SlackApiClient, us: events.SlackBotIdentity, intake: SlackIntake) -> None:
        self._queue, self._call, self._us, self._intake = queue, call, us, intake
        self._channel_types: dict[str, str] = {}

    async def since(self) -> float | None:
        """Return when the last question was taken. Raises `StorageError`."""
        last = await self._queue.newest("slack")
        return last.taken_at.timestamp() - _SKEW if last else None

    async def channels(self, since: float) -> AsyncIterator[str]:  # noqa: ARG002 - Slack does not say where it is quiet
        """Yield the channels and DMs that we are in. Raises `PlatformError`."""
        async for channel in self._read_pages("users.conversations", "channels", types=_TYPES, exclude_archived=True):
            name = str(channel.get("id", ""))
            self._channel_types[name] = (
                "im" if channel.get("is_im") else "mpim" if channel.get("is_mpim") else "channel"
            )
            yield name

    async def missed(self, channel: str, since: float) -> AsyncIterator[MissedQuestion]:
        """Yield the questions in a channel, with those in threads that began before. Raises `PlatformError`."""
        where = {"channel": channel, "channel_type": self._channel_types.get(channel, "")}
        async for message in self._read_messages(channel, since):
            written = events.parse_event({"event": {"type": "message", **message, **where}}, self._us)
            if isinstance(written, events.SlackMessagePosted) and (question := await self._intake.question(written)):
                yield MissedQuestion(question, written.edited)

    async def standing(self, since: float, limit: int) -> tuple[QueuedQuestion, ...]:
        """Return the questions of messages that may have an answer, newest first. Raises `StorageError`."""
        return await self._queue.standing("slack", since=datetime.fromtimestamp(since, UTC), limit=limit)

    async def look_again(self, asked: QueuedQuestion) -> None:
        """Take it that a message was edited or deleted, if it was. Raises `PlatformError`, `StorageError`."""
        channel, ts = asked.channel.rpartition("/")[2], asked.message
        facts: dict[str, Any] = {"channel": channel, "ts": ts, "oldest": ts, "latest": ts, "inclusive": True}
        try:
            pages = self._read_pages("conversations.replies", "messages", **facts)
            found = [one async for one in pages if one.get("ts") == ts]
        except PostGone:
            await self._intake.delete(events.SlackMessageDeleted(self._us.team, channel, ts))
            return
        where = {"channel": channel, "channel_type": "im" if events.is_direct(channel) else "channel"}
        for message in found:
            event = {"type": "message", "subtype": "message_changed", "message": message, **where}
            match events.parse_event({"event": event}, self._us):
                case events.SlackMessageDeleted() as erased:
                    await self._intake.delete(erased)
                case events.SlackMessageEdited() as rewritten if rewritten.now.edited:
                    await self._intake.edit(rewritten)

    async def _read_messages(self, channel: str, since: float) -> AsyncIterator[Json]:
        """Yield a channel's messages since then, with those of threads that were begun before; oldest first."""
        oldest = f"{since - THREAD_AGE.total_seconds():.6f}"
        roots = [
            one async for one in self._read_pages("conversations.history", "messages", channel=channel, oldest=oldest)
        ]
        for root in reversed(roots):
            if float(root.get("ts", 0)) > since:
                yield root
            if float(root.get("latest_reply") or 0) > since:
                facts: dict[str, Any] = {"channel": channel, "ts": root["ts"], "oldest": f"{since:.6f}"}
                async for reply in self._read_pages("conversations.replies", "messages", **facts):
                    if reply.get("ts") != root.get("ts"):
                        yield reply

    async def _read_pages(self, method: str, what: str, **facts: Any) -> AsyncIterator[Json]:
        """Yield the items of a list, all pages of it. Raises `PlatformError`, but not that Slack is away."""
        pacing = self._call.pacing
        while True:
            page: Json = await call_patiently(
                lambda: self._call(method, limit=PAGE, **facts), lambda: pacing.spare(method), pacing.sleep
            )
            for item in page.get(what) or ():
                yield item
            if not (cursor := str((page.get("response_metadata") or {}).get("next_cursor") or "")):
                return
            facts["cursor"] = cursor
