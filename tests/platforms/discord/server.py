"""A strict fake Discord on 127.0.0.1: its API v10 and its gateway, over real HTTP and websockets.

async with serve() as discord:
    client = AddressedShards(intents=..., api_url=discord.api, gateway_url=discord.gateway.url)
    ...  # async with client: await client.start(BOT_TOKEN)
    asked = await discord.acts.mention("When was the lighthouse built?")
    await discord.until(lambda: discord.acts.answers(asked))
    print(discord.seen("201", by="101"))
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tests.platforms.discord import limits
from tests.platforms.discord.api import answering, unknown
from tests.platforms.discord.gateway import Gateway
from tests.platforms.discord.methods import ROUTES
from tests.platforms.discord.rates import Rates
from tests.platforms.discord.state import FakeDiscord
from tests.platforms.discord.town import town
from tests.platforms.discord.world import World
from tests.platforms.slack.clock import Clock, FastClock


@asynccontextmanager
async def serve(
    *, clock: Clock | None = None, world: World | None = None, leisure: float = 1, pace: float = 1
) -> AsyncIterator[FakeDiscord]:
    """Serve on a free port until the block is left.

    `leisure`: how many times longer than in Discord an interaction waits for its answer, so that a clock that runs fast
    does not hurry the machine. `pace`: how many of the clock's seconds pass in one of the client's, which is told in
    its own how long to wait; a client that waits by the server's clock has the same ones.
    """
    clock = clock or FastClock()
    events = asyncio.Event()
    world = world or town(clock)
    rates = Rates(clock, pace)
    discord = FakeDiscord(clock, world, Gateway(clock, world, events.set), rates, _changed=events)
    discord.ack_seconds = limits.ACK_SECONDS * leisure
    runner = web.AppRunner(_app(discord), access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    discord.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    discord.gateway.url = discord.url.replace("http", "ws")
    try:
        yield discord
    finally:
        await discord.gateway.close()
        await runner.cleanup()


def _app(discord: FakeDiscord) -> web.Application:
    app = web.Application(client_max_size=10**8)
    app.add_routes([web.get(path, discord.gateway.connect) for path in ("/", "/resume", "/resume/")])
    for route in ROUTES:
        app.router.add_route(route.verb, f"/api/v10{route.path}", answering(discord, route))
    app.router.add_route("*", "/{rest:.*}", unknown)
    return app
