"""Parse gateway events into frozen values, and list the bot's intents and permissions; pure."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import MappingProxyType

from bot.platforms.discord.messages import decode_markup
from bot.platforms.shared.payload_text import Json, read_object, read_objects
from storage.language.lazy_pattern import lazy_compile

PERMISSIONS: Mapping[str, tuple[int, str]] = MappingProxyType(
    {
        "View Channels": (1 << 10, "sees the channels"),
        "Send Messages": (1 << 11, "answers"),
        "Send Messages in Threads": (1 << 38, "answers in threads and forums"),
        "Create Public Threads": (1 << 35, "opens threads for longer exchanges"),
        "Read Message History": (1 << 16, "reads earlier messages, and replies"),
    }
)  # of the bot's role in a server: the bit of each, and its purpose
INVITE_PERMISSIONS = sum(bit for bit, _ in PERMISSIONS.values())  # requested by the bot's invitation link
ADMINISTRATOR, MANAGE_SERVER, MANAGE_MESSAGES = 1 << 3, 1 << 5, 1 << 13
GUILDS, MESSAGES, DIRECT, CONTENT = 1 << 0, 1 << 9, 1 << 12, 1 << 15  # intents; the last is privileged
CONTENT_FLAGS = (1 << 18) | (1 << 19)
"""An application's flags that let it read messages: of a verified bot in many servers, and of a bot in few."""


def list_intents(*, message_content: bool) -> int:
    return GUILDS | MESSAGES | DIRECT | (CONTENT if message_content else 0)


def build_invitation(application: str) -> str:
    query = f"scope=bot%20applications.commands&permissions={INVITE_PERMISSIONS}"
    return f"https://discord.com/oauth2/authorize?client_id={application}&{query}"


def may_moderate(permissions: object) -> bool:
    """Return whether permissions, a decimal string of bits, allow deleting others' messages."""
    bits = int(permissions) if isinstance(permissions, str) and permissions.isascii() and permissions.isdigit() else 0
    return bool(bits & (ADMINISTRATOR | MANAGE_MESSAGES))


@dataclass(frozen=True, slots=True)
class DiscordBotIdentity:
    """The ids of the bot's application and user."""

    application: str
    user: str


@dataclass(frozen=True, slots=True)
class DiscordMessagePosted:
    """A user's message in its current form."""

    guild: str  # the server; empty in a DM
    channel: str  # a thread's id if it is in a thread
    id: str
    user: str
    raw: str  # its text with Discord's markup; empty if hidden from us
    at: datetime
    roles: frozenset[str] | None = None  # the author's; None if unknown
    people: frozenset[str] = frozenset()  # mentioned users; a reply may mention its addressee invisibly
    groups: frozenset[str] = frozenset()  # mentioned roles
    names: Mapping[str, str] = field(default_factory=dict)  # of mentioned users, by id
    replied: str = ""  # the message that it replies to
    replied_user: str = ""  # that message's author
    edited: bool = False
    shown_name: str = ""  # the author's displayed name; empty if unknown

    @property
    def key(self) -> str:
        return build_message_key(self.guild, self.channel, self.id)


def build_message_key(guild: str, channel: str, message: str) -> str:
    return f"discord:{guild}/{channel}/{message}"


@dataclass(frozen=True, slots=True)
class DiscordMessageEdited:
    now: DiscordMessagePosted


@dataclass(frozen=True, slots=True)
class DiscordMessageDeleted:
    guild: str
    channel: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ChannelInfo:
    id: str
    kind: int
    guild: str = ""
    parent: str = ""  # a thread's channel
    name: str = ""

    @property
    def is_thread(self) -> bool:
        """Whether it is a thread; a post in a forum is one."""
        return self.kind in THREADS


DM, ANNOUNCED, THREAD, PRIVATE = 1, 10, 11, 12  # types of channels
_NEWLY_ENTERED = timedelta(days=1)
THREADS = frozenset({ANNOUNCED, THREAD, PRIVATE})


@dataclass(frozen=True, slots=True)
class PlaceUpdate:
    """What an event reports about a server's channels, threads and roles."""

    guild: str
    channels: tuple[ChannelInfo, ...] = ()
    gone: tuple[str, ...] = ()  # ids of deleted channels and threads
    roles: Mapping[str, str] = field(default_factory=dict)  # names by id
    ours: str = ""  # the role that Discord created for the bot
    joined: bool = False  # whether the event is about the server itself, as when the bot joins
    since: datetime | None = None  # when the bot joined
    lobby: str = ""  # the channel in which Discord greets new members
    language: str = ""  # the server's preferred one, such as `de`

    def is_new(self, now: datetime) -> bool:
        """Return whether the bot joined recently and the server has a channel for greetings."""
        return bool(self.lobby and self.since) and now - (self.since or now) < _NEWLY_ENTERED


