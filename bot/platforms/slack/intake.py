"""Turn Slack's messages, also missed ones, into questions for the desk.

`SlackIntake.take` returns once a question is stored; only then is Slack's delivery acknowledged. If storing fails and
the asker was notified, the delivery is acknowledged too; if not, it raises, and Slack delivers again.
"""

import hashlib
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from bot.access import Asker
from bot.app import App
from bot.desk.channel_settings import load_channel_settings_or_file
from bot.desk.desk import Desk
from bot.desk.platform_port import PostGone
from bot.desk.supervisor import TaskSupervisor
from bot.platforms.shared.api_client import ApiClient
from bot.platforms.shared.catch_up import MissedQuestion, call_patiently, read_acceptance_time
from bot.platforms.shared.message_intake import (
    EMPTY_MENTION,
    Audience,
    IncomingMessage,
    MessageIntake,
    build_welcome,
)
from bot.platforms.shared.payload_text import Json, read_object, strip_footnotes
from bot.platforms.shared.rate_limit import Route
from bot.platforms.slack import events
from bot.platforms.slack.client import HISTORY, OUR_CHANNELS, REPLIES
from bot.platforms.slack.directory import SlackDirectory
from bot.platforms.slack.events import SlackBotIdentity, build_task, extract_text, is_direct, is_ts, strip_formatting
from bot.types import IntakeStatus, Place, Question, QuestionState, TaskKind
from storage.types import QueuedQuestion

ASK_COMMANDS = ("/ask", "/check")
CONFIGURE_COMMAND = "/footnote"
SHORTCUT = "footnote_check"  # the callback id of **Fact-check this message**


@dataclass(frozen=True, slots=True)
class SlackInvocation:
    """A question asked by a command or a shortcut."""

    task: TaskKind
    kind: str
    trigger: str
    user: str
    channel: str
    text: str
    url: str
    thread: str = ""

    @property
    def direct(self) -> bool:
        """Whether the question was asked in a DM with the bot or with another user; Slack does not distinguish them."""
        return is_direct(self.channel)


def parse_invocation(body: Json, us: SlackBotIdentity) -> SlackInvocation | None:
    """Parse the question of a command or a shortcut; None for other commands and shortcuts."""
    if body.get("command") in ASK_COMMANDS:
        task, text = build_task(str(body["command"])), extract_text(str(body.get("text") or ""), us)
        return SlackInvocation(
            task,
            "command",
            str(body.get("trigger_id", "")),
            str(body.get("user_id", "")),
            str(body.get("channel_id", "")),
            strip_formatting(text) if task == "check" else text,
            str(body.get("response_url", "")),
        )
    if body.get("type") == "message_action" and body.get("callback_id") == SHORTCUT:
        return _parse_shortcut(body, us)
    return None


def _parse_shortcut(body: Json, us: SlackBotIdentity) -> SlackInvocation:
    message = read_object(body, "message")
    # A private post in a thread without replies would not be shown.
    root = message.get("thread_ts")
    text = strip_formatting(extract_text(str(message.get("text") or ""), us))
    return SlackInvocation(
        "check",
        "shortcut",
        str(body.get("trigger_id", "")),
        str(read_object(body, "user").get("id", "")),
        str(read_object(body, "channel").get("id", "")),
        strip_footnotes(text) if message.get("user") == us.user else text,
        str(body.get("response_url", "")),
        thread=str(root) if is_ts(root) else "",
    )


def build_invocation_question(invoked: SlackInvocation, us: SlackBotIdentity, asker: Asker, at: datetime) -> Question:
    """Return an invocation's question, which starts a conversation of its own."""
    key = f"slack:{us.team}/{invoked.kind}/{hashlib.sha256(invoked.trigger.encode()).hexdigest()[:32]}"
    place = Place("slack", us.team, invoked.channel, invoked.thread)
    return Question(key, invoked.task, invoked.text, asker, place, key, at, only_asker=True, handle=invoked.url)


RECENT_QUESTIONS = 5  # of a conversation, checked for running ones to stop


