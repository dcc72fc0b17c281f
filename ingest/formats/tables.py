"""Tables of HTML -> rows of cells; `rows` makes them text. A table that only lays a page out is told apart."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest

from ingest.formats import rows
from ingest.formats.elements import Element
from ingest.formats.reading import Item
from ingest.types import Block

Grid = list[list[Element]]

_WIDEST_SPAN = 50
_WIDEST_ROW = 200
"""Cells. Where spans make a row wider, they are taken as one cell each."""
_LONGEST_CELL = 600
"""Characters. A cell that says more holds a text of its own, so its table only lays it out."""


def cells(table: Element) -> Iterator[Element]:
    """The table's own cells and its caption, not those of tables within it."""
    for cell in table.iter("td", "th", "caption"):
        if next(cell.iterancestors("table")) is table:
            yield cell


def is_layout(table: Element, grid: Grid) -> bool:
    """Whether a table holds texts rather than rows of facts."""
    if all(len(set(line)) == 1 for line in grid):
        return True
    if next((inner for inner in table.iterdescendants("table", "pre", "h1", "h2", "h3", "h4")), None) is not None:
        return True
    return table.find(".//th") is None and any(
        len(cell.text_content()) > _LONGEST_CELL for line in grid for cell in line
    )


def holds_texts(said: Iterable[str]) -> bool:
    """Whether a cell says more than can be told in a row."""
    return any(len(text) > _LONGEST_CELL for text in said)


def texts(grid: Grid, said: Mapping[Element, str], inside: Mapping[Element, Sequence[Item]]) -> Iterator[Item]:
    """The cells one after the other, each after the name of its column; for a table whose cells hold whole texts."""
    names, body = _parted(grid, said)
    named = {cell: name or "" for line in body for cell, name in zip_longest(line, names) if cell is not None}
    for cell, name in named.items():
        items = inside[cell]
        if name and len(items) == 1 and "\n" not in items[0].text:
            yield Block(f"{name}: {items[0].text}")
        elif items:
            yield from [Block(f"{name}:")] if name else []
            yield from items


def blocks(grid: Grid, said: Mapping[Element, str]) -> Iterator[Block]:
    """One block a row, with the names of the columns where the table has them."""
    names, body = _parted(grid, said)
    texts = [_texts(line, said) for line in body]
    if names:
        yield from rows.blocks(names, texts)
    elif all(line[0].tag == "th" for line in grid):
        for name, *values in texts:
            yield from rows.blocks([name], [["; ".join(filter(None, values)) or name]])
    else:
        yield from rows.blocks(*rows.headed(texts))


def grid(table: Element) -> Grid:
    """The table's own cells by row, each repeated over the rows and columns that it spans."""
    made: Grid = []
    hanging: dict[int, tuple[int, Element]] = {}
    for row in table.iter("tr"):
        if next(row.iterancestors("table")) is not table:
            continue
        line: list[Element] = []
        for cell in row.iterchildren("td", "th"):
            _hang(line, hanging)
            wide = len(line) >= _WIDEST_ROW
            for _ in range(1 if wide else _span(cell, "colspan")):
                if (rows_spanned := 1 if wide else _span(cell, "rowspan")) > 1:
                    hanging[len(line)] = (rows_spanned - 1, cell)
                line.append(cell)
        _hang(line, hanging)
        if line:
            made.append(line)
    return made


def _hang(line: list[Element], hanging: dict[int, tuple[int, Element]]) -> None:
    while len(line) in hanging:
        left, cell = hanging.pop(len(line))
        if left > 1:
            hanging[len(line)] = (left - 1, cell)
        line.append(cell)


def _span(cell: Element, name: str) -> int:
    said = cell.get(name, "1").strip()
    return min(max(int(said), 1), _WIDEST_SPAN) if said.isdecimal() else 1


def _parted(grid: Grid, said: Mapping[Element, str]) -> tuple[list[str], Grid]:
    """The names of the columns, if the table marks them, and the rows below."""
    marked = 0
    while marked < len(grid) and all(cell.tag == "th" for cell in grid[marked]):
        marked += 1
    if marked == len(grid):
        marked = min(marked, 1)
    return [_name(column, said) for column in zip(*grid[:marked], strict=False)], grid[marked:]


def _name(column: Sequence[Element], said: Mapping[Element, str]) -> str:
    return " ".join(dict.fromkeys(said[cell] for cell in column))


def _texts(line: Sequence[Element], said: Mapping[Element, str]) -> list[str]:
    """A cell over several columns says its text once."""
    return ["" if i and line[i - 1] is cell else said[cell] for i, cell in enumerate(line)]
