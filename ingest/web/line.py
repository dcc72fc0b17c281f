"""One line to web servers: a request at a time, a rest between two, redirects, and a way to end what blocks.

What a request brings, and whether it is tried again, is `fetching`'s.
"""

import re
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from socket import SHUT_RDWR
from types import MappingProxyType
from typing import Any

import httpx

from ingest.types import SourceUnavailable
from ingest.web.errors import AGAIN, Hiccup, Stopped, cause, denied, shown
from ingest.web.replies import SLOWEST, asked_to_wait, same_site

Params = Mapping[str, str | int]
Form = Mapping[str, str]
Follow = Callable[[str], bool]
Auth = httpx.Auth | tuple[str, str]

NOTHING: Mapping[str, str] = MappingProxyType({})
_REDIRECTS = 5
_CONNECTING = 15.0
_SHORT = 64 << 10
_REFUSALS = frozenset({httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN, httpx.codes.TOO_MANY_REQUESTS})
_HOST = re.compile(r"[^\s%/\[\]@]+")


@dataclass(frozen=True, slots=True)
class Manners:
    """How a server is treated. Times are in seconds, sizes in bytes."""

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


class Line:
    """Asks servers one thing at a time, for one thread; `stop` may come from another.

    Between `open` and `close` connections are kept for the next request; else each request has its own.
    """

    def __init__(
        self,
        manners: Manners,
        *,
        headers: Mapping[str, str],
        auth: Auth | None,
        credential: str,
        transport: httpx.BaseTransport | None,
        wait: Callable[[float], bool] | None,
        clock: Callable[[], float] | None,
    ) -> None:
        """As `fetching.Web`."""
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
        """Keep connections from now on."""
        self._client = self._client or self._new_client()

    def close(self) -> None:
        """End its connections."""
        if self._client:
            self._client.close()
        self._client = None

    def stop(self) -> None:
        """End whatever waits or reads, from any thread: it raises `Stopped`, as all that is asked later does."""
        self._stopped.set()
        for connection in tuple(self._connections):
            with suppress(OSError):
                connection.get_extra_info("socket").shutdown(SHUT_RDWR)

    def pause(self, seconds: float) -> None:
        """Wait. Raises `Stopped`."""
        if self._wait(seconds):
            raise Stopped
        self._look()

    @contextmanager
    def asked(
        self,
        url: str,
        params: Params | None,
        headers: Mapping[str, str],
        follow: Follow | None,
        form: Form | None = None,
    ) -> Iterator[httpx.Response]:
        """Ask once, and for where it is said to be; what stands at the end is open within. A form is sent, if given.

        Raises:
            Hiccup: What may go better the next time: also while the answer is read.
            SourceUnavailable: What will not.
        """
        first = _address(url, params)
        address = first
        with self._connected() as client:
            for _ in range(_REDIRECTS + 1):
                trusted = same_site(first, address)
                own = self._headers if trusted else NOTHING
                auth = self._auth if trusted else None
                with self._sent(client, address, {**own, **headers}, auth, form) as answer:
                    target = _target(address, answer)
                    if target is None or not (follow(str(target)) if follow else same_site(first, target)):
                        self._judge(answer)
                        yield answer
                        return
                    self._drain(answer)
                address = target
        raise SourceUnavailable(f"{shown(url)} leads from one address to the next.", hint="Check the address.")

    def watched(self, answer: httpx.Response) -> Iterator[bytes]:
        """Go through what comes, as it was sent; a server that all but stops is left."""
        begun, received = self._clock(), 0
        for block in answer.iter_raw():
            self._look()
            received += len(block)
            yield block
            lasted = self._clock() - begun
            if lasted > self.manners.seconds and received < SLOWEST * lasted:
                raise Hiccup("sends too slowly")

    @contextmanager
    def _sent(
        self,
        client: httpx.Client,
        address: httpx.URL,
        headers: Mapping[str, str],
        auth: Auth | None,
        form: Form | None,
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
            raise Hiccup(cause(error)) from error
        finally:
            self._rested = self._clock()

    def _judge(self, answer: httpx.Response) -> None:
        status = answer.status_code
        if status in _REFUSALS or status >= httpx.codes.INTERNAL_SERVER_ERROR:
            self._drain(answer)
        if status in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            raise denied(answer.url, status, self._credential)
        if status == httpx.codes.TOO_MANY_REQUESTS or status >= httpx.codes.INTERNAL_SERVER_ERROR:
            wait = asked_to_wait(answer.headers)
            if wait is not None and wait > self.manners.longest_wait:
                told = f"{shown(answer.url)} answers HTTP {status} and asks to be left alone for {wait:,.0f} seconds."
                raise SourceUnavailable(told, hint=AGAIN)
            raise Hiccup(f"answers HTTP {status}", wait)

    def _drain(self, answer: httpx.Response) -> None:
        """Read what is left of a short answer that says nothing to us, so that its connection can be used again."""
        left = _SHORT
        with suppress(httpx.TransportError, Hiccup):  # its status said enough
            for block in self.watched(answer):
                left -= len(block)
                if left < 0:
                    return

    def _look(self) -> None:
        if self._stopped.is_set():
            raise Stopped

    def _traced(self, event: str, info: Mapping[str, Any]) -> None:
        """Keep what is connected, so that `stop` can end a read that would wait for a minute."""
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self._connections.append(info["return_value"])

    def _new_client(self) -> httpx.Client:
        return httpx.Client(
            transport=self._transport,
            verify=_trusted(),
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
def _trusted() -> ssl.SSLContext:
    """Return whom we trust, which takes a tenth of a second to read."""
    return httpx.create_ssl_context()


def _address(url: str, params: Params | None) -> httpx.URL:
    try:
        address = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise SourceUnavailable("An address cannot be read.", hint="Check the addresses in the settings.") from error
    if address.scheme not in {"http", "https"} or not _HOST.fullmatch(address.host):
        raise SourceUnavailable(f"{shown(address)} is no address of the web.", hint="It begins with https://.")
    return address.copy_merge_params(dict(params)) if params else address


def _target(address: httpx.URL, answer: httpx.Response) -> httpx.URL | None:
    """Where a redirect leads; None for any other answer, and for what is no address of the web."""
    if not answer.has_redirect_location:
        return None
    try:
        target = address.join(answer.headers["location"])
    except httpx.InvalidURL:
        return None
    return target if target.scheme in {"http", "https"} and _HOST.fullmatch(target.host) else None
