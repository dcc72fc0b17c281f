"""Turn each row of a table into a block that can be read by itself: "Header: value; Header: value".

HTML tables are read with cells that span rows and columns, and tables that only serve layout are recognized. Tables of
pipes that Markdown rejects are restored.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, pairwise, zip_longest

from ingest.readers.parsed_document import ContentItem
from ingest.readers.value_parsers import Element
from ingest.types import Block
from storage.language.lazy_pattern import lazy_compile
from storage.types import PassageKind

_DIGIT = lazy_compile(r"\d")
_LETTER = lazy_compile(r"[^\W\d_]")
_SIGN = lazy_compile(r"[\W_]*")
_PERIOD = lazy_compile(r"(?:FY|Q[1-4] )?(?:19|20)\d\d(?:[-/–]\d\d(?:\d\d)?)?")
_OPENING = lazy_compile(r"[$€£¥₹]\s*\(?|\(")
_CLOSING = lazy_compile(r"\)\s*%?|%\)?")
_NUMBER = lazy_compile(r"[$€£¥₹]?\s*\(?[-–—−+]?\s*(?:\d|$)")
_WIDEST_GAP = 3  # cells between a number and its sign
_MOST_HEADS = 4  # rows
_LONGEST_HEADER = 8  # words; a first row with longer cells is data
_SENTENCE_ENDS = (".", "!", "?", ";", ":", "。", "！", "？")


def make_row_blocks(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Block]:
    """Make a block from each row that is not empty. `header` may be empty or shorter than the rows."""
    for row in rows:
        values = [_labelled_value(header[i] if i < len(header) else "", value) for i, value in enumerate(row) if value]
        if values:
            parts = [part + (" " if part.endswith(_SENTENCE_ENDS) else "; ") for part in values[:-1]]
            yield Block("".join([*parts, values[-1]]), PassageKind.TABLE)


def split_header(
    rows: Sequence[Sequence[str]], spread: Sequence[Sequence[str]] = ()
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Split a table without a marked header into column names, which may be empty, and the other rows.

    `spread` are the same rows, with the text of each cell repeated in all columns that it spans.
    """
    if len(rows) > 1 and is_header_row(rows[0]):
        return merge_columns(rows[0], rows[1:])
    heads = _count_heads(rows)
    heads += _names_all_columns(spread[:heads], rows[heads:])
    names = [_join_names(column) for column in zip_longest(*(spread or rows)[:heads], fillvalue="")]
    merged = merge_columns(names, rows[heads:])
    used = " ".join(merged[0])
    # The name of an empty column is not a name.
    return merged if all(cell in used for row in rows[:heads] for cell in row) else ((), rows)


def _count_heads(rows: Sequence[Sequence[str]]) -> int:
    """Count the rows at the top that name columns. The first cell is empty or a unit, or all others are periods."""
    count = 0
    for at, row in enumerate(rows[:_MOST_HEADS]):
        label, *others = row or ("",)
        named = [cell for cell in others if cell]
        if not all(_is_head(cell) for cell in named) or not (named or _is_unit(label)):
            break
        if label and not _is_unit(label) and (len(named) < len(others) or not all(map(_is_period, named))):
            break
        count = at + 1
    below = rows[count:]
    if not below or not any(cell for row in rows[:count] for cell in row[1:]):
        return 0
    # Below are values, each row with its name.
    labelled = sum(1 for row in below if row and row[0])
    return count if 2 * labelled > len(below) and any(cell for row in below for cell in row[1:]) else 0


def _names_all_columns(heads: Sequence[Sequence[str]], below: Sequence[Sequence[str]]) -> bool:
    """Return whether the first row of `below` also names columns, as neighbouring columns share a name in `heads`."""
    shared = any(name and name == other for name, other in pairwise(map(_join_names, zip(*heads, strict=False))))
    return shared and len(below) > 1 and is_header_row(below[0])


def _is_head(cell: str) -> bool:
    return _is_period(cell) or (is_column_name(cell) and not _SIGN.fullmatch(cell))


