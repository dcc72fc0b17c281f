"""Compose Discord: identity, routing of events and interactions, commands and gateway."""

import logging
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from bot.access import Asker
from bot.app import App
from bot.desk.answer_actions import AnswerActions
from bot.desk.channel_command import ChannelCommand
from bot.desk.channel_settings import CHANNEL_KEYS
from bot.desk.desk import Desk
from bot.desk.platform_port import AccessDenied, Platform, PlatformError
from bot.desk.supervisor import Clock, TaskSupervisor
from bot.desk.turn_policy import Cooldown, render_exclusion
from bot.platforms.discord import DiscordSettings, events, interactions
from bot.platforms.discord.actions import DiscordActions
from bot.platforms.discord.client import APPLICATION, COMMANDS, ME, SET_COMMANDS, open_api
from bot.platforms.discord.delivery import Deliveries
from bot.platforms.discord.directory import DiscordDirectory, list_channels
from bot.platforms.discord.events import DiscordBotIdentity
from bot.platforms.discord.intake import (
    DiscordHistoryReader,
    DiscordIntake,
    detach_from_server,
    identify_asker,
    is_own_server,
    render_cooldown,
)
from bot.platforms.discord.interactions import (
    COMMAND,
    FACT_CHECK,
    PRESS,
    SOURCES,
    SUBMIT,
    DiscordInvocation,
    InteractionReplies,
    build_about_modal,
    build_commands,
    build_invocation_question,
    build_sentence,
    matches_definitions,
    parse_invocation,
    parse_question,
)
from bot.platforms.discord.messages import escape_markdown
from bot.platforms.discord.platform import DiscordPlatform
from bot.platforms.discord.transport import Gateway
from bot.platforms.shared.api_client import ApiClient
from bot.platforms.shared.catch_up import CatchUpRun, ResumeMarker
from bot.platforms.shared.payload_text import Json, replace_pieces
from bot.platforms.shared.platform_connection import OpenedPlatform
from bot.settings.live.channel_names import NamedChannel
from bot.settings.tables.settings_tables import Settings
from bot.types import IntakeStatus, Question, TaskKind
from bot.views.catalog import translate
from storage.language.lazy_pattern import lazy_compile

log = logging.getLogger(__name__)

_SETTINGS_PIECES = lazy_compile(
    r"(?:discord:\d{1,20}/|<@!?)(?P<person>\d{1,20})\b>?"
    r"|`/footnote (?P<key>\w+)(?: (?P<value>\w+))?`"
    rf"|^(?P<setting>{'|'.join(CHANNEL_KEYS)})(?=: )",
    re.MULTILINE,
)


def render_settings(text: str) -> str:
    """Return an answer about channel settings as Markdown; its mentions ping no one."""
    return replace_pieces(text, _SETTINGS_PIECES, _render_piece, escape_markdown)


def _render_piece(piece: re.Match[str]) -> str:
    if piece["person"]:
        return f"<@{piece['person']}>"
    if piece["setting"]:
        return f"**{piece['setting']}**"
    value = f" value:{piece['value']}" if piece["value"] else ""
    return f"`/footnote setting:{piece['key']}{value}`"


