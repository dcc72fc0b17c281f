"""Schedule jobs fairly: channels take turns; within a channel and within a conversation, questions start in order.

A question waits in its channel's line, is answered, is delivered, and is removed. Only questions being answered count
towards the limit, because an unreachable platform must not delay other answers. The next question of a conversation
starts only when the previous one is removed; meanwhile, other conversations of the channel may overtake it, unless the
channel's limit is one, which keeps its questions in order.

`SchedulerState` and its functions purely decide which question is next; `Scheduler` runs and ends the jobs.
"""

import asyncio
import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field, replace
from datetime import timedelta
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from bot.desk.jobs.completion import RELEASE_SECONDS
from bot.desk.jobs.job import Interrupt, Job, WorkerContext, read_retraction
from bot.desk.jobs.turn_runner import run_job
from bot.desk.platform_port import Platform
from bot.desk.supervisor import TaskSupervisor, cancel_tasks, run_beside, wait_for_first
from bot.types import ProgressSign, log_event
from bot.views.view_reducer import show_queue_position
from storage.errors import StorageError
from storage.types import QueuedQuestion

_FIRST_SIGN_SECONDS, _SIGN_SECONDS = 0.5, 8.0
"""When and how often a waiting asker is shown their position."""
_NOTICES_AT_ONCE = 4  # position notices posted at once on one platform, whose rate limit is needed for answers
_NONE: Mapping[int, "QueuedJob"] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class QueuedJob:
    """A job in the scheduler's state. A job with a higher ticket was accepted later."""

    ticket: int
    channel: str
    conversation: str


@dataclass(frozen=True, slots=True)
class ConcurrencyLimit:
    """How many questions may be answered at the same time."""

    at_once: int
    per_channel: int


@dataclass(frozen=True, slots=True)
class SchedulerSettings:
    """The limits of concurrency, and waiting times in seconds."""

    limit: ConcurrencyLimit
    patience: float = 20.0  # after so long, a waiting asker is notified of their position
    grace: float = 20.0  # how long running answers may take when the desk closes


@dataclass(frozen=True, slots=True)
class SchedulerState:
    waiting: Mapping[str, tuple[QueuedJob, ...]] = field(default_factory=lambda: MappingProxyType({}))
    """The line of each channel. The first channel is served first, and then moves to the end."""
    answering: Mapping[int, QueuedJob] = field(default_factory=lambda: _NONE)
    delivering: Mapping[int, QueuedJob] = field(default_factory=lambda: _NONE)


def enqueue_job(state: SchedulerState, job: QueuedJob) -> SchedulerState:
    line = sorted((*state.waiting.get(job.channel, ()), job), key=attrgetter("ticket"))
    return replace(state, waiting={**state.waiting, job.channel: tuple(line)})


def start_jobs(state: SchedulerState, limit: ConcurrencyLimit) -> tuple[SchedulerState, tuple[QueuedJob, ...]]:
    """Return the state after starting every job that may start now, and the started jobs in order."""
    chosen: list[QueuedJob] = []
    while (job := _find_next_job(state, limit)) is not None:
        state = _start_job(state, job)
        chosen.append(job)
    return state, tuple(chosen)


def mark_answered(state: SchedulerState, ticket: int) -> SchedulerState:
    """Return the state after a job moves from being answered to being delivered."""
    if (job := state.answering.get(ticket)) is None:
        return state
    answering, delivering = _drop_job(state.answering, ticket), {**state.delivering, ticket: job}
    return replace(state, answering=answering, delivering=delivering)


def remove_job(state: SchedulerState, ticket: int) -> SchedulerState:
    lines = {channel: tuple(job for job in line if job.ticket != ticket) for channel, line in state.waiting.items()}
    waiting = {channel: line for channel, line in lines.items() if line}
    return SchedulerState(waiting, _drop_job(state.answering, ticket), _drop_job(state.delivering, ticket))


def count_ahead(state: SchedulerState, ticket: int) -> int:
    """Return how many questions that were accepted earlier are not answered yet."""
    waiting = sum(bisect_left(line, ticket, key=lambda job: job.ticket) for line in state.waiting.values())
    return waiting + sum(other < ticket for other in state.answering)


