"""Read the first tokens of a web page. Runs in the sandbox process, so it imports little."""

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime

from ingest.chunking import LARGEST_PASSAGE, measure_words, split_block
from ingest.page_cleanup import clean_page
from ingest.readers import file_formats
from ingest.sources.sites.page_metadata import parse_page_metadata
from ingest.types import Block, Page, Section, UnreadableDocument

_LONGEST_HEADING = 200  # characters
_TOKENS_A_WORD = 4 / 3


def read_nothing() -> Page:
    """Return an empty page. Calling this in the sandbox imports the readers before they are needed."""
    return Page("", ())


def read_beginning(content: bytes, name: str, url: str, modified: datetime | None, tokens: int) -> Page:
    """Read the first tokens of a page. Raises `UnreadableDocument`, or any error of the reader."""
    if name.endswith((".html", ".htm", ".xhtml")) and parse_page_metadata(content, url, {}).asks_to_log_in:
        raise UnreadableDocument("asks to log in")
    return take_beginning(clean_page(file_formats.read_file(content, name, url=url, modified=modified)), tokens)


def count_tokens(text: str) -> int:
    """Estimate how many tokens of a model a text has; a token is about three quarters of a word."""
    return math.ceil(measure_words(text) * _TOKENS_A_WORD)


def take_beginning(page: Page, tokens: int) -> Page:
    """Return the page with only its first sentences, lines and rows, up to `tokens` tokens in all. Pure.

    Raises `UnreadableDocument` if not even the first of them fits.
    """
    taken = _make_shortener(tokens)
    sections = tuple(
        Section(tuple(_shorten(heading) for heading in section.path), blocks)
        for section in page.sections
        if (blocks := tuple(filter(lambda block: block.text, map(taken, section.blocks))))
    )
    if not sections:
        raise UnreadableDocument("begins with a sentence that is too long to quote")
    return replace(page, title=_shorten(page.title), sections=sections, aliases=())


def _make_shortener(tokens: int) -> Callable[[Block], Block]:
    left = tokens

    def take(block: Block) -> Block:
        nonlocal left
        return Block("".join(pieces(block)).strip("\n"), block.kind)

    def pieces(block: Block) -> Iterator[str]:
        nonlocal left
        for piece in split_block(block, LARGEST_PASSAGE) if left > 0 else ():
            size = count_tokens(piece.text)
            if size > left:
                left = 0
                return
            left -= size
            yield piece.glue + piece.text

    return take


def _shorten(text: str) -> str:
    return text if len(text) <= _LONGEST_HEADING else f"{text[: _LONGEST_HEADING - 1]}…"
