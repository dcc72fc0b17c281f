"""What Discord fails with, one fault after another: each question has one whole answer in the end."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.platforms.bots import bot_in
from tests.platforms.discord.state import LOADING, Message
from tests.platforms.discord.workspace import actions, workspaces
from tests.platforms.example_app import ANSWERS, BUILT
from tests.platforms.fake_server import BROKEN, LIMITED, LIMITED_EVERYWHERE, LOST, LOST_500, RESET, UNAVAILABLE

SERIES = (
    [LOST_500, LOST_500, LOST_500],
    [LIMITED, LIMITED],
    [LIMITED_EVERYWHERE],
    [LOST, LIMITED, LOST_500],
    [RESET, BROKEN, UNAVAILABLE],
    [replace(LIMITED, retry_after=30.0)],
)
"""How several requests of a route fail, one after another."""


@pytest.mark.parametrize("route", ["create_message", "edit_message"])
async def test_mention_is_answered_once_over_a_series_of_failures(filled: Path, tmp_path: Path, route: str) -> None:
    async with bot_in(workspaces(speed=60)(), filled, tmp_path / "home", every=False) as bot:
        await bot.start()
        for number, faults in enumerate(SERIES):
            bot.server.faults[route] = list(faults)
            # An answer that takes no time is posted once, and never edited.
            bot.system.shut |= {BUILT} if route == "edit_message" else set()
            asked = await bot.people.mention(BUILT, channel=f"20{number % 3 + 1}")
            if bot.system.shut:
                await bot.server.until(lambda asked=asked: bot.people.answers(asked))
                await bot.system.open()
            await bot.server.until(lambda asked=asked: _whole(bot.people.answers(asked)), seconds=10)
            await bot.outcome(number + 1, "delivered")
            assert len(bot.people.answers(asked)) == 1
            assert bot.server.faults[route] == []

        assert bot.server.posts == len(SERIES)
        assert bot.server.refused == []


@pytest.mark.parametrize("private", [True, False])
async def test_command_is_answered_once_over_a_series_of_failures(
    filled: Path, tmp_path: Path, *, private: bool
) -> None:
    async with bot_in(workspaces(speed=20)(), filled, tmp_path / "home", every=False) as bot:
        await bot.start()
        for number, faults in enumerate((SERIES[0], SERIES[3], SERIES[4])):
            bot.server.faults["edit_response"] = list(faults)
            bot.server.faults["callback"] = [faults[0]]
            used = await bot.people.command("ask", question=BUILT, private=private)

            def answers(used: Any = used) -> list[Message]:
                return [one for one in bot.server.state.ours() if one.interaction == used.id]

            await bot.server.until(lambda answers=answers: _whole(answers()), seconds=10)
            await bot.outcome(number + 1, "delivered")
            assert len(answers()) == bot.server.posts - number == 1
            assert bot.server.faults["edit_response"] == bot.server.faults["callback"] == []


def _whole(found: list[Message]) -> bool:
    """Return whether a message is the answer as it stays."""
    return any(
        ANSWERS[BUILT] in repr(one.components) and "evidence" in actions(one) and not one.flags & LOADING
        for one in found
    )
