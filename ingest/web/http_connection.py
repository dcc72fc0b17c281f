"""Send one HTTP request at a time, with a pause between two, and say in plain words what went wrong.

Follows redirects, reads replies within bounds, and can be stopped from another thread. No message ever repeats a query
or a credential. Whether a request is tried again is decided in `web_client` and `download`.
"""

import ssl
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from socket import SHUT_RDWR
from types import MappingProxyType
from typing import Any

import httpx

from ingest.types import SourceUnavailable
from storage.language.lazy_pattern import lazy_compile

RETRY_HINT = "It is tried again at the next refresh; check that it can be reached from here if it goes on."


class AccessDenied(SourceUnavailable):
    """A server answered 401 or 403."""


class ResponseTooLarge(SourceUnavailable):
    """A reply is larger than what is read."""


class ReadingStopped(SourceUnavailable):
    def __init__(self) -> None:
        super().__init__("Reading was stopped.", hint="Run the same command again to go on.")


class RetryableWebError(Exception):
    """Signals what may succeed if it is retried. `str()` says what was wrong, as in "HOST did not answer in time"."""

    def __init__(self, reason: str, wait: float | None = None) -> None:
        super().__init__(reason)
        self.wait = wait
        """Seconds that the server asks us to wait; None where it says nothing."""


def format_url(url: str | httpx.URL) -> str:
    """Return an address as messages say it: without user, password, query and fragment."""
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL:
        return "an address that cannot be read"
    port = f":{address.port}" if address.port else ""
    return f"{address.scheme}://{address.host}{port}{address.path}"


def describe_transport_error(error: httpx.TransportError) -> str:
    if isinstance(error, httpx.ConnectTimeout | httpx.ReadTimeout | httpx.WriteTimeout | httpx.PoolTimeout):
        return "did not answer in time"
    if isinstance(error, httpx.ConnectError):
        return f"cannot be reached ({error})" if str(error) else "cannot be reached"
    if isinstance(error, httpx.UnsupportedProtocol):
        return "is no address of the web"
    return "broke off"


def make_access_denied(url: httpx.URL, status: int, credential: str) -> AccessDenied:
    if credential:
        hint = f"Check {credential}: it may be missing, have lapsed, or lack the right to read this."
    else:
        hint = "It wants to know who reads: give the source a credential that may read this."
    return AccessDenied(f"{format_url(url)} does not let us in (HTTP {status}).", hint=hint)


MIN_BYTES_PER_SECOND = 1024
"""Bytes a second, over all that has come, below which a server is left and asked anew."""


def is_same_site(one: httpx.URL, other: httpx.URL) -> bool:
    """Tell whether two addresses are of one server, which may upgrade http to https."""
    if one.host != other.host:
        return False
    upgraded = one.scheme == "http" and other.scheme == "https" and one.port is None and other.port is None
    return upgraded or (one.scheme == other.scheme and one.port == other.port)


