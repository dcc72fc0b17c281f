"""Tests that tasks cancelled before they begin end without a warning."""

import asyncio
import gc
import warnings

from bot.desk.supervisor import TaskSupervisor


async def test_task_cancelled_before_its_start_leaves_no_unawaited_coroutine() -> None:
    tasks, began = TaskSupervisor(), list[str]()

    async def work() -> None:
        began.append("work")

    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        task = tasks.spawn(work())
        await tasks.cancel()
        gc.collect()

    assert task.cancelled()
    assert (began, [str(warning.message) for warning in warned]) == ([], [])


async def test_awaited_future_outlives_its_waiter() -> None:
    tasks, future = TaskSupervisor(), asyncio.get_running_loop().create_future()
    waiting = tasks.spawn(asyncio.shield(future))
    await tasks.cancel()

    assert waiting.cancelled()
    assert not future.done()
