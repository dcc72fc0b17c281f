"""Look up channels, users and user groups in Slack, and read channels, threads and our own posts."""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from bot.access import Asker
from bot.app import App
from bot.desk.platform_port import PlatformError, PostGone
from bot.platforms.shared.api_client import ApiClient
from bot.platforms.shared.lookup_cache import (
    LOOK_SECONDS,
    PATIENT_SECONDS,
    PEOPLE_SECONDS,
    LookupCache,
    lookup_or_default,
    lookup_or_raise,
)
from bot.platforms.shared.payload_text import Json
from bot.platforms.slack import SlackSettings, events
from bot.platforms.slack.client import (
    CHANNEL,
    CHANNELS,
    GROUP_MEMBERS,
    HISTORY,
    REPLIES,
    USER,
    WHO_WE_ARE,
    ChannelUnknown,
)
from bot.platforms.slack.events import SlackBotIdentity, decode_mrkdwn, extract_text
from bot.platforms.slack.messages import ANSWER, CALL, read_mark
from bot.settings.live.channel_names import NamedChannel
from bot.types import ConversationMessage, Place, PostedMessages, Question
from storage.language.lazy_pattern import lazy_compile

_GROUP = lazy_compile(r"slack:([^/]+)/(S[A-Z0-9]+)")


def find_user_groups(readers: Iterable[str], team: str = "") -> dict[str, str]:
    """Return the user groups among readers: a mapping of their names in the settings to their Slack ids.

    Only groups of `team` are returned, or those of all teams if it is empty.
    """
    matches = filter(None, map(_GROUP.fullmatch, sorted(readers)))
    return {group[0]: group[2] for group in matches if team in {"", group[1]}}


def is_shared(channel: Json) -> bool | None:
    """Return whether other organisations share a channel, by its `conversations.info`; pure.

    Workspaces of the same organisation do not count. None if Slack does not report it, as for most DMs.
    """
    if channel.get("is_ext_shared") is True or channel.get("connected_team_ids"):
        return True
    if channel.get("is_shared") is True:
        return channel.get("is_org_shared") is not True
    return False if channel.get("is_ext_shared") is False else None


def is_stranger(user: Json, us: events.SlackBotIdentity) -> bool:
    """Return whether a user, as described by `users.info`, is of another organisation or deactivated; pure."""
    if user.get("deleted") is True:
        return True
    organisation = user.get("enterprise_user")
    if us.enterprise and isinstance(organisation, Mapping) and organisation.get("enterprise_id") == us.enterprise:
        return False
    return user.get("is_stranger") is True or user.get("team_id") != us.team


def is_guest(user: Json) -> bool:
    return user.get("is_restricted") is True or user.get("is_ultra_restricted") is True


def read_name(user: Json) -> str:
    """Return a user's displayed name; empty if unknown; pure."""
    value = user.get("profile")
    profile = value if isinstance(value, Mapping) else {}
    names = (profile.get("display_name"), profile.get("real_name"), user.get("real_name"), user.get("name"))
    return next((name for name in names if isinstance(name, str) and name.strip()), "")


