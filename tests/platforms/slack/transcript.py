"""Messages as a user sees them, in plain text, and every ping and link that a client could read into them.

#general
Ana: @footnote When was the lighthouse built?
  Footnote: It was built in 1887. [1]
    [1] Lighthouse <https://skarholm.example/light.md>
    [Evidence] [Ask a person]
  Footnote (only you see this): Thank you.
  … Footnote is checking 2 statements
"""

import copy
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any

from tests.platforms.fake_server import Piece
from tests.platforms.markup import UNSEEN, markdown_words, slack_words
from tests.platforms.reading import slack
from tests.platforms.slack.state import Message, State, View

_TOKEN = re.compile(r"<([^<>\n|]*)(?:\|([^<>\n]*))?>")
_LINK = re.compile(r"(?<!\\)\[((?:\\.|[^\\\[\]])*)\]\(<?(https?://[^\s)>]+)>?\)")
_CURSOR, _RULE = "▌", "---"
_SIGNS = {"pending": "○", "in_progress": "◌", "complete": "✓", "error": "✗"}


def transcript(state: State, channel: str, by: str) -> str:
    """Return all that a user sees of a channel now, with its threads opened."""
    place = state.channels[channel]
    if by not in place.members:
        return ""
    lines = [f"#{place.name}" if place.name else "(direct message)"]
    for message in _tops(state, channel, by):
        lines += _lines(message, state, "")
        for reply in _replies(state, message, by):
            lines += _lines(reply, state, "  ")
        status = state.statuses.get((channel, message.ts))
        if status and state.clock.now() < status.until:
            lines.append(f"  … Footnote {status.text}")
    return "\n".join(lines)


def _tops(state: State, channel: str, by: str) -> list[Message]:
    return [message for message in _here(state, channel, by) if not message.thread]


def _replies(state: State, root: Message, by: str) -> list[Message]:
    return [message for message in _here(state, root.channel, by) if message.thread == root.ts]


def _here(state: State, channel: str, by: str) -> list[Message]:
    found = [one for (where, _), one in state.messages.items() if where == channel and one.only in {"", by}]
    found = [one for one in found if not one.unshown]
    return sorted(found, key=lambda one: one.ts)


def _lines(message: Message, state: State, indent: str) -> list[str]:
    user = state.users.get(message.user)
    name = user.name.title() if user else "Slackbot"
    marks = " (only you see this)" if message.only else ""
    body = said(message, state)
    if message.edited:
        body = [*body[:-1], f"{body[-1]} (edited)"] if body else ["(edited)"]
    first, *rest = body or [""]
    return [f"{indent}{name}{marks}: {first}", *(f"{indent}  {line}" for line in rest)]


_PRESSED = {"actions", "context_actions"}


def said(message: Message, state: State) -> list[str]:
    lines = list(_streamed(message, state)) if message.stream else []
    lines += [line for block in message.blocks for line in _block(block, state)]
    if not lines and message.text:
        lines += _mrkdwn(message.text, state).split("\n")
    return lines


def words(message: Message, state: State) -> str:
    """Return the words of a message, without buttons, signs and rules."""
    plain = copy.deepcopy(message)
    plain.blocks = _unpressed(plain.blocks)
    if plain.stream:
        parts = plain.stream.parts
        plain.stream.parts = [(kind, _unpressed(part) if kind == "blocks" else part) for kind, part in parts]
    lines = (line for line in said(plain, state) if line not in {_CURSOR, _RULE})
    return "\n".join(re.sub(f"^[{''.join(_SIGNS.values())}] ", "", line) for line in lines)


