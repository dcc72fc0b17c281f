"""Render a view as Slack's messages: blocks, buttons, and the text of the notification; pure.

Lengths are counted in UTF-16 units, never less than Slack's count. Each post has a mark, by which it is found again.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from itertools import groupby
from typing import Any

from bot.platforms.shared.payload_text import JsonObject
from bot.types import Place, Question
from bot.views.message_layout import (
    MessageLimits,
    MessagePage,
    MessagePart,
    PartKind,
    TextRun,
    TextStyle,
    paginate_view,
    split_text,
)
from bot.views.sanitize import WORD_JOINER, count_units, defang_text, sanitize_url, strip_invisible
from bot.views.turn_view import Button, ButtonAction, Confirmation, View
from storage.language.lazy_pattern import lazy_compile

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_FORMATTING = lazy_compile(r"(?<!\w)[*_~`]|[*_~`](?!\w)|[*~`]")
_MARKDOWN = lazy_compile(r"[\\`*_~|\[\]()!]")


def escape_mrkdwn(text: str) -> str:
    """Escape a text so that mrkdwn shows the same words, without pings, links or formatting.

    In Markdown, the escaped text cannot ping or link either, but asterisks and backticks still format it.
    """
    return _FORMATTING.sub(_escape_formatting, defang_text(text)).translate(_ENTITIES)


def escape_markdown(text: str) -> str:
    """Escape a text so that a markdown block or streamed chunk shows the same words, without pings or formatting."""
    return _MARKDOWN.sub(r"\\\g<0>", defang_text(text)).translate(_ENTITIES)


def format_link(title: str, url: str) -> str:
    """Return a mrkdwn link to a stored document; plain text if its address cannot be linked."""
    target, label = sanitize_url(url), escape_mrkdwn(_clean_label(title, url))
    return (
        f"<{target.translate(_ENTITIES)}|{label}>"
        if target
        else _join_title_and_url(label, escape_mrkdwn(url), title, url)
    )


def format_markdown_link(title: str, url: str) -> str:
    """Return a Markdown link to a stored document; plain text if its address cannot be linked."""
    target, label = sanitize_url(url), escape_markdown(_clean_label(title, url))
    return (
        f"[{label}]({target.translate(_ENTITIES)})"
        if target
        else _join_title_and_url(label, escape_markdown(url), title, url)
    )


def _escape_formatting(mark: re.Match[str]) -> str:
    return f"{WORD_JOINER}{mark[0]}{WORD_JOINER}"


def _clean_label(title: str, url: str) -> str:
    return " ".join(title.split()) or " ".join(url.split())


def _join_title_and_url(label: str, shown: str, title: str, url: str) -> str:
    return f"{label} ({shown})" if title.strip() and url.strip() else label


_PARTS: dict[PartKind, JsonObject] = {
    PartKind.STATUS: {"italic": True},
    PartKind.COLLAPSED: {"italic": True},
    PartKind.LEFT_OUT: {"italic": True},
    PartKind.HEADING: {"bold": True},
    PartKind.LABEL: {"bold": True},
    PartKind.NOTICE: {"bold": True},
}
_RUNS: dict[TextStyle, JsonObject] = {TextStyle.NOTE: {"italic": True}, TextStyle.TITLE: {"bold": True}}
_ELEMENTS = {TextStyle.QUOTE: "rich_text_quote", TextStyle.CODE: "rich_text_preformatted"}
_LONGEST_URL = 3_000
PERSON = lazy_compile(r"[UW][A-Z0-9]{1,30}")  # a person's id


def build_rich_text(part: MessagePart) -> JsonObject | None:
    """Return a part as a block of rich text; None if nothing of it is visible."""
    elements = [
        element
        for kind, runs in groupby(part.runs, lambda run: _ELEMENTS.get(run.style, "rich_text_section"))
        if (element := _build_element(runs, part.kind, kind))
    ]
    return {"type": "rich_text", "elements": elements} if elements else None


def _build_element(runs: Iterable[TextRun], kind: PartKind, element: str) -> JsonObject | None:
    inline = list(_trim_line_breaks([built for run in runs if (built := _build_inline(run, _PARTS.get(kind, {})))]))
    return {"type": element, "elements": inline} if inline else None


def _build_inline(run: TextRun, style: JsonObject) -> JsonObject | None:
    if run.style is TextStyle.PERSON and PERSON.fullmatch(run.text):
        return {"type": "user", "user_id": run.text}
    text = strip_invisible(run.text) if run.style is TextStyle.CODE else defang_text(run.text)
    if not text:
        return None
    linked = run.url and len(run.url) <= _LONGEST_URL
    element: JsonObject = {"type": "link", "url": run.url, "text": text} if linked else {"type": "text", "text": text}
    style = {**style, **({} if linked else _RUNS.get(run.style, {}))}
    return {**element, "style": style} if style else element


def _trim_line_breaks(inline: list[JsonObject]) -> Iterator[JsonObject]:
    """Yield elements without line breaks at both ends, because each group begins a new line anyway."""
    last = len(inline) - 1
    for place, element in enumerate(inline):
        text = str(element.get("text", ""))
        text = text.lstrip("\n") if place == 0 else text
        text = text.rstrip("\n") if place == last else text
        if text or "text" not in element:
            yield {**element, "text": text} if "text" in element else element


ROW = 5  # buttons in a row: more are possible, but hard to read


def measure_mrkdwn(text: str) -> int:
    return count_units(escape_mrkdwn(text))


def measure_markdown(text: str) -> int:
    return count_units(escape_markdown(text))


SECTIONS = MessageLimits(message=9_000, parts=46, part=3_000, row=ROW, measure=measure_mrkdwn, markup=8, line=2, gap=80)
"""Limits of sections of mrkdwn. Of 50 blocks, four are reserved for two rows of buttons and two dividers."""
MARKDOWN = MessageLimits(
    message=9_000, parts=46, part=9_000, row=ROW, measure=measure_markdown, markup=8, line=2, gap=2
)  # markdown blocks and streamed text
PLAIN = replace(SECTIONS, message=2_900, part=2_900)  # text without blocks
MODAL = MessageLimits(message=36_000, parts=49, part=3_000, row=ROW, measure=measure_mrkdwn, markup=8, line=2)
"""Limits of a modal's blocks, which leave room for dividers and a row of buttons, and keep below 250,000 bytes."""

