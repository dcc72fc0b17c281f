"""Every piece of text that a client gets with a message or a view, with the dialect it is read in."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from tests.platforms import markup
from tests.platforms.reading import slack
from tests.platforms.slack.state import Message

Dialect = Literal["mrkdwn", "markdown", "plain", "rich", "link", "ping"]
"""The last two are the links and mentions of elements of their own."""


@dataclass(frozen=True)
class Piece:
    """A text, and where it stood."""

    dialect: Dialect
    text: str
    where: str = ""
    """The message's ts or the view's id."""

    @property
    def pings(self) -> list[str]:
        if self.dialect == "ping":
            return [self.text]
        return [] if self.dialect == "link" else list(slack(self.text).pings) or markup.pings(self.text)

    @property
    def links(self) -> list[str]:
        if self.dialect in {"link", "ping"}:
            return [self.text] * (self.dialect == "link")
        return [url for url, _ in markup.own_links(self.text)] + markup.links(self.text)


def of_message(message: Message) -> list[Piece]:
    found = [("mrkdwn", message.text)] if not message.stream else []
    found += [("markdown", message.markdown), *_of(message.blocks)]
    if stream := message.stream:
        texts = [part for kind, part in stream.parts if kind == "text"]
        # Also whole: a token may straddle what was appended one after the other.
        found += [("markdown", text) for text in (*texts, "".join(texts))]
        for task in stream.tasks.values():
            found += [("markdown", task.get(name, "")) for name in ("title", "details", "output")]
            found += _of(task.get("sources", []))
        for kind, part in stream.parts:
            found += _of(part) if kind == "blocks" else []
    return [Piece(dialect, text, message.ts) for dialect, text in found if text]  # type: ignore[arg-type]


def of_view(view: Mapping[str, Any], where: str) -> list[Piece]:
    return [Piece(dialect, text, where) for dialect, text in _of(view) if text]  # type: ignore[arg-type]


def _of(value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for item in value:
            yield from _of(item)
    elif isinstance(value, Mapping):
        yield from _of_object(value)


def _of_object(value: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    kind, text = value.get("type"), value.get("text")
    if kind == "user":
        yield "ping", f"<@{value['user_id']}>"
    if isinstance(text, str):
        known = {"mrkdwn": "mrkdwn", "markdown": "markdown", "text": "rich", "link": "rich"}
        yield known.get(str(kind), "plain"), text
    for name, dialect in {"url": "link", "title": "plain"}.items():
        if isinstance(value.get(name), str):
            yield dialect, value[name]
    for item in value.values():
        if isinstance(item, (list, Mapping)):
            yield from _of(item)
