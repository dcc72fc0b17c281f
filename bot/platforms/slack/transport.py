"""Receive Slack's events over a socket that we open, or by signed requests that Slack makes.

A socket that is silent for too long is reopened.
"""

import asyncio
import hashlib
import hmac
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from slack_bolt.adapter.socket_mode.async_handler import AsyncSocketModeHandler
from slack_bolt.adapter.starlette.async_handler import to_async_bolt_request, to_starlette_response
from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse
from slack_sdk.socket_mode.aiohttp import SocketModeClient
from slack_sdk.socket_mode.async_client import AsyncBaseSocketModeClient
from slack_sdk.socket_mode.request import SocketModeRequest
from slack_sdk.web.async_client import AsyncWebClient
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from bot.desk.platform_port import AccessDenied, PlatformUnavailable
from bot.desk.supervisor import TaskSupervisor, cancel_tasks
from bot.platforms.shared.catch_up import StartCatchUp
from bot.platforms.shared.payload_text import Json
from bot.platforms.slack import events
from bot.platforms.slack.actions import SlackActions, SlackNotices, parse_press
from bot.platforms.slack.client import OPEN_SOCKET, SlackApiClient
from bot.platforms.slack.intake import CONFIGURE_COMMAND, SlackIntake, parse_invocation

log = logging.getLogger(__name__)

SIGNATURE_AGE_SECONDS = 300
"""Greatest difference between a request's time and ours: an older request may be a replay."""