class SlackIntake:
    """Turns messages, commands and shortcuts into questions, and hands them to the desk."""

    def __init__(
        self,
        app: App,
        desk: Desk,
        us: events.SlackBotIdentity,
        directory: SlackDirectory,
        tasks: TaskSupervisor,
        announce: Callable[[Question, int], str],
    ) -> None:
        self._app, self._desk, self._us, self.directory = app, desk, us, directory
        self._announce = announce
        self._messages = MessageIntake(app, desk, tasks)

    async def take(self, written: events.SlackMessagePosted) -> IntakeStatus | None:
        return await self._messages.take(written.channel, written.key, partial(self.question, written))

    async def take_invoked(self, invoked: SlackInvocation) -> Question:
        asker = self.directory.newcomer(invoked.channel, invoked.user, direct=invoked.direct)
        question = build_invocation_question(invoked, self._us, asker, datetime.now(UTC))
        await self._desk.take(question)
        return question

    async def welcome(self, invited: events.Invited) -> None:
        """Introduce the bot in a channel that it was invited to, unless settings turn that off."""
        if not self._app.settings.welcome:
            return
        by = self.directory.newcomer(invited.channel, invited.by, direct=False)
        place, language = Place("slack", invited.team, invited.channel), await self.directory.language(invited.by)
        await self._desk.take(build_welcome(by, place, datetime.now(UTC), language))

    def render_wait(self, question: Question) -> str:
        """Return the notice for an asker who has to wait; empty if the question is already being answered."""
        before = self._desk.count_before(question.key)
        return self._announce(question, before) if before else ""

    async def question(self, written: events.SlackMessagePosted) -> Question | None:
        """Return a message as a question; None if the bot does not answer it. Raises `StorageError`."""
        settings = await load_channel_settings_or_file(self._app, f"slack:{written.team}/{written.channel}")
        message, author = self._read(written), f"slack:{written.team}/{written.user}"
        every = settings.answer == "every"
        audience = await self._messages.find_audience(message, written.conversation, author, every=every)
        if audience is Audience.THEIRS:
            return None
        asker = self.directory.newcomer(written.channel, written.user, direct=written.direct, shared=written.shared)
        question = events.build_message_question(
            written, self._us, asker, only_asker=settings.ephemeral, unasked=audience is Audience.ANYBODYS
        )
        wordless = replace(question, text=EMPTY_MENTION) if message.addressed else None
        return question if question.text else wordless

    async def edit(self, event: events.SlackMessageEdited) -> None:
        """Answer an edited question again. Raises `StorageError`."""
        await self._messages.edit(event.now.channel, event.now.key, partial(self._read_edit, event.now))

    async def delete(self, event: events.SlackMessageDeleted) -> None:
        """Retract the answer to a deleted question. Raises `StorageError`."""
        await self._messages.delete(event.channel, self._desk.delete_question(event.key))

    async def stop(self, event: events.StopRequested) -> None:
        """Stop the answers for which a user pressed Slack's own stop button. Raises `StorageError`."""
        channel = f"slack:{event.team}/{event.channel}"
        rows = [await self._app.queue.by_message(channel, message) for message in event.messages]
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


THREAD_AGE = timedelta(days=7)  # of threads that are checked for new questions
PAGE = 200
_TYPES = "public_channel,private_channel,im,mpim"


class SlackHistoryReader:
    """Reads missed messages of a workspace. Implements `bot.platforms.shared.catch_up.HistoryReader`."""

    platform, asked_at = "slack", staticmethod(read_acceptance_time)

    def __init__(self, call: ApiClient, us: events.SlackBotIdentity, intake: SlackIntake) -> None:
        self._call, self._us, self._intake = call, us, intake
        self._channel_types: dict[str, str] = {}

    async def channels(self, since: float) -> AsyncIterator[str]:  # noqa: ARG002 - Slack does not report quiet channels
        """Yield the channels and DMs that the bot is in. Raises `PlatformError`."""
        async for channel in self._read_pages(OUR_CHANNELS, "channels", types=_TYPES, exclude_archived=True):
            name = str(channel.get("id", ""))
            self._channel_types[name] = (
                "im" if channel.get("is_im") else "mpim" if channel.get("is_mpim") else "channel"
            )
            yield name

    async def missed(self, channel: str, since: float) -> AsyncIterator[MissedQuestion]:
        """Yield a channel's questions since a moment, also those in older threads. Raises `PlatformError`."""
        where = {"channel": channel, "channel_type": self._channel_types.get(channel, "")}
        async for message in self._read_messages(channel, since):
            written = events.parse_event({"event": {"type": "message", **message, **where}}, self._us)
            if isinstance(written, events.SlackMessagePosted) and (question := await self._intake.question(written)):
                yield MissedQuestion(question, written.edited)

    async def look_again(self, question: QueuedQuestion) -> None:
        channel, ts = question.channel.rpartition("/")[2], question.message
        facts: dict[str, Any] = {"channel": channel, "ts": ts, "oldest": ts, "latest": ts, "inclusive": True}
        try:
            pages = self._read_pages(REPLIES, "messages", **facts)
            messages = [message async for message in pages if message.get("ts") == ts]
        except PostGone:
            await self._intake.delete(events.SlackMessageDeleted(self._us.team, channel, ts))
            return
        where = {"channel": channel, "channel_type": "im" if events.is_direct(channel) else "channel"}
        for message in messages:
            event = {"type": "message", "subtype": "message_changed", "message": message, **where}
            match events.parse_event({"event": event}, self._us):
                case events.SlackMessageDeleted() as erased:
                    await self._intake.delete(erased)
                case events.SlackMessageEdited() as rewritten if rewritten.now.edited:
                    await self._intake.edit(rewritten)

    async def _read_messages(self, channel: str, since: float) -> AsyncIterator[Json]:
        """Yield a channel's messages since a moment, each followed by the messages of its thread.

        New messages in threads that began earlier are included.
        """
        oldest = f"{since - THREAD_AGE.total_seconds():.6f}"
        roots = [root async for root in self._read_pages(HISTORY, "messages", channel=channel, oldest=oldest)]
        for root in reversed(roots):
            if float(root.get("ts", 0)) > since:
                yield root
            if float(root.get("latest_reply") or 0) > since:
                facts: dict[str, Any] = {"channel": channel, "ts": root["ts"], "oldest": f"{since:.6f}"}
                async for reply in self._read_pages(REPLIES, "messages", **facts):
                    if reply.get("ts") != root.get("ts"):
                        yield reply

    async def _read_pages(self, route: Route, what: str, **facts: Any) -> AsyncIterator[Json]:
        """Yield the items of all pages of a list, retrying while Slack is unreachable. Raises `PlatformError`."""
        pacing = self._call.pacing
        while True:
            page: Json = await call_patiently(
                lambda: self._call(route, {"limit": PAGE, **facts}), lambda: pacing.spare(route), pacing.sleep
            )
            for item in page.get(what) or ():
                yield item
            if not (cursor := str((page.get("response_metadata") or {}).get("next_cursor") or "")):
                return
            facts["cursor"] = cursor
