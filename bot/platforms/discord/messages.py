"""Render a view as Discord's messages of Components V2, with buttons, marks and nonces; pure.

Text is escaped once, in the last step. Lengths are counted in UTF-16 units, never less than Discord's count.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType
from typing import Any

from bot.platforms.shared.markdown import MarkdownDialect
from bot.platforms.shared.payload_text import JsonObject
from bot.types import Place
from bot.views.message_layout import (
    MessageLimits,
    MessagePage,
    MessagePart,
    PartKind,
    TextRun,
    TextStyle,
    paginate_view,
)
from bot.views.sanitize import count_units, defang_text
from bot.views.turn_view import Button, ButtonAction, Confirmation, View
from storage.language.lazy_pattern import lazy_compile

_FORMATTING = lazy_compile(r"[\\`*_~|\[\]()<>#-]")


def escape_markdown(text: str) -> str:
    """Escape a text so that Discord shows the same words, without pings, links or formatting."""
    return _FORMATTING.sub(r"\\\g<0>", defang_text(text))


_DIALECT = MarkdownDialect(escape_markdown, link="[{}](<{}>)", subtext="-# ")  # angle brackets prevent a preview
format_link = _DIALECT.format_link

_PERSON = lazy_compile(r"<@!?(\d{1,20})>")
_CHANNEL = lazy_compile(r"<#(\d{1,20})>")
_ROLE = lazy_compile(r"<@&(\d{1,20})>")
_EMOJI = lazy_compile(r"<a?(:\w{1,64}:)\d{1,20}>")
_COMMAND = lazy_compile(r"<(/[^<>:]{1,100}):\d{1,20}>")
_GUIDE = lazy_compile(r"<id:(\w{1,32})(?::\d{1,20})?>")
_TIME = lazy_compile(r"<t:(-?\d{1,12})(?::([tTdDfFRsS]))?>")
_ADDRESS = lazy_compile(r"<(https?://[^<>\s]+)>")
_FORMATS: Mapping[str, str] = {"t": "%H:%M", "T": "%H:%M:%S", "d": "%Y-%m-%d", "D": "%Y-%m-%d"}
_FULL = "%Y-%m-%d %H:%M"


def decode_markup(text: str, names: Mapping[str, str]) -> str:
    """Return a message's text with mentions, emoji and times as its reader sees them; formatting is kept."""
    text = _PERSON.sub(lambda mark: f"@{names.get(mark[1], 'somebody')}", text)
    text = _CHANNEL.sub(lambda mark: f"#{names.get(mark[1], 'channel')}", text)
    text = _ROLE.sub(lambda mark: f"@{names.get(mark[1], 'role')}", text)
    text = _COMMAND.sub(r"\1", _EMOJI.sub(r"\1", text))
    return _ADDRESS.sub(r"\1", _TIME.sub(_decode_time, _GUIDE.sub(r"#\1", text)))


def _decode_time(mark: re.Match[str]) -> str:
    try:
        at = datetime.fromtimestamp(int(mark[1]), UTC)
    except (OverflowError, OSError, ValueError):
        return mark[1]
    return at.strftime(_FORMATS.get(mark[2] or "f", _FULL))


PERSON = lazy_compile(r"[0-9]{1,20}")  # a person's id


def render_markdown(part: MessagePart) -> str:
    """Return a part as Discord's Markdown; empty if nothing of it is visible."""
    return _DIALECT.render(part, lambda run: f"<@{run.text}>" if is_mention(run) else "")


def is_mention(run: TextRun) -> bool:
    return run.style is TextStyle.PERSON and PERSON.fullmatch(run.text) is not None


def measure_markdown(text: str) -> int:
    return count_units(escape_markdown(text))


CONTENT = MessageLimits(message=2_000, parts=100, part=2_000, row=5, measure=measure_markdown, markup=12, line=2, gap=2)
"""Limits of plain content, whose parts are separated by empty lines."""
COMPONENTS = MessageLimits(message=4_000, parts=26, part=4_000, row=5, measure=measure_markdown, markup=12, line=4)
"""Limits of components: Discord allows 40, of which two containers, two rows and ten buttons are reserved."""
EVIDENCE = MessageLimits(message=4_000, parts=35, part=4_000, row=5, measure=measure_markdown, markup=12, line=4)
"""Limits of evidence, whose only buttons are the two that turn pages."""

