"""A page of a view as a message of the fake platform: each part one text, every run escaped as the very last step."""

from dataclasses import dataclass

from bot.views.message_layout import MessagePage, MessagePart, TextRun, TextStyle, paginate_evidence, paginate_view
from bot.views.turn_view import EvidenceView, View
from tests.platforms.dialects import Dialect


@dataclass(frozen=True)
class Rendered:
    """One message."""

    parts: tuple[str, ...]
    buttons: tuple[tuple[str, int], ...] = ()


def rendered(view: View, dialect: Dialect) -> tuple[Rendered, ...]:
    """Return the messages that show a view."""
    return tuple(_rendered(page, dialect) for page in paginate_view(view, dialect.limits))


def evidence(view: EvidenceView, language: str, dialect: Dialect) -> tuple[Rendered, ...]:
    """Return the messages that show a turn's evidence."""
    return tuple(_rendered(page, dialect) for page in paginate_evidence(view, dialect.limits, language))


def _rendered(page: MessagePage, dialect: Dialect) -> Rendered:
    texts = [_text(part, dialect) for part in page.parts] or ["…"]
    buttons = tuple((button.action.value, button.ticket) for row in page.rows for button in row)
    # Where a message is one text, its parts are paragraphs of it.
    return Rendered(tuple(texts) if dialect.parts > 1 else ("\n\n".join(texts),), buttons)


def _text(part: MessagePart, dialect: Dialect) -> str:
    return "".join(_run(run, dialect) for run in part.runs)


def _run(run: TextRun, dialect: Dialect) -> str:
    if run.url:
        return dialect.link(run.text, run.url)
    return f"<@{run.text}>" if run.style is TextStyle.PERSON else dialect.escape(run.text)
