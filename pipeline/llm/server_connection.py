"""Send requests to a server, and read its responses within limits of time and size.

This is the only file that imports `openai`. It is imported late, so a process that calls no model never loads it.
`openai` provides addresses and headers; `aiohttp` sends the request and reads the stream. The client of `openai` would
copy each message value by value on the event loop and need several times the processor time for each piece. It also
counts no bytes, and treats a server that only sends keep-alive events as silent.
"""

import asyncio
import json
import math
import re
import ssl
from base64 import b64encode
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import SplitResult, quote, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
import openai

from pipeline.errors import ModelUnavailable
from pipeline.llm.model_reply import find_error
from pipeline.llm.model_settings import OPENAI_URL, ModelSettings
from pipeline.llm.server_errors import ServerRefusal, TransientError, parse_retry_after, redact_text

DONE = b"[DONE]"
_EVENT_FIELDS = (b"data", b"error")
_ENVELOPE_BYTES = 65_536
_JSON_BYTES_A_TOKEN = 64
_EVENT_BYTES_A_TOKEN = 2_048  # a piece of one token comes in an envelope of 200 to 900 bytes
_REST_SECONDS = 0.1
"""How long to wait for the end of a body whose content is complete, so that its connection can be used again."""


@dataclass(frozen=True, slots=True)
class ServerResponse:
    content_type: str
    chunks: AsyncIterator[bytes]


@dataclass(frozen=True, slots=True)
class SilenceLimits:
    clock: Callable[[], float]
    end: float  # deadline of the whole response, on the clock
    first: float  # seconds to the first byte
    idle: float  # seconds from each to the next

    def allowed(self, seconds: float = math.inf) -> float | None:
        """Return how long to wait now, `seconds` at most; None if unlimited."""
        allowed = min(seconds, self.end - self.clock())
        return None if math.isinf(allowed) else max(0.0, allowed)


async def read_payloads(
    response: ServerResponse, *, tokens: int, pace: SilenceLimits, server: str
) -> AsyncGenerator[Any]:
    """Yield the JSON values of a response, whole or in pieces; finally None if the server marks the end.

    Raises `TimeoutError` if the server is silent too long, `TransientError` if the response is cut off, empty or not
    JSON, `ServerRefusal`, and `ModelUnavailable` if it is too long or a web page.
    """
    streamed = not re.search("json|html", response.content_type)  # a server may send whole what was to be streamed
    most = _ENVELOPE_BYTES + tokens * (_EVENT_BYTES_A_TOKEN if streamed else _JSON_BYTES_A_TOKEN)
    limited = _limit(response.chunks, pace, most, server)
    async with aclosing(limited):
        if not streamed:
            yield _parse_json(b"".join([chunk async for chunk in limited]), server)
            yield None
            return
        async with aclosing(split_events(limited)) as events:
            async for data in events:
                if data == DONE:
                    await _drain_rest(limited)
                    yield None
                    return
                yield _parse_json(data, server)


async def _limit(chunks: AsyncIterator[bytes], pace: SilenceLimits, most: int, server: str) -> AsyncGenerator[bytes]:
    read, seconds = 0, pace.first
    while True:
        async with asyncio.timeout(pace.allowed(seconds)):
            try:
                chunk = await anext(chunks)
            except StopAsyncIteration:
                return
        read, seconds = read + len(chunk), pace.idle
        if read > most:
            message = f"the model server at {server} sent more than {most // 1000} kB for one reply"
            raise ModelUnavailable(
                message,
                hint="check that base_url is the address of a model server, and that this server obeys max_tokens",
            )
        yield chunk


async def split_events(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes]:
    """Yield the data of each line of server-sent events as it arrives. Lines end in CR, LF or CRLF."""
    begun: list[bytes] = []
    async for chunk in chunks:
        # CRLF thus ends a line twice; the second line is empty and ignored.
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
        code = error.get("code") if isinstance(error, dict) else None
        status = code if isinstance(code, int) and 400 <= code < 600 else 500  # noqa: PLR2004 - HTTP's statuses of errors
        raise ServerRefusal(status, body)
    return value


def _describe_body(body: bytes) -> str:
    if not body.strip():
        return "an empty reply"
    try:
        body.decode()
    except UnicodeDecodeError as error:
        # A character whose last bytes are missing does not indicate another encoding.
        return "a reply that is cut off" if error.reason == "unexpected end of data" else "a reply that is not UTF-8"
    return "a reply that is cut off" if body.lstrip()[:1] in b"{[" else "a reply that is not JSON"


