"""The bot's permissions: refusals that all routes share."""

from typing import Any

from tests.platforms.discord.refusing import Refusal, refusal
from tests.platforms.discord.state import (
    BOT,
    DM,
    FORUM,
    HISTORY,
    MANAGE_MESSAGES,
    MANAGE_THREADS,
    VIEW,
    Channel,
    Message,
    permissions,
    sends,
)


def visible(discord: Any, channel: str) -> Channel:
    """Return a channel that the bot sees. Raises `Refusal`."""
    found: Channel | None = discord.state.channels.get(channel)
    if found is None:
        raise refusal(10003)
    if not permissions(discord.state, BOT, found) & VIEW:
        raise refusal(50001)
    return found


def allowed(discord: Any, channel: Channel, needed: int) -> None:
    """Refuse what the bot has no right to. Raises `Refusal`."""
    if not permissions(discord.state, BOT, channel) & needed:
        raise refusal(50013)


def writable(discord: Any, channel: str) -> Channel:
    """Return a channel that the bot may write to. An archived thread is opened by that. Raises `Refusal`."""
    found = visible(discord, channel)
    if found.kind == FORUM:
        raise refusal(50008)
    if found.kind == DM:
        _reachable(discord, found)
    allowed(discord, found, sends(found))
    if found.locked and not permissions(discord.state, BOT, found) & MANAGE_THREADS:
        raise refusal(50083 if found.archived else 160005)
    if found.archived:
        found.archived = False
        discord.send_channel_event("THREAD_UPDATE", found)
    return found


def _reachable(discord: Any, channel: Channel) -> None:
    (user,) = channel.members - {BOT}
    shared = any({user, BOT} <= set(guild.members) for guild in discord.state.guilds.values())
    if discord.state.users[user].closed or discord.state.users[user].bot or not shared:
        raise refusal(50007)


def readable(discord: Any, channel: Channel) -> bool:
    return bool(permissions(discord.state, BOT, channel) & HISTORY)


def message_in(discord: Any, channel: Channel, message: str) -> Message:
    """Return a message of a channel; ephemeral ones are not there. Raises `Refusal`."""
    found: Message | None = discord.state.messages.get(message)
    if found is None or found.channel != channel.id or found.only:
        raise refusal(10008)
    return found


def not_archived(channel: Channel) -> None:
    """Refuse changes in an archived thread. Raises `Refusal`."""
    if channel.archived:
        raise refusal(50083)


def may_delete(discord: Any, channel: Channel, message: Message) -> Refusal | None:
    """Return the refusal to delete a message; None if it may be deleted."""
    if message.user == BOT or permissions(discord.state, BOT, channel) & MANAGE_MESSAGES & -(channel.kind != DM):
        return None
    return refusal(50003 if channel.kind == DM else 50013)
