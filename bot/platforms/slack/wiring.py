"""Compose a workspace of Slack: identity, routing of events, actions and transport."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

from starlette.routing import BaseRoute

from bot.app import App
from bot.desk.answer_actions import AnswerActions
from bot.desk.channel_command import ChannelCommand
from bot.desk.desk import Desk
from bot.desk.platform_port import AccessDenied, Platform
from bot.desk.supervisor import TaskSupervisor
from bot.platforms.shared.catch_up import CatchUpRun, ResumeMarker
from bot.platforms.shared.platform_connection import OpenedPlatform
from bot.platforms.slack import SlackSettings, events
from bot.platforms.slack.actions import SlackActions, SlackNotices
from bot.platforms.slack.client import WHO_WE_ARE, SlackApiClient, open_api
from bot.platforms.slack.directory import SlackDirectory, list_channels
from bot.platforms.slack.intake import SlackHistoryReader, SlackIntake
from bot.platforms.slack.platform import ProgressSigns, SlackPlatform
from bot.platforms.slack.transport import (
    HttpTransport,
    SlackRouter,
    SlackTransport,
    SocketTransport,
    SocketWatch,
    build_bolt_app,
)
from bot.settings.live.channel_names import NamedChannel
from bot.settings.tables.settings_tables import Settings


@asynccontextmanager
async def open_workspace(
    app: App, desk: Desk, call: SlackApiClient, hearing: SocketWatch | None = None
) -> AsyncIterator[tuple[Platform, tuple[BaseRoute, ...]]]:
    """Open a workspace as the desk's platform, with its HTTP routes. Raises `PlatformError`, `StorageError`."""
    zone, settings, platforms = app.settings.zone, SlackSettings.read_from(app.settings), dict[str, Platform]()
    us, tasks = await _load_identity(call), TaskSupervisor()
    directory = SlackDirectory(call, us, app)
    signs = ProgressSigns(call.pacing.now)
    intake = SlackIntake(app, desk, us, directory, tasks, signs.announce)
    archive, marker = SlackHistoryReader(call, us, intake), ResumeMarker(app.settings.home, "slack")
    catch_up = CatchUpRun(archive, app.queue, desk, marker, time.time, call.pacing.sleep)
    since = await catch_up.since()
    actions = SlackActions(desk, AnswerActions(app, platforms), call, directory, zone)
    notices = SlackNotices(
        app, call, directory, ChannelCommand(app, lambda by: by.user_id in SlackSettings.read_from(app.settings).admins)
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
        call, signs=signs, refresh_asker=directory.refresh_asker, connected=line.connected, ready=line.ready, zone=zone
    )
    try:
        yield platform, line.routes
    finally:
        await directory.close()


async def _load_identity(call: SlackApiClient) -> events.SlackBotIdentity:
    try:
        who = await call(WHO_WE_ARE)
    except AccessDenied as error:
        raise error.for_good() from error
    names = ("team_id", "user_id", "bot_id", "enterprise_id")
    team, user, bot_id, enterprise = (str(who.get(name) or "") for name in names)
    return events.SlackBotIdentity(team, user, bot_id, enterprise)


@asynccontextmanager
async def open_slack(app: App, desk: Desk) -> AsyncIterator[OpenedPlatform]:
    """Open the configured workspace. Raises `PlatformError`, `StorageError`."""
    settings = SlackSettings.read_from(app.settings)
    token, observe = settings.bot_token.get_secret_value(), partial(app.observe_call, "slack")
    async with open_api(token, settings.api_url, observe=observe) as call:

        async def channels(_: Settings) -> tuple[NamedChannel, ...]:
            return await list_channels(call)

        async with open_workspace(app, desk, call) as (platform, routes):
            yield OpenedPlatform(platform, routes, channels)
