"""Turn the text segments of PDF pages into lines, and the lines into headings, paragraphs and tables."""

import heapq
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

from ingest.readers import table_rows
from ingest.readers.parsed_document import ContentItem, Heading
from ingest.types import Block
from storage.language.lazy_pattern import lazy_compile

HYPHEN = "\u00ad"  # ends a line whose last word continues on the next

_PAGE_NUMBER = lazy_compile(r"[-–]?\s*(?:\d{1,4}|[ivxl]{1,6})(?:\s*(?:of|/)\s*\d{1,4})?\s*[-–]?", re.IGNORECASE)
_PAGE_OF = lazy_compile(r"(?:page|seite|p\.)\s*\d{1,4}(?:\s*(?:of|von|/)\s*\d{1,4})?", re.IGNORECASE)
_LABEL = lazy_compile(r"\(?(?:\.?\d+(?:\.\d+)*|[a-zA-Z]|[ivx]+)[.)]?|[•▪◦●○‣–*-]")
_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
_EDGE = 3  # lines at the top and bottom of a page that may hold running heads and page numbers
_LEAST_PAGES = 3
_MOST_ORDERED = 400  # lines of a page that are put in order
_SHARED_WIDTH = 0.2  # least horizontal overlap of two lines below each other, in widths of the narrower
_SMALL = 0.8


@dataclass(frozen=True, slots=True)
class TextSegment:
    """Text on one line without wide gaps. Positions and sizes are in points, from the page's lower left corner."""

    left: float
    bottom: float
    right: float
    top: float
    text: str
    size: float  # the height of its font
    bold: bool


@dataclass(frozen=True, slots=True)
class TextLine:
    """A line of a page. Its cells are segments that are far apart, from left to right."""

    cells: tuple[TextSegment, ...]
    page: int
    text: str
    size: float
    bold: bool
    left: float
    right: float
    bottom: float


def _make_line(segments: Sequence[TextSegment], page: int) -> TextLine:
    cells = tuple(replace(cell, text=" ".join(cell.text.split())) for cell in segments)
    return TextLine(
        cells,
        page,
        text=" ".join(cell.text for cell in cells),
        size=max(cells, key=lambda cell: len(cell.text)).size,
        bold=all(cell.bold for cell in cells),
        left=cells[0].left,
        right=cells[-1].right,
        bottom=cells[0].bottom,
    )


def find_lines(pages: Sequence[Sequence[TextSegment]]) -> list[TextLine]:
    lines = [line for number, page in enumerate(pages) for line in _page_lines(page, number)]
    furniture = _find_furniture(lines, len(pages))
    content = (line for line in lines if line not in furniture)
    return [line for _, page in groupby(content, key=lambda line: line.page) for line in _order_by_place(list(page))]


def _order_by_place(lines: list[TextLine]) -> list[TextLine]:
    """Move each line up that the file draws after lines below it.

    Otherwise, lines keep the file's order, which respects columns: of two lines side by side, neither is above the
    other.
    """
    if len(lines) > _MOST_ORDERED or all(before.bottom >= line.bottom for before, line in pairwise(lines)):
        return lines
    below: list[list[int]] = [[at for at, other in enumerate(lines) if _is_above(line, other)] for line in lines]
    waiting = Counter(at for found in below for at in found)
    ready = [at for at in range(len(lines)) if not waiting[at]]  # a heap, as it is sorted
    ordered: list[TextLine] = []
    while ready:
        first = heapq.heappop(ready)
        ordered.append(lines[first])
        for at in below[first]:
            waiting[at] -= 1
            if not waiting[at]:
                heapq.heappush(ready, at)
    return ordered


def _is_above(line: TextLine, other: TextLine) -> bool:
    shared = min(line.right, other.right) - max(line.left, other.left)
    narrower = min(line.right - line.left, other.right - other.left)
    return line.bottom > other.bottom + 0.5 * other.size and shared > _SHARED_WIDTH * narrower


