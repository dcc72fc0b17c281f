"""The simulated server: takes connections, keeps the pace, fails as told, and counts.

Clock and sleep are arguments, so that a test needs no time.
"""

import asyncio
import math
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, replace
from random import Random
from typing import Any

from evaluation.speed.model import protocol
from evaluation.speed.model.counting import flat, tokens
from evaluation.speed.model.pacing import Pacer
from evaluation.speed.model.prefixes import Prefixes
from evaluation.speed.model.protocol import Refused, Written
from evaluation.speed.model.replying import reply_to
from evaluation.speed.model.settings import Simulated

_LENGTH = re.compile(rb"^content-length: *(\d+)", re.IGNORECASE | re.MULTILINE)
_NAMES = [{"id": "simulated", "object": "model"}]


@dataclass(frozen=True, slots=True)
class Counts:
    """What a server has counted so far."""

    requests: int = 0
    busy: int = 0
    """Requests being answered now."""
    busiest: int = 0
    left: int = 0
    """Requests whose client left before the answer."""
    refused: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    tokens: int = 0
    """Sent, of all replies."""


class ModelServer:
    """The server within this process: `serve` is what takes a connection."""

    def __init__(
        self,
        simulated: Simulated,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Take what is simulated, and what tells seconds and waits for them."""
        self.counts = Counts()
        self._simulated = simulated
        self._clock = clock
        self._sleep = sleep
        self._pacer = Pacer(simulated.pace)
        self._prefixes = Prefixes()
        self._chance = Random(simulated.seed)
        places = simulated.pace.concurrency
        self._places = asyncio.Semaphore(places) if places else None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection, one after the other."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = _LENGTH.search(head)
                body = await reader.readexactly(int(length[1]) if length else 0)
                if not await self._respond(head.split(b" ", 2), body, writer):
                    return
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            return  # nobody waits for a connection's task, and what cancels it is the server's end
        finally:
            writer.close()

    async def _respond(self, head: list[bytes], body: bytes, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; return whether the connection can be used again."""
        method, path = head[0], head[1].split(b"?")[0]
        if method == b"GET":
            found = {b"/counts": asdict(self.counts), b"/v1/models": {"object": "list", "data": _NAMES}}.get(path)
            writer.write(protocol.response(200, found) if found else protocol.refusal(Refused(404, "Not Found")))
        elif not path.endswith(b"/chat/completions"):
            writer.write(protocol.refusal(Refused(404, "Not Found")))
        else:
            asked = protocol.asked_by(body)
            refused = asked if isinstance(asked, Refused) else self._fault()
            if refused or isinstance(asked, Refused):
                self._count(refused=1)
                writer.write(protocol.refusal(refused or Refused(500, "")))
            else:
                return await self._counted(asked, writer)
        await writer.drain()
        return True

    def _fault(self) -> Refused | None:
        drawn, faults = self._chance.random(), self._simulated.faults
        if drawn < faults.busy:
            return Refused(429, "Rate limit reached. Please try again in 1s.")
        if drawn < faults.busy + faults.broken:
            return Refused(500, "The server had an error while processing your request.")
        return None

    async def _counted(self, asked: Mapping[str, Any], writer: asyncio.StreamWriter) -> bool:
        self._count(requests=1, busy=1)
        self.counts = replace(self.counts, busiest=max(self.counts.busiest, self.counts.busy))
        try:
            async with AsyncExitStack() as stack:
                if self._places:
                    await stack.enter_async_context(self._places)
                return await self._answer(asked, writer)
        except ConnectionError:
            self._count(left=1)
            raise
        finally:
            self._count(busy=-1)

    async def _answer(self, asked: Mapping[str, Any], writer: asyncio.StreamWriter) -> bool:
        prompt = flat(asked["messages"])
        size, reply = tokens(prompt), reply_to(asked, self._simulated)
        cached = min(self._prefixes.read(prompt), size) if self._simulated.pace.cache else 0
        pieces = tuple(reply.pieces())
        whole = len(pieces) <= protocol.most_tokens(asked)
        pieces = pieces[: protocol.most_tokens(asked)]
        finish = "stop" if whole else "length"
        written = Written(asked["model"], "".join(pieces), size, cached, len(pieces), finish)
        self._count(prompt_tokens=size, cached_tokens=cached)
        begins = self._pacer.begins(size, cached, self._clock())
        await self._until(begins)
        sent = self._pacer.ends(len(pieces), begins)
        if asked.get("stream"):
            return await self._stream(asked, pieces, sent, written, writer)
        await self._write(sent)
        writer.write(protocol.completion(written))
        await writer.drain()
        return True

    async def _write(self, sent: Iterator[float]) -> None:
        """Wait for all tokens of a reply that is sent whole: one by one where replies share a rate, else at once."""
        steps = sent if math.isfinite(self._simulated.pace.total_out) else [tuple(sent)]
        for step in steps:
            dues = step if isinstance(step, tuple) else (step,)
            await self._until(dues[-1])
            self._count(tokens=len(dues))

    async def _stream(
        self,
        asked: Mapping[str, Any],
        pieces: tuple[str, ...],
        sent: Iterator[float],
        written: Written,
        writer: asyncio.StreamWriter,
    ) -> bool:
        cut = len(pieces) // 2 if self._chance.random() < self._simulated.faults.cut else len(pieces)
        writer.write(protocol.STREAM_HEAD)
        for place, (piece, due) in enumerate(zip(pieces, sent, strict=True)):
            if place >= cut:
                return False
            await self._until(due)
            writer.write(protocol.event(written.model, piece, first=not place))
            await writer.drain()
            self._count(tokens=1)
        wanted = bool((asked.get("stream_options") or {}).get("include_usage"))
        writer.write(protocol.ending(written, usage=wanted))
        await writer.drain()
        return True

    async def _until(self, due: float) -> None:
        left = due - self._clock()
        if left > 0:
            await self._sleep(left)

    def _count(self, **more: int) -> None:
        self.counts = replace(self.counts, **{name: getattr(self.counts, name) + by for name, by in more.items()})