DiscordEvent = DiscordMessagePosted | DiscordMessageEdited | DiscordMessageDeleted | PlaceUpdate | None

EPOCH_MS = 1_420_070_400_000  # the earliest moment of ids, in milliseconds since 1970
_PEOPLES = frozenset({0, 19})  # message types of users: plain messages and replies
_ID = lazy_compile(r"\d{1,20}")
_BROADCAST = lazy_compile(r"@(everyone|here)\b")


def parse_event(event: str, data: Json, us: DiscordBotIdentity) -> DiscordEvent:
    """Parse a gateway event; None if the bot ignores it."""
    reader = PARSERS.get(event)
    return reader(data, us) if reader else None


def parse_posted(message: Json, us: DiscordBotIdentity, guild: str = "") -> DiscordMessagePosted | None:
    """Parse a user's message; None for other messages. `guild`: its server, if the message does not name it."""
    author, user = read_object(message, "author"), read_id(read_object(message, "author"), "id")
    channel, number = read_id(message, "channel_id"), read_id(message, "id")
    content = message.get("content", "")
    if not (user and channel and number and isinstance(content, str)) or not _is_from_person(message, author, us):
        return None
    mentions = [mention for mention in read_objects(message, "mentions") if read_id(mention, "id")]
    reference, replied = read_object(message, "message_reference"), read_object(message, "referenced_message")
    return DiscordMessagePosted(
        read_id(message, "guild_id") or guild,
        channel,
        number,
        user,
        content,
        parse_snowflake_time(number),
        roles=read_ids(member.get("roles")) if (member := read_object(message, "member")) else None,
        people=frozenset(read_id(mention, "id") for mention in mentions),
        groups=read_ids(message.get("mention_roles")),
        names={read_id(mention, "id"): read_name(mention) for mention in mentions},
        replied=read_id(reference, "message_id") if not reference.get("type") else "",
        replied_user=read_id(read_object(replied, "author"), "id"),
        edited=bool(message.get("edited_timestamp")),
        shown_name=read_name({"member": member, **author}, otherwise=""),
    )


def is_addressed(message: DiscordMessagePosted, us: DiscordBotIdentity, roles: Collection[str] = ()) -> bool:
    """Return whether a message mentions us or our role, replies to us, or is in a DM."""
    mentioned = us.user in message.people or bool(message.groups & set(roles))
    return not message.guild or mentioned or message.replied_user == us.user


def is_to_another(message: DiscordMessagePosted, us: DiscordBotIdentity) -> bool:
    """Return whether a message addresses someone else: by a reply, its first mention, or @everyone."""
    if message.replied_user and message.replied_user != us.user:
        return True
    first = re.match(r"\s*<@([!&]?)(\d{1,20})>", message.raw)
    return bool(first and first[2] != us.user) or bool(_BROADCAST.match(message.raw.lstrip()))


def extract_text(raw: str, us: DiscordBotIdentity, names: Mapping[str, str], roles: Collection[str] = ()) -> str:
    """Return a message's text as its reader sees it, without mentions of the bot."""
    ours = "|".join((rf"<@!?{re.escape(us.user)}>", *(rf"<@&{re.escape(role)}>" for role in sorted(roles))))
    return decode_markup(re.sub(rf"(?:{ours})[,:]?[ \t]*", "", raw), names).strip()


def parse_snowflake_time(snowflake: str) -> datetime:
    return datetime.fromtimestamp(((int(snowflake) >> 22) + EPOCH_MS) / 1000, UTC)


def build_snowflake(seconds: float) -> int:
    """Return the smallest id that Discord could give at a moment, in seconds since 1970."""
    return max(int(seconds * 1000) - EPOCH_MS, 0) << 22


def read_channel(data: Json, guild: str = "") -> ChannelInfo | None:
    """Parse a channel or thread; None if it is invalid."""
    number, kind = read_id(data, "id"), data.get("type")
    if not number or not isinstance(kind, int):
        return None
    name, parent = data.get("name"), read_id(data, "parent_id")
    return ChannelInfo(number, kind, read_id(data, "guild_id") or guild, parent, name if isinstance(name, str) else "")


def read_id(data: Json, name: str) -> str:
    """Return the id in a field; empty if there is none."""
    value = data.get(name)
    return value if isinstance(value, str) and _ID.fullmatch(value) and int(value) < 1 << 64 else ""


