"""XML -> a reading: RSS and Atom as a section an entry, other XML as its texts with the names of their elements."""

import re
from collections.abc import Iterator

from ingest.formats import dates, elements, rows, tree, webpage
from ingest.formats.elements import Element
from ingest.formats.reading import Heading, Item, Reading
from ingest.types import Block

_FEEDS = frozenset({"rss", "feed", "RDF"})
_ENTRY_LEVEL = 2
_BODIES = ("encoded", "content", "description", "summary")


def read(content: bytes) -> Reading:
    """Read a file of XML."""
    root = elements.xml(content)
    name = _name(root)
    if name == "html":
        return webpage.read(content)
    if name in _FEEDS:
        return _feed(root)
    return Reading(tuple(_texts(root)))


def _feed(root: Element) -> Reading:
    channel = next(root.iter("{*}channel"), root)
    return Reading(
        items=tuple(item for entry in root.iter("{*}item", "{*}entry") for item in _entry(entry)),
        title=_said(channel, "title"),
        date=dates.parsed(_said(channel, "lastBuildDate", "pubDate", "updated", "date")),
        language=re.split(r"[-_]", _said(channel, "language"))[0].lower()[:2],
    )


def _entry(entry: Element) -> Iterator[Item]:
    yield Heading(_ENTRY_LEVEL, _said(entry, "title") or "Untitled")
    if date := dates.parsed(_said(entry, "pubDate", "updated", "published", "date")):
        yield Block(f"Published: {date:%Y-%m-%d}")
    body = max((_markup(entry, name) for name in _BODIES), key=len)
    for item in tree.items(body) if body.strip() else ():
        yield Heading(item.level + _ENTRY_LEVEL, item.text) if isinstance(item, Heading) else item


def _markup(entry: Element, name: str) -> str:
    found = entry.find(f"{{*}}{name}")
    if found is None:
        return ""
    return (found.text or "") if not len(found) else str(elements.serialized(found), "utf-8")


def _said(parent: Element, *names: str) -> str:
    found = (parent.find(f"{{*}}{name}") for name in names)
    texts = (" ".join("".join(element.itertext()).split()) for element in found if element is not None)
    return next(filter(None, texts), "")


def _texts(element: Element) -> Iterator[Item]:
    """The children that only hold text are one row of facts; an element that mixes text and elements is a paragraph."""
    facts = [(_name(child), (child.text or "").strip()) for child in element if not len(child)]
    inside = [child for child in element if len(child)]
    own = (element.text or "").strip() or any((child.tail or "").strip() for child in element)
    if own:
        yield Block(" ".join("".join(element.itertext()).split()))
        return
    yield from rows.blocks([name for name, _ in facts], [[" ".join(text.split()) for _, text in facts]])
    for child in inside:
        yield from _texts(child)


def _name(element: Element) -> str:
    return re.sub(r".*\}", "", element.tag)
