"""The worst that any client could make of posted text.

Every way of decoding it is tried, and all that could ping or link is counted. Stricter than `reading`, which says what
today's clients do.

A joiner or a zero-width space is a character like any other to a client, so it separates its neighbours.
"""

import re
from collections.abc import Iterator
from html import unescape

UNSEEN = re.compile("[\u00ad\u034f\u180e\u200b\u2060-\u2064\U000e0000-\U000e007f]")
"""What a person does not see, and no script needs."""
_ESCAPED = re.compile(r"\\(?:u\{?([0-9a-fA-F]{2,6})\}?|x([0-9a-fA-F]{2}))")
_BACKSLASH = re.compile(r"\\([!-/:-@\[-`{-~])")
_PING = re.compile(
    r"<[@#!/][^>]?|<(?:a?:\w|t:|id:|sound:)|&lt;[@#!]"  # users, channels, commands, dates, emoji
    r"|[@＠]\w+"  # by name, everyone and here among them
    r"|(?<!\w):[\w+-]*[a-z][\w+-]*:|(?<!\w)\#[^\W\d]",  # emoji and channels by name
    re.IGNORECASE,
)
_SCHEME = r"(?:mailto|tel|sms|data|javascript|vbscript|file|slack|skype|discord|steam|about):(?=\w|/)"
_LINK = re.compile(
    rf"\b[a-z][a-z0-9+.-]*://\S?|\b{_SCHEME}|(?<![\w:/])//\w|\bwww\.|\b[\w.+-]+@\w"  # addresses, mail
    r"|\w[.．｡。](?:xn--\w|[a-z]{2,})|[^\W\d_][.．｡][^\W\d_]{2,}"  # domains, of every script
    r"|(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.])"  # addresses in numbers
    r"|\]\(|\]\[|\]:\S|!\[[^\]]*\]\(",  # Markdown's links, references and images
    re.IGNORECASE,
)
_OWN_SLACK = re.compile(r"<(https?://[!-;=?-{}~]+)\|([^<>\n]*)>")
_OWN_MARKDOWN = re.compile(r"(?<!\\)\[((?:\\.|[^\\\[\]])*)\]\(<?(https?://[!-'*-;=?-~]+)>?\)")


def pings(payload: str) -> list[str]:
    """Return all that could ping a user or be replaced by something else."""
    return [found[0] for text in _decodings(_without_links(payload)) for found in _PING.finditer(text)]


def links(payload: str) -> list[str]:
    """Return all that could be a link, but for the well-formed ones that `own_links` finds."""
    return [found[0] for text in _decodings(_without_links(payload)) for found in _LINK.finditer(text)]


def own_links(payload: str) -> list[tuple[str, str]]:
    """Return the addresses and labels of the platform's own links."""
    slack = [(unescape(found[1]), found[2]) for found in _OWN_SLACK.finditer(payload)]
    return slack + [(unescape(found[2]), found[1]) for found in _OWN_MARKDOWN.finditer(payload)]


def slack_words(payload: str) -> str:
    """Return the visible text of mrkdwn: entities are decoded once, invisible characters removed."""
    return UNSEEN.sub("", _entities(payload))


def markdown_words(payload: str) -> str:
    """Return what a person sees of Slack's Markdown: backslashes before punctuation gone, entities decoded once."""
    return UNSEEN.sub("", _entities(_BACKSLASH.sub(r"\1", payload)))


def discord_words(payload: str) -> str:
    """Return what a person sees in Discord: backslashes before punctuation gone."""
    return UNSEEN.sub("", _BACKSLASH.sub(r"\1", payload))


def _without_links(payload: str) -> str:
    """Leave labels where they are, for they are other people's text; two links may not be taken for one."""
    labels = _OWN_SLACK.sub(lambda found: f" {found[2]} ", payload)
    return _OWN_MARKDOWN.sub(lambda found: f" {found[1]} ", labels)


def _entities(text: str) -> str:
    return re.sub(r"&(amp|lt|gt);", lambda found: unescape(found[0]), text)


def _decodings(payload: str) -> Iterator[str]:
    """Yield the text as it is, and as it is after each order of decoding entities, escapes and backslashes."""
    seen, fresh = set[str](), {payload}
    while fresh and len(seen) < 100:
        seen |= fresh
        fresh = {made for text in fresh for made in (unescape(text), _unicode(text), _BACKSLASH.sub(r"\1", text))}
        fresh -= seen
    yield from seen


def _unicode(text: str) -> str:
    return _ESCAPED.sub(lambda found: chr(min(int(found[1] or found[2], 16), 0x10FFFF)), text)
