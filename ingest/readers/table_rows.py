"""Turn tables into one block a row, each readable without its table: "Header: value; Header: value".

Tables of HTML are read with their spans, tables that only lay a page out are recognised, and tables drawn with pipes
that Markdown did not accept are restored.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest

from ingest.readers.parsed_document import ContentItem
from ingest.readers.value_parsers import Element
from ingest.types import Block
from storage.language.lazy_pattern import lazy_compile
from storage.types import PassageKind

_DIGIT = lazy_compile(r"\d")
_LETTER = lazy_compile(r"[^\W\d_]")
_LONGEST_HEADER = 8  # words. A first row whose cells say more than this is taken for data
_SENTENCE_ENDS = (".", "!", "?", ";", ":", "。", "！", "？")


def make_row_blocks(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Block]:
    """Make one block for each row that says anything. `header` may be empty or shorter than the rows."""
    for row in rows:
        values = [_labelled_value(header[i] if i < len(header) else "", value) for i, value in enumerate(row) if value]
        if values:
            parts = [part + (" " if part.endswith(_SENTENCE_ENDS) else "; ") for part in values[:-1]]
            yield Block("".join([*parts, values[-1]]), PassageKind.TABLE)


def split_header(rows: Sequence[Sequence[str]]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Split a table that marks no header: its first row, if it reads like one, and the rest."""
    if len(rows) > 1 and is_header_row(rows[0]):
        return rows[0], rows[1:]
    return (), rows


def is_header_row(row: Sequence[str]) -> bool:
    """Tell whether a row's cells are all filled, short, different and not numbers."""
    return len(row) > 1 and all(row) and len(set(row)) == len(row) and all(is_column_name(cell) for cell in row)


def is_column_name(cell: str) -> bool:
    """Tell whether a cell could name a column: short, no number, and not the name of the value beside it ("Name:")."""
    is_number = _DIGIT.search(cell) and not _LETTER.search(cell)
    return len(cell.split()) <= _LONGEST_HEADER and not is_number and not cell.endswith(":")


def _labelled_value(header: str, value: str) -> str:
    if not header or header == value:
        return value
    return f"{header} {value}" if header.endswith((":", "?")) else f"{header}: {value}"


_PIPE_ROW = lazy_compile(r"\|.*\|.*")
_PIPE_RULE = lazy_compile(r"[|:\s-]+")


def restore_pipe_tables(items: Iterable[ContentItem]) -> Iterator[ContentItem]:
    """Make rows of the paragraphs whose lines all begin with a pipe and hold another; all else stays as it is."""
    for is_table, run in groupby(items, key=_is_pipe_table):
        if is_table:
            lines = [line for item in run for line in item.text.split("\n") if not _PIPE_RULE.fullmatch(line)]
            grid = [line.removeprefix("|").removesuffix("|").split("|") for line in lines]
            yield from make_row_blocks(*split_header([[cell.strip() for cell in line] for line in grid]))
        else:
            yield from run


def _is_pipe_table(item: ContentItem) -> bool:
    prose = isinstance(item, Block) and item.kind is PassageKind.PROSE and item.text.startswith("|")
    return prose and all(_PIPE_ROW.fullmatch(line) for line in item.text.split("\n"))


Grid = list[list[Element]]

_WIDEST_SPAN = 50
_WIDEST_ROW = 200  # cells. Where spans make a row wider, they are taken as one cell each
_LONGEST_CELL = 600
"""Characters. A cell that says more holds a text of its own, so its table only lays it out."""


def find_cells(table: Element) -> Iterator[Element]:
    for cell in table.iter("td", "th", "caption"):
        if next(cell.iterancestors("table")) is table:
            yield cell


def is_layout_table(table: Element, grid: Grid) -> bool:
    """Tell whether a table holds texts rather than rows of facts."""
    if all(len(set(line)) == 1 for line in grid):
        return True
    if next((inner for inner in table.iterdescendants("table", "pre", "h1", "h2", "h3", "h4")), None) is not None:
        return True
    return table.find(".//th") is None and any(
        len(cell.text_content()) > _LONGEST_CELL for line in grid for cell in line
    )


def has_long_text(texts: Iterable[str]) -> bool:
    """Tell whether a cell says more than fits in a row."""
    return any(len(text) > _LONGEST_CELL for text in texts)


def make_text_blocks(
    grid: Grid, texts: Mapping[Element, str], inside: Mapping[Element, Sequence[ContentItem]]
) -> Iterator[ContentItem]:
    """Read the cells one after the other, each after its column's name; for a table whose cells hold whole texts."""
    names, body = _split_columns(grid, texts)
    named = {cell: name or "" for line in body for cell, name in zip_longest(line, names) if cell is not None}
    for cell, name in named.items():
        items = inside[cell]
        if name and len(items) == 1 and "\n" not in items[0].text:
            yield Block(f"{name}: {items[0].text}")
        elif items:
            yield from [Block(f"{name}:")] if name else []
            yield from items


def make_table_blocks(grid: Grid, said: Mapping[Element, str]) -> Iterator[Block]:
    """Make one block a row, with the names of the columns where the table has them."""
    names, body = _split_columns(grid, said)
    texts = [(["" if i and line[i - 1] is cell else said[cell] for i, cell in enumerate(line)]) for line in body]
    if names:
        yield from make_row_blocks(names, texts)
    elif all(line[0].tag == "th" for line in grid):
        for name, *values in texts:
            yield from make_row_blocks([name], [["; ".join(filter(None, values)) or name]])
    else:
        yield from make_row_blocks(*split_header(texts))


def build_grid(table: Element) -> Grid:
    """Return the table's own cells by row, each repeated over the rows and columns that it spans."""
    made: Grid = []
    hanging: dict[int, tuple[int, Element]] = {}
    for row in table.iter("tr"):
        if next(row.iterancestors("table")) is not table:
            continue
        line: list[Element] = []
        for cell in row.iterchildren("td", "th"):
            _fill_spans(line, hanging)
            wide = len(line) >= _WIDEST_ROW
            for _ in range(1 if wide else _span(cell, "colspan")):
                if (rows_spanned := 1 if wide else _span(cell, "rowspan")) > 1:
                    hanging[len(line)] = (rows_spanned - 1, cell)
                line.append(cell)
        _fill_spans(line, hanging)
        if line:
            made.append(line)
    return made


def _fill_spans(line: list[Element], hanging: dict[int, tuple[int, Element]]) -> None:
    while len(line) in hanging:
        left, cell = hanging.pop(len(line))
        if left > 1:
            hanging[len(line)] = (left - 1, cell)
        line.append(cell)


def _span(cell: Element, name: str) -> int:
    number = cell.get(name, "1").strip()
    return min(max(int(number), 1), _WIDEST_SPAN) if number.isdecimal() else 1


def _split_columns(grid: Grid, texts: Mapping[Element, str]) -> tuple[list[str], Grid]:
    """Return the names of the columns, if the table marks them, and the rows below."""
    marked = 0
    while marked < len(grid) and all(cell.tag == "th" for cell in grid[marked]):
        marked += 1
    if marked == len(grid):
        marked = min(marked, 1)
    columns = zip(*grid[:marked], strict=False)
    return [" ".join(dict.fromkeys(texts[cell] for cell in column)) for column in columns], grid[marked:]
