"""Stretches of text on the pages of a PDF -> its lines, each of one cell or more, without what stands on every page."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

HYPHEN = "\u00ad"
"""Stands at the end of a line whose last word goes on in the next."""

_PAGE_NUMBER = re.compile(r"[-–]?\s*(?:\d{1,4}|[ivxl]{1,6})(?:\s*(?:of|/)\s*\d{1,4})?\s*[-–]?", re.IGNORECASE)
_PAGE_OF = re.compile(r"(?:page|seite|p\.)\s*\d{1,4}(?:\s*(?:of|von|/)\s*\d{1,4})?", re.IGNORECASE)
_LABEL = re.compile(r"\(?(?:\.?\d+(?:\.\d+)*|[a-zA-Z]|[ivx]+)[.)]?|[•▪◦●○‣–*-]")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_EDGE = 3
"""Lines at the top and at the bottom of a page where running heads and page numbers stand."""
_LEAST_PAGES = 3
_SMALL = 0.8


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of text on one line; places and sizes in points, from the lower left corner of the page."""

    left: float
    bottom: float
    right: float
    top: float
    text: str
    size: float
    """The height of its font."""
    bold: bool


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a page; the stretches on it that stand far apart are its cells, from left to right."""

    cells: tuple[Segment, ...]
    page: int

    @property
    def text(self) -> str:
        """All cells, set apart by spaces."""
        return " ".join(cell.text for cell in self.cells)

    @property
    def size(self) -> float:
        """The size of most of it."""
        return max(self.cells, key=lambda cell: len(cell.text)).size

    @property
    def bold(self) -> bool:
        """Whether all of it is bold."""
        return all(cell.bold for cell in self.cells)

    @property
    def left(self) -> float:
        """Where it begins."""
        return self.cells[0].left

    @property
    def right(self) -> float:
        """Where it ends."""
        return self.cells[-1].right

    @property
    def bottom(self) -> float:
        """Where its letters stand on."""
        return self.cells[0].bottom


def lines(pages: Sequence[Sequence[Segment]]) -> list[Line]:
    """The lines of a document, page after page, in the order in which its file draws them."""
    found = [line for number, page in enumerate(pages) for line in _of_page(page, number)]
    furniture = _furniture(found, len(pages))
    return [line for line in found if line not in furniture]


def _of_page(segments: Iterable[Segment], page: int) -> Iterator[Line]:
    cells: list[Segment] = []
    for segment in segments:
        if cells and not _beside(cells[-1], segment):
            yield Line(tuple(map(_tidy, cells)), page)
            cells = []
        if cells and (_close(cells[-1], segment) or _is_label(cells, segment)):
            cells[-1] = _joined(cells[-1], segment)
        else:
            cells.append(segment)
    if cells:
        yield Line(tuple(map(_tidy, cells)), page)


def _beside(before: Segment, segment: Segment) -> bool:
    shared = min(before.top, segment.top) - max(before.bottom, segment.bottom)
    lower = min(before.top - before.bottom, segment.top - segment.bottom)
    return shared > 0.5 * lower and segment.left > before.right - 0.3 * segment.size


def _close(before: Segment, segment: Segment) -> bool:
    return segment.left - before.right < 0.6 * max(before.size, segment.size)


def _is_label(cells: Sequence[Segment], segment: Segment) -> bool:
    """Whether all that stands on the line so far is the number or bullet of what follows."""
    only = len(cells) == 1 and _LABEL.fullmatch(cells[0].text.strip())
    return bool(only) and any(char.isalpha() for char in segment.text)


def _joined(before: Segment, segment: Segment) -> Segment:
    longer = before if len(before.text) >= len(segment.text) else segment
    raised = segment.size < _SMALL * before.size and segment.bottom > before.bottom + 0.2 * before.size
    text = segment.text.strip().translate(_RAISED) if raised else segment.text
    apart = " " if segment.left - before.right > 0.15 * longer.size and not raised else ""
    return replace(
        longer,
        left=before.left,
        right=segment.right,
        text=before.text + apart + text,
        bold=before.bold and segment.bold,
    )


def _tidy(cell: Segment) -> Segment:
    return replace(cell, text=" ".join(cell.text.split()))


def _furniture(found: Sequence[Line], pages: int) -> set[Line]:
    """Page numbers, and what stands at the edge of most pages with nothing but numbers changed."""
    edges: list[Line] = []
    for _, run in groupby(found, key=lambda line: line.page):
        page = sorted(run, key=lambda line: -line.bottom)
        edges += dict.fromkeys([*page[:_EDGE], *page[-_EDGE:]])
    often = max(_LEAST_PAGES, pages // 2)
    seen = Counter(_pattern(line) for line in edges)
    outer = {line for line in edges if _PAGE_NUMBER.fullmatch(line.text) or seen[_pattern(line)] >= often}
    return outer | {line for line in found if _PAGE_OF.fullmatch(line.text)}


def _pattern(line: Line) -> str:
    return re.sub(r"\d+", "0", line.text)
