"""Discord's Markdown as HTML; pure, and whatever is not markup is escaped.

Of all its marks only those are known that the bot uses: bold, italic, code, links, mentions, quotations, small text.
"""

import re
from collections.abc import Iterable
from itertools import groupby

from tools.pictures.markup import Names, link, mention, plain

_TOKEN = re.compile(
    r"\\(?P<escaped>[!-/:-@\[-`{-~])"
    r"|\[(?P<label>(?:\\.|[^\\\[\]\n])+)\]\(<(?P<url>https?://[^\s<>]+)>\)"
    r"|<@(?P<user>\d+)>"
    r"|`(?P<code>[^`\n]+)`"
    r"|\*\*(?P<bold>(?:\\.|[^\\\n])+?)\*\*"
    r"|\*(?P<italic>(?:\\.|[^\\*\n])+)\*"
)
_BEFORE = {"> ": "quote", "-# ": "small"}


def markdown(text: str, names: Names) -> str:
    """Return a text in which `<@1>` mentions one of the `names`."""
    return "".join(_lines(kind, [line for _, line in lines], names) for kind, lines in _grouped(text))


def _grouped(text: str) -> Iterable[tuple[str, Iterable[tuple[str, str]]]]:
    return groupby(map(_kind, text.split("\n")), key=lambda one: one[0])


def _kind(line: str) -> tuple[str, str]:
    before = next((one for one in _BEFORE if line.startswith(one)), "")
    return _BEFORE.get(before, ""), line.removeprefix(before)


def _lines(kind: str, lines: list[str], names: Names) -> str:
    shown = "".join(f"<div>{_inline(line, names)}</div>" for line in lines)
    if kind == "quote":
        return f"<blockquote>{shown}</blockquote>"
    return f'<div class="small">{shown}</div>' if kind else shown


def _inline(text: str, names: Names) -> str:
    done, shown = 0, list[str]()
    for found in _TOKEN.finditer(text):
        shown += [plain(text[done : found.start()]), _token(found, names)]
        done = found.end()
    return "".join([*shown, plain(text[done:])])


def _token(found: re.Match[str], names: Names) -> str:
    match found.lastgroup:
        case "escaped":
            return plain(found["escaped"])
        case "url":
            return link(found["url"], re.sub(r"\\(.)", r"\1", found["label"]))
        case "user":
            return mention(found["user"], names)
        case "code":
            return f"<code>{plain(found['code'])}</code>"
        case "bold":
            return f"<b>{_inline(found['bold'], names)}</b>"
        case _:
            return f"<em>{_inline(found['italic'], names)}</em>"
