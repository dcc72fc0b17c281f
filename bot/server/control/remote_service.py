"""Use the server that has the home open: `BotService` by calls over its control socket."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx

from bot import read_version
from bot.server.control import control_protocol as protocol
from bot.server.refresh.document_lookup import ForgottenDocument
from bot.settings.live.live_settings import ReloadReport
from bot.settings.tables.settings_tables import DenseChoice
from bot.settings.tables.source_settings import SourceSettings
from bot.types import Failure, TurnRequest, TurnResult
from ingest.types import EngineName, RefreshProgress, RefreshReport
from pipeline.types import Event
from storage.types import CorpusInfo, Hit

T = TypeVar("T")

HANDSHAKE_SECONDS = 5.0  # a server that takes longer to answer the first request counts as not running
_CONNECT = httpx.Timeout(None, connect=HANDSHAKE_SECONDS)


class RemoteError(Exception):
    """An error of the server, or of the connection to it."""

    def __init__(self, message: str, *, kind: str, hint: str = "") -> None:
        super().__init__(message)
        self.kind = kind
        self.hint = hint


class VersionMismatch(RemoteError):
    def __init__(self, server: protocol.ServerHello) -> None:
        own, theirs = read_version(), server.version
        theirs = theirs if theirs != own else "another build of the same version"
        super().__init__(
            f"The running server (process {server.pid}) has another version: {theirs}; this command has {own}.",
            kind="other_version",
            hint="Restart `footnote serve`, then run the command again.",
        )


class ServerGone(RemoteError):
    def __init__(self) -> None:
        super().__init__(
            "The server stopped before the command was done.",
            kind="server_gone",
            hint="Start `footnote serve` again, or run the command again without it.",
        )


@dataclass(frozen=True, slots=True)
class RemoteService:
    """The service of a running server. A cancelled method closes the connection, and the server stops the work."""

    client: httpx.AsyncClient

    async def answer(self, asked: TurnRequest, report: Callable[[Event], None]) -> TurnResult:
        return await self._asked("/answer", asked, TurnResult, report)

    async def check(self, asked: TurnRequest, report: Callable[[Event], None]) -> TurnResult:
        return await self._asked("/check", asked, TurnResult, report)

    async def search(self, query: str, corpora: Sequence[str], count: int) -> tuple[Hit, ...]:
        message = protocol.SearchRequest(query, tuple(corpora), count)
        return (await self._asked("/search", message, protocol.HitList)).hits

    async def corpora(self) -> tuple[CorpusInfo, ...]:
        return (await self._asked("/corpora", None, protocol.CorpusList)).corpora

    async def refresh(
        self,
        corpus: str,
        source: SourceSettings,
        report: Callable[[RefreshProgress], None],
        *,
        confirm_removal: bool = False,
        restore: bool = False,
        engine: EngineName | None = None,
        dense: DenseChoice | None = None,
    ) -> RefreshReport:
        """Refresh a corpus; the server reads its source's paths and secrets."""
        message = protocol.RefreshRequest(corpus, source, confirm_removal, engine, restore, dense)
        return await self._asked("/refresh", message, RefreshReport, report)

    async def reload(self) -> ReloadReport:
        return await self._asked("/reload", None, ReloadReport)

    async def read_one(self, address: str, sources: Mapping[str, SourceSettings]) -> tuple[RefreshReport, ...]:
        message = protocol.ReadOneRequest(address, dict(sources))
        return (await self._asked("/read_one", message, protocol.ReportList)).reports

    async def remove(self, corpus: str) -> RefreshReport:
        return await self._asked("/remove", protocol.RemoveRequest(corpus), RefreshReport)

    async def forget(self, address: str, corpus: str) -> ForgottenDocument:
        return await self._asked("/forget", protocol.ForgetRequest(address, corpus), ForgottenDocument)

    async def _asked(
        self, path: str, wanted: object, kind: type[T], report: Callable[[Any], None] = lambda _: None
    ) -> T:
        """Return the server's result of type `kind`; `report` receives the events before it. Raises `RemoteError`."""
        body = protocol.encode_message(wanted) if wanted is not None else b""
        try:
            async with self.client.stream("POST", path, content=body) as response:
                if response.is_error:
                    raise RemoteError(f"The server refused the request: {response.reason_phrase}.", kind="refused")
                async for line in response.aiter_lines():
                    value = protocol.decode_message(line)
                    if isinstance(value, kind):
                        return value
                    if isinstance(value, Failure):
                        raise RemoteError(value.message, kind=value.kind, hint=value.hint)
                    report(value)
        except (httpx.TransportError, protocol.MalformedMessage) as error:
            raise ServerGone from error
        raise ServerGone


@asynccontextmanager
async def open_remote_service(socket: Path) -> AsyncIterator[RemoteService | None]:
    """Connect to the server at a socket; yield None if none answers. Raises `VersionMismatch`."""
    # A new connection for each request: an idle one might have been closed while the user was thinking.
    transport = httpx.AsyncHTTPTransport(uds=str(socket), limits=httpx.Limits(max_keepalive_connections=0))
    async with httpx.AsyncClient(transport=transport, base_url="http://footnote", timeout=_CONNECT) as client:
        hello = await _shake_hands(client)
        if hello and hello.digest != protocol.hash_protocol():
            raise VersionMismatch(hello)
        yield RemoteService(client) if hello else None


async def _shake_hands(client: httpx.AsyncClient) -> protocol.ServerHello | None:
    try:
        reply = await client.get("/hello", timeout=HANDSHAKE_SECONDS)
        hello = protocol.decode_message(reply.content)
    except (httpx.TransportError, protocol.MalformedMessage):
        return None
    return hello if isinstance(hello, protocol.ServerHello) else None
