"""A strict check of blocks: what Slack would refuse in a message, a modal or an App Home.

`task_card`, `plan`, `table`, `markdown` and `context_actions` stand in messages alone; kinds that this project has no
use for (video, file, call, card, carousel, container, data tables and charts) are unknown, and so refused.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal

from tests.platforms.slack import limits
from tests.platforms.slack.elements import (
    BOOL,
    IN_ACTIONS,
    IN_CONTEXT_ACTIONS,
    IN_INPUT,
    IN_SECTION,
    URL_SOURCE,
    action_ids,
    in_context,
    plain,
    text,
)
from tests.platforms.slack.rich_text import RICH_TEXT
from tests.platforms.slack.shapes import Check, choice, fields, several, shape, string, typed, units, url, wrong

Surface = Literal["message", "modal", "home"]
_ID = {"block_id": string(255)}
_STATUS = choice("pending", "in_progress", "complete", "error")


def _section(value: Any, where: str) -> Iterator[str]:
    known = {"text": text(3_000), "fields": several(text(2_000), 10), "accessory": IN_SECTION, "expand": BOOL}
    yield from shape("section", {}, known | _ID)(value, where)
    if not {"text", "fields"} & set(value):
        yield wrong(where, "missing required field: text")


def _table_cell(value: Any, where: str) -> Iterator[str]:
    # An empty cell is refused, which surprises people [K].
    yield from typed({"raw_text": shape("raw_text", {"text": string()}), "rich_text": RICH_TEXT})(value, where)


_TASK_CARD = shape(
    "task_card",
    {"task_id": string(), "title": string()},
    {"details": RICH_TEXT, "output": RICH_TEXT, "sources": several(URL_SOURCE, least=0), "status": _STATUS, **_ID},
)
_SIMPLE: Mapping[str, Check] = {
    "header": shape("header", {"text": plain(150)}, _ID),
    "divider": shape("divider", {}, _ID),
    "image": shape("image", {"image_url": url(), "alt_text": string(2_000)}, {"title": plain(2_000), **_ID}),
    "actions": shape("actions", {"elements": several(IN_ACTIONS, 25)}, _ID),
    "context": shape("context", {"elements": several(in_context, 10)}, _ID),
    "section": _section,
    "rich_text": RICH_TEXT,
    "alert": shape(
        "alert",
        {"text": text(3_000)},  # [K] the length: the reference names none
        {"level": choice("default", "info", "warning", "error", "success"), **_ID},
    ),
    "input": shape(
        "input",
        {"label": plain(2_000), "element": IN_INPUT},
        {"hint": plain(2_000), "optional": BOOL, "dispatch_action": BOOL, **_ID},
    ),
}
_IN_MESSAGES: Mapping[str, Check] = {
    "markdown": shape("markdown", {"text": string(limits.MARKDOWN)}, _ID),
    "context_actions": shape("context_actions", {"elements": several(IN_CONTEXT_ACTIONS, 5)}, _ID),
    "task_card": _TASK_CARD,
    "plan": shape("plan", {"title": string()}, {"tasks": several(_TASK_CARD, least=0), **_ID}),
    "table": shape(
        "table",
        {"rows": several(several(_table_cell, 20), 100)},
        {
            "column_settings": several(
                fields({}, {"align": choice("left", "center", "right"), "is_wrapped": BOOL}), 20
            ),
            **_ID,
        },
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
    least = 1 if surface == "modal" else 0
    found = list(several(KINDS[surface], MOST[surface], least)(blocks, where))
    if found or not blocks:
        return found
    names = Counter(block["block_id"] for block in blocks if "block_id" in block)
    found += [wrong(where, f"`block_id` {name!r} already exists") for name, count in names.items() if count > 1]
    for number, block in enumerate(blocks):
        found += action_ids(block.get("elements"), f"{where}/{number}/elements")
    if sum(block["type"] == "table" for block in blocks) > 1:
        found.append(wrong(where, "only_one_table_allowed"))
    return found


def texts(value: Any) -> Iterator[str]:
    """Yield all text that a person could read in blocks."""
    if isinstance(value, Mapping):
        for name, item in value.items():
            if name in {"text", "title", "alt_text"} and isinstance(item, str):
                yield item
            elif isinstance(item, (Mapping, list)):
                yield from texts(item)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for item in value:
            yield from texts(item)


def too_long(blocks: Sequence[Mapping[str, Any]]) -> str:
    """Return the error for blocks that are each well, but together too long; empty if they are not."""
    markdown = sum(units(block["text"]) for block in blocks if block["type"] == "markdown")
    weight = sum(map(units, texts(blocks))) + limits.BLOCK_SIZE * len(blocks)
    return "msg_blocks_too_long" if markdown > limits.MARKDOWN or weight > limits.BLOCKS_SIZE else ""
