"""Wikitext in, sections of plain text out: the steps in their order."""

from functools import partial

from ingest.types import Block, Section
from ingest.wikitext import links, mending
from ingest.wikitext.expansion import expanded
from ingest.wikitext.layout import Outline, outlined
from ingest.wikitext.marks import CODE, PIPE, ROW, without_marks
from ingest.wikitext.tags import without_tags
from ingest.wikitext.templates import rendered
from storage.types import Kind

VERSION = "1"
"""Of the text that is made of wikitext; a new one has every page read again."""

_KINDS = {ROW: Kind.TABLE, CODE: Kind.CODE}


def outline(text: str, *, language: str = "", hidden: frozenset[str] = frozenset()) -> Outline:
    """Read a page's wikitext. Pure; never raises; its time grows with the text's length.

    `language` is the wiki's, ISO 639-1; `hidden` are the names, in lower case, that it gives to the namespaces of files
    and categories.
    """
    text = without_tags(without_marks(text))
    text = links.without_simple_links(text)
    text = expanded(text, partial(rendered, language=language), partial(links.label, hidden=hidden))
    text = mending.without_double_brackets(text)
    if PIPE in text:
        text = text.replace(PIPE, "|")
    text = mending.without_quotes(mending.without_switches(links.without_external_links(text)))
    text = mending.without_holes(mending.with_plain_spaces(text))
    # What went since may have stood between two single brackets.
    return outlined(mending.without_double_brackets(text))


def sections(outline: Outline) -> tuple[Section, ...]:
    """An outline as the sections of a page."""
    return tuple(Section(path, tuple(_block(block) for block in blocks)) for path, blocks in outline)


def _block(block: str) -> Block:
    kind = _KINDS.get(block[0])
    return Block(block[1:], kind) if kind else Block(block)
