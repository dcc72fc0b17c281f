"""Slack's JSON of buttons, commands, shortcuts and submissions."""

from collections.abc import Iterator
from typing import Any

from tests.platforms.slack.events import message_json
from tests.platforms.slack.responding import made
from tests.platforms.slack.state import APP, TEAM, Message


def common(slack: Any, kind: str, user: str) -> dict[str, Any]:
    person = slack.state.users[user]
    return {
        "type": kind,
        "user": {"id": user, "username": person.name, "name": person.name, "team_id": person.team},
        "team": {"id": TEAM, "domain": "footnote-test"},
        "api_app_id": APP,
        "token": "deprecated",
        "enterprise": None,
        "is_enterprise_install": False,
        "trigger_id": slack.trigger(user),
    }


def pressed(slack: Any, user: str, message: Message, action: dict[str, Any]) -> dict[str, Any]:
    channel = slack.state.channels[message.channel]
    where = {"message_ts": message.ts, "channel_id": channel.id, "is_ephemeral": bool(message.only)}
    if message.thread:
        where["thread_ts"] = message.thread
    body = {
        "container": {"type": "message", **where},
        "channel": {"id": channel.id, "name": channel.name or "directmessage"},
        "state": {"values": {}},
        "response_url": made(slack, channel.id, user, message.ts),
        "actions": [action],
    }
    # The message itself is not there if only one sees it.
    shown = {} if message.only else {"message": message_json(message, slack.state)}
    return common(slack, "block_actions", user) | body | shown


def shortcut(slack: Any, user: str, callback_id: str, message: Message) -> dict[str, Any]:
    channel = slack.state.channels[message.channel]
    return common(slack, "message_action", user) | {
        "callback_id": callback_id,
        "action_ts": slack.state.ts(),
        "message_ts": message.ts,
        "message": message_json(message, slack.state),
        "channel": {"id": channel.id, "name": channel.name or "directmessage"},
        "response_url": made(slack, channel.id, user),
    }


def command(slack: Any, user: str, channel: str, name: str, text: str) -> dict[str, Any]:
    place = slack.state.channels[channel]
    return {
        "token": "deprecated",
        "team_id": TEAM,
        "team_domain": "footnote-test",
        "channel_id": channel,
        "channel_name": {"dm": "directmessage", "private": "privategroup"}.get(place.kind, place.name),
        "user_id": user,
        "user_name": slack.state.users[user].name,
        "command": name,
        "text": text,
        "api_app_id": APP,
        "is_enterprise_install": "false",
        "response_url": made(slack, channel, user),
        "trigger_id": slack.trigger(user),
    }


def elements(value: Any, block_id: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the buttons and inputs in blocks, with the ids of their blocks."""
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from elements(item, block_id or (item.get("block_id") or f"block-{number}"))
    elif isinstance(value, dict):
        if "action_id" in value:
            yield block_id, value
        for name in ("elements", "element", "blocks"):
            if name in value:
                yield from elements(value[name], block_id)


def action(element: dict[str, Any], block_id: str, ts: str, chosen: Any = None) -> dict[str, Any]:
    """Return the action of a press. `chosen`: for feedback buttons `positive` or `negative`."""
    body = {"type": element["type"], "action_id": element["action_id"], "block_id": block_id, "action_ts": ts}
    if element["type"] == "feedback_buttons":
        button = element[f"{chosen}_button"]
        return body | {"value": button["value"], "text": button["text"]}
    return body | {"text": element["text"]} | ({"value": element["value"]} if "value" in element else {})
