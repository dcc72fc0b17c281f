"""What `/footnote` answers, as mrkdwn: people of the workspace by their names, and what can be typed as code; pure."""

from collections.abc import Iterator

from bot.slack.escaping import escaped
from bot.views.sanitize import WORD_JOINER
from storage.language.lazy_pattern import lazy_compile

_TOLD = lazy_compile(r"slack:[A-Z0-9]+/(?P<person>[UW][A-Z0-9]{1,30})\b|`(?P<typed>/footnote [\w ]+)`")


def configured(text: str) -> str:
    """Return the answer to an admin, who alone sees it: a mention in it tells nobody anything."""
    return "".join(_pieces(text))


def _pieces(text: str) -> Iterator[str]:
    done = 0
    for found in _TOLD.finditer(text):
        yield _beside(text[done : found.start()])
        yield f"<@{found['person']}>" if found["person"] else f"`{found['typed']}`"
        done = found.end()
    yield _beside(text[done:])


def _beside(text: str) -> str:
    """Return a text escaped; a joiner between code and the comma behind it would keep it from being code."""
    made = escaped(text)
    return made.lstrip(WORD_JOINER) if text[:1] in {",", "."} else made