def read_ids(value: object) -> frozenset[str]:
    listed = value if isinstance(value, list | tuple) else ()
    return frozenset(id_ for id_ in listed if isinstance(id_, str) and _ID.fullmatch(id_))


def read_name(user: Json, otherwise: str = "somebody") -> str:
    named = (read_object(user, "member").get("nick"), user.get("global_name"), user.get("username"))
    return next((name for name in named if isinstance(name, str) and name), otherwise)


def _is_from_person(message: Json, author: Json, us: DiscordBotIdentity) -> bool:
    automatic = author.get("bot") or author.get("system") or message.get("webhook_id") or author.get("id") == us.user
    kind = message.get("type", 0)
    return not automatic and isinstance(kind, int) and kind in _PEOPLES


def _parse_edited(data: Json, us: DiscordBotIdentity) -> DiscordMessageEdited | None:
    # Discord sends the same event when it adds a link preview, but without a time of an edit.
    now = parse_posted(data, us) if data.get("edited_timestamp") else None
    return DiscordMessageEdited(now) if now else None


def _parse_deleted(data: Json, _: DiscordBotIdentity) -> DiscordMessageDeleted | None:
    channel, many = read_id(data, "channel_id"), data.get("ids")
    ids = read_ids(many) if many is not None else read_ids([data.get("id")])
    guild = read_id(data, "guild_id")
    return DiscordMessageDeleted(guild, channel, tuple(sorted(ids))) if channel and ids else None


def _parse_guild(data: Json, us: DiscordBotIdentity) -> PlaceUpdate | None:
    guild = read_id(data, "id")
    if not guild or data.get("unavailable"):
        return None
    roles = [role for role in read_objects(data, "roles") if read_id(role, "id")]
    ours = next((read_id(role, "id") for role in roles if read_id(read_object(role, "tags"), "bot_id") == us.user), "")
    channels = _parse_channels((*read_objects(data, "channels"), *read_objects(data, "threads")), guild)
    return PlaceUpdate(
        guild,
        channels,
        roles=_parse_names(roles),
        ours=ours,
        joined=True,
        since=_parse_time(data.get("joined_at")),
        lobby=read_id(data, "system_channel_id"),
        language=str(data.get("preferred_locale") or "").partition("-")[0],
    )


def _parse_time(text: object) -> datetime | None:
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return at if at.tzinfo else None


def _parse_channel(data: Json, _: DiscordBotIdentity) -> PlaceUpdate | None:
    guild, channel = read_id(data, "guild_id"), read_channel(data)
    return PlaceUpdate(guild, (channel,)) if guild and channel else None


def _parse_gone(data: Json, _: DiscordBotIdentity) -> PlaceUpdate | None:
    guild, channel = read_id(data, "guild_id"), read_id(data, "id")
    return PlaceUpdate(guild, gone=(channel,)) if guild and channel else None


def _parse_thread_sync(data: Json, _: DiscordBotIdentity) -> PlaceUpdate | None:
    guild = read_id(data, "guild_id")
    return PlaceUpdate(guild, _parse_channels(read_objects(data, "threads"), guild)) if guild else None


def _parse_role(data: Json, us: DiscordBotIdentity) -> PlaceUpdate | None:
    guild, role = read_id(data, "guild_id"), read_object(data, "role")
    number = read_id(role, "id")
    if not guild or not number:
        return None
    ours = number if read_id(read_object(role, "tags"), "bot_id") == us.user else ""
    return PlaceUpdate(guild, roles=_parse_names([role]), ours=ours)


def _parse_channels(listed: Iterable[Json], guild: str) -> tuple[ChannelInfo, ...]:
    return tuple(channel for item in listed if (channel := read_channel(item, guild)))


def _parse_names(roles: Iterable[Json]) -> dict[str, str]:
    return {read_id(role, "id"): str(role.get("name") or "role") for role in roles}


PARSERS: Mapping[str, Callable[[Json, DiscordBotIdentity], DiscordEvent]] = MappingProxyType(
    {
        "MESSAGE_CREATE": parse_posted,
        "MESSAGE_UPDATE": _parse_edited,
        "MESSAGE_DELETE": _parse_deleted,
        "MESSAGE_DELETE_BULK": _parse_deleted,
        "GUILD_CREATE": _parse_guild,
        "GUILD_ROLE_CREATE": _parse_role,
        "GUILD_ROLE_UPDATE": _parse_role,
        "THREAD_LIST_SYNC": _parse_thread_sync,
        **dict.fromkeys(("CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE"), _parse_channel),
        **dict.fromkeys(("CHANNEL_DELETE", "THREAD_DELETE"), _parse_gone),
    }
)  # the parser of each kind of event