def _page_lines(segments: Iterable[TextSegment], page: int) -> Iterator[TextLine]:
    cells: list[TextSegment] = []
    for segment in segments:
        if cells and not _is_beside(cells[-1], segment):
            yield _make_line(cells, page)
            cells = []
        close = cells and segment.left - cells[-1].right < 0.6 * max(cells[-1].size, segment.size)
        if close or (cells and _is_label(cells, segment)):
            cells[-1] = _join_segments(cells[-1], segment)
        else:
            cells.append(segment)
    if cells:
        yield _make_line(cells, page)


def _is_beside(before: TextSegment, segment: TextSegment) -> bool:
    shared = min(before.top, segment.top) - max(before.bottom, segment.bottom)
    lower = min(before.top - before.bottom, segment.top - segment.bottom)
    return shared > 0.5 * lower and segment.left > before.right - 0.3 * segment.size


def _is_label(cells: Sequence[TextSegment], segment: TextSegment) -> bool:
    """Return whether the line so far has only a number or bullet, and `segment` is the text after it."""
    only = len(cells) == 1 and _LABEL.fullmatch(cells[0].text.strip())
    return bool(only) and any(char.isalpha() for char in segment.text)


def _join_segments(before: TextSegment, segment: TextSegment) -> TextSegment:
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


