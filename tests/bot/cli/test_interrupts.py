"""Ctrl-C while a question is answered."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest
from typer.testing import CliRunner

from bot.cli.command_context import CliState
from bot.cli.entry_point import app
from bot.cli.questions.chat_session import run_interruptible
from bot.server.service import LocalService
from bot.settings.tables.settings_tables import Settings
from tests.bot.fake_services import FakeServices


def test_second_ctrl_c_does_not_interrupt_the_cleanup() -> None:
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
            run_interruptible(runner, work())
        assert done == ["recorded"]
        assert signal.getsignal(signal.SIGINT) is before


def test_event_loop_works_again_after_an_interrupt() -> None:
    async def stopped() -> None:
        signal.raise_signal(signal.SIGINT)
        await asyncio.Event().wait()

    async def work() -> str:
        return "said"

    with asyncio.Runner() as runner:
        with suppress(KeyboardInterrupt):
            run_interruptible(runner, stopped())
        assert run_interruptible(runner, work()) == "said"


def test_ctrl_c_at_the_end_of_a_conversation_is_ignored() -> None:
    closed: list[str] = []

    @asynccontextmanager
    async def open_home(settings: Settings) -> AsyncIterator[LocalService]:
        async with plain.open_home(settings) as opened:
            yield opened
            for _ in range(2):
                signal.raise_signal(signal.SIGINT)
                await asyncio.sleep(0)
            closed.append("all")

    plain, before = FakeServices().build(), signal.getsignal(signal.SIGINT)
    result = CliRunner().invoke(app, ["chat"], obj=CliState(replace(plain, open_home=open_home)), input="a\n")

    assert (result.exit_code, result.stderr, closed) == (0, "", ["all"])
    assert signal.getsignal(signal.SIGINT) is before
