"""Run several calls at once, and close streams with the block that reads them.

Unlike a bare `asyncio.TaskGroup`, these functions raise a single error: `SearchUnavailable` if there is one, else the
first.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Iterable, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from pipeline.errors import BudgetExceeded, PipelineError, SearchUnavailable

T = TypeVar("T")


@asynccontextmanager
async def close_stream(stream: AsyncIterator[T]) -> AsyncGenerator[AsyncIterator[T], None]:
    """Close a stream when the block ends, however it ends.

    Unlike `contextlib.aclosing`, this accepts any async iterator.
    """
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


async def replay_values(values: tuple[T, ...]) -> AsyncGenerator[T, None]:
    for value in values:
        yield value


A = TypeVar("A")
B = TypeVar("B")


@asynccontextmanager
async def open_task_group() -> AsyncGenerator[asyncio.TaskGroup]:
    """Run tasks within a block. If one of them or the block fails, all others are cancelled."""
    try:
        async with asyncio.TaskGroup() as group:
            yield group
    except BaseExceptionGroup as failed:
        errors = tuple(_leaf_errors(failed))
        raise next((error for error in errors if isinstance(error, SearchUnavailable)), errors[0]) from None


async def gather_pair(
    one: Coroutine[Any, Any, A], other: Coroutine[Any, Any, B]
) -> tuple[A | None, B | None, PipelineError | None]:
    """Run two calls at once, and return both results and an error. A call that fails has the result None.

    Raises:
        SearchUnavailable, BudgetExceeded: at once, when one of the calls raises it.
        PipelineError: the first call's error, when both fail.
    """
    async with open_task_group() as group:
        first, second = group.create_task(capture_outcome(one)), group.create_task(capture_outcome(other))
    left, right = first.result(), second.result()
    if isinstance(left, PipelineError):
        if isinstance(right, PipelineError):
            raise left
        return None, right, left
    return (left, None, right) if isinstance(right, PipelineError) else (left, right, None)


async def gather_all(calls: Iterable[Coroutine[Any, Any, A]]) -> tuple[A, ...]:
    """Run calls at once, and return their results in order.

    When one fails, the others are cancelled and its error is raised.
    """
    async with open_task_group() as group:
        tasks = [group.create_task(call) for call in calls]
    return tuple(task.result() for task in tasks)


async def gather_successes(calls: Iterable[Coroutine[Any, Any, A]]) -> tuple[A, ...]:
    """Run calls at once, and return the successful results. Raises as `capture_outcome`, or if all calls fail."""
    return select_successes(await gather_all(capture_outcome(call) for call in calls))


def select_successes(ended: Sequence[A | PipelineError]) -> tuple[A, ...]:
    """Return the successful outcomes. Raises the first error if all failed."""
    failed = [outcome for outcome in ended if isinstance(outcome, PipelineError)]
    if failed and len(failed) == len(ended):
        raise failed[0]
    return tuple(outcome for outcome in ended if not isinstance(outcome, PipelineError))


async def capture_outcome(call: Coroutine[Any, Any, A]) -> A | PipelineError:
    """Return a call's result, or its error as a value. `SearchUnavailable` and `BudgetExceeded` are raised."""
    try:
        return await call
    except (SearchUnavailable, BudgetExceeded):
        raise
    except PipelineError as error:
        return error


def _leaf_errors(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for exception in error.exceptions:
            yield from _leaf_errors(exception)
    else:
        yield error