def parse_retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of Retry-After, which may be given as a date; None where nothing of use is said."""
    said = headers.get("retry-after", "").strip()
    if said.isascii() and said.isdigit():
        return float(said[:9])
    try:
        then = _utc(parsedate_to_datetime(said))
    except ValueError:
        return None
    try:
        # The server's own clock says how long that is, whatever ours says.
        now = _utc(parsedate_to_datetime(headers.get("date", "")))
    except ValueError:
        now = datetime.now(UTC)
    return max((then - now).total_seconds(), 0.0)


def _utc(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def parse_file_size(status: int, headers: Mapping[str, str]) -> int | None:
    """Return how large a file is of which the first byte was asked for; None if that is not said."""
    if status == httpx.codes.PARTIAL_CONTENT:
        said = headers.get("content-range", "").rpartition("/")[2]
    else:
        said = headers.get("content-length", "") if status == httpx.codes.OK else ""
    return int(said) if said.isascii() and said.isdigit() else None


def read_content(answer: httpx.Response, blocks: Iterable[bytes], largest: int) -> bytes:
    """Return what was sent, unpacked, without ever holding more than `largest` bytes of it.

    Raises:
        ReplyTooLarge: There is more.
        Hiccup: It cannot be unpacked, or ends too early.
    """
    encoding = answer.headers.get("content-encoding", "").strip().lower()
    if encoding not in {"", "identity", "gzip", "x-gzip"}:
        raise RetryableWebError("packs its answer in a way that was not asked for")
    unpacker = zlib.decompressobj(wbits=31) if encoding.endswith("gzip") else None
    content = bytearray()
    for block in blocks:
        try:
            content += unpacker.decompress(block, largest + 1 - len(content)) if unpacker else block
        except zlib.error as error:
            raise RetryableWebError("sends what cannot be unpacked") from error
        if len(content) > largest:
            raise ResponseTooLarge(
                f"{format_url(answer.url)} is larger than {largest / 2**20:,.0f} MB.", hint="Leave it out by a rule."
            )
    if unpacker and content and not unpacker.eof:
        raise RetryableWebError("broke off")
    return bytes(content)


QueryParams = Mapping[str, str | int]
FormData = Mapping[str, str]
MayFollow = Callable[[str], bool]
Auth = httpx.Auth | tuple[str, str]

EMPTY: Mapping[str, str] = MappingProxyType({})
_REDIRECTS = 5
_CONNECTING = 15.0
_SHORT_REPLY = 64 << 10
_REFUSALS = frozenset({httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN, httpx.codes.TOO_MANY_REQUESTS})
_HOST_NAME = lazy_compile(r"[^\s%/\[\]@]+")


@dataclass(frozen=True, slots=True)
class RequestPolicy:
    """Say how a server is treated. Times are in seconds, sizes in bytes."""

    agent: str
    """Who asks, with how its operator can be reached, as a User-Agent."""
    gap: float = 0.1
    """Between the end of a request and the next."""
    tries: int = 5
    """In all, before it is given up."""
    longest_wait: float = 120.0
    """If a server asks us to wait longer, it is given up at once."""
    seconds: float = 60.0
    """Within which a server has to say something."""
    largest: int = 64 << 20
    """Of one reply once it is unpacked; downloads have no limit."""


class HttpConnection:
    def __init__(
        self,
        manners: RequestPolicy,
        *,
        headers: Mapping[str, str],
        auth: Auth | None,
        credential: str,
        transport: httpx.BaseTransport | None,
        wait: Callable[[float], bool] | None,
        clock: Callable[[], float] | None,
    ) -> None:
        self.manners = manners
        self._headers = headers
        self._auth = auth
        self._credential = credential
        self._transport = transport
        self._stopped = threading.Event()
        self._wait = wait or self._stopped.wait
        self._clock = clock or time.monotonic
        self._rested: float | None = None
        self._connections: deque[Any] = deque(maxlen=4)
        self._client: httpx.Client | None = None

    def open(self) -> None:
        self._client = self._client or self._new_client()

    def close(self) -> None:
        if self._client:
            self._client.close()
        self._client = None

    def stop(self) -> None:
        self._stopped.set()
        for connection in tuple(self._connections):
            with suppress(OSError):
                connection.get_extra_info("socket").shutdown(SHUT_RDWR)

    def pause(self, seconds: float) -> None:
        if self._wait(seconds):
            raise ReadingStopped
        self._look()

    @contextmanager
    def asked(
        self,
        url: str,
        params: QueryParams | None,
        headers: Mapping[str, str],
        follow: MayFollow | None,
        form: FormData | None = None,
    ) -> Iterator[httpx.Response]:
        """Send one request and follow its redirects; the response is open within the block. A form is sent, if given.

        Raises:
            Hiccup: What may go better the next time: also while the answer is read.
            SourceUnavailable: What will not.
        """
        first = _parse_url(url, params)
        address = first
        with self._connected() as client:
            for _ in range(_REDIRECTS + 1):
                trusted = is_same_site(first, address)
                own = self._headers if trusted else EMPTY
                auth = self._auth if trusted else None
                with self._sent(client, address, {**own, **headers}, auth, form) as answer:
                    target = _redirect_target(address, answer)
                    if target is None or not (follow(str(target)) if follow else is_same_site(first, target)):
                        self._judge(answer)
                        yield answer
                        return
                    self._drain(answer)
                address = target
        raise SourceUnavailable(f"{format_url(url)} leads from one address to the next.", hint="Check the address.")

    def watched(self, answer: httpx.Response) -> Iterator[bytes]:
        """Yield what comes, as it was sent; leave a server that all but stops."""
        begun, received = self._clock(), 0
        for block in answer.iter_raw():
            self._look()
            received += len(block)
            yield block
            lasted = self._clock() - begun
            if lasted > self.manners.seconds and received < MIN_BYTES_PER_SECOND * lasted:
                raise RetryableWebError("sends too slowly")

    @contextmanager
    def _sent(
        self,
        client: httpx.Client,
        address: httpx.URL,
        headers: Mapping[str, str],
        auth: Auth | None,
        form: FormData | None,
    ) -> Iterator[httpx.Response]:
        if self._rested is not None and (early := self._rested + self.manners.gap - self._clock()) > 0:
            self.pause(early)
        self._look()
        how, extensions = "GET" if form is None else "POST", {"trace": self._traced}
        request = client.build_request(how, address, headers=headers, data=form, extensions=extensions)
        try:
            with closing(client.send(request, stream=True, auth=auth)) as answer:
                yield answer
        except httpx.TransportError as error:
            self._look()
            raise RetryableWebError(describe_transport_error(error)) from error
        finally:
            self._rested = self._clock()

    def _judge(self, answer: httpx.Response) -> None:
        status = answer.status_code
        if status in _REFUSALS or status >= httpx.codes.INTERNAL_SERVER_ERROR:
            self._drain(answer)
        if status in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            raise make_access_denied(answer.url, status, self._credential)
        if status == httpx.codes.TOO_MANY_REQUESTS or status >= httpx.codes.INTERNAL_SERVER_ERROR:
            wait = parse_retry_after(answer.headers)
            if wait is not None and wait > self.manners.longest_wait:
                told = (
                    f"{format_url(answer.url)} answers HTTP {status} and asks to be left alone for {wait:,.0f} seconds."
                )
                raise SourceUnavailable(told, hint=RETRY_HINT)
            raise RetryableWebError(f"answers HTTP {status}", wait)

    def _drain(self, answer: httpx.Response) -> None:
        """Read what is left of a short response that says nothing to us, so that its connection can be used again."""
        left = _SHORT_REPLY
        with suppress(httpx.TransportError, RetryableWebError):  # its status said enough
            for block in self.watched(answer):
                left -= len(block)
                if left < 0:
                    return

    def _look(self) -> None:
        if self._stopped.is_set():
            raise ReadingStopped

    def _traced(self, event: str, info: Mapping[str, Any]) -> None:
        """Remember connections, so that `stop` can end a read that would wait for a minute."""
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self._connections.append(info["return_value"])

    def _new_client(self) -> httpx.Client:
        return httpx.Client(
            transport=self._transport,
            verify=_ssl_context(),
            headers={"User-Agent": self.manners.agent, "Accept-Encoding": "gzip"},
            timeout=httpx.Timeout(self.manners.seconds, connect=min(_CONNECTING, self.manners.seconds)),
            limits=httpx.Limits(max_connections=1),
        )

    @contextmanager
    def _connected(self) -> Iterator[httpx.Client]:
        if self._client:
            yield self._client
            return
        with self._new_client() as client:
            yield client


@cache
def _ssl_context() -> ssl.SSLContext:
    """Load the trusted certificates, which takes a tenth of a second."""
    return httpx.create_ssl_context()


def _parse_url(url: str, params: QueryParams | None) -> httpx.URL:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise SourceUnavailable("An address cannot be read.", hint="Check the addresses in the settings.") from error
    if address.scheme not in {"http", "https"} or not _HOST_NAME.fullmatch(address.host):
        raise SourceUnavailable(f"{format_url(address)} is no address of the web.", hint="It begins with https://.")
    return address.copy_merge_params(dict(params)) if params else address


def _redirect_target(address: httpx.URL, answer: httpx.Response) -> httpx.URL | None:
    """Return where a redirect leads; None for any other response, and for what is no address of the web."""
    if not answer.has_redirect_location:
        return None
    try:
        target = address.join(answer.headers["location"])
    except httpx.InvalidURL:
        return None
    return target if target.scheme in {"http", "https"} and _HOST_NAME.fullmatch(target.host) else None
