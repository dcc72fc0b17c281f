"""views.*: modals and the App Home."""

import json
from typing import Any

from tests.platforms.shapes import Check, choice, fields, string
from tests.platforms.slack import limits
from tests.platforms.slack.blocks import objections, plain
from tests.platforms.slack.calls import Call, Refusal, method
from tests.platforms.slack.events import view_json
from tests.platforms.slack.state import View

_ANY: Check = lambda *_: iter(())  # noqa: E731
_KNOWN = {"private_metadata": string(3_000, 0), "callback_id": string(255, 0)}
_SHAPES = {
    "modal": fields(
        {"type": choice("modal"), "title": plain(24), "blocks": _ANY},
        {**_KNOWN, "close": plain(24), "submit": plain(24)},
    ),
    "home": fields({"type": choice("home"), "blocks": _ANY}, _KNOWN),
}


def checked(view: Any, kind: str = "modal") -> dict[str, Any]:
    """Return a view that Slack would take. Raises `Refusal`."""
    if not isinstance(view, dict) or view.get("type") != kind:
        raise Refusal("invalid_arguments", f"[ERROR] must be a {kind} [json-pointer:/view/type]")
    if len(json.dumps(view).encode()) > limits.VIEW_BYTES:
        raise Refusal("view_too_large")
    found = list(_SHAPES[kind](view, "/view"))
    found += objections(view.get("blocks"), "modal" if kind == "modal" else "home", "/view/blocks")
    inputs = any(isinstance(block, dict) and block.get("type") == "input" for block in view.get("blocks") or ())
    if kind == "modal" and inputs and "submit" not in view:
        found.append("[ERROR] missing required field: submit [json-pointer:/view]")
    if found:
        raise Refusal("invalid_arguments", *found)
    return view


def _open(slack: Any, call: Call) -> dict[str, Any]:
    body = checked(call.parsed("view", "invalid_arguments"))
    return {"view": view_json(slack.place(slack.triggered(call.get("trigger_id")), body))}


def _update(slack: Any, call: Call) -> dict[str, Any]:
    body = checked(call.parsed("view", "invalid_arguments"))
    view = next((one for one in slack.state.views.values() if one.id == call["view_id"]), None)
    if view is None:
        raise Refusal("not_found")
    slack.replace(view, body)
    return {"view": view_json(view)}


def _publish(slack: Any, call: Call) -> dict[str, Any]:
    body, state = checked(call.parsed("view", "invalid_arguments"), "home"), slack.state
    if call["user_id"] not in state.users:
        raise Refusal("user_not_found")
    view = View(f"V{state.number()}", call["user_id"], body, f"{state.number()}.home")
    state.homes[call["user_id"]] = view
    slack.displayed(body)
    return {"view": view_json(view)}


METHODS = {
    "views.open": method(_open, "view", "trigger_id"),
    "views.update": method(_update, "view view_id"),
    "views.publish": method(_publish, "user_id view"),
}
