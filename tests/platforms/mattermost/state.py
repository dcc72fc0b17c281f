"""The data of the fake Mattermost, which the server changes: people, channels, posts, reactions."""

import itertools
from dataclasses import dataclass, field
from typing import Any

from tests.platforms.clock import Clock


def made_id(name: str) -> str:
    """Return an id as Mattermost makes them: 26 lower-case letters and digits."""
    return f"{name:0<26}"[:26]


TEAM, OTHER_TEAM = made_id("team"), made_id("otherteam")
BOT, ANA, BEN, CLEO = map(made_id, ("bot", "ana", "ben", "cleo"))
GENERAL, PIER, PRIVATE, ELSEWHERE, FEW = map(made_id, ("general", "pier", "private", "elsewhere", "few"))
TOKEN = "fakebottokenneverlogged000"
"""A log that contains it has leaked."""


@dataclass
class User:
    id: str
    name: str
    roles: str = "system_user"
    locale: str = "en"
    bot: bool = False
    delete_at: int = 0
    remote_id: str = ""


@dataclass
class Channel:
    id: str
    name: str
    kind: str = "O"
    team: str = TEAM
    members: set[str] = field(default_factory=set)
    admins: set[str] = field(default_factory=set)
    archived: bool = False
    shared: bool = False
    last_post_at: int = 0


@dataclass
class Post:
    id: str
    user: str
    channel: str
    message: str
    root: str = ""
    kind: str = ""
    props: dict[str, Any] = field(default_factory=dict)
    create_at: int = 0
    edit_at: int = 0
    delete_at: int = 0
    reactions: list[tuple[str, str]] = field(default_factory=list)
    """User and emoji."""


@dataclass
class State:
    """Three people and the bot, in one team."""

    clock: Clock
    users: dict[str, User] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    teams: dict[str, set[str]] = field(default_factory=dict)
    """The members, by team."""
    posts: dict[str, Post] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=lambda: {TOKEN})
    """Those that are taken."""
    _numbers: Any = field(default_factory=lambda: itertools.count(1))
    _last: int = 0

    def now(self) -> int:
        """Return the time in milliseconds, never the same twice."""
        self._last = max(self._last + 1, int(self.clock.now() * 1000))
        return self._last

    def new_id(self) -> str:
        return f"{next(self._numbers):026d}"

    def here(self, channel: str) -> list[Post]:
        """Return the posts of a channel, oldest first."""
        found = [post for post in self.posts.values() if post.channel == channel and not post.delete_at]
        return sorted(found, key=lambda one: one.create_at)

    def thread(self, root: str) -> list[Post]:
        return [one for one in self.here(self.posts[root].channel) if root in {one.id, one.root}]

    def direct(self, one: str, other: str) -> Channel:
        """Return the DM of two users, made if needed."""
        for channel in self.channels.values():
            if channel.kind == "D" and channel.members == {one, other}:
                return channel
        made = Channel(self.new_id(), "__".join(sorted((one, other))), "D", "", {one, other})
        self.channels[made.id] = made
        return made


def make_state(clock: Clock) -> State:
    state, people = State(clock), {BOT, ANA, BEN, CLEO}
    for user, name in ((ANA, "ana"), (BEN, "ben"), (CLEO, "cleo")):
        state.users[user] = User(user, name)
    state.users[BOT] = User(BOT, "footnote", bot=True)
    state.teams = {TEAM: set(people), OTHER_TEAM: {BOT, BEN}}
    for channel, name in ((GENERAL, "General"), (PIER, "Pier")):
        state.channels[channel] = Channel(channel, name, members=set(people))
    state.channels[PRIVATE] = Channel(PRIVATE, "Private", "P", members=set(people))
    state.channels[ELSEWHERE] = Channel(ELSEWHERE, "Elsewhere", team=OTHER_TEAM, members={BOT, BEN})
    state.channels[FEW] = Channel(FEW, "few", "G", team="", members={BOT, ANA, BEN})
    return state
