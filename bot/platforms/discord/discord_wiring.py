"""Compose Discord: who we are there, the routing of events and interactions, the commands, and the gateway."""

import logging
import re
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp

from bot.desk.answer_actions import AnswerActions
from bot.desk.channel_settings import CHANNEL_KEYS, ChannelSettingsCommand
from bot.desk.desk import Desk
from bot.desk.turn_policy import Cooldown
from bot.desk.types import IntakeStatus, Question, TaskKind
from bot.platforms.discord import DiscordSettings, discord_events, discord_interactions, read_discord_settings
from bot.platforms.discord.discord_actions import DiscordActions
from bot.platforms.discord.discord_client import (
    APPLICATION,
    COMMANDS,
    ME,
    SET_COMMANDS,
    DiscordApiClient,
    DiscordRateLimit,
)
from bot.platforms.discord.discord_directory import DiscordDirectory
from bot.platforms.discord.discord_gateway import Gateway
from bot.platforms.discord.discord_intake import (
    DiscordArchive,
    DiscordIntake,
    PlatformHooks,
    detach_from_server,
    is_own_server,
    locate_asker,
    render_cooldown,
)
from bot.platforms.discord.discord_messages import escape_markdown
from bot.platforms.discord.discord_platform import DiscordPlatform
from bot.platforms.shared.catch_up import CatchUpRun, ResumeMarker
from bot.platforms.shared.payload_text import Json, JsonObject
from bot.platforms.shared.platform_connection import OpenedPlatform
from bot.platforms.shared.platform_contract import Platform, PlatformError
from bot.server.supervisor import Clock, TaskSupervisor
from bot.views.catalog import list_languages, translate
from bot.wiring import App
from storage.language.lazy_pattern import lazy_compile

_SETTINGS_PIECES = lazy_compile(
    r"(?:discord:\d{1,20}/|<@!?)(?P<person>\d{1,20})\b>?"
    r"|`/footnote (?P<key>\w+) (?P<value>\w+)`"
    rf"|^(?P<setting>{'|'.join(CHANNEL_KEYS)})(?=: )",
    re.MULTILINE,
)


def render_settings(text: str) -> str:
    """Return the answer to an admin, who alone sees it: a mention in it tells nobody anything."""
    return "".join(_render_pieces(text))


def _render_pieces(text: str) -> Iterator[str]:
    done = 0
    for found in _SETTINGS_PIECES.finditer(text):
        yield escape_markdown(text[done : found.start()])
        yield _render_piece(found)
        done = found.end()
    yield escape_markdown(text[done:])


def _render_piece(found: re.Match[str]) -> str:
    if found["person"]:
        return f"<@{found['person']}>"
    if found["setting"]:
        return f"**{found['setting']}**"
    return f"`/footnote setting:{found['key']} value:{found['value']}`"


_LONGEST = 2_000
_LOCALES: Mapping[str, tuple[str, ...]] = {"es": ("es-ES", "es-419"), "pt": ("pt-BR",), "zh": ("zh-CN", "zh-TW")}
"""Discord's names of languages, where they are not ours."""
_UNKNOWN = frozenset({"ar"})  # languages that Discord's client does not have
_CHAT, _MESSAGE, _TEXT, _SWITCH = 1, 3, 3, 5
_GUILDS, _DMS, _ELSEWHERE = 0, 1, 2
_HERE, _THEIRS = 0, 1
_COMPARED = ("name", "type", "description", "description_localizations", "default_member_permissions", "options")