@dataclass(frozen=True, slots=True)
class DiscordRouter:
    """Passes events and interactions to the parts that handle them."""

    app: App
    us: DiscordBotIdentity
    desk: Desk
    intake: DiscordIntake
    actions: DiscordActions
    replies: InteractionReplies
    channel_command: ChannelCommand

    async def hear(self, event: str, data: Json) -> None:
        """Handle an event. Raises nothing: failures are logged."""
        try:
            if event == "INTERACTION_CREATE":
                if invocation := parse_invocation(data, self.us):
                    await self._invoke(invocation)
            else:
                await self._handle(events.parse_event(event, data, self.us))
        except Exception as error:  # noqa: BLE001 - no error may stop later events
            cause = f"{type(error).__name__}: {error}"
            log.error("handling a Discord event failed", extra={"event": event, "cause": cause})  # noqa: TRY400

    async def _handle(self, event: events.DiscordEvent) -> None:
        match event:
            case events.DiscordMessagePosted():
                await self.intake.take(event)
            case events.DiscordMessageEdited():
                await self.intake.edit(event)
            case events.DiscordMessageDeleted():
                await self.intake.delete(event)
            case events.PlaceUpdate():
                self.intake.directory.learn(event)
                await self.intake.welcome(event)

    async def _invoke(self, invocation: DiscordInvocation) -> None:
        if question := parse_question(invocation):
            await self._ask(invocation, *question)
        elif invocation.kind == COMMAND:
            await self._command(invocation)
        elif refusal := render_exclusion(self._identify(invocation).exclusion, invocation.locale):
            await self.replies.say(invocation, refusal)
        elif invocation.kind == PRESS:
            await self.actions.press(invocation)
        elif invocation.kind == SUBMIT:
            await self.actions.comment(invocation)

    def _identify(self, invocation: DiscordInvocation) -> Asker:
        return identify_asker(self.intake.directory, invocation)

    async def _ask(self, invocation: DiscordInvocation, task: TaskKind, text: str) -> None:
        """Store a question, then defer the reply; the asker's rights are looked up later."""
        question = await self._question(invocation, task, text)
        if isinstance(question, str):
            await self.replies.say(invocation, question)
            return
        with self.replies.deferring(question.key):
            if await self.desk.take(question) is not IntakeStatus.KNOWN:
                await self.replies.defer(invocation, private=question.only_asker)

    async def _question(self, invocation: DiscordInvocation, task: TaskKind, text: str) -> Question | str:
        """Return an invocation's question, or the sentence that refuses it.

        The answer is private in a server where the bot itself is absent.
        """
        asker = self._identify(invocation)
        if refusal := self._explain_refusal(invocation, asker):
            return refusal
        menu = invocation.name == FACT_CHECK
        if not text:
            return translate("discord_no_text" if menu else f"discord_{task}_usage", invocation.locale)
        cooldown, directory = self.intake.cooldown, self.intake.directory
        if left := cooldown.left(invocation.user, invocation.key):
            return render_cooldown(left, invocation.locale)
        cooldown.begin(invocation.user, invocation.key)
        if not is_own_server(directory, invocation):
            return build_invocation_question(detach_from_server(invocation), task, text, asker, only_asker=True)
        question = build_invocation_question(invocation, task, text, asker, only_asker=False)
        settings = await self.intake.settings(question.place.channel_id)
        private = not invocation.direct and (invocation.private or settings.ephemeral or menu)
        return build_invocation_question(invocation, task, text, asker, only_asker=True) if private else question

    def _explain_refusal(self, invocation: DiscordInvocation, asker: Asker) -> str:
        """Return why a user is not answered; empty if they are."""
        if refusal := render_exclusion(asker.exclusion, invocation.locale):
            return refusal
        lost = (
            invocation.channel.is_thread
            and not invocation.channel.parent
            and is_own_server(self.intake.directory, invocation)
        )
        return translate("discord_not_here", invocation.locale) if lost else ""

    async def _command(self, invocation: DiscordInvocation) -> None:
        match invocation.name:
            case interactions.ASK_ABOUT | interactions.SOURCES:
                if refusal := self._explain_refusal(invocation, self._identify(invocation)):
                    await self.replies.say(invocation, refusal)
                elif invocation.name == SOURCES:
                    await self.actions.sources(invocation)
                elif invocation.text:
                    await self.replies.modal(invocation, build_about_modal(invocation.text, invocation.locale))
                else:
                    await self.replies.say(invocation, translate("discord_no_text", invocation.locale))
            case interactions.PRIVACY:
                privacy = self.intake.directory.settings.privacy
                await self.replies.say(invocation, privacy or translate("discord_privacy", invocation.locale))
            case interactions.CONFIGURE:
                await self._configure(invocation)
            case interactions.TAKE_BACK:
                await self.actions.take_back(invocation, partial(self._find_answer, invocation))
            case _:
                await self.replies.say(invocation, translate("discord_unknown_command", invocation.locale))

    async def _configure(self, invocation: DiscordInvocation) -> None:
        """Show or change a channel's settings; Discord's permissions decide who may use the command."""
        await self.replies.defer(invocation, private=True)
        written = " ".join(filter(None, (invocation.option("setting"), invocation.option("value"))))
        words = await self.channel_command.answer(written, await self.actions.by(invocation), invocation.locale)
        await self.replies.change(invocation, build_sentence(words, render_settings))

    async def _find_answer(self, invocation: DiscordInvocation) -> int | None:
        """Return the ticket of the answer on which a context menu was opened; None if the message is not an answer."""
        try:
            channel = await self.intake.directory.channel(invocation.channel.id, invocation.guild)
        except (PlatformError, TimeoutError):
            channel = invocation.channel
        where = channel.parent if channel.is_thread else channel.id
        row = await self.app.queue.by_message(f"discord:{invocation.guild}/{where}", invocation.target)
        return row.ticket if row and invocation.target in row.posted else None


