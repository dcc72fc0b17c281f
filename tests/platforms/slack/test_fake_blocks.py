"""The blocks that the fake Slack accepts and refuses, at each limit, and compared with slack_sdk's models."""

import copy
from typing import Any

import pytest
from slack_sdk.models import blocks as models

from tests.platforms.slack.blocks import objections, too_long

pytestmark = pytest.mark.fakes
PLAIN = {"type": "plain_text", "text": "x"}
MRKDWN = {"type": "mrkdwn", "text": "x"}
BUTTON = {"type": "button", "text": PLAIN, "action_id": "a", "value": "7"}
LINK = {"type": "link", "url": "https://a.example/", "text": "x", "style": {"bold": True}}
SECTION = {"type": "rich_text_section", "elements": [{"type": "text", "text": "x"}, LINK]}
RICH = {"type": "rich_text", "elements": [SECTION, {"type": "rich_text_quote", "elements": [LINK]}]}
FEEDBACK = {"type": "feedback_buttons", "action_id": "f"}
FEEDBACK |= {name: {"text": PLAIN, "value": "up:7"} for name in ("positive_button", "negative_button")}
CARD = {"type": "task_card", "task_id": "1", "title": "x", "status": "complete", "details": RICH}
INPUT = {"type": "input", "label": PLAIN, "element": {"type": "plain_text_input", "action_id": "i"}, "optional": True}

GOOD: dict[str, dict[str, Any]] = {
    "section": {"type": "section", "text": MRKDWN, "block_id": "b"},
    "header": {"type": "header", "text": PLAIN},
    "divider": {"type": "divider"},
    "context": {"type": "context", "elements": [MRKDWN, PLAIN]},
    "actions": {"type": "actions", "elements": [BUTTON]},
    "context_actions": {"type": "context_actions", "elements": [FEEDBACK]},
    "rich_text": RICH,
    "task_card": CARD,
    "input": INPUT,
}

OPTIONS = [{"text": PLAIN, "value": "1"}]
GOOD["choice"] = {**INPUT, "element": {"type": "radio_buttons", "action_id": "r", "options": OPTIONS}}


def changed(name: str, *path: Any, to: Any) -> dict[str, Any]:
    """Return a good block with something else somewhere in it."""
    block = copy.deepcopy(GOOD[name])
    at: Any = block
    for step in path[:-1]:
        at = at[step]
    at[path[-1]] = to
    return block


@pytest.mark.parametrize("name", GOOD)
def test_valid_block_is_accepted(name: str) -> None:
    assert objections([GOOD[name]]) == []
    assert too_long([GOOD[name]]) == ""


@pytest.mark.parametrize("name", ["section", "header", "divider", "context", "actions", "rich_text", "input"])
def test_modal_refuses_blocks_of_messages(name: str) -> None:
    assert objections([GOOD[name]], "modal") == []
    for other in ("task_card", "context_actions"):
        assert "unsupported type" in objections([GOOD[name], GOOD[other]], "modal")[0]


@pytest.mark.parametrize(
    ("block", "objection"),
    [
        (changed("section", "text", "text", to="x" * 3_001), "must be less than 3001 characters"),
        (changed("section", "text", "text", to="😀" * 1_501), "must be less than 3001 characters"),
        (changed("section", "text", "text", to=""), "must be more than 0 characters"),
        (changed("section", "colour", to="red"), "invalid additional property: colour"),
        (changed("header", "text", to=MRKDWN), "must be one of: plain_text"),
        (changed("context", "elements", to=[PLAIN] * 11), "no more than 10 items"),
        (changed("actions", "elements", to=[BUTTON, BUTTON]), "already exists"),
        (changed("actions", "elements", 0, "text", "text", to="x" * 76), "must be less than 76 characters"),
        (changed("actions", "elements", 0, to=FEEDBACK), "unsupported type: feedback_buttons"),
        (changed("context_actions", "elements", 0, "positive_button", to={"text": PLAIN}), "missing required field"),
        (changed("rich_text", "elements", 0, "elements", 1, "url", to="a b"), "must be a valid URL"),
        (changed("rich_text", "elements", 0, to={"type": "text", "text": "x"}), "unsupported type: text"),
        (changed("choice", "element", "options", to=OPTIONS * 11), "no more than 10 items"),
        (
            changed("choice", "element", "options", 0, "text", to={"type": "plain_text", "text": "x" * 76}),
            "less than 76",
        ),
        (changed("task_card", "status", to="done"), "must be one of: pending"),
        (changed("task_card", "details", to="x"), "must be an object"),
        *(({"type": kind}, f"unsupported type: {kind}") for kind in ("video", "markdown")),
        ({}, "missing required field: type"),
        ("x", "missing required field: type"),
    ],
)
def test_invalid_block_is_refused(block: Any, objection: str) -> None:
    (found, *_) = objections([block])
    assert objection in found
    assert "[json-pointer:/blocks/0" in found or objection == "already exists"


def test_blocks_together_have_limits() -> None:
    assert "no more than 50 items" in objections([GOOD["divider"]] * 51)[0]
    assert objections([GOOD["divider"]] * 50) == []
    assert "`block_id` 'b' already exists" in objections([GOOD["section"]] * 2)[0]
    assert too_long([{"type": "section", "text": {"type": "mrkdwn", "text": "x" * 2_000}}] * 7) == "msg_blocks_too_long"


def test_blocks_built_by_slack_sdk_are_accepted() -> None:
    made = [
        models.SectionBlock(text="x"),
        models.HeaderBlock(text="x"),
        models.ContextBlock(elements=[models.MarkdownTextObject(text="x")]),
        models.ActionsBlock(elements=[models.ButtonElement(text="y", action_id="z", value="7")]),
        models.RichTextBlock(elements=[models.RichTextSectionElement(elements=[LINK])]),
        models.TaskCardBlock(task_id="1", title="x", status="in_progress"),
        models.ContextActionsBlock(elements=[models.FeedbackButtonsElement(**{k: FEEDBACK[k] for k in _BUTTONS})]),
    ]
    assert objections([block.to_dict() for block in made]) == []


_BUTTONS = ("positive_button", "negative_button", "action_id")
