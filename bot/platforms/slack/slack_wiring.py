"""Compose a workspace of Slack: who we are there, the routing of events, what answers, and the transport."""

import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from slack_bolt.async_app import AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.request.async_request import AsyncBoltRequest
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient
from starlette.routing import BaseRoute

from bot.access import Asker
from bot.desk.answer_actions import AnswerActions
from bot.desk.channel_settings import ChannelSettingsCommand
from bot.desk.desk import Desk
from bot.platforms.shared.catch_up import CatchUpRun, ResumeMarker
from bot.platforms.shared.platform_connection import OpenedPlatform
from bot.platforms.shared.platform_contract import Platform, PlatformError
from bot.platforms.slack import SlackSettings, read_slack_settings, slack_events
from bot.platforms.slack.slack_actions import SlackActions, parse_press
from bot.platforms.slack.slack_client import SlackAccessDenied, SlackApiClient, SlackRateLimit, build_web_client
from bot.platforms.slack.slack_events import (
    AssistantOpened,
    ChannelChanged,
    SlackBotIdentity,
    SlackInvocation,
    SlackMessageDeleted,
    SlackMessageEdited,
    SlackMessagePosted,
    StopRequested,
    WorkspaceDisconnected,
    is_direct,
)
from bot.platforms.slack.slack_intake import SlackArchive, SlackDirectory, SlackIntake
from bot.platforms.slack.slack_markup import escape_mrkdwn
from bot.platforms.slack.slack_platform import SlackPlatform
from bot.platforms.slack.slack_transport import (
    HttpTransport,
    SlackTransport,
    SocketTransport,
    SocketWatch,
    StartCatchUp,
)
from bot.server.supervisor import TaskSupervisor
from bot.views.catalog import translate
from bot.views.sanitize import WORD_JOINER
from bot.wiring import App
from storage.language.lazy_pattern import lazy_compile

_SETTINGS_PIECES = lazy_compile(r"slack:[A-Z0-9]+/(?P<person>[UW][A-Z0-9]{1,30})\b|`(?P<typed>/footnote [\w ]+)`")


def render_settings(text: str) -> str:
    """Return the answer to an admin, who alone sees it: a mention in it tells nobody anything."""
    return "".join(_render_pieces(text))


def _render_pieces(text: str) -> Iterator[str]:
    done = 0
    for found in _SETTINGS_PIECES.finditer(text):
        yield _separate_code(text[done : found.start()])
        yield f"<@{found['person']}>" if found["person"] else f"`{found['typed']}`"
        done = found.end()
    yield _separate_code(text[done:])


def _separate_code(text: str) -> str:
    """Return a text escaped; a joiner between code and the comma behind it would keep it from being code."""
    made = escape_mrkdwn(text)
    return made.lstrip(WORD_JOINER) if text[:1] in {",", "."} else made


log = logging.getLogger(__name__)


class SlackNotices:
    """Answers commands that ask nothing, and people who open a chat."""

    def __init__(self, call: SlackApiClient, places: SlackDirectory, configuring: ChannelSettingsCommand) -> None:
        self._call, self._places, self._configuring = call, places, configuring

    async def configure(self, command: Mapping[str, Any]) -> str:
        """Return the answer to `/footnote`, as mrkdwn."""
        channel, user = str(command.get("channel_id", "")), str(command.get("user_id", ""))
        by = await self._places.asker(channel, user, direct=is_direct(channel))
        language = await self._places.language(user)
        return render_settings(await self._configuring.answer(str(command.get("text") or ""), by, language or "en"))

    async def usage(self, invoked: SlackInvocation) -> str:
        language = await self._places.language(invoked.user)
        return escape_mrkdwn(translate(f"slack_{invoked.task}_usage", language or "en"))

    async def suggest(self, opened: AssistantOpened) -> None:
        """Suggest what one could begin with to somebody who opens the chat."""
        language = await self._places.language(opened.user) or "en"
        prompts = [
            {"title": translate("slack_prompt_who", language), "message": translate("slack_prompt_hello", language)}
        ]
        facts: dict[str, Any] = {
            "channel_id": opened.channel,
            "title": translate("slack_prompts", language),
            "prompts": prompts,
        }
        try:
            # Of an agent's chat no thread is named; Slack would leave them out.
            await self._call("assistant.threads.setSuggestedPrompts", **facts)
        except PlatformError as error:
            log.warning("nothing could be suggested", extra={"cause": str(error)})


