"""Rows of a Markdown table as sentences: under a heading row each cell names its column."""

import re
from dataclasses import dataclass, field

_BAR = re.compile(r"(?<!\\)\|")
_RULE = re.compile(r"[\s|:+=-]*-[\s|:+=-]*")


@dataclass(slots=True)
class Table:
    """One table as its rows arrive."""

    _columns: list[str] = field(default_factory=list)
    _held: list[str] = field(default_factory=list)
    """A row that is not said yet: the next line may say that it names the columns."""

    def row(self, line: str) -> list[str]:
        """Take one row, and return the sentences that are now certain."""
        if _RULE.fullmatch(line):
            self._columns = self._held or self._columns
            return []
        held, self._held = self._held, _cells(line)
        if not self._columns:
            return [" | ".join(held)] if held else []
        cells, self._held = self._held, []
        return [self._said(cells)]

    def end(self) -> list[str]:
        """Return what is left where the table ends, and begin anew. A table without rows says what its head says."""
        left, self._columns, self._held = self._held, [], []
        return [" | ".join(left)] if left else []

    def _said(self, cells: list[str]) -> str:
        if len(cells) != len(self._columns):
            return " | ".join(filter(None, cells))
        named = [f"{name}: {cell}" if name else cell for name, cell in zip(self._columns, cells, strict=True) if cell]
        return "; ".join(named)


def _cells(line: str) -> list[str]:
    cells = [cell.strip() for cell in _BAR.split(line.strip().removeprefix("|"))]
    return cells[:-1] if cells and not cells[-1] else cells
