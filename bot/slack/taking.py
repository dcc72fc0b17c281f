"""What happens in Slack is handed to the desk: which message is a question, and what an edit or a deletion means.

`take` returns once a question is on the disk; only then is Slack told that it arrived. What could not be kept has been
told, so that it need not come again; where nothing can be told, it raises, and Slack delivers once more.
"""

from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from bot.desk.authorized_turn import load_channel_settings_or_file
from bot.desk.desk import Desk
from bot.desk.types import IntakeStatus, Question, QuestionState
from bot.lines import Lines
from bot.overhearing import Meant, Remark, edit_counts, overheard
from bot.server.supervisor import TaskSupervisor
from bot.slack import invoking, reading
from bot.slack.happening import Erased, Halted, Rewritten, Us, Written
from bot.slack.invoking import Invoked
from bot.slack.places import Places
from bot.wiring import App

RECENT = 5
"""How many questions of a conversation may be the one that is stopped."""
NO_WORDS = "hello"
"""What somebody says who mentions us and says nothing else."""


class Taking:
    """Takes questions of one workspace."""

    def __init__(self, app: App, desk: Desk, us: Us, places: Places, tasks: TaskSupervisor) -> None:
        """Take what is opened, the desk, who we are, what is known of places, and what keeps work that takes longer."""
        self._app, self._desk, self._us, self.places, self._tasks = app, desk, us, places, tasks
        self._lines = Lines()

    async def take(self, written: Written) -> IntakeStatus | None:
        """Take a message, if it is a question. Raises `StorageError` where that cannot be told.

        Messages of one channel are taken in the order in which they arrive, whichever is looked up faster.
        """
        async with self._lines.of(written.channel):
            question = await self.question(written)
            return await self._desk.take(question) if question else None

    async def take_invoked(self, invoked: Invoked) -> IntakeStatus:
        """Take what a command or a shortcut asks."""
        asker = await self.places.asker(invoked.channel, invoked.user, direct=invoked.direct)
        return await self._desk.take(invoking.question(invoked, self._us, asker, datetime.now(UTC)))

    async def question(self, written: Written) -> Question | None:
        """Return the question that a message is; None where it is none to us.

        `overhearing` says which those are.

        Raises:
            StorageError: Whether we take part in a thread cannot be looked up.
        """
        settings = await load_channel_settings_or_file(self._app, f"slack:{written.team}/{written.channel}")
        remark = self._remark(written)
        whose = await overheard(remark, partial(self._joined, written), every=settings.answer == "every")
        if whose is Meant.THEIRS:
            return None
        asker = await self.places.asker(written.channel, written.user, direct=written.direct, shared=written.shared)
        found = reading.question(
            written, self._us, asker, only_asker=settings.ephemeral, unasked=whose is Meant.ANYBODYS
        )
        return found if found.text else self._wordless(found, addressed=remark.addressed)

    async def rewritten(self, event: Rewritten) -> None:
        """Have an edited question answered anew. Raises `StorageError`."""
        now = event.now
        await self._lines.passed(now.channel)
        row, text = await self._app.queue.by_key(now.key), reading.said(now.raw, self._us)
        if row and text and edit_counts(self._remark(now), unasked=bool(row.body.get("unasked"))):
            await self._tasks.soon(self._desk.edited(now.key, text))

    async def erased(self, event: Erased) -> None:
        """Take back the answer to a deleted question. Raises `StorageError`."""
        await self._lines.passed(event.channel)
        await self._tasks.soon(self._desk.deleted(event.key))

    async def halted(self, event: Halted) -> None:
        """Stop answering where somebody pressed Slack's own button for that. Raises `StorageError`."""
        channel = f"slack:{event.team}/{event.channel}"
        rows = [await self._app.queue.by_message(channel, one) for one in event.messages]
        if not any(rows):
            rows = [*await self._app.queue.conversation(event.conversation, limit=RECENT)]
        by = await self.places.asker(event.channel, event.user, direct=reading.is_direct(event.channel))
        for ticket in {row.ticket for row in rows if row and row.state == QuestionState.RUNNING}:
            await self._desk.stop(ticket, by)

    def _remark(self, written: Written) -> Remark:
        addressed = written.direct or written.mentions(self._us)
        return Remark(addressed, written.to_others(self._us), within=bool(written.thread), edited=written.edited)

    async def _joined(self, written: Written, by_author: bool) -> bool:  # noqa: FBT001 - see `Joined`
        author = f"slack:{written.team}/{written.user}" if by_author else ""
        return await self._desk.joined(written.conversation, author)

    def _wordless(self, question: Question, *, addressed: bool) -> Question | None:
        """Return what a message without words is: a greeting to whom it is addressed."""
        return replace(question, text=NO_WORDS) if addressed else None
