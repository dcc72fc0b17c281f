"""What is around blocks: messages with who wrote them and when, threads, modals, what somebody types; pure."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tools.pictures import picture_page
from tools.pictures.markup import Json, Names, plain
from tools.pictures.picture_page import BOT, Done, done, face
from tools.pictures.slack.block_drawing import drawn
from tools.pictures.slack.slack_markdown import mrkdwn

_EYE = (
    '<svg viewBox="0 0 20 12" width="15" height="10" fill="none" stroke="#777" stroke-width="1.5">'
    '<path d="M1 6q9-11 18 0q-9 11-18 0z"/><circle cx="10" cy="6" r="2.5"/></svg>'
)


@dataclass(frozen=True, slots=True)
class Shown:
    """A message as somebody sees it."""

    author: str
    at: str
    """The hour and the minute."""
    blocks: tuple[Json, ...] = ()
    text: str = ""
    """As mrkdwn, where there are no blocks."""
    alone: bool = False
    """Whether only the reader sees it."""


def message(shown: Shown, names: Names) -> str:
    """Return a message."""
    ours = shown.author == BOT
    body = drawn(shown.blocks, names) or f'<div class="section">{mrkdwn(shown.text, names)}</div>'
    alone = f'<div class="alone">{_EYE} Only visible to you</div>' if shown.alone else ""
    mark = '<span class="app">APP</span>' if ours else ""
    head = f'<b>{plain(shown.author)}</b>{mark}<span class="faint">{plain(shown.at)}</span>'
    return (
        f'<div class="message{" private" if shown.alone else ""}">{face(shown.author)}'
        f'<div class="body">{alone}<div>{head}</div>{body}</div></div>'
    )


def thread(channel: str, root: Shown, replies: Sequence[Shown | Done], names: Names) -> str:
    """Return a message and what stands beneath it, as the pane of a thread."""
    counted = sum(isinstance(one, Shown) and not one.alone for one in replies)
    many = f"{counted} {'reply' if counted == 1 else 'replies'}" if counted else ""
    head = f'<div class="head"><b>Thread</b> <span class="faint"># {plain(channel)}</span></div>'
    line = f'<div class="replies">{many}</div>' if counted else ""
    return f"{head}{message(root, names)}{line}{_each(replies, names)}"


def channel(name: str, shown: Iterable[Shown | Done], names: Names) -> str:
    """Return what is to be seen in a channel, and what the reader does there."""
    return f'<div class="head"><b># {plain(name)}</b></div>{_each(shown, names)}'


def modal(view: Mapping[str, Any], names: Names) -> str:
    """Return a modal."""
    ends = "".join(
        f'<span class="button{" primary" if name == "submit" else ""}">{plain(view[name]["text"])}</span>'
        for name in ("close", "submit")
        if name in view
    )
    head = f'<div class="top">{face(BOT)}<b>{plain(view["title"]["text"])}</b><i>×</i></div>'
    body = f'<div class="scrolling">{drawn(view["blocks"], names)}</div>'
    return f'<div class="shade"><div class="modal">{head}{body}<div class="ends">{ends}</div></div></div>'


def page(body: str) -> str:
    """Return a whole page."""
    return picture_page.page(body, _looks())


def _each(shown: Iterable[Shown | Done], names: Names) -> str:
    return "".join(done(one) if isinstance(one, Done) else message(one, names) for one in shown)


@cache
def _looks() -> str:
    return Path(__file__).with_name("looks.css").read_text(encoding="utf-8")
