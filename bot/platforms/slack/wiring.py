"""Compose a workspace of Slack: who we are there, the routing of events, what answers, and the transport."""

import asyncio
import logging
import re
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from slack_bolt.async_app import AsyncAck, AsyncApp
from slack_bolt.authorization import AuthorizeResult
from slack_bolt.response import BoltResponse
from slack_sdk.web.async_client import AsyncWebClient
from starlette.routing import BaseRoute

from bot.answering.introduction import Introduction, load_introduction, render_introduction
from bot.app import App
from bot.desk.answer_actions import AnswerActions
from bot.desk.channel_command import ChannelCommand
from bot.desk.channel_settings import find_searchable_corpora
from bot.desk.desk import Desk
from bot.desk.platform_port import AccessDenied, Platform, PlatformError
from bot.desk.supervisor import TaskSupervisor
from bot.platforms.shared.catch_up import CatchUpRun, ResumeMarker
from bot.platforms.shared.payload_text import Json
from bot.platforms.shared.platform_connection import OpenedPlatform
from bot.platforms.slack import events, read_slack_settings
from bot.platforms.slack.actions import SlackActions, parse_press
from bot.platforms.slack.client import SlackApiClient, SlackRateLimit, open_web_client
from bot.platforms.slack.intake import SlackDirectory, SlackHistoryReader, SlackIntake, list_channels
from bot.platforms.slack.markup import escape_mrkdwn
from bot.platforms.slack.messages import build_home, render_plain
from bot.platforms.slack.platform import SlackPlatform
from bot.platforms.slack.transport import HttpTransport, SlackTransport, SocketTransport, SocketWatch
from bot.settings.live.channel_names import NamedChannel
from bot.settings.tables.settings_tables import Settings
from bot.views.catalog import translate
from bot.views.sanitize import WORD_JOINER
from bot.views.view_reducer import shorten_line
from storage.errors import StorageError
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


MAX_PROMPT = 75  # characters of a suggested prompt that are shown


class SlackNotices:
    """Answers commands that ask nothing, and people who open a chat or the App Home."""

    def __init__(self, app: App, call: SlackApiClient, directory: SlackDirectory, configuring: ChannelCommand) -> None:
        self._app, self._call, self._directory, self._configuring = app, call, directory, configuring

    async def configure(self, command: Mapping[str, Any]) -> str:
        """Return the answer to `/footnote`, as mrkdwn."""
        channel, user = str(command.get("channel_id", "")), str(command.get("user_id", ""))
        looking = self._directory.asker(channel, user, direct=events.is_direct(channel))
        by, language = await asyncio.gather(looking, self._directory.language(user))
        return render_settings(await self._configuring.answer(str(command.get("text") or ""), by, language or "en"))

    async def usage(self, invoked: events.SlackInvocation) -> str:
        language = await self._directory.language(invoked.user)
        return escape_mrkdwn(translate(f"slack_{invoked.task}_usage", language or "en"))

    async def suggest(self, opened: events.AssistantOpened) -> None:
        """Suggest what one could begin with to somebody who opens the chat."""
        try:
            found, language = await self._introduce(opened.channel, opened.user)
            questions = (translate("intro_question", language), *(render_plain(one.text) for one in found.questions))
            facts: dict[str, Any] = {
                "channel_id": opened.channel,
                "title": translate("slack_prompts", language),
                "prompts": [{"title": shorten_line(one, MAX_PROMPT), "message": one} for one in questions],
            }
            # Of an agent's chat no thread is named; Slack would leave them out.
            await self._call("assistant.threads.setSuggestedPrompts", **facts)
        except (PlatformError, StorageError) as error:
            log.warning("nothing could be suggested", extra={"cause": str(error)})

    async def publish_home(self, opened: events.AssistantOpened) -> None:
        """Show somebody who we are, what they may read, and what they could ask."""
        try:
            found, language = await self._introduce(opened.channel, opened.user)
            text = render_introduction(found, language, self._app.settings.zone)
            await self._call("views.publish", user_id=opened.user, view=build_home(text, self._app.settings.zone))
        except (PlatformError, StorageError) as error:
            log.warning("the App Home could not be shown", extra={"cause": str(error)})

    async def _introduce(self, channel: str, user: str) -> tuple[Introduction, str]:
        """Return our introduction for somebody's DM with us, and their language. Raises `StorageError`."""
        looking = self._directory.asker(channel, user, direct=True)
        by, spoken = await asyncio.gather(looking, self._directory.language(user))
        readable = await find_searchable_corpora(self._app, by)
        return await load_introduction(self._app.manifest, readable, spoken or "en"), spoken or "en"


LOGGER = "slack_bolt.footnote"
BROKEN = 500
ANY = re.compile("")  # what it is, its parser decides


