"""Parse commands, context menus, buttons and modals ("interactions"), and reply to each within 3 seconds.

The first reply is a sentence, or a deferral ("thinking…") that is edited later. An interaction's token, a secret by
which it is replied to, is valid for 15 minutes.
"""

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypedDict

from bot.access import Asker
from bot.desk.channel_command import DIGEST
from bot.desk.channel_settings import CHANNEL_KEYS
from bot.desk.platform_port import PlatformError
from bot.platforms.discord import events
from bot.platforms.discord.client import CALLBACK, DELETE_REPLY, EDIT_REPLY, FOLLOW_UP
from bot.platforms.discord.directory import read_message_text, strip_formatting
from bot.platforms.discord.events import MANAGE_MESSAGES, MANAGE_SERVER
from bot.platforms.discord.messages import escape_markdown
from bot.platforms.shared.api_client import ApiClient, call_or_log
from bot.platforms.shared.payload_text import Json, JsonObject, read_object, read_objects
from bot.types import Place, Question, TaskKind
from bot.views.catalog import list_languages, translate

log = logging.getLogger(__name__)

GOOD_SECONDS = 15 * 60.0
_MARGIN = 15.0  # seconds before the end of a token's validity in which no reply is started


class Ids(TypedDict):
    """The values of `{application}` and `{token}` in routes."""

    application: str
    token: str


@dataclass(frozen=True, slots=True)
class InteractionToken:
    """The application's id and the token by which an interaction is replied to."""

    application: str
    token: str = field(repr=False)

    @property
    def text(self) -> str:
        """The token in the form that `Question.handle` has."""
        return json.dumps([self.application, self.token])

    @property
    def ids(self) -> Ids:
        return Ids(application=self.application, token=self.token)


def parse_token(text: str) -> InteractionToken | None:
    """Parse `Question.handle`; None if it is not an interaction's."""
    try:
        application, token = json.loads(text)
    except (ValueError, TypeError):
        return None
    return InteractionToken(str(application), str(token))


def is_token_valid(asked: float, now: float) -> bool:
    """Return whether a token is still valid. Both times are seconds since 1970."""
    return now < asked + GOOD_SECONDS - _MARGIN


COMMAND, PRESS, SUBMIT = 2, 3, 5  # kinds of interactions
ASK, CHECK, SOURCES, PRIVACY, CONFIGURE = "ask", "check", "sources", "privacy", "footnote"
FACT_CHECK, ASK_ABOUT, TAKE_BACK = "Fact-check", "Ask about this message", "Take back this answer"
"""The commands and context menus, by their names."""
ABOUT = "footnote:about"  # the custom id of the modal that asks about a message
_QUESTION, _MESSAGE = "question", "message"
LONGEST = 4_000  # characters of a modal's field


@dataclass(frozen=True, slots=True)
class DiscordInvocation:
    """An interaction: who did what, where, and how to reply."""

    id: str
    handle: InteractionToken
    kind: int
    name: str  # a command's name; a button's or modal's custom id
    guild: str
    channel: events.ChannelInfo
    user: str
    locale: str = "en"
    roles: frozenset[str] = frozenset()
    permissions: str = ""  # the user's in the channel, as Discord writes them
    options: Mapping[str, Any] = field(default_factory=dict)
    target: str = ""  # a context menu's message
    text: str = ""  # that message in plain words
    direct: bool = False  # whether it is in a DM with us
    installed: bool = True  # whether the server, and not only the user, installed the app
    data: Json = field(default_factory=dict)
    shown_name: str = ""  # the user's displayed name

    @property
    def key(self) -> str:
        return f"discord:interaction/{self.id}"

    @property
    def at(self) -> datetime:
        return events.parse_snowflake_time(self.id)

    @property
    def private(self) -> bool:
        return self.options.get("private") is True

    def option(self, name: str) -> str:
        value = self.options.get(name)
        return value if isinstance(value, str) else ""


