"""What people write in Slack as plain text: the other way round than `escaping`; pure.

Slack hands messages over as mrkdwn: `<@U2|ann>`, `<#C1|general>`, `<!subteam^S1|@team>`, `<https://x|label>`, and
`&amp; &lt; &gt;` for themselves.
"""

import re

from bot.unformatting import unformatting
from storage.language.lazy_pattern import lazy_compile

unformatted = unformatting(lines=r">{1,3}[ \t]*|[•◦▪][ \t]+", marks=(r"\*", "_", "~"))
"""Takes the marks out of plain text that Slack shows as formatting."""

_ANGLES = lazy_compile(r"<(?P<mark>[@#!]?)(?P<what>[^<>|]*)(?:\|(?P<label>[^<>]*))?>")
_ENTITY = lazy_compile(r"&(amp|lt|gt);")
_PLAIN = {"amp": "&", "lt": "<", "gt": ">"}
_BROADCASTS = {"here", "channel", "everyone"}


def plain(text: str) -> str:
    """Return mrkdwn as its reader sees it, formatting characters included."""
    return _ENTITY.sub(lambda found: _PLAIN[found[1]], _ANGLES.sub(_shown, text))


def _shown(found: re.Match[str]) -> str:
    mark, what, label = found["mark"], found["what"], found["label"] or ""
    if mark == "!":
        return label or (f"@{what}" if what in _BROADCASTS else "")
    if mark:
        return f"{mark}{(label or what).lstrip(mark)}"
    return f"{label} ({what})" if label and label != what and not what.endswith(label) else what
