"""Select a source's documents by path, label, age and status, and separate changed and unchanged ones. Pure."""

import functools
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ingest.sources.default_ignore import IGNORED_BY_SETTING, IGNORED_KIND_OF, IGNORED_KINDS
from ingest.types import ChangedDocument, list_unchanged
from storage.language.lazy_pattern import lazy_compile

_GLOB_PARTS = lazy_compile(r"/\*\*$|\*\*/|\*\*|\*|\?|\[!?[^\]]+\]|[^*?\[/]+|/|\[")


def compile_globs(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a function that says whether a posix path matches one of the patterns. Case is ignored.

    `**` matches any number of folders. A pattern without a slash matches names of files and folders. A pattern that
    ends with a slash matches everything below that folder.
    """
    plain = [pattern.removeprefix("./").removeprefix("/") for pattern in patterns if pattern]
    of_names = _compile_any(_translate_glob(pattern) for pattern in plain if "/" not in pattern and "**" not in pattern)
    of_paths = _compile_any(_path_expression(pattern) for pattern in plain if "/" in pattern or "**" in pattern)
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
    """The settings of a source that select documents. Labels and statuses are compared without regard to case."""

    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()  # also excludes everything below such a path
    ignore: tuple[str, ...] = ()  # like `exclude`, but a specific pattern of `include` takes precedence
    labels: tuple[str, ...] = ()  # a document needs one of these; empty: any
    without_labels: tuple[str, ...] = ()  # a document must have none of these
    statuses: tuple[str, ...] = ()  # a document needs one of these, such as `current`; empty: any
    newest_days: float | None = None  # largest age; None: any. Undated documents are always selected


@dataclass(frozen=True, slots=True)
class DocumentTraits:
    """Facts about a document that are known before it is read."""

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
"""Reasons for skipping a document by path, name or age."""


def build_filter(rules: SelectionRules, now: datetime) -> Callable[[DocumentTraits], bool]:
    explain = build_explainer(rules, now)
    return lambda document: not explain(document)


def build_explainer(rules: SelectionRules, now: datetime) -> Callable[[DocumentTraits], str]:
    """Return a function that returns the reason why a document is skipped; empty if it is selected."""
    explain_path = build_path_explainer(rules)
    labels, without, statuses = (_fold_names(names) for names in (rules.labels, rules.without_labels, rules.statuses))
    since = None if rules.newest_days is None else now - timedelta(days=rules.newest_days)

    def explain(document: DocumentTraits) -> str:
        own_labels = _fold_names(document.labels)
        if reason := explain_path(document.path):
            return reason
        if (labels and not labels & own_labels) or without & own_labels:
            return "has other labels"
        if statuses and document.status.casefold() not in statuses:
            return "has another status"
        return TOO_OLD if since and document.changed and document.changed < since else ""

    return explain


def build_path_explainer(rules: SelectionRules, *, folder: bool = False) -> Callable[[str], str]:
    """Return a function that returns why a file, or if `folder` a folder, is skipped by its path; empty if selected."""
    included = compile_globs(rules.include)
    # Cached, since all files in a folder share its parents.
    excluded = functools.lru_cache(_MOST_REMEMBERED)(compile_globs(rules.exclude))
    ignored = functools.lru_cache(_MOST_REMEMBERED)(compile_globs(rules.ignore))

    def explain(path: str) -> str:
        parts = _with_parents(path)
        if not folder and not included(path):
            return NOT_INCLUDED
        if rules.exclude and any(map(excluded, parts)):
            return EXCLUDED
        if not any(map(ignored, parts)):
            return ""
        including = [pattern for pattern in rules.include if folder or _compile_glob(pattern)(path)]
        for pattern in rules.ignore:
            ignores = _compile_glob(pattern)
            # A specific pattern in `include`, such as `**/package.json`, `vendor/**` or `*.lock`, takes precedence.
            if any(map(ignores, parts)) and not any(any(map(ignores, _with_parents(name))) for name in including):
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


def split_unchanged(
    fingerprints: Mapping[str, str], known: Mapping[str, str]
) -> tuple[list[ChangedDocument], list[str]]:
    """Return the unchanged documents, and the keys of the changed ones. `fingerprints` has those of all, by key."""
    changed = [key for key in fingerprints if known.get(key) != fingerprints[key]]
    return [list_unchanged(key, known[key]) for key in fingerprints if known.get(key) == fingerprints[key]], changed