PREFIX = "footnote:"
ROW, BUTTON = 1, 2
PRIMARY, SECONDARY, DANGER = 1, 2, 4
_LONGEST = 80
_STYLES = MappingProxyType({ButtonAction.STOP: DANGER, ButtonAction.EVIDENCE: PRIMARY})


class DoubtPrompt(StrEnum):
    """The role of a button in a confirmation: it asks for the confirmation, gives it, or refuses it."""

    SURE = "sure"  # "Ask a person": asks for confirmation
    YES = "yes"  # confirms asking a person
    BACK = "back"  # confirms retracting the answer
    NO = "no"


def build_buttons(rows: Iterable[Iterable[Button]]) -> list[JsonObject]:
    listed = [list(row) for row in rows]
    first = {_build_custom_id(button): button for row in reversed(listed) for button in reversed(row)}
    built = [
        [_build_styled_button(button) for button in row if first[_build_custom_id(button)] is button] for row in listed
    ]
    return [{"type": ROW, "components": row} for row in built if row]


def render_confirmation(sure: Confirmation, ticket: int, yes_is: DoubtPrompt = DoubtPrompt.YES) -> JsonObject:
    """Return a row with the two buttons of a confirmation.

    `yes_is`: what the first one confirms, asking a person or retracting the answer.
    """
    yes = build_button(f"{PREFIX}{yes_is}:{ticket}", sure.yes, DANGER if yes_is is DoubtPrompt.BACK else PRIMARY)
    return {"type": ROW, "components": [yes, build_button(f"{PREFIX}{DoubtPrompt.NO}:{ticket}", sure.no)]}


def parse_doubt(custom_id: str) -> tuple[DoubtPrompt, int] | None:
    """Parse a confirmation's button into its meaning and ticket; None for another button."""
    name, _, ticket = custom_id.removeprefix(PREFIX).partition(":")
    known = custom_id.startswith(PREFIX) and name in set(DoubtPrompt) and is_numeric_id(ticket)
    return (DoubtPrompt(name), int(ticket)) if known else None


def parse_button(custom_id: str) -> tuple[ButtonAction, int] | None:
    """Parse an answer's button into its action and ticket; None for another button."""
    name, _, ticket = custom_id.removeprefix(PREFIX).partition(":")
    if not (custom_id.startswith(PREFIX) and name in set(ButtonAction) and is_numeric_id(ticket)):
        return None
    return ButtonAction(name), int(ticket)


def build_button(custom_id: str, text: str, style: int = SECONDARY) -> JsonObject:
    return {"type": BUTTON, "style": style, "label": build_label(text, _LONGEST), "custom_id": custom_id}


def build_label(text: str, longest: int) -> str:
    """Return a text on one line, cut to fit a button or title; never empty."""
    shown = " ".join(text.split()) or "…"
    return shown if count_units(shown) <= longest else f"{shown[: longest // 2 - 1]}…"


def is_numeric_id(text: str) -> bool:
    """Return whether a text consists of ASCII digits."""
    return text.isascii() and text.isdigit()


def _build_styled_button(button: Button) -> JsonObject:
    return build_button(_build_custom_id(button), button.label, _STYLES.get(button.action, SECONDARY))


def _build_custom_id(button: Button) -> str:
    confirms = button.action is ButtonAction.ASK and button.sure is not None
    return f"{PREFIX}{(DoubtPrompt.SURE if confirms else button.action).value}:{button.ticket}"


TEXT, CONTAINER = 10, 17
NOTHING = "…"
_WORK = frozenset({PartKind.STATUS, PartKind.NOTICE, PartKind.COLLAPSED, PartKind.LABEL, PartKind.QUOTE})


@dataclass(frozen=True, slots=True)
class DiscordMessage:
    """A message's components, and the users whom it mentions."""

    components: tuple[JsonObject, ...]
    people: tuple[str, ...] = ()  # mentioned users


def render_messages(view: View, zone: tzinfo = UTC) -> tuple[DiscordMessage, ...]:
    """Return the messages that show a complete view: at least one."""
    if view.plain:
        return tuple(map(_render_plain_page, paginate_view(view, CONTENT, zone)))
    return tuple(map(render_page, paginate_view(view, COMPONENTS, zone)))