def build_commands(*, user_install: bool) -> list[JsonObject]:
    """Return all that is to be shown; with `user_install` for people everywhere who installed the app themselves."""
    private = _build_option("private", "discord_option_private", kind=_SWITCH, required=False)
    asking = _build_option("question", "discord_option_question", most=_LONGEST)
    statement = _build_option("statement", "discord_option_statement", most=_LONGEST)
    keys = [{"name": key, "value": key} for key in CHANNEL_KEYS]
    setting = {**_build_option("setting", "discord_option_setting", required=False), "choices": keys}
    value = _build_option("value", "discord_option_value", required=False, most=200)
    anywhere = [
        _build_command(discord_interactions.ASK, "discord_ask", [asking, private]),
        _build_command(discord_interactions.CHECK, "discord_check", [statement, private]),
        _build_command(discord_interactions.SOURCES, "discord_sources", []),
        _build_command(discord_interactions.PRIVACY, "discord_privacy_command", []),
        _build_menu(discord_interactions.FACT_CHECK),
        _build_menu(discord_interactions.ASK_ABOUT),
    ]
    ruling = [
        _build_command(discord_interactions.CONFIGURE, "discord_footnote", [setting, value])
        | _restrict_to(discord_events.MANAGE_SERVER),
        _build_menu(discord_interactions.TAKE_BACK) | _restrict_to(discord_events.MANAGE_MESSAGES),
    ]
    types, contexts = [_HERE], [_GUILDS, _DMS]
    if user_install:
        types, contexts = [_HERE, _THEIRS], [_GUILDS, _DMS, _ELSEWHERE]
    usual = [{**one, "integration_types": types, "contexts": contexts} for one in anywhere]
    return [*usual, *({**one, "integration_types": [_HERE], "contexts": [_GUILDS]} for one in ruling)]