_CONNECT_SECONDS = 10.0
_KEPT_SECONDS = 5.0  # how long a connection is kept for the next request
_MOST_HEADER_BYTES = 65_536
_ERROR_BYTES = 65_536
_NO_KEY = "none"
_OK = range(200, 300)
_UNREACHED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL, UnicodeError)


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The URL, query and headers of requests, the trusted certificates, and the proxy."""

    url: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    trusted: ssl.SSLContext
    proxy: str | None


def find_server(settings: ModelSettings) -> ServerAddress:
    """Return the server's address as `openai` builds it. Blocks: it reads certificates and inspects the machine."""
    trusted = httpx2.create_ssl_context()
    client = _build_client(settings, httpx2.AsyncClient(verify=trusted))
    auth = client.auth_headers if settings.secrets else {}
    headers = {name: value for name, value in (client.default_headers | auth).items() if isinstance(value, str)}
    url = urlsplit(str(client.base_url).rstrip("/"))
    asker, named, place = url.netloc.rpartition("@")
    if named:
        credentials = b64encode(unquote(asker if ":" in asker else f"{asker}:").encode()).decode()
        headers["Authorization"] = f"Basic {credentials}"
    query = {name: str(value) for name, value in client.default_query.items()}
    return ServerAddress(url._replace(netloc=place).geturl(), query, headers, trusted, _find_proxy(url))


class Transport:
    """Sends requests as `openai` would, with its addresses, headers and certificates, but copies no messages."""

    def __init__(self, settings: ModelSettings, server: ServerAddress) -> None:
        self._settings = settings
        self._server = server
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=server.trusted, keepalive_timeout=_KEPT_SECONDS),
            timeout=aiohttp.ClientTimeout(total=None, connect=_CONNECT_SECONDS),
            headers=server.headers,
            max_line_size=_MOST_HEADER_BYTES,
            max_field_size=_MOST_HEADER_BYTES,
        )

    @asynccontextmanager
    async def post(self, arguments: Mapping[str, Any]) -> AsyncGenerator[ServerResponse]:
        """Send a request; the block reads the response. Raises `ServerRefusal` and `TransientError`."""
        body = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
        url = self._find_url(arguments["model"])
        with self._translate_errors():
            response = await self._http.post(
                url, params=self._server.query, data=body, allow_redirects=False, proxy=self._server.proxy
            )
        try:
            with self._translate_errors():
                await _raise_refusal(response)
            yield ServerResponse(response.headers.get("content-type", ""), self._chunks(response))
        finally:
            response.close()

    def _find_url(self, model: str) -> str:
        place = self._server.url
        if self._settings.api == "azure" and "/deployments" not in place:
            place = f"{place}/deployments/{quote(model, safe='')}"
        return f"{place}/chat/completions"

    async def _chunks(self, response: aiohttp.ClientResponse) -> AsyncGenerator[bytes]:
        with self._translate_errors():
            async for chunk in response.content.iter_any():
                yield chunk

    @contextmanager
    def _translate_errors(self) -> Generator[None]:
        """Raise the faults of a connection as `TransientError`."""
        try:
            yield
        except (aiohttp.ClientError, OSError, UnicodeError) as error:
            # The error may contain the request, and so the key: it must not be chained to the error that is shown.
            raise self._explain(error) from None

    def _explain(self, error: Exception) -> TransientError:
        server = f"the model server at {self._settings.server}"
        refusal = f"the proxy says {error.message}" if isinstance(error, aiohttp.ClientHttpProxyError) else ""
        if refusal or isinstance(error, _UNREACHED):
            why = redact_text(refusal or str(error), self._settings.unspoken) or "no answer"
            hint = "check that it runs, and base_url of the model"
            return TransientError(f"{server} cannot be reached: {why}", hint=hint, taken=False)
        return TransientError(f"{server} broke the connection", hint="try again later")

    async def close(self) -> None:
        await self._http.close()


def _find_proxy(address: SplitResult) -> str | None:
    """Return the proxy that the environment names for an address: HTTPS_PROXY, HTTP_PROXY, ALL_PROXY, NO_PROXY."""
    named = getproxies()
    proxy = named.get(address.scheme) or named.get("all")
    return None if not proxy or proxy_bypass(address.hostname or "") else proxy


def _build_client(settings: ModelSettings, http: httpx2.AsyncClient) -> openai.AsyncOpenAI:
    """Return a client that holds the server's address and credentials; it sends nothing."""
    if settings.api == "azure":
        return openai.AsyncAzureOpenAI(
            azure_endpoint=settings.base_url,
            api_version=settings.api_version,
            api_key=settings.api_key.value or None,
            azure_ad_token=None if settings.api_key else settings.azure_ad_token.value,
            http_client=http,
        )
    address, key = settings.base_url or OPENAI_URL, settings.api_key.value or _NO_KEY
    return openai.AsyncOpenAI(base_url=address, api_key=key, http_client=http)


async def _raise_refusal(response: aiohttp.ClientResponse) -> None:
    """Raise `ServerRefusal` for an error status, with as much of its body as is needed to interpret it."""
    if response.status in _OK:
        return
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) >= _ERROR_BYTES:
            break
    headers = {name.lower(): value for name, value in response.headers.items()}
    raise ServerRefusal(
        response.status,
        bytes(body[:_ERROR_BYTES]),
        after=parse_retry_after(headers, datetime.now(UTC)),
        final=headers.get("x-should-retry") == "false",
    )
