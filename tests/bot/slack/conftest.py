"""What the tests of Slack's outgoing half share."""

from collections.abc import AsyncIterator

import pytest

from tests.bot.slack.shop import Shop, opened


@pytest.fixture
async def shop() -> AsyncIterator[Shop]:
    async with opened() as made:
        yield made
