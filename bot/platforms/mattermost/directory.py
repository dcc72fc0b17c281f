"""Look up channels and users in Mattermost, and read channels, threads and our own posts."""

import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from bot.access import Asker, find_exclusion
from bot.app import App
from bot.desk.platform_port import PlatformError, PlatformUnavailable, PostGone
from bot.platforms.mattermost import MattermostSettings, client
from bot.platforms.mattermost.client import PAGE, NotAllowed, NotFound, list_posts
from bot.platforms.mattermost.events import (
    DIRECT,
    ChannelInfo,
    MattermostBotIdentity,
    Person,
    count_milliseconds,
    parse_post,
    read_channel,
    read_own_text,
    read_person,
    read_time,
    split_command,
)
from bot.platforms.mattermost.messages import hash_key, read_mark
from bot.platforms.shared.api_client import ApiClient
from bot.platforms.shared.lookup_cache import (
    LOOK_SECONDS,
    PATIENT_SECONDS,
    PEOPLE_SECONDS,
    LookupCache,
    lookup_or_default,
    lookup_or_raise,
    lookup_retrying,
)
from bot.platforms.shared.payload_text import Json
from bot.settings.live.channel_names import NamedChannel
from bot.types import ConversationMessage, Place, PostedMessages, Question

_UNKNOWN = Person(present=False)


def place_asker(
    asker: Asker,
    channel: ChannelInfo,
    person: Person,
    teams: Collection[str],
    settings: MattermostSettings,
    readers: Collection[str],
) -> Asker:
    """Return an asker with their rights, which follow from the settings; pure.

    `teams`: those of the asker's teams in which the bot answers; in a DM, they decide. A channel that is shared with
    other servers does not count as the team's own. For a user of another server, no place does.
    """
    direct = asker.kind == "dm"
    names = {f"mattermost:{team}/{asker.user}" for team in teams} if direct and person.present else set[str]()
    is_own = person.present and (bool(teams) if direct else asker.workspace in teams and not channel.shared)
    return replace(
        asker,
        listed_server=is_own,
        guest=person.guest and not settings.guests,
        principals=tuple(sorted(names.intersection(readers))),
        exclusion=find_exclusion(listed=direct or asker.workspace in teams, ids={asker.user}, deny=settings.deny),
        name=person.name,
        channel_name=channel.name,
    )


