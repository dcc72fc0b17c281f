"""The texts of pages that a wiki has listed, fifty together, and how they are read.

They are fetched as the listing goes on, not when a page is loaded: a wiki that fails then ends the listing, and does
not have every page fail for itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ingest.formats import dates
from ingest.sources.mediawiki.api import Api, joined, pages
from ingest.sources.mediawiki.listed import Listed
from ingest.sources.mediawiki.page import Site
from ingest.types import Page, UnreadableDocument
from ingest.wikitext.disambiguation import is_disambiguation
from ingest.wikitext.reading import outline, sections

_QUERY = {"prop": "revisions", "rvprop": "ids|timestamp|content|contentmodel", "rvslots": "main"}


@dataclass(frozen=True, slots=True)
class Revision:
    """What was fetched of one page; `reason` says why there is no text."""

    number: str
    timestamp: str
    text: str
    reason: str


def fetched(api: Api, ids: Sequence[int]) -> dict[int, Revision]:
    """Fetch the texts of at most fifty pages; those that are gone meanwhile are missing. Raises `SourceUnavailable`."""
    found: dict[int, Revision] = {}
    for part in joined(map(str, ids)):
        for batch in api.batches({"pageids": part, **_QUERY}):
            found |= {int(one["pageid"]): _revision(one) for one in pages(batch) if one.get("revisions")}
    return found


def page(one: Listed, found: Revision | None, site: Site) -> Page:
    """Read one page. Raises `UnreadableDocument`."""
    if found is None or found.reason:
        raise UnreadableDocument(found.reason if found else "was deleted while the wiki was read")
    return Page(
        title=one.title,
        sections=sections(outline(found.text, language=site.language, hidden=site.hidden)),
        url=one.url or site.url(one.title, ""),
        revision=found.number,
        date=dates.parsed(found.timestamp),
        language=site.language,
        aliases=one.aliases,
        disambiguation=is_disambiguation(one.title, found.text),
    )


def _revision(page: dict[str, Any]) -> Revision:
    said = page["revisions"][0]
    # Before MediaWiki 1.32 the text stands in the revision itself.
    slot = said.get("slots", {}).get("main", said)
    text = str(slot.get("content") or "")
    return Revision(str(said.get("revid", "")), str(said.get("timestamp", "")), text, _missing(slot, text))


def _missing(slot: dict[str, Any], text: str) -> str:
    model = slot.get("contentmodel", "wikitext")
    if slot.get("texthidden") or slot.get("textmissing"):
        return "its text is hidden"
    if model != "wikitext":
        return f"it is not wikitext but {model}"
    return "" if text.strip() else "its text is empty"
