"""What is attached to Confluence's pages, as far as its kind can be read."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

from ingest import converting
from ingest.apart.reading import Apart
from ingest.sources.confluence.api import Api, Content, leaf
from ingest.sources.confluence.tree import Leaf
from ingest.types import Found, Item, Page, SourceUnavailable, Unreadable, UnreadableDocument
from ingest.web.errors import ReplyTooLarge

LARGEST = 64 << 20
"""Bytes, as `fetching` gets no larger replies."""
_TOO_LARGE = f"is larger than {LARGEST >> 20} MB"
_IN_A_ROW = 3


@dataclass(frozen=True, slots=True)
class Attachment:
    """One file; its leaf stands below that of its page, and so below all that the page stands below."""

    leaf: Leaf
    size: int
    path: str
    """From where it is downloaded, within the Confluence."""
    largest: int = LARGEST


class Downloads:
    """Downloads attachments when they are asked for. One that fails is told, several in a row end it all."""

    def __init__(self, api: Api, apart: Apart) -> None:
        self._api, self._apart = api, apart
        self._failed: list[SourceUnavailable] = []

    def item(self, one: Attachment, fingerprint: str) -> Item:
        """Return an attachment to be loaded, if it is not too large for that."""
        if one.size > LARGEST:
            return Unreadable(one.leaf.id, _TOO_LARGE)
        return Found(one.leaf.id, fingerprint, one.size, partial(self._page, one))

    def check(self) -> None:
        """Raise what the last ones failed with, once these are too many."""
        if len(self._failed) >= _IN_A_ROW:
            raise self._failed[-1]

    def _page(self, one: Attachment) -> Page:
        try:
            content = self._api.download(one.path)
        except ReplyTooLarge as error:
            raise UnreadableDocument(_TOO_LARGE) from error
        except SourceUnavailable as error:
            self._failed.append(error)
            raise UnreadableDocument(str(error).rstrip(".")) from error
        self._failed.clear()
        leaf = one.leaf
        return self._apart.page(content, leaf.title, url=leaf.url, revision=leaf.version, modified=leaf.changed)


def attachment(content: Content, leaves: Mapping[str, Leaf], url: str) -> Attachment | None:
    """Understand one of a listing; None if its kind is not read, or its page is none of those. Pure."""
    host = leaves.get(str((content.get("container") or {}).get("id", "")))
    name = str(content.get("title", ""))
    links = content.get("_links") or {}
    path = str(links.get("download", ""))
    if host is None or converting.refusal(name) or not path.startswith("/"):
        return None
    mine = replace(leaf(content, url), space=host.space, above=(*host.above, host.id), readers=frozenset())
    size = (content.get("extensions") or {}).get("fileSize")
    return Attachment(mine, int(size) if isinstance(size, int) else 0, path)
