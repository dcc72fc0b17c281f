"""A real discord.py client at the fake Discord, for the tests of the fake itself."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import discord
import pytest

from bot.discord.addresses import AddressedClient, AddressedShards, answering_at
from tests.platforms.discord.server import FakeDiscord
from tests.platforms.discord.world import BOT_TOKEN

INTENTS = discord.Intents(guilds=True, guild_messages=True, dm_messages=True, message_content=True)


class _Hasty:
    """What identifies at once: discord.py waits for five seconds, save at the very first time."""

    async def before_identify_hook(self, _: int | None, *, initial: bool = False) -> None: ...


class _Client(_Hasty, AddressedClient): ...


class _Shards(_Hasty, AddressedShards): ...


def client(fake: FakeDiscord, *, shards: int = 0, **options: Any) -> AddressedClient:
    """Return a client that does nothing yet."""
    given = {"intents": INTENTS, "guild_ready_timeout": 0.01, "api_url": fake.api, "gateway_url": fake.gateway.url}
    given |= {"allowed_mentions": discord.AllowedMentions.none(), **options}
    return _Shards(shard_count=shards, **given) if shards else _Client(**given)


@asynccontextmanager
async def connected(
    bot: AddressedClient, fake: FakeDiscord, *, token: str = BOT_TOKEN
) -> AsyncIterator[AddressedClient]:
    """Connect a client within the block."""
    with answering_at(fake.api):
        async with bot:
            running = asyncio.create_task(bot.start(token))
            ready = asyncio.create_task(bot.wait_until_ready())
            await asyncio.wait({running, ready}, return_when=asyncio.FIRST_COMPLETED, timeout=5)
            if running.done():
                ready.cancel()
                await running
            try:
                yield bot
            finally:
                await bot.close()
                await asyncio.wait({running})


async def code(call: Any) -> int:
    """Return the code that Discord refuses a call with."""
    with pytest.raises(discord.HTTPException) as caught:
        await call
    return caught.value.code
