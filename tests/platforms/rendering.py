"""A view as the fake platform's messages: rendered, escaped, and split to what a message may hold."""

from dataclasses import dataclass

from bot.showing.view import Source, View
from tests.platforms.dialects import Dialect


@dataclass(frozen=True)
class Rendered:
    """One message."""

    parts: tuple[str, ...]
    buttons: tuple[tuple[str, int], ...] = ()


def rendered(view: View, dialect: Dialect) -> tuple[Rendered, ...]:
    """Return the messages that show a view."""
    pieces = [dialect.escape(piece) for line in _lines(view) for piece in _pieces(line, dialect.part // 3)]
    links = [_source(source, dialect) for source in (*view.sources, *view.nearest)]
    pages = _pages([line for line in (*pieces, *links) if line], dialect.part)
    buttons = tuple((button.action.value, button.ticket) for button in view.buttons)
    return (*(Rendered((page,)) for page in pages[:-1]), Rendered((pages[-1],), buttons))


def _lines(view: View) -> list[str]:
    claims = [f"{card.number}. {card.state} {card.text} {' '.join(card.sources)}" for card in view.claims]
    sentences = [
        f"{one.note} {one.text} ".lstrip() + "".join(f"[{number}]" for number in one.numbers) for one in view.sentences
    ]
    quote = [view.quote_label, view.quote.quote, view.quote.title] if view.quote else []
    head = [view.status, view.notice, *claims, view.collapsed, *quote, view.text]
    return [*head, *sentences, view.left_out, view.nearest_label]


def _source(source: Source, dialect: Dialect) -> str:
    number = f"{dialect.escape(f'[{source.number}]')} " if source.number else ""
    words = f" {dialect.escape(source.section)} {dialect.escape(source.quote)}"
    return f"{number}{dialect.link(source.title, source.url)}{words}".rstrip()


def _pieces(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]


def _pages(lines: list[str], size: int) -> list[str]:
    pages, page = list[str](), ""
    for line in lines or ["…"]:
        if page and len(page) + 1 + len(line) > size:
            pages.append(page)
            page = ""
        page = f"{page}\n{line}" if page else line
    return [*pages, page]
