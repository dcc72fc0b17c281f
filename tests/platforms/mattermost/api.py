"""Answers calls of the API v4 as its documents and its source say: permissions, validity, refusals."""

import re
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from tests.platforms.mattermost.state import BOT, Channel, Post, User

MAX_MESSAGE, MAX_PAGE, DEFAULT_PAGE = 16_383, 200, 60
_EMOJI = frozenset(
    ["octagonal_sign", "mag", "+1", "-1", "thumbsup", "raising_hand", "loudspeaker", "wastebasket", "star", "tada"]
)
_EMOJI |= {"zero", "one", "two", "three", "four", "five"}
"""Of the system's emoji those that anybody uses here."""
_ID = re.compile(r"[a-z0-9]{26}")


class Refusal(Exception):
    """A call that the server refuses, with its error."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(code)
        self.status, self.code = status, code


DENIED = Refusal(403, "api.context.permissions.app_error")
Handler = Callable[["Call"], Awaitable[Any]]


class Call:
    """A call, and the server that answers it."""

    def __init__(self, server: Any, request: web.Request, body: Any) -> None:
        if request.headers.get("Authorization", "").removeprefix("Bearer ") not in server.state.tokens:
            raise Refusal(401, "api.context.session_expired.app_error")
        self.server, self.state, self.body, self.query = server, server.state, body, request.query
        self.ids = {name: BOT if value == "me" else value for name, value in request.match_info.items()}
        if wrong := next(
            (name for name, value in self.ids.items() if name != "emoji" and not _ID.fullmatch(value)), ""
        ):
            raise Refusal(400, f"api.context.invalid_url_param.app_error.{wrong}")

    def channel(self, number: str, *, writes: bool = False) -> Channel:
        found: Channel | None = self.state.channels.get(number)
        if found is None:
            raise Refusal(404, "app.channel.get.existing.app_error")
        if BOT not in found.members or (writes and self.server.is_silenced):
            raise DENIED
        return found

    def post(self) -> Post:
        found: Post | None = self.state.posts.get(self.ids["post"])
        if found is None or found.delete_at:
            raise Refusal(404, "app.post.get.app_error")
        self.channel(found.channel)
        return found

    def number(self, name: str, otherwise: int) -> int:
        value = self.query.get(name, str(otherwise))
        if not value.isdigit():
            raise Refusal(400, "api.context.invalid_url_param.app_error")
        return int(value)


async def me(call: Call) -> Any:
    return user_json(call.state.users[BOT])


async def my_teams(call: Call) -> Any:
    return [{"id": team, "name": team.rstrip("0")} for team, members in call.state.teams.items() if BOT in members]


async def my_channels(call: Call) -> Any:
    """All that the bot is in of a team, and its DMs."""
    mine = [one for one in call.state.channels.values() if BOT in one.members]
    return [channel_json(one) for one in mine if one.team in {"", call.ids["team"]}]


async def user(call: Call) -> Any:
    found = call.state.users.get(call.ids["user"])
    if found is None:
        raise Refusal(404, "app.user.missing_account.const")
    return user_json(found)


async def team_member(call: Call) -> Any:
    team, who = call.ids["team"], call.ids["user"]
    if BOT not in call.state.teams.get(team, ()):
        raise DENIED
    if who not in call.state.teams[team]:
        raise Refusal(404, "app.team.get_member.missing.app_error")
    return {"team_id": team, "user_id": who, "delete_at": 0, "roles": "team_user"}


async def channel(call: Call) -> Any:
    return channel_json(call.channel(call.ids["channel"]))


async def channel_member(call: Call) -> Any:
    found, who = call.channel(call.ids["channel"]), call.ids["user"]
    if who not in found.members:
        raise Refusal(404, "app.channel.get_member.missing.app_error")
    return {"channel_id": found.id, "user_id": who, "roles": "channel_user", "scheme_admin": who in found.admins}


async def direct(call: Call) -> Any:
    if not isinstance(call.body, list) or len(call.body) != 2 or BOT not in call.body:
        raise Refusal(400, "api.context.invalid_body_param.app_error")
    if not set(call.body) <= set(call.state.users):
        raise Refusal(404, "app.user.missing_account.const")
    return channel_json(call.state.direct(*call.body))


async def read(call: Call) -> Any:
    """A page of a channel, newest first, replies among them."""
    here = call.state.here(call.channel(call.ids["channel"]).id)[::-1]
    if before := call.query.get("before"):
        anchor = call.state.posts[before].create_at
        here = [one for one in here if one.create_at < anchor]
    size = min(call.number("per_page", DEFAULT_PAGE), MAX_PAGE, call.server.page)
    start = call.number("page", 0) * size
    return list_json(here[start : start + size])


async def read_one(call: Call) -> Any:
    return post_json(call.post())


async def thread(call: Call) -> Any:
    """The post that is asked for first, then its thread in the direction that is asked for, from a post on."""
    asked, size = call.post(), call.number("perPage", 0)
    if size > MAX_PAGE or ("fromPost" in call.query) != ("fromCreateAt" in call.query):
        raise Refusal(400, "api.context.invalid_url_param.app_error")
    up = {"up": True, "down": False}.get(call.query.get("direction", "down"))
    if up is None:
        raise Refusal(400, "api.context.invalid_url_param.app_error")
    rest = [post for post in call.state.thread(asked.root or asked.id) if post.id != asked.id]
    if call.query.get("fromPost"):
        at = (call.number("fromCreateAt", 0), call.query["fromPost"])
        rest = [one for one in rest if ((one.create_at, one.id) < at if up else (one.create_at, one.id) > at)]
    rest = rest[::-1] if up else rest
    size = min(size or len(rest), call.server.page)
    return {**list_json([asked, *rest[:size]]), "has_next": len(rest) > size}


async def create(call: Call) -> Any:
    body = call.body
    if body.get("id") or not _ID.fullmatch(str(body.get("channel_id", ""))):
        raise Refusal(400, "api.context.invalid_body_param.app_error")
    where = call.channel(body["channel_id"], writes=True)
    if where.archived:
        raise Refusal(400, "api.post.create_post.can_not_post_to_deleted.error")
    pending = str(body.get("pending_post_id", ""))
    if pending and pending in call.server.pending_ids:
        first = call.state.posts[call.server.pending_ids[pending]]
        if first.delete_at:
            raise Refusal(500, "api.post.deduplicate_create_post.failed_to_get")
        return post_json(first)
    root = call.state.posts.get(body.get("root_id", ""))
    if body.get("root_id") and (root is None or root.delete_at or root.root):
        raise Refusal(400, "api.post.create_post.root_id.app_error")
    if root and root.channel != where.id:
        raise Refusal(400, "api.post.create_post.channel_root_id.app_error")
    _check(body.get("message", ""), body.get("props", {}))
    made = call.server.write(BOT, where, body["message"], root=body.get("root_id", ""), props=body.get("props", {}))
    if pending:
        call.server.pending_ids[pending] = made.id
    call.server.posts += 1
    return {**post_json(made), "pending_post_id": pending}


async def patch(call: Call) -> Any:
    found = call.state.posts.get(call.ids["post"])
    if found is None or found.delete_at or found.user != BOT:
        raise DENIED
    if call.channel(found.channel, writes=True).archived:
        raise Refusal(400, "api.post.patch_post.can_not_update_post_in_deleted.error")
    if call.server.edit_limit is not None and call.state.now() > found.create_at + call.server.edit_limit * 1000:
        raise Refusal(400, "api.post.update_post.permissions_time_limit.app_error")
    _check(call.body.get("message", found.message), call.body.get("props", found.props))
    call.server.rewrite(found, call.body.get("message", found.message), call.body.get("props", found.props))
    return post_json(found)


async def delete(call: Call) -> Any:
    found = call.post()
    if found.user != BOT:
        raise DENIED
    if call.channel(found.channel).archived:
        raise Refusal(400, "api.post.delete_post.can_not_delete_post_in_deleted.error")
    call.server.erase(found, by=BOT)
    return {"status": "OK"}


async def react(call: Call) -> Any:
    body = call.body
    if body.get("user_id") != BOT:
        raise Refusal(403, "api.reaction.save_reaction.user_id.app_error")
    if body.get("emoji_name") not in _EMOJI:
        raise Refusal(404, "app.emoji.get_by_name.no_result")
    call.ids["post"] = body["post_id"]
    found = call.post()
    if call.channel(found.channel).archived:
        raise Refusal(403, "api.reaction.save.archived_channel.app_error")
    call.server.react(BOT, found, body["emoji_name"])
    return {"user_id": BOT, "post_id": found.id, "emoji_name": body["emoji_name"]}


async def unreact(call: Call) -> Any:
    found = call.post()
    found.reactions = [reaction for reaction in found.reactions if reaction != (BOT, call.ids["emoji"])]
    return {"status": "OK"}


async def typing(call: Call) -> Any:
    where = call.channel(call.body["channel_id"], writes=True)
    call.server.typed.append(where.id)
    return {"status": "OK"}


async def open_dialog(call: Call) -> Any:
    """Show a dialog to the user whose trigger this is.

    The limits are those of `Dialog.IsValid` and `DialogElement.IsValid` (server/public/model/integration_action.go), in
    bytes. The server only logs what exceeds them; this one refuses it.
    """
    user = call.server.triggers.get(call.body.get("trigger_id"))
    if user is None:
        raise Refusal(400, "interactive_message.decode_trigger_id.base64_decode_failed")
    dialog = call.body.get("dialog") or {}
    sizes = [(dialog.get("title", ""), 1, 24), *((one["display_name"], 1, 24) for one in dialog["elements"])]
    sizes += [(one.get("help_text", ""), 0, 150) for one in dialog["elements"]]
    names = [one["name"] for one in dialog["elements"]]
    kinds = {one["type"] for one in dialog["elements"]} <= {"text", "textarea", "select", "radio", "bool"}
    fits = all(least <= len(text.encode()) <= most for text, least, most in sizes)
    options = [one for element in dialog["elements"] for one in element.get("options", ())]
    if not (call.body.get("url") and kinds and fits and len({*names}) == len(names)):
        raise Refusal(400, "api.context.invalid_body_param.app_error")
    if not all(one["text"] and one["value"] for one in options):
        raise Refusal(400, "api.context.invalid_body_param.app_error")
    call.server.dialogs[user] = call.body
    return {"status": "OK"}


def _check(message: str, props: Any) -> None:
    if not isinstance(message, str) or not isinstance(props, dict):
        raise Refusal(400, "api.context.invalid_body_param.app_error")
    if len(message) > MAX_MESSAGE:
        raise Refusal(400, "model.post.is_valid.message_length.app_error")
    for one in (one for attached in props.get("attachments", ()) for one in attached.get("actions", ())):
        if not re.fullmatch(r"[A-Za-z0-9]+", one["id"]) or not one["name"] or "url" not in one["integration"]:
            raise Refusal(400, "model.post.is_valid.props.app_error")


ROUTES: tuple[tuple[str, str, str, Handler], ...] = (
    ("GET", "/users/me", "me", me),
    ("GET", "/users/me/teams", "", my_teams),
    ("GET", "/users/me/teams/{team}/channels", "", my_channels),
    ("GET", "/users/{user}", "", user),
    ("GET", "/teams/{team}/members/{user}", "", team_member),
    ("GET", "/channels/{channel}", "", channel),
    ("GET", "/channels/{channel}/members/{user}", "", channel_member),
    ("POST", "/channels/direct", "", direct),
    ("GET", "/channels/{channel}/posts", "find", read),
    ("GET", "/posts/{post}", "", read_one),
    ("GET", "/posts/{post}/thread", "find", thread),
    ("POST", "/posts", "post", create),
    ("PUT", "/posts/{post}/patch", "edit", patch),
    ("DELETE", "/posts/{post}", "delete", delete),
    ("POST", "/reactions", "", react),
    ("DELETE", "/users/{user}/posts/{post}/reactions/{emoji}", "", unreact),
    ("POST", "/users/me/typing", "", typing),
    ("POST", "/actions/dialogs/open", "", open_dialog),
)
"""Verb, path, what it does with messages in the words of the contract, and what answers."""


def user_json(one: User) -> dict[str, Any]:
    facts: dict[str, Any] = {"id": one.id, "username": one.name, "roles": one.roles, "locale": one.locale}
    facts |= {"remote_id": one.remote_id} if one.remote_id else {}
    return {**facts, "delete_at": one.delete_at, **({"is_bot": True} if one.bot else {})}


def channel_json(one: Channel) -> dict[str, Any]:
    facts = {"id": one.id, "type": one.kind, "team_id": one.team, "display_name": one.name, "name": one.name.lower()}
    return {**facts, "delete_at": int(one.archived), "shared": one.shared, "last_post_at": one.last_post_at}


def post_json(one: Post) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "id": one.id,
        "user_id": one.user,
        "channel_id": one.channel,
        "root_id": one.root,
        "message": one.message,
    }
    facts |= {"type": one.kind, "props": sanitized(one.props), "pending_post_id": "", "original_id": ""}
    reactions = [{"user_id": who, "post_id": one.id, "emoji_name": emoji} for who, emoji in one.reactions]
    times = {"create_at": one.create_at, "edit_at": one.edit_at, "delete_at": one.delete_at}
    return {**facts, **times, "metadata": {"reactions": reactions}}


def sanitized(props: dict[str, Any]) -> dict[str, Any]:
    """Return properties as clients get them: without the addresses behind buttons."""
    attachments = [
        {**one, "actions": [{k: v for k, v in action.items() if k != "integration"} for action in one["actions"]]}
        if "actions" in one
        else one
        for one in props.get("attachments", ())
    ]
    return {**props, **({"attachments": attachments} if "attachments" in props else {})}


def list_json(posts: list[Post]) -> dict[str, Any]:
    return {"order": [one.id for one in posts], "posts": {one.id: post_json(one) for one in posts}}
