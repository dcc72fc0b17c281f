"""A workspace of Slack, composed: who we are there, what listens, what answers, and the way in which events arrive."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from slack_bolt.async_app import AsyncApp
from starlette.routing import BaseRoute

from bot.access import Asker
from bot.catching_up import CatchingUp
from bot.desk.answer_actions import AnswerActions
from bot.desk.channel_settings import ChannelSettingsCommand
from bot.desk.desk import Desk
from bot.gaps import Gaps
from bot.platform import Platform
from bot.server.supervisor import TaskSupervisor
from bot.settings.platform_settings import SlackSettings
from bot.slack.acting import Pressing
from bot.slack.answering import Answering
from bot.slack.archive import SlackArchive
from bot.slack.calling import Calling
from bot.slack.happening import Us
from bot.slack.listening import Listening, bolt
from bot.slack.places import Places
from bot.slack.platform import SlackPlatform
from bot.slack.refusals import NotLetIn
from bot.slack.taking import Taking
from bot.slack.transport import CatchUp, HttpLine, Line, SocketLine
from bot.slack.watching import Hearing
from bot.wiring import App


@asynccontextmanager
async def composed(
    app: App, desk: Desk, call: Calling, hearing: Hearing | None = None
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
    us, tasks = await _us(call), TaskSupervisor()
    places = Places(call, us)
    taking = Taking(app, desk, us, places, tasks)
    archive = SlackArchive(app.queue, call, us, taking)
    catching = CatchingUp(archive, desk, Gaps(settings.home, "slack"), time.time, call.pacing.sleep)
    since = await catching.since()
    pressing = Pressing(desk, AnswerActions(app, platforms), call, places, settings.zone)
    answering = Answering(call, places, ChannelSettingsCommand(app, lambda by: _named(by) in settings.slack.admins))
    listening = Listening(us, taking, pressing, answering, tasks)
    slack = bolt(us, settings.slack.api_url, listening.hear)
    line = listening.line = _line(settings.slack, slack, call, tasks, catching.run, since, hearing)
    platform = platforms["slack"] = SlackPlatform(
        call, by_now=places.by_now, connected=line.connected, ready=line.ready, zone=settings.zone
    )
    try:
        yield platform, line.routes
    finally:
        await places.close()


def _named(by: Asker) -> str:
    return f"{by.platform}:{by.workspace}/{by.user}"


async def _us(call: Calling) -> Us:
    try:
        who = await call("auth.test")
    except NotLetIn as error:
        raise error.for_good() from error
    names = ("team_id", "user_id", "bot_id", "enterprise_id")
    team, user, bot_id, enterprise = (str(who.get(name) or "") for name in names)
    return Us(team, user, bot_id, enterprise)


def _line(
    settings: SlackSettings,
    slack: AsyncApp,
    call: Calling,
    tasks: TaskSupervisor,
    catch_up: CatchUp,
    since: float | None,
    hearing: Hearing | None,
) -> Line:
    if settings.mode == "http":
        return HttpLine(slack, settings.signing_secret.get_secret_value(), tasks, catch_up, since)
    return SocketLine(slack, call, settings.app_token.get_secret_value(), tasks, catch_up, since, hearing=hearing)
