"""The users that a message pings, by `allowed_mentions`, and the addresses of which it fetches previews."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from tests.platforms.discord import limits
from tests.platforms.discord.components import texts
from tests.platforms.discord.state import EPHEMERAL, MENTION_EVERYONE, SUPPRESS_EMBEDS, V2, Message, State, permissions
from tests.platforms.shapes import BOOL, choice, fields, several, wrong

_USER, _ROLE, _ALL = re.compile(r"<@!?(\d+)>"), re.compile(r"<@&(\d+)>"), re.compile(r"@(?:everyone|here)")
_URL = re.compile(r"(?<!<)https?://[^\s<>\])]+")


def snowflake(value: Any, where: str) -> Iterator[str]:
    if isinstance(value, bool) or not str(value).isdecimal():
        yield wrong(where, "must be a snowflake")


_FIELDS = fields(
    {},
    {
        "parse": several(choice("roles", "users", "everyone"), 3),
        "users": several(snowflake, limits.MENTIONS),
        "roles": several(snowflake, limits.MENTIONS),
        "replied_user": BOOL,
    },
)


def allowed_mentions(value: Any, where: str) -> Iterator[str]:
    yield from _FIELDS(value, where)
    for name in ("users", "roles"):
        if isinstance(value, dict) and value.get(name) and name in value.get("parse", ()):
            yield wrong(where, f"parse and {name} are mutually exclusive")


def ping(state: State, message: Message, allowed: Mapping[str, Any] | None) -> None:
    """Set on a message the users that it notifies and names, and the addresses that it unfurls."""
    text = "\n".join([message.content, *texts(message.components)])
    users = [one for one in _USER.findall(text) if one in state.users and _may(allowed, "users", one)]
    named = list(dict.fromkeys(users))
    replied = _replied(state, message)
    if replied and (allowed is None or allowed.get("replied_user", False)):
        named = list(dict.fromkeys([*named, replied]))
    message.mentions = named
    message.roles = _roles(state, message, text, allowed)
    pinged = [*named, *_groups(state, message, text, allowed)]
    message.notified = [] if message.flags & EPHEMERAL else pinged
    silent = message.flags & (SUPPRESS_EMBEDS | V2)
    message.unfurls = [] if silent else _URL.findall(message.content)


def _may(allowed: Mapping[str, Any] | None, kind: str, one: str) -> bool:
    return allowed is None or kind in allowed.get("parse", ()) or one in map(str, allowed.get(kind) or ())


def _groups(state: State, message: Message, text: str, allowed: Mapping[str, Any] | None) -> list[str]:
    channel = state.channels[message.channel]
    if not channel.guild:
        return []
    # An app that is installed for its user alone has no rights of its own there.
    everyone = bool(permissions(state, message.user, channel) & MENTION_EVERYONE)
    roles = state.guilds[channel.guild].roles
    named = [f"&{role}" for role in message.roles if everyone or roles[role].mentionable]
    every = everyone and _ALL.search(text) and (allowed is None or "everyone" in allowed.get("parse", ()))
    return [*named, *(["everyone"] if every else [])]


def _roles(state: State, message: Message, text: str, allowed: Mapping[str, Any] | None) -> list[str]:
    guild = state.guilds.get(state.channels[message.channel].guild)
    found = [one for one in _ROLE.findall(text) if guild and one in guild.roles and _may(allowed, "roles", one)]
    return list(dict.fromkeys(found))


def _replied(state: State, message: Message) -> str:
    root = state.messages.get((message.reference or {}).get("message_id", ""))
    return root.user if root and message.kind == 19 else ""