def parse_invocation(data: Json, us: events.DiscordBotIdentity) -> DiscordInvocation | None:
    """Parse an interaction; None if it is invalid."""
    number, token, inner = events.read_id(data, "id"), data.get("token"), read_object(data, "data")
    member = read_object(data, "member")
    person = {"member": member, **(read_object(member, "user") or read_object(data, "user"))}
    user = events.read_id(person, "id")
    channel, kind = _parse_place(data), data.get("type")
    if not (number and user and channel and isinstance(token, str) and kind in (COMMAND, PRESS, SUBMIT)):
        return None
    target, guild = events.read_id(inner, "target_id"), events.read_id(data, "guild_id")
    owners = data.get("authorizing_integration_owners")
    return DiscordInvocation(
        number,
        InteractionToken(us.application, token),
        kind,
        str(inner.get("name" if kind == COMMAND else "custom_id", "")),
        guild,
        channel,
        user,
        str(data.get("locale") or "en").partition("-")[0].lower(),
        roles=events.read_ids(member.get("roles")),
        permissions=str(member.get("permissions") or ""),
        options={str(option.get("name")): option.get("value") for option in read_objects(inner, "options")},
        target=target,
        text=_read_message(read_object(read_object(read_object(inner, "resolved"), "messages"), target), us)
        if target
        else "",
        direct=not guild and data.get("context", 1) == 1,
        installed=not isinstance(owners, Mapping) or "0" in owners,
        data=inner,
        shown_name=events.read_name(person),
    )


def parse_question(invocation: DiscordInvocation) -> tuple[TaskKind, str] | None:
    """Return the task and text of an invocation; None if it is not a question."""
    match invocation.kind, invocation.name:
        case 2, "ask":
            return "ask", invocation.option("question").strip()
        case 2, "check":
            return "check", strip_formatting(invocation.option("statement")).strip()
        case 2, "Fact-check":
            return "check", strip_formatting(invocation.text).strip()
        case 5, "footnote:about":
            return "ask", _quote_message(invocation.data)
        case _:
            return None


def build_invocation_question(
    invocation: DiscordInvocation, task: TaskKind, text: str, asker: Asker, *, only_asker: bool
) -> Question:
    """Return an invocation's question. In a DM, or publicly in a thread, it continues the conversation there."""
    channel = invocation.channel
    thread = channel.id if channel.is_thread else ""
    place = Place("discord", invocation.guild, channel.parent if thread else channel.id, thread)
    conversation = f"discord:{invocation.guild}/{channel.id}" if thread or invocation.direct else invocation.key
    conversation = invocation.key if only_asker and not invocation.direct else conversation
    handle = invocation.handle.text
    return Question(
        invocation.key, task, text, asker, place, conversation, invocation.at, only_asker=only_asker, handle=handle
    )


def build_about_modal(text: str, language: str) -> dict[str, Any]:
    fields = [
        _build_field(_QUESTION, translate("discord_about_question", language), style=1, most=300, required=True),
        _build_field(
            _MESSAGE, translate("discord_about_message", language), style=2, most=LONGEST, required=True, value=text
        ),
    ]
    return {"custom_id": ABOUT, "title": translate("discord_about", language)[:45], "components": fields}


def _quote_message(data: Json) -> str:
    values = dict(read_modal_fields(data.get("components")))
    question, message = values.get(_QUESTION, "").strip(), values.get(_MESSAGE, "").strip()
    return f"{question}\n\n“{message}”" if message else question


def read_modal_fields(components: object) -> Iterator[tuple[str, str]]:
    """Yield name and value of each field of a modal, also within labels and rows."""
    for component in components if isinstance(components, list) else ():
        if not isinstance(component, Mapping):
            continue
        chosen = component.get("values")
        for value in (component.get("value"), *(chosen if isinstance(chosen, list) else ())):
            if isinstance(component.get("custom_id"), str) and isinstance(value, str):
                yield component["custom_id"], value
        inner = component.get("component")
        yield from read_modal_fields([inner] if isinstance(inner, Mapping) else component.get("components"))


def _build_field(name: str, label: str, *, style: int, most: int, required: bool, value: str = "") -> dict[str, Any]:
    field: dict[str, Any] = {"type": 4, "custom_id": name, "style": style, "max_length": most, "required": required}
    if value:
        field["value"] = _truncate(value, most)
    return {"type": 18, "label": label[:45], "component": field}


def _truncate(text: str, most: int) -> str:
    """Return the beginning of a text, at most `most` UTF-16 units long."""
    return text.encode("utf-16-le", "replace")[: most * 2].decode("utf-16-le", "ignore")


