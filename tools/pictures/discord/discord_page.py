"""What is around components: messages with who wrote them, what they reply to, and who sees them; pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.pictures import picture_page
from tools.pictures.discord.component_drawing import drawn
from tools.pictures.discord.discord_markdown import markdown
from tools.pictures.markup import Json, Names, plain
from tools.pictures.picture_page import BOT, Done, done, face

_EYE = (
    '<svg viewBox="0 0 20 12" width="16" height="11" fill="none" stroke="currentColor" stroke-width="1.5">'
    '<path d="M1 6q9-11 18 0q-9 11-18 0z"/><circle cx="10" cy="6" r="2.5"/></svg>'
)


@dataclass(frozen=True, slots=True)
class Before:
    """What stands above a message: whom it replies to, or who used which command."""

    author: str
    text: str
    command: bool = False


@dataclass(frozen=True, slots=True)
class Shown:
    """A message as somebody sees it."""

    author: str
    at: str
    """The hour and the minute."""
    components: tuple[Json, ...] = ()
    text: str = ""
    """As Markdown, where there are no components."""
    before: Before | None = None
    alone: bool = False
    """Whether only the reader sees it."""
    edited: bool = False


def message(shown: Shown, names: Names) -> str:
    """Return a message."""
    body = drawn(shown.components, names) or f'<div class="text">{markdown(shown.text, names)}</div>'
    mark = '<span class="app">APP</span>' if shown.author.casefold() == BOT else ""
    head = f'<b>{plain(shown.author)}</b>{mark}<span class="faint">{plain(shown.at)}</span>'
    edited = '<span class="faint">(edited)</span>' if shown.edited else ""
    alone = f'<div class="alone">{_EYE} Only you can see this · <a>Dismiss message</a></div>' if shown.alone else ""
    before = _before(shown.before, names) if shown.before else ""
    return (
        f'<div class="message{" private" if shown.alone else ""}">{before}<div class="whole">{face(shown.author)}'
        f'<div class="body"><div class="name">{head}</div>{body}{edited}{alone}</div></div></div>'
    )


def channel(name: str, shown: Iterable[Shown | Done], names: Names) -> str:
    """Return what is to be seen in a channel, and what the reader does there."""
    each = (done(one) if isinstance(one, Done) else message(one, names) for one in shown)
    return f'<div class="head"><span class="hash">#</span><b>{plain(name)}</b></div>{"".join(each)}'


def page(body: str) -> str:
    """Return a whole page."""
    return picture_page.page(body, _looks())


def _before(before: Before, names: Names) -> str:
    said = f'used <span class="mention">{plain(before.text)}</span>' if before.command else markdown(before.text, names)
    return f'<div class="before">{face(before.author)}<b>{plain(before.author)}</b><span>{said}</span></div>'


@cache
def _looks() -> str:
    return Path(__file__).with_name("looks.css").read_text(encoding="utf-8")
