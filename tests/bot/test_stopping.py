"""Ctrl-C while a question is answered."""

import asyncio
import signal
from contextlib import suppress

import pytest

from bot.commands.chatting import stoppable


def test_ctrl_c_pressed_again_and_again_lets_the_work_end_before_it_is_told() -> None:
    """What the work does once it is cancelled is done to its end."""
    done: list[str] = []

    async def work() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
            await asyncio.Event().wait()
        finally:
            for _ in range(3):
                signal.raise_signal(signal.SIGINT)
                await asyncio.sleep(0)
            done.append("recorded")

    before = signal.getsignal(signal.SIGINT)
    with asyncio.Runner() as runner:
        with pytest.raises(KeyboardInterrupt):
            stoppable(runner, work())
        assert done == ["recorded"]
        assert signal.getsignal(signal.SIGINT) is before


def test_work_that_is_not_stopped_returns_and_the_loop_serves_again() -> None:
    """Also after a stop."""

    async def stopped() -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()

    async def work() -> str:
        return "said"

    with asyncio.Runner() as runner:
        with suppress(KeyboardInterrupt):
            stoppable(runner, stopped())
        assert stoppable(runner, work()) == "said"
