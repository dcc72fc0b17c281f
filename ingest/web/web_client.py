"""Read from web servers without burdening them: one request at a time, pauses between requests, and limited retries.

Every source reads the web through `WebClient`. A failure is a `SourceUnavailable`, whose text is one line.
"""

import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from socket import SHUT_RDWR
from typing import Any, Self, TypeVar

import httpx

from ingest.types import EMPTY, ReadingStopped, SourceUnavailable
from ingest.web.download import DownloadRequest, IncomingResponse, download_file
from ingest.web.http_reply import (
    RETRY_HINT,
    RetryableWebError,
    describe_transport_error,
    format_url,
    is_same_site,
    make_access_denied,
    parse_number,
    parse_retry_after,
    read_content,
    retry,
)
from storage.language.lazy_pattern import lazy_compile

T = TypeVar("T")
QueryParams = Mapping[str, str | int]
FormData = Mapping[str, str]
MayFollow = Callable[[str], bool]
Auth = httpx.Auth | tuple[str, str]

MIN_BYTES_PER_SECOND = 1024  # average of a response; if it is slower, the connection is closed and the request retried
_LONGEST_BACKOFF = 30.0
_REDIRECTS = 5
_CONNECTING = 15.0
_SHORT_REPLY = 64 << 10
_DENIED = frozenset({httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN})
_HOST_NAME = lazy_compile(r"[^\s%/\[\]@]+")


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """How requests are made to a server. Times are in seconds, sizes in bytes."""

    agent: str  # the User-Agent, with an address of the operator
    gap: float = 0.1  # between the end of a request and the next
    tries: int = 5  # attempts in total
    longest_wait: float = 120.0  # seconds; if a server asks for more, the request fails at once
    seconds: float = 60.0  # longest wait for any data
    largest: int = 64 << 20  # of one unpacked response; downloads have no limit


@dataclass(frozen=True, slots=True)
class WebResponse:
    status: int
    url: str  # after redirects
    headers: Mapping[str, str]  # case-insensitive
    content: bytes


