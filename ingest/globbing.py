"""Glob patterns over paths within a folder. Pure; the standard library's own know no `**` before Python 3.13."""

import re
from collections.abc import Callable, Sequence

_PARTS = re.compile(r"/\*\*$|\*\*/|\*\*|\*|\?|\[!?[^\]]+\]|[^*?\[/]+|/|\[")


def matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Whether a posix path fits one of the patterns, in upper or lower case.

    `*` and `?` stay within a name, `**` crosses folders. A pattern without a slash is matched against each name of the
    path, one that ends in a slash against all that lies below.
    """
    expressions = [re.compile(_expression(pattern), re.IGNORECASE | re.DOTALL) for pattern in patterns if pattern]
    return lambda path: any(expression.fullmatch(path) for expression in expressions)


def _expression(pattern: str) -> str:
    pattern = pattern.removeprefix("./").removeprefix("/")
    if "/" not in pattern and pattern != "**":
        return f"(?:.*/)?{_translated(pattern)}"
    if pattern.endswith("/"):
        pattern += "**"
    return _translated(pattern)


def _translated(pattern: str) -> str:
    return "".join(_part(part) for part in _PARTS.findall(pattern))


def _part(part: str) -> str:
    known = {"/**": "(?:/.*)?", "**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if part in known:
        return known[part]
    if part.startswith("[") and len(part) > 1:
        inside = part[1:-1].replace("\\", "\\\\")
        return f"[^/{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
    return re.escape(part)
