"""Stage 1's reply: what to look up and of what time, or nothing. Pure."""

import re
from typing import Any, Literal

from pipeline.errors import UnreadableReply
from pipeline.forms import Form
from pipeline.parsing.reading import BOOLEAN, STRING, field, is_nothing, labelled, object_schema
from storage.types import SearchQuery

LONGEST = 400
"""Characters of a query; more is no query but an essay."""
_YEAR = re.compile(r"(?<!\d)(1\d{3}|20\d{2}|2100)(?!\d)")
_RECENT = re.compile(r"\b(?:recent|latest|newest|current|now)\b", re.IGNORECASE)
_YES = re.compile(r"[\W_]*(?:yes|true|y)\b", re.IGNORECASE)
_NO = re.compile(r"[\W_]*(?:no|false|n|none|not needed)\b", re.IGNORECASE)

Time = Literal["recent"] | int | None


def time_of(text: str) -> Time:
    """Read what a model says of a time: "recent", a year, or none of it."""
    year = _YEAR.search(text)
    if year:
        return int(year[1])
    return "recent" if _RECENT.search(text) else None


def _from_json(found: Any) -> SearchQuery | None:
    if not field(found, "search", bool):
        return None
    return _query(field(found, "query", str), str(field(found, "time", (str, int))))


def _from_text(text: str) -> SearchQuery | None:
    needed, query = labelled(text, "search", "search needed", "search needed?"), labelled(text, "query")
    if needed is not None and _NO.match(needed):
        return None
    if query is None and (needed is None or not _YES.match(needed)):
        raise UnreadableReply("the line “Search: yes” or “Search: no” is missing")
    return _query(query or "", labelled(text, "time", "year") or "")


def _query(text: str, time: str) -> SearchQuery:
    query = " ".join(text.split()).strip('"“”`')
    if is_nothing(query):
        raise UnreadableReply("the query is missing")
    return SearchQuery(query[:LONGEST], time_of(time))


QUERY: Form[SearchQuery | None] = Form(
    object_schema(search=BOOLEAN, query=STRING, time=STRING), from_json=_from_json, from_text=_from_text
)
