"""Parse rows of tables, and lines such as "Grade 8: 4% matched", into cells; write a row as prose."""

from functools import lru_cache
from typing import NamedTuple

from pipeline.support.analysis.parsed_sentence import ParsedSentence, parse_sentence
from pipeline.support.analysis.proper_names import is_ordinary_word
from storage.language.lazy_pattern import lazy_compile
from storage.language.words import stop_words

_CELL = lazy_compile(r"\s*([^:;]{1,60}): ([^;]*)")
_LABELLED = lazy_compile(r"([^:;]{1,60}): (.+)")
_COUNTED = lazy_compile(r"(.+?) \(([^()]+)\)")
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
    """Write a row as prose: "Pump: B; Price (euros): 349" as "Pump B: price 349 euros".

    A line without labelled cells, such as one that introduces a table, stays as it is.
    """
    cells = [_LABELLED.fullmatch(part) for part in row.split("; ")]
    labelled = [(cell[1], cell[2].strip()) for cell in cells if cell]
    (key, named), *rest = labelled or [("", "")]
    if not rest or len(labelled) < len(cells) or ": " in named or not (_WORD.search(key) and _WORD.search(named)):
        return row
    lower = all(_is_plain(label.split()[0].lower()) for label, _ in rest)
    written = [_write_cell(label[:1].lower() + label[1:] if lower else label, value) for label, value in rest]
    name = f"{key} {named}" if len(named) == 1 or named.isdecimal() or _AMOUNT.match(named) else named
    return f"{name}{' –' if any(': ' in one for one in written) else ':'} " + _join(written)


def _is_plain(word: str) -> bool:
    return is_ordinary_word(word) or word in stop_words("en")


def _write_cell(label: str, value: str) -> str:
    counted = _COUNTED.fullmatch(label)
    if counted and not value.strip("0123456789.,"):
        label, value = counted[1], f"{value} {counted[2]}"
    return f"{label} {value}" if _AMOUNT.match(value) else f"{label}: {value}"


def _join(said: list[str]) -> str:
    return ("; " if any("," in text for text in said) else ", ").join(said)