class MattermostDirectory:
    """Looks up channels, users and members of teams, and caches them."""

    def __init__(
        self,
        call: ApiClient,
        us: MattermostBotIdentity,
        app: App,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._call, self._us, self._app = call, us, app
        self._channels = LookupCache[ChannelInfo](self._look, clock)
        self._people = LookupCache[Person](self._look_person, clock, PEOPLE_SECONDS)
        self._members = LookupCache[bool](self._look_member, clock, PEOPLE_SECONDS)
        self._directs = LookupCache[str](self._open_direct, clock)

    def listed(self, channel: ChannelInfo) -> bool:
        """Return whether the bot answers in a channel: a DM, or a channel of a team in `teams`.

        It does not answer in group messages, which have no team.
        """
        return channel.direct or channel.team in self.teams

    @property
    def settings(self) -> MattermostSettings:
        return MattermostSettings.read_from(self._app.settings)

    @property
    def teams(self) -> frozenset[str]:
        """The ids of the teams in which the bot answers."""
        return select_teams(self._us.teams, self.settings.teams)

    def learn(self, channel: ChannelInfo) -> None:
        self._channels.note(channel.id, channel)

    def forget(self, channel: str) -> None:
        self._channels.forget(channel)

    async def find_channel(self, number: str) -> ChannelInfo | None:
        """Return a channel, retrying while Mattermost is unreachable; None if it cannot be looked up."""
        look = partial(self._channels.of, number, PATIENT_SECONDS)
        return await lookup_retrying(look, "the channel of a message", self._call.pacing.sleep)

    def newcomer(self, channel: ChannelInfo, user: str) -> Asker:
        """Return a user in a channel as an asker, by cached facts.

        Other facts are looked up when the question is answered.
        """
        asker = Asker("mattermost", "dm" if channel.direct else "channel", channel.team, channel.id, user)
        person = self._people.known(user) or _UNKNOWN
        return place_asker(asker, channel, person, {channel.team} & self.teams, self.settings, ())

    async def refresh_asker(self, asker: Asker) -> Asker:
        """Return an asker with their current rights. Raises `PlatformUnavailable`."""
        return await self._place(asker, partial(lookup_or_raise, platform="Mattermost"), PATIENT_SECONDS)

    async def actor(self, user: str, channel: ChannelInfo, asked: Place | None = None) -> Asker:
        """Return a user who acts on an answer in a channel as an asker, with whether they may moderate there.

        `asked`: the question's place. A user who acts in our DM acts in that place, if they are still a member of it.
        """
        if asked and channel.direct and asked.channel != channel.id:
            other, administers = await self.find_channel(asked.channel), await self._administers(asked.channel, user)
            channel = other if other and administers is not None else channel
        asker = Asker("mattermost", "dm" if channel.direct else "channel", channel.team, channel.id, user)
        asker = await self._place(asker, lookup_or_default, LOOK_SECONDS)
        rules = (self._people.known(user) or _UNKNOWN).rules
        administers = None if channel.direct else await self._administers(channel.id, user)
        return replace(asker, moderates=bool(administers) or (rules and administers is not None))

    async def person(self, user: str) -> Person:
        """Return a user; an unknown one if the look-up fails."""
        return await lookup_or_default(partial(self._people.of, user), "a user", otherwise=_UNKNOWN)

    async def direct(self, user: str) -> str:
        """Return the id of our DM with a user. Raises `PlatformError`."""
        try:
            return await self._directs.of(user, PATIENT_SECONDS)
        except TimeoutError as error:
            raise PlatformUnavailable("Mattermost did not open a DM in time.", seconds=1.0) from error

    async def close(self) -> None:
        for cache in (self._channels, self._people, self._members, self._directs):
            await cache.close()

    async def _place(self, asker: Asker, lookup: Callable[..., Awaitable[Any]], seconds: float) -> Asker:
        kind = DIRECT if asker.kind == "dm" else ""
        unknown = ChannelInfo(asker.channel, kind, asker.workspace, shared=True)
        channel = await lookup(partial(self._channels.of, asker.channel, seconds), what="a channel", otherwise=unknown)
        person = await lookup(partial(self._people.of, asker.user, seconds), what="a user", otherwise=_UNKNOWN)
        if asker.kind != "dm":
            teams = {asker.workspace} & self.teams
        else:
            teams = {
                team
                for team in self.teams
                if await lookup(
                    partial(self._members.of, f"{team}/{asker.user}", seconds),
                    what="the members of a team",
                    otherwise=False,
                )
            }
        return place_asker(asker, channel, person, teams, self.settings, self._app.settings.readers)

    async def _look(self, number: str) -> ChannelInfo:
        channel = read_channel(await self._call(client.CHANNEL, channel=number))
        if channel is None:
            raise PlatformError("Mattermost returned no valid details of the channel.")
        return channel

    async def _look_person(self, user: str) -> Person:
        return read_person(await self._call(client.USER, user=user))

    async def _look_member(self, name: str) -> bool:
        team, _, user = name.partition("/")
        try:
            member = await self._call(client.TEAM_MEMBER, team=team, user=user)
        except (NotFound, NotAllowed):
            return False
        return not member.get("delete_at")

    async def _administers(self, channel: str, user: str) -> bool | None:
        """Return whether a user administers a channel; None if they are not a member, or if that is unknown."""
        try:
            member = await self._call(client.CHANNEL_MEMBER, channel=channel, user=user, patience=LOOK_SECONDS)
        except PlatformError:
            return None
        return bool(member.get("scheme_admin")) or "channel_admin" in str(member.get("roles", "")).split()

    async def _open_direct(self, user: str) -> str:
        return str((await self._call(client.DIRECT, [self._us.user, user]))["id"])


async def read_back(call: Callable[..., Awaitable[Any]], channel: str, since: int) -> AsyncIterator[Json]:
    """Yield the posts of a channel and its threads since a moment in milliseconds, newest first."""
    query = {"per_page": str(PAGE), "skipFetchThreads": "true"}
    while True:
        page = list_posts(await call(client.READ, query=query, channel=channel))
        for post in page:
            if post.get("create_at", 0) < since:
                return
            yield post
        if not page:
            return
        query = {**query, "before": str(page[-1]["id"])}


async def read_thread(call: ApiClient, root: str, **where: str) -> AsyncIterator[Json]:
    """Yield the posts of a thread; nothing if it does not exist. `where`: query fields of start and direction."""
    query, seen = {"perPage": str(PAGE), "skipFetchThreads": "false", **where}, set[str]()
    while True:
        try:
            page = await call(client.THREAD, query=query, post=root)
        except PostGone:
            return
        fresh = [post for post in list_posts(page) if str(post["id"]) not in seen]
        for post in fresh:
            seen.add(str(post["id"]))
            yield post
        replies = [post for post in fresh if post["id"] != root]
        if not page.get("has_next") or not replies:
            return
        last = replies[-1] if query.get("direction") == "up" else replies[0]
        query |= {"fromPost": str(last["id"]), "fromCreateAt": str(last["create_at"])}


async def find_our_posts(
    call: ApiClient, key: str, channel: str, root: str, since: int, us: MattermostBotIdentity
) -> PostedMessages:
    """Return our posts with the mark of a key, in the order of the answer's pages. `since`: milliseconds since 1970."""
    mark_key, marked = hash_key(key), list[tuple[int, int, str]]()
    posts = read_thread(call, root, direction="down") if root else read_back(call, channel, since)
    async for post in posts:
        mark = read_mark(post) if post.get("user_id") == us.user else None
        if mark and mark.key == mark_key:
            marked.append((mark.page, int(post.get("create_at", 0)), str(post["id"])))
    return PostedMessages(tuple(number for _, _, number in sorted(marked)))


async def read_conversation(
    call: ApiClient, question: Question, us: MattermostBotIdentity, most: int
) -> tuple[ConversationMessage, ...]:
    """Return the last messages before a question in its thread or DM, oldest first.

    A message that begins a thread in a channel has no earlier messages.
    """
    place, before = question.place, count_milliseconds(question.at)
    if place.workspace and place.thread in {"", question.message}:
        return ()
    turns = deque[ConversationMessage](maxlen=most)
    if place.thread:
        start = {"fromPost": question.message, "fromCreateAt": str(before), "direction": "up"}
        posts = [post async for post in read_thread(call, place.thread, **start)]
    else:
        query = {"per_page": str(min(most + 1, PAGE)), "skipFetchThreads": "true", "before": question.message}
        posts = list_posts(await call(client.READ, query=query, channel=place.channel))
    for post in sorted(posts, key=lambda post: (post.get("create_at", 0), str(post["id"]))):
        if post.get("create_at", 0) <= before and post["id"] != question.message and (turn := _to_turn(post, us)):
            turns.append(turn)
    return tuple(turns)


def _to_turn(post: Json, us: MattermostBotIdentity) -> ConversationMessage | None:
    number, at = str(post["id"]), read_time(int(post.get("create_at", 0)))
    if post.get("user_id") == us.user:
        text, user = read_own_text(str(post.get("message", ""))), ""
    elif person := parse_post(post, us):
        text, user = split_command(person.raw, us)[1], person.user
    else:
        return None
    return ConversationMessage(number, user, text, at) if text.strip() else None


def select_teams(joined: Mapping[str, str], wanted: Collection[str]) -> frozenset[str]:
    """Return the ids of the joined teams that settings name, by id or name; pure."""
    return frozenset(team for team, name in joined.items() if {team, name} & set(wanted))


async def list_channels(call: ApiClient, teams: Iterable[str]) -> tuple[NamedChannel, ...]:
    """List the bot's channels in `teams`, each with its id and its name in addresses. Raises `PlatformError`."""
    channels = list[NamedChannel]()
    for team in teams:
        listed = await call(client.MY_CHANNELS, team=team)
        active = (channel for channel in listed if channel.get("team_id") == team and not channel.get("delete_at"))
        channels += [
            NamedChannel(f"mattermost:{team}/{channel['id']}", str(channel.get("name", ""))) for channel in active
        ]
    return tuple(channels)
