"""Slack's blocks as HTML, in looks of our own; pure. Kinds that the bot does not make are refused.

Blocks carry whatever a document or a person says: nothing of it may become HTML.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from tools.pictures.markup import Json, Names, Undrawn, link, mention, plain
from tools.pictures.slack.slack_markdown import markdown, mrkdwn

_SIGNS: Mapping[str, str] = {"pending": "", "in_progress": "", "complete": "✓", "error": "!"}
_STYLES: Mapping[str, str] = {"bold": "b", "italic": "i", "strike": "s", "code": "code"}


def drawn(blocks: Iterable[Json], names: Names = MappingProxyType({})) -> str:
    """Return blocks as HTML. Raises `Undrawn`."""
    return "".join(_of(_BLOCKS, block)(block, names) for block in blocks)


def _of(kinds: Mapping[str, Callable[[Json, Names], str]], value: Json) -> Callable[[Json, Names], str]:
    if value["type"] not in kinds:
        raise Undrawn(f"a block of the kind {value['type']!r}")
    return kinds[value["type"]]


def _text(value: Json, names: Names) -> str:
    return plain(value["text"]) if value["type"] == "plain_text" else mrkdwn(value["text"], names)


def _section(block: Json, names: Names) -> str:
    return f'<div class="section">{_text(block["text"], names)}</div>'


def _header(block: Json, names: Names) -> str:
    return f'<div class="header">{_text(block["text"], names)}</div>'


def _context(block: Json, names: Names) -> str:
    return f'<div class="context">{"".join(_text(one, names) for one in block["elements"])}</div>'


def _rich(block: Json, names: Names) -> str:
    return f'<div class="section">{"".join(_of(_RICH, one)(one, names) for one in block["elements"])}</div>'


def _line(element: Json, names: Names) -> str:
    return f"<div>{_inlines(element, names)}</div>"


def _quote(element: Json, names: Names) -> str:
    return f"<blockquote>{_inlines(element, names)}</blockquote>"


def _inlines(element: Json, names: Names) -> str:
    return "".join(_inline(one, names) for one in element["elements"])


def _inline(element: Json, names: Names) -> str:
    match element["type"]:
        case "text":
            shown = plain(element["text"])
        case "link":
            shown = link(element["url"], element.get("text", ""))
        case "user":
            shown = mention(element["user_id"], names)
        case other:
            raise Undrawn(f"an element of the kind {other!r}")
    for style in (tag for name, tag in _STYLES.items() if element.get("style", {}).get(name)):
        shown = f"<{style}>{shown}</{style}>"
    return shown


def _task(block: Json, names: Names) -> str:
    """Draw a card, of which the title is plain and the details are rich text."""
    return _card(block, plain(block["title"]), _rich(block["details"], names) if block.get("details") else "")


def _live_task(chunk: Json, names: Names) -> str:
    """Draw a card of a live message, of which both are marked up."""
    return _card(chunk, mrkdwn(chunk["title"], names), mrkdwn(chunk.get("details", ""), names))


def _card(card: Json, title: str, details: str) -> str:
    status = card.get("status", "pending")
    sign = f'<span class="sign {plain(status)}">{_SIGNS[status]}</span>'
    more = f'<div class="details">{details}</div>' if details else ""
    return f'<div class="task">{sign}<div><div class="title">{title}</div>{more}</div></div>'


def _actions(block: Json, names: Names) -> str:
    return f'<div class="actions">{"".join(_of(_ELEMENTS, one)(one, names) for one in block["elements"])}</div>'


def _button(element: Json, names: Names) -> str:
    return f'<span class="button">{_text(element["text"], names)}</span>'


def _feedback(element: Json, names: Names) -> str:
    both = (element["positive_button"], element["negative_button"])
    return "".join(f'<span class="icon">{_text(one["text"], names)}</span>' for one in both)


def _input(block: Json, names: Names) -> str:
    optional = ' <span class="faint">(optional)</span>' if block.get("optional") else ""
    field = _of(_FIELDS, block["element"])(block["element"], names)
    return f'<div class="section"><b>{_text(block["label"], names)}</b>{optional}{field}</div>'


def _field(element: Json, _: Names) -> str:
    tall = " tall" if element.get("multiline") else ""
    return f'<div class="field{tall}">{plain(element.get("initial_value", ""))}</div>'


_RICH: Mapping[str, Callable[[Json, Names], str]] = {"rich_text_section": _line, "rich_text_quote": _quote}
_ELEMENTS: Mapping[str, Callable[[Json, Names], str]] = {"button": _button, "feedback_buttons": _feedback}
_FIELDS: Mapping[str, Callable[[Json, Names], str]] = {"plain_text_input": _field}
_BLOCKS: Mapping[str, Callable[[Json, Names], str]] = {
    "section": _section,
    "header": _header,
    "context": _context,
    "rich_text": _rich,
    "task_card": _task,
    "task_update": _live_task,
    "actions": _actions,
    "context_actions": _actions,
    "input": _input,
    "divider": lambda *_: "<hr>",
    "markdown": lambda block, _: f'<div class="section">{markdown(block["text"])}</div>',
}
