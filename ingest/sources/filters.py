"""Filter a source's documents by path, label, age and status. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from storage.language.lazy_pattern import lazy_compile

_GLOB_PARTS = lazy_compile(r"/\*\*$|\*\*/|\*\*|\*|\?|\[!?[^\]]+\]|[^*?\[/]+|/|\[")


def compile_globs(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return whether a posix path fits one of the patterns, in upper or lower case.

    `**` crosses folders. A pattern without a slash is matched against each name, one that ends in one against all
    below.
    """
    expressions = [re.compile(_glob_expression(pattern), re.IGNORECASE | re.DOTALL) for pattern in patterns if pattern]
    return lambda path: any(expression.fullmatch(path) for expression in expressions)


def _glob_expression(pattern: str) -> str:
    pattern = pattern.removeprefix("./").removeprefix("/")
    if "/" not in pattern and pattern != "**":
        return f"(?:.*/)?{_translate_glob(pattern)}"
    if pattern.endswith("/"):
        pattern += "**"
    return _translate_glob(pattern)


def _translate_glob(pattern: str) -> str:
    return "".join(_translate_part(part) for part in _GLOB_PARTS.findall(pattern))


def _translate_part(part: str) -> str:
    known = {"/**": "(?:/.*)?", "**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    if part in known:
        return known[part]
    if part.startswith("[") and len(part) > 1:
        inside = part[1:-1].replace("\\", "\\\\")
        return f"[^/{inside[1:]}]" if inside.startswith("!") else f"[{inside}]"
    return re.escape(part)


@dataclass(frozen=True, slots=True)
class SelectionRules:
    """Hold what a source's settings say of what to read. Labels and statuses are compared in lower case."""

    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()  # what lies below an excluded path is excluded too
    labels: tuple[str, ...] = ()  # one of these a document must have; empty: whatever it has
    without_labels: tuple[str, ...] = ()  # none of these it may have
    statuses: tuple[str, ...] = ()
    """One of these it must have, such as `current`; empty: whatever it has."""
    newest_days: float | None = None
    """It must have been changed within so many days; None: however old. What has no date is kept."""


@dataclass(frozen=True, slots=True)
class DocumentTraits:
    """Hold what is known of a document before it is read."""

    path: str
    labels: tuple[str, ...] = ()
    status: str = ""
    changed: datetime | None = None


def build_filter(rules: SelectionRules, now: datetime) -> Callable[[DocumentTraits], bool]:
    included, excluded = compile_globs(rules.include), compile_globs(rules.exclude)
    labels, without, statuses = (_fold_names(names) for names in (rules.labels, rules.without_labels, rules.statuses))
    since = None if rules.newest_days is None else now - timedelta(days=rules.newest_days)

    def chosen(one: DocumentTraits) -> bool:
        mine = _fold_names(one.labels)
        return (
            included(one.path)
            and not (rules.exclude and any(map(excluded, _with_parents(one.path))))
            and (not labels or bool(labels & mine))
            and not without & mine
            and (not statuses or one.status.casefold() in statuses)
            and (since is None or one.changed is None or one.changed >= since)
        )

    return chosen


def _with_parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _fold_names(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name.casefold() for name in names)


def utc_now() -> datetime:
    return datetime.now(UTC)
