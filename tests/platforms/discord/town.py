"""A fake Discord to start with: three people and an admin, and one of each kind of channel."""

from tests.platforms.discord.permissions import ADMINISTRATOR, MANAGE_MESSAGES, SEND, USUAL, VIEW
from tests.platforms.discord.world import (
    BOT,
    FOREIGN_GUILD,
    FORUM,
    GUILD,
    OTHER_BOT,
    OTHER_GUILD,
    Channel,
    Guild,
    Member,
    Role,
    User,
    World,
)
from tests.platforms.slack.clock import Clock

ADMIN_ROLE, HELPER_ROLE, OUR_ROLE = "401", "402", "403"


def town(clock: Clock) -> World:
    """Return the world: 101, 102, 103 write in 201, 202, 203 of guild 301, and 109 is its admin."""
    world = World(clock)
    names = {"101": "ana", "102": "ben", "103": "cleo", "104": "dora", "109": "admin"}
    world.users = {user: User(user, name) for user, name in names.items()}
    world.users |= {BOT: User(BOT, "Footnote", bot=True), OTHER_BOT: User(OTHER_BOT, "Reminder", bot=True)}
    _guild(world, Guild(GUILD, "Skarholm", "109"), ["101", "102", "103", "109", BOT, OTHER_BOT])
    _guild(world, Guild(OTHER_GUILD, "Elsewhere", "104"), ["102", "104", BOT])
    _guild(world, Guild(FOREIGN_GUILD, "Not ours", "104"), ["101", "104"])
    skarholm = world.guilds[GUILD]
    skarholm.roles[ADMIN_ROLE] = Role(ADMIN_ROLE, "admins", ADMINISTRATOR)
    skarholm.roles[HELPER_ROLE] = Role(HELPER_ROLE, "helpers", 0, mentionable=True)
    skarholm.roles[OUR_ROLE] = Role(OUR_ROLE, "Footnote", bot=BOT)
    skarholm.members[BOT].roles.add(OUR_ROLE)
    skarholm.members["109"].roles.add(ADMIN_ROLE)
    for channel, name in {"201": "general", "202": "harbour", "203": "random"}.items():
        world.channels[channel] = Channel(channel, name, guild=GUILD)
    world.channels["204"] = Channel("204", "not-ours", guild=GUILD, overwrites={BOT: (VIEW, 0)})
    world.channels["205"] = Channel("205", "read-only", guild=GUILD, overwrites={BOT: (SEND, 0)})
    world.channels["206"] = Channel("206", "questions", FORUM, guild=GUILD)
    world.channels["207"] = Channel("207", "tidied", guild=GUILD, overwrites={BOT: (0, MANAGE_MESSAGES)})
    world.channels["208"] = Channel("208", "private", guild=GUILD, overwrites={GUILD: (VIEW, 0), BOT: (0, VIEW)})
    world.channels["208"].overwrites["101"] = (0, VIEW)
    world.channels["211"] = Channel("211", "general", guild=OTHER_GUILD)
    world.channels["221"] = Channel("221", "general", guild=FOREIGN_GUILD)
    return world


def _guild(world: World, guild: Guild, members: list[str]) -> None:
    guild.roles[guild.id] = Role(guild.id, "@everyone", USUAL)
    guild.members = {user: Member(user) for user in members}
    world.guilds[guild.id] = guild
