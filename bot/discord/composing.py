"""Discord, composed: who we are there, what listens, what answers, and the connection on which events arrive."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bot.catching_up import CatchingUp
from bot.desk.answer_actions import AnswerActions
from bot.desk.channel_settings import ChannelSettingsCommand, Cooldown
from bot.desk.desk import Desk
from bot.desk.jobs.ports import Clock
from bot.discord.acting import Pressing
from bot.discord.answering import Answering
from bot.discord.archive import DiscordArchive
from bot.discord.asking import Asking
from bot.discord.calling import Calling
from bot.discord.commands import definitions, same
from bot.discord.gateway import Gateway
from bot.discord.happening import Us
from bot.discord.listening import Listening
from bot.discord.places import Places
from bot.discord.platform import DiscordPlatform
from bot.discord.routes import APPLICATION, COMMANDS, ME, SET_COMMANDS
from bot.discord.taking import Outlet, Taking
from bot.gaps import Gaps
from bot.platform import Platform
from bot.server.supervisor import TaskSupervisor
from bot.wiring import App

log = logging.getLogger(__name__)


@asynccontextmanager
async def composed(app: App, desk: Desk, call: Calling, clock: Clock | None = None) -> AsyncIterator[DiscordPlatform]:
    """Give Discord as the desk sees it.

    Args:
        app: What is opened.
        desk: What takes questions.
        call: The way to Discord.
        clock: The date and what waits, where it is not the machine's.

    Raises:
        PlatformError: Discord refuses us, or cannot be reached.
        StorageError: What was taken last cannot be looked up.
    """
    settings, platforms, tasks = app.settings.discord, dict[str, Platform](), TaskSupervisor()
    clock = clock or Clock()
    us = await _us(call)
    await _synced(call, us, user_install=settings.user_install)
    places, answering = Places(call, settings), Answering(call)
    taking = Taking(app, desk, us, places, tasks, Cooldown(settings.cooldown_seconds, call.pacing.now))
    archive = DiscordArchive(app.queue, call, us, taking, settings.servers)
    gaps, now = Gaps(app.settings.home, "discord"), lambda: clock.now().timestamp()
    catching = CatchingUp(archive, desk, gaps, now, call.pacing.sleep)
    pressing = Pressing(desk, AnswerActions(app, platforms), answering, taking, app.settings.zone)
    # Discord itself lets only those use `/footnote` whom a server's admins let.
    configuring = ChannelSettingsCommand(app, lambda by: by.kind == "channel" and by.listed_server)
    asking = Asking(app, settings, taking)
    listening = Listening(us, settings, desk, taking, asking, pressing, answering, configuring)
    since = await catching.since()
    gateway = Gateway(settings, listening.hear, tasks, catching.run, since, clock)
    platform = DiscordPlatform(
        call,
        us,
        connected=gateway.connected,
        ready=gateway.ready,
        refused=gateway.refused,
        by_now=places.by_now,
        settled=answering.settled,
        now=now,
        zone=app.settings.zone,
    )
    taking.outlet = Outlet(platform.tell, platform.deleted_by_us)
    platforms["discord"] = platform
    try:
        yield platform
    finally:
        await places.close()


async def _us(call: Calling) -> Us:
    application, user = await call(APPLICATION), await call(ME)
    return Us(str(application["id"]), str(user["id"]))


async def _synced(call: Calling, us: Us, *, user_install: bool) -> None:
    """Have Discord know our commands. It is told only where something changed, for it lets nobody do so often."""
    wanted = definitions(user_install=user_install)
    known = await call(COMMANDS, query={"with_localizations": "true"}, application=us.application)
    if not same(wanted, known or ()):
        await call(SET_COMMANDS, wanted, application=us.application)
        log.info("Discord was told of our commands")
