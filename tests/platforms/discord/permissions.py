"""What somebody may do in a channel: roles, then overwrites, as Discord computes it."""

from tests.platforms.discord.world import PRIVATE_THREAD, Channel, World

VIEW, SEND, MANAGE_MESSAGES, EMBED, HISTORY = 1 << 10, 1 << 11, 1 << 13, 1 << 14, 1 << 16
MENTION_EVERYONE, ADMINISTRATOR, REACT = 1 << 17, 1 << 3, 1 << 6
USE_COMMANDS, MANAGE_THREADS, PUBLIC_THREADS, PRIVATE_THREADS = 1 << 31, 1 << 34, 1 << 35, 1 << 36
SEND_IN_THREADS = 1 << 38
ALL = (1 << 53) - 1
USUAL = VIEW | SEND | EMBED | HISTORY | REACT | USE_COMMANDS | PUBLIC_THREADS | SEND_IN_THREADS
"""What everybody may where nothing else is said."""


def permissions(world: World, user: str, channel: Channel) -> int:
    """Return the bits that somebody has in a channel, or in a thread's parent; none if they are not there."""
    if not channel.guild:
        return ALL if user in channel.members else 0
    guild, place = world.guilds[channel.guild], world.parent(channel)
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
    """Return which bit is needed to write to a channel."""
    return SEND_IN_THREADS if channel.is_thread else SEND
