"""Tests of the thread that runs the most urgent call first."""

import asyncio
import threading
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage.database.worker_threads import PriorityWorker, WritePriority


class Gate:
    """A call that blocks the thread until it is released."""

    def __init__(self) -> None:
        self.reached, self.go_on = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.reached.set()
        self.go_on.wait(60)


async def held(worker: PriorityWorker) -> tuple[Gate, asyncio.Task[None]]:
    """Keep the worker busy."""
    gate = Gate()
    task = asyncio.create_task(worker.run(WritePriority.BATCH, gate))
    await asyncio.to_thread(gate.reached.wait, 10)
    return gate, task


@given(st.lists(st.sampled_from(WritePriority), max_size=20))
async def test_most_urgent_call_runs_first_then_the_oldest(urgencies: list) -> None:
    done: list[tuple[WritePriority, int]] = []
    with PriorityWorker("test") as worker:
        gate, busy = await held(worker)
        waiting = [
            asyncio.create_task(worker.run(urgency, done.append, (urgency, number)))
            for number, urgency in enumerate(urgencies)
        ]
        await asyncio.sleep(0)  # all have called
        gate.go_on.set()
        await asyncio.gather(busy, *waiting)

    assert done == sorted((urgency, number) for number, urgency in enumerate(urgencies))


async def test_call_error_reaches_its_caller_and_the_thread_continues() -> None:
    def breaks() -> None:
        raise ArithmeticError("broken")

    with PriorityWorker("test") as worker:
        with pytest.raises(ArithmeticError, match="broken"):
            await worker.run(WritePriority.RECORD, breaks)

        assert (await worker.run(WritePriority.RECORD, threading.current_thread)).name == "test_0"


async def test_abandoned_call_is_dropped() -> None:
    done: list[int] = []
    with PriorityWorker("test") as worker:
        gate, busy = await held(worker)
        waiting = [asyncio.create_task(worker.run(WritePriority.RECORD, done.append, number)) for number in range(3)]
        await asyncio.sleep(0)
        waiting[1].cancel()
        await asyncio.wait([waiting[1]])
        gate.go_on.set()
        await asyncio.gather(busy, waiting[0], waiting[2])

    assert done == [0, 2]


async def test_closing_waits_for_running_calls_and_drops_waiting_ones() -> None:
    done: list[int] = []
    worker = PriorityWorker("test")
    gate, busy = await held(worker)
    waiting = [asyncio.create_task(worker.run(WritePriority.RECORD, done.append, number)) for number in range(3)]
    await asyncio.sleep(0)

    closing = asyncio.create_task(asyncio.to_thread(worker.close))
    for _ in range(3):
        await asyncio.sleep(0)
    gate.go_on.set()
    await closing
    await busy

    for task in waiting:
        with suppress(asyncio.CancelledError):
            await asyncio.wait_for(task, 60)
    assert set(done) <= {0, 1, 2}
    with pytest.raises(RuntimeError):
        await worker.run(WritePriority.RECORD, print)