@asynccontextmanager
async def open_client(
    app: App, desk: Desk, call: ApiClient, clock: Clock | None = None
) -> AsyncIterator[DiscordPlatform]:
    """Open Discord as the desk's platform. Raises `PlatformError`, `StorageError`."""
    settings, platforms, tasks = DiscordSettings.read_from(app.settings), dict[str, Platform](), TaskSupervisor()
    clock, zone = clock or Clock(), app.settings.zone
    us = await _load_identity(call)
    await _sync_commands(call, us, user_install=settings.user_install)
    directory = DiscordDirectory(call, app)
    replies, cooldown = InteractionReplies(call), Cooldown(lambda: directory.settings.cooldown_seconds, call.pacing.now)
    now = lambda: clock.now().timestamp()  # noqa: E731 - as the others
    deliveries = Deliveries(call, now, zone)
    intake = DiscordIntake(app, desk, us, directory, tasks, cooldown, deliveries)
    archive = DiscordHistoryReader(call, us, intake, lambda: directory.settings.servers)
    marker = ResumeMarker(app.settings.home, "discord")
    catch_up = CatchUpRun(archive, app.queue, desk, marker, now, call.pacing.sleep)
    actions = DiscordActions(desk, AnswerActions(app, platforms), replies, intake, zone)
    # Discord itself limits `/footnote` to users permitted by a server's admins.
    channel_command = ChannelCommand(app, lambda by: by.kind == "channel" and not by.exclusion)
    router = DiscordRouter(app, us, desk, intake, actions, replies, channel_command)
    gateway = Gateway(settings, router.hear, tasks, catch_up.run, await catch_up.since(), clock)
    platform = platforms["discord"] = DiscordPlatform(
        call,
        us,
        deliveries,
        connected=gateway.connected,
        ready=gateway.ready,
        refused=gateway.refused,
        refresh_asker=directory.refresh_asker,
        settled=replies.settled,
        now=now,
        zone=zone,
    )
    try:
        yield platform
    finally:
        await directory.close()


async def _load_identity(call: ApiClient) -> DiscordBotIdentity:
    try:
        application, user = await call(APPLICATION), await call(ME)
    except AccessDenied as error:
        raise error.for_good() from error
    return DiscordBotIdentity(str(application["id"]), str(user["id"]))


async def _sync_commands(call: ApiClient, us: DiscordBotIdentity, *, user_install: bool) -> None:
    """Register our commands if they changed, because Discord limits registrations."""
    commands = build_commands(user_install=user_install)
    known = await call(COMMANDS, query={"with_localizations": "true"}, application=us.application)
    if not matches_definitions(commands, known or ()):
        await call(SET_COMMANDS, commands, application=us.application)
        log.info("commands registered with Discord")


@asynccontextmanager
async def open_discord(app: App, desk: Desk) -> AsyncIterator[OpenedPlatform]:
    """Open Discord with the configured token. Raises `PlatformError`, `StorageError`."""
    settings = DiscordSettings.read_from(app.settings)
    token, observe = settings.token.get_secret_value(), partial(app.observe_call, "discord")
    async with open_api(token, settings.api_url, observe=observe) as call:

        async def channels(settings: Settings) -> tuple[NamedChannel, ...]:
            return await list_channels(call, DiscordSettings.read_from(settings).servers)

        async with open_client(app, desk, call) as platform:
            yield OpenedPlatform(platform, channels=channels, refused=platform.refused)
