"""Presentations (.pptx) -> a section a slide, under the slide's title, its speaker notes last."""

import io
from collections.abc import Iterable, Iterator
from typing import Any

from ingest.formats import package, rows
from ingest.formats.reading import Heading, Item, Reading
from ingest.types import Block

_SLIDE_LEVEL = 2
"""Level 1 is the presentation's own title."""
_FURNITURE = frozenset({"DATE", "FOOTER", "HEADER", "SLIDE_NUMBER", "SLIDE_IMAGE"})


def read(content: bytes) -> Reading:
    """Read a presentation's bytes."""
    from pptx import Presentation

    said = package.properties(package.opened(content))
    slides = [list(_slide(slide, number)) for number, slide in enumerate(Presentation(io.BytesIO(content)).slides, 1)]
    titles = [item.text for items in slides for item in items if isinstance(item, Heading)]
    return Reading(
        items=tuple(item for items in slides for item in items),
        title=titles[0] if titles else "",
        fallback_title=said.title,
        date=said.modified,
    )


def _slide(slide: Any, number: int) -> Iterator[Item]:
    title = slide.shapes.title
    heading = _one_line(title.text_frame.text) if title is not None and title.has_text_frame else ""
    said = [item for shape in _in_order(slide.shapes) if not _same(shape, title) for item in _shape(shape)]
    notes = _notes(slide)
    if heading or said or notes:
        yield Heading(_SLIDE_LEVEL, heading or f"Slide {number}")
        yield from said
        yield from notes


def _same(shape: Any, other: Any) -> bool:
    return other is not None and shape.shape_id == other.shape_id


def _in_order(shapes: Iterable[Any]) -> list[Any]:
    """From top to bottom, then from left to right; what has no place of its own comes first."""
    return sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0))


def _shape(shape: Any) -> Iterator[Item]:
    if shape.is_placeholder and shape.placeholder_format.type.name in _FURNITURE:
        return
    if hasattr(shape, "shapes"):
        for inner in _in_order(shape.shapes):
            yield from _shape(inner)
    elif getattr(shape, "has_table", False):
        grid = [[_one_line(cell.text) for cell in row.cells] for row in shape.table.rows]
        yield from rows.blocks(grid[0], grid[1:]) if len(grid) > 1 else rows.blocks((), grid)
    elif getattr(shape, "has_chart", False):
        yield from _chart(shape.chart)
    elif shape.has_text_frame:
        yield from _text(shape.text_frame)


def _text(frame: Any) -> Iterator[Item]:
    """Several short paragraphs of one frame are the points of a list."""
    said = [(paragraph.level, _one_line(paragraph.text)) for paragraph in frame.paragraphs]
    said = [(level, text) for level, text in said if text]
    if len(said) > 1:
        yield Block("\n".join(f"{'  ' * level}- {text}" for level, text in said))
    elif said:
        yield Block(said[0][1])


def _chart(chart: Any) -> Iterator[Item]:
    if chart.has_title and chart.chart_title.has_text_frame:
        yield Block(_one_line(chart.chart_title.text_frame.text) + ":")
    for plot in chart.plots:
        series = list(plot.series)
        values = [list(one.values) for one in series]
        labels = [str(category) for category in plot.categories]
        grid = [
            [label, *("" if at >= len(line) or line[at] is None else f"{line[at]:g}" for line in values)]
            for at, label in enumerate(labels)
        ]
        yield from rows.blocks(["", *(str(one.name) for one in series)], grid)


def _notes(slide: Any) -> list[Item]:
    frame = slide.notes_slide.notes_text_frame if slide.has_notes_slide else None
    said = [_one_line(line) for line in frame.text.split("\n")] if frame is not None else []
    return [Block(f"Notes: {line}" if at == 0 else line) for at, line in enumerate(filter(None, said))]


def _one_line(text: str) -> str:
    return " ".join(text.replace("\v", " ").split())
