"""Show unfinished views as live messages (Slack's streaming), to which text and cards can only be appended."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from bot.desk.platform_port import CannotPost, PlatformError, PlatformUnavailable, PostGone
from bot.platforms.shared.api_client import PATIENCE
from bot.platforms.shared.markdown import fence_code
from bot.platforms.shared.payload_text import JsonObject
from bot.platforms.slack.client import (
    APPEND_STREAM,
    START_STREAM,
    STOP_STREAM,
    SlackApiClient,
    StreamClosed,
    ThreadRefused,
)
from bot.platforms.slack.messages import CARD_STATES, build_actions, escape_markdown, escape_mrkdwn
from bot.types import Question
from bot.views.catalog import split_code, translate
from bot.views.message_layout import split_text
from bot.views.sanitize import count_units
from bot.views.turn_view import ClaimCard, ShownSource, View
from pipeline.types import AnsweredSentence

FIELD = 256  # characters of a card's title, details and output
MOST_BYTES = 8_000
"""A live message is reported to hold little more than 10,000 bytes, in which details count twice
(openclaw/openclaw#143882). The rest is shown in the final message."""
MOST_CARDS = 30
_AROUND = 4  # characters around a quotation


@dataclass(frozen=True, slots=True)
class StreamedState:
    """The content of a live message so far."""

    cards: tuple[tuple[str, JsonObject], ...] = ()
    sentences: tuple[AnsweredSentence, ...] = ()
    noticed: bool = False
    text: int = 0  # bytes of its text

    @property
    def size(self) -> int:
        sizes = (_count_bytes(card, "title") + 2 * _count_bytes(card, "details") for _, card in self.cards)
        return self.text + sum(sizes)


def build_opening_chunks(view: View) -> tuple[list[JsonObject], StreamedState]:
    """Return the first chunks of a live message, and its state. Buttons come first, so that cards stay together."""
    chunks, sent = build_new_chunks(StreamedState(), view)
    buttons = build_actions([view.buttons])
    return [*([{"type": "blocks", "blocks": buttons}] if buttons else []), *chunks], sent


def build_new_chunks(sent: StreamedState, view: View) -> tuple[list[JsonObject], StreamedState]:
    """Return the chunks to append for a view, and the resulting state; no chunks if nothing is new or there is no room.

    Raises `ValueError` if shown sentences were retracted.
    """
    if view.sentences[: len(sent.sentences)] != sent.sentences:
        raise ValueError("sentences were retracted")
    known = dict(sent.cards)
    # A card whose claim was dropped is complete.
    cards = {name: {**card, "status": "complete"} for name, card in known.items() if card["status"] == "in_progress"}
    cards |= {str(card["id"]): card for card in _build_cards(view)}
    noticed = sent.noticed or bool(view.notice)
    notice = [f"{escape_markdown(view.notice)}\n\n"] if noticed and not sent.noticed else []
    text = "".join([*notice, *map(_sentence_chunk, view.sentences[len(sent.sentences) :])])
    size = sent.text + len(text.encode("utf-8", "replace"))
    after = StreamedState(tuple({**known, **cards}.items()), view.sentences, noticed, size)
    if after.size > MOST_BYTES:
        return [], sent
    changed = [_card_update(card, known.get(name, {})) for name, card in cards.items() if known.get(name) != card]
    return [*changed, *([{"type": "markdown_text", "text": text}] if text else [])], after


def _build_cards(view: View) -> Iterator[JsonObject]:
    if view.status:
        yield _task_card("status", view.status, "in_progress")
    for card in view.claims[:MOST_CARDS]:
        yield _task_card(f"claim-{card.number}", translate(f"claim_{card.state}", view.language), *_claim_card(card))
    if view.quote and not view.sentences:
        quoted = f"“{view.quote.quote}” ({view.quote.title})"
        name = hashlib.sha256(quoted.encode("utf-8", "replace")).hexdigest()[:12]
        # Not "complete", which marks confirmed claims.
        quote_card = _task_card(f"quote-{name}", view.quote_label or view.quote.title, "pending")
        yield {**quote_card, "details": _render_quote(view.quote)}


def _card_update(card: JsonObject, known: JsonObject) -> JsonObject:
    """Return the fields of a card that changed since `known`; a card's details are sent only once."""
    return {name: value for name, value in card.items() if name != "details" or not known.get("details")}


def _claim_card(card: ClaimCard) -> tuple[str, str]:
    return CARD_STATES[card.state], " · ".join(filter(None, (card.text, ", ".join(card.sources))))


def _task_card(name: str, title: str, status: str, details: str = "") -> JsonObject:
    card: JsonObject = {"type": "task_update", "id": name, "title": _shorten_field(title), "status": status}
    return {**card, "details": _shorten_field(details)} if details.strip() else card


def _render_quote(source: ShownSource) -> str:
    """Return a quotation that leaves room for its source in a card's details."""
    title = _shorten_field(f"({source.title})", FIELD // 2)
    return f"“{_shorten_field(source.quote, FIELD - count_units(title) - _AROUND)}” {title}"


def _shorten_field(text: str, most: int = FIELD) -> str:
    """Return a text, shortened to fit a card's field; the evidence view shows the whole text."""
    text = " ".join(text.split())
    piece = next(split_text(text, lambda text: count_units(escape_mrkdwn(text)) < most), "")
    return escape_mrkdwn(piece if piece == text else f"{piece.rstrip()}…") or "…"


def _sentence_chunk(sentence: AnsweredSentence) -> str:
    before = "\n\n" if sentence.paragraph else " "
    note = f"{escape_markdown(f'({sentence.note})')} " if sentence.note else ""
    marks = "".join(escape_markdown(f"[{number}]") for number in sentence.citations)
    pieces = enumerate(split_code(sentence.text))
    text = "".join(fence_code(piece) if at % 2 else _keep_lines(escape_markdown(piece)) for at, piece in pieces)
    gap = " " if marks and not text.endswith("\n") else ""
    return f"{before}{note}{text}{gap}{marks}"


def _keep_lines(text: str) -> str:
    """Return escaped text whose line breaks are hard, as Markdown joins lines otherwise."""
    return text.replace("\n", "  \n")


def _count_bytes(card: JsonObject, name: str) -> int:
    return len(str(card.get(name, "")).encode("utf-8", "replace"))


REFUSALS, REFUSED_SECONDS = 3, 600.0
"""After this many consecutive refusals no live message is begun for this many seconds."""


@dataclass(slots=True)
class _LiveMessage:
    ts: str
    sent: StreamedState
    given_up: bool = False


class LiveMessages:
    """Begins, extends and ends the live messages of one workspace."""

    def __init__(self, call: SlackApiClient) -> None:
        self._call = call
        self._live: dict[str, _LiveMessage] = {}
        self._refused, self._closed_until = 0, 0.0

    def possible(self, question: Question) -> bool:
        """Return whether an answer may be a live message: it is in a thread, and the rate limit allows ending it."""
        pacing = self._call.pacing
        open_yet = bool(question.place.thread) and pacing.now() >= self._closed_until
        return open_yet and pacing.room(STOP_STREAM) > self.count

    @property
    def count(self) -> int:
        return len(self._live)

    def live(self, question: Question, ts: str) -> bool:
        live = self._live.get(question.key)
        return live is not None and live.ts == ts

    async def begin(self, question: Question, view: View) -> str:
        """Begin a live message and return its id. Raises `PlatformUnavailable`.

        Returns an empty id if the view has no cards, Slack refuses, or the rate limit has no room.
        """
        chunks, sent = build_opening_chunks(view)
        if not sent.cards:
            return ""
        try:
            answer = await self._call(START_STREAM, {**_stream_target(question), "chunks": chunks}, patience=0.0)
        except PlatformUnavailable as error:
            if error.seconds is None:
                raise
            return ""
        except ThreadRefused:
            return ""
        except (CannotPost, PostGone, StreamClosed):
            self._refused += 1
            if self._refused >= REFUSALS:
                self._refused, self._closed_until = 0, self._call.pacing.now() + REFUSED_SECONDS
            return ""
        ts, self._refused = str(answer["ts"]), 0
        self._live[question.key] = _LiveMessage(ts, sent)
        return ts

    async def extend(self, question: Question, view: View) -> bool:
        """Append what is new in a view, if the rate limit has room; return False if the live message is given up."""
        live = self._live[question.key]
        live.given_up = live.given_up or not await self._append(question, live, view)
        return not live.given_up

    async def _append(self, question: Question, live: _LiveMessage, view: View) -> bool:
        try:
            chunks, sent = build_new_chunks(live.sent, view)
        except ValueError:
            return False
        if not chunks:
            return True
        facts = {"channel": question.place.channel, "ts": live.ts, "chunks": chunks}
        try:
            await self._call(APPEND_STREAM, facts, patience=0.0)
        except PlatformUnavailable as error:
            # It may have arrived; resending could duplicate it.
            return error.seconds is not None
        except PlatformError:
            return False
        live.sent = sent
        return True

    async def end(self, question: Question, ts: str, metadata: dict[str, Any], *, patience: float = PATIENCE) -> None:
        """End a live message, if it is still live, so that it can be updated. Raises `PlatformUnavailable`."""
        try:
            facts = {"channel": question.place.channel, "ts": ts, "metadata": metadata}
            await self._call(STOP_STREAM, facts, patience=patience)
        except PlatformUnavailable:
            raise
        except PlatformError:
            pass  # The update that follows shows whether the message still exists.
        self.forget(question)

    def forget(self, question: Question) -> None:
        self._live.pop(question.key, None)


def _stream_target(question: Question) -> dict[str, Any]:
    """Return the place of a live message, and the asker, because Slack requires a recipient in a channel."""
    place, asker = question.place, question.asker
    who = {"recipient_team_id": asker.workspace, "recipient_user_id": asker.user} if asker.user else {}
    return {"channel": place.channel, "thread_ts": place.thread, "task_display_mode": "timeline", **who}