PREFIX = "footnote:"
FEEDBACK = f"{PREFIX}feedback"
_LONGEST, _MAX_HOME_BLOCKS = 75, 100
_QUESTION, _ANSWER = 300, 30
_OPINIONS = (ButtonAction.UP, ButtonAction.DOWN)


def build_actions(rows: Iterable[Iterable[Button]]) -> list[JsonObject]:
    """Return a block for each row of buttons, without ratings and repeated actions, and one block for both ratings."""
    listed = [list(row) for row in rows]
    first = {button.action: button for row in reversed(listed) for button in reversed(row)}
    opinions = [first.pop(action) for action in _OPINIONS] if first.keys() >= set(_OPINIONS) else []
    built = [[_build_button(button) for button in row if first.get(button.action) is button] for row in listed]
    blocks = [{"type": "actions", "elements": row} for row in built if row]
    return [*blocks, _build_feedback(*opinions)] if opinions else blocks


def parse_action(action_id: str, value: str) -> tuple[ButtonAction, int] | None:
    """Parse a button into its action and ticket; None if it is not ours."""
    name, ticket = action_id.removeprefix(PREFIX), value
    if action_id == FEEDBACK:
        name, _, ticket = value.partition(":")
    if not (action_id.startswith(PREFIX) and name in set(ButtonAction) and ticket.isascii() and ticket.isdigit()):
        return None
    return ButtonAction(name), int(ticket)