def render_first(view: View, zone: tzinfo = UTC) -> DiscordMessage:
    """Return one message with the start of an unfinished view and all its buttons."""
    pages = paginate_view(view, COMPONENTS, zone)
    return render_page(MessagePage(pages[0].parts, pages[-1].rows))


def render_page(page: MessagePage) -> DiscordMessage:
    shown = [(part, text) for part in page.parts if (text := render_markdown(part))]
    work = _count_work_parts([part for part, _ in shown])
    boxes = [_build_container([text for _, text in group]) for group in (shown[:work], shown[work:]) if group]
    people = dict.fromkeys(run.text for part in page.parts for run in part.runs if is_mention(run))
    return DiscordMessage((*(boxes or [_build_container([NOTHING])]), *build_buttons(page.rows)), tuple(people))


def _render_plain_page(page: MessagePage) -> DiscordMessage:
    """Return a page as one text component, because an edit cannot remove a message's components."""
    text = "\n\n".join(filter(None, map(render_markdown, page.parts)))
    return DiscordMessage(({"type": TEXT, "content": text or NOTHING},))


def _count_work_parts(parts: list[MessagePart]) -> int:
    """Return how many parts at a page's start report progress. A label belongs to the part after it."""
    end = next((place for place, part in enumerate(parts) if not _is_work_part(part)), len(parts))
    return end - 1 if 0 < end < len(parts) and parts[end - 1].kind is PartKind.LABEL else end


def _is_work_part(part: MessagePart) -> bool:
    """Return whether a part reports progress, such as a claim being checked."""
    return bool(part.state) if part.kind is PartKind.CLAIM else part.kind in _WORK


def _build_container(texts: list[str]) -> JsonObject:
    return {"type": CONTAINER, "components": [{"type": TEXT, "content": text} for text in texts]}


V2, SUPPRESS_EMBEDS, EPHEMERAL = 1 << 15, 1 << 2, 1 << 6  # of a message's flags
_LEAST, _MOST = 1 << 20, (1 << 31) - 1
"""Range of marks, above the small numbers that Discord assigns to components without an id."""


def build_mark(key: str) -> int:
    """Return the number by which a key's posts are found again; it does not reveal the key."""
    return _LEAST + int.from_bytes(sha256(key.encode()).digest()[:8]) % (_MOST - _LEAST)


def parse_mark(message: Mapping[str, Any]) -> int:
    """Return the mark of a message; 0 if it has none."""
    first = next(iter(message.get("components") or ()), None)
    mark = first.get("id") if isinstance(first, Mapping) else None
    return mark if isinstance(mark, int) and mark >= _LEAST else 0


def build_nonce(key: str, page: int, instead: str = "") -> str:
    """Return the nonce by which Discord recognises a repeated post. `instead`: the deleted message it replaces."""
    return sha256(f"{key}\n{page}\n{instead}".encode()).hexdigest()[:25]


def choose_channel(place: Place) -> str:
    """Return the id by which Discord addresses a place: its thread's, otherwise its channel's."""
    return place.thread or place.channel


def build_body(message: DiscordMessage, key: str) -> JsonObject:
    """Return a message's content and whom it pings: only mentioned people."""
    first, *others = message.components
    allowed = {"parse": list[str](), "users": list(message.people), "replied_user": False}
    return {
        "components": [{**first, "id": build_mark(key)}, *others],
        "allowed_mentions": allowed,
        "flags": V2 | SUPPRESS_EMBEDS,
    }


def build_post(message: DiscordMessage, key: str, nonce: str, *, reply_to: str = "") -> JsonObject:
    reference = build_reference(reply_to) if reply_to else {}
    return {**build_body(message, key), **reference, "nonce": nonce, "enforce_nonce": True}


def build_reference(reply_to: str) -> JsonObject:
    return {"message_reference": {"message_id": reply_to, "fail_if_not_exists": False}}


def is_showing(message: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Return whether a message from Discord has the texts we sent; it may be an earlier post with the same nonce."""
    return list(_list_texts(message)) == list(_list_texts(body))


def _list_texts(holder: Mapping[str, Any]) -> Iterator[str]:
    for component in holder.get("components") or ():
        yield from (str(component[name]).strip() for name in ("content", "custom_id") if name in component)
        yield from _list_texts(component)
