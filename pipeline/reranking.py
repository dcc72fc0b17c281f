"""Ranks hits by the time that a question is about, where it is about one. Pure.

For "recent" a hit's place is its place by relevance and its place by date, added, and of equals the newer comes first:
a passage that is both near and new leads, and an old page that is much nearer than a new one stays before it. For a
year, what mentions it in title, section or text comes before what does not, and within equals relevance decides.
"""

import re
from collections.abc import Sequence
from datetime import UTC, datetime

from storage.types import Hit, SearchQuery

OVER = 4
"""So many times more hits are fetched than kept where a time ranks them."""
_UNDATED = datetime.min.replace(tzinfo=UTC)


def fetched(query: SearchQuery, k: int) -> int:
    """Return how many hits to fetch, so that after ranking by time `k` can be kept."""
    return k * OVER if query.time else k


def reranked(hits: Sequence[Hit], query: SearchQuery) -> tuple[Hit, ...]:
    """Return hits that came by relevance in the order of relevance and time."""
    if query.time is None:
        return tuple(hits)
    if query.time == "recent":
        newest = sorted(range(len(hits)), key=lambda place: _newest_first(hits[place]))
        order = sorted(range(len(hits)), key=lambda place: (place + newest.index(place), newest.index(place)))
    else:
        year = re.compile(rf"(?<!\d){query.time}(?!\d)")
        order = sorted(range(len(hits)), key=lambda place: not _mentions(hits[place], year))
    return tuple(hits[place] for place in order)


def _newest_first(hit: Hit) -> float:
    date = hit.document.date or _UNDATED
    return -(date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()


def _mentions(hit: Hit, year: re.Pattern[str]) -> bool:
    return any(map(year.search, (hit.document.title, hit.passage.section, hit.passage.text)))