@dataclass(slots=True)
class SlackRouter:
    """The listeners of one workspace, as bolt calls them. What one raises is not acknowledged, and comes once more."""

    us: events.SlackBotIdentity
    intake: SlackIntake
    actions: SlackActions
    notices: SlackNotices
    tasks: TaskSupervisor
    line: SlackTransport | None = None  # ends when the workspace lets us go

    def register(self, slack: AsyncApp) -> None:
        """Register every listener with bolt."""
        slack.event(ANY)(self.on_event)
        slack.command(ANY)(self.on_command)
        slack.shortcut(ANY)(self.on_shortcut)
        slack.action(ANY)(self.on_action)
        slack.view(ANY)(self.on_comment)

    async def on_event(self, body: Json) -> None:
        """Do what an event means. Raises `StorageError` where it must come once more."""
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
        """Take what `/ask` or `/check` asks; answer `/footnote`, and how to ask to whoever asks nothing."""
        found = events.parse_invocation(body, self.us)
        if found and found.text:
            words = self.intake.word_wait(await self.intake.take_invoked(found))
            await (ack(words, response_type="ephemeral") if words else ack())
        elif found:
            await ack(await self.notices.usage(found), response_type="ephemeral")
        elif body["command"] == events.CONFIGURE_COMMAND:
            await ack(await self.notices.configure(body), response_type="ephemeral")
        else:
            await ack()

    async def on_shortcut(self, body: Json, ack: AsyncAck) -> None:
        """Take the message that is to be checked."""
        if found := events.parse_invocation(body, self.us):
            await self.intake.take_invoked(found)
        await ack()

    async def on_action(self, body: Json, ack: AsyncAck) -> None:
        """Do what a button says, as far as Slack waits for it."""
        if press := parse_press(body):
            await self.tasks.wait_briefly(self.actions.press(press))
        await ack()

    async def on_comment(self, body: Json, ack: AsyncAck) -> None:
        """Keep a comment, and thank for it in its modal."""
        view = await self.actions.comment(body)
        await (ack(response_action="update", view=dict(view)) if view else ack())


def build_bolt_app(us: events.SlackBotIdentity, api_url: str) -> AsyncApp:
    """Return bolt's app. It calls nothing, so it gets no token to call with."""
    logger = logging.getLogger(LOGGER)
    # Below warnings it says what people wrote; its warnings are of tokens that are given otherwise, and of listeners.
    logger.setLevel(logging.ERROR)

    async def authorize() -> AuthorizeResult:
        return AuthorizeResult(enterprise_id=us.enterprise or None, team_id=us.team, bot_user_id=us.user)

    app = AsyncApp(
        logger=logger,
        name=LOGGER,  # of the loggers that bolt gives our listeners: it sets their level to that of ours
        client=AsyncWebClient(base_url=api_url, logger=logger),
        authorize=authorize,
        # Slack is answered once a listener has stored what it took.
        process_before_response=True,
        # `transport` verifies requests, and `events` ignores what is ours: bolt would log what they say.
        request_verification_enabled=False,
        ignoring_self_events_enabled=False,
    )

    @app.error
    async def report(error: Exception) -> BoltResponse:
        """Say what was not taken in, without what people wrote."""
        cause = f"{type(error).__name__}: {error}"
        log.error("something of Slack's was not taken in", extra={"cause": cause})
        return BoltResponse(status=BROKEN, body="")

    return app


@asynccontextmanager
async def open_workspace(
    app: App, desk: Desk, call: SlackApiClient, hearing: SocketWatch | None = None
) -> AsyncIterator[tuple[Platform, tuple[BaseRoute, ...]]]:
    """Give a workspace as the desk sees it, and what of it the HTTP server serves.

    Raises `PlatformError`, `StorageError`.
    """
    zone, settings, platforms = app.settings.zone, read_slack_settings(app.settings), dict[str, Platform]()
    us, tasks = await _load_identity(call), TaskSupervisor()
    directory = SlackDirectory(
        call, us, guests=lambda: read_slack_settings(app.settings).guests, readers=lambda: app.settings.readers
    )
    intake = SlackIntake(app, desk, us, directory, tasks)
    archive, marker = SlackHistoryReader(app.queue, call, us, intake), ResumeMarker(app.settings.home, "slack")
    catch_up = CatchUpRun(archive, desk, marker, time.time, call.pacing.sleep)
    since = await catch_up.since()
    actions = SlackActions(desk, AnswerActions(app, platforms), call, directory, zone)
    notices = SlackNotices(
        app, call, directory, ChannelCommand(app, lambda by: by.user_id in read_slack_settings(app.settings).admins)
    )
    router, slack = SlackRouter(us, intake, actions, notices, tasks), build_bolt_app(us, settings.api_url)
    router.register(slack)
    line: SlackTransport
    if settings.mode == "http":
        secret = settings.signing_secret.get_secret_value()
        line = router.line = HttpTransport(slack, secret, tasks, catch_up.run, since)
    else:
        token = settings.app_token.get_secret_value()
        line = router.line = SocketTransport(slack, call, token, tasks, catch_up.run, since, hearing=hearing)
    platform = platforms["slack"] = SlackPlatform(
        call, refresh_asker=directory.refresh_asker, connected=line.connected, ready=line.ready, zone=zone
    )
    intake.announce = platform.announce
    try:
        yield platform, line.routes
    finally:
        await directory.close()


async def _load_identity(call: SlackApiClient) -> events.SlackBotIdentity:
    try:
        who = await call("auth.test")
    except AccessDenied as error:
        raise error.for_good() from error
    names = ("team_id", "user_id", "bot_id", "enterprise_id")
    team, user, bot_id, enterprise = (str(who.get(name) or "") for name in names)
    return events.SlackBotIdentity(team, user, bot_id, enterprise)


@asynccontextmanager
async def open_slack(app: App, desk: Desk) -> AsyncIterator[OpenedPlatform]:
    """Open the workspace of the settings. Raises `PlatformError`, `StorageError`."""
    settings = read_slack_settings(app.settings)
    async with open_web_client(settings.bot_token.get_secret_value(), settings.api_url) as client:
        call = SlackApiClient(client, SlackRateLimit(), partial(app.observe_call, "slack"))

        async def channels(_: Settings) -> tuple[NamedChannel, ...]:
            return await list_channels(call, (await _load_identity(call)).team)

        async with open_workspace(app, desk, call) as (platform, routes):
            yield OpenedPlatform(platform, routes, channels)
