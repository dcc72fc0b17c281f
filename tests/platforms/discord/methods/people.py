"""Users, DMs, guilds, the application itself, and where the gateway is."""

from typing import Any

from tests.platforms.discord.calls import Answer, Call, Route, check
from tests.platforms.discord.jsons import channel_json, guild_json, member_json, role_json, user_json
from tests.platforms.discord.mentions import snowflake
from tests.platforms.discord.refusing import refusal
from tests.platforms.discord.state import APP, BOT, Guild
from tests.platforms.shapes import fields

_DM = fields({"recipient_id": snowflake})


def me(discord: Any, _: Call) -> Answer:
    return Answer({**user_json(discord.state, BOT), "verified": True, "mfa_enabled": True, "flags": 0})


def open_dm(discord: Any, call: Call) -> Answer:
    """Open a DM. Whether the user takes DMs is checked when one is sent."""
    other = str(check(call.body, _DM)["recipient_id"])
    if other not in discord.state.users:
        raise refusal(10013)
    if other == BOT:
        raise refusal(50033)
    return Answer(channel_json(discord.state, discord.state.dm(other)))


def application(discord: Any, _: Call) -> Answer:
    body = {"id": APP, "name": "Footnote", "description": "", "icon": None, "bot_public": True, "rpc_origins": []}
    body |= {"bot_require_code_grant": False, "owner": user_json(discord.state, "109"), "verify_key": "0" * 64}
    body |= {"team": None, "flags": discord.gateway.flags, "interactions_endpoint_url": None}
    return Answer({**body, "bot": user_json(discord.state, BOT)})


def _guild(discord: Any, call: Call) -> Guild:
    found: Guild | None = discord.state.guilds.get(call["guild"])
    if found is None:
        raise refusal(10004)
    if BOT not in found.members:
        raise refusal(50001)
    return found


def guild(discord: Any, call: Call) -> Answer:
    return Answer(guild_json(discord.state, _guild(discord, call)))


def guilds(discord: Any, _: Call) -> Answer:
    ours = [one for one in discord.state.guilds.values() if BOT in one.members]
    shown = ("id", "name", "features", "icon", "banner")
    named = [{name: guild_json(discord.state, one)[name] for name in shown} for one in ours]
    return Answer([{**one, "owner": False, "permissions": "0"} for one in named])


def channels(discord: Any, call: Call) -> Answer:
    here = _guild(discord, call).id
    found = [channel for channel in discord.state.channels.values() if channel.guild == here and not channel.is_thread]
    return Answer([channel_json(discord.state, one) for one in found])


def roles(discord: Any, call: Call) -> Answer:
    found = _guild(discord, call)
    return Answer([role_json(discord.state, found.id, role) for role in found.roles])


def member(discord: Any, call: Call) -> Answer:
    found = _guild(discord, call)
    if call["user"] not in discord.state.users:
        raise refusal(10013)
    if call["user"] not in found.members:
        raise refusal(10007)
    return Answer(member_json(discord.state, found.id, call["user"]))


def active_threads(discord: Any, call: Call) -> Answer:
    here = _guild(discord, call).id
    found = [channel for channel in discord.state.channels.values() if channel.guild == here and channel.is_thread]
    shown = [channel_json(discord.state, one) for one in found if not one.archived and discord.sees(one)]
    return Answer({"threads": shown, "members": []})


ROUTES = (
    Route("me", "GET", "/users/@me", me),
    Route("my_guilds", "GET", "/users/@me/guilds", guilds),
    Route("open_dm", "POST", "/users/@me/channels", open_dm),
    Route("application", "GET", "/oauth2/applications/@me", application),
    Route("application", "GET", "/applications/@me", application),
    Route("get_guild", "GET", "/guilds/{guild}", guild),
    Route("get_channels", "GET", "/guilds/{guild}/channels", channels),
    Route("get_roles", "GET", "/guilds/{guild}/roles", roles),
    Route("get_member", "GET", "/guilds/{guild}/members/{user}", member),
    Route("active_threads", "GET", "/guilds/{guild}/threads/active", active_threads),
)
