"""Look up channels, roles and members in Discord, and read conversations and our own messages."""

import asyncio
import re
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

from bot.access import Asker, find_exclusion
from bot.app import App
from bot.desk.platform_port import PlatformError, PostGone
from bot.platforms.discord import DiscordSettings, client, events
from bot.platforms.discord.client import CHANNEL, CHANNELS, MEMBER, ChannelUnavailable
from bot.platforms.discord.messages import build_mark, choose_channel, parse_mark
from bot.platforms.shared.api_client import ApiClient, RequestRefused
from bot.platforms.shared.lookup_cache import (
    LOOK_SECONDS,
    MOST,
    PATIENT_SECONDS,
    PEOPLE_SECONDS,
    LookupCache,
    lookup_or_default,
    lookup_or_raise,
    lookup_retrying,
)
from bot.platforms.shared.payload_text import Json, build_stripper, read_object, read_objects, strip_footnotes
from bot.settings.live.channel_names import NamedChannel
from bot.types import ConversationMessage, Place, PostedMessages, Question
from bot.views.sanitize import WORD_JOINER
from storage.language.lazy_pattern import lazy_compile


@dataclass(frozen=True, slots=True)
class ServerMember:
    """A user's membership in a server."""

    roles: frozenset[str] = frozenset()
    present: bool = True


def place_asker(
    asker: Asker, members: Mapping[str, ServerMember], settings: DiscordSettings, readers: Collection[str]
) -> Asker:
    """Return an asker with their rights, which follow from the settings and from `members`; pure.

    `members`: the asker's memberships, by server id. In a DM, the memberships in all of the team's own servers count.
    """
    memberships = {guild: member for guild, member in members.items() if member.present}
    names = {f"{guild}/{name}" for guild, member in memberships.items() for name in (asker.user, *member.roles)}
    direct, ids = asker.kind == "dm", {asker.user}.union(*(member.roles for member in memberships.values()))
    listed = bool(memberships) if direct else asker.workspace in settings.servers
    return replace(
        asker,
        listed_server=listed,
        principals=tuple(sorted({f"discord:{name}" for name in names}.intersection(readers))) if direct else (),
        exclusion=find_exclusion(listed=listed or direct, ids=ids, deny=settings.deny),
    )


