"""What a message says, wherever its words stand, and as its reader sees it: without Discord's formatting; pure.

A forwarded message's words stand in a snapshot, those of a webhook's announcement in embeds, our own answers' and other
apps' in components. Formatting would part a statement from the same words in a document.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from bot.discord.reading_back import words
from bot.payloads import part, parts

Json = Mapping[str, Any]

_CODE = re.compile(r"```(?:[\w+#.-]*\n)?(.*?)```|``(.+?)``|`([^`\n]+)`", re.DOTALL)
_LINES = re.compile(r"^[ \t]*(?:>>>[ \t]+|>[ \t]+|-#[ \t]+|#{1,3}[ \t]+)", re.MULTILINE)
_LINK = re.compile(r"\[([^\[\]\n]+)\]\(<?https?://[^\s()<>]+>?\)")
_WIDEST = 300
"""So many characters are looked for the other end of a mark: whoever writes thousands of marks keeps nobody waiting."""
_AROUND = tuple(
    re.compile(rf"(?<![\w\\]){mark}(?=\S)(.{{1,{_WIDEST}}}?)(?<=\S){mark}(?!\w)", re.DOTALL)
    for mark in (r"\*\*\*", r"\*\*", r"\*", "___", "__", "_", "~~", r"\|\|")
)
_TEXT = 10
"""The kind of a component that holds text."""
_FOOTNOTE = re.compile(r"^\[\d+\] .*$|[ \t]*\[\d+\]", re.MULTILINE)


def words_of(message: Json, user: str) -> str:
    """Return all that a message says, as Discord has it; empty where it has no words.

    `user` is ours: of an answer of our own what it says, without its footnotes.
    """
    if part(message, "author").get("id") == user:
        return _FOOTNOTE.sub("", words(message)).strip()
    own = _said(message)
    forwarded = [_said(part(one, "message")) for one in parts(message, "message_snapshots")]
    return "\n".join(filter(None, (own, *forwarded)))


def unformatted(text: str) -> str:
    """Return a text without the marks that Discord shows as formatting; what stands in code stays as it is."""
    shown, end = "", 0
    for found in _CODE.finditer(text):
        shown += _unmarked(text[end : found.start()]) + next(one for one in found.groups() if one is not None)
        end = found.end()
    return shown + _unmarked(text[end:])


def _unmarked(text: str) -> str:
    text = _LINK.sub(r"\1", _LINES.sub("", text))
    for mark in _AROUND:
        text = mark.sub(r"\1", text)
    return text


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
