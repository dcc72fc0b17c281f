"""Jupyter notebooks (.ipynb) -> a reading: their prose as Markdown, their code as code; outputs are left out."""

import json
from collections.abc import Iterator
from typing import Any

from ingest.formats import markdown
from ingest.formats.reading import Item, Reading
from ingest.types import Block
from storage.types import Kind


def read(text: str) -> Reading:
    """Read a notebook's JSON, of any version of its format."""
    notebook = json.loads(text)
    sheets = notebook.get("worksheets") or [notebook]
    cells = [cell for sheet in sheets for cell in sheet.get("cells", [])]
    title = notebook.get("metadata", {}).get("title")
    return Reading(
        items=tuple(item for cell in cells for item in _cell(cell)),
        title=title if isinstance(title, str) else "",
    )


def _cell(cell: dict[str, Any]) -> Iterator[Item]:
    source = cell.get("source", cell.get("input", ""))
    said = source if isinstance(source, str) else "".join(source)
    if cell.get("cell_type") == "code":
        if said.strip():
            yield Block(said.strip("\n").rstrip(), Kind.CODE)
    elif cell.get("cell_type") == "heading":
        yield from markdown.read(f"{'#' * int(cell.get('level', 1))} {said}").items
    else:
        yield from markdown.read(said).items
