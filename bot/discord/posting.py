"""What a post of ours is besides its words: marked and with a nonce, so that it stands there once; pure.

Discord returns the first message of a nonce for some minutes, whoever posts it again. Later a message is found by its
mark: a number made of the question's key, which its first component has for an id.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256
from typing import Any

from bot.desk.types import Place
from bot.discord.rendering import Message

Json = dict[str, Any]

V2, SUPPRESS_EMBEDS, EPHEMERAL = 1 << 15, 1 << 2, 1 << 6
"""Of a message's flags."""
_LEAST, _MOST = 1 << 20, (1 << 31) - 1
"""Marks are far from the small numbers that Discord gives to components without an id."""


def mark(key: str) -> int:
    """Return the mark of what is posted under a key. Everybody who reads the message can read it; it tells nothing."""
    return _LEAST + int.from_bytes(sha256(key.encode()).digest()[:8]) % (_MOST - _LEAST)


def marked(message: Mapping[str, Any]) -> int:
    """Return the mark of a message; 0 if it has none."""
    first = next(iter(message.get("components") or ()), None)
    found = first.get("id") if isinstance(first, Mapping) else None
    return found if isinstance(found, int) and found >= _LEAST else 0


def nonce(key: str, page: int, instead: str = "") -> str:
    """Return what tells a post from every other. `instead`: the id of a message that was there and is deleted."""
    return sha256(f"{key}\n{page}\n{instead}".encode()).hexdigest()[:25]


def channel_of(place: Place) -> str:
    """Return where messages stand: a thread is a channel of its own."""
    return place.thread or place.channel


def shown(message: Message, key: str) -> Json:
    """Return what a message shows and whom it pings: people that it names, nobody else, not even who is replied to."""
    first, *others = message.components
    allowed = {"parse": list[str](), "users": list(message.people), "replied_user": False}
    return {
        "components": [{**first, "id": mark(key)}, *others],
        "allowed_mentions": allowed,
        "flags": V2 | SUPPRESS_EMBEDS,
    }


def post(message: Message, key: str, once: str, *, reply_to: str = "") -> Json:
    """Return the body of a post.

    Args:
        message: What is shown.
        key: What it is marked with.
        once: Its nonce.
        reply_to: The message of the same channel that it replies to, if there is one.
    """
    reference = {"message_reference": {"message_id": reply_to, "fail_if_not_exists": False}} if reply_to else {}
    return {**shown(message, key), **reference, "nonce": once, "enforce_nonce": True}


def says(message: Mapping[str, Any], body: Mapping[str, Any]) -> bool:
    """Return whether a message that Discord returns shows what was sent: to a nonce it returns the first."""
    return list(_facts(message)) == list(_facts(body))


def _facts(one: Mapping[str, Any]) -> Iterator[str]:
    """Yield the texts and buttons of components, in their order."""
    for component in one.get("components") or ():
        yield from (str(component[name]).strip() for name in ("content", "custom_id") if name in component)
        yield from _facts(component)
