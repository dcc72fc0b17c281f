"""Slack's JSON of messages and events: pure."""

from typing import Any

from tests.platforms.slack.state import APP, BOT, BOT_ID, OTHER_BOT, TEAM, Channel, Message, State, View

TYPES = {"public": "channel", "private": "group", "dm": "im", "mpim": "mpim"}


def message_json(message: Message, state: State, *, metadata: bool = True) -> dict[str, Any]:
    body: dict[str, Any] = {"type": "message", "user": message.user, "ts": message.ts, "text": message.text}
    if message.user == BOT:
        body |= {"bot_id": BOT_ID, "app_id": APP, "bot_profile": {"id": BOT_ID, "app_id": APP, "name": "footnote"}}
    elif message.user == OTHER_BOT:
        body |= {"bot_id": "B8BOT", "app_id": "A8", "bot_profile": {"id": "B8BOT", "app_id": "A8", "name": "reminder"}}
    elif not message.subtype:
        body |= {"client_msg_id": f"client-{message.ts}"}
    if message.subtype:
        body["subtype"] = message.subtype
    user = state.users.get(message.user)
    body |= {"team": user.team if user else TEAM}
    if user and user.team != TEAM:
        body |= {"user_team": user.team, "source_team": user.team}
    if message.stream:
        body |= {"streaming_state": "in_progress" if message.stream.state == "streaming" else "completed"}
    if message.blocks:
        body["blocks"] = message.blocks
    if message.edited:
        body["edited"] = {"user": message.user, "ts": message.edited}
    if metadata and message.metadata:
        body["metadata"] = message.metadata
    return body | _thread(message, state)


def _thread(message: Message, state: State) -> dict[str, Any]:
    if message.thread:
        root = state.messages.get((message.channel, message.thread))
        return {"thread_ts": message.thread, "parent_user_id": root.user if root else "USLACKBOT"}
    replies = state.thread(message.channel, message.ts)[1:]
    if not replies:
        return {}
    people = list(dict.fromkeys(reply.user for reply in replies))
    counts = {"reply_count": len(replies), "reply_users_count": len(people), "latest_reply": replies[-1].ts}
    return {"thread_ts": message.ts, "reply_users": people, "is_locked": False, "subscribed": False, **counts}


def channel_json(channel: Channel) -> dict[str, Any]:
    body: dict[str, Any] = {
        "id": channel.id,
        "is_channel": channel.kind in {"public", "private"},
        "is_group": channel.kind == "private",
        "is_im": channel.kind == "dm",
        "is_mpim": channel.kind == "mpim",
        "is_private": channel.kind != "public",
        "is_archived": channel.archived,
        "is_shared": channel.externally,
        "is_ext_shared": channel.externally,
        "is_org_shared": False,
        "is_pending_ext_shared": False,
        "pending_shared": [],
        "shared_team_ids": [TEAM, *(["T2"] if channel.externally else [])],
        "context_team_id": TEAM,
        "created": 1_600_000_000,
    }
    if channel.kind == "dm":
        (user,) = channel.members - {BOT}
        return body | {"user": user, "is_open": True}
    member = BOT in channel.members
    return body | {"name": channel.name, "is_member": member, "previous_names": channel.old_names}


def message_event(message: Message, state: State, **more: Any) -> dict[str, Any]:
    kind = TYPES[state.channels[message.channel].kind]
    where = {"channel": message.channel, "event_ts": message.ts, "channel_type": kind}
    found = message_json(message, state)
    return {name: value for name, value in found.items() if not name.startswith("reply_")} | where | more


def changed_event(message: Message, before: Message, state: State) -> dict[str, Any]:
    now = {"message": message_json(message, state), "previous_message": message_json(before, state)}
    return _hidden("message_changed", message, state) | now


def deleted_event(message: Message, state: State) -> dict[str, Any]:
    gone = {"deleted_ts": message.ts, "previous_message": message_json(message, state)}
    return _hidden("message_deleted", message, state) | gone


def _hidden(subtype: str, message: Message, state: State) -> dict[str, Any]:
    ts, kind = state.ts(), TYPES[state.channels[message.channel].kind]
    where = {"channel": message.channel, "channel_type": kind, "hidden": True, "ts": ts, "event_ts": ts}
    return {"type": "message", "subtype": subtype, **where}


def callback(event: dict[str, Any], state: State, *, event_id: str = "") -> dict[str, Any]:
    number = state.number()
    channel = event.get("channel")
    shared = isinstance(channel, str) and channel in state.channels and state.channels[channel].externally
    installed = {"enterprise_id": None, "team_id": TEAM, "user_id": BOT, "is_bot": True, "is_enterprise_install": False}
    return {
        "token": "deprecated",
        "team_id": TEAM,
        "context_team_id": TEAM,
        "context_enterprise_id": None,
        "api_app_id": APP,
        "event": event,
        "type": "event_callback",
        "event_id": event_id or f"Ev{number:08}",
        "event_time": int(state.clock.now()),
        "authorizations": [installed],
        "is_ext_shared_channel": shared,
        "event_context": f"4-{number}",
    }


def view_json(view: View) -> dict[str, Any]:
    known = {"private_metadata": "", "callback_id": "", "notify_on_close": False, "clear_on_close": False}
    own = {"id": view.id, "team_id": TEAM, "app_id": APP, "bot_id": BOT_ID, "hash": view.hash}
    stack = {"root_view_id": view.id, "previous_view_id": None, "state": {"values": {}}}
    return {**known, **view.body, **own, **stack}
