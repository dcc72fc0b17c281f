"""Wikitables as rows of "Header: cell", each on one line, fed line by line."""

import re
from dataclasses import dataclass

from ingest.wikitext.boxes import flat

_SPAN = re.compile(r"(row|col)span\s*=\s*[\"']?\s*(\d{1,3})")
_NUMBER = re.compile(r"[-+−–±~<>$€£]?\s*\d")
_MOST_COLUMNS = 60
_MOST_ROWS = 500
"""How far a cell may span: pages with mistakes in a number must not grow."""


@dataclass(slots=True)
class _Cell:
    lines: list[str]
    header: bool
    text: str = ""
    """All its lines on one, once the table is whole."""
    spans: bool = False
    down: int = 1
    across: int = 1


class Table:
    """A table being read: `feed` it the lines between `{|` and `|}`, then take its `rows`."""

    def __init__(self) -> None:
        self._caption: list[str] = []
        self._rows: list[list[_Cell]] = [[]]
        self._in_caption = False

    def feed(self, line: str) -> None:
        """Read one line, without surrounding whitespace."""
        if line.startswith("|-"):
            self._rows.append([])
        elif line.startswith("|+"):
            self._caption, self._in_caption = [_without_attributes(line[2:])], True
            return
        elif line[:1] in ("|", "!"):
            self._cells(line[1:], header=line[0] == "!")
        elif self._in_caption:
            self._caption.append(line)
            return
        elif self._rows[-1]:
            self._rows[-1][-1].lines.append(line)
        self._in_caption = False

    def _cells(self, line: str, *, header: bool) -> None:
        if header:
            line = line.replace("!!", "||")
        for part in line.split("||"):
            self._rows[-1].append(_cell(part, header=header))

    def rows(self) -> list[str]:
        """The caption and each row of data with the headers of its columns; rows without data say nothing."""
        headers: dict[int, str] = {}
        out = [flat(" ".join(self._caption))]
        for cell in (cell for row in self._rows for cell in row):
            cell.text = flat("\n".join(cell.lines))
        rows = [row for row in self._rows if row]
        _mark_headers(rows)
        for cells in _laid_out(rows):
            shown = {column: cell for column, cell in cells.items() if cell.text}
            if len(shown) > 1 and len({id(cell) for cell in shown.values()}) == 1:
                out.append(next(iter(shown.values())).text)  # one cell across all columns says what follows
            elif shown and all(cell.header for cell in shown.values()):
                headers = _headers(headers, shown, new=bool(out[1:]) and len(shown) > 1)
            else:
                out.append(_row(shown, headers))
        return [row for row in out if row]


def _mark_headers(rows: list[list[_Cell]]) -> None:
    """Where no cell is marked as a header, a first row of words above numbers is one."""
    first, *others = rows or [[]]
    if len(first) < 3 or not others or any(cell.header for row in rows for cell in row):  # noqa: PLR2004 - two are a pair
        return
    words = all(cell.text and not _NUMBER.match(cell.text) for cell in first)
    if words and any(_NUMBER.match(cell.text) for row in others for cell in row):
        for cell in first:
            cell.header = True


def _headers(before: dict[int, str], cells: dict[int, _Cell], *, new: bool) -> dict[int, str]:
    """Headers of the columns; a second row of headers right below the first says more of the same columns."""
    headers = {} if new else dict(before)
    for column, cell in cells.items():
        above = headers.get(column, "")
        headers[column] = cell.text if above in ("", cell.text) else f"{above} {cell.text}"
    return headers


def _row(cells: dict[int, _Cell], headers: dict[int, str]) -> str:
    said: list[str] = []
    seen: set[int] = set()
    for column, cell in cells.items():
        if id(cell) in seen:
            continue
        seen.add(id(cell))
        label = headers.get(column, "")
        said.append(f"{label}: {cell.text}" if label and label != cell.text else cell.text)
    if not headers and len(said) == 2:  # noqa: PLR2004 - two cells are a label and its value
        return ": ".join(text.rstrip(":") for text in said)
    return "; ".join(said)


def _laid_out(rows: list[list[_Cell]]) -> list[dict[int, _Cell]]:
    """Each row by column, cells that span standing in all their places."""
    hanging: dict[int, tuple[int, _Cell]] = {}
    out: list[dict[int, _Cell]] = []
    for row in rows:
        if not hanging and not any(cell.spans for cell in row):  # nearly all rows
            out.append(dict(enumerate(row)))
            continue
        places: dict[int, _Cell] = {column: cell for column, (_, cell) in hanging.items()}
        below = {column: (left - 1, cell) for column, (left, cell) in hanging.items() if left > 1}
        column = 0
        for cell in row:
            while column in places:
                column += 1
            for covered in range(column, column + cell.across):
                places[covered] = cell
                if cell.down > 1 and covered < _MOST_COLUMNS:
                    below[covered] = (cell.down - 1, cell)
            column += cell.across
        hanging = below
        out.append(dict(sorted(places.items())))
    return out


def _cell(part: str, *, header: bool) -> _Cell:
    attributes, pipe, text = part.partition("|")
    if not pipe:
        return _Cell([part.strip()], header)
    cell = _Cell([text.strip()], header)
    if "span" in attributes:
        cell.spans = True
        for which, number in _SPAN.findall(attributes):
            if which == "row":
                cell.down = min(max(int(number), 1), _MOST_ROWS)
            else:
                cell.across = min(max(int(number), 1), _MOST_COLUMNS)
    return cell


def _without_attributes(text: str) -> str:
    attributes, pipe, rest = text.partition("|")
    return (rest if pipe and "=" in attributes else text).strip()
