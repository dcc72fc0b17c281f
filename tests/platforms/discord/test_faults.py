"""What Discord fails with, one fault after another: each question has one whole answer in the end."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.platforms.discord.faults import BROKEN, LIMITED, LIMITED_EVERYWHERE, LOST, LOST_500, RESET, UNAVAILABLE
from tests.platforms.discord.talking import actions, talking
from tests.platforms.discord.world import LOADING, Message
from tests.platforms.world import ANSWERS, BUILT

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
async def test_a_mention_is_answered_once_whatever_fails(filled: Path, tmp_path: Path, route: str) -> None:
    """500s of which some were done: of one nonce there is one message; 429s by route and over all are waited for."""
    async with talking(tmp_path / "home", filled, times=60) as talk:
        await talk.start()
        for number, faults in enumerate(SERIES):
            talk.discord.faults[route] = list(faults)
            # An answer that takes no time is posted once, and never edited.
            talk.system.shut |= {BUILT} if route == "edit_message" else set()
            asked = await talk.acts.mention(BUILT, channel=f"20{number % 3 + 1}")
            if talk.system.shut:
                await talk.discord.until(lambda asked=asked: talk.acts.answers(asked))
                await talk.system.open()
            await talk.discord.until(lambda asked=asked: _whole(talk.acts.answers(asked)), seconds=10)
            await talk.outcome(number + 1, "delivered")
            assert len(talk.acts.answers(asked)) == 1
            assert talk.discord.faults[route] == []

        assert talk.discord.posts == len(SERIES)
        assert talk.discord.refused == []


@pytest.mark.parametrize("private", [True, False])
async def test_a_command_is_answered_once_whatever_fails(filled: Path, tmp_path: Path, *, private: bool) -> None:
    """Its deferral and its edits; nothing is said anywhere else."""
    async with talking(tmp_path / "home", filled, times=20) as talk:
        await talk.start()
        for number, faults in enumerate((SERIES[0], SERIES[3], SERIES[4])):
            talk.discord.faults["edit_response"] = list(faults)
            talk.discord.faults["callback"] = [faults[0]]
            used = await talk.acts.command("ask", question=BUILT, private=private)

            def answers(used: Any = used) -> list[Message]:
                return [one for one in talk.discord.world.ours() if one.interaction == used.id]

            await talk.discord.until(lambda answers=answers: _whole(answers()), seconds=10)
            await talk.outcome(number + 1, "delivered")
            assert len(answers()) == talk.discord.posts - number == 1
            assert talk.discord.faults["edit_response"] == talk.discord.faults["callback"] == []


def _whole(found: list[Message]) -> bool:
    """Return whether a message is the answer as it stays."""
    return any(
        ANSWERS[BUILT] in repr(one.components) and "evidence" in actions(one) and not one.flags & LOADING
        for one in found
    )
