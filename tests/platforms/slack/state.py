"""The data of the fake Slack, which the server changes: people, channels, messages, streams, views."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tests.platforms.clock import Clock
from tests.platforms.slack.calls import Token

TEAM, APP, BOT, BOT_ID = "T1", "A0FOOTNOTE", "U0BOT", "B0BOT"
OTHER_TEAM, OTHER_BOT = "T2", "U8BOT"
BOT_TOKEN = "xoxb-111-222-FAKEBOTTOKENNEVERLOGGED"
APP_TOKEN = "xapp-1-A0FOOTNOTE-333-FAKEAPPTOKENNEVERLOGGED"
SIGNING_SECRET = "fakesigningsecretneverlogged0000"
SECRETS = (BOT_TOKEN, APP_TOKEN, SIGNING_SECRET, "FAKETRIGGERNEVERLOGGED", "FAKEHOOKNEVERLOGGED")
"""A log that contains one of these has leaked; the last two are in trigger ids and response_urls."""
SCOPES = frozenset(
    {
        *("app_mentions:read", "assistant:write", "chat:write", "commands", "im:write", "team:read"),
        *("usergroups:read", "users:read"),
        *(f"{kind}:{what}" for kind in ("channels", "groups", "im", "mpim") for what in ("history", "read")),
        *("reactions:read", "reactions:write"),
    }
)
"""What the bot's token may do; tests take scopes away."""
Kind = Literal["public", "private", "dm", "mpim"]


@dataclass
class User:
    id: str
    name: str
    team: str = TEAM
    bot: bool = False
    admin: bool = False
    guest: str = ""
    """restricted or ultra_restricted; empty for a member."""
    deleted: bool = False
    locale: str = "en-US"


@dataclass
class Group:
    """A user group."""

    id: str
    members: list[str] = field(default_factory=list)


@dataclass
class Channel:
    id: str
    name: str
    kind: Kind = "public"
    members: set[str] = field(default_factory=set)
    archived: bool = False
    externally: bool = False
    """Whether it is shared with other organisations."""
    old_names: list[str] = field(default_factory=list)
    threadless: bool = False
    """Whether admins forbid replies in threads."""


@dataclass
class Stream:
    """The live part of a message."""

    began: float
    state: Literal["streaming", "complete", "expired", "stopped_by_user"] = "streaming"
    parts: list[tuple[str, Any]] = field(default_factory=list)
    """In order: ("text", Markdown), ("task", its id), ("blocks", blocks)."""
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)


@dataclass
class Message:
    ts: str
    channel: str
    user: str
    text: str = ""
    thread: str = ""
    """The root's ts; empty for messages of the channel itself."""
    blocks: list[dict[str, Any]] = field(default_factory=list)
    metadata: dict[str, Any] | None = None
    only: str = ""
    """Who alone sees it; empty for all."""
    unshown: bool = False
    """Whether it is never shown: a private message in a thread without replies."""
    edited: str = ""
    """When, as a ts, if readers are shown that it was."""
    stream: Stream | None = None
    unfurls: bool = False
    """Whether a client would fetch previews of its links."""
    subtype: str = ""
    """Such as `channel_join`; empty for what a user wrote."""

    @property
    def root(self) -> str:
        return self.thread or self.ts


@dataclass
class View:
    id: str
    user: str
    body: dict[str, Any]
    hash: str


@dataclass
class Status:
    text: str
    loading: list[str]
    until: float


@dataclass
class State:
    """All data of the workspace, with its lookups."""

    clock: Clock
    users: dict[str, User] = field(default_factory=dict)
    groups: dict[str, Group] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    messages: dict[tuple[str, str], Message] = field(default_factory=dict)
    """By channel and ts."""
    gone: dict[tuple[str, str], Message] = field(default_factory=dict)
    views: dict[str, View] = field(default_factory=dict)
    """The open modal, by user."""
    homes: dict[str, View] = field(default_factory=dict)
    statuses: dict[tuple[str, str], Status] = field(default_factory=dict)
    """By channel and thread."""
    prompts: dict[tuple[str, str], list[dict[str, str]]] = field(default_factory=dict)
    tokens: dict[str, Token] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)

    def number(self) -> int:
        return next(self._numbers)

    def ts(self) -> str:
        """Return a new timestamp."""
        return f"{int(self.clock.now())}.{self.number():06}"

    def dm(self, user: str) -> Channel:
        """Return the bot's DM with a user, opened if needed."""
        made = Channel(f"D{user}", "", "dm", {user, BOT})
        return self.channels.setdefault(made.id, made)

    def add(self, message: Message) -> Message:
        self.messages[message.channel, message.ts] = message
        return message

    def thread(self, channel: str, root: str) -> list[Message]:
        """Return a root and its public replies, oldest first."""
        found = [one for one in self._here(channel) if one.root == root]
        return [one for one in found if not one.only]

    def top(self, channel: str) -> list[Message]:
        """Return the public messages of a channel outside of threads, oldest first."""
        return [message for message in self._here(channel) if not message.thread and not message.only]

    def _here(self, channel: str) -> Iterator[Message]:
        # They are in the order of their timestamps, for they were added when they got them.
        return (one for (where, _), one in self.messages.items() if where == channel)

    def ours(self) -> list[Message]:
        return [message for message in self.messages.values() if message.user == BOT]


def make_state(clock: Clock) -> State:
    """Return a workspace with three users and an admin, three channels, and one of each other kind."""
    state = State(clock)
    names = {"U1": "ana", "U2": "ben", "U3": "cleo", "U9": "admin", "UX": "xenia"}
    for user, name in names.items():
        state.users[user] = User(user, name, OTHER_TEAM if user == "UX" else TEAM, admin=user == "U9")
    state.users[BOT] = User(BOT, "footnote", bot=True)
    state.users[OTHER_BOT] = User(OTHER_BOT, "reminder", bot=True)
    everybody = {"U1", "U2", "U3", "U9", BOT, OTHER_BOT}
    for channel, name in {"C1": "general", "C2": "harbour", "C3": "random"}.items():
        state.channels[channel] = Channel(channel, name, members=set(everybody))
    state.channels["C4"] = Channel("C4", "elsewhere", members={"U1", "U2"})
    state.channels["C5"] = Channel("C5", "with-others", members={*everybody, "UX"}, externally=True)
    state.channels["C6"] = Channel("C6", "closed", members=set(everybody), archived=True)
    state.channels["G1"] = Channel("G1", "secret", "private", {"U1", "U2", BOT})
    state.channels["G2"] = Channel("G2", "not-ours", "private", {"U1", "U2"})
    state.channels["G3"] = Channel("G3", "mpdm-ana--ben--footnote-1", "mpim", {"U1", "U2", BOT})
    state.tokens[BOT_TOKEN] = Token(BOT_TOKEN, "bot", set(SCOPES))
    state.tokens[APP_TOKEN] = Token(APP_TOKEN, "app", {"connections:write"})
    return state
