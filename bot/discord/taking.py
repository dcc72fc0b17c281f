"""What happens in Discord is handed to the desk: which message is a question, and what an edit or a deletion means.

A message's channel decides by the settings of the channel that a thread is in. What stands in servers that are not the
team's own is left alone.
"""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial

from bot.access import Asker
from bot.desk.authorized_turn import load_channel_settings_or_file
from bot.desk.channel_settings import ChannelSettings, Cooldown
from bot.desk.desk import Desk
from bot.desk.types import IntakeStatus, Place, Question
from bot.discord import reading
from bot.discord.conversing import meant_by, of_thread
from bot.discord.happening import Channel, Erased, Rewritten, Us, Written
from bot.discord.invoking import Invoked
from bot.discord.places import Places
from bot.discord.standing import is_ours, taken_along
from bot.lines import Lines
from bot.overhearing import Meant, Remark, edit_counts, overheard
from bot.platform import PlatformError
from bot.server.supervisor import TaskSupervisor
from bot.views.catalog import translate
from bot.wiring import App
from storage.language.detection import detect_language

log = logging.getLogger(__name__)

NO_WORDS = "hello"
"""What somebody says who mentions us and says nothing else."""
_TEXT = frozenset({0, 5})
"""Channels of which a message may get a thread."""
_READ = 2_000


@dataclass(slots=True)
class Outlet:
    """What the platform does for whoever takes questions; it is made after them."""

    tell: Callable[[Question, str], Awaitable[None]]
    deleted_by_us: Callable[[str], bool]


