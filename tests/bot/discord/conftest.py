"""What the tests of Discord's outgoing half share."""

from collections.abc import AsyncIterator

import pytest

from tests.bot.discord.stall import Stall, opened


@pytest.fixture
async def stall() -> AsyncIterator[Stall]:
    async with opened() as made:
        yield made
