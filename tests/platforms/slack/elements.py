"""Slack's block elements and composition objects, as checks: those that this project could use.

Counts and lengths are slack_sdk 3.47's and the reference's (docs.slack.dev/reference/block-kit). Others are unknown,
and so refused as `unsupported type`.
"""

from collections.abc import Iterator
from typing import Any

from tests.platforms.slack.shapes import (
    Check,
    choice,
    fields,
    kind,
    one_of,
    several,
    shape,
    string,
    typed,
    url,
    wrong,
)

BOOL = kind(bool)
ACTION_ID = {"action_id": string(255)}


def plain(most: int, least: int = 1) -> Check:
    """Return what checks a plain text."""
    return shape("plain_text", {"text": string(most, least)}, {"emoji": BOOL})


def text(most: int, least: int = 1) -> Check:
    """Return what checks a text of either kind."""
    mrkdwn = shape("mrkdwn", {"text": string(most, least)}, {"verbatim": BOOL})
    return typed({"plain_text": plain(most, least), "mrkdwn": mrkdwn})


CONFIRM = fields(
    {"title": plain(100), "text": text(300), "confirm": plain(30), "deny": plain(30)},
    {"style": choice("primary", "danger")},
)
STYLE = choice("primary", "danger")
BUTTON = shape(
    "button",
    {"text": plain(75)},
    {
        **ACTION_ID,
        "url": url(),
        "value": string(2_000),
        "style": STYLE,
        "confirm": CONFIRM,
        "accessibility_label": string(75),
    },
)
FEEDBACK_BUTTON = fields({"text": plain(75), "value": string(2_000)}, {"accessibility_label": string(75)})
FEEDBACK_BUTTONS = shape(
    "feedback_buttons", {"positive_button": FEEDBACK_BUTTON, "negative_button": FEEDBACK_BUTTON}, ACTION_ID
)
ICON_BUTTON = shape(
    "icon_button",
    {"icon": choice("trash"), "text": plain(75)},
    {
        **ACTION_ID,
        "value": string(2_000),
        "confirm": CONFIRM,
        "accessibility_label": string(75),
        "visible_to_user_ids": several(string()),
    },
)
IMAGE = shape("image", {"image_url": url(), "alt_text": string(2_000)})
OPTION = fields({"text": text(75), "value": string(150)}, {"description": plain(75), "url": url()})
OPTION_GROUP = fields({"label": plain(75), "options": several(OPTION, 100)})
_CHOSEN = {**ACTION_ID, "confirm": CONFIRM, "focus_on_load": BOOL}
_PLACEHOLDER = {"placeholder": plain(150)}


def _select(name: str, initial: str, of: Check, **more: Check) -> Check:
    groups = {"options": several(OPTION, 100), "option_groups": several(OPTION_GROUP, 100)}
    check = shape(name, {}, {**_CHOSEN, **_PLACEHOLDER, **groups, initial: of, **more})

    def both(value: Any, where: str) -> Iterator[str]:
        yield from check(value, where)
        yield from one_of(value, {"options", "option_groups"}, where)

    return both


STATIC_SELECT = _select("static_select", "initial_option", OPTION)
MULTI_STATIC_SELECT = _select(
    "multi_static_select", "initial_options", several(OPTION, 100), max_selected_items=kind(int, least=1)
)
_ID = string(255)
SELECTS = {
    "static_select": STATIC_SELECT,
    "multi_static_select": MULTI_STATIC_SELECT,
    "users_select": shape("users_select", {}, {**_CHOSEN, **_PLACEHOLDER, "initial_user": _ID}),
    "multi_users_select": shape(
        "multi_users_select",
        {},
        {**_CHOSEN, **_PLACEHOLDER, "initial_users": several(_ID), "max_selected_items": kind(int, least=1)},
    ),
    "channels_select": shape(
        "channels_select",
        {},
        {**_CHOSEN, **_PLACEHOLDER, "initial_channel": _ID, "response_url_enabled": BOOL},
    ),
}
OVERFLOW = shape("overflow", {"options": several(OPTION, 5)}, {**ACTION_ID, "confirm": CONFIRM})
CHECKBOXES = shape("checkboxes", {"options": several(OPTION, 10)}, {**_CHOSEN, "initial_options": several(OPTION, 10)})
RADIO_BUTTONS = shape("radio_buttons", {"options": several(OPTION, 10)}, {**_CHOSEN, "initial_option": OPTION})
DISPATCH = fields({}, {"trigger_actions_on": several(choice("on_enter_pressed", "on_character_entered"))})
_TYPED = {**ACTION_ID, **_PLACEHOLDER, "focus_on_load": BOOL, "dispatch_action_config": DISPATCH}
TEXT_INPUT = shape(
    "plain_text_input",
    {},
    {
        **_TYPED,
        "initial_value": string(3_000, 0),
        "multiline": BOOL,
        "min_length": kind(int, least=0, most=3_000),
        "max_length": kind(int, least=1, most=3_000),
    },
)
NUMBER_INPUT = shape(
    "number_input",
    {"is_decimal_allowed": BOOL},
    {**_TYPED, "initial_value": string(), "min_value": string(), "max_value": string()},
)
TIME_PICKER = shape("timepicker", {}, {**_CHOSEN, **_PLACEHOLDER, "initial_time": string(5)})
DATE_PICKER = shape("datepicker", {}, {**_CHOSEN, **_PLACEHOLDER, "initial_date": string(10)})

PICKED = {**SELECTS, "checkboxes": CHECKBOXES, "radio_buttons": RADIO_BUTTONS}
PICKED |= {"timepicker": TIME_PICKER, "datepicker": DATE_PICKER}
IN_ACTIONS = typed({"button": BUTTON, "overflow": OVERFLOW, **PICKED})
IN_SECTION = typed({"button": BUTTON, "overflow": OVERFLOW, "image": IMAGE, **PICKED})
IN_CONTEXT_ACTIONS = typed({"feedback_buttons": FEEDBACK_BUTTONS, "icon_button": ICON_BUTTON})
IN_INPUT = typed({"plain_text_input": TEXT_INPUT, "number_input": NUMBER_INPUT, **PICKED})
URL_SOURCE = shape("url", {"url": url(), "text": string()})


def in_context(value: Any, where: str) -> Iterator[str]:
    """Check an element of a context block: a text or an image."""
    if isinstance(value, dict) and value.get("type") == "image":
        yield from IMAGE(value, where)
    else:
        yield from text(3_000)(value, where)


def action_ids(elements: Any, where: str) -> Iterator[str]:
    """Object to an action_id that another element of the same block has."""
    seen = set[str]()
    for element in elements if isinstance(elements, list) else []:
        name = element.get("action_id") if isinstance(element, dict) else None
        if name is not None and name in seen:
            yield wrong(where, f"`action_id` {name!r} already exists")
        seen.add(name or "")
