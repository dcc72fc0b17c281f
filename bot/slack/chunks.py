"""What is new in a view as chunks for a live message, which only ever grows; pure.

The status and each claim are cards, of which title and state can be set anew while details are only ever added to;
sentences are text, which cannot be taken back. Every piece is escaped by itself, so that nothing pings or links
wherever two of them meet.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bot.slack.buttons import buttons
from bot.slack.escaping import escaped, escaped_markdown
from bot.slack.limits import units
from bot.slack.rendering import CARD_STATES
from bot.views.catalog import translate
from bot.views.pagination import split_text
from bot.views.turn_view import ClaimCard, ShownSentence, ShownSource, View

Json = dict[str, Any]

FIELD = 256
"""Characters of a card's title, details and output."""
MOST_BYTES = 8_000
"""A live message is reported to hold little more than 10,000 bytes, in which details count twice
(openclaw/openclaw#143882). What does not fit in is shown when it is done."""
MOST_CARDS = 30
_AROUND = 4
"""What stands around a quotation."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What a live message shows by now."""

    cards: tuple[tuple[str, Json], ...] = ()
    sentences: tuple[ShownSentence, ...] = ()
    noticed: bool = False
    text: int = 0
    """Bytes of its text."""

    @property
    def size(self) -> int:
        """Return how many bytes it takes."""
        return self.text + sum(_bytes(card, "title") + 2 * _bytes(card, "details") for _, card in self.cards)


def opening(view: View) -> tuple[list[Json], Sent]:
    """Return what a live message begins with: what can be pressed, the status, and what it says beforehand.

    The buttons come first: whatever comes later stands beneath, and so the cards stay together.
    """
    made, sent = grown(Sent(), view)
    pressed = buttons([view.buttons])
    return [*([{"type": "blocks", "blocks": pressed}] if pressed else []), *made], sent


def grown(sent: Sent, view: View) -> tuple[list[Json], Sent]:
    """Return the chunks that a view adds, and what is shown then; none where it adds nothing, or has no room.

    Raises:
        ValueError: The view takes back what was shown, which a live message cannot.
    """
    if view.sentences[: len(sent.sentences)] != sent.sentences:
        raise ValueError("sentences were taken back")
    known = dict(sent.cards)
    # A card whose claim is no longer there was not needed.
    cards = {name: {**card, "status": "complete"} for name, card in known.items() if card["status"] == "in_progress"}
    cards |= {str(card["id"]): card for card in _cards(view)}
    noticed = sent.noticed or bool(view.notice)
    said = [f"{escaped_markdown(view.notice)}\n\n"] if noticed and not sent.noticed else []
    text = "".join([*said, *map(_sentence, view.sentences[len(sent.sentences) :])])
    size = sent.text + len(text.encode("utf-8", "replace"))
    after = Sent(tuple({**known, **cards}.items()), view.sentences, noticed, size)
    if after.size > MOST_BYTES:
        return [], sent
    changed = [_update(card, known.get(name, {})) for name, card in cards.items() if known.get(name) != card]
    return [*changed, *([{"type": "markdown_text", "text": text}] if text else [])], after


def _cards(view: View) -> Iterator[Json]:
    if view.status:
        yield _task("status", view.status, "in_progress")
    for card in view.claims[:MOST_CARDS]:
        yield _task(f"claim-{card.number}", translate(f"claim_{card.state}", view.language), *_claim(card))
    if view.quote and not view.sentences:
        quoted = f"“{view.quote.quote}” ({view.quote.title})"
        name = hashlib.sha256(quoted.encode("utf-8", "replace")).hexdigest()[:12]
        # Not "complete": that is the sign of what was confirmed.
        made = _task(f"quote-{name}", view.quote_label or view.quote.title, "pending")
        yield {**made, "details": _quoted(view.quote)}


def _update(card: Json, known: Json) -> Json:
    """Return what changes a card: details that it has are not said again."""
    return {name: value for name, value in card.items() if name != "details" or not known.get("details")}


def _claim(card: ClaimCard) -> tuple[str, str]:
    return CARD_STATES[card.state], " · ".join(filter(None, (card.text, ", ".join(card.sources))))


def _task(name: str, title: str, status: str, details: str = "") -> Json:
    made: Json = {"type": "task_update", "id": name, "title": _short(title), "status": status}
    return {**made, "details": _short(details)} if details.strip() else made


def _quoted(source: ShownSource) -> str:
    """Return a quotation for a card's details, so short that there is room for where it stands."""
    title = _short(f"({source.title})", FIELD // 2)
    return f"“{_short(source.quote, FIELD - units(title) - _AROUND)}” {title}"


def _short(text: str, most: int = FIELD) -> str:
    """Return a text for a card's field: the evidence shows it whole."""
    text = " ".join(text.split())
    piece = next(split_text(text, lambda text: units(escaped(text)) < most), "")
    return escaped(piece if piece == text else f"{piece.rstrip()}…") or "…"


def _sentence(sentence: ShownSentence) -> str:
    before = "\n\n" if sentence.paragraph else " "
    note = f"{escaped_markdown(f'({sentence.note})')} " if sentence.note else ""
    marks = "".join(escaped_markdown(f"[{number}]") for number in sentence.numbers)
    return f"{before}{note}{escaped_markdown(sentence.text)}{' ' if marks else ''}{marks}"


def _bytes(card: Json, name: str) -> int:
    return len(str(card.get(name, "")).encode("utf-8", "replace"))
