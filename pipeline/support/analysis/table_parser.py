"""Parse rows of tables, and lines such as "Grade 8: 4% matched", into cells."""

from functools import lru_cache
from typing import NamedTuple

from pipeline.support.analysis.parsed_sentence import ParsedSentence, parse_sentence
from storage.language.lazy_pattern import lazy_compile

_CELL = lazy_compile(r"\s*([^:;]{1,60}): ([^;]*)")
_LINE = lazy_compile(r"\W*([^:;.]{1,60}): ([^:;]{1,120})")


class TableCell(NamedTuple):
    """The value that one row has below one label; `items` are the parts of a list."""

    label: str
    said: str
    items: tuple[ParsedSentence, ...]


CellRow = tuple[TableCell, ...]


@lru_cache(maxsize=2048)
def parse_cells(row: ParsedSentence) -> CellRow:
    found = []
    for label, said in _CELL.findall(row.text.text):
        items = filter(None, (part.strip() for part in said.split(", ")))
        found.append(TableCell(label, said.strip(), tuple(parse_sentence(item, row.language) for item in items)))
    return tuple(found)


@lru_cache(maxsize=2048)
def parse_keyed_row(sentence: ParsedSentence) -> CellRow:
    """Return the cells of a row, the first of which says what it is about; none of prose."""
    line = None if sentence.is_row else _LINE.fullmatch(sentence.text.text)
    if not line:
        return parse_cells(sentence) if sentence.is_row else ()
    cells = [TableCell("", said, (parse_sentence(said, sentence.language),)) for said in line.groups()]
    return tuple(cells)