def _is_period(cell: str) -> bool:
    return bool(_PERIOD.fullmatch(cell))


def _is_unit(label: str) -> bool:
    return label.startswith("(") and label.endswith(")")


def _join_names(names: Iterable[str]) -> str:
    parts = list(dict.fromkeys(filter(None, names)))
    return " ".join(part for part in parts if not any(f" {part} " in f" {other} " for other in parts if other != part))


def merge_columns(names: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Join numbers with their signs, and drop empty columns; tables in financial reports need this.

    The name of a column may be above the number or above any of its signs.
    """
    columns = list(zip_longest(*map(_join_signs, rows), fillvalue=""))
    merged: list[tuple[str, Sequence[str]]] = []
    waiting = ""  # the name of an empty column, for the next one without a name
    for at, column in enumerate(columns):
        name = names[at] if at < len(names) else ""
        if at and not any(column):
            waiting = name or waiting
            continue
        named = name or waiting
        waiting = ""
        if (
            at
            and name
            and name == merged[-1][0]
            and not any(before and own for before, own in zip(merged[-1][1], column, strict=True))
        ):
            merged[-1] = name, [before or own for before, own in zip(merged[-1][1], column, strict=True)]
        else:
            merged.append((named, column))
    if len(merged) == len(columns):
        return names, rows
    return [name for name, _ in merged], list(zip(*(column for _, column in merged), strict=True))


def _join_signs(row: Sequence[str]) -> Sequence[str]:
    """Join a currency sign with the number after it, and a bracket or percent sign with the number before it."""
    cells = list(row)
    for at, after in pairwise([at for at, cell in enumerate(row) if cell]):
        if after - at > _WIDEST_GAP:
            continue
        if at and _OPENING.fullmatch(cells[at]) and _NUMBER.match(cells[after]):
            cells[at], cells[after] = "", cells[at] + cells[after]
        elif _CLOSING.fullmatch(cells[after]) and _NUMBER.match(cells[at]):
            cells[at], cells[after] = cells[at] + cells[after], ""
    return cells


def is_header_row(row: Sequence[str]) -> bool:
    """Return whether all cells of a row are filled, short, different and not numbers."""
    return len(row) > 1 and all(row) and len(set(row)) == len(row) and all(is_column_name(cell) for cell in row)


def is_column_name(cell: str) -> bool:
    """Return whether a cell can name a column: short, not a number, and not a label of the next cell ("Name:")."""
    is_number = _DIGIT.search(cell) and not _LETTER.search(cell)
    return len(cell.split()) <= _LONGEST_HEADER and not is_number and not cell.endswith(":")


def _labelled_value(header: str, value: str) -> str:
    if not header or header == value:
        return value
    if _is_unit(header):
        return f"{value} {header}"
    return f"{header} {value}" if header.endswith((":", "?")) else f"{header}: {value}"


_PIPE_ROW = lazy_compile(r"\|.*\|.*")
_PIPE_RULE = lazy_compile(r"[|:\s-]+")


def restore_pipe_tables(items: Iterable[ContentItem]) -> Iterator[ContentItem]:
    """Turn paragraphs into rows if all their lines begin with a pipe and have a second. Yield other items unchanged."""
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
_WIDEST_ROW = 200  # cells; in a wider row, spans are ignored
_LONGEST_CELL = 600
"""Characters; a longer cell is a text, and its table serves layout."""


def find_cells(table: Element) -> Iterator[Element]:
    for cell in table.iter("td", "th", "caption"):
        if next(cell.iterancestors("table")) is table:
            yield cell


def is_layout_table(table: Element, grid: Grid) -> bool:
    """Return whether a table contains texts instead of rows of facts."""
    if all(len(set(line)) == 1 for line in grid):
        return True
    if next(table.iterdescendants("pre", "h1", "h2", "h3", "h4"), None) is not None:
        return True
    if next(table.iterdescendants("table"), None) is not None and not _has_plain_header(grid):
        return True
    return table.find(".//th") is None and any(
        len(cell.text_content()) > _LONGEST_CELL for line in grid for cell in line
    )


def _has_plain_header(grid: Grid) -> bool:
    """Return whether a table with tables inside still has facts: its first row names the columns of all rows."""
    plain = all(cell.find(".//table") is None for cell in grid[0])
    names = [" ".join(cell.text_content().split()) for cell in grid[0]]
    return plain and is_header_row(names) and all(len(line) == len(grid[0]) for line in grid)


def has_long_text(texts: Iterable[str]) -> bool:
    return any(len(text) > _LONGEST_CELL for text in texts)


def make_text_blocks(
    grid: Grid, texts: Mapping[Element, str], inside: Mapping[Element, Sequence[ContentItem]]
) -> Iterator[ContentItem]:
    """Read a table of long texts cell by cell, each after the name of its column."""
    titles, grid = _split_titles(grid, texts)
    for cell in titles:
        yield from inside[cell]
    names, body = _split_columns(grid, texts)
    if not names and len(grid) > 1 and is_header_row(first := [texts[cell] for cell in grid[0]]):
        names, body = first, grid[1:]
    named = {cell: name or "" for line in body for cell, name in zip_longest(line, names) if cell is not None}
    for cell, name in named.items():
        items = inside[cell]
        if name and len(items) == 1 and "\n" not in items[0].text:
            yield Block(f"{name}: {items[0].text}")
        elif items:
            yield from [Block(f"{name}:")] if name else []
            yield from items


def make_table_blocks(grid: Grid, texts: Mapping[Element, str]) -> Iterator[Block]:
    """Make a block from each row, with the names of the columns if the table has them."""
    titles, grid = _split_titles(grid, texts)
    yield from make_row_blocks((), [[texts[cell]] for cell in titles])
    names, body = _split_columns(grid, texts)
    values = [(["" if i and line[i - 1] is cell else texts[cell] for i, cell in enumerate(line)]) for line in body]
    if names:
        yield from make_row_blocks(*merge_columns(names, values))
    elif all(line[0].tag == "th" for line in grid):
        for name, *cells in values:
            yield from make_row_blocks([name], [["; ".join(filter(None, cells)) or name]])
    else:
        yield from make_row_blocks(*split_header(values, [[texts[cell] for cell in line] for line in body]))


def build_grid(table: Element) -> Grid:
    """Return the cells of a table by row, without nested tables; a cell is in every row and column that it spans."""
    grid: Grid = []
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
            grid.append(line)
    return grid


def _fill_spans(line: list[Element], hanging: dict[int, tuple[int, Element]]) -> None:
    while len(line) in hanging:
        left, cell = hanging.pop(len(line))
        if left > 1:
            hanging[len(line)] = (left - 1, cell)
        line.append(cell)


def _span(cell: Element, name: str) -> int:
    number = cell.get(name, "1").strip()
    return min(max(int(number), 1), _WIDEST_SPAN) if number.isdecimal() else 1


def _split_titles(grid: Grid, texts: Mapping[Element, str]) -> tuple[list[Element], Grid]:
    """Split off the title rows at the top.

    A title row has a single cell that spans the table, or a single filled cell above an empty row.
    """
    count = 0
    while count < len(grid) - 1 and len(grid[count]) > 1:
        filled = {cell for cell in grid[count] if texts[cell]}
        alone = filled == {grid[count][0]} and not any(texts[cell] for cell in grid[count + 1])
        if len(set(grid[count])) > 1 and not alone and (filled or not count):
            break
        count += 1
    return [line[0] for line in grid[:count]], grid[count:]


def _split_columns(grid: Grid, texts: Mapping[Element, str]) -> tuple[list[str], Grid]:
    """Return the names of the columns, if they are marked as such, and the other rows."""
    marked = 0
    while marked < len(grid) and all(cell.tag == "th" for cell in grid[marked]):
        marked += 1
    if marked == len(grid):
        marked = min(marked, 1)
    columns = zip(*grid[:marked], strict=False)
    return [" ".join(dict.fromkeys(texts[cell] for cell in column)) for column in columns], grid[marked:]
