"""Call a platform's HTTP API at its rate limit, without ever doing anything twice.

Each platform defines its routes, rates and error codes as data. The retry loop is our own. Those of libraries repeat
calls that may have succeeded, and cannot run on a test clock.
"""

import json
import logging
import math
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self, TypeVar
from urllib.parse import quote

import aiohttp

from bot.desk.platform_port import (
    AccessDenied,
    CannotPost,
    ContentRefused,
    PlatformError,
    PlatformUnavailable,
    RateLimited,
)
from bot.platforms.shared.rate_limit import Busy, Ids, Pacing, Reply, Route
from bot.types import PostedMessages

T = TypeVar("T")

log = logging.getLogger(__name__)

PATIENCE = 40.0
"""Seconds that a call waits for its turn; callers that can retry wait less than a desk's call lasts."""
LIMITED = 429
LOCKED_OUT_SECONDS = 60.0  # before a refused token is tried again
RETRY_SECONDS = 1.0  # before an unanswered call is repeated
UNREACHED_SECONDS = 5.0  # before a call is repeated that could not be sent
MAX_WAIT_SECONDS = 3_600.0
_TRIES = 4
_BAD_REQUEST, _LOCKED_OUT, _TIMED_OUT, _BROKEN, _EMPTY = 400, 401, 408, 500, 204
_GOOD = range(200, 300)
_TIMEOUT = aiohttp.ClientTimeout(total=30.0, sock_connect=10.0)
_CODE = re.compile(r"[\w.]{1,120}")


class RequestRefused(CannotPost):
    """The platform permanently refuses a call. `code`: its error code; None if it gave none."""

    code: str | int | None = None


class EditRefused(RequestRefused):
    """The message cannot be edited any more; it has to be deleted and posted again."""


@dataclass(frozen=True, slots=True)
class Api:
    """How to call a platform's API, and which error each of its refusals raises."""

    platform: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    authorization: str = field(default="", repr=False)
    form: bool = False  # whether a body without nested values is sent as a form
    safe: str = ""  # characters that are not quoted in values of a path
    ok_field: str = ""  # the body's field that says whether the call succeeded; empty if the HTTP status does
    code_field: str = "code"
    kinds: Mapping[str | int, type[PlatformError]] = field(default_factory=dict)
    """Errors by code. `PlatformUnavailable`: temporarily refused."""
    unfit: tuple[str, ...] = ()  # prefixes of the codes that refuse a message's content
    by_status: Mapping[int, type[PlatformError]] = field(default_factory=dict)  # errors by HTTP status, for other codes
    otherwise: type[PlatformError] = RequestRefused  # the error for other codes and statuses
    hints: Mapping[str | int, str] = field(default_factory=dict)
    wait_headers: tuple[str, ...] = ("Retry-After",)
    wait_seconds: float = 5.0  # if the platform asks to wait without saying how long
    banned_seconds: float = 5.0  # the same, if a proxy before the platform refuses
    pause_seconds: float | None = None  # before a temporarily refused call is retried; None: it may have succeeded

    def explain(self, call: object, reply: Reply) -> PlatformError | None:
        """Return the error of a reply; None if the call succeeded.

        Only a refusal by the platform itself is permanent. If a proxy refuses a call, the platform never received it.
        """
        if self._is_done(reply):
            return None
        code, status = self._read_code(reply), reply.status
        own = bool(code) or (code == 0 and status in {_BAD_REQUEST, _LOCKED_OUT})
        shown = (f"code {code}" if isinstance(code, int) else code) if code else f"status {status}"
        line, kind = f"{self.platform} refused {call}: {shown}.", self._find_kind(code, status)
        hint = self.hints.get(code, "") if code or (code == 0 and kind is AccessDenied) else ""
        if status == LIMITED or kind is RateLimited:
            return RateLimited(f"{self.platform} asks to wait before {call}.", seconds=self._read_wait(reply))
        if status in _GOOD and not own:
            return PlatformUnavailable(f"The response to {call} is not from {self.platform}.")
        if own and kind in {AccessDenied, PlatformUnavailable}:
            seconds = LOCKED_OUT_SECONDS if kind is AccessDenied else self.pause_seconds
            return kind(line, hint=hint, seconds=seconds)
        if not own or status >= _BROKEN:
            wait = not own and _BAD_REQUEST <= status < _BROKEN and status != _TIMED_OUT
            return PlatformUnavailable(line, seconds=RETRY_SECONDS if wait else None)
        error = kind(line, hint=hint)
        if isinstance(error, RequestRefused):
            error.code = code
        return error

    def _is_done(self, reply: Reply) -> bool:
        if self.ok_field:
            return reply.status in _GOOD and reply.field(self.ok_field) is True
        return reply.status == _EMPTY or (reply.status in _GOOD and isinstance(reply.body, Mapping | list))

    def _read_code(self, reply: Reply) -> str | int | None:
        code = reply.field(self.code_field)
        if self.ok_field and reply.field(self.ok_field) is not False:
            return None
        if isinstance(code, str):
            return code if _CODE.fullmatch(code) else None
        return code if isinstance(code, int) and not isinstance(code, bool) else None

    def _find_kind(self, code: str | int | None, status: int) -> type[PlatformError]:
        if code is not None and (kind := self.kinds.get(code)):
            return kind
        if self.unfit and isinstance(code, str) and code.startswith(self.unfit):
            return ContentRefused
        return AccessDenied if status == _LOCKED_OUT else self.by_status.get(status, self.otherwise)

    def _read_wait(self, reply: Reply) -> float:
        is_own = isinstance(reply.body, Mapping)
        header_values = (reply.headers[name] for name in self.wait_headers if name in reply.headers)
        seconds = reply.field("retry_after")
        wait = seconds if seconds is not None else next(header_values, None)
        return parse_seconds(wait, self.wait_seconds if is_own else self.banned_seconds)


