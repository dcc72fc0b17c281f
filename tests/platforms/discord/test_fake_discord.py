"""The fake Discord itself, with discord.py in between: what people do reaches a client, and what it writes is seen."""

from collections.abc import AsyncIterator

import discord as sdk
import pytest

from tests.platforms.discord.apps import client, connected
from tests.platforms.discord.server import FakeDiscord, serve
from tests.platforms.slack.clock import ManualClock


@pytest.fixture
async def discord() -> AsyncIterator[FakeDiscord]:
    async with serve(clock=ManualClock(), pace=100) as fake:
        yield fake
        assert fake.errors == []


async def test_a_mention_is_answered_by_a_reply(discord: FakeDiscord) -> None:
    """People see question and answer as a conversation; nobody is pinged."""
    bot = client(discord)

    @bot.event
    async def on_message(message: sdk.Message) -> None:
        if message.author.id != bot.application_id and not message.author.bot:
            view = sdk.ui.LayoutView()
            view.add_item(
                sdk.ui.TextDisplay("It was built in 1887. [\\[1\\] Lighthouse](<https://skarholm.example/l>)")
            )
            await message.reply(view=view, nonce=7)

    async with connected(bot, discord):
        asked = await discord.acts.mention("When was it built?", user="102")
        await discord.until(lambda: discord.acts.answers(asked))

    assert discord.seen("201", by="101") == (
        "#general\n"
        "Ben: @Footnote When was it built?\n"
        "Footnote, to Ben: It was built in 1887. [1] Lighthouse <https://skarholm.example/l>"
    )
    assert discord.notified == []
    assert discord.links == ["https://skarholm.example/l"]