class SlackDirectory:
    """Looks up channels, users and user groups, and caches them. Unknown facts get the restrictive value."""

    def __init__(
        self,
        call: ApiClient,
        us: events.SlackBotIdentity,
        app: App,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._call, self._us, self._app = call, us, app
        self._channels = LookupCache[Json](self._channel, clock)
        self._people = LookupCache[Json](self._person, clock, PEOPLE_SECONDS)
        self._groups = LookupCache[frozenset[str]](self._members, clock, PEOPLE_SECONDS)

    def newcomer(self, channel: str, user: str, *, direct: bool, shared: bool = False) -> Asker:
        """Return a user in a channel as an asker, whose facts are looked up only when the question is answered.

        `shared`: the event says that the channel is shared.
        """
        if shared:
            self._channels.note(channel, {"is_ext_shared": True})
        return Asker("slack", "dm" if direct else "channel", self._us.team, channel, user)

    async def asker(self, channel: str, user: str, *, direct: bool) -> Asker:
        """Return a user in a channel as an asker, with the facts that can be looked up in time."""
        return await self._place(self.newcomer(channel, user, direct=direct), lookup_or_default, LOOK_SECONDS)

    async def refresh_asker(self, asker: Asker) -> Asker:
        """Return an asker with their current rights. Raises `PlatformUnavailable`."""
        return await self._place(asker, partial(lookup_or_raise, platform="Slack"), PATIENT_SECONDS)

    async def shared(self, channel: str, user: str = "") -> bool:
        """Return whether people of other organisations may be in a channel or a user's DM."""
        asker = Asker("slack", "dm" if user else "channel", self._us.team, channel, user)
        return await lookup_or_default(partial(self._is_shared, asker), "whether a channel is shared", otherwise=True)

    async def language(self, user: str) -> str:
        """Return a user's language, such as `de`; empty if unknown."""
        try:
            locale = (await self._people.of(user)).get("locale")
        except (PlatformError, TimeoutError):
            return ""
        return locale.partition("-")[0].lower() if isinstance(locale, str) else ""

    async def name(self, user: str) -> str:
        """Return a user's displayed name; empty if unknown."""
        try:
            return read_name(await self._people.of(user))
        except (PlatformError, TimeoutError):
            return ""

    def forget(self, channel: str) -> None:
        self._channels.forget(channel)

    async def close(self) -> None:
        for cache in (self._channels, self._people, self._groups):
            await cache.close()

    async def _place(self, asker: Asker, lookup: Callable[..., Awaitable[Any]], seconds: float) -> Asker:
        groups_by_name = find_user_groups(self._app.settings.readers, self._us.team) if asker.kind == "dm" else {}
        others, uninvited, guest, *members = await asyncio.gather(
            lookup(partial(self._is_shared, asker, seconds), what="whether a channel is shared", otherwise=True),
            lookup(
                partial(self._is_uninvited, asker, seconds), what="whether the bot is in a channel", otherwise=False
            ),
            lookup(partial(self._is_guest, asker.user, seconds), what="whether a user is a guest", otherwise=True),
            *(
                lookup(
                    partial(self._groups.of, group, seconds),
                    what="the members of a user group",
                    otherwise=frozenset[str](),
                )
                for group in groups_by_name.values()
            ),
        )
        groups = tuple(name for name, users in zip(groups_by_name, members, strict=True) if asker.user in users)
        facts = {"shared_with_other_organisations": others, "uninvited": uninvited, "guest": guest}
        return self._name(replace(asker, **facts, principals=groups))

    def _name(self, asker: Asker) -> Asker:
        """Return an asker with the cached names of the person and the channel."""
        channel = (self._channels.known(asker.channel) or {}).get("name")
        person = read_name(self._people.known(asker.user) or {})
        return replace(asker, name=person, channel_name=channel if isinstance(channel, str) else "")

    async def _is_shared(self, asker: Asker, seconds: float = LOOK_SECONDS) -> bool:
        if asker.kind == "dm":
            return is_stranger(await self._people.of(asker.user, seconds), self._us)
        return is_shared(await self._channels.of(asker.channel, seconds)) is not False

    async def _is_uninvited(self, asker: Asker, seconds: float) -> bool:
        """Return whether the bot is not in a private channel.

        The result is not cached, because no event reports a change.
        """
        if asker.kind == "dm":
            return False
        try:
            await self._channels.of(asker.channel, seconds)
        except ChannelUnknown:
            return True
        return False

    async def _is_guest(self, user: str, seconds: float = LOOK_SECONDS) -> bool:
        return not SlackSettings.read_from(self._app.settings).guests and is_guest(await self._people.of(user, seconds))

    async def _channel(self, channel: str) -> Json:
        info: Json = (await self._call(CHANNEL, {"channel": channel})).get("channel") or {}
        # A DM's description does not say whether it is shared; its user's does.
        if events.is_direct(channel) and is_shared(info) is None and info.get("user"):
            return {"is_ext_shared": is_stranger(await self._people.of(str(info["user"])), self._us)}
        return info

    async def _person(self, user: str) -> Json:
        info: Json = (await self._call(USER, {"user": user, "include_locale": True})).get("user") or {}
        return info

    async def _members(self, group: str) -> frozenset[str]:
        """Return the members of an enabled user group, from all pages of Slack's list."""
        members, facts = set[str](), dict[str, Any](usergroup=group)
        while True:
            page = await self._call(GROUP_MEMBERS, facts)
            members |= set(map(str, page.get("users") or ()))
            cursor = str((page.get("response_metadata") or {}).get("next_cursor") or "")
            if not cursor or cursor == facts.get("cursor"):
                return frozenset(members)
            facts["cursor"] = cursor


_CHANNELS_AT_ONCE = 999  # the most that Slack returns


async def list_channels(call: ApiClient) -> tuple[NamedChannel, ...]:
    """List the public channels, and private ones that the bot is in. Raises `PlatformError`."""
    team = (await call(WHO_WE_ARE))["team_id"]
    channels = list[NamedChannel]()
    facts = dict[str, Any](types="public_channel,private_channel", exclude_archived=True)
    while True:
        page = await call(CHANNELS, {"limit": _CHANNELS_AT_ONCE, **facts})
        listed = (channel for channel in page.get("channels") or () if channel.get("id") and channel.get("name"))
        channels += [NamedChannel(f"slack:{team}/{channel['id']}", str(channel["name"])) for channel in listed]
        cursor = str((page.get("response_metadata") or {}).get("next_cursor") or "")
        if not cursor or cursor == facts.get("cursor"):
            return tuple(channels)
        facts["cursor"] = cursor


PAGE = 200  # messages per call


async def find_our_message(call: ApiClient, question: Question, us: str) -> PostedMessages:
    """Return our messages that answer a question, oldest first."""
    posted = await _find_in(call, question, question.place, us)
    if not posted and question.place.thread:  # perhaps replies were not allowed
        posted = await _find_in(call, question, replace(question.place, thread=""), us)
    return posted


async def _find_in(call: ApiClient, question: Question, place: Place, us: str) -> PostedMessages:
    after, marked, unmarked = _question_ts(question), list[str](), list[str]()
    async for message in _read_pages(call, place, oldest=after):
        if message.get("user") != us or _ts_seconds(message) <= float(after):
            continue
        if read_mark(message, ANSWER) == question.key:
            marked.append(str(message["ts"]))
        elif place.thread and not message.get("metadata") and "#" not in question.key:  # shared answers are never live
            unmarked.append(str(message["ts"]))
    return PostedMessages(tuple(sorted([*marked, *([] if marked else unmarked[:1])], key=float)))


async def find_help_call(call: ApiClient, place: Place, key: str) -> PostedMessages:
    """Find the call for help with this key in a thread, or in a channel's newest posts; empty if there is none."""
    looked = 0
    async for message in _read_pages(call, place):
        looked += 1
        if read_mark(message, CALL) == key:
            return PostedMessages((str(message["ts"]),))
        if not place.thread and looked == PAGE:  # a channel is read backwards
            break
    return PostedMessages()


async def read_thread(call: ApiClient, question: Question, us: str, most: int) -> tuple[ConversationMessage, ...]:
    """Return the last messages before a question in its thread, oldest first.

    A question without a thread, such as a command, is a conversation of its own. A message that begins a thread has
    nothing before it; the thread is then not read, because Slack limits such calls.
    """
    if question.place.thread in {"", question.message}:
        return ()
    before, turns = float(_question_ts(question)), deque[ConversationMessage](maxlen=most)
    async for message in _read_pages(call, question.place):
        if _ts_seconds(message) < before and (turn := _to_turn(message, us)).text:
            turns.append(turn)
    return tuple(sorted(turns, key=lambda turn: float(turn.message)))


async def _read_pages(call: ApiClient, place: Place, *, oldest: str = "0") -> AsyncIterator[Json]:
    """Yield the messages of a thread, or of a channel since a moment; nothing if it does not exist."""
    facts: dict[str, Any] = {"channel": place.channel, "limit": PAGE, "include_all_metadata": True}
    facts |= {"ts": place.thread} if place.thread else {"oldest": oldest}
    route = REPLIES if place.thread else HISTORY
    while True:
        try:
            page = await call(route, facts)
        except PostGone:
            return
        for message in page.get("messages") or ():
            if not ("cursor" in facts and message.get("ts") == place.thread):  # it begins every page
                yield message
        cursor = (page.get("response_metadata") or {}).get("next_cursor")
        if not cursor:
            return
        facts["cursor"] = cursor


def _question_ts(question: Question) -> str:
    return question.message or f"{question.at.timestamp():.6f}"


def _ts_seconds(message: Json) -> float:
    return float(message.get("ts", 0))


def _to_turn(message: Json, us: str) -> ConversationMessage:
    user = str(message.get("user") or message.get("bot_id") or "?")
    at = datetime.fromtimestamp(_ts_seconds(message), UTC)
    raw = str(message.get("text") or "")
    text = decode_mrkdwn(raw) if user == us else extract_text(raw, SlackBotIdentity("", us))
    return ConversationMessage(str(message["ts"]), "" if user == us else user, text, at)
