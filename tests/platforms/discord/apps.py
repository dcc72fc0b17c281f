"""A real discord.py client at the fake Discord, for the tests of the fake itself."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import discord
import pytest
from discord.http import Route
from discord.webhook.async_ import AsyncWebhookAdapter, async_context

from bot.platforms.discord.transport import RedirectedShards, redirect_library
from tests.platforms.discord.server import FakeDiscord
from tests.platforms.discord.state import BOT_TOKEN

INTENTS = discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True)


class Client(RedirectedShards):
    """A client that identifies at once: discord.py waits for five seconds, save at the very first time."""

    async def before_identify_hook(self, _: int | None, *, initial: bool = False) -> None: ...


class _Answers(AsyncWebhookAdapter):
    """What discord.py answers interactions with, which goes round its HTTP client."""

    def __init__(self, api_url: str) -> None:
        super().__init__()
        self._api_url = api_url

    async def request(self, route: Route, session: Any, **options: Any) -> Any:
        return await super().request(redirect_library(route, self._api_url), session, **options)


@contextmanager
def _answering(fake: FakeDiscord) -> Iterator[None]:
    token = async_context.set(_Answers(fake.api))
    try:
        yield
    finally:
        async_context.reset(token)


def client(fake: FakeDiscord, *, shards: int = 1, **options: Any) -> Client:
    """Return a client that does nothing yet."""
    given = {"intents": INTENTS, "guild_ready_timeout": 0.01, "api_url": fake.api, "gateway_url": fake.gateway.url}
    given |= {"allowed_mentions": discord.AllowedMentions.none(), "shard_count": shards, **options}
    return Client(**given)


@asynccontextmanager
async def connected(bot: Client, fake: FakeDiscord, *, token: str = BOT_TOKEN) -> AsyncIterator[Client]:
    """Connect a client within the block."""
    with _answering(fake):
        async with bot:
            running = asyncio.create_task(bot.start(token))
            ready = asyncio.create_task(bot.wait_until_ready())
            await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED, timeout=60)
            if running.done():
                ready.cancel()
                await running
            try:
                yield bot
            finally:
                await bot.close()
                await asyncio.wait({running})
                await bot.close()


async def code(call: Any) -> int:
    """Return the code that Discord refuses a call with."""
    with pytest.raises(discord.HTTPException) as caught:
        await call
    return caught.value.code
