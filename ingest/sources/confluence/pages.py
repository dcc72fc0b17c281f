"""An HTML export of Confluence: its pages by the tree of its index, each without what the export puts around it.

It says nothing of labels, versions or restrictions: it holds what whoever exported it was shown.
"""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from posixpath import dirname, join, normpath
from urllib.parse import unquote

from ingest import converting
from ingest.choosing import Traits
from ingest.formats import dates, elements, tree, webpage
from ingest.formats.elements import Element
from ingest.formats.reading import Reading
from ingest.sources.archive import Archive
from ingest.types import Page, UnreadableDocument

_ID = re.compile(r"(?:^|_)(\d+)\.html$")
_MODIFIED = re.compile(r"(?:last modified|last updated|updated)[^,]*?\bon\b\s+(.{6,30})", re.IGNORECASE)
LARGEST = 64 << 20
"""Bytes of a page or an index."""


@dataclass(frozen=True, slots=True)
class HtmlPage:
    """One page of the export, not yet read."""

    key: str
    """Its id, as its file's name tells it; else that name."""
    entry: str
    title: str
    path: str
    base: str

    @property
    def traits(self) -> Traits:
        """What rules are held against."""
        return Traits(self.path, status="current")

    def fingerprint(self, content: bytes) -> str:
        """Of the bytes, and of how we read."""
        return f"{hashlib.sha256(content).hexdigest()[:32]}-{converting.READER_VERSION}"

    def page(self, content: bytes) -> Page:
        """Read it. Raises `UnreadableDocument`."""
        root = elements.html(webpage.decode(content))
        main = None if root is None else root.find(".//*[@id='main-content']")
        if main is None:
            raise UnreadableDocument("is no page of an export: nothing in it is marked as its content")
        title = self.title or _title(root)
        reading = Reading(tree.read(main), title=title, date=_date(root), dated=True)
        url = f"{self.base.rstrip('/')}/pages/viewpage.action?pageId={self.key}" if self.base else ""
        return converting.made(reading, self.entry, url=url)


def html_pages(there: Archive, base: str) -> Iterator[HtmlPage]:
    """Go through the pages of every index in the export, top down; then those that no index names."""
    met: set[str] = set()
    for index in sorted(name for name in there.names if name.rpartition("/")[2] == "index.html"):
        met.add(index)
        if there.size(index) > LARGEST:
            continue
        root = elements.html(webpage.decode(there.read(index)))
        for entry, titles in _named(root, index) if root is not None else ():
            if there.holds(entry) and entry not in met:
                met.add(entry)
                yield _page(entry, titles, base)
    for entry in there.names:
        if entry.endswith(".html") and entry not in met and "attachments/" not in entry:
            yield _page(entry, (), base)


def _page(entry: str, titles: tuple[str, ...], base: str) -> HtmlPage:
    found = _ID.search(entry.rpartition("/")[2])
    space = dirname(entry).rpartition("/")[2]
    parts = [part.replace("/", "-") for part in (space, *titles)] if titles else [entry]
    return HtmlPage(
        found[1] if found else entry, entry, titles[-1] if titles else "", "/".join(filter(None, parts)),
        base if found else "",
    )  # fmt: skip


def _named(root: Element, index: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Return the entries that an index leads to, each with the titles of the pages above it and its own."""
    for link in root.iter("a"):
        target = unquote((link.get("href") or "").partition("#")[0])
        inside = link.getparent()
        if target.endswith(".html") and "://" not in target and inside is not None and inside.tag == "li":
            above = [item.find("a") for item in inside.iterancestors("li")]
            titles = [tree.plain(one) for one in reversed(above) if one is not None]
            yield normpath(join(dirname(index), target)), (*titles, tree.plain(link))


def _title(root: Element) -> str:
    heading = root.find(".//*[@id='title-text']")
    said = tree.plain(heading) if heading is not None else " ".join((root.findtext(".//title") or "").split())
    return said.partition(" : ")[2] or said


def _date(root: Element) -> datetime | None:
    metadata = root.find(".//*[@class='page-metadata']")
    found = _MODIFIED.search(" ".join(metadata.itertext())) if metadata is not None else None
    return dates.parsed(" ".join(found[1].split()).rstrip(".")) if found else None