def parse_seconds(text: Any, otherwise: float) -> float:
    """Return seconds within an hour; `otherwise` if they cannot be parsed."""
    try:
        seconds = float(text)
    except (TypeError, ValueError):
        return otherwise
    return min(max(seconds, 0.0), MAX_WAIT_SECONDS) if math.isfinite(seconds) else otherwise


class Clock(Protocol):
    now: Callable[[], float]
    sleep: Callable[[float], Awaitable[object]]


ObserveCall = Callable[[object, str, float], None]
"""Receives each try of a call: its name, outcome and seconds, including the wait for its turn."""


def ignore_call(name: object, outcome: str, seconds: float) -> None:
    del name, outcome, seconds


class ApiClient:
    """Calls the API of one platform as one account."""

    def __init__(
        self, session: aiohttp.ClientSession, api: Api, pacing: Pacing, observe: ObserveCall = ignore_call
    ) -> None:
        self.session, self.api, self.pacing, self._observe = session, api, pacing, observe

    def with_token(self, token: str) -> Self:
        """Return a client for another account."""
        api = replace(self.api, authorization=f"Bearer {token}")
        return type(self)(self.session, api, self.pacing, self._observe)

    async def __call__(self, route: Route, body: Any = None, **options: Any) -> Any:
        """Make a call and return its JSON; None if it has none. Raises `PlatformError`.

        `options`: `query`, `patience`, and values in the route's path by name.
        """
        return (await self.request(route, body, **options)).body

    async def request(
        self, route: Route, body: Any = None, *, query: Ids | None = None, patience: float = PATIENCE, **ids: str
    ) -> Reply:
        """Make a call and return its reply with status and headers. Raises `PlatformError`."""

        async def attempt(seconds: float) -> Reply:
            turn, reply = await self.pacing.turn(route, ids, patience=seconds), None
            try:
                reply = await self._send(route, ids, body, query)
            finally:
                self.pacing.done(turn, route, ids, reply)
            error = self.api.explain(route, reply)
            if isinstance(error, RateLimited):
                self.pacing.hold(route, ids, error.seconds or self.api.wait_seconds, reply)
            if isinstance(error, AccessDenied) and not route.authorized:
                error = PlatformUnavailable(str(error), seconds=RETRY_SECONDS)  # the call did not use our token
            if error:
                raise error
            return reply

        return await retry_call(
            attempt, route, self.pacing, patience=patience, repeatable=route.repeatable, observe=self._observe
        )

    async def _send(self, route: Route, ids: Ids, body: Any, query: Ids | None) -> Reply:
        values = {name: quote(value, safe=self.api.safe) for name, value in ids.items()}
        headers = dict(self.api.headers)
        if route.authorized:
            headers["Authorization"] = self.api.authorization
        data, kind = _encode(body, form=self.api.form)
        if kind:
            headers["Content-Type"] = kind
        return await send(
            self.session,
            self.api.platform,
            route,
            self.api.url + route.path.format_map(values),
            headers=headers,
            params=query,
            data=data,
        )


