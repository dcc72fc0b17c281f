"""SIGTERM and Ctrl-C: the first stops in order, the second hurries, and neither is an error."""

import asyncio
import signal

import pytest

from bot.stopping import stoppable


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_the_first_signal_asks_and_further_ones_hurry(number: signal.Signals) -> None:
    """What is closed meanwhile is closed to its end."""
    closed = []
    with stoppable() as asked:
        signal.raise_signal(number)
        await asked.wait()
        try:
            signal.raise_signal(number)
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            closed.append("all")

    assert closed == ["all"]
    task = asyncio.current_task()
    assert task
    assert task.cancelling() == 0


async def test_a_cancellation_that_is_no_signal_passes() -> None:
    """Somebody else wants it."""

    async def work() -> None:
        with stoppable() as asked:
            await asked.wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_afterwards_signals_are_heard_as_before() -> None:
    """By whoever heard them."""
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with stoppable():
        pass

    assert signal.getsignal(signal.SIGTERM) is before[0]
    assert signal.getsignal(signal.SIGINT) in {before[1], signal.default_int_handler}
