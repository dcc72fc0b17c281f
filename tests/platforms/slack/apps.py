"""A real slack_bolt app at the fake Slack, over either transport, for the tests of the fake itself."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.adapter.starlette.async_handler import AsyncSlackRequestHandler
from slack_bolt.async_app import AsyncApp
from slack_sdk.errors import SlackApiError
from slack_sdk.web.async_client import AsyncWebClient
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.platforms.slack.server import FakeSlack
from tests.platforms.slack.state import APP_TOKEN, BOT_TOKEN, SIGNING_SECRET


def client(slack: FakeSlack, token: str = BOT_TOKEN) -> AsyncWebClient:
    """Return Slack's own client, which retries nothing."""
    return AsyncWebClient(token, base_url=slack.api, retry_handlers=[])


def bolt(slack: FakeSlack) -> AsyncApp:
    """Return an app that does nothing yet."""
    logger = logging.getLogger("fake-slack-test")
    logger.setLevel(logging.CRITICAL)
    return AsyncApp(client=client(slack), signing_secret=SIGNING_SECRET, logger=logger)


@asynccontextmanager
async def over_socket(app: AsyncApp, slack: FakeSlack) -> AsyncIterator[AsyncSocketModeHandler]:
    """Connect an app by Socket Mode within the block."""
    handler = AsyncSocketModeHandler(app, APP_TOKEN, web_client=client(slack, APP_TOKEN), ping_interval=0.05)
    await handler.connect_async()
    await slack.until(lambda: slack.sockets.links)
    try:
        yield handler
    finally:
        await handler.close_async()


@asynccontextmanager
async def over_http(app: AsyncApp, slack: FakeSlack) -> AsyncIterator[None]:
    """Let an app listen at a request URL within the block."""
    handler = AsyncSlackRequestHandler(app)

    async def events(request: Request) -> Response:
        return await handler.handle(request)

    web = Starlette(routes=[Route("/slack/events", events, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(web, port=0, log_level="critical", lifespan="off"))
    serving = asyncio.create_task(server._serve())
    while not server.started:  # noqa: ASYNC110  it has no event for it
        await asyncio.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    slack.requests.url = f"http://127.0.0.1:{port}/slack/events"
    try:
        yield
    finally:
        server.should_exit = True
        await serving


def button(action_id: str = "footnote:evidence", text: str = "Evidence", **more: Any) -> dict[str, Any]:
    """Return a row with one button."""
    shown = {"type": "plain_text", "text": text}
    return {"type": "actions", "elements": [{"type": "button", "text": shown, "action_id": action_id, **more}]}


def section(text: str) -> dict[str, Any]:
    """Return a section of mrkdwn."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


def view(*blocks: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return a modal."""
    return {"type": "modal", "title": {"type": "plain_text", "text": "Evidence"}, "blocks": list(blocks), **more}


async def error(call: Any) -> str:
    """Return the error that Slack refuses a call with."""
    with pytest.raises(SlackApiError) as caught:
        await call
    return str(caught.value.response["error"])
