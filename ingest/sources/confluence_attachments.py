"""What is attached to Confluence's pages, as far as its kind can be read."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ingest import converting
from ingest.sources.confluence_api import Api, Content, leaf
from ingest.sources.confluence_tree import Leaf
from ingest.types import Page, UnreadableDocument
from ingest.web_errors import ReplyTooLarge

LARGEST = 64 << 20
"""Bytes, as `fetching` gets no larger replies."""


@dataclass(frozen=True, slots=True)
class Attachment:
    """One file; its leaf stands below that of its page, and so below all that the page stands below."""

    leaf: Leaf
    size: int
    path: str
    """From where it is downloaded, within the Confluence."""
    largest: int = LARGEST

    def page(self, api: Api) -> Page:
        """Download and read it. Raises `UnreadableDocument`, and `SourceUnavailable`."""
        try:
            content = api.download(self.path)
        except ReplyTooLarge as error:
            raise UnreadableDocument(f"is larger than {self.largest // 2**20} MB") from error
        one = self.leaf
        return converting.page(content, one.title, url=one.url, revision=one.version, modified=one.changed)


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
