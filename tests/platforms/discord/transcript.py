"""Messages as a user sees them, in plain text, and every ping and link that a client could read into them.

#general
Ben: @Footnote When was the lighthouse built?
  Footnote, to Ben: It was built in 1887. [1]
    [Evidence] [Ask a person]
  Footnote (only you see this): Thank you.
  … Footnote is typing
"""

import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from tests.platforms.discord.components import BUTTON, CONTAINER, LABEL, ROW, nested
from tests.platforms.discord.state import BOT, DM, LOADING, STARTER, Channel, Message, State
from tests.platforms.fake_server import Piece
from tests.platforms.markup import UNSEEN, discord_words
from tests.platforms.reading import discord

_LINK = re.compile(r"(?<!\\)\[((?:\\.|[^\\\[\]])*)\]\(<?(https?://[^\s)>]+)>?\)")
_STYLE = re.compile(r"^-# |(?<!\\)\*\*", re.MULTILINE)
_MENTION = re.compile(r"<@!?(\d+)>")


def transcript(discord: Any, channel: str, by: str) -> str:
    """Return all that a user sees of a channel now, with its threads opened."""
    place = discord.state.channels[channel]
    if not discord.sees(place, by):
        return ""
    lines = ["(direct message)" if place.kind == DM else f"#{place.name}", *_here(discord, place, by, "")]
    threads = [
        one
        for one in discord.state.channels.values()
        if one.parent == channel and one.id not in _rooted(discord, channel)
    ]
    for thread in threads:
        lines += _thread(discord, thread, by)
    late = [
        interaction
        for interaction in discord.state.interactions.values()
        if discord.too_late(interaction) and interaction.user == by
    ]
    lines += ["  The application did not respond" for one in late if one.channel == channel]
    return "\n".join(lines)


def _rooted(discord: Any, channel: str) -> set[str]:
    return {message.thread for message in discord.state.here(channel)}


def _here(discord: Any, place: Channel, by: str, indent: str) -> Iterator[str]:
    state: State = discord.state
    for message in state.here(place.id):
        if message.only in {"", by} and message.kind != STARTER:
            yield from _lines(message, state, indent)
            if message.thread in state.channels:
                yield from _thread(discord, state.channels[message.thread], by)
    if state.typing.get((place.id, BOT), 0) > discord.clock.now():
        yield f"{indent}… Footnote is typing"


def _thread(discord: Any, thread: Channel, by: str) -> list[str]:
    marks = " (locked)" if thread.locked else " (archived)" if thread.archived else ""
    return [f"  # {thread.name}{marks}", *_here(discord, thread, by, "  ")] if discord.sees(thread, by) else []


def _lines(message: Message, state: State, indent: str) -> list[str]:
    name = _name(state, message.user)
    root = state.messages.get((message.reference or {}).get("message_id", ""))
    to = f", to {_name(state, root.user)}" if root else ", to a deleted message" if message.reference else ""
    marks = " (only you see this)" if message.only else ""
    first, *rest = said(message, state) or [""]
    return [f"{indent}{name}{to}{marks}: {first}", *(f"{indent}  {line}" for line in rest)]


def _name(state: State, user: str) -> str:
    return state.users[user].name.title() if user in state.users else "unknown"


def said(message: Message, state: State) -> list[str]:
    if message.flags & LOADING:
        return ["Footnote is thinking…"]
    edited = " (edited)" if message.edited is not None else ""
    lines = (_text(message.content, state) + edited).split("\n") if message.content else []
    shown = [line for component in message.components for line in _component(component, state)]
    return lines + ([*shown[:-1], shown[-1] + edited] if shown and not message.content else shown)


def words(message: Message, state: State) -> str:
    """Return what a message says, without its buttons."""
    kept = [component for component in message.components if component["type"] != ROW]
    texts = [line for one in kept for line in _component(one, state, buttons=False)]
    return "\n".join([*([_text(message.content, state)] if message.content else []), *texts])


def modal(value: Mapping[str, Any], state: State) -> str:
    """Return what a modal shows."""
    lines = [f"= {value['title']} ="]
    return "\n".join([*lines, *(line for one in value["components"] for line in _component(one, state)), "[Submit]"])


def _component(one: Mapping[str, Any], state: State, *, buttons: bool = True) -> list[str]:
    kind = one["type"]
    if kind == CONTAINER:
        return [line for item in one["components"] for line in _component(item, state, buttons=buttons)]
    if kind == ROW:
        return _row(one["components"]) if buttons else []
    if kind == LABEL:
        more = [f"({one['description']})"] if one.get("description") else []
        return [one["label"], *more, *_row([one["component"]])]
    return _text(one["content"], state).split("\n")


def _row(items: list[dict[str, Any]]) -> list[str]:
    shown = list[str]()
    for item in items:
        if item["type"] == BUTTON:
            label = " ".join(filter(None, [(item.get("emoji") or {}).get("name"), item.get("label")]))
            mark = " (disabled)" if item.get("disabled") else f" <{item['url']}>" if item.get("url") else ""
            shown.append(f"[{label}{mark}]")
        else:
            shown.append(f"[{item.get('value') or '_____'}]")
    return [" ".join(shown)]


def _text(text: str, state: State) -> str:
    named = _STYLE.sub("", _MENTION.sub(lambda found: f"@{_name(state, found[1])}", text))
    parts, end = list[str](), 0
    for link in _LINK.finditer(named):
        parts += [discord_words(named[end : link.start()]), f"{discord_words(link[1])} <{link[2]}>"]
        end = link.end()
    return UNSEEN.sub("", "".join([*parts, discord_words(named[end:])]))


# Every ping and link that a client could read into a message.

_piece = partial(Piece, read=discord)


def of_message(message: Message) -> list[Piece]:
    found = [_piece(message.content, message.id), *_of(message.components, message.id)]
    return [piece for piece in found if piece.text]


def of_modal(modal: Mapping[str, Any], where: str) -> list[Piece]:
    return [_piece(modal["title"], where), *(piece for piece in _of(modal["components"], where) if piece.text)]


def _of(components: list[dict[str, Any]], where: str) -> Iterator[Piece]:
    for _, one in nested(components):
        for name in ("content", "label", "placeholder", "description", "value"):
            if isinstance(one.get(name), str):
                yield _piece(one[name], where)
        if isinstance(one.get("url"), str):
            yield _piece(one["url"], where, "link")
