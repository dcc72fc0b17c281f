"""What happened on a wiki since a moment: the pages and titles that recent changes and the logs name.

Nothing is concluded from an event but that a page is to be looked at: what is said of it now is what counts.
https://www.mediawiki.org/wiki/API:RecentChanges and API:Logevents describe the lists.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from ingest.formats import dates
from ingest.sources.mediawiki.api import Api
from ingest.wikitext.reading import VERSION

OVERLAP = timedelta(hours=1)
"""Looked at twice, as a change may be told late; whoever did not change costs a line of a listing."""
_LOGS = ("delete", "import", "merge", "move", "protect")
"""Those that make, move or remove pages, or make revisions that recent changes do not tell."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Up to when a wiki was listed. It travels as text, and is told by the wiki's own clock."""

    until: datetime
    whole: datetime
    """When all pages were last listed."""

    def written(self) -> str:
        """Return it as text."""
        return json.dumps({"until": self.until.isoformat(), "whole": self.whole.isoformat(), "reader": VERSION})


def mark(text: str) -> Mark | None:
    """Read a mark; None if it is none of ours, or of a time when pages were read differently."""
    try:
        said = json.loads(text)
        until, whole = dates.parsed(said["until"]), dates.parsed(said["whole"])
    except (ValueError, KeyError, TypeError):
        return None
    return Mark(until, whole) if until and whole and said.get("reader") == VERSION else None


@dataclass(slots=True)
class Touched:
    """What events named: pages by id, and titles, of which only the logs' stand for more than the page itself."""

    ids: set[int] = field(default_factory=set)
    titles: set[str] = field(default_factory=set)
    moved: set[str] = field(default_factory=set)
    """Titles under which there may be another page now, or none."""


def kept_since(api: Api, start: datetime) -> bool:
    """Whether the wiki's recent changes reach back to a moment; they are dropped after some weeks."""
    query = {"list": "recentchanges", "rcdir": "newer", "rclimit": "1", "rcprop": "timestamp"}
    answer = api.ask({"action": "query", **query})
    entries = (answer.get("query") or {}).get("recentchanges") or [{}]
    oldest = dates.parsed(str(entries[0].get("timestamp", "")))
    return oldest is not None and oldest <= start


def touched(api: Api, start: datetime, namespaces: tuple[int, ...]) -> Touched:
    """Return what was touched since a moment. Raises `SourceUnavailable`."""
    found = Touched()
    # Not rctoponly: protecting a page makes a revision that is no recent change, and hides the edit below it.
    query = {"list": "recentchanges", "rcdir": "newer", "rctype": "edit|new", "rcprop": "ids|title", "rclimit": "max"}
    query |= {"rcstart": _stamp(start), "rcnamespace": "|".join(map(str, namespaces))}
    for batch in api.batches(query):
        for entry in batch.get("recentchanges", ()):
            _note(found, entry)
    for entry in _logged(api, start):
        _note(found, entry)
        params = entry.get("params") or {}
        titles = (entry.get("title"), params.get("target_title"), params.get("dest_title"))
        found.moved |= {str(title) for title in titles if title}
    found.titles |= found.moved
    return found


def _logged(api: Api, start: datetime) -> Iterator[dict[str, Any]]:
    for kind in _LOGS:
        query = {"list": "logevents", "ledir": "newer", "letype": kind, "lelimit": "max"}
        query |= {"lestart": _stamp(start), "leprop": "ids|title|type|details"}
        for batch in api.batches(query):
            yield from batch.get("logevents", ())


def _note(found: Touched, entry: dict[str, Any]) -> None:
    # The page that a deletion was of is known by the id it had then.
    found.ids |= {int(entry[name]) for name in ("pageid", "logpage") if entry.get(name)}
    if title := entry.get("title"):
        found.titles.add(str(title))


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
