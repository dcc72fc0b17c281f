"""Discord's JSON of users, channels, servers, messages and interactions."""

from typing import Any

from tests.platforms.discord.state import (
    APP,
    BOT,
    DM,
    HAS_THREAD,
    Channel,
    Guild,
    Interaction,
    Message,
    State,
    permissions,
)

LONG_AGO = "2024-05-01T00:00:00+00:00"


def user_json(state: State, user: str) -> dict[str, Any]:
    found = state.users[user]
    named = {"id": user, "username": found.name, "global_name": found.name.title(), "discriminator": "0"}
    return {**named, "avatar": None, "bot": found.bot, "public_flags": 0}


def member_json(state: State, guild: str, user: str, *, whole: bool = True) -> dict[str, Any]:
    """Return a member of a guild; with messages without their user."""
    member = state.guilds[guild].members[user]
    shown = {"roles": sorted(member.roles), "nick": member.nick or None, "avatar": None, "joined_at": LONG_AGO}
    shown |= {"premium_since": None, "deaf": False, "mute": False, "flags": 0, "pending": False}
    return {"user": user_json(state, user), **shown} if whole else shown


def channel_json(state: State, channel: Channel) -> dict[str, Any]:
    if channel.kind == DM:
        others = [user_json(state, member) for member in sorted(channel.members) if member != BOT]
        return {"id": channel.id, "type": DM, "recipients": others, "last_message_id": None, "flags": 0}
    body = {"id": channel.id, "type": channel.kind, "guild_id": channel.guild, "name": channel.name, "flags": 0}
    body |= {"last_message_id": None, "rate_limit_per_user": 0, "parent_id": channel.parent or None}
    return body | (_thread(state, channel) if channel.is_thread else _place(state, channel))


def _place(state: State, channel: Channel) -> dict[str, Any]:
    overwrites = [
        {"id": one, "type": int(one in state.users), "deny": str(deny), "allow": str(allow)}
        for one, (deny, allow) in channel.overwrites.items()
    ]
    body = {"position": int(channel.id), "permission_overwrites": overwrites, "nsfw": False}
    return body | {"topic": channel.topic or None, "available_tags": []}


def _thread(state: State, channel: Channel) -> dict[str, Any]:
    kept = {"archived": channel.archived, "locked": channel.locked, "archive_timestamp": LONG_AGO}
    kept |= {"auto_archive_duration": channel.archive_minutes, "create_timestamp": LONG_AGO}
    counts = {"message_count": len(state.here(channel.id)), "member_count": len(channel.members)}
    body = {"owner_id": channel.owner, "thread_metadata": kept, **counts, "total_message_sent": 0}
    if BOT in channel.members:
        body["member"] = {"id": channel.id, "user_id": BOT, "join_timestamp": LONG_AGO, "flags": 0}
    return body


def role_json(state: State, guild: str, role: str) -> dict[str, Any]:
    found = state.guilds[guild].roles[role]
    body = {"id": role, "name": found.name, "permissions": str(found.permissions), "mentionable": found.mentionable}
    body |= {"color": 0, "colors": {"primary_color": 0}, "hoist": False, "managed": bool(found.bot), "flags": 0}
    body |= {"tags": {"bot_id": found.bot}} if found.bot else {}
    return body | {"position": 0 if role == guild else 1}


def guild_json(state: State, guild: Guild) -> dict[str, Any]:
    """Return a guild as its bot gets it: without more intents it has no member but the bot."""
    channels = [one for one in state.channels.values() if one.guild == guild.id]
    threads = [one for one in channels if one.is_thread and not one.archived and permissions(state, BOT, one)]
    body = {"id": guild.id, "name": guild.name, "owner_id": guild.owner, "preferred_locale": guild.locale}
    body |= {"roles": [role_json(state, guild.id, role) for role in guild.roles], "emojis": [], "features": []}
    body |= {"member_count": len(guild.members), "members": [member_json(state, guild.id, BOT)], "large": False}
    body |= {"channels": [channel_json(state, channel) for channel in channels if not channel.is_thread]}
    body |= {
        "threads": [channel_json(state, thread) for thread in threads],
        "joined_at": guild.joined,
        "unavailable": False,
    }
    body |= dict.fromkeys(("icon", "splash", "banner", "description", "rules_channel_id"))
    body |= {"system_channel_id": guild.system or None}
    body |= {"verification_level": 0, "explicit_content_filter": 0, "default_message_notifications": 0}
    body |= {"mfa_level": 0, "afk_timeout": 300, "premium_tier": 0, "nsfw_level": 0, "system_channel_flags": 0}
    return body | {
        "voice_states": [],
        "presences": [],
        "stage_instances": [],
        "guild_scheduled_events": [],
        "stickers": [],
    }


