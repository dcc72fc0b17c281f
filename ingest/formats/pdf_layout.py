"""The lines of a PDF's pages -> headings, paragraphs and tables. Pure.

PDF knows no paragraphs, only places: headings are told by size and weight, paragraphs by the distance of their lines,
tables by the gaps between their cells. `pdf_lines` has made lines of the stretches of text by then.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from ingest.formats import pdf_lines, rows
from ingest.formats.pdf_lines import HYPHEN, Line, Segment
from ingest.formats.reading import Heading, Item
from ingest.types import Block

_ENDS = (".", "!", "?", ":", ";", "。", "！", "？", '."', ".”", ".)")
_BULLET = re.compile(r"[•▪◦●○‣]\s*")
_LABELLED = re.compile(r"(?:\(?\d{1,3}[.)]|\.\d+|[•▪◦●○‣–-]|\(?[a-z]\))\s")
_WORD = re.compile(r"[^\W\d_]+")
_LONGEST_HEADING = 15
"""Words."""
_LARGER = 1.12
_TITLE_LINES = 2
_CELLS_OF_A_ROW = 3
"""A line of more cells is a row of a table even where it stands alone."""
_SAME_SIZE = 0.6
"""Points."""
_PARAGRAPH_GAP = 1.25
"""Of the usual distance between lines; what stands farther apart is another paragraph."""
_WIDEST_LEADING = 2.2
_LEAST_HALF = 4
"""Letters. What is shorter before a hyphen at a line's end is a syllable, not a word."""


@dataclass(frozen=True, slots=True)
class _Looks:
    """What is usual in a document."""

    body: float
    levels: Mapping[tuple[float, bool], int]
    leading: Mapping[float, float]
    width: float
    vocabulary: Counter[str]


def items(pages: Sequence[Sequence[Segment]]) -> list[Item]:
    """Read the pages of a document, each given as its stretches of text in the order of the file."""
    lines = pdf_lines.lines(pages)
    if not lines:
        return []
    looks = _looks(lines)
    made: list[Item] = []
    for is_table, run in groupby(_marked(lines), key=lambda marked: marked[0]):
        found = [line for _, line in run]
        made += _table(found) if is_table else _prose(found, looks)
    return made


