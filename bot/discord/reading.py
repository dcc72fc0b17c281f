"""What the gateway's events mean: pure functions from their JSON to what somebody wrote, changed or deleted.

What bots and webhooks write, what Discord itself says, and what is forwarded is nothing. What people invoke beside
writing is read in `invoking`. Where we lack the intent to read messages, Discord hands over those that do not mention
us without their text.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from bot.discord.happening import Channel, Erased, Learned, Rewritten, Us, Written
from bot.discord.unescaping import plain
from bot.payloads import part, parts
from storage.language.lazy_pattern import lazy_compile

Json = Mapping[str, Any]
Meaning = Written | Rewritten | Erased | Learned | None

EPOCH_MS = 1_420_070_400_000
"""The first moment that ids can tell, in milliseconds since 1970."""
_PEOPLES = frozenset({0, 19})
"""The types of messages that people write: by themselves, and as a reply."""
_ID = lazy_compile(r"\d{1,20}")
_BROADCAST = lazy_compile(r"@(everyone|here)\b")


def read(event: str, data: Json, us: Us) -> Meaning:
    """Return what an event of the gateway means to us; None where it means nothing."""
    reader = READERS.get(event)
    return reader(data, us) if reader else None


def written(message: Json, us: Us, guild: str = "") -> Written | None:
    """Return a message as a person's; None where it is nobody's. `guild`: where it stands, if it does not say so."""
    author, user = part(message, "author"), id_of(part(message, "author"), "id")
    channel, number = id_of(message, "channel_id"), id_of(message, "id")
    content = message.get("content", "")
    if not (user and channel and number and isinstance(content, str)) or not _of_a_person(message, author, us):
        return None
    mentions = [one for one in parts(message, "mentions") if id_of(one, "id")]
    reference, replied = part(message, "message_reference"), part(message, "referenced_message")
    return Written(
        id_of(message, "guild_id") or guild,
        channel,
        number,
        user,
        content,
        moment(number),
        roles=ids(part(message, "member").get("roles")),
        people=frozenset(id_of(one, "id") for one in mentions),
        groups=ids(message.get("mention_roles")),
        names={id_of(one, "id"): name_of(one) for one in mentions},
        replied=id_of(reference, "message_id") if not reference.get("type") else "",
        replied_user=id_of(part(replied, "author"), "id"),
        edited=bool(message.get("edited_timestamp")),
    )


def addresses(one: Written, us: Us, roles: Collection[str] = ()) -> bool:
    """Return whether a message is to us: it mentions us or the role that is ours, replies to us, or is in a DM."""
    mentioned = us.user in one.people or bool(one.groups & set(roles))
    return not one.guild or mentioned or one.replied_user == us.user


def to_another(one: Written, us: Us) -> bool:
    """Return whether a message is to somebody else: it replies to them, begins with them, or calls everybody."""
    if one.replied_user and one.replied_user != us.user:
        return True
    first = re.match(r"\s*<@([!&]?)(\d{1,20})>", one.raw)
    return bool(first and first[2] != us.user) or bool(_BROADCAST.match(one.raw.lstrip()))


def said(raw: str, us: Us, names: Mapping[str, str], roles: Collection[str] = ()) -> str:
    """Return a text of Discord's in plain words, without the mentions of us."""
    ours = "|".join((rf"<@!?{re.escape(us.user)}>", *(rf"<@&{re.escape(role)}>" for role in sorted(roles))))
    return plain(re.sub(rf"(?:{ours})[,:]?[ \t]*", "", raw), names).strip()


def moment(snowflake: str) -> datetime:
    """Return when something got its id."""
    return datetime.fromtimestamp(((int(snowflake) >> 22) + EPOCH_MS) / 1000, UTC)


def snowflake_at(seconds: float) -> int:
    """Return the least id of a moment, in seconds since 1970."""
    return max(int(seconds * 1000) - EPOCH_MS, 0) << 22


def channel_of(data: Json, guild: str = "") -> Channel | None:
    """Return a channel or thread as Discord describes it; None where it does not."""
    number, kind = id_of(data, "id"), data.get("type")
    if not number or not isinstance(kind, int):
        return None
    name, parent = data.get("name"), id_of(data, "parent_id")
    return Channel(number, kind, id_of(data, "guild_id") or guild, parent, name if isinstance(name, str) else "")


