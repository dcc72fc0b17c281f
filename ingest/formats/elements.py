"""Markup -> an lxml tree. The one door to lxml, which ships no types."""

from typing import Any

import lxml.etree  # type: ignore[import-untyped]  # see above
import lxml.html  # type: ignore[import-untyped]  # see above
from lxml.html import defs

Element = Any
"""An lxml element: it has a tag, text, tail, attributes and children."""

NAMES: frozenset[str] = defs.tags | {"main", "picture", "slot", "template", "dialog"}
"""The names of HTML's elements, to tell a tag from a placeholder such as <your-name>."""


def html(markup: str | bytes) -> Element | None:
    """Parse HTML however broken; bytes declare their own encoding. None if there is no element in it."""
    content = markup.encode("utf-8", "replace") if isinstance(markup, str) else markup
    parser = lxml.html.HTMLParser(
        encoding="utf-8" if isinstance(markup, str) else None, huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        return lxml.html.document_fromstring(content, parser=parser)
    except lxml.etree.ParserError:
        return None


def xml(content: bytes) -> Element:
    """Parse XML without entities of its own and without looking anything up. Raises `ValueError` if it is broken."""
    parser = lxml.etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    try:
        root = lxml.etree.fromstring(content, parser=parser)
    except lxml.etree.XMLSyntaxError as error:
        raise ValueError(str(error)) from error
    lxml.etree.strip_elements(root, lxml.etree.Entity, with_tail=False)
    return root


def child(parent: Element, tag: str, *, before: Element | None = None) -> Element:
    """Make a new last child of `parent`, or one that stands before another."""
    made = lxml.etree.SubElement(parent, tag)
    if before is not None:
        before.addprevious(made)
    return made


def serialized(element: Element) -> bytes:
    """An element and all in it as XML, with its declaration."""
    content: bytes = lxml.etree.tostring(element, xml_declaration=True, encoding="UTF-8", standalone=True)
    return content