def _looks(lines: Sequence[Line]) -> _Looks:
    sizes = Counter[float]()
    for line in lines:
        sizes[line.size] += len(line.text)
    body = sizes.most_common(1)[0][0]
    widths = sorted(line.right - line.left for line in lines if len(line.cells) == 1) or [0.0]
    return _Looks(
        body=body,
        levels=_levels(lines, body),
        leading=_leading(lines),
        width=widths[len(widths) * 4 // 5],
        vocabulary=Counter(word.lower() for line in lines for word in _WORD.findall(line.text)),
    )


def _levels(lines: Sequence[Line], body: float) -> dict[tuple[float, bool], int]:
    """The level of headings by size and weight; level 1 is a title, set on the first page only and larger than all."""
    heads = [line for line in lines if _could_head(line, body)]
    sizes = sorted({line.size for line in heads if line.size >= body * _LARGER}, reverse=True)
    titles = [line for line in heads if sizes and line.size == sizes[0]]
    titled = bool(titles) and all(line.page == 0 for line in titles) and not titles[0].text[0].isdigit()
    first = 1 if titled and len(titles) <= _TITLE_LINES else 2
    levels = {(size, bold): min(first + at, 6) for at, size in enumerate(sizes) for bold in (True, False)}
    return {**levels, (body, True): min(first + len(sizes), 6)}


def _could_head(line: Line, body: float) -> bool:
    text = line.text
    return (
        len(line.cells) == 1
        and (line.size >= body * _LARGER or (line.bold and line.size == body))
        and len(text.split()) <= _LONGEST_HEADING
        and any(char.isalpha() for char in text)
        and not text.endswith((".", ",", ";", HYPHEN))
    )


def _leading(lines: Sequence[Line]) -> dict[float, float]:
    """The usual distance from one line to the next, by size."""
    seen: dict[float, Counter[float]] = {}
    for before, line in pairwise(lines):
        distance = round(before.bottom - line.bottom, 1)
        if before.page == line.page and before.size == line.size and 0 < distance < _WIDEST_LEADING * line.size:
            seen.setdefault(line.size, Counter())[distance] += 1
    return {size: distances.most_common(1)[0][0] for size, distances in seen.items()}


def _marked(lines: Sequence[Line]) -> Iterator[tuple[bool, Line]]:
    """Each line, and whether it belongs to a table: it has cells and so has a neighbour, or it stands between rows."""
    cells = [0, *(len(line.cells) for line in lines), 0]
    for at, line in enumerate(lines):
        before, own, after = cells[at : at + 3]
        between = min(before, after) > own + 1 and _alike(lines[at - 1], line) and _alike(line, lines[at + 1])
        yield own > _CELLS_OF_A_ROW or (own > 1 and max(before, after) > 1) or between, line


def _alike(one: Line, other: Line) -> bool:
    return abs(one.size - other.size) <= _SAME_SIZE and one.bold == other.bold


def _table(lines: Sequence[Line]) -> list[Item]:
    """The cells of the rows that overlap from left to right are one column."""
    columns: list[tuple[float, float]] = []
    for left, right in sorted((cell.left, cell.right) for line in lines if len(line.cells) > 1 for cell in line.cells):
        if columns and left < columns[-1][1]:
            columns[-1] = columns[-1][0], max(columns[-1][1], right)
        else:
            columns.append((left, right))
    borders = [float("-inf"), *(left for left, _ in columns[1:]), float("inf")]
    grid = [
        [" ".join(cell.text for cell in line.cells if left <= cell.left < right) for left, right in pairwise(borders)]
        for line in lines
    ]
    return list(rows.blocks(*rows.headed(grid)))


def _prose(lines: Sequence[Line], looks: _Looks) -> Iterator[Item]:
    for group in _groups(lines, looks):
        level = looks.levels.get((group[0].size, group[0].bold))
        if level and len(group) <= _TITLE_LINES and all(_could_head(line, looks.body) for line in group):
            yield Heading(level, _flowing(group, looks.vocabulary))
        else:
            for paragraph in _paragraphs(group, looks.width):
                yield Block(_BULLET.sub("- ", _flowing(paragraph, looks.vocabulary), count=1))


def _groups(lines: Sequence[Line], looks: _Looks) -> list[list[Line]]:
    """Lines of one size and weight that follow each other closely, or over the end of a column or page."""
    made: list[list[Line]] = []
    for line in lines:
        if made and _follows(made[-1][-1], line, looks.leading.get(line.size, line.size)):
            made[-1].append(line)
        else:
            made.append([line])
    return made


def _follows(before: Line, line: Line, leading: float) -> bool:
    if not _alike(before, line) or _LABELLED.match(line.text):
        return False
    distance = before.bottom - line.bottom
    if line.page != before.page or distance <= 0:
        return not before.text.endswith(_ENDS) and line.text[:1].islower()
    return distance <= _PARAGRAPH_GAP * leading


def _paragraphs(group: Sequence[Line], width: float) -> Iterator[list[Line]]:
    """A line ends a paragraph if the first word of the next would have fitted on it."""
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


def _flowing(lines: Sequence[Line], vocabulary: Counter[str]) -> str:
    text = lines[0].text
    for line in lines[1:]:
        if text.endswith(HYPHEN):
            half = text.removesuffix(HYPHEN)
            text = half + _between(half, line.text, vocabulary) + line.text
        else:
            text += " " + line.text
    return text.replace(HYPHEN, "-")


def _between(half: str, following: str, vocabulary: Counter[str]) -> str:
    """A hyphen between the halves of a parted word if the first is a word of its own and both together are not."""
    first = words[-1].lower() if (words := _WORD.findall(half)) else ""
    second = match[0].lower() if (match := _WORD.match(following)) else ""
    if vocabulary[first + second] or len(first) < _LEAST_HALF:
        return ""
    # Where the line ends, the half itself was counted once.
    return "-" if vocabulary[first] > 1 or following[:1].isupper() else ""