class WebClient:
    """An HTTP client. One thread uses it; another may call `stop`.

    Within a `with` block, requests share a connection. Outside of a block, each request has its own.
    """

    def __init__(
        self,
        policy: RequestPolicy,
        *,
        headers: Mapping[str, str] = EMPTY,
        auth: Auth | None = None,
        credential: str = "",
        transport: httpx.BaseTransport | None = None,
        wait: Callable[[float], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set up the client.

        `headers` and `auth` are sent only to the requested host, never to another after a redirect. `credential` is the
        name of these secrets in messages, such as `CONFLUENCE_TOKEN`. `wait` waits for some seconds, and returns
        whether to stop.
        """
        self._policy, self._headers, self._auth, self._credential = policy, headers, auth, credential
        self._transport, self._clock = transport, clock
        self._stopped = threading.Event()
        self._wait = wait or self._stopped.wait
        self._rested: float | None = None
        self._connections: deque[Any] = deque(maxlen=4)
        self._client: httpx.Client | None = None

    def __enter__(self) -> Self:
        self._client = self._client or self._new_client()
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def close(self) -> None:
        if self._client:
            self._client.close()
        self._client = None

    def stop(self) -> None:
        """Interrupt waiting and reading: these raise `ReadingStopped`, and so does every later request."""
        self._stopped.set()
        for connection in tuple(self._connections):
            with suppress(OSError):
                connection.get_extra_info("socket").shutdown(SHUT_RDWR)

    def get(
        self,
        url: str,
        params: QueryParams | None = None,
        accept: str = "",
        *,
        headers: Mapping[str, str] = EMPTY,
        follow: MayFollow | None = None,
    ) -> WebResponse:
        """Return a whole response, even one with an error status, or with a redirect that is not followed.

        A redirect is followed if `follow` allows it, by default if it stays on the host. Raises `AccessDenied` for 401
        and 403, `SourceUnavailable` if all tries end with 429 or 5xx, `ResponseTooLarge` and `ReadingStopped`.
        """
        sent = {**headers, **({"Accept": accept} if accept else {})}
        return self._retry(url, lambda: self._read_whole(url, params, sent, follow))

    def post(self, url: str, form: FormData) -> WebResponse:
        """Send a form, and return the response as `get` does. Redirects are not followed."""
        return self._retry(url, lambda: self._read_whole(url, None, EMPTY, lambda _: False, form))

    def pause(self, seconds: float) -> None:
        """Wait because a server asks for it in the content of its answer. Raises `ReadingStopped`."""
        if self._wait(seconds):
            raise ReadingStopped
        self._refuse_stopped()

    def slow_down(self, gap: float) -> None:
        """From now on, leave at least `gap` seconds between two requests."""
        self._policy = replace(self._policy, gap=max(gap, self._policy.gap))

    def size(self, url: str) -> int | None:
        """Return the size of a file in bytes; None if unknown, or if there is no such file. Raises as `get` does."""

        def once() -> int | None:
            headers = {"Range": "bytes=0-0", "Accept-Encoding": "identity"}
            with self._request(url, None, headers, None) as answer:
                if answer.status_code == httpx.codes.PARTIAL_CONTENT:
                    return parse_number(answer.headers.get("content-range", "").rpartition("/")[2])
                is_whole = answer.status_code == httpx.codes.OK
                return parse_number(answer.headers.get("content-length", "")) if is_whole else None

        return self._retry(url, once)

    def download(
        self,
        url: str,
        path: Path,
        *,
        size: int | None = None,
        digest: tuple[str, str] | None = None,
        progress: Callable[[int, int | None], None] | None = None,
    ) -> None:
        """Download a file to `path`, completely or not at all.

        An earlier try is continued, even one of another process. The file must have this `size` in bytes and this
        `digest`, such as `("sha1", "da39…")`. Raises `SourceUnavailable`.
        """
        request = DownloadRequest(url, path, size, digest, self._policy.tries)
        download_file(request, self._open, self._back_off, progress or (lambda _done, _total: None))

    @contextmanager
    def _open(self, url: str, headers: Mapping[str, str]) -> Iterator[IncomingResponse]:
        with self._request(url, None, {**headers, "Accept-Encoding": "identity"}, None) as answer:
            yield IncomingResponse(answer.status_code, answer.headers, self._blocks(answer))

    def _read_whole(
        self,
        url: str,
        params: QueryParams | None,
        headers: Mapping[str, str],
        follow: MayFollow | None,
        form: FormData | None = None,
    ) -> WebResponse:
        with self._request(url, params, headers, follow, form) as answer:
            content = read_content(answer, self._blocks(answer), self._policy.largest)
            return WebResponse(answer.status_code, str(answer.url), answer.headers, content)

    def _retry(self, url: str, once: Callable[[], T]) -> T:
        return retry(url, self._policy.tries, once, self._back_off)

    def _back_off(self, asked: float | None, tried: int) -> None:
        self.pause(min(2.0 ** (tried - 1), _LONGEST_BACKOFF) if asked is None else max(asked, self._policy.gap))

    @contextmanager
    def _request(
        self,
        url: str,
        params: QueryParams | None,
        headers: Mapping[str, str],
        follow: MayFollow | None,
        form: FormData | None = None,
    ) -> Iterator[httpx.Response]:
        """Send one request, with a form if there is one, and follow its redirects.

        The response is open within the block. Raises `RetryableWebError`, also while the response is read, and
        `SourceUnavailable`.
        """
        first = address = _parse_url(url, params)
        with nullcontext(self._client) if self._client else self._new_client() as client:
            for _ in range(_REDIRECTS + 1):
                trusted = is_same_site(first, address)
                own, auth = (self._headers, self._auth) if trusted else (EMPTY, None)
                with self._send(client, address, {**own, **headers}, auth, form) as answer:
                    target = _redirect_target(address, answer)
                    if target is None or not (follow(str(target)) if follow else is_same_site(first, target)):
                        self._check_status(answer)
                        yield answer
                        return
                    self._drain(answer)
                address = target
        raise SourceUnavailable(f"{format_url(url)} redirects too often.", hint="Check the address.")

    @contextmanager
    def _send(
        self,
        client: httpx.Client,
        address: httpx.URL,
        headers: Mapping[str, str],
        auth: Auth | None,
        form: FormData | None,
    ) -> Iterator[httpx.Response]:
        if self._rested is not None and (early := self._rested + self._policy.gap - self._clock()) > 0:
            self.pause(early)
        self._refuse_stopped()
        method, extensions = "GET" if form is None else "POST", {"trace": self._trace}
        request = client.build_request(method, address, headers=headers, data=form, extensions=extensions)
        try:
            with closing(client.send(request, stream=True, auth=auth)) as answer:
                yield answer
        except httpx.TransportError as error:
            self._refuse_stopped()
            raise RetryableWebError(describe_transport_error(error)) from error
        finally:
            self._rested = self._clock()

    def _check_status(self, answer: httpx.Response) -> None:
        status = answer.status_code
        busy = status == httpx.codes.TOO_MANY_REQUESTS or status >= httpx.codes.INTERNAL_SERVER_ERROR
        if busy or status in _DENIED:
            self._drain(answer)
        if status in _DENIED:
            raise make_access_denied(answer.url, status, self._credential)
        if busy:
            wait = parse_retry_after(answer.headers)
            if wait is not None and wait > self._policy.longest_wait:
                asks = f"answers HTTP {status} and asks to wait {wait:,.0f} seconds"
                raise SourceUnavailable(f"{format_url(answer.url)} {asks}.", hint=RETRY_HINT)
            raise RetryableWebError(f"answers HTTP {status}", wait)

    def _blocks(self, answer: httpx.Response) -> Iterator[bytes]:
        """Yield the body as it was sent. Raises `RetryableWebError` if the server sends it too slowly."""
        started, received = self._clock(), 0
        for block in answer.iter_raw():
            self._refuse_stopped()
            received += len(block)
            yield block
            lasted = self._clock() - started
            if lasted > self._policy.seconds and received < MIN_BYTES_PER_SECOND * lasted:
                raise RetryableWebError("sends too slowly")

    def _drain(self, answer: httpx.Response) -> None:
        """Read the rest of a response that is not needed, if it is short, so that its connection can be used again."""
        left = _SHORT_REPLY
        with suppress(httpx.TransportError, RetryableWebError):  # only its status is needed
            for block in self._blocks(answer):
                left -= len(block)
                if left < 0:
                    return

    def _refuse_stopped(self) -> None:
        if self._stopped.is_set():
            raise ReadingStopped

    def _trace(self, event: str, info: Mapping[str, Any]) -> None:
        """Remember open connections, so that `stop` can interrupt a read, which could wait for a minute."""
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self._connections.append(info["return_value"])

    def _new_client(self) -> httpx.Client:
        return httpx.Client(
            transport=self._transport,
            verify=load_ssl_context(),
            headers={"User-Agent": self._policy.agent, "Accept-Encoding": "gzip"},
            timeout=httpx.Timeout(self._policy.seconds, connect=min(_CONNECTING, self._policy.seconds)),
            limits=httpx.Limits(max_connections=1),
        )


@cache
def load_ssl_context() -> ssl.SSLContext:
    """Load the trusted certificates, which takes a tenth of a second."""
    return httpx.create_ssl_context()


def is_web_address(url: httpx.URL) -> bool:
    return url.scheme in {"http", "https"} and bool(_HOST_NAME.fullmatch(url.host))


def _parse_url(url: str, params: QueryParams | None) -> httpx.URL:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise SourceUnavailable("An address is invalid.", hint="Check the addresses in the settings.") from error
    if not is_web_address(address):
        raise SourceUnavailable(f"{format_url(address)} is not a web address.", hint="It must begin with https://.")
    return address.copy_merge_params(dict(params)) if params else address


def _redirect_target(address: httpx.URL, answer: httpx.Response) -> httpx.URL | None:
    """Return the target of a redirect; None if the response is not a redirect, or its target is invalid."""
    if not answer.has_redirect_location:
        return None
    try:
        target = address.join(answer.headers["location"])
    except httpx.InvalidURL:
        return None
    return target if is_web_address(target) else None


def build_user_agent(contact: str, version: str) -> str:
    """Return the User-Agent of this program, which contains an address of the operator."""
    return f"Footnote/{version} ({contact}) httpx/{httpx.__version__}"
