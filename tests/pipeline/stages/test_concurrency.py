"""Concurrent tasks: which error is raised, and how the other tasks end."""

import asyncio

import pytest

from pipeline.errors import ModelUnavailable, PipelineError, SearchUnavailable, UnreadableReply
from pipeline.stages.concurrency import gather_all, gather_pair, gather_successes


async def gives(value: int) -> int:
    await asyncio.sleep(0)
    return value


async def fails(error: Exception) -> int:
    await asyncio.sleep(0)
    raise error


async def test_gathered_results_are_in_order() -> None:
    assert await gather_pair(gives(1), gives(2)) == (1, 2, None)
    assert await gather_all(gives(number) for number in range(5)) == (0, 1, 2, 3, 4)


async def test_failed_search_cancels_the_other_call() -> None:
    ended: list[str] = []

    async def waits() -> int:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("waits")
            raise
        return 0

    with pytest.raises(SearchUnavailable):
        await gather_pair(waits(), fails(SearchUnavailable("away")))

    assert ended == ["waits"]


async def test_pair_with_one_failure_returns_its_error_and_with_two_raises() -> None:
    away = ModelUnavailable("away")
    assert await gather_pair(gives(1), fails(away)) == (1, None, away)
    assert await gather_pair(fails(away), gives(2)) == (None, 2, away)
    with pytest.raises(ModelUnavailable):
        await gather_pair(fails(away), fails(UnreadableReply("odd")))


@pytest.mark.parametrize("turned", [False, True])
async def test_search_error_is_raised_before_others(turned: bool) -> None:  # noqa: FBT001 - cases
    errors = [ModelUnavailable("away"), SearchUnavailable("away")]
    with pytest.raises(SearchUnavailable):
        await gather_all(fails(error) for error in (errors[::-1] if turned else errors))


async def test_failed_calls_are_left_out() -> None:
    assert await gather_successes([gives(1), fails(UnreadableReply("odd")), gives(3)]) == (1, 3)
    assert await gather_successes([]) == ()


async def test_first_error_is_raised_if_all_calls_fail() -> None:
    with pytest.raises(PipelineError, match="first"):
        await gather_successes([fails(UnreadableReply("first")), fails(ModelUnavailable("second"))])


@pytest.mark.parametrize("error", [SearchUnavailable("away"), KeyError("a mistake of ours")])
async def test_search_and_unexpected_errors_are_raised(error: Exception) -> None:
    with pytest.raises(type(error)):
        await gather_successes([gives(1), fails(error)])
