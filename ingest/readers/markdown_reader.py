"""Read Markdown (CommonMark, GitHub's tables and strikethrough, front matter), MDX and Jupyter notebooks."""

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

from ingest.readers import front_matter, html_tree, markdown_rules, table_rows
from ingest.readers.parsed_document import ContentItem, ParsedDocument
from ingest.types import Block
from storage.types import PassageKind


def read_markdown(text: str, *, mdx: bool = False) -> ParsedDocument:
    return front_matter.read_with_fields(text, partial(_read_body, mdx=mdx), date_line=True)


def _read_body(body: str, *, mdx: bool = False) -> ParsedDocument:
    markup = markdown_rules.render_markdown(body, mdx=mdx)
    return ParsedDocument(tuple(table_rows.restore_pipe_tables(html_tree.read_html(markup))) if markup.strip() else ())


def read_mdx(text: str) -> ParsedDocument:
    """Read Markdown with components and expressions; the statements of its script are left out."""
    return read_markdown(text, mdx=True)


def read_notebook(text: str) -> ParsedDocument:
    notebook = json.loads(text)
    sheets = notebook.get("worksheets") or [notebook]
    cells = [cell for sheet in sheets for cell in sheet.get("cells", [])]
    title = notebook.get("metadata", {}).get("title")
    return ParsedDocument(
        items=tuple(item for cell in cells for item in _read_cell(cell)),
        title=title if isinstance(title, str) else "",
    )


def _read_cell(cell: dict[str, Any]) -> Iterator[ContentItem]:
    source = cell.get("source", cell.get("input", ""))
    text = source if isinstance(source, str) else "".join(source)
    if cell.get("cell_type") == "code":
        if text.strip():
            yield Block(text.strip("\n").rstrip(), PassageKind.CODE)
    elif cell.get("cell_type") == "heading":
        yield from _read_body(f"{'#' * int(cell.get('level', 1))} {text}").items
    else:
        yield from _read_body(front_matter.split_front_matter(text)[1]).items