Json = Mapping[str, Any]

LOGGER = "slack_bolt.footnote"
BROKEN = 500


@dataclass(slots=True)
class SlackRouter:
    """What listens to one workspace."""

    us: SlackBotIdentity
    taking: SlackIntake
    pressing: SlackActions
    answering: SlackNotices
    tasks: TaskSupervisor
    line: SlackTransport | None = None  # the way in which all this comes, which ends when the workspace lets us go

    async def hear(self, body: Json) -> Json | str:
        """Take in what Slack hands over, and return what it is answered. Raises where it must come once more."""
        if "event" in body:
            await self.event(body)
            return ""
        if "command" in body:
            return await self._commanded(body)
        match body.get("type"):
            case "message_action":
                await self._invoked(body)
            case "block_actions":
                if press := parse_press(body):
                    await self.tasks.soon(self.pressing.press(press))
            case "view_submission":
                view = await self.pressing.comment(body)
                return {"response_action": "update", "view": view} if view else ""
        return ""

    async def event(self, body: Json) -> None:
        """Do what an event means. Raises `StorageError` where it must come once more."""
        match slack_events.parse_event(body, self.us):
            case SlackMessagePosted() as written:
                await self.taking.take(written)
            case SlackMessageEdited() as rewritten:
                await self.taking.rewritten(rewritten)
            case SlackMessageDeleted() as erased:
                await self.taking.erased(erased)
            case StopRequested() as halted:
                await self.taking.halted(halted)
            case AssistantOpened() as opened:
                self.tasks.spawn(self.answering.suggest(opened))
            case ChannelChanged() as changed:
                self.taking.places.forget(changed.channel)
            case WorkspaceDisconnected(why=why) if self.line:
                self.line.end(why)

    async def _commanded(self, body: Json) -> Json | str:
        found = slack_events.parse_invocation(body, self.us)
        if found is None:
            return (
                _ephemeral_reply(await self.answering.configure(body))
                if body["command"] == slack_events.CONFIGURE_COMMAND
                else ""
            )
        if not found.text:
            return _ephemeral_reply(await self.answering.usage(found))
        await self.taking.take_invoked(found)
        return ""

    async def _invoked(self, body: Json) -> None:
        if found := slack_events.parse_invocation(body, self.us):
            await self.taking.take_invoked(found)


def build_bolt_app(us: SlackBotIdentity, api_url: str, hear: Callable[[Json], Awaitable[Json | str]]) -> AsyncApp:
    """Return bolt's app, which hands everything to us. It calls nothing, so it gets no token to call with."""
    logger = logging.getLogger(LOGGER)
    # Below warnings it says what people wrote; its warnings are of tokens that are given otherwise, and of listeners.
    logger.setLevel(logging.ERROR)

    async def authorize() -> AuthorizeResult:
        return AuthorizeResult(enterprise_id=us.enterprise or None, team_id=us.team, bot_user_id=us.user)

    app = AsyncApp(
        logger=logger,
        name="footnote",
        client=AsyncWebClient(base_url=api_url, logger=logger),
        authorize=authorize,
        # `transport` has verified requests, and `reading` ignores what is ours: bolt would log what they say.
        request_verification_enabled=False,
        ignoring_self_events_enabled=False,
    )

    async def accept(req: AsyncBoltRequest) -> BoltResponse:
        try:
            return _build_response(await hear(req.body))
        except Exception as error:  # noqa: BLE001 - whatever it is, Slack must not think that it arrived
            cause = f"{type(error).__name__}: {error}"
            logging.getLogger(__name__).error("something of Slack's was not taken in", extra={"cause": cause})  # noqa: TRY400
            return BoltResponse(status=BROKEN, body="")

    app.use(accept)
    return app


