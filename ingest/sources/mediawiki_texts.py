"""The texts of pages that a wiki has listed: fetched fifty together once the first of them is asked for, then read."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ingest.formats import dates
from ingest.sources.mediawiki_api import MOST, Api, joined, pages
from ingest.sources.mediawiki_listed import Listed
from ingest.sources.mediawiki_page import Site
from ingest.types import Page, UnreadableDocument
from ingest.wikitext.disambiguation import is_disambiguation
from ingest.wikitext.reading import outline, sections

_QUERY = {"prop": "revisions", "rvprop": "ids|timestamp|content|contentmodel", "rvslots": "main"}


@dataclass(frozen=True, slots=True)
class _Revision:
    """What was fetched of one page; `reason` says why there is no text."""

    number: str
    timestamp: str
    text: str
    reason: str


class Texts:
    """The texts of some pages, in the order in which they will be asked for. One thread at a time."""

    def __init__(self, api: Api, ids: Iterable[int]) -> None:
        self._api = api
        self._ahead = list(ids)
        self._here: dict[int, _Revision] = {}

    def taken(self, number: int) -> _Revision:
        """Return a page's text, and forget it. Raises `UnreadableDocument`, and `SourceUnavailable`."""
        if number not in self._here:
            self._fetch(number)
        found = self._here.pop(number, None)
        if found is None:
            raise UnreadableDocument("was deleted while the wiki was read")
        return found

    def _fetch(self, number: int) -> None:
        start = self._ahead.index(number) if number in self._ahead else 0
        some = list(islice(self._ahead, start, start + MOST)) or [number]
        del self._ahead[: start + MOST]
        for part in joined(map(str, some)):
            for batch in self._api.batches({"pageids": part, **_QUERY}):
                self._here |= {int(one["pageid"]): _revision(one) for one in pages(batch) if one.get("revisions")}


def page(one: Listed, texts: Texts, site: Site) -> Page:
    """Read one page. Blocks. Raises `UnreadableDocument`, and `SourceUnavailable`."""
    found = texts.taken(one.id)
    if found.reason:
        raise UnreadableDocument(found.reason)
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


def _revision(page: dict[str, Any]) -> _Revision:
    said = page["revisions"][0]
    # Before MediaWiki 1.32 the text stands in the revision itself.
    slot = said.get("slots", {}).get("main", said)
    text = str(slot.get("content") or "")
    return _Revision(str(said.get("revid", "")), str(said.get("timestamp", "")), text, _missing(slot, text))


def _missing(slot: dict[str, Any], text: str) -> str:
    model = slot.get("contentmodel", "wikitext")
    if slot.get("texthidden") or slot.get("textmissing"):
        return "its text is hidden"
    if model != "wikitext":
        return f"it is not wikitext but {model}"
    return "" if text.strip() else "its text is empty"