def build_label(text: str, longest: int = _LONGEST) -> JsonObject:
    """Return a text on one line, cut to fit a button or a title, as a plain-text object."""
    shown = " ".join(text.split())
    shown = shown if count_units(shown) <= longest else shown[: longest // 2 - 1] + "…"
    return {"type": "plain_text", "text": shown, "emoji": True}


def _build_button(button: Button) -> JsonObject:
    element = {"type": "button", "text": build_label(button.label), "value": str(button.ticket)}
    element["action_id"] = f"{PREFIX}{button.action.value}"
    return {**element, "confirm": _build_confirmation(button.label, button.sure)} if button.sure else element


def _build_confirmation(title: str, sure: Confirmation) -> JsonObject:
    """Return the confirmation that Slack shows before it reports a press."""
    answers = {"confirm": build_label(sure.yes, _ANSWER), "deny": build_label(sure.no, _ANSWER)}
    return {"title": build_label(title), "text": build_label(sure.question, _QUESTION), **answers}


def _build_feedback(up: Button, down: Button) -> JsonObject:
    both = {"positive_button": _build_opinion(up), "negative_button": _build_opinion(down)}
    return {"type": "context_actions", "elements": [{"type": "feedback_buttons", "action_id": FEEDBACK, **both}]}


def _build_opinion(button: Button) -> JsonObject:
    return {"text": build_label(button.label), "value": f"{button.action.value}:{button.ticket}"}


def render_plain(text: str) -> str:
    """Return a text for a plain-text field, such as a card's title."""
    return defang_text(" ".join(text.split()))


CARD_STATES = {"checking": "in_progress", "supported": "complete", "refuted": "error", "unknown": "pending"}
"""Slack's task state of each state of a claim."""
TITLE = 256  # characters of a card's title
NOTHING = "…"
_TEXT = 3_000
_MAX_CONTEXT = 2_000
_APART = frozenset({PartKind.SOURCES, PartKind.LEFT_OUT})  # separated from the answer by a divider


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """A message's blocks, and its text for notifications."""

    blocks: tuple[JsonObject, ...]
    text: str


def render_messages(view: View, zone: tzinfo = UTC) -> tuple[SlackMessage, ...]:
    """Return the messages that show a complete view: at least one."""
    if view.plain:
        return tuple(SlackMessage((), render_fallback(page)) for page in paginate_view(view, PLAIN, zone))
    return tuple(map(render_page, paginate_view(view, SECTIONS, zone)))


def render_first(view: View, zone: tzinfo = UTC) -> SlackMessage:
    """Return one message with the start of an unfinished view and all its buttons."""
    pages = paginate_view(view, SECTIONS, zone)
    return render_page(MessagePage(pages[0].parts, pages[-1].rows))


def render_page(page: MessagePage) -> SlackMessage:
    text = render_fallback(page)
    shown = [*_render_blocks(page.parts), *build_actions(page.rows)]
    return SlackMessage(tuple(shown) or ({"type": "section", "text": {"type": "mrkdwn", "text": text}},), text)


def render_fallback(page: MessagePage) -> str:
    """Return a page's text for notifications as mrkdwn, cut if it is long. The blocks show the whole text."""
    pieces, left = list[str](), _TEXT
    for run in (run for part in page.parts for run in (*part.runs, TextRun("\n"))):
        piece = _render_mrkdwn(run, left)
        pieces.append(piece)
        left -= count_units(piece)
        if not piece and run.text:
            break
    return "".join(pieces).strip() or NOTHING


def _render_mrkdwn(run: TextRun, left: int) -> str:
    """Return a run as mrkdwn, cut to at most `left` UTF-16 units; empty if none of it fits."""
    if run.style is TextStyle.PERSON and PERSON.fullmatch(run.text):
        text = f"<@{run.text}>"
    else:
        text = escape_mrkdwn(next(split_text(run.text, lambda text: count_units(escape_mrkdwn(text)) <= left), ""))
    return text if count_units(text) <= left else ""


def build_home(text: str, zone: tzinfo) -> JsonObject:
    blocks = [block for message in render_messages(View(0, text=text), zone) for block in message.blocks]
    return {"type": "home", "blocks": blocks[:_MAX_HOME_BLOCKS]}


def _render_blocks(parts: tuple[MessagePart, ...]) -> Iterator[JsonObject]:
    divided = False
    for number, part in enumerate(parts):
        block = _render_block(part, number)
        if block and part.kind in _APART and number and not divided:
            divided = True
            yield {"type": "divider"}
        if block:
            yield block


def _render_block(part: MessagePart, number: int) -> JsonObject | None:
    if part.state:
        return _render_card(part, number)
    return _render_context(part) if part.kind is PartKind.COLLAPSED else build_rich_text(part)


def _render_context(part: MessagePart) -> JsonObject | None:
    text = render_plain("".join(run.text for run in part.runs))
    if not text or count_units(text) > _MAX_CONTEXT:
        return build_rich_text(part)
    return {"type": "context", "elements": [{"type": "plain_text", "text": text, "emoji": False}]}


def _render_card(part: MessagePart, number: int) -> JsonObject | None:
    """Return a claim as a card. The later part of a claim that was split becomes a block of text."""
    head, *rest = part.runs
    title = render_plain(head.text)
    if head.style is not TextStyle.NOTE or not title or count_units(title) > TITLE:
        return build_rich_text(part)
    card: JsonObject = {
        "type": "task_card",
        "task_id": f"claim-{number}",
        "title": title,
        "status": CARD_STATES[part.state],
    }
    while rest and not rest[0].text.strip(" :"):
        rest = rest[1:]
    details = build_rich_text(MessagePart(part.kind, tuple(rest)))
    return {**card, "details": details} if details else card


ANSWER, CALL = "footnote_answer", "footnote_call"  # kinds of posts


def build_mark(kind: str, key: str, page: int = 0) -> JsonObject:
    """Return the metadata by which a post is found again. Everyone in the workspace can read it."""
    return {"event_type": kind, "event_payload": {"key": key, "page": page}}


def read_mark(message: Mapping[str, Any], kind: str) -> str:
    """Return the key in a message's mark; empty if it has no mark of this kind."""
    metadata = message.get("metadata") or {}
    return str((metadata.get("event_payload") or {}).get("key", "")) if metadata.get("event_type") == kind else ""


def build_post(place: Place, message: SlackMessage, metadata: JsonObject) -> JsonObject:
    return {
        **_thread_fields(place),
        **_message_fields(message),
        "metadata": metadata,
        "unfurl_links": False,
        "unfurl_media": False,
    }


def build_edit(place: Place, ts: str, message: SlackMessage, metadata: JsonObject) -> JsonObject:
    return {"channel": place.channel, "ts": ts, **_message_fields(message), "metadata": metadata}


def build_ephemeral(question: Question, message: SlackMessage) -> JsonObject:
    where = {"channel": question.place.channel, **_reply_fields(question)}
    return {**where, "user": question.asker.user, **_message_fields(message)}


def build_response(question: Question, message: SlackMessage) -> JsonObject:
    """Return a private message for the `response_url` of a command or button."""
    return {**build_notice(question, message.text), **_message_fields(message)}


def build_notice(question: Question, text: str) -> JsonObject:
    """Return a private line of mrkdwn for the `response_url` of a command or button."""
    unfurl = {"unfurl_links": False, "unfurl_media": False}
    return {"response_type": "ephemeral", "replace_original": False, "text": text, **_reply_fields(question), **unfurl}


def _thread_fields(place: Place) -> JsonObject:
    return {"channel": place.channel, **({"thread_ts": place.thread} if place.thread else {})}


def _reply_fields(question: Question) -> JsonObject:
    """Return the fields that put a private post into the question's thread.

    Empty if the question begins its thread, because Slack does not show a private post there.
    """
    thread = question.place.thread
    return {"thread_ts": thread} if thread and thread != question.message else {}


def _message_fields(message: SlackMessage) -> JsonObject:
    return {"blocks": list(message.blocks), "text": message.text}
