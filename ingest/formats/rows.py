"""Rows of cells -> one table block a row, each readable without its table: "Header: value; Header: value"."""

import re
from collections.abc import Iterator, Sequence

from ingest.types import Block
from storage.types import Kind

_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_LONGEST_HEADER = 8
"""Words. A first row whose cells say more than this is taken for data."""
_ENDS = (".", "!", "?", ";", ":", "。", "！", "？")


def blocks(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[Block]:
    """One block for each row that says anything. `header` may be empty or shorter than the rows."""
    for row in rows:
        said = [_cell(header[i] if i < len(header) else "", value) for i, value in enumerate(row) if value]
        if said:
            yield Block(_joined(said), Kind.TABLE)


def headed(rows: Sequence[Sequence[str]]) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Split a table that marks no header: its first row, if it reads like one, and the rest."""
    if len(rows) > 1 and reads_like_header(rows[0]):
        return rows[0], rows[1:]
    return (), rows


def reads_like_header(row: Sequence[str]) -> bool:
    """Whether a row's cells are all filled, short, different and not numbers."""
    return len(row) > 1 and all(row) and len(set(row)) == len(row) and all(reads_like_name(cell) for cell in row)


def reads_like_name(cell: str) -> bool:
    """Whether a cell could name a column: short, no number, and not the name of the value beside it ("Name:")."""
    is_number = _DIGIT.search(cell) and not _LETTER.search(cell)
    return len(cell.split()) <= _LONGEST_HEADER and not is_number and not cell.endswith(":")


def _cell(header: str, value: str) -> str:
    if not header or header == value:
        return value
    return f"{header} {value}" if header.endswith((":", "?")) else f"{header}: {value}"


def _joined(said: Sequence[str]) -> str:
    parts = [part + (" " if part.endswith(_ENDS) else "; ") for part in said[:-1]]
    return "".join([*parts, said[-1]])