def _find_next_job(state: SchedulerState, limit: ConcurrencyLimit) -> QueuedJob | None:
    if len(state.answering) >= limit.at_once:
        return None
    busy = Counter(job.channel for job in state.answering.values())
    talking = {job.conversation for job in (*state.answering.values(), *state.delivering.values())}
    lines = (line for channel, line in state.waiting.items() if busy[channel] < limit.per_channel)
    able = (job for line in lines for job in (line if limit.per_channel > 1 else line[:1]))
    return next((job for job in able if job.conversation not in talking), None)


def _start_job(state: SchedulerState, job: QueuedJob) -> SchedulerState:
    """Return the state after starting a job. The rest of its channel's line moves behind the other channels."""
    waiting = {channel: line for channel, line in state.waiting.items() if channel != job.channel}
    if rest := tuple(other for other in state.waiting[job.channel] if other != job):
        waiting[job.channel] = rest
    return replace(state, waiting=waiting, answering={**state.answering, job.ticket: job})


def _drop_job(jobs: Mapping[int, QueuedJob], ticket: int) -> Mapping[int, QueuedJob]:
    return {number: job for number, job in jobs.items() if number != ticket}


class Scheduler:
    """Runs the jobs, and renews the leases of this process. Its methods neither block nor raise."""

    def __init__(
        self, platforms: Mapping[str, Platform], context: WorkerContext, settings: Callable[[], SchedulerSettings]
    ) -> None:
        self._platforms, self._context, self._settings = platforms, context, settings
        self._state = SchedulerState()
        self._jobs: dict[int, Job] = {}
        self._tasks = TaskSupervisor()
        self._leases: asyncio.Task[None] | None = None
        self._no_grace = asyncio.Event()
        self._notices: dict[str, asyncio.Semaphore] = {}
        """Limits the position notices, by platform."""

    def find_job(self, ticket: int) -> Job | None:
        return self._jobs.get(ticket)

    def count_before(self, key: str) -> int:
        """Return how many questions are answered before a waiting one; 0 if it does not wait."""
        waiting = (job for job in self._jobs.values() if job.question.key == key and self._is_waiting(job))
        return next((count_ahead(self._state, job.ticket) for job in waiting), 0)

    def count_jobs(self) -> Mapping[str, int]:
        waiting = sum(map(len, self._state.waiting.values()))
        answering, delivering = len(self._state.answering), len(self._state.delivering)
        return {"waiting": waiting, "answering": answering, "delivering": delivering}

    async def start(self) -> None:
        """Start the scheduler, and enqueue the questions that an earlier process left. Raises `StorageError`."""
        context = self._context
        rows = await context.queue.open(context.owner, context.clock.now(), sole=context.sole)
        self._leases = asyncio.create_task(self._keep_leases())
        for row in rows:
            self.enqueue(row)

    async def resume_questions(self) -> None:
        """Resume the questions of platforms that connected after the start. Raises `StorageError`."""
        context = self._context
        for row in await context.queue.open(context.owner, context.clock.now(), sole=context.sole):
            self.enqueue(row)

    async def stop(self) -> None:
        """Start no more jobs, give running ones some time to finish, and release the others."""
        if self._leases is None:
            return
        leases, self._leases = self._leases, None
        running = {job for job in self._jobs.values() if job.started}
        for job in self._jobs.values():
            if not job.started:
                job.finished.set()
        self._jobs = {job.ticket: job for job in running}
        async with run_beside(_wait_until_finished(running), name="desk") as finished:
            await wait_for_first(finished, self._context.clock.sleep_unless(self._no_grace, self._settings().grace))
            for job in self._jobs.values():
                job.request(Interrupt.STOP_SERVER)
            await asyncio.wait({finished}, timeout=2 * RELEASE_SECONDS)
        await cancel_tasks([leases])
        await self._tasks.cancel()

    def stop_now(self) -> None:
        """Let `stop` release running jobs immediately, without time to finish."""
        self._no_grace.set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return self._tasks.spawn(work)

    def enqueue(self, row: QueuedQuestion) -> None:
        """Enqueue a question unless it is in the queue already or its platform is not connected.

        A retraction starts immediately.
        """
        platform = self._platforms.get(row.channel.partition(":")[0])
        if self._leases is None or platform is None or row.ticket in self._jobs:
            return
        try:
            job = Job(row, platform, self._context)
        except ValueError as error:
            log_event(logging.ERROR, "cannot read a question of the queue", error=error, ticket=row.ticket)
            return
        self._jobs[row.ticket] = job
        job.on_answered = lambda: self._mark_answered(row.ticket)
        if job.interrupt is Interrupt.REMOVE:
            self._start(job)
            return
        self._state = enqueue_job(self._state, QueuedJob(row.ticket, row.channel, row.conversation))
        self._dispatch()
        if not job.started:
            self.spawn(self._show_position(job))
            self.spawn(self._post_position(job))

    def interrupt(self, job: Job, interrupt: Interrupt, *, by: str, why: str = "") -> None:
        """Interrupt a job. A job that still waits is started at once, to handle the interrupt."""
        job.request(interrupt, by=by, why=why)
        if not job.started:
            self._state = remove_job(self._state, job.ticket)
            self._start(job)

    def _dispatch(self) -> None:
        if self._leases is not None:
            self._state, jobs = start_jobs(self._state, self._settings().limit)
            for job in jobs:
                self._start(self._jobs[job.ticket])

    def _start(self, job: Job) -> None:
        job.started = True
        job.task = self.spawn(self._run(job))

    async def _run(self, job: Job) -> None:
        try:
            await run_job(job)
        except Exception as error:  # noqa: BLE001 - a fault in one turn never ends the desk
            job.log(logging.CRITICAL, "a job failed; the next start retries it", error)
        finally:
            job.writer.close()
            self._state = remove_job(self._state, job.ticket)
            self._jobs.pop(job.ticket, None)
            job.finished.set()
            self._dispatch()

    def _mark_answered(self, ticket: int) -> None:
        self._state = mark_answered(self._state, ticket)
        self._dispatch()

    async def _show_position(self, job: Job) -> None:
        """Show a waiting asker their position in the queue by a sign, until something is posted."""
        await self._context.clock.sleep(_FIRST_SIGN_SECONDS)
        while self._is_waiting(job) and not job.writer.begun:
            job.view = show_queue_position(job.view, count_ahead(self._state, job.ticket))
            job.writer.offer(job.view, waiting=True)
            await self._context.clock.sleep(_SIGN_SECONDS)

    async def _post_position(self, job: Job) -> None:
        """After some time, post a waiting asker's position in the queue, unless a sign shows it."""
        await self._context.clock.sleep(self._settings().patience)
        async with self._notices.setdefault(job.writer.platform.name, asyncio.Semaphore(_NOTICES_AT_ONCE)):
            if self._is_waiting(job) and job.writer.sign is not ProgressSign.WORDED:
                job.view = show_queue_position(job.view, count_ahead(self._state, job.ticket))
                job.writer.offer(job.view)
                await job.writer.wait_until_shown()

    def _is_waiting(self, job: Job) -> bool:
        return not job.started and job.ticket in self._jobs

    async def _keep_leases(self) -> None:
        """Renew this process's leases, give up jobs that another process claimed, and resume abandoned ones."""
        while True:
            await self._context.clock.sleep(self._context.lease_seconds / 3)
            try:
                await self._renew_leases()
            except StorageError as error:
                log_event(logging.ERROR, "cannot renew leases, retrying", error=error)

    async def _renew_leases(self) -> None:
        context = self._context
        claimed = [job for job in self._jobs.values() if job.claimed]
        until = context.clock.now() + timedelta(seconds=context.lease_seconds)
        renewed = await context.queue.renew(context.owner, until)
        for job in () if context.sole else claimed:
            if job.ticket not in renewed and job.task is not None and not job.finished.is_set():
                job.log(logging.WARNING, "another process claimed this question")
                job.task.cancel()
        for row in await context.queue.open(context.owner, context.clock.now(), sole=context.sole):
            # A sole process already has every new question, but a command may have requested a retraction.
            if not context.sole or read_retraction(row):
                self.enqueue(row)


async def _wait_until_finished(jobs: set[Job]) -> None:
    for job in jobs:
        await job.finished.wait()
