"""Reading from web servers, politely: one request at a time, a rest between two, and patience when one is asked for.

Every source that reads from the web does it through `Web`. What it cannot get is a `SourceUnavailable` in one line.
"""

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from socket import SHUT_RDWR
from types import MappingProxyType, TracebackType
from typing import Any, Self, TypeVar

import httpx

from ingest.downloading import Incoming, Wanted, brought
from ingest.replies import SLOWEST, asked_to_wait, content_of, same_site, whole_size
from ingest.types import SourceUnavailable
from ingest.web_errors import AGAIN, Hiccup, Stopped, cause, denied, shown

Params = Mapping[str, str | int]
Form = Mapping[str, str]
Follow = Callable[[str], bool]
Auth = httpx.Auth | tuple[str, str]
T = TypeVar("T")

_NOTHING: Mapping[str, str] = MappingProxyType({})
_REDIRECTS = 5
_LONGEST_REST = 30.0
_CONNECTING = 15.0


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


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered."""

    status: int
    url: str
    """Where it was found in the end, after redirects."""
    headers: Mapping[str, str]
    """Upper and lower case are the same."""
    content: bytes


class Web:
    """Gets things from the web, for one thread; `stop` may come from another.

    Within a `with` block its connections are kept for the next request; outside of one, each request has its own.
    """

    def __init__(
        self,
        manners: Manners,
        *,
        headers: Mapping[str, str] = _NOTHING,
        auth: Auth | None = None,
        credential: str = "",
        transport: httpx.BaseTransport | None = None,
        wait: Callable[[float], bool] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`headers` and `auth` go to the host that is asked, and never along with a redirect to another.

        Args:
            manners: How servers are treated.
            headers: Sent with every request.
            auth: Name and password, or any of httpx's.
            credential: What the one who let us in is called, such as `CONFLUENCE_TOKEN`, for messages.
            transport: Another way to the servers.
            wait: Waits so many seconds; true if it is to stop.
            clock: Seconds since some moment.
        """
        self._manners = manners
        self._headers = headers
        self._auth = auth
        self._credential = credential
        self._stopped = threading.Event()
        self._wait = wait or self._stopped.wait
        self._clock = clock
        self._rested: float | None = None
        self._connections: deque[Any] = deque(maxlen=4)
        self._transport = transport
        self._client: httpx.Client | None = None

    def __enter__(self) -> Self:
        """Keep connections from now on."""
        self._client = self._new_client()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close it."""
        self.close()

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

    def get(
        self,
        url: str,
        params: Params | None = None,
        accept: str = "",
        *,
        headers: Mapping[str, str] = _NOTHING,
        follow: Follow | None = None,
    ) -> Reply:
        """Get one thing whole. Redirects are followed to where `follow` allows it, else within the host alone.

        A redirect that is not followed is returned as the reply, and so is every status from 400 on but these:

        Raises:
            Denied: 401 or 403.
            ReplyTooLarge: It is larger than `Manners.largest`.
            Stopped: We were told to.
            SourceUnavailable: No connection, 429 or 5xx, each time that it was tried.
        """
        wanted = {**headers, **({"Accept": accept} if accept else {})}
        return self._patiently(url, lambda: self._whole(url, params, wanted, follow, None))

    def post(self, url: str, form: Mapping[str, str]) -> Reply:
        """Send a form, and return what is answered, as `get` does. Redirects are not followed."""
        return self._patiently(url, lambda: self._whole(url, None, _NOTHING, lambda _: False, form))

    def pause(self, seconds: float) -> None:
        """Wait, where a server asks for it in a way of its own. Raises `Stopped` if we are told to stop meanwhile."""
        self._pause(seconds)

    def json(self, url: str, params: Params | None = None) -> Any:
        """Get JSON. Raises as `get` does, and `SourceUnavailable` for other statuses and for what is no JSON."""
        reply = self.get(url, params, "application/json")
        if reply.status != httpx.codes.OK:
            raise SourceUnavailable(f"{shown(url)} answers HTTP {reply.status}.", hint="Check the address.")
        try:
            return json.loads(reply.content)
        except (ValueError, RecursionError) as error:
            what = reply.headers.get("content-type", "").partition(";")[0] or "something"
            hint = "Check the address; a page to log in may have come instead."
            raise SourceUnavailable(f"{shown(url)} answers {what} that is no JSON.", hint=hint) from error

    def download(
        self,
        url: str,
        path: Path,
        *,
        size: int | None = None,
        digest: tuple[str, str] | None = None,
        progress: Callable[[int, int | None], None] | None = None,
    ) -> None:
        """Bring a file to `path`, whole or not at all; goes on where an earlier try ended, also in another process.

        Args:
            url: Where it is.
            path: Where it is to be; beside it `NAME.part` holds what has come so far.
            size: Bytes it must have.
            digest: The name of a hash and what it must be, in hexadecimal: `("sha1", "da39…")`.
            progress: Told bytes there are and bytes there will be.

        Raises:
            SourceUnavailable: As for `get`; also where it cannot be written, or is not what it must be.
        """
        wanted = Wanted(url, path, size, digest, self._manners.tries)
        brought(wanted, self._incoming, self._rest_after, progress or (lambda _done, _total: None))

    def size(self, url: str) -> int | None:
        """Return how many bytes a file has that could be downloaded; None where its server does not tell, or has none.

        Raises as `get` does.
        """

        def once() -> int | None:
            with self._asked(url, None, {"Range": "bytes=0-0", "Accept-Encoding": "identity"}, None) as answer:
                return whole_size(answer.status_code, answer.headers)

        return self._patiently(url, once)

    def _new_client(self) -> httpx.Client:
        return httpx.Client(
            transport=self._transport,
            headers={"User-Agent": self._manners.agent, "Accept-Encoding": "gzip"},
            timeout=httpx.Timeout(self._manners.seconds, connect=min(_CONNECTING, self._manners.seconds)),
            limits=httpx.Limits(max_connections=1),
        )

    @contextmanager
    def _connected(self) -> Iterator[httpx.Client]:
        if self._client:
            yield self._client
            return
        with self._new_client() as client:
            yield client

    @contextmanager
    def _incoming(self, url: str, headers: Mapping[str, str]) -> Iterator[Incoming]:
        with self._asked(url, None, {**headers, "Accept-Encoding": "identity"}, None) as answer:
            yield Incoming(answer.status_code, answer.headers, self._watched(answer))

    def _whole(
        self, url: str, params: Params | None, headers: Mapping[str, str], follow: Follow | None, form: Form | None
    ) -> Reply:
        with self._asked(url, params, headers, follow, form) as answer:
            content = content_of(answer, self._watched(answer), self._manners.largest)
            return Reply(answer.status_code, str(answer.url), answer.headers, content)

    def _patiently(self, url: str, once: Callable[[], T]) -> T:
        tried = 0
        while True:
            try:
                return once()
            except Hiccup as error:
                tried += 1
                if tried >= self._manners.tries:
                    raise SourceUnavailable(f"{shown(url)} {error}.", hint=AGAIN) from error
                self._rest_after(error, tried)

    def _rest_after(self, error: Hiccup, tried: int) -> None:
        asked = error.wait
        self._pause(min(2.0 ** (tried - 1), _LONGEST_REST) if asked is None else max(asked, self._manners.gap))

    def _pause(self, seconds: float) -> None:
        if self._wait(seconds) or self._stopped.is_set():
            raise Stopped

    @contextmanager
    def _asked(
        self,
        url: str,
        params: Params | None,
        headers: Mapping[str, str],
        follow: Follow | None,
        form: Form | None = None,
    ) -> Iterator[httpx.Response]:
        """Ask once, and for where it is said to be; what stands at the end is open within."""
        first = _address(url, params)
        address = first
        for _ in range(_REDIRECTS + 1):
            trusted = same_site(first, address)
            answer = self._sent(address, {**(self._headers if trusted else {}), **headers}, form, trusted=trusted)
            try:
                target = _target(address, answer)
                if target is None or not (follow(str(target)) if follow else same_site(first, target)):
                    self._judge(answer)
                    yield answer
                    return
            except httpx.TransportError as error:
                self._look()
                raise Hiccup(cause(error)) from error
            finally:
                answer.close()
                self._rested = self._clock()
            address = target
        raise SourceUnavailable(f"{shown(url)} leads from one address to the next.", hint="Check the address.")

    def _sent(
        self, address: httpx.URL, headers: Mapping[str, str], form: Form | None, *, trusted: bool
    ) -> httpx.Response:
        if self._rested is not None and (early := self._rested + self._manners.gap - self._clock()) > 0:
            self._pause(early)
        self._look()
        how = "GET" if form is None else "POST"
        extensions = {"trace": self._traced}
        request = self._client.build_request(how, address, headers=headers, data=form, extensions=extensions)
        try:
            return self._client.send(request, stream=True, auth=self._auth if trusted else None)
        except httpx.TransportError as error:
            self._rested = self._clock()
            self._look()
            raise Hiccup(cause(error)) from error

    def _traced(self, event: str, info: Mapping[str, Any]) -> None:
        """Keep what is connected, so that `stop` can end a read that would wait for a minute."""
        if event in {"connection.connect_tcp.complete", "connection.start_tls.complete"}:
            self._connections.append(info["return_value"])

    def _look(self) -> None:
        if self._stopped.is_set():
            raise Stopped

    def _judge(self, answer: httpx.Response) -> None:
        status = answer.status_code
        if status in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            raise denied(answer.url, status, self._credential)
        if status == httpx.codes.TOO_MANY_REQUESTS or status >= httpx.codes.INTERNAL_SERVER_ERROR:
            wait = asked_to_wait(answer.headers)
            if wait is not None and wait > self._manners.longest_wait:
                told = f"{shown(answer.url)} answers HTTP {status} and asks to be left alone for {wait:,.0f} seconds."
                raise SourceUnavailable(told, hint=AGAIN)
            raise Hiccup(f"answers HTTP {status}", wait)

    def _watched(self, answer: httpx.Response) -> Iterator[bytes]:
        """Go through what comes, as it was sent; a server that all but stops is left."""
        begun, received = self._clock(), 0
        for block in answer.iter_raw():
            self._look()
            received += len(block)
            yield block
            lasted = self._clock() - begun
            if lasted > self._manners.seconds and received < SLOWEST * lasted:
                raise Hiccup("sends too slowly")


def agent(contact: str, version: str) -> str:
    """Return the User-Agent of this program, with how its operator can be reached."""
    return f"Footnote/{version} ({contact}) httpx/{httpx.__version__}"


def _address(url: str, params: Params | None) -> httpx.URL:
    try:
        address = httpx.URL(url)
        return address.copy_merge_params(dict(params)) if params else address
    except (httpx.InvalidURL, TypeError) as error:
        raise SourceUnavailable("An address cannot be read.", hint="Check the addresses in the settings.") from error


def _target(address: httpx.URL, answer: httpx.Response) -> httpx.URL | None:
    """Where a redirect leads; None for any other answer, and for what is no address of the web."""
    if not answer.has_redirect_location:
        return None
    try:
        target = address.join(answer.headers["location"])
    except httpx.InvalidURL:
        return None
    return target if target.scheme in {"http", "https"} else None