class DiscordDirectory:
    """Looks up channels, roles and members of servers, and caches them."""

    def __init__(
        self,
        call: ApiClient,
        app: App,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._call, self._app = call, app
        self._channels: dict[str, events.ChannelInfo] = {}
        self._names: dict[str, str] = {}
        self._ours: dict[str, str] = {}
        self._asked = LookupCache[events.ChannelInfo](self._look, clock)
        self._members = LookupCache[ServerMember](self._look_member, clock, PEOPLE_SECONDS)

    @property
    def settings(self) -> DiscordSettings:
        return DiscordSettings.read_from(self._app.settings)

    def learn(self, update: events.PlaceUpdate) -> None:
        for channel in update.channels:
            self._note(channel)
        for gone in update.gone:
            self._channels.pop(gone, None)
            self._asked.forget(gone)
        self._names |= update.roles
        if update.ours:
            self._ours[update.guild] = update.ours

    def listed(self, guild: str) -> bool:
        return guild in self.settings.servers

    def our_roles(self, guild: str) -> frozenset[str]:
        return frozenset({self._ours[guild]} if guild in self._ours else ())

    @property
    def names(self) -> dict[str, str]:
        return self._names

    async def channel(self, number: str, guild: str, seconds: float = LOOK_SECONDS) -> events.ChannelInfo:
        """Return a channel or thread. Raises `PlatformError` or `TimeoutError`."""
        if not guild:
            return events.ChannelInfo(number, events.DM)
        return self._channels.get(number) or await self._asked.of(number, seconds)

    async def find_channel(self, number: str, guild: str) -> events.ChannelInfo | None:
        """Return a channel or thread, retrying while Discord is unreachable; None if it cannot be looked up."""
        look = partial(self.channel, number, guild, PATIENT_SECONDS)
        return await lookup_retrying(look, "the channel of a message", self._call.pacing.sleep)

    def newcomer(
        self,
        channel: events.ChannelInfo,
        user: str,
        *,
        direct: bool,
        roles: frozenset[str] | None = None,
    ) -> Asker:
        """Return a user in a channel or thread as an asker, by cached facts alone.

        `roles`: the user's roles, if the event contained them.
        """
        place = channel.parent if channel.is_thread else channel.id
        if roles is not None:
            self._members.note(f"{channel.guild}/{user}", ServerMember(roles))
        channel_name = "" if direct else self._names.get(place, "")
        kind: Literal["dm", "channel"] = "dm" if direct else "channel"
        asker = Asker("discord", kind, "" if direct else channel.guild, place, user, channel_name=channel_name)
        known = {guild: self._members.known(f"{guild}/{user}") for guild in self._list_servers(asker)}
        return self._place(asker, {guild: member for guild, member in known.items() if member})

    async def look_up(self, asker: Asker) -> Asker:
        """Return an asker with looked-up rights; if a look-up fails or takes too long, they count as not a member."""
        return await self._look_up(asker, lookup_or_default, LOOK_SECONDS)

    async def refresh_asker(self, asker: Asker) -> Asker:
        """Return an asker with their current rights: they may have left after asking. Raises `PlatformUnavailable`."""
        return await self._look_up(asker, partial(lookup_or_raise, platform="Discord"), PATIENT_SECONDS)

    async def _look_up(self, asker: Asker, lookup: Callable[..., Awaitable[Any]], seconds: float) -> Asker:
        guilds = self._list_servers(asker)
        members = await asyncio.gather(
            *(
                lookup(
                    partial(self._members.of, f"{guild}/{asker.user}", seconds),
                    what="a user",
                    otherwise=ServerMember(present=False),
                )
                for guild in guilds
            )
        )
        return self._place(asker, dict(zip(guilds, members, strict=True)))

    def _list_servers(self, asker: Asker) -> Sequence[str]:
        """Return the ids of the servers whose membership decides an asker's rights."""
        if asker.kind == "dm":
            return self.settings.servers
        return (asker.workspace,) if self.settings.deny and self.listed(asker.workspace) else ()

    def _place(self, asker: Asker, members: Mapping[str, ServerMember]) -> Asker:
        return place_asker(asker, members, self.settings, self._app.settings.readers)

    async def close(self) -> None:
        await self._asked.close()
        await self._members.close()

    def _note(self, channel: events.ChannelInfo) -> None:
        if len(self._channels) >= MOST:
            self._channels.pop(next(iter(self._channels)))
        self._channels[channel.id] = channel
        if channel.name:
            self._names[channel.id] = channel.name

    async def _look(self, number: str) -> events.ChannelInfo:
        channel = events.read_channel(await self._call(CHANNEL, channel=number) or {})
        if channel is None:
            raise PlatformError("Discord returned no valid details of the channel.")
        self._note(channel)
        return channel

    async def _look_member(self, name: str) -> ServerMember:
        guild, _, user = name.partition("/")
        try:
            member = await self._call(MEMBER, guild=guild, user=user) or {}
        except RequestRefused:  # not a member
            return ServerMember(present=False)
        return ServerMember(events.read_ids(member.get("roles")))


_NOT_WRITTEN_IN = frozenset({2, 4, 13, 14})  # categories, directories and voice channels


async def list_channels(call: ApiClient, servers: Iterable[str]) -> tuple[NamedChannel, ...]:
    """List the channels of `servers` in which people can write messages. Raises `PlatformError`."""
    channels = list[NamedChannel]()
    for guild in servers:
        for data in await call(CHANNELS, guild=guild) or ():
            channel = events.read_channel(data, guild)
            if channel and channel.kind not in _NOT_WRITTEN_IN:
                channels.append(NamedChannel(f"discord:{guild}/{channel.id}", channel.name))
    return tuple(channels)


PAGE = 100  # messages per call
_REPLY, _STARTER = 19, 21
"""Message types: a reply, and a thread's placeholder for the message that it was opened on."""
_LINK = lazy_compile(r"(?<!\\)\[((?:\\.|[^\\\[\]])*)\]\(<[^<>]*>\)")
_MARKUP = lazy_compile(r"\\([!-/:-@\[-`{-~])|\*\*|^(?:-#|>) ", re.MULTILINE)


def question_time(question: Question) -> str:
    """Return an id that is smaller than those of all messages after a question."""
    return question.message or str(events.build_snowflake(question.at.timestamp()))


async def find_our_pages(
    call: ApiClient, place: Place, key: str, after: str, us: events.DiscordBotIdentity
) -> PostedMessages:
    """Return our messages after the id `after` that have the mark of a key, oldest first."""
    ours = [message async for message in _read_after(call, choose_channel(place), after) if _is_ours(message, us)]
    marked = (str(message["id"]) for message in ours if parse_mark(message) == build_mark(key))
    return PostedMessages(tuple(sorted(marked, key=int)))


async def read_conversation(
    call: ApiClient, question: Question, us: events.DiscordBotIdentity, most: int
) -> tuple[ConversationMessage, ...]:
    """Return the last messages before a question in its conversation, oldest first.

    In a thread or DM, these are the messages before the question. Elsewhere, they are the chain of replies that leads
    to it. A command, or a message in a channel that is not a reply, has no earlier messages.
    """
    place, turns = question.place, deque[ConversationMessage]()
    apart = not place.workspace or place.thread not in {"", question.message}
    alone = question.key if not question.message else "" if apart else f"{place.channel_id}/{question.message}"
    if question.conversation == alone:
        return ()
    before = _read_before(call, choose_channel(place), question_time(question))
    async for message in before if apart else _read_replied(call, question):
        if turn := _to_turn(message, us):
            turns.appendleft(turn)
        if len(turns) >= most:
            break
    return tuple(turns)


def read_text(message: Json) -> str:
    """Return the text of our own message without Markdown; pure."""
    return "\n".join(_strip_markup(text) for text in _collect_texts(message))


async def _read_after(call: ApiClient, channel: str, after: str) -> AsyncIterator[Json]:
    """Yield the messages of a channel after an id; nothing if the channel does not exist."""
    while page := await _read_page(call, channel, after=after):
        for message in page:
            yield message
        after = max((str(last["id"]) for last in page), key=int)


async def _read_before(call: ApiClient, channel: str, before: str) -> AsyncIterator[Json]:
    """Yield the messages of a channel before an id, newest first."""
    while page := await _read_page(call, channel, before=before):
        for message in sorted(page, key=lambda item: int(item["id"]), reverse=True):
            first = message.get("referenced_message") if message.get("type") == _STARTER else None
            yield first if isinstance(first, Mapping) else message
        before = min((str(item["id"]) for item in page), key=int)


async def _read_replied(call: ApiClient, question: Question) -> AsyncIterator[Json]:
    """Yield the chain of replies that leads to a question, newest first."""
    channel = question.place.channel
    message = await _read_one(call, channel, question.message) if question.message else None
    while message and (reply_to := str((message.get("message_reference") or {}).get("message_id", ""))):
        replied = message.get("referenced_message")
        message = (
            replied if isinstance(replied, Mapping) and _is_whole(replied) else await _read_one(call, channel, reply_to)
        )
        if message:
            yield message


async def _read_page(call: ApiClient, channel: str, **where: str) -> list[Json]:
    try:
        page = await call(client.READ, query={"limit": str(PAGE), **where}, channel=channel)
    except ChannelUnavailable:
        return []
    return page if isinstance(page, list) else []


async def _read_one(call: ApiClient, channel: str, message: str) -> Json | None:
    try:
        answer = await call(client.READ_ONE, channel=channel, message=message)
    except (PostGone, ChannelUnavailable):
        return None
    return answer if isinstance(answer, Mapping) else None


def _to_turn(message: Json, us: events.DiscordBotIdentity) -> ConversationMessage | None:
    number = str(message["id"])
    if _is_ours(message, us):
        text, user = read_text(message), ""
    elif person := events.parse_posted(message, us):
        text, user = events.extract_text(person.raw, us, person.names), person.user
    else:
        return None
    at = events.parse_snowflake_time(number)
    return ConversationMessage(number, user, text, at) if text.strip() else None


def _is_whole(message: Json) -> bool:
    """Return whether Discord's embedded copy of a message shows which message it replies to, if it is a reply."""
    return message.get("type") != _REPLY or bool(message.get("message_reference"))


def _is_ours(message: Json, us: events.DiscordBotIdentity) -> bool:
    return bool((message.get("author") or {}).get("id") == us.user)


def _collect_texts(component: Json) -> Iterator[str]:
    if isinstance(content := component.get("content"), str) and content:
        yield content
    for inner in component.get("components") or ():
        yield from _collect_texts(inner)


def _strip_markup(text: str) -> str:
    labelled = _LINK.sub(r"\1", text)
    return _MARKUP.sub(lambda mark: mark[1] or "", labelled).replace(WORD_JOINER, "")


strip_formatting = build_stripper(
    lines=r">>>[ \t]+|>[ \t]+|-#[ \t]+|#{1,3}[ \t]+",
    marks=(r"\*\*\*", r"\*\*", r"\*", "___", "__", "_", "~~", r"\|\|"),
    link=r"\[([^\[\]\n]+)\]\(<?https?://[^\s()<>]+>?\)",
)  # removes Discord's formatting
_TEXT = 10  # component type of text


def read_message_text(message: Json, user: str) -> str:
    """Return the text of a message, its embeds and what it forwards; empty if there is none.

    `user`: the bot's id. Our own answers lose their footnotes.
    """
    if read_object(message, "author").get("id") == user:
        return strip_footnotes(read_text(message))
    own = _text_parts(message)
    forwarded = [
        _text_parts(read_object(snapshot, "message")) for snapshot in read_objects(message, "message_snapshots")
    ]
    return "\n".join(filter(None, (own, *forwarded)))


def _text_parts(message: Json) -> str:
    content = message.get("content")
    embeds = [item for item in read_objects(message, "embeds") if item.get("type") in {None, "rich"}]
    texts = ("\n".join(_embed_texts(embed)) for embed in embeds)
    parts = [content if isinstance(content, str) else "", *texts, *_component_texts(message)]
    return "\n".join(item for item in parts if item.strip())


def _embed_texts(embed: Json) -> Iterator[str]:
    fields = (item.get(name) for item in read_objects(embed, "fields") for name in ("name", "value"))
    yield from (
        item for item in (embed.get("title"), embed.get("description"), *fields) if isinstance(item, str) and item
    )


def _component_texts(holder: Json) -> Iterator[str]:
    for component in read_objects(holder, "components"):
        text = component.get("content")
        if component.get("type") == _TEXT and isinstance(text, str):
            yield text
        yield from _component_texts(component)
