"""A strict fake Slack on 127.0.0.1: its Web API, Socket Mode, and requests to an app, over real HTTP and websockets.

async with serve() as slack:
    client = AsyncWebClient(BOT_TOKEN, base_url=slack.api)
    ...  # AsyncApp(client=client), AsyncSocketModeHandler(app, APP_TOKEN, web_client=...)
    asked = await slack.acts.mention("When was the lighthouse built?")
    await slack.until(lambda: slack.acts.answers(asked))
    print(slack.seen("C1", by="U1"))
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from tests.platforms.slack import limits
from tests.platforms.slack.api import answer
from tests.platforms.slack.clock import Clock, FastClock
from tests.platforms.slack.delivery import Courier
from tests.platforms.slack.rates import Rates
from tests.platforms.slack.request_url import RequestUrl
from tests.platforms.slack.responding import respond
from tests.platforms.slack.socket_mode import Sockets
from tests.platforms.slack.state import FakeSlack, Mode
from tests.platforms.slack.world import APP, SIGNING_SECRET, World, town


@asynccontextmanager
async def serve(
    *, clock: Clock | None = None, mode: Mode = "socket", world: World | None = None, leisure: float = 1
) -> AsyncIterator[FakeSlack]:
    """Serve on a free port until the block is left. In the mode http, set `requests.url` to the app's.

    `leisure`: how many times longer than in Slack an app has to acknowledge and to use a trigger, so that a clock that
    runs fast does not hurry the machine.
    """
    clock = clock or FastClock()
    events = asyncio.Event()
    async with aiohttp.ClientSession() as session:
        ack = limits.ACK_SECONDS * leisure
        sockets, courier = Sockets(clock, events.set, APP, ack), Courier(clock, events.set)
        requests = RequestUrl(clock, session, SIGNING_SECRET, events.set, ack)
        slack = FakeSlack(clock, world or town(clock), sockets, courier, Rates(clock), requests, _changed=events)
        slack.mode, slack.trigger_seconds = mode, limits.TRIGGER_SECONDS * leisure
        courier.transport = sockets if mode == "socket" else requests
        runner = web.AppRunner(_app(slack), access_log=None, shutdown_timeout=1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        slack.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield slack
        finally:
            await courier.close()
            await sockets.close()
            await runner.cleanup()


def _app(slack: FakeSlack) -> web.Application:
    async def call(request: web.Request) -> web.StreamResponse:
        return await answer(slack, request)

    async def hook(request: web.Request) -> web.StreamResponse:
        return await respond(slack, request)

    app = web.Application(client_max_size=10**8)
    app.add_routes([web.route("*", "/api/{method}", call), web.get("/link", slack.sockets.connect)])
    app.add_routes([web.post("/hook/{name}", hook)])
    return app
