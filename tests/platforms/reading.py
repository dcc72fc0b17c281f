"""Posted text as a client reads it: plain text, pings and links. Strict.

Where a client's behaviour depends on a setting or a version, the worse is taken: code is read as if it were text, and
an escaped mention that still notifies a user is a mention. Written from the platforms' documents alone, knowing
nothing of how this project escapes.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from html import unescape

_BARE = re.compile(
    r"(?:\b[a-z][a-z0-9+.-]*://|\bwww\.|\bmailto:|\bdiscord(?:\.gg|app\.com/invite|\.com/invite)/)[^\s<>|]+",
    re.IGNORECASE,
)
_SLACK_TOKEN = re.compile(r"<([^<>\n]*)>")
_SLACK_MENTION = re.compile(r"[@!#]")
_DISCORD_PING = re.compile(r"@everyone|@here|<@[!&]?\d+>")
_DISCORD_OBJECT = re.compile(r"<#\d+>|</[^:<>]+:\d+>|<id:[a-z]+>|<sound:\d+:\d+>")
_DISCORD_LINK = re.compile(r"(?<!\\)\[((?:\\.|[^\[\]\\])*)(?<!\\)\]\(\s*(<[^<>\n]*>|[^()\s]*)[^()\n]*\)")
_DISCORD_ANGLE = re.compile(r"<([a-z][a-z0-9+.-]*:[^<>\s]+)>", re.IGNORECASE)
_DISCORD_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")


@dataclass(frozen=True, slots=True)
class Reading:
    """A posted text as a person meets it."""

    plain: str
    pings: tuple[str, ...] = ()
    links: tuple[str, ...] = ()


Reader = Callable[[str], Reading]


_UNSEEN = re.compile("[\u00ad\u200b\u2060]")


def _seen(plain: str, pings: Iterable[str], links: Iterable[str]) -> Reading:
    return Reading(_UNSEEN.sub("", plain), tuple(pings), tuple(links))


def slack(text: str) -> Reading:
    """Read Slack's markup: text in angle brackets is a token, and three entities are decoded, once."""
    pings, links, plain = list[str](), list[str](), list[str]()
    end = 0
    for token in _SLACK_TOKEN.finditer(text):
        _bare(_decoded(text[end : token.start()]), plain, links)
        end = token.end()
        target, _, label = token[1].partition("|")
        if _SLACK_MENTION.match(target):
            pings.append(token[0])
        else:
            links.append(_decoded(target))
        plain.append(_decoded(label or target))
    _bare(_decoded(text[end:]), plain, links)
    return _seen("".join(plain), pings, links)


def _decoded(text: str) -> str:
    return re.sub(r"&(amp|lt|gt);", lambda found: unescape(found[0]), text)


def _bare(text: str, plain: list[str], links: list[str]) -> None:
    plain.append(text)
    links += _BARE.findall(text)


def discord(text: str) -> Reading:
    """Read Discord's markup: mentions come before everything else."""
    pings = (*_DISCORD_PING.findall(text), *_DISCORD_OBJECT.findall(text))
    links, labels = list[str](), list[str]()

    def link(found: re.Match[str]) -> str:
        links.append(found[2].strip("<>"))
        labels.append(found[1])
        return found[1]

    rest = _DISCORD_LINK.sub(link, text)
    rest = _DISCORD_ANGLE.sub(lambda found: links.append(found[1]) or found[1], rest)
    without = _DISCORD_ANGLE.sub("", _DISCORD_LINK.sub("", text))
    links += _BARE.findall(without)
    links += [bare for label in labels for bare in _BARE.findall(label)]
    return _seen(_DISCORD_ESCAPE.sub(r"\1", rest), pings, links)
