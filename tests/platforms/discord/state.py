"""The data of the fake Discord, which the server changes: people, guilds, channels, messages."""

import itertools
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from tests.platforms.clock import Clock

ADMIN_ROLE, HELPER_ROLE, OUR_ROLE = "401", "402", "403"
GUILD, OTHER_GUILD, FOREIGN_GUILD = "301", str((1 << 22) + 302), "303"
"""With two shards the second belongs to the other one. The bot is not a member of the third."""
BOT, OTHER_BOT, APP = "501", "502", "601"
"""The bot's user and its application have different ids, as those of older apps have."""
BOT_TOKEN = "FAKE.BOT.TOKENNEVERLOGGED"
SECRETS = (BOT_TOKEN, "FAKEINTERACTIONNEVERLOGGED")
"""A log that contains one of these has leaked; the last is in the tokens of interactions."""
VIEW, SEND, MANAGE_MESSAGES, EMBED, HISTORY = 1 << 10, 1 << 11, 1 << 13, 1 << 14, 1 << 16
MENTION_EVERYONE, ADMINISTRATOR, REACT = 1 << 17, 1 << 3, 1 << 6
USE_COMMANDS, MANAGE_THREADS, PUBLIC_THREADS = 1 << 31, 1 << 34, 1 << 35
SEND_IN_THREADS = 1 << 38
ALL = (1 << 53) - 1
USUAL = VIEW | SEND | EMBED | HISTORY | REACT | USE_COMMANDS | PUBLIC_THREADS | SEND_IN_THREADS
"""The rights of everybody by default."""
EPOCH = 1_420_070_400_000
STARTER = 21
"""The type of a thread's first entry, which represents the message that it was started from."""
TEXT, DM, NEWS_THREAD, THREAD, PRIVATE_THREAD, FORUM = 0, 1, 10, 11, 12, 15
SUPPRESS_EMBEDS, EPHEMERAL, LOADING, HAS_THREAD, SILENT, V2 = 1 << 2, 1 << 6, 1 << 7, 1 << 5, 1 << 12, 1 << 15


@dataclass
class User:
    id: str
    name: str
    bot: bool = False
    locale: str = "en-US"
    closed: bool = False
    """Whether they take no DMs."""


@dataclass
class Role:
    id: str
    name: str
    permissions: int = 0
    mentionable: bool = False
    bot: str = ""
    """Whose own role it is, which Discord made when the bot was invited."""


@dataclass
class Member:
    user: str
    roles: set[str] = field(default_factory=set)
    nick: str = ""


@dataclass
class Guild:
    id: str
    name: str
    owner: str
    roles: dict[str, Role] = field(default_factory=dict)
    members: dict[str, Member] = field(default_factory=dict)
    locale: str = "en-US"
    joined: str = "2024-05-01T00:00:00+00:00"
    """When the bot entered."""
    system: str = ""
    """The channel in which Discord greets who enters."""


@dataclass
class Channel:
    id: str
    name: str
    kind: int = TEXT
    guild: str = ""
    """Empty for DMs."""
    members: set[str] = field(default_factory=set)
    """The members of a DM or thread."""
    overwrites: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The denied and the allowed rights, by role or user."""
    parent: str = ""
    owner: str = ""
    archived: bool = False
    locked: bool = False
    archive_minutes: int = 1440
    topic: str = ""

    @property
    def is_thread(self) -> bool:
        return self.kind in {NEWS_THREAD, THREAD, PRIVATE_THREAD}


@dataclass
class Message:
    id: str
    channel: str
    user: str
    content: str = ""
    kind: int = 0
    flags: int = 0
    components: list[dict[str, Any]] = field(default_factory=list)
    embeds: list[dict[str, Any]] = field(default_factory=list)
    reference: dict[str, Any] | None = None
    nonce: str | int | None = None
    webhook: str = ""
    interaction: str = ""
    """The interaction that it answers."""
    only: str = ""
    """Who alone sees it; empty for all."""
    wrote: float = 0.0
    edited: float | None = None
    thread: str = ""
    notified: list[str] = field(default_factory=list)
    """Notified users and groups: users, `&role`s, `everyone`."""
    mentions: list[str] = field(default_factory=list)
    """Users in Discord's list of mentions, pinged or not."""
    roles: list[str] = field(default_factory=list)
    """The roles that it names, pinged or not."""
    unfurls: list[str] = field(default_factory=list)
    """The addresses of which a preview is fetched."""


@dataclass
class Interaction:
    id: str
    token: str
    kind: int
    user: str
    channel: str
    guild: str
    data: dict[str, Any]
    at: float
    message: str = ""
    name: str = ""
    acked: int = 0
    """The type of its answer; 0 while there is none."""
    original: str = ""
    """The id of the message that `@original` is."""
    follow_ups: int = 0
    modal: dict[str, Any] | None = None
    sessions: int = 0
    """How many sessions of the bot got its event."""