class Taking:
    """Takes questions."""

    outlet: Outlet

    def __init__(self, app: App, desk: Desk, us: Us, places: Places, tasks: TaskSupervisor, cooldown: Cooldown) -> None:
        """Take what is opened, the desk, who we are, what is known, what keeps longer work, and who has to wait."""
        self._app, self._desk, self._us, self.places, self._tasks = app, desk, us, places, tasks
        self.cooldown = cooldown
        self._strange = set[str]()
        self._lines = Lines()

    async def take(self, written: Written) -> IntakeStatus | None:
        """Take a message, if it is a question. Raises `StorageError` where that cannot be told.

        What happens in one channel is taken in the order in which it arrives, whichever is looked up faster.
        """
        async with self._lines.of(written.channel):
            return await self._take(written)

    async def question(self, written: Written) -> Question | None:
        """Return the question that a message is; None where it is none to us.

        `overhearing` says which those are. In a forum a post begins with its first message, which is to all of it.

        Raises:
            StorageError: What was asked there before cannot be looked up.
        """
        if written.guild and not self._ours(written.guild):
            return None
        channel = await self._channel(written.channel, written.guild)
        if channel is None:
            return None
        roles = self.places.our_roles(written.guild)
        remark = self._remark(written, channel)
        place, conversation = await self._placed(written, channel)
        settings = await load_channel_settings_or_file(self._app, place.channel_id)
        joined = partial(self._joined, written, conversation)
        whose = await overheard(remark, joined, every=settings.answer == "every")
        if whose is Meant.THEIRS:
            return None
        if await self.places.denied(written.user, written.roles, direct=not written.guild):
            return None
        text = reading.said(written.raw, self._us, {**self.places.names, **written.names}, roles)
        if not text and not (remark.addressed and (written.raw.strip() or not written.guild)):
            return None
        asker = await self.places.asker(channel, written.user, direct=not written.guild)
        only, unasked = settings.ephemeral and bool(written.guild), whose is Meant.ANYBODYS
        return _question(written, text or NO_WORDS, asker, place, conversation, only_asker=only, unasked=unasked)

    async def rewritten(self, event: Rewritten) -> None:
        """Have an edited question answered anew. Raises `StorageError`."""
        now = event.now
        await self._lines.passed(now.channel)
        row = await self._app.queue.by_key(now.key)
        channel = await self._channel(now.channel, now.guild) if row else None
        names, roles = {**self.places.names, **now.names}, self.places.our_roles(now.guild)
        text = reading.said(now.raw, self._us, names, roles)
        if not (row and channel and text):
            return
        if edit_counts(self._remark(now, channel), unasked=bool(row.body.get("unasked"))):
            await self._tasks.soon(self._desk.edited(now.key, text))

    async def erased(self, event: Erased) -> None:
        """Take back the answers to deleted questions, and what is left of answers that somebody deleted."""
        await self._lines.passed(event.channel)
        await self._tasks.soon(self._erased(event))

    async def conversation(self, found: Invoked) -> str:
        """Return the conversation that somebody means where they stand. Raises `StorageError`."""
        here = found if is_ours(self.places, found) else taken_along(found)
        return await meant_by(self._app, here.channel, found.user, direct=found.direct)

    async def settings(self, channel_id: str) -> ChannelSettings:
        """Return what holds in a channel."""
        return await load_channel_settings_or_file(self._app, channel_id)

    async def _take(self, written: Written) -> IntakeStatus | None:
        question = await self.question(written)
        if question is None:
            return None
        if left := self.cooldown.left(written.user, question.key):
            if not question.unasked and self.cooldown.first_refusal(written.user):
                self._tasks.spawn(self._told(question, cooling(left, detect_language(question.text[:_READ]))))
            return None
        if question.only_asker:
            # Whoever wrote for all to see cannot be answered alone; a command can.
            if not question.unasked:
                self._tasks.spawn(
                    self._told(question, translate("discord_ask_by_command", detect_language(question.text[:_READ])))
                )
            return None
        self.cooldown.begin(written.user, question.key)
        return await self._desk.take(question)

    def _ours(self, guild: str) -> bool:
        if self.places.listed(guild):
            return True
        if guild not in self._strange:
            self._strange.add(guild)
            log.info("[discord] servers does not name the server %s: nothing is answered there", guild)
        return False

    async def _channel(self, number: str, guild: str) -> Channel | None:
        try:
            return await self.places.channel(number, guild)
        except (PlatformError, TimeoutError) as error:
            log.warning("it cannot be told what channel a message is in", extra={"cause": str(error)})
            return None

    def _remark(self, written: Written, channel: Channel) -> Remark:
        addressed = reading.addresses(written, self._us, self.places.our_roles(written.guild))
        within = channel.is_thread and channel.id != written.id
        return Remark(addressed, reading.to_another(written, self._us), within=within, edited=written.edited)

    async def _joined(self, written: Written, conversation: str, by_author: bool) -> bool:  # noqa: FBT001 - see `Joined`
        author = f"discord:{written.guild}/{written.user}" if by_author else ""
        return await self._desk.joined(conversation, author)

    async def _placed(self, written: Written, channel: Channel) -> tuple[Place, str]:
        """Return where an answer goes, and the conversation that it belongs to."""
        if not written.guild:
            return Place("discord", "", written.channel), f"discord:/{written.channel}"
        parent = channel.parent if channel.is_thread else channel.id
        place = Place("discord", written.guild, parent, channel.id if channel.is_thread else "")
        if channel.is_thread:
            return place, await of_thread(self._app, place.channel_id, channel)
        before = await self._app.queue.by_message(place.channel_id, written.replied) if written.replied else None
        if before is None:
            return place, f"{place.channel_id}/{written.replied or written.id}"
        settings = await load_channel_settings_or_file(self._app, place.channel_id)
        opens = settings.threads == "long" and channel.kind in _TEXT and not settings.ephemeral
        return (replace(place, thread=written.id) if opens else place), before.conversation

    async def _erased(self, event: Erased) -> None:
        channel = await self._channel(event.channel, event.guild)
        where = channel.parent if channel and channel.is_thread else event.channel
        for one in event.ids:
            row = await self._app.queue.by_message(f"discord:{event.guild}/{where}", one)
            if row is None:
                continue
            if one not in row.posted:
                await self._desk.deleted(row.key)
            elif not self.outlet.deleted_by_us(one):
                # Whoever may delete our message there; Discord does not say who it was.
                by = Asker("discord", "channel", event.guild, where, moderates=True)
                await self._desk.retract(row.ticket, by)

    async def _told(self, question: Question, words: str) -> None:
        try:
            await self.outlet.tell(question, words)
        except PlatformError as error:
            log.warning("somebody who is not answered could not be told", extra={"cause": str(error)})


def cooling(seconds: float, language: str) -> str:
    """Return what somebody is told who has to wait; pure."""
    return translate("discord_cooldown", language, seconds=max(round(seconds), 1))


def _question(
    written: Written, text: str, asker: Asker, place: Place, conversation: str, *, only_asker: bool, unasked: bool
) -> Question:
    return Question(
        written.key,
        "ask",
        text,
        asker,
        place,
        conversation,
        written.at,
        message=written.id,
        only_asker=only_asker,
        unasked=unasked,
    )
