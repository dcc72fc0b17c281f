"""The texts of pages that Confluence has listed: fetched fifty together once the first is asked for, then read."""

from collections.abc import Iterable, Mapping

from ingest import converting
from ingest.formats import confluence
from ingest.formats.reading import Reading
from ingest.sources.confluence_api import MOST, Api, Content
from ingest.sources.confluence_tree import Leaf
from ingest.types import Page, UnreadableDocument


class Texts:
    """The bodies of some pages, in the order in which they will be asked for. One thread at a time."""

    def __init__(self, api: Api, ids: Iterable[str]) -> None:
        self._api = api
        self._ahead = list(ids)
        self._here: dict[str, Content] = {}

    def taken(self, number: str) -> str:
        """Return a page's body, and forget it. Raises `UnreadableDocument`, and `SourceUnavailable`."""
        if number not in self._here:
            start = self._ahead.index(number) if number in self._ahead else 0
            some = self._ahead[start : start + MOST] or [number]
            del self._ahead[: start + MOST]
            self._here |= {str(one["id"]): one for one in self._api.by_id(some, texts=True)}
        # The search may not know yet of a page that is new.
        content = self._here.pop(number, None) or self._api.text(number)
        if content is None or content.get("status") == "trashed":
            raise UnreadableDocument("was removed, or hidden from us, while Confluence was read")
        storage = (content.get("body") or {}).get("storage") or {}
        return str(storage.get("value") or "")


def page(one: Leaf, texts: Texts, people: Mapping[str, str]) -> Page:
    """Read one page. Blocks. Raises `UnreadableDocument`, and `SourceUnavailable`."""
    return made(one, texts.taken(one.id), people)


def made(one: Leaf, body: str, people: Mapping[str, str]) -> Page:
    """Make a page of its body in storage format. Raises `UnreadableDocument` if that holds no text."""
    reading = Reading(confluence.read(body, people), title=one.title, date=one.changed, dated=True)
    return converting.made(reading, one.title, url=one.url, revision=one.version)
