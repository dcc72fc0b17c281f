"""What people do in Discord and what they see then, through the real discord.py."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.platforms.discord.talking import Talk, talking
from tests.platforms.world import ANSWERS, BUILT, MADE, RISES

ANSWERED = ""


@pytest.fixture
async def talk(filled: Path, tmp_path: Path) -> AsyncIterator[Talk]:
    async with talking(tmp_path / "home", filled) as opened:
        yield opened


async def test_a_mention_is_answered_once(talk: Talk) -> None:
    """It arrives five times over; previews of links are left alone."""
    await talk.start()
    asked = await talk.acts.mention(BUILT)
    for _ in range(4):
        await talk.acts.again(asked)
    seen = await talk.until(ANSWERS[BUILT])
    print(seen)
    assert len(talk.system.asked) == 1
    assert talk.discord.pings == talk.discord.refused == talk.discord.limited == []