def id_of(data: Json, name: str) -> str:
    """Return an id that a field holds; empty where it holds none."""
    found = data.get(name)
    return found if isinstance(found, str) and _ID.fullmatch(found) and int(found) < 1 << 64 else ""


def ids(found: object) -> frozenset[str]:
    """Return the ids of a list."""
    listed = found if isinstance(found, list | tuple) else ()
    return frozenset(one for one in listed if isinstance(one, str) and _ID.fullmatch(one))


def name_of(user: Json) -> str:
    """Return how somebody is called in Discord."""
    named = (part(user, "member").get("nick"), user.get("global_name"), user.get("username"))
    return next((one for one in named if isinstance(one, str) and one), "somebody")


def _of_a_person(message: Json, author: Json, us: Us) -> bool:
    automatic = author.get("bot") or author.get("system") or message.get("webhook_id") or author.get("id") == us.user
    kind = message.get("type", 0)
    return not automatic and isinstance(kind, int) and kind in _PEOPLES


def _message(data: Json, us: Us) -> Written | None:
    return written(data, us)


def _rewritten(data: Json, us: Us) -> Rewritten | None:
    # Discord says the same when it adds a preview of a link, and then no time of an edit is set.
    now = written(data, us) if data.get("edited_timestamp") else None
    return Rewritten(now) if now else None


def _erased(data: Json, _: Us) -> Erased | None:
    channel, many = id_of(data, "channel_id"), data.get("ids")
    found = ids(many) if many is not None else ids([data.get("id")])
    return Erased(id_of(data, "guild_id"), channel, tuple(sorted(found))) if channel and found else None


def _guild(data: Json, us: Us) -> Learned | None:
    guild = id_of(data, "id")
    if not guild or data.get("unavailable"):
        return None
    roles = [one for one in parts(data, "roles") if id_of(one, "id")]
    ours = next((id_of(one, "id") for one in roles if id_of(part(one, "tags"), "bot_id") == us.user), "")
    channels = _channels((*parts(data, "channels"), *parts(data, "threads")), guild)
    return Learned(guild, channels, roles=_names(roles), ours=ours, joined=True)


def _channel(data: Json, _: Us) -> Learned | None:
    guild, found = id_of(data, "guild_id"), channel_of(data)
    return Learned(guild, (found,)) if guild and found else None


def _gone(data: Json, _: Us) -> Learned | None:
    guild, found = id_of(data, "guild_id"), id_of(data, "id")
    return Learned(guild, gone=(found,)) if guild and found else None


def _synced(data: Json, _: Us) -> Learned | None:
    guild = id_of(data, "guild_id")
    return Learned(guild, _channels(parts(data, "threads"), guild)) if guild else None


def _role(data: Json, us: Us) -> Learned | None:
    guild, role = id_of(data, "guild_id"), part(data, "role")
    number = id_of(role, "id")
    if not guild or not number:
        return None
    return Learned(guild, roles=_names([role]), ours=number if id_of(part(role, "tags"), "bot_id") == us.user else "")


def _channels(listed: Iterable[Json], guild: str) -> tuple[Channel, ...]:
    return tuple(found for one in listed if (found := channel_of(one, guild)))


def _names(roles: Iterable[Json]) -> dict[str, str]:
    return {id_of(one, "id"): str(one.get("name") or "role") for one in roles}


READERS: Mapping[str, Callable[[Json, Us], Meaning]] = MappingProxyType(
    {
        "MESSAGE_CREATE": _message,
        "MESSAGE_UPDATE": _rewritten,
        "MESSAGE_DELETE": _erased,
        "MESSAGE_DELETE_BULK": _erased,
        "GUILD_CREATE": _guild,
        "GUILD_ROLE_CREATE": _role,
        "GUILD_ROLE_UPDATE": _role,
        "THREAD_LIST_SYNC": _synced,
        **dict.fromkeys(("CHANNEL_CREATE", "CHANNEL_UPDATE", "THREAD_CREATE", "THREAD_UPDATE"), _channel),
        **dict.fromkeys(("CHANNEL_DELETE", "THREAD_DELETE"), _gone),
    }
)
"""What reads each kind of event."""
