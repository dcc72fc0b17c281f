"""auth.*, users.*, bots.*, team.*, reactions.* and apps.*: who is who, and who we are."""

from typing import Any

from tests.platforms.slack.calls import Call, Refusal, method
from tests.platforms.slack.state import APP, BOT, BOT_ID, TEAM, User


def _who(slack: Any, call: Call) -> dict[str, Any]:
    del slack
    if call.token.kind == "app":
        return {"app_name": "footnote", "app_id": APP}
    us = {"user": "footnote", "user_id": BOT, "bot_id": BOT_ID}
    where = {"url": "https://footnote-test.slack.com/", "team": "Footnote test", "team_id": TEAM}
    return where | us | {"is_enterprise_install": False}


def _connect(slack: Any, call: Call) -> dict[str, Any]:
    del call
    return {"url": f"{slack.url.replace('http', 'ws', 1)}/link?ticket={slack.sockets.ticket()}&app_id={APP}"}


def _user(slack: Any, call: Call) -> dict[str, Any]:
    user = slack.state.users.get(call["user"])
    if user is None:
        raise Refusal("user_not_found")
    return {"user": user_json(user)}


def user_json(user: User) -> dict[str, Any]:
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
    if group is None:
        raise Refusal("no_such_subteam")
    cursor = str(call.get("cursor") or "0")
    if not cursor.isdecimal() or int(cursor) > len(group.members):
        raise Refusal("invalid_cursor")
    end = int(cursor) + slack.page
    more = {"response_metadata": {"next_cursor": str(end)}} if end < len(group.members) else {}
    return {"users": group.members[int(cursor) : end], **more}


METHODS = {
    "auth.test": method(_who, token="bot app"),
    "apps.connections.open": method(_connect, scopes="connections:write", token="app"),
    "users.info": method(_user, "user", "include_locale", scopes="users:read"),
    "usergroups.users.list": method(
        _group_members, "usergroup", "include_disabled team_id cursor", scopes="usergroups:read"
    ),
}
