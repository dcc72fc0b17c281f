"""The texts of pages that Confluence has listed, fifty together, and how they are read.

They are fetched as the listing goes on, not when a page is loaded: a Confluence that fails then ends the listing, and
does not have every page fail for itself.
"""

from collections.abc import Mapping, Sequence

from ingest import converting
from ingest.formats import confluence
from ingest.formats.reading import Reading
from ingest.sources.confluence_api import Api, Content
from ingest.sources.confluence_tree import Leaf
from ingest.types import Page, UnreadableDocument


def fetched(api: Api, ids: Sequence[str]) -> dict[str, str]:
    """Fetch the bodies of at most fifty pages; what is not shown to us is missing. Raises `SourceUnavailable`."""
    found = {str(one["id"]): one for one in api.by_id(ids, texts=True)}
    for number in ids:
        # The search may not know yet of a page that is new.
        if number not in found and (content := api.text(number)):
            found[number] = content
    return {number: _body(content) for number, content in found.items() if content.get("status") != "trashed"}


def page(one: Leaf, body: str | None, people: Mapping[str, str]) -> Page:
    """Read one page. Raises `UnreadableDocument`."""
    if body is None:
        raise UnreadableDocument("was removed, or hidden from us, while Confluence was read")
    return made(one, body, people)


def made(one: Leaf, body: str, people: Mapping[str, str]) -> Page:
    """Make a page of its body in storage format. Raises `UnreadableDocument` if that holds no text."""
    reading = Reading(confluence.read(body, people), title=one.title, date=one.changed, dated=True)
    return converting.made(reading, one.title, url=one.url, revision=one.version)


def _body(content: Content) -> str:
    storage = (content.get("body") or {}).get("storage") or {}
    return str(storage.get("value") or "")