@dataclass
class State:
    """All data of the servers, with its lookups."""

    clock: Clock
    users: dict[str, User] = field(default_factory=dict)
    guilds: dict[str, Guild] = field(default_factory=dict)
    channels: dict[str, Channel] = field(default_factory=dict)
    messages: dict[str, Message] = field(default_factory=dict)
    gone: dict[str, Message] = field(default_factory=dict)
    interactions: dict[str, Interaction] = field(default_factory=dict)
    commands: list[dict[str, Any]] = field(default_factory=list)
    typing: dict[tuple[str, str], float] = field(default_factory=dict)
    """The end of the sign, by channel and user."""
    tokens: dict[str, str] = field(default_factory=lambda: {BOT_TOKEN: BOT})
    _numbers: Any = field(default_factory=itertools.count)

    def snowflake(self) -> str:
        """Return a new id, which contains the time."""
        return str((int(self.clock.now() * 1000) - EPOCH << 22) | next(self._numbers) & 0x3FFFFF)

    def time(self, seconds: float | None = None) -> str:
        return datetime.fromtimestamp(self.clock.now() if seconds is None else seconds, UTC).isoformat()

    def parent(self, channel: Channel) -> Channel:
        """Return the channel that a thread is in; any other is its own."""
        return self.channels[channel.parent] if channel.is_thread else channel

    def dm(self, user: str, other: str = BOT) -> Channel:
        """Return the DM of two users, opened if needed."""
        made = Channel(f"7{int(user):03}{other}", "", DM, members={user, other})
        return self.channels.setdefault(made.id, made)

    def here(self, channel: str) -> list[Message]:
        return sorted((one for one in self.messages.values() if one.channel == channel), key=lambda one: int(one.id))

    def ours(self) -> list[Message]:
        """Return the bot's messages, oldest first."""
        found = [one for one in self.messages.values() if one.user == BOT and one.kind != STARTER]
        return sorted(found, key=lambda one: int(one.id))

    def start(self, thread: Channel) -> None:
        """Put into a thread the entry that represents the message that it was started from."""
        root = self.messages[thread.id]
        reference = {"message_id": root.id, "channel_id": root.channel, "guild_id": thread.guild}
        starter = Message(self.snowflake(), thread.id, root.user, kind=STARTER, reference=reference)
        self.messages[starter.id] = starter


def permissions(state: State, user: str, channel: Channel) -> int:
    """Return the rights of a user in a channel, or in a thread's parent, as Discord computes them."""
    if not channel.guild:
        return ALL if user in channel.members else 0
    guild, place = state.guilds[channel.guild], state.parent(channel)
    member = guild.members.get(user)
    if member is None:
        return 0
    base = guild.roles[guild.id].permissions
    for role in member.roles:
        base |= guild.roles[role].permissions
    if guild.owner == user or base & ADMINISTRATOR:
        return ALL
    deny = allow = 0
    for role in member.roles:
        denied, allowed = place.overwrites.get(role, (0, 0))
        deny, allow = deny | denied, allow | allowed
    for denied, allowed in (place.overwrites.get(guild.id, (0, 0)), (deny, allow), place.overwrites.get(user, (0, 0))):
        base = (base & ~denied) | allowed
    if not base & VIEW:
        return 0
    hidden = channel.kind == PRIVATE_THREAD and user not in channel.members and not base & MANAGE_THREADS
    return 0 if hidden else base


def sends(channel: Channel) -> int:
    """Return the right that writing to a channel needs."""
    return SEND_IN_THREADS if channel.is_thread else SEND


def make_state(clock: Clock) -> State:
    """Return 101, 102, 103 in 201, 202, 203 of guild 301, its admin 109, and one channel of each other kind."""
    state = State(clock)
    names = {"101": "ana", "102": "ben", "103": "cleo", "104": "dora", "109": "admin"}
    state.users = {user: User(user, name) for user, name in names.items()}
    state.users |= {BOT: User(BOT, "Footnote", bot=True), OTHER_BOT: User(OTHER_BOT, "Reminder", bot=True)}
    _guild(state, Guild(GUILD, "Skarholm", "109"), ["101", "102", "103", "109", BOT, OTHER_BOT])
    _guild(state, Guild(OTHER_GUILD, "Elsewhere", "104"), ["102", "104", BOT])
    _guild(state, Guild(FOREIGN_GUILD, "Not ours", "104"), ["101", "104"])
    skarholm = state.guilds[GUILD]
    skarholm.roles[ADMIN_ROLE] = Role(ADMIN_ROLE, "admins", ADMINISTRATOR)
    skarholm.roles[HELPER_ROLE] = Role(HELPER_ROLE, "helpers", 0, mentionable=True)
    skarholm.roles[OUR_ROLE] = Role(OUR_ROLE, "Footnote", bot=BOT)
    skarholm.members[BOT].roles.add(OUR_ROLE)
    skarholm.members["109"].roles.add(ADMIN_ROLE)
    for channel, name in {"201": "general", "202": "harbour", "203": "random"}.items():
        state.channels[channel] = Channel(channel, name, guild=GUILD)
    state.channels["204"] = Channel("204", "not-ours", guild=GUILD, overwrites={BOT: (VIEW, 0)})
    state.channels["205"] = Channel("205", "read-only", guild=GUILD, overwrites={BOT: (SEND, 0)})
    state.channels["206"] = Channel("206", "questions", FORUM, guild=GUILD)
    state.channels["207"] = Channel("207", "tidied", guild=GUILD, overwrites={BOT: (0, MANAGE_MESSAGES)})
    state.channels["208"] = Channel("208", "private", guild=GUILD, overwrites={GUILD: (VIEW, 0), BOT: (0, VIEW)})
    state.channels["208"].overwrites["101"] = (0, VIEW)
    state.channels["211"] = Channel("211", "general", guild=OTHER_GUILD)
    state.channels["221"] = Channel("221", "general", guild=FOREIGN_GUILD)
    return state


def _guild(state: State, guild: Guild, members: list[str]) -> None:
    guild.roles[guild.id] = Role(guild.id, "@everyone", USUAL)
    guild.members = {user: Member(user) for user in members}
    state.guilds[guild.id] = guild