def _find_furniture(lines: Sequence[TextLine], pages: int) -> set[TextLine]:
    """Find page numbers, and headers and footers: lines at the edge of many pages that differ only in numbers."""
    edges: list[TextLine] = []
    for _, run in groupby(lines, key=lambda line: line.page):
        page = sorted(run, key=lambda line: -line.bottom)
        edges += dict.fromkeys([*page[:_EDGE], *page[-_EDGE:]])
    often = max(_LEAST_PAGES, pages // 2)
    seen = Counter(_pattern(line) for line in edges)
    outer = {line for line in edges if _PAGE_NUMBER.fullmatch(line.text) or seen[_pattern(line)] >= often}
    return outer | {line for line in lines if _PAGE_OF.fullmatch(line.text)}


def _pattern(line: TextLine) -> str:
    return re.sub(r"\d+", "0", line.text)


_ENDS = (".", "!", "?", ":", ";", "。", "！", "？", '."', ".”", ".)")
_BULLET = lazy_compile(r"[•▪◦●○‣]\s*")
_LABELLED = lazy_compile(r"(?:\(?\d{1,3}[.)]|\.\d+|[•▪◦●○‣–-]|\(?[a-z]\))\s")
_WORD = lazy_compile(r"[^\W\d_]+")
_LONGEST_HEADING = 15  # words
_LARGER = 1.12
_TITLE_LINES = 2
_CELLS_OF_A_ROW = 3  # a line of more cells is a table row even if it is alone
_BYLINE_ROWS = 8  # rows in which addresses mark a table on the first page as its authors, one per column
_FLOWS = 2  # columns of running text
_LEAST_FLOW = 2  # rows, and words of most lines, that running text exceeds
_SAME_SIZE = 0.6  # points
_PARAGRAPH_GAP = 1.25
"""Largest distance between lines of a paragraph, in usual distances."""
_WIDEST_LEADING = 2.2
_LEAST_HALF = 4
"""Letters; a shorter part before a hyphen at the end of a line is a syllable, not a word."""


@dataclass(frozen=True, slots=True)
class _Typography:
    """The usual sizes of text in a document, and its words."""

    body: float
    levels: Mapping[tuple[float, bool], int]
    leading: Mapping[float, float]
    width: float
    vocabulary: Counter[str]


def read_layout(pages: Sequence[Sequence[TextSegment]]) -> list[ContentItem]:
    """Read a document's pages, each given as its text segments in the order of the file."""
    lines = find_lines(pages)
    if not lines:
        return []
    typography = _measure_typography(lines)
    items: list[ContentItem] = []
    for is_table, run in groupby(_mark_tables(lines), key=lambda marked: marked[0]):
        block = [line for _, line in run]
        items += _read_table(block, typography) if is_table else _read_prose(block, typography)
    return items


def _measure_typography(lines: Sequence[TextLine]) -> _Typography:
    sizes = Counter[float]()
    for line in lines:
        sizes[line.size] += len(line.text)
    body = sizes.most_common(1)[0][0]
    widths = sorted(line.right - line.left for line in lines if len(line.cells) == 1) or [0.0]
    return _Typography(
        body=body,
        levels=_heading_levels(lines, body),
        leading=_leading(lines),
        width=widths[len(widths) * 4 // 5],
        vocabulary=Counter(word.lower() for line in lines for word in _WORD.findall(line.text)),
    )


def _heading_levels(lines: Sequence[TextLine], body: float) -> dict[tuple[float, bool], int]:
    """Rank headings by size and weight. Level 1 is the title: larger than all others, and only on the first page."""
    heads = [line for line in lines if _could_be_heading(line, body)]
    sizes = sorted({line.size for line in heads if line.size >= body * _LARGER}, reverse=True)
    titles = [line for line in heads if sizes and line.size == sizes[0]]
    titled = bool(titles) and all(line.page == 0 for line in titles) and not titles[0].text[0].isdigit()
    first = 1 if titled and len(titles) <= _TITLE_LINES else 2
    levels = {(size, bold): min(first + at, 6) for at, size in enumerate(sizes) for bold in (True, False)}
    return {**levels, (body, True): min(first + len(sizes), 6)}


def _could_be_heading(line: TextLine, body: float) -> bool:
    text = line.text
    return (
        len(line.cells) == 1
        and (line.size >= body * _LARGER or (line.bold and line.size == body))
        and len(text.split()) <= _LONGEST_HEADING
        and any(char.isalpha() for char in text)
        and not text.endswith((".", ",", ";", HYPHEN))
    )


def _leading(lines: Sequence[TextLine]) -> dict[float, float]:
    """Return, for each text size, the usual distance from one line to the next."""
    seen: dict[float, Counter[float]] = {}
    for before, line in pairwise(lines):
        distance = round(before.bottom - line.bottom, 1)
        if before.page == line.page and before.size == line.size and 0 < distance < _WIDEST_LEADING * line.size:
            seen.setdefault(line.size, Counter())[distance] += 1
    return {size: distances.most_common(1)[0][0] for size, distances in seen.items()}


def _mark_tables(lines: Sequence[TextLine]) -> Iterator[tuple[bool, TextLine]]:
    """Yield each line, and whether it is in a table.

    It is if it has many cells, if it and a neighbour have several, or if it is between rows with more cells.
    """
    cells = [0, *(len(line.cells) for line in lines), 0]
    for at, line in enumerate(lines):
        before, own, after = cells[at : at + 3]
        between = (
            min(before, after) > own + 1
            and _have_one_style(lines[at - 1], line)
            and _have_one_style(line, lines[at + 1])
        )
        yield own > _CELLS_OF_A_ROW or (own > 1 and max(before, after) > 1) or between, line


def _have_one_style(line: TextLine, other: TextLine) -> bool:
    return abs(line.size - other.size) <= _SAME_SIZE and line.bold == other.bold


def _read_table(lines: Sequence[TextLine], typography: _Typography) -> list[ContentItem]:
    """Read the rows of a table. Cells that overlap horizontally form a column."""
    columns: list[tuple[float, float]] = []
    for left, right in sorted((cell.left, cell.right) for line in lines if len(line.cells) > 1 for cell in line.cells):
        if columns and left < columns[-1][1]:
            columns[-1] = columns[-1][0], max(columns[-1][1], right)
        else:
            columns.append((left, right))
    borders = [float("-inf"), *(left for left, _ in columns[1:]), float("inf")]
    cells = [
        [[cell for cell in line.cells if left <= cell.left < right] for left, right in pairwise(borders)]
        for line in lines
    ]
    grid = [[" ".join(cell.text for cell in parts) for parts in row] for row in cells]
    if lines[0].page == 0 and any(_is_contact_row(row) for row in grid[:_BYLINE_ROWS]):
        return [Block(", ".join(filter(None, column))) for column in zip(*grid, strict=True)]
    if _is_running_text(grid):
        flows = (
            [_make_line(row[at], line.page) for line, row in zip(lines, cells, strict=True) if row[at]] for at in (0, 1)
        )
        return [item for flow in flows for item in _read_prose(flow, typography)]
    return list(table_rows.make_row_blocks(*table_rows.split_header(grid)))


def _is_contact_row(row: Sequence[str]) -> bool:
    """Return whether a row has only e-mail addresses, like a row below the authors' names in a paper."""
    filled = [cell for cell in row if cell]
    return len(filled) > 1 and all("@" in cell for cell in filled)


def _is_running_text(grid: Sequence[Sequence[str]]) -> bool:
    """Return whether rows are really two columns of text: long lines, most beginning in lower case."""
    cells = [cell for row in grid for cell in row if cell]
    small = sum(1 for row in grid[1:] for cell in row if cell[:1].islower())
    return (
        len(grid) > _LEAST_FLOW
        and len(grid[0]) == _FLOWS
        and sum(1 for cell in cells if len(cell.split()) > _LEAST_FLOW) * 2 > len(cells)
        and small * 2 > _FLOWS * (len(grid) - 1)
    )


def _read_prose(lines: Sequence[TextLine], typography: _Typography) -> Iterator[ContentItem]:
    for group in _groups(lines, typography):
        level = typography.levels.get((group[0].size, group[0].bold))
        if level and len(group) <= _TITLE_LINES and all(_could_be_heading(line, typography.body) for line in group):
            yield Heading(level, _join_flowing_lines(group, typography.vocabulary))
        else:
            for paragraph in _paragraphs(group, typography.width):
                yield Block(_BULLET.sub("- ", _join_flowing_lines(paragraph, typography.vocabulary), count=1))


def _groups(lines: Sequence[TextLine], typography: _Typography) -> list[list[TextLine]]:
    """Group lines that are close and of one size and weight. A group may continue in the next column or page."""
    groups: list[list[TextLine]] = []
    for line in lines:
        over = (
            groups and line.page != groups[-1][-1].page and line.size > typography.body
        )  # headings do not continue on another page
        if groups and not over and _continues(groups[-1][-1], line, typography.leading.get(line.size, line.size)):
            groups[-1].append(line)
        else:
            groups.append([line])
    return groups


def _continues(before: TextLine, line: TextLine, leading: float) -> bool:
    if not _have_one_style(before, line) or _LABELLED.match(line.text):
        return False
    distance = before.bottom - line.bottom
    if line.page != before.page or distance <= 0:
        return not before.text.endswith(_ENDS) and line.text[:1].islower()
    return distance <= _PARAGRAPH_GAP * leading


def _paragraphs(group: Sequence[TextLine], width: float) -> Iterator[list[TextLine]]:
    """Split lines into paragraphs.

    A paragraph ends with a line into which the first word of the next would have fitted.
    """
    left, right = min(line.left for line in group), max(line.right for line in group)
    right = max(right, left + 0.6 * width)
    paragraph = [group[0]]
    for before, line in pairwise(group):
        letters = len(line.text.split(maxsplit=1)[0]) + 1
        room = letters * (line.right - line.left) / max(len(line.text), 1)
        if before.page == line.page and before.bottom > line.bottom and before.right + 1.3 * room < right:
            yield paragraph
            paragraph = []
        paragraph.append(line)
    yield paragraph


def _join_flowing_lines(lines: Sequence[TextLine], vocabulary: Counter[str]) -> str:
    text = lines[0].text
    for line in lines[1:]:
        if text.endswith(HYPHEN):
            half = text.removesuffix(HYPHEN)
            text = half + _choose_hyphen(half, line.text, vocabulary) + line.text
        else:
            text += " " + line.text
    return text.replace(HYPHEN, "-")


def _choose_hyphen(half: str, following: str, vocabulary: Counter[str]) -> str:
    """Return "-" if a word that is divided at the end of a line keeps its hyphen, else "".

    It does if the document does not have the whole word without hyphen, but has the first part as a word of its own,
    or if the second part begins with a capital.
    """
    first = words[-1].lower() if (words := _WORD.findall(half)) else ""
    second = match[0].lower() if (match := _WORD.match(following)) else ""
    if vocabulary[first + second] or len(first) < _LEAST_HALF:
        return ""
    # The vocabulary counts the first part once already, for this line.
    return "-" if vocabulary[first] > 1 or following[:1].isupper() else ""
