"""A fixture of the tests of Slack's adapter."""

from collections.abc import AsyncIterator

import pytest

from tests.bot.slack.adapter import SlackAdapter, opened


@pytest.fixture
async def adapter() -> AsyncIterator[SlackAdapter]:
    async with opened() as made:
        yield made