def _parse_place(data: Json) -> events.ChannelInfo | None:
    """Return an interaction's channel; if Discord does not describe it, only its id is known."""
    guild = events.read_id(data, "guild_id")
    if channel := events.read_channel(read_object(data, "channel"), guild):
        return channel
    number = events.read_id(data, "channel_id")
    return events.ChannelInfo(number, 0 if guild else 1, guild) if number else None


def _read_message(message: Json, us: events.DiscordBotIdentity) -> str:
    names = {events.read_id(mention, "id"): events.read_name(mention) for mention in read_objects(message, "mentions")}
    return events.extract_text(read_message_text(message, us.user), us, names)


SAY, DEFER, DEFER_UPDATE, MODAL = 4, 5, 6, 9  # kinds of first replies
EPHEMERAL, NO_EMBEDS = 1 << 6, 1 << 2
REPLY_PATIENCE = 2.5  # Discord accepts a first reply for 3 s
SETTLED_SECONDS = 10.0  # longest wait of an answer for its deferral
_LONGEST = 2_000
_ALREADY_REPLIED = 40060
"""Discord's code for an interaction that has a reply: from an earlier call, whose response was lost."""


class InteractionReplies:
    def __init__(self, call: ApiClient) -> None:
        self._call = call
        self._deferring: dict[str, asyncio.Event] = {}

    @contextmanager
    def deferring(self, key: str) -> Iterator[None]:
        """Let `settled` wait for the end of the block, in which the caller sends a question's deferral."""
        done = self._deferring[key] = asyncio.Event()
        try:
            yield
        finally:
            del self._deferring[key]
            done.set()

    async def settled(self, key: str) -> None:
        """Wait until a question's deferral was sent: before that there is no reply to edit."""
        if done := self._deferring.get(key):
            try:
                async with asyncio.timeout(SETTLED_SECONDS):
                    await done.wait()
            except TimeoutError:
                log.warning("deferral did not arrive in time; showing the answer")

    async def defer(self, invocation: DiscordInvocation, *, private: bool) -> bool:
        return await self._reply_first(invocation, DEFER, {"flags": EPHEMERAL} if private else {})

    async def accept(self, invocation: DiscordInvocation) -> bool:
        """Acknowledge a button without showing anything."""
        return await self._reply_first(invocation, DEFER_UPDATE)

    async def modal(self, invocation: DiscordInvocation, modal: Json) -> bool:
        return await self._reply_first(invocation, MODAL, modal)

    async def say(self, invocation: DiscordInvocation, words: str, *rows: Json) -> bool:
        """Reply privately with a sentence and rows of buttons."""
        return await self._reply_first(invocation, SAY, {**build_sentence(words), "components": list(rows)})

    async def change(self, invocation: DiscordInvocation, body: Json) -> None:
        """Edit the deferred reply ("thinking…"), or the message whose button was pressed."""
        application, token = invocation.handle.application, invocation.handle.token
        edited = {**body, "flags": body["flags"] & ~EPHEMERAL}  # an edit cannot change who sees it
        call = self._call(EDIT_REPLY, edited, application=application, token=token, message="@original")
        await call_or_log(call, "reply to a user failed")

    async def remove(self, invocation: DiscordInvocation) -> None:
        application, token = invocation.handle.application, invocation.handle.token
        call = self._call(DELETE_REPLY, application=application, token=token, message="@original")
        await call_or_log(call, "reply to a user failed")

    async def add(self, invocation: DiscordInvocation, words: str, *rows: Json) -> None:
        application, token = invocation.handle.application, invocation.handle.token
        body = {**build_sentence(words), "components": list(rows)}
        call = self._call(FOLLOW_UP, body, application=application, token=token)
        await call_or_log(call, "reply to a user failed")

    async def _reply_first(self, invocation: DiscordInvocation, kind: int, data: Json | None = None) -> bool:
        body = {"type": kind, "data": data} if data else {"type": kind}
        token = invocation.handle.token
        try:
            await self._call(CALLBACK, body, patience=REPLY_PATIENCE, interaction=invocation.id, token=token)
        except PlatformError as error:
            if getattr(error, "code", 0) == _ALREADY_REPLIED:
                return True
            log.warning("first reply to an interaction failed", extra={"cause": str(error)})
            return False
        return True


