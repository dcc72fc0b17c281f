"""A service with scripted answers, served over MCP, and the official client."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

from bot.access import Asker
from bot.server.http_server import build_http_app, serve_http
from bot.server.mcp.mcp_server import PATH, open_mcp_route
from bot.server.mcp.tool_calls import ToolService
from bot.server.monitoring.server_log import build_redactor
from bot.settings.tables.network_settings import HttpSettings, format_token_line
from bot.settings.tables.settings_tables import Settings
from bot.types import TurnRequest, TurnResult
from pipeline.types import Event, PassagesFound, SearchStarted
from storage.types import CorpusInfo, Hit
from tests.bot.fake_services import DAY, answered, hit

ANNA, BOB, EVE = "anna-" * 8, "bob--" * 8, "eve--" * 8
ERAS = ("legacy", "2026-07-28")
SETTINGS = Settings.model_validate({
    "mcp": {
        "enabled": True,
        "tokens": [
            format_token_line("anna", ("editors",), ANNA),
            format_token_line("bob", (), BOB),
        ]
    },
    "corpus": [
        {"name": "handbook", "visible_to": ["mcp:groups/editors"]},
        {"name": "salaries", "visible_to": ["*", "slack:T1/C1"]},
        {"name": "minutes", "visible_to": ["mcp:tokens/bob"]},
    ],
})  # fmt: skip


@dataclass
class Library:
    """A service that answers once `open` is set."""

    result: TurnResult | Exception = field(default_factory=answered)
    hits: tuple[Hit, ...] = field(default_factory=lambda: (hit(),))
    open: asyncio.Event = field(default_factory=asyncio.Event)
    asked: list[TurnRequest] = field(default_factory=list)
    searched: list[tuple[str, tuple[str, ...], int]] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, asked: TurnRequest, report: Callable[[Event], None]) -> TurnResult:
        self.asked.append(asked)
        report(SearchStarted(asked.text))
        report(PassagesFound(asked.text, (hit(),)))
        self.begun.set()
        try:
            await self.open.wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0)  # as a turn does to close its record
            self.stopped.set()
            raise
        if isinstance(self.result, Exception):
            raise self.result
        return self.result

    check = answer

    async def search(self, query: str, corpora: Sequence[str], count: int) -> tuple[Hit, ...]:
        self.searched.append((query, tuple(corpora), count))
        return self.hits[:count]

    async def corpora(self) -> tuple[CorpusInfo, ...]:
        return tuple(CorpusInfo(corpus.name, 3, 12, DAY) for corpus in SETTINGS.corpus)

    def lend(self, _: Asker) -> AbstractAsyncContextManager[ToolService]:
        return nullcontext(self)


@asynccontextmanager
async def served(
    library: Library,
    lend: Callable[[Asker], AbstractAsyncContextManager[ToolService]] | None = None,
    hurried: asyncio.Event | None = None,
) -> AsyncIterator[str]:
    """Serve a library over HTTP as `footnote serve` does, and yield the address."""
    async with open_mcp_route(lend or library.lend, lambda: SETTINGS) as route:
        app = build_http_app({}, build_redactor(()), (route,))
        async with serve_http(HttpSettings(port=0), app, hurried) as address:
            yield address + PATH


@asynccontextmanager
async def connected(address: str, token: str, era: str = ERAS[1]) -> AsyncIterator[Client]:
    """Yield the official client, connected with a token."""
    headers = {"Authorization": f"Bearer {token}"}
    async with (
        create_mcp_http_client(headers=headers) as http,
        Client(streamable_http_client(address, http_client=http), mode=era) as client,
    ):
        yield client


async def call(client: Client, tool: str, **given: Any) -> tuple[str, Any]:
    """Call a tool that succeeds; return its text and its structured result, which the client validates."""
    done = await client.call_tool(tool, given)
    assert not done.is_error, done.content
    return done.content[0].text, done.structured_content
