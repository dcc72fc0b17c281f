"""Send requests to a server: the only file that imports `openai`, and so imported late."""

import asyncio
import ssl
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from datetime import UTC, datetime
from typing import Any

import anyio
import httpx2
import openai

from pipeline.llm.model_settings import OPENAI_URL, ModelSettings
from pipeline.llm.response_reader import ServerResponse
from pipeline.llm.server_errors import ServerRefusal, TransientError, parse_retry_after, redact_text

_CONNECT_SECONDS = 10.0
_ERROR_BYTES = 65_536
_NO_KEY = "none"


class Transport:
    def __init__(self, settings: ModelSettings) -> None:
        self._settings = settings
        self._headers = {} if settings.secrets else {"Authorization": openai.omit}
        self._client = _build_client(settings)

    @asynccontextmanager
    async def post(self, arguments: Mapping[str, Any]) -> AsyncGenerator[ServerResponse]:
        """Send a request; leaving the context closes its connection, or keeps it where all was read.

        Raises:
            ServerRefusal: The server answered with an error.
            TransientError: It cannot be reached, or broke the connection, before or while it was read.
        """
        chat = self._client.chat.completions.with_streaming_response
        async with AsyncExitStack() as stack:
            with self._plainly():
                sent = chat.create(**arguments, extra_headers=self._headers)
                response = await stack.enter_async_context(sent)
            yield ServerResponse(response.headers.get("content-type", ""), self._chunks(response))

    async def _chunks(self, response: openai.AsyncAPIResponse[Any]) -> AsyncGenerator[bytes]:
        with self._plainly():
            async for chunk in response.iter_bytes():
                yield chunk

    @contextmanager
    def _plainly(self) -> Generator[None]:
        """Raise the faults of a connection as `TransientError`, unless it was cancelled, which shows as one of them."""
        try:
            yield
        except (openai.APIConnectionError, httpx2.RequestError, ssl.SSLError, anyio.EndOfStream) as error:
            if (task := asyncio.current_task()) and task.cancelling():
                raise asyncio.CancelledError from None
            # The error holds the request, and so the key: it must not be chained to what is shown.
            raise _connection_error(error, self._settings) from None

    async def close(self) -> None:
        await self._client.close()


def _connection_error(error: Exception, settings: ModelSettings) -> TransientError:
    cause = error.__cause__ if isinstance(error, openai.APIConnectionError) else error
    if isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout):
        why = redact_text(str(cause), settings.unspoken) or "no answer"
        hint = "check that it runs, and base_url of the model"
        return TransientError(f"the model server at {settings.server} cannot be reached: {why}", hint=hint, taken=False)
    return TransientError(f"the model server at {settings.server} broke the connection", hint="try again later")


def _build_client(settings: ModelSettings) -> openai.AsyncOpenAI:
    timeout = httpx2.Timeout(None, connect=_CONNECT_SECONDS)
    http = openai.DefaultAsyncHttpx2Client(
        timeout=timeout, follow_redirects=False, event_hooks={"response": [_raise_refusal]}
    )
    if settings.api == "azure":
        return openai.AsyncAzureOpenAI(
            azure_endpoint=settings.base_url,
            api_version=settings.api_version,
            api_key=settings.api_key.value or None,
            azure_ad_token=None if settings.api_key else settings.azure_ad_token.value,
            timeout=timeout,
            max_retries=0,
            http_client=http,
        )
    return openai.AsyncOpenAI(
        base_url=settings.base_url or OPENAI_URL,
        api_key=settings.api_key.value or _NO_KEY,
        timeout=timeout,
        max_retries=0,
        http_client=http,
    )


async def _raise_refusal(response: httpx2.Response) -> None:
    """Raise an answer that is none as a `ServerRefusal`, with no more of its body than it takes to understand it."""
    if response.is_success:
        return
    body = bytearray()
    async for chunk in response.aiter_bytes():
        body += chunk
        if len(body) >= _ERROR_BYTES:
            break
    headers = {name.lower(): value for name, value in response.headers.items()}
    raise ServerRefusal(
        response.status_code,
        bytes(body[:_ERROR_BYTES]),
        after=parse_retry_after(headers, datetime.now(UTC)),
        final=headers.get("x-should-retry") == "false",
    )
