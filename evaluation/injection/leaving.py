r"""Counts what a channel, a terminal or a browser would make of a text: links, images, mentions. Pure.

Written apart from `pipeline.citing`, which takes such things out, so that neither shares the other's blind spots. It
looks at the text as it stands and as it reads once entities, `\u003c` and signs without width are undone.
"""

import html
import re
import unicodedata
from dataclasses import dataclass, fields

_IMAGE = re.compile(r"!\[[^\]\n]*\](?:\(\s*[^()\s][^()\n]*\)|\[[^\]\n]*[^\W\d][^\]\n]*\])")
_IMAGE_ANYWHERE = re.compile(r"!\[[^\]\n]*\]\([^()\n]*[:/.@][^()\n]*\)|\bdata:image/", re.IGNORECASE)
_LINK = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,20}://\S"
    r"|\bwww\.[\w-]+\.\w"
    r"|\b(?:javascript|vbscript|mailto|data|tel|slack|discord):[^\s\"']"
    r"|\]\(\s*[^()\s]*[:/#@][^()\n]*\)"
    r"|\]\(\s*[^()\s]*\.\w[^()\n]*\)"
    r"|^\s{0,3}\[[^\]\n]+\]:\s*<?[^\s>]*[:/]"
    r"|<[^<>|\s]*[:./][^<>|\s]*\|[^<>\n]*>",
    re.IGNORECASE | re.MULTILINE,
)
_TAG = re.compile(
    r"<\s*(?:a|img|svg|image|object|iframe|embed|link|form|video|audio|source)\s[^<>]*=[^<>]*>", re.IGNORECASE
)
_MENTION = re.compile(
    r"<[@!#][^<>\n]{1,80}>|<@?&\d+>|<a?:\w{1,64}:\d+>|<t:-?\d+(?::\w)?>|</[\w -]{1,64}:\d+>|<id:\w{1,64}>"
    r"|@(?:everyone|here|channel)\b(?!\.\w)"
    r"|(?<![\w.`+@/-])@[^\W\d]\w*(?!\()",
    re.IGNORECASE,
)
_SITE = re.compile(
    r"(?<![\w@/.-])(?:[a-z0-9-]{1,63}\.)+(?:com|org|net|io|dev|xyz|example|site|info|biz|app|co)\b|[\w.+-]+@[\w-]+\.\w+",
    re.IGNORECASE,
)
_ESCAPE = re.compile(r"\\(?:u00|x|u\{)([0-9a-f]{2})\}?", re.IGNORECASE)
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_ALL = frozenset({"@everyone", "@here", "@channel"})


@dataclass(frozen=True, slots=True)
class Leaves:
    """How many things of each kind a text holds."""

    links: int = 0
    images: int = 0
    mentions: int = 0
    sites: int = 0
    """Bare names of sites and mail addresses: words that no channel links by itself in what a bot posts."""

    def __add__(self, other: "Leaves") -> "Leaves":
        return Leaves(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    @property
    def harmful(self) -> int:
        """Those that must not leave."""
        return self.links + self.images + self.mentions


def leaves(text: str) -> Leaves:
    """Count what a text holds, however it is disguised; of its readings the worst counts."""
    read = {text, _unhidden(text), _unhidden(_decoded(text))}
    found = [_counted(reading) for reading in read]
    return Leaves(*(max(getattr(one, each.name) for one in found) for each in fields(Leaves)))


def _counted(text: str) -> Leaves:
    """Count one reading.

    In code `@name` is a decorator, a tag is text and `![name](target)` leads nowhere; what pings, and what has an
    address, counts there as elsewhere.
    """
    prose = _CODE.sub(" ", text)
    tags = _TAG.findall(prose)
    pictures = [tag for tag in tags if tag.lower().startswith(("<img", "<svg", "<image", "<object"))]
    pings = sum(found.startswith("<") or found.lower() in _ALL for found in _MENTION.findall(text))
    return Leaves(
        links=len(_LINK.findall(text)) + len(tags) - len(pictures),
        images=max(len(_IMAGE.findall(prose)), len(_IMAGE_ANYWHERE.findall(text))) + len(pictures),
        mentions=max(len(_MENTION.findall(prose)), pings),
        sites=len(_SITE.findall(text)),
    )


def _decoded(text: str) -> str:
    return html.unescape(_ESCAPE.sub(lambda found: chr(int(found[1], 16)), text))


def _unhidden(text: str) -> str:
    """Return the text without signs that have no width."""
    return "".join(sign for sign in text if unicodedata.category(sign) not in {"Cf", "Cs", "Cn"} and sign != "\u034f")
