"""Which documents of a source are wanted: by path, label, age and status. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from ingest.globbing import matcher


@dataclass(frozen=True, slots=True)
class Rules:
    """What a source's settings say of what to read. Labels and statuses are compared in lower case."""

    include: tuple[str, ...] = ("**/*",)
    exclude: tuple[str, ...] = ()
    """What lies below an excluded path is excluded too."""
    labels: tuple[str, ...] = ()
    """One of these a document must have; empty: whatever it has."""
    without_labels: tuple[str, ...] = ()
    """None of these it may have."""
    statuses: tuple[str, ...] = ()
    """One of these it must have, such as `current`; empty: whatever it has."""
    newest_days: float | None = None
    """It must have been changed within so many days; None: however old. What has no date is kept."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What is known of a document before it is read."""

    path: str
    labels: tuple[str, ...] = ()
    status: str = ""
    changed: datetime | None = None


def chooser(rules: Rules, now: datetime) -> Callable[[Traits], bool]:
    """Return what tells whether a document is wanted. `now` has a time zone."""
    included, excluded = matcher(rules.include), matcher(rules.exclude)
    labels, without, statuses = (_folded(names) for names in (rules.labels, rules.without_labels, rules.statuses))
    since = None if rules.newest_days is None else now - timedelta(days=rules.newest_days)

    def chosen(one: Traits) -> bool:
        mine = _folded(one.labels)
        return (
            included(one.path)
            and not (rules.exclude and any(map(excluded, _with_those_above(one.path))))
            and (not labels or bool(labels & mine))
            and not without & mine
            and (not statuses or one.status.casefold() in statuses)
            and (since is None or one.changed is None or one.changed >= since)
        )

    return chosen


def _with_those_above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _folded(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(name.casefold() for name in names)