def message_json(state: State, message: Message, *, readable: bool = True, nested: bool = True) -> dict[str, Any]:
    """Return a message. `readable`: whether its content may be read without the intent for that."""
    channel = state.channels[message.channel]
    direct = channel.kind == DM or message.user == BOT or BOT in message.mentions
    shown = readable or direct
    users = [user_json(state, mention) for mention in message.mentions]
    body: dict[str, Any] = {"id": message.id, "channel_id": message.channel, "type": message.kind, "tts": False}
    body |= {"author": user_json(state, message.user), "content": message.content if shown else ""}
    body |= {"components": message.components if shown else [], "embeds": message.embeds if shown else []}
    body |= {"timestamp": state.time((int(message.id) >> 22) / 1000 + 1_420_070_400), "pinned": False}
    body |= {"edited_timestamp": None if message.edited is None else state.time(message.edited)}
    body |= {"mention_everyone": "everyone" in message.notified, "mentions": users, "mention_roles": message.roles}
    body |= {"attachments": [], "flags": message.flags | (HAS_THREAD if message.thread else 0)}
    if message.webhook:
        body |= {"webhook_id": message.webhook, "application_id": APP}
    if message.thread:
        body["thread"] = channel_json(state, state.channels[message.thread])
    if message.interaction:
        body["interaction_metadata"] = _metadata(state, state.interactions[message.interaction])
    return body | (_reference(state, message, readable=readable) if message.reference and nested else {})


def _reference(state: State, message: Message, *, readable: bool) -> dict[str, Any]:
    assert message.reference
    root = state.messages.get(message.reference["message_id"])
    shown = message_json(state, root, readable=readable, nested=False) if root else None
    return {"message_reference": {"type": 0, **message.reference}, "referenced_message": shown}


def _metadata(state: State, interaction: Interaction) -> dict[str, Any]:
    body = {"id": interaction.id, "type": interaction.kind, "user": user_json(state, interaction.user)}
    owners = {"0": interaction.guild or "0"}
    return body | {"name": interaction.name, "authorizing_integration_owners": owners}


def interaction_json(state: State, interaction: Interaction, *, installed: str = "") -> dict[str, Any]:
    """Return an interaction as its app gets it. `installed`: the user who installed the app, if not the guild."""
    channel = state.channels[interaction.channel]
    may = permissions(state, interaction.user, channel)
    ours = permissions(state, BOT, channel)
    owners = {"1": installed} if installed else {"0": interaction.guild or "0"}
    context = 0 if interaction.guild else (1 if BOT in channel.members else 2)
    body: dict[str, Any] = {"id": interaction.id, "application_id": APP, "type": interaction.kind, "version": 1}
    body |= {"token": interaction.token, "data": interaction.data, "channel_id": channel.id, "entitlements": []}
    body |= {"channel": {**channel_json(state, channel), "permissions": str(may)}, "app_permissions": str(ours)}
    body |= {"locale": state.users[interaction.user].locale, "authorizing_integration_owners": owners}
    body |= {"context": context, "attachment_size_limit": 10_485_760}
    if interaction.message:
        body["message"] = message_json(state, _message(state, interaction.message))
    if not interaction.guild:
        return body | {"user": user_json(state, interaction.user)}
    guild = state.guilds[interaction.guild]
    body |= {"guild_id": guild.id, "guild_locale": guild.locale}
    body |= {"guild": {"id": guild.id, "locale": guild.locale, "features": []}}
    return body | {"member": {**member_json(state, guild.id, interaction.user), "permissions": str(may)}}


def _message(state: State, message: str) -> Message:
    return state.messages.get(message) or state.gone[message]
