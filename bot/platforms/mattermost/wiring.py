"""Compose Mattermost: identity, routing of events, actions and socket."""

import logging
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

from bot.app import App
from bot.desk.answer_actions import AnswerActions
from bot.desk.channel_command import ChannelCommand
from bot.desk.desk import Desk
from bot.desk.platform_port import AccessDenied, Platform
from bot.desk.supervisor import Clock, TaskSupervisor
from bot.platforms.mattermost import MattermostSettings, events
from bot.platforms.mattermost.actions import PATH, MattermostActions, MattermostCallback
from bot.platforms.mattermost.client import ME, MY_TEAMS, build_pacing, open_api
from bot.platforms.mattermost.directory import MattermostDirectory, list_channels, select_teams
from bot.platforms.mattermost.events import MattermostBotIdentity
from bot.platforms.mattermost.intake import MattermostHistoryReader, MattermostIntake
from bot.platforms.mattermost.messages import Callback
from bot.platforms.mattermost.platform import DirectMessages, MattermostPlatform
from bot.platforms.mattermost.transport import MattermostSocket
from bot.platforms.shared.api_client import ApiClient
from bot.platforms.shared.catch_up import CatchUpRun, ResumeMarker
from bot.platforms.shared.payload_text import Json
from bot.platforms.shared.platform_connection import OpenedPlatform
from bot.settings.live.channel_names import NamedChannel
from bot.settings.tables.settings_tables import Settings

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class MattermostRouter:
    """Passes events to the parts that handle them."""

    us: MattermostBotIdentity
    intake: MattermostIntake
    actions: MattermostActions

    async def hear(self, frame: Json) -> None:
        """Handle an event. Raises nothing: failures are logged."""
        try:
            await self._handle(events.parse_event(frame, self.us))
        except Exception as error:  # noqa: BLE001 - no error may stop later events
            facts = {"event": str(frame.get("event")), "cause": f"{type(error).__name__}: {error}"}
            log.error("handling a Mattermost event failed", extra=facts)  # noqa: TRY400

    async def _handle(self, event: events.MattermostEvent | None) -> None:
        match event:
            case events.PostWritten():
                await self.intake.take(event)
            case events.PostEdited():
                await self.intake.edit(event)
            case events.PostDeleted():
                await self.intake.delete(event)
            case events.Invited():
                await self.intake.welcome(event)
            case events.ChannelChanged():
                self.intake.directory.forget(event.channel)
            case events.Reacted():
                await self.actions.react(event)


@asynccontextmanager
async def open_client(
    app: App, desk: Desk, call: ApiClient, clock: Clock | None = None
) -> AsyncIterator[OpenedPlatform]:
    """Open Mattermost as the desk's platform. Raises `PlatformError`, `StorageError`."""
    settings, platforms, tasks = MattermostSettings.read_from(app.settings), dict[str, Platform](), TaskSupervisor()
    clock, token = clock or Clock(), settings.token.get_secret_value()
    us = await _load_identity(call, settings.teams)
    directory = MattermostDirectory(call, us, app, call.pacing.now)
    # The secret that signs buttons is valid as long as the token, and reveals nothing of it.
    secret = sha256(f"footnote buttons\n{token}".encode()).digest()
    callback = Callback(settings.callback_url + PATH, secret) if settings.callback_url else None
    direct_messages, deleted = DirectMessages(call, directory, callback, app.settings.zone), deque[str](maxlen=1_000)
    command = ChannelCommand(app, lambda by: by.user_id in directory.settings.admins)
    acting = AnswerActions(app, platforms)
    actions = MattermostActions(app, desk, acting, call, us, directory, direct_messages, command)
    intake = MattermostIntake(app, desk, us, directory, tasks, actions.run, deleted)
    archive = MattermostHistoryReader(call, us, intake)
    marker, now = ResumeMarker(app.settings.home, "mattermost"), lambda: clock.now().timestamp()
    catch_up = CatchUpRun(archive, app.queue, desk, marker, now, call.pacing.sleep)
    socket = MattermostSocket(
        call.session,
        settings.url,
        token,
        MattermostRouter(us, intake, actions).hear,
        tasks,
        catch_up.run,
        await catch_up.since(),
        clock,
        partial(call, ME),
    )
    platform = platforms["mattermost"] = MattermostPlatform(
        call,
        us,
        directory,
        tasks,
        direct_messages,
        deleted,
        connected=socket.connected,
        ready=socket.ready,
        refused=socket.refused,
        callback=callback,
        now=now,
        zone=app.settings.zone,
    )
    routes = MattermostCallback(actions, directory, callback, tasks).routes if callback else ()

    async def channels(wanted: Settings) -> tuple[NamedChannel, ...]:
        return await list_channels(call, select_teams(us.teams, MattermostSettings.read_from(wanted).teams))

    try:
        yield OpenedPlatform(platform, routes, channels, platform.refused)
    finally:
        await directory.close()


async def _load_identity(call: ApiClient, wanted: tuple[str, ...]) -> MattermostBotIdentity:
    try:
        me, listed = await call(ME), await call(MY_TEAMS)
    except AccessDenied as error:
        raise error.for_good() from error
    teams = {str(team["id"]): str(team["name"]) for team in listed}
    if missing := [team for team in wanted if team not in {*teams, *teams.values()}]:
        log.warning("the bot is not in these teams of [mattermost] teams: %s", ", ".join(missing))
    return MattermostBotIdentity(str(me["id"]), str(me["username"]), teams)


@asynccontextmanager
async def open_mattermost(app: App, desk: Desk) -> AsyncIterator[OpenedPlatform]:
    """Open the configured server. Raises `PlatformError`, `StorageError`."""
    settings = MattermostSettings.read_from(app.settings)
    pacing, observe = build_pacing(settings.calls_per_second), partial(app.observe_call, "mattermost")
    async with (
        open_api(settings.token.get_secret_value(), settings.url, pacing, observe) as call,
        open_client(app, desk, call) as opened,
    ):
        yield opened
