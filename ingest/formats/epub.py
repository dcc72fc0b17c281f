"""Electronic books (.epub) -> a reading: its chapters in the order in which the book is read."""

import posixpath
import re
import zipfile
from collections.abc import Iterator
from urllib.parse import unquote

from ingest.formats import dates, elements, package, tree, webpage
from ingest.formats.elements import Element
from ingest.formats.reading import Item, Reading
from ingest.types import UnreadableDocument

_PAGES = frozenset({"application/xhtml+xml", "text/html"})


def read(content: bytes) -> Reading:
    """Read a book's bytes."""
    archive = package.opened(content)
    container = elements.xml(archive.read("META-INF/container.xml"))
    path = next(container.iter("{*}rootfile")).get("full-path")
    book = elements.xml(archive.read(path))
    return Reading(
        items=tuple(_chapters(archive, book, posixpath.dirname(path))),
        title=_said(book, "title"),
        date=dates.parsed(_modified(book) or _said(book, "date")),
        language=re.split(r"[-_]", _said(book, "language"))[0].lower()[:2],
    )


def _chapters(archive: zipfile.ZipFile, book: Element, folder: str) -> Iterator[Item]:
    parts = {item.get("id"): item for item in book.iter("{*}item")}
    present = set(archive.namelist())
    read_any = False
    for reference in book.iter("{*}itemref"):
        part = parts.get(reference.get("idref"))
        if part is None or part.get("media-type") not in _PAGES or "nav" in (part.get("properties") or "").split():
            continue
        path = posixpath.normpath(posixpath.join(folder, unquote(part.get("href", ""))))
        if path in present:
            # Each once: a few lines can name one chapter any number of times.
            present.discard(path)
            read_any = True
            yield from tree.items(webpage.decode(archive.read(path)))
    if not read_any:
        raise UnreadableDocument("is a book without chapters that can be read")


def _said(book: Element, name: str) -> str:
    found = next(book.iter(f"{{*}}{name}"), None)
    return "" if found is None else " ".join("".join(found.itertext()).split())


def _modified(book: Element) -> str:
    marked = (meta for meta in book.iter("{*}meta") if meta.get("property") == "dcterms:modified")
    return next(((meta.text or "").strip() for meta in marked), "")