def _build_response(answer: Json | str) -> BoltResponse:
    return BoltResponse(status=200, body=answer if isinstance(answer, str) else dict(answer))


def _ephemeral_reply(text: str) -> Json:
    return {"response_type": "ephemeral", "text": text}


@asynccontextmanager
async def open_workspace(
    app: App, desk: Desk, call: SlackApiClient, hearing: SocketWatch | None = None
) -> AsyncIterator[tuple[Platform, tuple[BaseRoute, ...]]]:
    """Give a workspace as the desk sees it, and what of it the HTTP server serves.

    Args:
        app: What is opened.
        desk: What takes questions.
        call: The way to the workspace.
        hearing: What watches its socket, where it is not by the machine's clock.

    Raises:
        PlatformError: Slack refuses us, or cannot be reached.
        StorageError: What was taken last cannot be looked up.
    """
    settings, platforms = app.settings, dict[str, Platform]()
    us, tasks = await _build_identity(call), TaskSupervisor()
    places = SlackDirectory(call, us)
    taking = SlackIntake(app, desk, us, places, tasks)
    archive = SlackArchive(app.queue, call, us, taking)
    catching = CatchUpRun(archive, desk, ResumeMarker(settings.home, "slack"), time.time, call.pacing.sleep)
    since = await catching.since()
    pressing = SlackActions(desk, AnswerActions(app, platforms), call, places, settings.zone)
    answering = SlackNotices(
        call, places, ChannelSettingsCommand(app, lambda by: _load_identity(by) in read_slack_settings(settings).admins)
    )
    listening = SlackRouter(us, taking, pressing, answering, tasks)
    slack = build_bolt_app(us, read_slack_settings(settings).api_url, listening.hear)
    line = listening.line = _build_transport(
        read_slack_settings(settings), slack, call, tasks, catching.run, since, hearing
    )
    platform = platforms["slack"] = SlackPlatform(
        call, by_now=places.by_now, connected=line.connected, ready=line.ready, zone=settings.zone
    )
    try:
        yield platform, line.routes
    finally:
        await places.close()


def _load_identity(by: Asker) -> str:
    return f"{by.platform}:{by.workspace}/{by.user}"


async def _build_identity(call: SlackApiClient) -> SlackBotIdentity:
    try:
        who = await call("auth.test")
    except SlackAccessDenied as error:
        raise error.for_good() from error
    names = ("team_id", "user_id", "bot_id", "enterprise_id")
    team, user, bot_id, enterprise = (str(who.get(name) or "") for name in names)
    return SlackBotIdentity(team, user, bot_id, enterprise)


def _build_transport(
    settings: SlackSettings,
    slack: AsyncApp,
    call: SlackApiClient,
    tasks: TaskSupervisor,
    catch_up: StartCatchUp,
    since: float | None,
    hearing: SocketWatch | None,
) -> SlackTransport:
    if settings.mode == "http":
        return HttpTransport(slack, settings.signing_secret.get_secret_value(), tasks, catch_up, since)
    return SocketTransport(slack, call, settings.app_token.get_secret_value(), tasks, catch_up, since, hearing=hearing)


@asynccontextmanager
async def open_slack(app: App, desk: Desk) -> AsyncIterator[OpenedPlatform]:
    """Open the workspace of the settings.

    Raises:
        PlatformError: Slack refuses our token, or cannot be reached.
        StorageError: What was taken last cannot be looked up.
    """
    settings = read_slack_settings(app.settings)
    call = SlackApiClient(build_web_client(settings.bot_token.get_secret_value(), settings.api_url), SlackRateLimit())
    async with open_workspace(app, desk, call) as (platform, routes):
        yield OpenedPlatform(platform, routes)
