"""Tables drawn with pipes that Markdown did not take for tables (a column too many, blank lines between) -> rows."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby

from ingest.formats import rows
from ingest.formats.reading import Item
from ingest.types import Block
from storage.types import Kind

_ROW = re.compile(r"\|.*\|.*")
_RULE = re.compile(r"[|:\s-]+")


def mended(items: Iterable[Item]) -> Iterator[Item]:
    """Make rows of the paragraphs whose lines all begin with a pipe and hold another; all else stays as it is."""
    for is_table, run in groupby(items, key=_is_table):
        if is_table:
            lines = [line for item in run for line in item.text.split("\n") if not _RULE.fullmatch(line)]
            yield from rows.blocks(*rows.headed([_cells(line) for line in lines]))
        else:
            yield from run


def _is_table(item: Item) -> bool:
    prose = isinstance(item, Block) and item.kind is Kind.PROSE and item.text.startswith("|")
    return prose and all(_ROW.fullmatch(line) for line in item.text.split("\n"))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.removeprefix("|").removesuffix("|").split("|")]
