"""Read Markdown (CommonMark, GitHub's tables and strikethrough, front matter), MDX and Jupyter notebooks."""

import json
from collections.abc import Iterator
from typing import Any

from ingest.readers import front_matter, html_tree, markdown_rules, table_rows, value_parsers
from ingest.readers.parsed_document import ContentItem, ParsedDocument
from ingest.types import Block
from storage.types import PassageKind


def read_markdown(text: str, *, mdx: bool = False) -> ParsedDocument:
    fields, body = front_matter.split_front_matter(text)
    markup = markdown_rules.render_markdown(body, mdx=mdx)
    revision = front_matter.first_field(fields, front_matter.REVISION_FIELDS)
    stated = front_matter.stated_fields(fields, front_matter.DATE_FIELDS)
    return ParsedDocument(
        items=tuple(table_rows.restore_pipe_tables(html_tree.read_html(markup))) if markup.strip() else (),
        title=front_matter.title_field(fields),
        date=next(filter(None, map(value_parsers.parse_date, stated)), None),
        dated=bool(stated),
        revision="" if revision is None else str(revision),
        language=front_matter.language_field(fields),
    )


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
        yield from read_markdown(f"{'#' * int(cell.get('level', 1))} {text}").items
    else:
        yield from read_markdown(text).items
