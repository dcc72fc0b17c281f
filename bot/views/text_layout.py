"""Lay out text for a terminal: paragraphs, marks with indented content, and tables. No address is ever broken.

A line breaks at spaces and between wide characters, never within a word. A word that is wider than the terminal makes
its line too long, so that the word can be copied. In a file or a pipe, a paragraph or a record of a table is one line.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from rich.cells import cell_len, get_character_cell_size
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.containers import Lines
from rich.segment import Segment
from rich.style import Style
from rich.text import Text as RichText

UNWRAPPED = 1_000_000
"""The width of a file or a pipe, where nothing is wrapped."""
WHOLE = Style(bold=True, meta={"whole": True})
"""The style of a bold name that is not broken at its blanks."""
_GAPS = (2, 1)  # blanks between two columns: as many as fit
_SENTENCE, _NARROWEST = 40, 24  # a column wider than `_SENTENCE` has sentences, and gets at least `_NARROWEST`
_NEVER_FIRST = frozenset("、。，．：；！？）」』】〉》〕］｝ー々…")  # never at the start of a Chinese or Japanese line


class Text(RichText):
    """Text that is wrapped by the rules of this module."""

    def wrap(self, console: Console, width: int, **options: Any) -> Lines:
        """Return the text's lines. Of Rich's `options`, only `no_wrap` has an effect."""
        del console
        lines = Lines()
        for line in self.split(allow_blank=True):
            for piece in line.divide(() if options.get("no_wrap") else _find_breaks(line, width)):
                piece.rstrip()
                lines.append(piece)
        return lines


def _find_breaks(line: RichText, width: int) -> Sequence[int]:
    """Return the positions at which to break a line. Each piece is as long as possible, and has at least one word."""
    if cell_len(line.plain) <= width:
        return ()
    whole = [(span.start, span.end) for span in line.spans if isinstance(span.style, Style) and span.style.meta]
    breaks, begin = list[int](), 0
    for start, end in pairwise([*_find_chances(line.plain, whole), len(line.plain)]):
        if start > begin and cell_len(line.plain[begin:end].rstrip()) > width:
            breaks.append(start)
            begin = start
    return breaks


def _find_chances(plain: str, whole: Sequence[tuple[int, int]]) -> Iterator[int]:
    """Yield the positions where a line may be broken: after spaces and at wide characters, outside `whole` spans."""
    yield 0
    for place, (before, char) in enumerate(pairwise(plain), start=1):
        after_blank = before.isspace() and not char.isspace()
        wide = max(get_character_cell_size(before), get_character_cell_size(char)) > 1 and not char.isspace()
        inside = any(start < place < end for start, end in whole)
        if not inside and (after_blank or (wide and char not in _NEVER_FIRST)):
            yield place


@dataclass(frozen=True, slots=True)
class Hanging:
    """Content after a mark. Its second and later lines are indented by the mark's width."""

    mark: RichText
    content: RenderableType

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        indent = cell_len(self.mark.plain)
        inner = options.update(max_width=max(options.max_width - indent, 1))
        first, blank = list(self.mark.render(console)), [Segment(" " * indent)]
        for number, line in enumerate(Segment.split_lines(console.render(self.content, inner))):
            yield from blank if number else first
            yield from line
            yield Segment.line()


def indent(content: RenderableType, by: int = 2) -> Hanging:
    return Hanging(RichText(" " * by), content)


@dataclass(frozen=True, slots=True)
class ReadableWidth:
    """Content in lines of at most `width` columns, a readable length."""

    content: RenderableType
    width: int = 100

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        width = options.max_width if options.max_width >= UNWRAPPED else min(options.max_width, self.width)
        yield from console.render(self.content, options.update(max_width=width))


@dataclass(slots=True)
class RecordTable:
    """Records with named fields: in columns if they fit, otherwise one record after another, with a field per line.

    Columns are wrapped at blanks to fit. The first field is a record's name.
    """

    headings: Sequence[str]
    numbers: frozenset[int] = frozenset()
    """The indexes of right-aligned columns."""
    rows: list[tuple[str, ...]] = field(default_factory=list)

    def add_row(self, *cells: str) -> None:
        self.rows.append(cells)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        rows = [tuple(self.headings), *self._rows(options)]
        fitting = next(filter(None, (_fit_columns(rows, options.max_width, gap) for gap in _GAPS)), None)
        if fitting is None:
            yield from self._render_records()
            return
        widths, gap = fitting
        line = "-" if options.ascii_only else "─"
        yield from self._render_row(rows[0], widths, gap, console, Style(bold=True))
        yield Segment(line * (sum(widths) + gap * (len(widths) - 1)))
        yield Segment.line()
        for row in rows[1:]:
            yield from self._render_row(row, widths, gap, console)

    def _rows(self, options: ConsoleOptions) -> list[tuple[str, ...]]:
        """Return the rows. If output is not wrapped, each cell is one line."""
        if options.max_width < UNWRAPPED:
            return self.rows
        return [tuple(" ".join(cell.splitlines()) for cell in row) for row in self.rows]

    def _render_row(
        self, cells: Sequence[str], widths: Sequence[int], gap: int, console: Console, style: Style | None = None
    ) -> Iterator[Segment]:
        columns = [Text(cell).wrap(console, width) for cell, width in zip(cells, widths, strict=True)]
        for number in range(max(map(len, columns))):
            line = ""
            for place, (column, width) in enumerate(zip(columns, widths, strict=True)):
                text = column[number].plain if number < len(column) else ""
                blank = " " * (width - cell_len(text))
                line += " " * gap if place else ""
                line += blank + text if place in self.numbers else text + blank
            yield Segment(line.rstrip(), style)
            yield Segment.line()

    def _render_records(self) -> Iterator[RenderableType]:
        label = max(map(cell_len, self.headings[1:]), default=0) + _GAPS[0]
        for number, (name, *cells) in enumerate(self.rows):
            if number:
                yield Text()
            title, rest = Text(name, style="bold"), zip(self.headings[1:], cells, strict=True)
            fields = (Hanging(RichText(f"{heading:<{label}}"), Text(cell)) for heading, cell in rest if cell)
            yield title
            yield indent(Group(*fields))


def _fit_columns(rows: Sequence[Sequence[str]], width: int, gap: int) -> tuple[list[int], int] | None:
    """Return the widths of the columns and their gap; None if they do not fit."""
    columns = list(zip(*rows, strict=True))
    widths = [max(map(_measure_cell, column)) for column in columns]
    least = [max(map(_measure_words, column)) for column in columns]
    least = [max(low, _NARROWEST) if wide > _SENTENCE else low for low, wide in zip(least, widths, strict=True)]
    room = width - gap * (len(widths) - 1)
    if sum(least) > room:
        return None
    while sum(widths) > room:
        widest = max(range(len(widths)), key=lambda place: (widths[place] > least[place], widths[place]))
        widths[widest] -= 1
    return widths, gap


def _measure_cell(cell: str) -> int:
    return max(map(cell_len, cell.splitlines()), default=0)


def _measure_words(cell: str) -> int:
    """Return the width of the longest part of a cell that cannot be broken."""
    chances = [*_find_chances(cell, ()), len(cell)]
    return max((cell_len(cell[start:end].rstrip()) for start, end in pairwise(chances)), default=0)
