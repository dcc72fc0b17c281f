"""Filter a source's documents by path, label, age and status. Pure."""

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from ingest.sources.default_ignore import IGNORED_BY_SETTING, IGNORED_KIND_OF, IGNORED_KINDS
from storage.language.lazy_pattern import lazy_compile

_GLOB_PARTS = lazy_compile(r"/\*\*$|\*\*/|\*\*|\*|\?|\[!?[^\]]+\]|[^*?\[/]+|/|\[")


def compile_globs(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return whether a posix path fits one of the patterns, in upper or lower case.

    `**` crosses folders. A pattern without a slash is matched against each name, one that ends in one against all
    below.
    """
    plain = [pattern.removeprefix("./").removeprefix("/") for pattern in patterns if pattern]
    of_names = _compile_any(_translate_glob(one) for one in plain if "/" not in one and "**" not in one)
    of_paths = _compile_any(_path_expression(one) for one in plain if "/" in one or "**" in one)
    return lambda path: bool(of_names.fullmatch(path.rpartition("/")[2]) or of_paths.fullmatch(path))


def _compile_any(expressions: Iterable[str]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{expression})" for expression in expressions) or r"(?!)", re.IGNORECASE | re.DOTALL)


def _path_expression(pattern: str) -> str:
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
    ignore: tuple[str, ...] = ()  # as `exclude`, but a pattern of `include` that names the same wins
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


_MOST_REMEMBERED = 10_000  # paths
NOT_INCLUDED = "include does not name it"
EXCLUDED = "exclude names it"
TOO_OLD = "was changed too long ago"
HIDDEN = "hidden, or open in Office"
RULES = frozenset({NOT_INCLUDED, EXCLUDED, TOO_OLD, HIDDEN, IGNORED_BY_SETTING, *IGNORED_KINDS})
"""Why a document is left out by its path, its name or its age."""


def build_filter(rules: SelectionRules, now: datetime) -> Callable[[DocumentTraits], bool]:
    explain = build_explainer(rules, now)
    return lambda one: not explain(one)


def build_explainer(rules: SelectionRules, now: datetime) -> Callable[[DocumentTraits], str]:
    """Return a function that says why a document is left out; empty where it is not."""
    explain_path = build_path_explainer(rules)
    labels, without, statuses = (_fold_names(names) for names in (rules.labels, rules.without_labels, rules.statuses))
    since = None if rules.newest_days is None else now - timedelta(days=rules.newest_days)

    def explain(one: DocumentTraits) -> str:
        mine = _fold_names(one.labels)
        if reason := explain_path(one.path):
            return reason
        if (labels and not labels & mine) or without & mine:
            return "has other labels"
        if statuses and one.status.casefold() not in statuses:
            return "has another status"
        return TOO_OLD if since and one.changed and one.changed < since else ""

    return explain


def build_path_explainer(rules: SelectionRules, *, folder: bool = False) -> Callable[[str], str]:
    """Return a function that says why a file of this path, or a whole `folder`, is left out; empty where it is not."""
    included, excluded, ignored = map(compile_globs, (rules.include, rules.exclude, rules.ignore))
    # A folder is looked at once, however much lies in it.
    excluded, ignored = (functools.lru_cache(_MOST_REMEMBERED)(one) for one in (excluded, ignored))

    def explain(path: str) -> str:
        parts = _with_parents(path)
        if not folder and not included(path):
            return NOT_INCLUDED
        if rules.exclude and any(map(excluded, parts)):
            return EXCLUDED
        if not any(map(ignored, parts)):
            return ""
        named = [one for one in rules.include if folder or _compile_glob(one)(path)]
        for pattern in rules.ignore:
            ignores = _compile_glob(pattern)
            # What `include` names as `**/package.json`, `vendor/**` or `*.lock` is wanted.
            if any(map(ignores, parts)) and not any(any(map(ignores, _with_parents(one))) for one in named):
                return IGNORED_KIND_OF.get(pattern, IGNORED_BY_SETTING)
        return ""

    return explain


@functools.cache
def _compile_glob(pattern: str) -> Callable[[str], bool]:
    return compile_globs((pattern,))


def _with_parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _fold_names(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name.casefold() for name in names)


def utc_now() -> datetime:
    return datetime.now(UTC)
