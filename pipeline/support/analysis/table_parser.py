"""Parse rows of tables, and lines such as "Grade 8: 4% matched", into cells; write a row as it is shown."""

from functools import lru_cache
from typing import NamedTuple

from pipeline.support.analysis.parsed_sentence import ParsedSentence, parse_sentence
from storage.language.lazy_pattern import lazy_compile

_CELL = lazy_compile(r"\s*([^:;]{1,60}): ([^;]*)")
_LABELLED = lazy_compile(r"([^:;]{1,60}): (.+)")
_WORD = lazy_compile(r"\w")
_AMOUNT = lazy_compile(r"[^\w\s]{0,2}\d")


class TableCell(NamedTuple):
    """The value of one row below one label; `items` are its parts if it is a list."""

    label: str
    said: str
    items: tuple[ParsedSentence, ...]


CellRow = tuple[TableCell, ...]


@lru_cache(maxsize=2048)
def parse_cells(row: ParsedSentence) -> CellRow:
    cells = []
    for label, said in _CELL.findall(row.text.text):
        items = filter(None, (part.strip() for part in said.split(", ")))
        cells.append(TableCell(label, said.strip(), tuple(parse_sentence(item, row.language) for item in items)))
    return tuple(cells)


@lru_cache(maxsize=512)
def write_row(row: str) -> str:
    """Write a row with marks between its cells: "Pump: B; Price: 349 euros" as "Pump B | Price: 349 euros".

    A line without labelled cells, such as one that introduces a table, stays as it is.
    """
    cells = [_LABELLED.fullmatch(part) for part in row.split("; ")]
    labelled = [(cell[1], cell[2].strip()) for cell in cells if cell]
    (key, named), *rest = labelled or [("", "")]
    if not rest or len(labelled) < len(cells) or ": " in named or not (_WORD.search(key) and _WORD.search(named)):
        return row
    name = f"{key} {named}" if len(named) == 1 or named.isdecimal() or _AMOUNT.match(named) else named
    return " | ".join((name, *(f"{label}: {value}" for label, value in rest)))
