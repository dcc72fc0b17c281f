"""Define the desk, which platforms call: it stores questions, answers them in order, and shows each answer once."""

import asyncio
import logging
import secrets
import socket
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from weakref import WeakValueDictionary

from bot.access import Asker
from bot.desk.jobs.completion import build_stop_entry
from bot.desk.jobs.job import DeskPorts, Interrupt, WorkerContext, decode_question, encode_question, read_retraction
from bot.desk.jobs.scheduler import Scheduler, SchedulerSettings
from bot.desk.platform_port import Platform, PlatformError
from bot.desk.supervisor import Clock
from bot.types import DeliveryOutcome, IntakeStatus, Question, QuestionState, log_event
from bot.views.catalog import translate
from storage.database.queue import Queue
from storage.types import QueuedQuestion

LEASE_SECONDS = 60.0  # after so long without renewal, another process may claim the question
_MAX_REFUSALS_REMEMBERED = 10_000  # keys of refused questions, so that no asker is notified twice
_MAX_RETRACTION_TRIES = 3  # attempts to retract an answer that is being delivered meanwhile
_CONVERSATION_WINDOW = 50  # last questions of a conversation that are read


class Desk:
    """Accepts the questions of all platforms. Questions that arrive while it does not run are answered when it does."""

    def __init__(
        self,
        queue: Queue,
        platforms: Mapping[str, Platform],
        ports: DeskPorts,
        settings: Callable[[], SchedulerSettings],
        *,
        sole: bool = True,
        clock: Clock | None = None,
    ) -> None:
        """Create the desk. `platforms` may still be filled until the desk runs.

        `sole` means that no other process uses this queue. Then leases do not matter, nor does a wrong clock.
        """
        # Unique to this process: no other one has or had this name.
        owner = f"{socket.gethostname()}/{secrets.token_hex(8)}"
        context = WorkerContext(queue, ports, clock or Clock(), owner, sole, LEASE_SECONDS)
        self._queue, self._ports, self._platforms = queue, ports, platforms
        self._scheduler = Scheduler(platforms, context, settings)
        self._refused = OrderedDict[str, None]()
        self._edits = WeakValueDictionary[str, asyncio.Lock]()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer questions within the block, first those that an earlier process left. Raises `StorageError`.

        At the end of the block, running jobs have some time to finish. The others are released, and the next start
        completes them.
        """
        await self._scheduler.start()
        try:
            yield
        finally:
            await self._scheduler.stop()

    async def resume_questions(self) -> None:
        """Resume the questions of platforms that connected after the start. Raises `StorageError`."""
        await self._scheduler.resume_questions()

    def stop_now(self) -> None:
        """Release running jobs immediately at the end of `running`."""
        self._scheduler.stop_now()

    async def take(self, question: Question, *, missed: bool = False) -> IntakeStatus:
        """Store a question. When this returns NEW, the question is on disk and will be answered.

        The bot may have answered a `missed` question already, even if a restored record lacks the answer. The platform
        is therefore searched for an answer first.
        """
        platform = self._platforms.get(question.place.platform)
        sending = missed and platform is not None and platform.ways(question).reads_back
        try:
            row, new = await self._queue.put(replace(encode_question(question), sending=sending))
        except Exception as error:  # noqa: BLE001 - whatever it is, the asker is notified and the desk continues
            log_event(logging.ERROR, "cannot store a question", question, error)
            self._refuse(question)
            return IntakeStatus.REFUSED
        if new:
            self._scheduler.enqueue(row)
        return IntakeStatus.NEW if new else IntakeStatus.KNOWN

    def count_before(self, key: str) -> int:
        """Return how many questions are ahead of a waiting one; 0 if it does not wait."""
        return self._scheduler.count_before(key)

    def count_jobs(self) -> Mapping[str, int]:
        """Return the numbers of questions that are waiting, being answered, and being delivered."""
        return self._scheduler.count_jobs()

    async def edit_question(self, key: str, text: str) -> None:
        """Answer a question again after its text was edited, and edit the posts. Raises `StorageError`."""
        # If several edits arrive at once, the last one counts.
        async with self._edits.setdefault(key, asyncio.Lock()):
            await self._edit_question(key, text)

    async def _edit_question(self, key: str, text: str) -> None:
        row = await self._queue.by_key(key)
        if row is None or decode_question(row).text == text:
            return
        job = self._scheduler.find_job(row.ticket)
        if job is not None and not job.delivering:
            await self._queue.note(row.ticket, text=text)
            if job.reword(text):
                return
        if job is not None:
            await job.finished.wait()
        await self._ask_again(row.ticket, text)

    async def delete_question(self, key: str) -> None:
        """Retract the answer to a question that its asker deleted. Raises `StorageError`."""
        row = await self._queue.by_key(key)
        if row is not None:
            await self._retract(row.ticket, by=row.user, why="the question was deleted")

    async def stop(self, ticket: int, by: Asker) -> bool:
        """Stop answering a question, as the asker or a person who governs the channel requests. Raises `StorageError`.

        Returns whether it stops; False for other people, or if the question is not being answered.
        """
        job = self._scheduler.find_job(ticket)
        if job is None or job.delivering or not await self._may(job.question, by):
            return False
        if job.delivering or job.finished.is_set():
            return False
        turn_id = job.turn_id if job.started else ""
        # Recorded only after the interrupt: an answer that was delivered before it was not stopped.
        self._scheduler.interrupt(job, Interrupt.STOP, by=by.user_id)
        if job.interrupt is not Interrupt.STOP:
            return False
        if turn_id:
            await self._ports.append(build_stop_entry(turn_id, by=by.user_id))
        return True

    async def retract(self, ticket: int, by: Asker) -> bool:
        """Retract an answer, as its asker or a person who governs the channel requests.

        Returns False for other people. Raises `StorageError`.
        """
        row = await self._queue.get(ticket)
        if row is None or not await self._may(decode_question(row), by):
            return False
        await self._retract(row.ticket, by=by.user_id, why="the answer was retracted")
        return True

    async def participates(self, conversation: str, user: str = "") -> bool:
        """Return whether the bot was asked or answered in a conversation. Raises `StorageError`.

        With a `user`, such as `slack:T1/U1`, only that user's questions count.
        """
        rows = await self._queue.conversation(conversation, limit=_CONVERSATION_WINDOW)
        if user:
            rows = tuple(row for row in rows if row.user == user and not row.body.get("unasked"))
        return any(map(_is_participation, rows))

    async def _ask_again(self, ticket: int, text: str) -> None:
        row = await self._queue.get(ticket)
        if row is None or row.outcome == DeliveryOutcome.RETRACTED:
            return
        if row.state != QuestionState.DONE:
            # It waits with its new text; if the server stops, the next start answers it.
            await self._queue.note(ticket, text=text)
        elif not await self._queue.reopen(ticket, text):
            return
        if (again := await self._queue.get(ticket)) is not None:
            self._scheduler.enqueue(again)

    async def _retract(self, ticket: int, *, by: str, why: str) -> None:
        """Store the retraction, and delete all posts, also those about to be made.

        If the process ends first, the next start completes the retraction.
        """
        for _ in range(_MAX_RETRACTION_TRIES):
            row = await self._queue.retract(ticket, by=by, why=why)
            if row is None:
                return
            self._scheduler.enqueue(row)
            if (job := self._scheduler.find_job(ticket)) is None:
                return
            self._scheduler.interrupt(job, Interrupt.REMOVE, by=by, why=why)
            await job.finished.wait()

    async def _may(self, question: Question, by: Asker) -> bool:
        asker = question.asker
        if by.exclusion:
            return False
        if (by.platform, by.workspace, by.user) == (asker.platform, asker.workspace, asker.user):
            return True
        return await self._ports.may_govern(question, by)

    def _refuse(self, question: Question) -> None:
        """Notify the asker once, in the background, that the question could not be stored."""
        platform = self._platforms.get(question.place.platform)
        if platform is None or question.unasked or question.key in self._refused:
            return
        self._refused[question.key] = None
        if len(self._refused) > _MAX_REFUSALS_REMEMBERED:
            self._refused.popitem(last=False)
        self._scheduler.spawn(_send_refusal(platform, question))


async def _send_refusal(platform: Platform, question: Question) -> None:
    try:
        await platform.tell(question, translate("unrecorded", question.language))
    except PlatformError as error:
        log_event(logging.WARNING, "cannot notify an asker of a refusal", question, error)


def _is_participation(row: QueuedQuestion) -> bool:
    """Return whether a question made the bot part of its conversation."""
    if row.state == QuestionState.DONE:
        return row.outcome not in {DeliveryOutcome.SILENT, DeliveryOutcome.RETRACTED}
    return not row.body.get("unasked") and not read_retraction(row)
