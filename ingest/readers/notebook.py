"""Read Jupyter notebooks: their cells with Markdown and code, but not the outputs."""

import json
from collections.abc import Iterator
from typing import Any

from ingest.readers import front_matter, markdown_reader
from ingest.readers.parsed_document import ContentItem, ParsedDocument
from ingest.types import Block
from storage.types import PassageKind


def read_notebook(text: str) -> ParsedDocument:
    notebook = json.loads(text)
    sheets = notebook.get("worksheets") or [notebook]
    title = notebook.get("metadata", {}).get("title")
    return ParsedDocument(
        items=tuple(item for sheet in sheets for cell in sheet.get("cells", []) for item in _read_cell(cell)),
        title=title if isinstance(title, str) else "",
    )


def _read_cell(cell: dict[str, Any]) -> Iterator[ContentItem]:
    source = cell.get("source", cell.get("input", ""))
    text = source if isinstance(source, str) else "".join(source)
    if cell.get("cell_type") == "code":
        if text.strip():
            yield Block(text.strip("\n").rstrip(), PassageKind.CODE)
    elif cell.get("cell_type") == "heading":
        yield from markdown_reader.read_body(f"{'#' * int(cell.get('level', 1))} {text}").items
    else:
        yield from markdown_reader.read_body(front_matter.split_front_matter(text)[1]).items
