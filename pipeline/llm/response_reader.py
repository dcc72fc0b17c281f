"""Read a server's response as it arrives: no longer than allowed, no slower, no more of it."""

import asyncio
import json
import math
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from pipeline.errors import ModelUnavailable
from pipeline.llm.model_reply import find_error
from pipeline.llm.server_errors import ServerRefusal, TransientError

DONE = b"[DONE]"
_EVENT_FIELDS = (b"data", b"error")
_ENVELOPE_BYTES = 65_536
_JSON_BYTES_A_TOKEN = 64
_EVENT_BYTES_A_TOKEN = 2_048
"""A piece of one token comes in an envelope of 200 to 900 bytes."""
_REST_SECONDS = 0.1
"""How long to wait for the end of a body whose content is complete, so that its connection can be used again."""


@dataclass(frozen=True, slots=True)
class ServerResponse:
    content_type: str
    chunks: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class SilenceLimits:
    clock: Callable[[], float]
    end: float
    """When all must be there, on the clock."""
    first: float
    """Seconds to the first byte."""
    idle: float
    """Seconds from each to the next."""

    def allowed(self, seconds: float = math.inf) -> float | None:
        """Return how long to wait now, `seconds` at most; None without an end."""
        allowed = min(seconds, self.end - self.clock())
        return None if math.isinf(allowed) else max(0.0, allowed)


async def read_payloads(
    response: ServerResponse, *, streamed: bool, tokens: int, pace: SilenceLimits, server: str
) -> AsyncGenerator[Any]:
    """Yield the JSON values of an answer: a whole reply, or its pieces; last None, if the server says that it is all.

    Args:
        response: The answer.
        streamed: Whether a stream was asked for; the server may answer otherwise.
        tokens: How long the reply may be.
        pace: How long the server may be silent.
        server: What to call it in an error.

    Raises:
        TimeoutError: The server was silent for longer than its pace allows.
        TransientError: What came is cut off, empty, or no JSON.
        ServerRefusal: It is an error after all.
        ModelUnavailable: It is too long, or a web page.
    """
    streamed = _is_event_stream(response.content_type, wanted=streamed)
    most = _ENVELOPE_BYTES + tokens * (_EVENT_BYTES_A_TOKEN if streamed else _JSON_BYTES_A_TOKEN)
    limited = _limit_bytes(_limit_silence(response.chunks, pace), most, server)
    async with aclosing(limited), aclosing(_read_events(limited) if streamed else _read_whole(limited)) as values:
        async for value in values:
            if value != DONE:
                yield _parse_json(value, server)
                continue
            yield None
            return


def _is_event_stream(content_type: str, *, wanted: bool) -> bool:
    known = content_type.startswith("text/event-stream")
    return known or (wanted and not re.search("json|html", content_type))


async def _limit_silence(chunks: AsyncIterator[bytes], pace: SilenceLimits) -> AsyncGenerator[bytes]:
    seconds = pace.first
    while True:
        async with asyncio.timeout(pace.allowed(seconds)):
            try:
                chunk = await anext(chunks)
            except StopAsyncIteration:
                return
        yield chunk
        seconds = pace.idle


async def _limit_bytes(chunks: AsyncGenerator[bytes], most: int, server: str) -> AsyncGenerator[bytes]:
    read = 0
    async with aclosing(chunks):
        async for chunk in chunks:
            read += len(chunk)
            if read > most:
                message = f"the model server at {server} sent more than {most // 1000} kB for one reply"
                raise ModelUnavailable(message, hint="check that base_url is a model server, and the model's limits")
            yield chunk


async def _read_whole(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    yield b"".join([chunk async for chunk in chunks])
    yield DONE


async def _read_events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    async for data in split_events(chunks):
        if data == DONE:
            await _drain_rest(chunks)
        yield data


async def split_events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the data of each line of server-sent events as it arrives. Lines end in CR, LF or CRLF."""
    begun: list[bytes] = []
    async for chunk in chunks:
        # CRLF so ends a line twice, of which the second is empty and says nothing.
        *ends, rest = chunk.replace(b"\r", b"\n").split(b"\n")
        for end in ends:
            line, begun = b"".join((*begun, end)), []
            if data := _parse_event_line(line):
                yield data
        begun.append(rest)
    if data := _parse_event_line(b"".join(begun)):
        yield data


def _parse_event_line(line: bytes) -> bytes:
    name, _, value = line.partition(b":")
    return value.strip() if name in _EVENT_FIELDS else b""


async def _drain_rest(chunks: AsyncIterator[bytes]) -> None:
    try:
        async with asyncio.timeout(_REST_SECONDS):
            async for _ in chunks:
                pass
    except (TimeoutError, TransientError, ModelUnavailable):
        return


def _parse_json(body: bytes, server: str) -> Any:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        if body.lstrip().startswith(b"<"):
            hint = "check base_url of the model, which often ends in /v1"
            raise ModelUnavailable(f"the model server at {server} sent a web page, not a reply", hint=hint) from None
        hint = "try again later, and check base_url of the model if it stays so"
        raise TransientError(f"the model server at {server} sent {_describe_body(body)}", hint=hint) from None
    if (error := find_error(value)) is not None:
        raise ServerRefusal(_error_status(error), body)
    return value


def _describe_body(body: bytes) -> str:
    if not body.strip():
        return "an empty reply"
    try:
        body.decode()
    except UnicodeDecodeError as error:
        # A character whose last bytes are missing is no sign of another encoding.
        return "a reply that is cut off" if error.reason == "unexpected end of data" else "a reply that is not UTF-8"
    return "a reply that is cut off" if body.lstrip()[:1] in b"{[" else "a reply that is not JSON"


def _error_status(error: Any) -> int:
    """Return the status that an error names, else that of a fault of the server."""
    code = error.get("code") if isinstance(error, dict) else None
    return code if isinstance(code, int) and 400 <= code < 600 else 500  # noqa: PLR2004 - HTTP's statuses of errors