def build_sentence(words: str, shown: Callable[[str], str] = escape_markdown) -> dict[str, Any]:
    """Return a private message with a sentence, cut if it is too long; pure. `shown` escapes it."""
    content = shown(words)
    while len(content.encode("utf-16-le", "replace")) // 2 > _LONGEST:
        words = words[: len(words) * 3 // 4]
        content = shown(f"{words} …")
    return {"content": content, "components": [], "flags": EPHEMERAL | NO_EMBEDS, "allowed_mentions": {"parse": []}}


_LOCALES: Mapping[str, tuple[str, ...]] = {"es": ("es-ES", "es-419"), "pt": ("pt-BR",), "zh": ("zh-CN", "zh-TW")}
"""Discord's language names that differ from ours."""
_UNKNOWN = frozenset({"ar"})  # languages that Discord's client lacks
_CHAT_COMMAND, _MESSAGE_COMMAND, _TEXT, _SWITCH = 1, 3, 3, 5
_GUILDS, _DMS, _ELSEWHERE = 0, 1, 2
_HERE, _THEIRS = 0, 1
_COMPARED = ("name", "type", "description", "description_localizations", "default_member_permissions", "options")


def build_commands(*, user_install: bool) -> list[JsonObject]:
    """Return the definitions of all commands; with `user_install`, users may also install them for themselves."""
    private = _build_option("private", kind=_SWITCH, required=False)
    keys = [{"name": key, "value": key} for key in (*CHANNEL_KEYS, DIGEST)]
    setting = {**_build_option("setting", required=False), "choices": keys}
    value = _build_option("value", required=False, max_length=200)
    anywhere = [
        _build_command(ASK, "discord_ask", _build_option("question", max_length=2_000), private),
        _build_command(CHECK, "discord_check", _build_option("statement", max_length=2_000), private),
        _build_command(SOURCES, "discord_sources"),
        _build_command(PRIVACY, "discord_privacy_command"),
        {"name": FACT_CHECK, "type": _MESSAGE_COMMAND},
        {"name": ASK_ABOUT, "type": _MESSAGE_COMMAND},
    ]
    configure = _build_command(CONFIGURE, "discord_footnote", setting, value)
    restricted = [
        {**configure, "default_member_permissions": str(MANAGE_SERVER)},
        {"name": TAKE_BACK, "type": _MESSAGE_COMMAND, "default_member_permissions": str(MANAGE_MESSAGES)},
    ]
    types, contexts = [_HERE], [_GUILDS, _DMS]
    if user_install:
        types, contexts = [_HERE, _THEIRS], [_GUILDS, _DMS, _ELSEWHERE]
    unrestricted = [{**command, "integration_types": types, "contexts": contexts} for command in anywhere]
    return [
        *unrestricted,
        *({**command, "integration_types": [_HERE], "contexts": [_GUILDS]} for command in restricted),
    ]


def _build_command(name: str, occasion: str, *options: JsonObject) -> JsonObject:
    return {"name": name, "type": _CHAT_COMMAND, **_describe(occasion), "options": list(options)}


def _build_option(name: str, *, kind: int = _TEXT, required: bool = True, **more: Any) -> JsonObject:
    return {"name": name, "type": kind, **_describe(f"discord_option_{name}"), "required": required, **more}


def _describe(occasion: str) -> JsonObject:
    languages = [language for language in list_languages() if language not in {"en", *_UNKNOWN}]
    translations = {
        place: translate(occasion, language) for language in languages for place in _LOCALES.get(language, (language,))
    }
    return {"description": translate(occasion, "en"), "description_localizations": translations}


def matches_definitions(ours: Iterable[Mapping[str, Any]], theirs: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether Discord has our command definitions. They may be registered only a few times a day."""
    return sorted(map(_compared_fields, ours)) == sorted(map(_compared_fields, theirs))


def _compared_fields(command: Mapping[str, Any]) -> str:
    facts = {name: _plain_value(command.get(name)) for name in _COMPARED}
    lists = {name: sorted(command.get(name) or [0]) for name in ("integration_types", "contexts")}
    return repr({**facts, **lists})


def _plain_value(value: Any) -> Any:
    """Return a value for comparison, without empty and false values, which Discord adds or omits."""
    if isinstance(value, Mapping):
        return sorted((key, _plain_value(item)) for key, item in value.items() if item not in (None, False, "", [], {}))
    if value in (None, False, "", [], {}):
        return ""
    return [_plain_value(item) for item in value] if isinstance(value, list | tuple) else str(value)
