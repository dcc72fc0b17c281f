"""auth.*, users.*, bots.*, team.*, reactions.* and apps.*: who is who, and who we are."""

import re
from typing import Any

from tests.platforms.slack import limits
from tests.platforms.slack.calls import Call, Refusal, method
from tests.platforms.slack.posting import visible
from tests.platforms.slack.state import APP, BOT, BOT_ID, TEAM, Message, User


def _who(slack: Any, call: Call) -> dict[str, Any]:
    del slack
    if call.token.kind == "app":
        return {"app_name": "footnote", "app_id": APP}
    us = {"user": "footnote", "user_id": BOT, "bot_id": BOT_ID}
    where = {"url": "https://footnote-test.slack.com/", "team": "Footnote test", "team_id": TEAM}
    return where | us | {"is_enterprise_install": False}


def _revoke(slack: Any, call: Call) -> dict[str, Any]:
    del slack
    if not call.flag("test"):
        call.token.error = "token_revoked"
    return {"revoked": not call.flag("test")}


def _connect(slack: Any, call: Call) -> dict[str, Any]:
    del call
    return {"url": f"{slack.url.replace('http', 'ws', 1)}/link?ticket={slack.sockets.ticket()}&app_id={APP}"}


def _user(slack: Any, call: Call) -> dict[str, Any]:
    user = slack.state.users.get(call["user"])
    if user is None:
        raise Refusal("user_not_found")
    return {"user": user_json(user)}


def _users(slack: Any, call: Call) -> dict[str, Any]:
    del call
    return {
        "members": [user_json(user) for user in slack.state.users.values()],
        "response_metadata": {"next_cursor": ""},
    }


def user_json(user: User) -> dict[str, Any]:
    """Return a person as users.info has them."""
    return {
        "id": user.id,
        "team_id": user.team,
        "name": user.name,
        "real_name": user.name.title(),
        "deleted": user.deleted,
        "is_bot": user.bot,
        "is_admin": user.admin,
        "is_owner": False,
        "is_restricted": bool(user.guest),
        "is_ultra_restricted": user.guest == "ultra_restricted",
        "is_stranger": user.team != TEAM,
        "locale": user.locale,
        "tz": "Europe/London",
        "profile": {"real_name": user.name.title(), "display_name": user.name},
    }


def _group_members(slack: Any, call: Call) -> dict[str, Any]:
    group = slack.state.groups.get(call["usergroup"])
    if group is None or (group.disabled and not call.flag("include_disabled")):
        raise Refusal("no_such_subteam")
    cursor = str(call.get("cursor") or "0")
    if not cursor.isdecimal() or int(cursor) > len(group.members):
        raise Refusal("invalid_cursor")
    end = int(cursor) + slack.page
    more = {"response_metadata": {"next_cursor": str(end)}} if end < len(group.members) else {}
    return {"users": group.members[int(cursor) : end], **more}


def _bot(slack: Any, call: Call) -> dict[str, Any]:
    del slack
    if call.get("bot") not in {None, BOT_ID}:
        raise Refusal("bot_not_found")
    return {"bot": {"id": BOT_ID, "deleted": False, "name": "footnote", "app_id": APP, "user_id": BOT}}


def _team(slack: Any, call: Call) -> dict[str, Any]:
    del slack, call
    return {"team": {"id": TEAM, "name": "Footnote test", "domain": "footnote-test", "enterprise_id": ""}}


def _react(slack: Any, call: Call) -> dict[str, Any]:
    users = _reaction(slack, call).reactions.setdefault(call["name"], [])
    if BOT in users:
        raise Refusal("already_reacted")
    users.append(BOT)
    slack.notify()
    return {}


def _unreact(slack: Any, call: Call) -> dict[str, Any]:
    users = _reaction(slack, call).reactions.get(call["name"], [])
    if BOT not in users:
        raise Refusal("no_reaction")
    users.remove(BOT)
    slack.notify()
    return {}


def _reaction(slack: Any, call: Call) -> Message:
    channel = visible(slack.state, call.get("channel") or "")
    if not re.fullmatch(r"[a-z0-9_+'-]+(::skin-tone-[2-6])?", call["name"]):
        raise Refusal("invalid_name")
    if BOT not in channel.members:
        raise Refusal("not_in_channel")
    if channel.archived:
        raise Refusal("is_archived")
    found = slack.state.messages.get((channel.id, str(call.get("timestamp"))))
    if found is None or found.only:
        raise Refusal("message_not_found")
    if sum(BOT in users for users in found.reactions.values()) >= limits.REACTIONS:
        raise Refusal("too_many_reactions")
    return found


METHODS = {
    "api.test": method(lambda _slack, _call: {}, "", "error foo"),
    "auth.test": method(_who, token="bot app"),
    "auth.revoke": method(_revoke, "", "test"),
    "apps.connections.open": method(_connect, scopes="connections:write", token="app"),
    "users.info": method(_user, "user", "include_locale", scopes="users:read"),
    "users.list": method(_users, "", "cursor limit include_locale team_id", scopes="users:read"),
    "usergroups.users.list": method(
        _group_members, "usergroup", "include_disabled team_id cursor", scopes="usergroups:read"
    ),
    "bots.info": method(_bot, "", "bot team_id", scopes="users:read"),
    "team.info": method(_team, "", "team domain", scopes="team:read"),
    "reactions.add": method(_react, "channel name timestamp", scopes="reactions:write"),
    "reactions.remove": method(_unreact, "name", "channel timestamp", scopes="reactions:write"),
}
