"""The texts of pages that Confluence has listed, fifty together, and how they are read.

They are fetched as the listing goes on, not when a page is loaded: a Confluence that fails then ends the listing, and
does not have every page fail for itself.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from ingest import converting
from ingest.apart import deciding
from ingest.apart.reading import Apart
from ingest.formats import confluence
from ingest.formats.reading import Reading
from ingest.sources.confluence.api import Api, Content
from ingest.sources.confluence.tree import Leaf
from ingest.types import Page, UnreadableDocument
from ingest.web.errors import ReplyTooLarge

KIND = "page.html"
"""As what a page in storage format counts where it is decided what may do harm."""


@dataclass(frozen=True, slots=True)
class Body:
    """The text of a page in storage format; `reason` says why there is none."""

    text: str = ""
    reason: str = ""


_MISSING = Body(reason="was removed, or hidden from us, while Confluence was read")
_TOO_LARGE = Body(reason="is larger than what is read of a page")


def fetched(api: Api, ids: Sequence[str]) -> dict[str, Body]:
    """Fetch the bodies of at most fifty pages; what is not shown to us is missing. Raises `SourceUnavailable`."""
    try:
        found = {str(one["id"]): one for one in api.by_id(ids, texts=True)}
        for number in ids:
            # The search may not know yet of a page that is new.
            if number not in found and (content := api.text(number)):
                found[number] = content
    except ReplyTooLarge:
        if len(ids) == 1:
            return {ids[0]: _TOO_LARGE}
        half = len(ids) // 2
        return fetched(api, ids[:half]) | fetched(api, ids[half:])
    return {number: _body(content) for number, content in found.items() if content.get("status") != "trashed"}


def page(one: Leaf, body: Body | None, people: Mapping[str, str], apart: Apart) -> Page:
    """Read one page. Raises `UnreadableDocument`, and what `apart` raises."""
    body = body or _MISSING
    if body.reason:
        raise UnreadableDocument(body.reason)
    return apart.done(partial(made, one, body.text, people), harmless=deciding.harmless(KIND, len(body.text)))


def made(one: Leaf, body: str, people: Mapping[str, str]) -> Page:
    """Make a page of its body in storage format. Raises `UnreadableDocument` if that holds no text."""
    reading = Reading(confluence.read(body, people), title=one.title, date=one.changed, dated=True)
    return converting.made(reading, one.title, url=one.url, revision=one.version)


def _body(content: Content) -> Body:
    storage = (content.get("body") or {}).get("storage") or {}
    return Body(str(storage.get("value") or ""))