@asynccontextmanager
async def open_session() -> AsyncIterator[aiohttp.ClientSession]:
    """Open a session that keeps connections but no cookies."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield session


async def send(session: aiohttp.ClientSession, platform: str, route: Route, url: str, **options: Any) -> Reply:
    """Send a request once and return the reply, whatever its status. Raises `PlatformUnavailable` if none arrives."""
    with explain_lost_connection(platform, route):
        async with session.request(route.method, url, timeout=_TIMEOUT, allow_redirects=False, **options) as response:
            data = await response.read()
    try:
        body = json.loads(data)
    except ValueError:
        body = None
    return Reply(response.status, response.headers, body, data)


async def call_or_log(call: Awaitable[T], failure: str) -> T | None:
    """Return the outcome of a call; None if it failed, which is logged."""
    try:
        return await call
    except PlatformError as error:
        log.warning(failure, extra={"cause": str(error)})
        return None


def _encode(body: Any, *, form: bool) -> tuple[Any, str]:
    """Return an encoded body and its type without a charset, which Discord refuses."""
    if body is None:
        return None, ""
    if form and not any(isinstance(value, Mapping | list | tuple) for value in body.values()):
        return {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in body.items()}, ""
    return json.dumps(body).encode(), "application/json"


async def retry_call(
    attempt: Callable[[float], Awaitable[T]],
    name: object,
    clock: Clock,
    *,
    patience: float,
    repeatable: bool,
    observe: ObserveCall = ignore_call,
) -> T:
    """Make a call. Within `patience` seconds, repeat it if it had no effect or may be done twice.

    `attempt` receives the seconds that it may wait for its turn. Raises `PlatformError`. After a `PlatformUnavailable`
    with `seconds`, the call had no effect; after one without it, the call may have succeeded.
    """
    waited, doubtful = 0.0, False
    for tries_left in reversed(range(_TRIES)):
        started = clock.now()
        try:
            return await _observe_try(lambda: attempt(max(patience - waited, 0.0)), name, clock, observe)  # noqa: B023
        except (Busy, PlatformUnavailable) as error:
            waited += clock.now() - started
            failed = error if isinstance(error, PlatformUnavailable) else _too_busy(name, error)
            doubtful = doubtful or failed.seconds is None
            pause = RETRY_SECONDS if failed.seconds is None else failed.seconds
            if not tries_left or pause > patience - waited or (failed.seconds is None and not repeatable):
                raise failed.doubted() if doubtful else failed from error.__cause__
            await clock.sleep(pause)
    raise AssertionError


async def _observe_try(attempt: Callable[[], Awaitable[T]], name: object, clock: Clock, observe: ObserveCall) -> T:
    started, outcome = clock.now(), "stopped"
    try:
        done = await attempt()
        outcome = "done"
    except Busy:
        outcome = "busy"
        raise
    except PlatformError as error:
        outcome = error.kind
        raise
    finally:
        observe(name, outcome, clock.now() - started)
    return done


def _too_busy(name: object, error: Busy) -> PlatformUnavailable:
    return PlatformUnavailable(f"Too many calls are waiting for {name}.", seconds=error.seconds)


@contextmanager
def explain_lost_connection(platform: str, name: object) -> Iterator[None]:
    """Raise `PlatformUnavailable` for connection errors. It has `seconds` only if certainly nothing was sent."""
    try:
        yield
    except aiohttp.ClientConnectorError as error:
        raise PlatformUnavailable(f"{platform} cannot be reached for {name}.", seconds=UNREACHED_SECONDS) from error
    except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
        raise PlatformUnavailable(f"{platform} does not answer {name}.") from error


@dataclass(frozen=True, slots=True)
class SentMessage:
    id: str
    empty: bool = False
    """Whether it is still empty, to be edited once its id is stored, because it cannot be found again."""


async def show_pages(
    pages: Sequence[T],
    posted: PostedMessages,
    *,
    edit: Callable[[int, str, T], Awaitable[object]],
    post: Callable[[int, str, T], Awaitable[SentMessage]],
    delete: Callable[[int, str], Awaitable[object]],
) -> PostedMessages:
    """Make posted messages show `pages`: edit existing ones, post missing ones, delete the rest.

    If a message cannot be edited, its page and all after it are posted again, to keep the order; `post` receives the
    message that it replaces. Raises `PlatformUnavailable`, without `seconds` once something was posted.
    """
    shown, replaced = list[str](), list[tuple[int, str]]()
    try:
        for number, page in enumerate(pages):
            current = posted.messages[number] if number < len(posted.messages) else ""
            if current and not replaced and await _is_edited(edit(number, current, page)):
                shown.append(current)
                continue
            replaced += [(number, current)] if current else []
            sent = await post(number, current, page)
            shown.append(sent.id)
            if sent.empty:
                return PostedMessages((*shown, *posted.messages[number + 1 :]), begun=True)
        for number, message in (*replaced, *list(enumerate(posted.messages))[len(pages) :]):
            await delete(number, message)
    except PlatformUnavailable as error:
        raise error.doubted() if set(shown) - set(posted.messages) else error from error
    return PostedMessages(tuple(shown))


async def _is_edited(edit: Awaitable[object]) -> bool:
    try:
        await edit
    except EditRefused:
        return False
    return True


async def post_once(
    pages: Sequence[T],
    post: Callable[[int, T], Awaitable[str]],
    find: Callable[[int], Awaitable[Sequence[str]]],
) -> PostedMessages:
    """Post pages in order. Raises `PlatformUnavailable`.

    If the response to a post is lost, look for the post instead of repeating it. `find` returns the ids of a page's
    post; empty if it was not posted.
    """
    sent = list[str]()
    for number, page in enumerate(pages):
        try:
            sent.append(await post(number, page))
        except PlatformUnavailable as error:
            existing = () if error.seconds is not None else await find(number)
            if not existing:
                raise error.doubted() if sent else error from error
            sent += existing
    return PostedMessages(tuple(sent))
