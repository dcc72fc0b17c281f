"""Text that is shown in Slack: the very last step before it leaves, once for each piece; pure.

Slack reads `<@U1>` and `<!here>` in mrkdwn, in Markdown and in streamed chunks alike, and makes links of bare domains.
So `& < >` become entities, and an invisible joiner parts everything that could begin a ping or a link: nothing pings
or links even if entities or escapes were decoded once more, or if a piece ends where the next one begins.

What a person sees is the text, in mrkdwn by `escaped` (a joiner beside each formatting character keeps it from
formatting), in Markdown by `escaped_markdown` (a backslash does). Text of a `rich_text` element formats nothing:
`defused` alone is enough there, and its links are elements of their own, by `address`.
"""

import re

from bot.views.sanitize import WORD_JOINER, defang_text, sanitize_url
from storage.language.lazy_pattern import lazy_compile

_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_FORMATTING = lazy_compile(r"(?<!\w)[*_~`]|[*_~`](?!\w)|[*~`]")
_MARKDOWN = lazy_compile(r"[\\`*_~|\[\]()!]")


def escaped(text: str) -> str:
    """Return text as mrkdwn shows it: the same words, no ping, no link, no formatting.

    In Markdown it is as harmless, but asterisks and backticks would be taken for formatting there.
    """
    return _FORMATTING.sub(_aside, defang_text(text)).translate(_ENTITIES)


def escaped_markdown(text: str) -> str:
    """Return text as a markdown block or a streamed chunk shows it: the same words, no ping, no link, no formatting."""
    return _MARKDOWN.sub(r"\\\g<0>", defang_text(text)).translate(_ENTITIES)


def link(title: str, url: str) -> str:
    """Return a link for mrkdwn to a stored document's address; what cannot be linked to is shown as text."""
    target, label = sanitize_url(url), escaped(_label(title, url))
    return f"<{target.translate(_ENTITIES)}|{label}>" if target else _beside(label, escaped(url), title, url)


def markdown_link(title: str, url: str) -> str:
    """Return a link for Markdown to a stored document's address; what cannot be linked to is shown as text."""
    target, label = sanitize_url(url), escaped_markdown(_label(title, url))
    return f"[{label}]({target.translate(_ENTITIES)})" if target else _beside(label, escaped_markdown(url), title, url)


def _aside(found: re.Match[str]) -> str:
    return f"{WORD_JOINER}{found[0]}{WORD_JOINER}"


def _label(title: str, url: str) -> str:
    return " ".join(title.split()) or " ".join(url.split())


def _beside(label: str, shown: str, title: str, url: str) -> str:
    return f"{label} ({shown})" if title.strip() and url.strip() else label
