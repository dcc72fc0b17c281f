"""A strict check of blocks: what Slack would refuse in a message, a modal or an App Home.

Counts and lengths are slack_sdk 3.47's and the reference's (docs.slack.dev/reference/block-kit). Blocks and elements
that this project does not use are unknown, and so refused as `unsupported type`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from tests.platforms.shapes import BOOL, Check, choice, fields, kind, several, shape, string, typed, units, url, wrong
from tests.platforms.slack import limits

Surface = Literal["message", "modal", "home"]


def plain(most: int, least: int = 1) -> Check:
    return shape("plain_text", {"text": string(most, least)}, {"emoji": BOOL})


def text(most: int, least: int = 1) -> Check:
    mrkdwn = shape("mrkdwn", {"text": string(most, least)})
    return typed({"plain_text": plain(most, least), "mrkdwn": mrkdwn})


_ID, _ACTION_ID = {"block_id": string(255)}, {"action_id": string(255)}
_CONFIRM = fields({"title": plain(100), "text": text(300), "confirm": plain(30), "deny": plain(30)})
_BUTTON = shape("button", {"text": plain(75)}, {**_ACTION_ID, "value": string(2_000), "confirm": _CONFIRM})
_FEEDBACK = fields({"text": plain(75), "value": string(2_000)})
_FEEDBACK_BUTTONS = shape("feedback_buttons", {"positive_button": _FEEDBACK, "negative_button": _FEEDBACK}, _ACTION_ID)
_LENGTH = kind(int, most=3_000)
_TEXT_INPUT = shape("plain_text_input", {}, {**_ACTION_ID, "multiline": BOOL, "max_length": _LENGTH})
_OPTIONS = several(fields({"text": plain(75), "value": string(150)}), 10, 1)
_CHOICES = {name: shape(name, {"options": _OPTIONS}, _ACTION_ID) for name in ("checkboxes", "radio_buttons")}
_INPUTS = {"plain_text_input": _TEXT_INPUT, **_CHOICES}

# Rich text pings and links only by elements of their own.
_MARKS = {"style": fields({}, dict.fromkeys(("bold", "italic", "strike", "code", "underline"), BOOL))}
_INLINE = typed(
    {
        "text": shape("text", {"text": string()}, _MARKS),
        "link": shape("link", {"url": url()}, {"text": string(), "unsafe": BOOL, **_MARKS}),
        "user": shape("user", {"user_id": string()}, _MARKS),
    }
)
_INLINES = {"elements": several(_INLINE)}
_RICH_TEXT_PARTS = {name: shape(name, _INLINES) for name in ("rich_text_section", "rich_text_quote")}
RICH_TEXT = shape("rich_text", {"elements": several(typed(_RICH_TEXT_PARTS), least=1)}, _ID)

_SIMPLE: Mapping[str, Check] = {
    "header": shape("header", {"text": plain(150)}, _ID),
    "divider": shape("divider", {}, _ID),
    "actions": shape("actions", {"elements": several(typed({"button": _BUTTON}), 25, 1)}, _ID),
    "context": shape("context", {"elements": several(text(3_000), 10, 1)}, _ID),
    "section": shape("section", {"text": text(3_000)}, _ID),
    "rich_text": RICH_TEXT,
    "input": shape(
        "input",
        {"label": plain(2_000), "element": typed(_INPUTS)},
        {"optional": BOOL, "hint": plain(2_000), **_ID},
    ),
}
_STATUS = choice("pending", "in_progress", "complete", "error")
_IN_MESSAGES: Mapping[str, Check] = {
    "context_actions": shape(
        "context_actions", {"elements": several(typed({"feedback_buttons": _FEEDBACK_BUTTONS}), 5, 1)}, _ID
    ),
    "task_card": shape(
        "task_card",
        {"task_id": string(), "title": string()},
        {"details": RICH_TEXT, "status": _STATUS, **_ID},
    ),
}
KINDS: Mapping[Surface, Check] = MappingProxyType(
    {"message": typed({**_SIMPLE, **_IN_MESSAGES}), "modal": typed(_SIMPLE), "home": typed(_SIMPLE)}
)
MOST: Mapping[Surface, int] = MappingProxyType(
    {"message": limits.MESSAGE_BLOCKS, "modal": limits.VIEW_BLOCKS, "home": limits.VIEW_BLOCKS}
)


def objections(blocks: Any, surface: Surface = "message", where: str = "/blocks") -> list[str]:
    """Return what Slack objects to; nothing if it takes the blocks."""
    found = list(several(KINDS[surface], MOST[surface], 1 if surface == "modal" else 0)(blocks, where))
    if found or not blocks:
        return found
    names = Counter(block["block_id"] for block in blocks if "block_id" in block)
    found += [wrong(where, f"`block_id` {name!r} already exists") for name, count in names.items() if count > 1]
    for number, block in enumerate(blocks):
        ids = Counter(one["action_id"] for one in block.get("elements", ()) if "action_id" in one)
        place = f"{where}/{number}/elements"
        found += [wrong(place, f"`action_id` {name!r} already exists") for name, count in ids.items() if count > 1]
    return found


def texts(value: Any) -> Iterator[str]:
    """Yield all text that a user could read in blocks."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            if name in {"text", "title"} and isinstance(item, str):
                yield item
            elif isinstance(item, (Mapping, list)):
                yield from texts(item)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from texts(item)


def too_long(blocks: Sequence[Mapping[str, Any]]) -> str:
    """Return the error for blocks that are each valid, but too long together; empty if they are not."""
    weight = sum(map(units, texts(blocks))) + limits.BLOCK_SIZE * len(blocks)
    return "msg_blocks_too_long" if weight > limits.BLOCKS_SIZE else ""