def _unpressed(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [block for block in blocks if block["type"] not in _PRESSED]


def _streamed(message: Message, state: State) -> Iterator[str]:
    stream = message.stream
    assert stream
    for kind, part in stream.parts:
        if kind == "text":
            yield from _markdown(part)
        elif kind == "blocks":
            yield from (line for block in part for line in _block(block, state))
        else:
            yield from _task(stream.tasks[part], state)
    if stream.state == "streaming":
        yield _CURSOR


def _task(task: dict[str, Any], state: State) -> Iterator[str]:
    yield f"{_SIGNS[task.get('status', 'pending')]} {_plain(task['title'])}"
    details = task.get("details")
    lines = _rich(details, state) if isinstance(details, dict) else _markdown(details or "")
    yield from (f"  {line}" for line in lines)


def _block(block: dict[str, Any], state: State) -> Iterator[str]:
    yield from _SHOWN[block["type"]](block, state)


def _section(block: dict[str, Any], state: State) -> Iterator[str]:
    yield from _text(block["text"], state).split("\n")


def _context(block: dict[str, Any], state: State) -> Iterator[str]:
    yield " ".join(_text(one, state) for one in block["elements"])


def _text(item: dict[str, Any], state: State) -> str:
    return _plain(item["text"]) if item["type"] == "plain_text" else _mrkdwn(item["text"], state)


def _plain(text: str) -> str:
    return UNSEEN.sub("", text)


def _pressable(element: dict[str, Any]) -> str:
    if element["type"] == "feedback_buttons":
        names = (element[name]["text"]["text"] for name in ("positive_button", "negative_button"))
        return " ".join(f"[{name}]" for name in names)
    return f"[{element['text']['text']}]"


def _rich(value: dict[str, Any], state: State) -> list[str]:
    if value["type"] == "rich_text":
        return [line for element in value["elements"] for line in _rich(element, state)]
    text = "".join(_inline(element, state) for element in value["elements"])
    mark = "> " if value["type"] == "rich_text_quote" else ""
    return [f"{mark}{line}" for line in text.removesuffix("\n").split("\n")]


def _inline(element: dict[str, Any], state: State) -> str:
    match element["type"]:
        case "text":
            return slack_words(element["text"].replace("&", "&amp;"))
        case "link":
            return f"{element.get('text', element['url'])} <{element['url']}>"
    return _name(f"@{element['user_id']}", state)


def _mrkdwn(text: str, state: State) -> str:
    def token(found: re.Match[str]) -> str:
        target, label = found[1], found[2]
        if target[:1] in {"@", "#", "!"}:
            return _name(target, state)
        return f"{label} <{target}>" if label else f"<{target}>"

    plain = slack_words(_TOKEN.sub(lambda found: token(found).replace("<", "\0").replace(">", "\1"), text))
    plain = re.sub(r"(?<![\w*])\*(\S(?:[^*\n]*\S)?)\*(?![\w*])", r"\1", plain)
    return re.sub(r"(?<![\w_])_(\S(?:[^_\n]*\S)?)_(?![\w_])", r"\1", plain).replace("\0", "<").replace("\1", ">")


def _name(target: str, state: State) -> str:
    if target[0] == "@":
        user = state.users.get(target[1:])
        return f"@{user.name if user else target[1:]}"
    return f"@{target[1:]}"


def _markdown(text: str) -> list[str]:
    linked = _LINK.sub(lambda found: f"{found[1]} \0{found[2]}\1", text)
    shown = markdown_words(re.sub(r"(?<!\\)\*\*((?:\\.|[^*\\])+)\*\*", r"\1", linked))
    return [line for line in shown.replace("\0", "<").replace("\1", ">").split("\n") if line.strip()]


def modal(view: View, state: State) -> str:
    lines = [f"= {view.body['title']['text']} ="] if "title" in view.body else ["= Home ="]
    lines += [line for block in view.body["blocks"] for line in _block(block, state)]
    ends = [view.body[name]["text"] for name in ("close", "submit") if name in view.body]
    return "\n".join([*lines, " ".join(f"[{end}]" for end in ends)] if ends else lines)


_SHOWN: Mapping[str, Callable[[dict[str, Any], State], Iterable[str]]] = MappingProxyType(
    {
        "section": _section,
        "header": lambda block, state: _text(block["text"], state).split("\n"),
        "context": _context,
        "actions": lambda block, _: [" ".join(map(_pressable, block["elements"]))],
        "context_actions": lambda block, _: [" ".join(map(_pressable, block["elements"]))],
        "divider": lambda *_: [_RULE],
        "rich_text": _rich,
        "task_card": _task,
        "input": lambda block, state: [f"{_text(block['label'], state)}: [_____]"],
    }
)


# Every ping and link that a client could read into a message.

piece = partial(Piece, read=slack)


def of_message(message: Message) -> list[Piece]:
    found = [*([(message.text, "text")] if not message.stream else []), *_of(message.blocks)]
    if stream := message.stream:
        texts = [part for kind, part in stream.parts if kind == "text"]
        # Also whole: a token may be split over two appended pieces.
        found += [(text, "text") for text in (*texts, "".join(texts))]
        for task in stream.tasks.values():
            found += [(task.get(name, ""), "text") for name in ("title", "details")]
        for kind, part in stream.parts:
            found += _of(part) if kind == "blocks" else []
    return [piece(text, message.ts, kind) for text, kind in found if text]  # type: ignore[arg-type]


def of_view(view: Mapping[str, Any], where: str) -> list[Piece]:
    return [piece(text, where, kind) for text, kind in _of(view) if text]  # type: ignore[arg-type]


def _of(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for item in value:
            yield from _of(item)
    elif isinstance(value, Mapping):
        yield from _of_object(value)


def _of_object(value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    kind, text = value.get("type"), value.get("text")
    if kind == "user":
        yield f"<@{value['user_id']}>", "ping"
    if isinstance(text, str):
        yield text, "text"
    for name, kind in {"url": "link", "title": "text"}.items():
        if isinstance(value.get(name), str):
            yield value[name], kind
    for item in value.values():
        if isinstance(item, (list, Mapping)):
            yield from _of(item)
