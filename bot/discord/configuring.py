"""What `/footnote` answers in Discord: people by their names, and what can be typed as the command has it; pure."""

import re
from collections.abc import Iterator

from bot.desk.channel_settings import CHANNEL_KEYS
from bot.discord.escaping import escaped
from storage.language.lazy_pattern import lazy_compile

_TOLD = lazy_compile(
    r"(?:discord:\d{1,20}/|<@!?)(?P<person>\d{1,20})\b>?"
    r"|`/footnote (?P<key>\w+) (?P<value>\w+)`"
    rf"|^(?P<setting>{'|'.join(CHANNEL_KEYS)})(?=: )",
    re.MULTILINE,
)


def configured(text: str) -> str:
    """Return the answer to an admin, who alone sees it: a mention in it tells nobody anything."""
    return "".join(_pieces(text))


def _pieces(text: str) -> Iterator[str]:
    done = 0
    for found in _TOLD.finditer(text):
        yield escaped(text[done : found.start()])
        yield _told(found)
        done = found.end()
    yield escaped(text[done:])


def _told(found: re.Match[str]) -> str:
    if found["person"]:
        return f"<@{found['person']}>"
    if found["setting"]:
        return f"**{found['setting']}**"
    return f"`/footnote setting:{found['key']} value:{found['value']}`"
