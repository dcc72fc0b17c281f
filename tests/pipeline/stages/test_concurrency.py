"""Several at once: which error is raised, and what becomes of the others."""

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


async def test_both_results_come_back() -> None:
    assert await gather_pair(gives(1), gives(2)) == (1, 2, None)
    assert await gather_all(gives(number) for number in range(5)) == (0, 1, 2, 3, 4)


async def test_a_search_that_failed_ends_the_other_half() -> None:
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


async def test_one_half_may_fail_and_both_may_not() -> None:
    away = ModelUnavailable("away")

    assert await gather_pair(gives(1), fails(away)) == (1, None, away)
    assert await gather_pair(fails(away), gives(2)) == (None, 2, away)
    with pytest.raises(ModelUnavailable):
        await gather_pair(fails(away), fails(UnreadableReply("odd")))


@pytest.mark.parametrize("turned", [False, True])
async def test_search_error_wins_over_another(turned: bool) -> None:  # noqa: FBT001 - cases
    errors = [ModelUnavailable("away"), SearchUnavailable("away")]

    with pytest.raises(SearchUnavailable):
        await gather_all(fails(error) for error in (errors[::-1] if turned else errors))


async def test_those_that_fail_are_left_out() -> None:
    assert await gather_successes([gives(1), fails(UnreadableReply("odd")), gives(3)]) == (1, 3)
    assert await gather_successes([]) == ()


async def test_if_all_fail_the_first_error_is_raised() -> None:
    with pytest.raises(PipelineError, match="first"):
        await gather_successes([fails(UnreadableReply("first")), fails(ModelUnavailable("second"))])


@pytest.mark.parametrize("error", [SearchUnavailable("away"), KeyError("a mistake of ours")])
async def test_some_errors_are_never_left_out(error: Exception) -> None:
    with pytest.raises(type(error)):
        await gather_successes([gives(1), fails(error)])
