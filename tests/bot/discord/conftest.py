"""A fixture of the tests of Discord's adapter."""

from collections.abc import AsyncIterator

import pytest

from tests.bot.discord.adapter import DiscordAdapter, opened


@pytest.fixture
async def adapter() -> AsyncIterator[DiscordAdapter]:
    async with opened() as made:
        yield made