def is_signed_by_slack(secret: str, body: bytes, headers: Mapping[str, str], now: float) -> bool:
    """Return whether a request was signed with our secret recently."""
    moment, signature = headers.get("x-slack-request-timestamp", ""), headers.get("x-slack-signature", "")
    if not secret or not re.fullmatch(r"[0-9]{1,12}", moment) or abs(now - int(moment)) > SIGNATURE_AGE_SECONDS:
        return False
    digest = hmac.new(secret.encode(), b"v0:" + moment.encode() + b":" + body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(f"v0={digest}".encode(), signature.encode("utf-8", "replace"))


DEAF_SECONDS = 240.0  # of silence before a socket is reopened
LOST_SECONDS = 300.0  # of silence before a new connection, after which Slack has dropped events
CHECK_SECONDS = 15.0


class ReconnectingSocket(Protocol):
    """The part of a Socket Mode client that `watch_socket` uses."""

    closed: bool

    async def connect_to_new_endpoint(self, force: bool = False) -> None:  # noqa: FBT001, FBT002 - the SDK's signature
        ...


class SocketWatch:
    """Notes when a socket last received a message. Times are seconds of a monotonic clock."""

    def __init__(
        self, now: Callable[[], float] = time.monotonic, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        self._now, self.sleep = now, sleep
        self._last = self._tried = now()
        self.greeted = False
        """Whether Slack has greeted us."""

    def heard(self, *, greeting: bool) -> float:
        """Note that a message arrived. Return the seconds of a long silence that a reconnection ended, otherwise 0."""
        now = self._now()
        silence = now - self._last if greeting and self.greeted else 0.0
        self.greeted = self.greeted or greeting
        self._last = self._tried = now
        return silence if silence > LOST_SECONDS else 0.0

    def deaf(self) -> bool:
        """Return whether the socket has been silent for too long, and was not reopened in that time."""
        return self._now() - max(self._last, self._tried) >= DEAF_SECONDS

    def tried(self) -> None:
        self._tried = self._now()


async def watch_socket(hearing: SocketWatch, socket: ReconnectingSocket) -> None:
    """Reopen the socket whenever it is silent for too long, until cancelled or closed."""
    while not socket.closed:
        await hearing.sleep(CHECK_SECONDS)
        if not hearing.deaf() or socket.closed:
            continue
        hearing.tried()
        log.info("socket to Slack is silent; reopening")
        try:
            await socket.connect_to_new_endpoint(force=True)
        except Exception as error:  # noqa: BLE001 - any error leads to a retry
            log.warning("reopening the socket failed", extra={"cause": str(error)})


PATH = "/slack/events"  # where Slack sends events, commands and pressed buttons
PING_SECONDS = 10.0
LAST_SECONDS = 3.0  # for events in progress when the socket is closed
AGAIN_SECONDS = 5.0


class HttpTransport:
    """Receives events as signed requests from Slack."""

    def __init__(
        self,
        app: AsyncApp,
        secret: str,
        tasks: TaskSupervisor,
        catch_up: StartCatchUp,
        since: float | None,
        *,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._app, self._secret, self._tasks = app, secret, tasks
        self._catch_up, self._since, self._now, self._reason = catch_up, since, now, ""
        self.routes: tuple[BaseRoute, ...] = (Route(PATH, self._receive, methods=["POST"]),)

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """Catch up with missed questions within the block.

        No connection is opened: the HTTP server passes Slack's requests on.
        """
        async with self._tasks.kept():
            self._tasks.spawn(self._catch_up(self._since))
            yield

    def ready(self) -> str:
        return self._reason

    def end(self, why: str) -> None:
        self._reason = self._reason or why

    async def _receive(self, request: Request) -> Response:
        body = await request.body()
        if not is_signed_by_slack(self._secret, body, request.headers, self._now()):
            log.warning("rejected a request that is not from Slack")
            return Response(status_code=401)
        try:
            taken = to_async_bolt_request(request, body)
        except Exception:  # noqa: BLE001 - bolt may raise anything on a malformed body
            return Response(status_code=400)
        return to_starlette_response(await self._app.async_dispatch(taken))


class SocketTransport:
    """Receives events over a socket that we open, and reopen when it is silent."""

    def __init__(
        self,
        app: AsyncApp,
        call: SlackApiClient,
        token: str,
        tasks: TaskSupervisor,
        catch_up: StartCatchUp,
        since: float | None,
        *,
        hearing: SocketWatch | None = None,
        ping_seconds: float = PING_SECONDS,
    ) -> None:
        self._app, self._call, self._token, self._tasks = app, call, token, tasks
        self._catch_up, self._since = catch_up, since
        self._watch, self._ping, self._reason = hearing or SocketWatch(), ping_seconds, ""
        self._client: SocketModeClient | None = None
        self._in_flight, self._closing = set[asyncio.Task[Any] | None](), False
        self.routes: tuple[BaseRoute, ...] = ()

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[None]:
        """Keep a socket open within the block. Raises `PlatformError`."""
        address = await self._request_url()
        handler = AsyncSocketModeHandler(self._app, self._token, ping_interval=self._ping)
        client = self._client = handler.client
        client.wss_uri = address
        client.socket_mode_request_listeners[:] = [partial(self._take, handler)]
        client.message_listeners.append(self._note_message)
        async with self._tasks.kept():
            self._tasks.spawn(self._catch_up(self._since))
            connecting = self._tasks.spawn(self._connect(client))
            watch = self._tasks.spawn(watch_socket(self._watch, client))
            try:
                yield
            finally:
                watch.cancel()
                connecting.cancel()
                await self._close(client)

    def ready(self) -> str:
        session = self._client.current_session if self._client else None
        is_open = session is not None and not session.closed and self._watch.greeted
        return self._reason or ("" if is_open else "The socket to Slack is not open.")

    def end(self, why: str) -> None:
        if not self._reason:
            self._reason = why
            log.error("disconnected by Slack: %s", why)
            if self._client:
                self._tasks.spawn(_close_client(self._client))

    async def _request_url(self) -> str | None:
        try:
            return str((await self._call.with_token(self._token)(OPEN_SOCKET))["url"])
        except AccessDenied as error:
            raise error.for_good() from error
        except PlatformUnavailable as error:
            log.warning("cannot reach Slack; retrying", extra={"cause": str(error)})
            return None

    async def _connect(self, client: SocketModeClient) -> None:
        while client.wss_uri is None:
            await self._watch.sleep(AGAIN_SECONDS)
            client.wss_uri = await self._request_url()
        await client.connect()  # type: ignore[no-untyped-call]

    async def _take(
        self, handler: AsyncSocketModeHandler, client: AsyncBaseSocketModeClient, request: SocketModeRequest
    ) -> None:
        if self._closing:
            return
        task = asyncio.current_task()
        self._in_flight.add(task)
        try:
            await handler.handle(client, request)  # type: ignore[arg-type]
        except ConnectionError:
            log.info("event handled but not acknowledged; Slack will resend")
        finally:
            self._in_flight.discard(task)

    async def _note_message(self, _: AsyncBaseSocketModeClient, message: dict[str, object], __: str | None) -> None:
        """Note a message; after a long silence, start a catch-up."""
        if lost := self._watch.heard(greeting=message.get("type") == "hello"):
            self._tasks.spawn(self._catch_up(time.time() - lost))

    async def _close(self, client: SocketModeClient) -> None:
        """Finish events in progress, then close; Slack resends later ones."""
        self._closing = True
        if intake := set(filter(None, self._in_flight)):
            _, late = await asyncio.wait(intake, timeout=LAST_SECONDS)
            await cancel_tasks(late)
        await _close_client(client)


async def _close_client(client: SocketModeClient) -> None:
    """Close a client. Its own tasks are cancelled first, because they would still write to the socket."""
    client.closed, client.auto_reconnect_enabled = True, False
    await cancel_tasks(
        filter(None, (client.message_processor, client.current_session_monitor, client.message_receiver))
    )
    await client.close()  # type: ignore[no-untyped-call]


SlackTransport = HttpTransport | SocketTransport

LOGGER = "slack_bolt.footnote"
BROKEN = 500
ANY = re.compile("")  # bolt passes on everything; our parsers decide


@dataclass(slots=True)
class SlackRouter:
    """Bolt's listeners for one workspace. If a listener raises, its event is not acknowledged, and Slack resends it."""

    us: events.SlackBotIdentity
    intake: SlackIntake
    actions: SlackActions
    notices: SlackNotices
    tasks: TaskSupervisor
    line: SlackTransport | None = None  # ends when the workspace disconnects the bot

    def register(self, slack: AsyncApp) -> None:
        slack.event(ANY)(self.on_event)
        slack.command(ANY)(self.on_command)
        slack.shortcut(ANY)(self.on_shortcut)
        slack.action(ANY)(self.on_action)
        slack.view(ANY)(self.on_comment)

    async def on_event(self, body: Json) -> None:
        """Handle an event. Raises `StorageError` if Slack must resend it."""
        match events.parse_event(body, self.us):
            case events.SlackMessagePosted() as written:
                await self.intake.take(written)
            case events.SlackMessageEdited() as rewritten:
                await self.intake.edit(rewritten)
            case events.SlackMessageDeleted() as erased:
                await self.intake.delete(erased)
            case events.StopRequested() as halted:
                await self.intake.stop(halted)
            case events.AssistantOpened() as opened:
                answer = self.notices.publish_home if opened.home else self.notices.suggest
                self.tasks.spawn(answer(opened))
            case events.Invited() as invited:
                await self.intake.welcome(invited)
            case events.ChannelChanged() as changed:
                self.intake.directory.forget(changed.channel)
            case events.WorkspaceDisconnected(why=why) if self.line:
                self.line.end(why)

    async def on_command(self, body: Json, ack: AsyncAck) -> None:
        """Accept the question of `/ask` or `/check`, or explain the usage; answer `/footnote`."""
        invocation = parse_invocation(body, self.us)
        if invocation and invocation.text:
            words = self.intake.render_wait(await self.intake.take_invoked(invocation))
            await (ack(words, response_type="ephemeral") if words else ack())
        elif invocation:
            await ack(await self.notices.usage(invocation), response_type="ephemeral")
        elif body["command"] == CONFIGURE_COMMAND:
            await ack(await self.notices.configure(body), response_type="ephemeral")
        else:
            await ack()

    async def on_shortcut(self, body: Json, ack: AsyncAck) -> None:
        """Accept the message to check."""
        if invocation := parse_invocation(body, self.us):
            await self.intake.take_invoked(invocation)
        await ack()

    async def on_action(self, body: Json, ack: AsyncAck) -> None:
        """Perform a button's action, and acknowledge it after a short wait even if the action still runs."""
        if button_press := parse_press(body):
            await self.tasks.wait_briefly(self.actions.press(button_press))
        await ack()

    async def on_comment(self, body: Json, ack: AsyncAck) -> None:
        """Store a comment and show the outcome in its modal."""
        view = await self.actions.comment(body)
        await (ack(response_action="update", view=dict(view)) if view else ack())


def build_bolt_app(us: events.SlackBotIdentity, api_url: str) -> AsyncApp:
    """Return bolt's app. It makes no calls, so it gets no token."""
    logger = logging.getLogger(LOGGER)
    # Its lower levels log messages' content; its warnings are about tokens and listeners that we set differently.
    logger.setLevel(logging.ERROR)

    async def authorize() -> AuthorizeResult:
        return AuthorizeResult(enterprise_id=us.enterprise or None, team_id=us.team, bot_user_id=us.user)

    app = AsyncApp(
        logger=logger,
        name=LOGGER,  # of the loggers that bolt gives our listeners: it sets their level to that of ours
        client=AsyncWebClient(base_url=api_url, logger=logger),
        authorize=authorize,
        # Slack gets its acknowledgement once a listener has stored the question.
        process_before_response=True,
        # `transport` verifies requests, and `events` ignores our own: bolt would log their content.
        request_verification_enabled=False,
        ignoring_self_events_enabled=False,
    )

    @app.error
    async def report(error: Exception) -> BoltResponse:
        """Log a failed event without its content."""
        cause = f"{type(error).__name__}: {error}"
        log.error("handling a Slack event failed", extra={"cause": cause})
        return BoltResponse(status=BROKEN, body="")

    return app