def matches_definitions(ours: Iterable[Mapping[str, Any]], theirs: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether Discord has what we define: then it is not told again, which it lets nobody do often."""
    return sorted(map(_compared_fields, ours)) == sorted(map(_compared_fields, theirs))


def _compared_fields(command: Mapping[str, Any]) -> str:
    facts = {name: _plain_value(command.get(name)) for name in _COMPARED}
    lists = {name: sorted(command.get(name) or [0]) for name in ("integration_types", "contexts")}
    return repr({**facts, **lists})


def _plain_value(value: Any) -> Any:
    """Return a value without what Discord adds or leaves out: what is empty, false, or by default so."""
    if isinstance(value, Mapping):
        return sorted((key, _plain_value(one)) for key, one in value.items() if one not in (None, False, "", [], {}))
    if value in (None, False, "", [], {}):
        return ""
    return [_plain_value(one) for one in value] if isinstance(value, list | tuple) else str(value)


def _build_command(name: str, occasion: str, options: list[JsonObject]) -> JsonObject:
    return {"name": name, "type": _CHAT, **_describe(occasion), "options": options}


def _build_menu(name: str) -> JsonObject:
    return {"name": name, "type": _MESSAGE}


def _restrict_to(permission: int) -> JsonObject:
    return {"default_member_permissions": str(permission)}


def _build_option(name: str, occasion: str, *, kind: int = _TEXT, required: bool = True, most: int = 0) -> JsonObject:
    made: JsonObject = {"name": name, "type": kind, **_describe(occasion), "required": required}
    return {**made, "max_length": most} if most else made


def _describe(occasion: str) -> JsonObject:
    told = {
        place: translate(occasion, one)
        for one in list_languages()
        if one not in {"en", *_UNKNOWN}
        for place in _localize(one)
    }
    return {"description": translate(occasion, "en"), "description_localizations": told}


def _localize(language: str) -> tuple[str, ...]:
    return _LOCALES.get(language, (language,))


class InvocationQuestions:
    """Makes questions of what is invoked."""

    def __init__(self, app: App, settings: DiscordSettings, taking: DiscordIntake) -> None:
        self._app, self._settings, self._taking = app, settings, taking

    async def question(
        self, found: discord_interactions.DiscordInvocation, task: TaskKind, text: str
    ) -> Question | str:
        """Return the question that something is, or what whoever invoked it is told instead.

        Of what is invoked where the bot itself is not, the answer is for whoever invoked it alone.
        """
        if refusal := await self.refusal(found):
            return refusal
        if not text:
            menu = found.name == discord_interactions.FACT_CHECK
            return translate("discord_no_text" if menu else f"discord_{task}_usage", found.locale)
        cooldown, places = self._taking.cooldown, self._taking.places
        if left := cooldown.left(found.user, found.key):
            return render_cooldown(left, found.locale)
        cooldown.begin(found.user, found.key)
        asker = await locate_asker(places, found)
        if not is_own_server(places, found):
            return discord_interactions.build_invocation_question(
                detach_from_server(found), task, text, asker, only_asker=True
            )
        made = discord_interactions.build_invocation_question(found, task, text, asker, only_asker=False)
        settings = await self._taking.settings(made.place.channel_id)
        private = not found.direct and (
            found.private or settings.ephemeral or found.name == discord_interactions.FACT_CHECK
        )
        return (
            discord_interactions.build_invocation_question(found, task, text, asker, only_asker=True)
            if private
            else made
        )

    async def refusal(self, found: discord_interactions.DiscordInvocation) -> str:
        """Return why somebody is not answered at all; empty where they are."""
        places = self._taking.places
        ours = is_own_server(places, found)
        if not ours and not self._settings.user_install:
            return translate("discord_not_here", found.locale)
        if await self.denied(found):
            return translate("discord_denied", found.locale)
        if ours and found.channel.is_thread and not found.channel.parent:
            return translate("discord_not_here", found.locale)
        return ""

    async def denied(self, found: discord_interactions.DiscordInvocation) -> bool:
        """Return whether settings deny somebody everything, whatever they use: commands, buttons, modals."""
        places = self._taking.places
        return await places.denied(found.user, found.roles, direct=found.direct or not is_own_server(places, found))

    async def ticket_of(self, found: discord_interactions.DiscordInvocation) -> int | None:
        """Return the ticket that the message of a context menu answers; None where it answers none."""
        try:
            channel = await self._taking.places.channel(found.channel.id, found.guild)
        except (PlatformError, TimeoutError):
            channel = found.channel
        where = channel.parent if channel.is_thread else channel.id
        row = await self._app.queue.by_message(f"discord:{found.guild}/{where}", found.target)
        return row.ticket if row and found.target in row.posted else None


log = logging.getLogger(__name__)

INTERACTION = "INTERACTION_CREATE"


@dataclass(frozen=True, slots=True)
class DiscordRouter:
    """What listens to Discord."""

    us: discord_events.DiscordBotIdentity
    settings: DiscordSettings
    desk: Desk
    taking: DiscordIntake
    asking: InvocationQuestions
    pressing: DiscordActions
    answering: discord_interactions.InteractionReplies
    configuring: ChannelSettingsCommand

    async def hear(self, event: str, data: Json) -> None:
        """Do what an event means. Raises nothing: nobody waits who could do better."""
        try:
            if event == INTERACTION:
                if found := discord_interactions.parse_invocation(data, self.us):
                    await self._invoked(found)
            else:
                await self._happened(discord_events.parse_event(event, data, self.us))
        except Exception as error:  # noqa: BLE001 - whatever it is, the next event is heard
            cause = f"{type(error).__name__}: {error}"
            log.error("something of Discord's was not taken in", extra={"event": event, "cause": cause})  # noqa: TRY400

    async def _happened(self, meaning: discord_events.DiscordEvent) -> None:
        match meaning:
            case discord_events.DiscordMessagePosted() as written:
                await self.taking.take(written)
            case discord_events.DiscordMessageEdited() as rewritten:
                await self.taking.edit(rewritten)
            case discord_events.DiscordMessageDeleted() as erased:
                await self.taking.delete(erased)
            case discord_events.PlaceUpdate() as learned:
                self.taking.places.learn(learned)

    async def _invoked(self, found: discord_interactions.DiscordInvocation) -> None:
        if asked := discord_interactions.parse_question(found):
            await self._ask(found, *asked)
        elif found.kind == discord_interactions.COMMAND:
            await self._command(found)
        elif await self.asking.denied(found):
            await self.answering.say(found, translate("discord_denied", found.locale))
        elif found.kind == discord_interactions.PRESS:
            await self.pressing.press(found)
        elif found.kind == discord_interactions.SUBMIT:
            await self.pressing.comment(found)

    async def _ask(self, found: discord_interactions.DiscordInvocation, task: TaskKind, text: str) -> None:
        """Take a question, and only then say that an answer comes."""
        question = await self.asking.question(found, task, text)
        if isinstance(question, str):
            await self.answering.say(found, question)
            return
        with self.answering.deferring(question.key):
            if await self.desk.take(question) is not IntakeStatus.KNOWN:
                await self.answering.defer(found, private=question.only_asker)

    async def _command(self, found: discord_interactions.DiscordInvocation) -> None:
        match found.name:
            case discord_interactions.ASK_ABOUT:
                await self._ask_about(found)
            case discord_interactions.SOURCES:
                await self._sources(found)
            case discord_interactions.PRIVACY:
                await self.answering.say(found, self.settings.privacy or translate("discord_privacy", found.locale))
            case discord_interactions.CONFIGURE:
                await self._configure(found)
            case discord_interactions.TAKE_BACK:
                await self._take_back(found)
            case _:
                await self.answering.say(found, translate("discord_unknown_command", found.locale))

    async def _ask_about(self, found: discord_interactions.DiscordInvocation) -> None:
        if refusal := await self.asking.refusal(found):
            await self.answering.say(found, refusal)
        elif found.text:
            await self.answering.modal(found, discord_interactions.build_about_modal(found.text, found.locale))
        else:
            await self.answering.say(found, translate("discord_no_text", found.locale))

    async def _sources(self, found: discord_interactions.DiscordInvocation) -> None:
        if refusal := await self.asking.refusal(found):
            await self.answering.say(found, refusal)
        else:
            await self.pressing.sources(found)

    async def _configure(self, found: discord_interactions.DiscordInvocation) -> None:
        """Show or change what holds in a channel, for whom Discord lets use the command there."""
        await self.answering.defer(found, private=True)
        written = " ".join(filter(None, (found.option("setting"), found.option("value"))))
        words = await self.configuring.answer(written, await self.pressing.by(found), found.locale)
        await self.answering.change(found, discord_interactions.build_sentence(words, render_settings))

    async def _take_back(self, found: discord_interactions.DiscordInvocation) -> None:
        ticket = await self.asking.ticket_of(found)
        if ticket is None:
            await self.answering.say(found, translate("discord_no_answer", found.locale))
        else:
            await self.pressing.take_back(found, ticket)


@asynccontextmanager
async def open_client(
    app: App, desk: Desk, call: DiscordApiClient, clock: Clock | None = None
) -> AsyncIterator[DiscordPlatform]:
    """Give Discord as the desk sees it. Raises `PlatformError`, `StorageError`."""
    settings, platforms, tasks = read_discord_settings(app.settings), dict[str, Platform](), TaskSupervisor()
    clock = clock or Clock()
    us = await _load_identity(call)
    await _sync_commands(call, us, user_install=settings.user_install)
    places, answering = DiscordDirectory(call, settings), discord_interactions.InteractionReplies(call)
    taking = DiscordIntake(app, desk, us, places, tasks, Cooldown(settings.cooldown_seconds, call.pacing.now))
    archive = DiscordArchive(app.queue, call, us, taking, settings.servers)
    gaps, now = ResumeMarker(app.settings.home, "discord"), lambda: clock.now().timestamp()
    catching = CatchUpRun(archive, desk, gaps, now, call.pacing.sleep)
    pressing = DiscordActions(desk, AnswerActions(app, platforms), answering, taking, app.settings.zone)
    # Discord itself lets only those use `/footnote` whom a server's admins let.
    configuring = ChannelSettingsCommand(app, lambda by: by.kind == "channel" and by.listed_server)
    asking = InvocationQuestions(app, settings, taking)
    listening = DiscordRouter(us, settings, desk, taking, asking, pressing, answering, configuring)
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
    taking.outlet = PlatformHooks(platform.tell, platform.deleted_by_us)
    platforms["discord"] = platform
    try:
        yield platform
    finally:
        await places.close()


async def _load_identity(call: DiscordApiClient) -> discord_events.DiscordBotIdentity:
    application, user = await call(APPLICATION), await call(ME)
    return discord_events.DiscordBotIdentity(str(application["id"]), str(user["id"]))


async def _sync_commands(call: DiscordApiClient, us: discord_events.DiscordBotIdentity, *, user_install: bool) -> None:
    """Have Discord know our commands. It is told only where something changed, for it lets nobody do so often."""
    wanted = build_commands(user_install=user_install)
    known = await call(COMMANDS, query={"with_localizations": "true"}, application=us.application)
    if not matches_definitions(wanted, known or ()):
        await call(SET_COMMANDS, wanted, application=us.application)
        log.info("Discord was told of our commands")


@asynccontextmanager
async def open_discord(app: App, desk: Desk) -> AsyncIterator[OpenedPlatform]:
    """Open Discord by the token of the settings. Raises `PlatformError`, `StorageError`."""
    settings = read_discord_settings(app.settings)
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session:
        call = DiscordApiClient(session, settings.token.get_secret_value(), settings.api_url, DiscordRateLimit())
        async with open_client(app, desk, call) as platform:
            yield OpenedPlatform(platform, refused=platform.refused)
