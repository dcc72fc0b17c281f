"""What a message says, wherever its words stand, and as its reader sees it: without Discord's formatting; pure.

A forwarded message's words stand in a snapshot, those of a webhook's announcement in embeds, our own answers' and other
apps' in components. Formatting would part a statement from the same words in a document.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from bot.discord.reading_back import words
from bot.payloads import part, parts
from bot.unformatting import unformatting, without_footnotes

Json = Mapping[str, Any]

unformatted = unformatting(
    lines=r">>>[ \t]+|>[ \t]+|-#[ \t]+|#{1,3}[ \t]+",
    marks=(r"\*\*\*", r"\*\*", r"\*", "___", "__", "_", "~~", r"\|\|"),
    link=r"\[([^\[\]\n]+)\]\(<?https?://[^\s()<>]+>?\)",
)
"""Takes the marks out that Discord shows as formatting."""
_TEXT = 10
"""The kind of a component that holds text."""


def words_of(message: Json, user: str) -> str:
    """Return all that a message says, as Discord has it; empty where it has no words.

    `user` is ours: of an answer of our own what it says, without its footnotes.
    """
    if part(message, "author").get("id") == user:
        return without_footnotes(words(message))
    own = _said(message)
    forwarded = [_said(part(one, "message")) for one in parts(message, "message_snapshots")]
    return "\n".join(filter(None, (own, *forwarded)))


def _said(message: Json) -> str:
    content = message.get("content")
    embeds = ("\n".join(_of_embed(one)) for one in parts(message, "embeds") if one.get("type") in {None, "rich"})
    found = [content if isinstance(content, str) else "", *embeds, *_of_components(message)]
    return "\n".join(one for one in found if one.strip())


def _of_embed(embed: Json) -> Iterator[str]:
    fields = (one.get(name) for one in parts(embed, "fields") for name in ("name", "value"))
    yield from (one for one in (embed.get("title"), embed.get("description"), *fields) if isinstance(one, str) and one)


def _of_components(holder: Json) -> Iterator[str]:
    for one in parts(holder, "components"):
        text = one.get("content")
        if one.get("type") == _TEXT and isinstance(text, str):
            yield text
        yield from _of_components(one)
