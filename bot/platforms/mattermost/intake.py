"""Turn Mattermost's posts, also missed ones, into questions for the desk."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from bot.access import Asker
from bot.app import App
from bot.desk.channel_settings import load_channel_settings_or_file
from bot.desk.desk import Desk
from bot.desk.platform_port import PostGone
from bot.desk.supervisor import TaskSupervisor
from bot.platforms.mattermost import client, events
from bot.platforms.mattermost.directory import MattermostDirectory, read_back
from bot.platforms.mattermost.events import (
    ChannelInfo,
    Command,
    Invited,
    MattermostBotIdentity,
    PostDeleted,
    PostEdited,
    PostWritten,
    locate,
)
from bot.platforms.shared.api_client import ApiClient
from bot.platforms.shared.catch_up import MissedQuestion, call_patiently, read_acceptance_time
from bot.platforms.shared.message_intake import (
    EMPTY_MENTION,
    Audience,
    IncomingMessage,
    MessageIntake,
    build_welcome,
)
from bot.platforms.shared.rate_limit import Route
from bot.types import IntakeStatus, Place, Question
from storage.types import QueuedQuestion

log = logging.getLogger(__name__)

MAX_THREAD = 100  # most questions of a deleted thread whose answers are retracted
RunCommand = Callable[[Command, str, PostWritten, ChannelInfo], Awaitable[None]]


class MattermostIntake:
    """Turns posts into questions, and hands them to the desk."""

    def __init__(
        self,
        app: App,
        desk: Desk,
        us: MattermostBotIdentity,
        directory: MattermostDirectory,
        tasks: TaskSupervisor,
        run_command: RunCommand,
        deleted: Container[str],
    ) -> None:
        """`deleted`: the posts that we deleted, whose deletions Mattermost reports like any other."""
        self._run_command, self._deleted = run_command, deleted
        self._app, self._desk, self._us, self.directory, self._tasks = app, desk, us, directory, tasks
        self._messages, self._unlisted = MessageIntake(app, desk, tasks), set[str]()

    async def take(self, written: PostWritten) -> IntakeStatus | None:
        """Accept a post, or execute its command."""
        return await self._messages.take(
            written.channel, f"{written.channel}/{written.id}", partial(self._admit, written)
        )

    async def _admit(self, written: PostWritten) -> Question | None:
        command, rest = events.split_command(written.raw, self._us)
        if command in {None, "check", "private"}:
            return await self.question(written)
        channel = None if written.edited else await self.find_listed(written.channel)
        if channel and command and (channel.direct or events.is_addressed(written.raw, self._us)):
            self._tasks.spawn(self._run_command(command, rest, written, channel))
        return None

    async def question(self, written: PostWritten) -> Question | None:
        """Return a post as a question; None if the bot does not answer it. Raises `StorageError`."""
        channel = await self.find_listed(written.channel)
        if channel is None:
            return None
        place, conversation = locate(written, channel)
        message, author = self._read(written, channel), f"mattermost:{channel.team}/{written.user}"
        settings = await load_channel_settings_or_file(self._app, place.channel_id)
        every = settings.answer == "every"
        audience = await self._messages.find_audience(message, conversation, author, every=every)
        asker = self.directory.newcomer(channel, written.user)
        if audience is Audience.THEIRS or asker.exclusion:
            return None
        command, text = events.split_command(written.raw, self._us)
        text = text or (EMPTY_MENTION if message.addressed else "")
        if not text or command not in {None, "check", "private"}:
            return None
        return Question(
            f"mattermost:{channel.team}/{channel.id}/{written.id}",
            "check" if command == "check" else "ask",
            text,
            asker,
            place,
            conversation,
            written.at,
            message=written.id,
            only_asker=(settings.ephemeral or command == "private") and not channel.direct,
            unasked=audience is Audience.ANYBODYS,
        )

    async def edit(self, event: PostEdited) -> None:
        """Answer an edited question again, or a message that became a question. Raises `StorageError`."""
        now, channel = event.now, await self.find_listed(event.now.channel)
        if channel is None:
            return
        addressed = channel.direct or events.is_addressed(now.raw, self._us)
        take = partial(self.take, replace(now, edited=True)) if addressed else None
        key = f"mattermost:{channel.team}/{channel.id}/{now.id}"
        await self._messages.edit(now.channel, key, partial(self._read_edit, now, channel), take=take)

    async def delete(self, event: PostDeleted) -> None:
        """Retract the answers to deleted questions, and answers whose posts a user deleted."""
        await self._messages.delete(event.channel, self._withdraw(event))

    async def welcome(self, invited: Invited) -> None:
        """Introduce the bot in a channel that it was added to, unless settings turn that off."""
        channel = await self.find_listed(invited.channel) if self._app.settings.welcome else None
        if channel is None or channel.direct:
            return
        by, language = self.directory.newcomer(channel, invited.by), (await self.directory.person(invited.by)).locale
        place = Place("mattermost", channel.team, channel.id)
        await self._desk.take(build_welcome(by, place, datetime.now(UTC), language))

    async def find_listed(self, number: str) -> ChannelInfo | None:
        """Return a channel, if the bot answers there."""
        channel = await self.directory.find_channel(number)
        if channel and not self.directory.listed(channel):
            if channel.team not in self._unlisted:
                self._unlisted.add(channel.team)
                log.info("team %s is not in [mattermost] teams: not answering there", channel.team or "–")
            return None
        return channel

    def _read(self, written: PostWritten, channel: ChannelInfo) -> IncomingMessage:
        addressed = channel.direct or events.is_addressed(written.raw, self._us)
        others = events.is_to_others(written.raw)
        return IncomingMessage(addressed, others, within=bool(written.root), edited=written.edited)

    async def _read_edit(self, now: PostWritten, channel: ChannelInfo) -> tuple[str, IncomingMessage] | None:
        # The asker is looked up at their turn; here it suffices that they are not denied.
        if self.directory.newcomer(channel, now.user).exclusion:
            return None
        return events.split_command(now.raw, self._us)[1], self._read(now, channel)

    async def _withdraw(self, event: PostDeleted) -> None:
        channel = await self.directory.find_channel(event.channel)
        if channel is None:
            return
        place = Place("mattermost", channel.team, channel.id)
        row = await self._app.queue.by_message(place.channel_id, event.id)
        if row and event.id in row.posted:
            if event.id not in self._deleted:
                # Anyone who deletes our post may do so; Mattermost does not say who it was.
                by = Asker("mattermost", "channel", channel.team, channel.id, moderates=True)
                await self._desk.retract(row.ticket, by)
        elif row:
            await self._desk.delete_question(row.key)
        if not event.root:
            thread = await self._app.queue.conversation(f"{place.channel_id}/{event.id}", limit=MAX_THREAD)
            for question in thread:
                if not (row and question.key == row.key):
                    await self._desk.delete_question(question.key)


class MattermostHistoryReader:
    """Reads missed posts where the bot answers. Implements `bot.platforms.shared.catch_up.HistoryReader`."""

    platform, asked_at = "mattermost", staticmethod(read_acceptance_time)

    def __init__(self, call: ApiClient, us: MattermostBotIdentity, intake: MattermostIntake) -> None:
        self._call, self._us, self._intake = call, us, intake

    async def channels(self, since: float) -> AsyncIterator[str]:
        """Yield the channels and DMs with posts since a moment. Raises `PlatformError`."""
        seen = set[str]()
        for team in self._intake.directory.teams:
            for data in await self._read(client.MY_CHANNELS, team=team):
                channel = events.read_channel(data)
                if channel is None or channel.archived or channel.id in seen:
                    continue
                seen.add(channel.id)
                self._intake.directory.learn(channel)
                if int(data.get("last_post_at") or 0) >= since * 1000 and self._intake.directory.listed(channel):
                    yield channel.id

    async def missed(self, channel: str, since: float) -> AsyncIterator[MissedQuestion]:
        """Yield the questions since a moment in a channel and its threads. Raises `PlatformError`, `StorageError`."""
        posts = [post async for post in read_back(self._patient, channel, int(since * 1000))]
        for post in reversed(posts):
            written = events.parse_post(post, self._us)
            question = await self._intake.question(written) if written else None
            if written and question:
                yield MissedQuestion(question, written.edited)

    async def look_again(self, question: QueuedQuestion) -> None:
        channel = question.channel.rpartition("/")[2]
        try:
            post = await self._read(client.READ_ONE, post=question.message)
        except PostGone:
            await self._intake.delete(PostDeleted(channel, question.message, "", "·"))
            return
        now = events.parse_post(post, self._us)
        if now and now.edited:
            await self._intake.edit(PostEdited(now))

    async def _read(self, route: Route, **ids: str) -> Any:
        return await self._patient(route, **ids)

    async def _patient(self, route: Route, **facts: Any) -> Any:
        pacing = self._call.pacing
        return await call_patiently(lambda: self._call(route, **facts), lambda: pacing.spare(route), pacing.sleep)
