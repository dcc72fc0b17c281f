"""Read from web servers politely: one request at a time, with retries, backoff and respect for Retry-After.

Every source that reads from the web does it through `WebClient`. What cannot be had is a `SourceUnavailable` in one
line.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx

from ingest.types import SourceUnavailable
from ingest.web.download import DownloadRequest, IncomingResponse, download_file
from ingest.web.http_connection import (
    EMPTY,
    RETRY_HINT,
    Auth,
    FormData,
    HttpConnection,
    MayFollow,
    QueryParams,
    RequestPolicy,
    RetryableWebError,
    format_url,
    parse_file_size,
    read_content,
)

T = TypeVar("T")

_LONGEST_BACKOFF = 30.0


@dataclass(frozen=True, slots=True)
class WebResponse:
    status: int
    url: str
    """Where it was found in the end, after redirects."""
    headers: Mapping[str, str]
    """Upper and lower case are the same."""
    content: bytes


class WebClient:
    """Gets things from the web, for one thread; `stop` may come from another.

    Within a `with` block its connections are kept for the next request; outside of one, each request has its own.
    """

    def __init__(
        self,
        manners: RequestPolicy,
        *,
        headers: Mapping[str, str] = EMPTY,
        auth: Auth | None = None,
        credential: str = "",
        transport: httpx.BaseTransport | None = None,
        wait: Callable[[float], bool] | None = None,
        clock: Callable[[], float] | None = None,
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
        self._line = HttpConnection(
            manners, headers=headers, auth=auth, credential=credential, transport=transport, wait=wait, clock=clock
        )

    def __enter__(self) -> Self:
        self._line.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._line.close()

    def stop(self) -> None:
        self._line.stop()

    def get(
        self,
        url: str,
        params: QueryParams | None = None,
        accept: str = "",
        *,
        headers: Mapping[str, str] = EMPTY,
        follow: MayFollow | None = None,
    ) -> WebResponse:
        """Get one thing whole. Redirects are followed to where `follow` allows it, else within the host alone.

        A redirect that is not followed is returned as the reply, and so is every status from 400 on but these:

        Raises:
            Denied: 401 or 403.
            ReplyTooLarge: It is larger than `Manners.largest`.
            Stopped: We were told to.
            SourceUnavailable: No connection, 429 or 5xx, each time that it was tried.
        """
        wanted = {**headers, **({"Accept": accept} if accept else {})}
        return self._patiently(url, lambda: self._whole(url, params, wanted, follow))

    def post(self, url: str, form: FormData) -> WebResponse:
        return self._patiently(url, lambda: self._whole(url, None, EMPTY, lambda _: False, form))

    def pause(self, seconds: float) -> None:
        self._line.pause(seconds)

    def slower(self, gap: float) -> None:
        self._line.manners = replace(self._line.manners, gap=max(gap, self._line.manners.gap))

    def json(self, url: str, params: QueryParams | None = None) -> Any:
        """Get JSON. Raises as `get` does, and `SourceUnavailable` for other statuses and for what is no JSON."""
        reply = self.get(url, params, "application/json")
        if reply.status != httpx.codes.OK:
            raise SourceUnavailable(f"{format_url(url)} answers HTTP {reply.status}.", hint="Check the address.")
        try:
            return json.loads(reply.content)
        except (ValueError, RecursionError) as error:
            what = reply.headers.get("content-type", "").partition(";")[0] or "something"
            hint = "Check the address; a page to log in may have come instead."
            raise SourceUnavailable(f"{format_url(url)} answers {what} that is no JSON.", hint=hint) from error

    def size(self, url: str) -> int | None:
        """Return how many bytes a file has that could be downloaded; None where its server does not tell, or has none.

        Raises as `get` does.
        """

        def once() -> int | None:
            wanted = {"Range": "bytes=0-0", "Accept-Encoding": "identity"}
            with self._line.asked(url, None, wanted, None) as answer:
                return parse_file_size(answer.status_code, answer.headers)

        return self._patiently(url, once)

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
        wanted = DownloadRequest(url, path, size, digest, self._line.manners.tries)
        download_file(wanted, self._incoming, self._rest_after, progress or (lambda _done, _total: None))

    @contextmanager
    def _incoming(self, url: str, headers: Mapping[str, str]) -> Iterator[IncomingResponse]:
        with self._line.asked(url, None, {**headers, "Accept-Encoding": "identity"}, None) as answer:
            yield IncomingResponse(answer.status_code, answer.headers, self._line.watched(answer))

    def _whole(
        self,
        url: str,
        params: QueryParams | None,
        headers: Mapping[str, str],
        follow: MayFollow | None,
        form: FormData | None = None,
    ) -> WebResponse:
        with self._line.asked(url, params, headers, follow, form) as answer:
            content = read_content(answer, self._line.watched(answer), self._line.manners.largest)
            return WebResponse(answer.status_code, str(answer.url), answer.headers, content)

    def _patiently(self, url: str, once: Callable[[], T]) -> T:
        tried = 0
        while True:
            try:
                return once()
            except RetryableWebError as error:
                tried += 1
                if tried >= self._line.manners.tries:
                    raise SourceUnavailable(f"{format_url(url)} {error}.", hint=RETRY_HINT) from error
                self._rest_after(error, tried)

    def _rest_after(self, error: RetryableWebError, tried: int) -> None:
        asked = error.wait
        self._line.pause(
            min(2.0 ** (tried - 1), _LONGEST_BACKOFF) if asked is None else max(asked, self._line.manners.gap)
        )


def build_user_agent(contact: str, version: str) -> str:
    return f"Footnote/{version} ({contact}) httpx/{httpx.__version__}"
