"""Every piece of text that a client gets with a message or a modal, and what it could make of it at worst."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.platforms import markup
from tests.platforms.discord.components import nested
from tests.platforms.discord.state import Message
from tests.platforms.reading import discord


@dataclass(frozen=True)
class Piece:
    """A text, and where it stood."""

    text: str
    where: str = ""
    """The message's id, or the modal."""
    link: bool = False
    """Whether it is an address that something links to by itself."""

    @property
    def pings(self) -> list[str]:
        return [] if self.link else list(discord(self.text).pings) or markup.pings(self.text)

    @property
    def links(self) -> list[str]:
        if self.link:
            return [self.text]
        return [url for url, _ in markup.own_links(self.text)] + markup.links(self.text)


def of_message(message: Message) -> list[Piece]:
    found = [Piece(message.content, message.id), *_of(message.components, message.id)]
    return [piece for piece in found if piece.text]


def of_modal(modal: Mapping[str, Any], where: str) -> list[Piece]:
    return [Piece(modal["title"], where), *(piece for piece in _of(modal["components"], where) if piece.text)]


def _of(components: list[dict[str, Any]], where: str) -> Iterator[Piece]:
    for _, one in nested(components):
        for name in ("content", "label", "placeholder", "description", "value"):
            if isinstance(one.get(name), str):
                yield Piece(one[name], where)
        if isinstance(one.get("url"), str):
            yield Piece(one["url"], where, link=True)
