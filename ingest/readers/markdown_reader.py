"""Read Markdown (CommonMark, GitHub's tables and strikethrough, front matter), MDX and Jupyter notebooks."""

import functools
import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from ingest.readers import html_tree, table_rows, value_parsers
from ingest.readers.parsed_document import ContentItem, ParsedDocument
from ingest.types import Block
from storage.language.lazy_pattern import lazy_compile
from storage.types import PassageKind

_YAML_BLOCK = lazy_compile(r"\A---[ \t]*\n(.*?\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_TOML_BLOCK = lazy_compile(r"\A\+\+\+[ \t]*\n(.*?\n)??\+\+\+[ \t]*(?:\n|\Z)", re.DOTALL)
_FIELD = lazy_compile(r"^[A-Za-z_][\w -]*:", re.MULTILINE)

DATE_FIELDS = ("updated", "last_updated", "lastmod", "last_modified", "modified", "date")
"""The fields that tell when a page was last changed, the most telling first."""
REVISION_FIELDS = ("revision", "version")


def split_front_matter(text: str) -> tuple[Mapping[str, Any], str]:
    """Return the plain fields, named in lower case with `_` for `-`, and the text after them."""
    if match := _YAML_BLOCK.match(text):
        fields = _load_fields(match[1] or "")
    elif match := _TOML_BLOCK.match(text):
        fields = _load_toml(match[1] or "")
    else:
        return {}, text
    if fields is None:
        return {}, text
    plain = {
        str(name).lower().replace("-", "_"): value
        for name, value in fields.items()
        if isinstance(value, str | int | float | date)
    }
    return plain, text[match.end() :]


def first_field(fields: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """Return the first of the named fields that is there and says something, else None."""
    return next(iter(stated_fields(fields, names)), None)


def stated_fields(fields: Mapping[str, Any], names: tuple[str, ...]) -> list[Any]:
    """Return those of the named fields that are there and say something, in the order of the names."""
    return [fields[name] for name in names if fields.get(name) not in (None, "")]


def _load_fields(source: str) -> Mapping[str, Any] | None:
    """Load the fields; None where the block is no front matter: a text between two rules."""
    try:
        fields = value_parsers.load_yaml(source)
    except (yaml.YAMLError, ValueError, RecursionError):
        return {} if _FIELD.match(source) else None
    if fields is None:
        return {}
    return fields if isinstance(fields, dict) else None


def _load_toml(source: str) -> Mapping[str, Any] | None:
    try:
        return tomllib.loads(source)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None


_JUNK = lazy_compile(
    r"""\{\{[<%].{0,500}?[%>]\}\}    # Hugo: {{< figure >}}
    | \{%.{0,500}?%\}                # Liquid: {% include %}
    | \{\{\w+:[\w.-]+\}\}            # {{generator:team_members}}
    | \{/\*.{0,500}?\*/\}            # MDX: a comment
    | \s*\{:?\s*[#.][^{}\n]*\}       # {#anchor} {: .class}
    | \[\^[^\]\s]+\](?!\()           # a reference to a footnote
    | (?:^|(?<=\n))(?:
        :::+[ \t]*[\w-]*             # :::note
      | \[!\w+\][-+]?[ \t]*          # [!NOTE]
      | \[\[?_?TOC_?\]?\][ \t]*$     # [TOC]
    )""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_JUNK_BEGINS = frozenset("{[: \n\t")
_FOOTNOTE = lazy_compile(r"\[\^[^\]\s]+\]:[ \t]*")
_MDX_STATEMENT = lazy_compile(r"^(?:import\s.+?\sfrom\s+['\"].+|import\s+['\"].+|export\s.+)$", re.MULTILINE)
_STRAY = lazy_compile(r"(?<![/\d])\*\*(?![/\d])|`")
_BROKEN_LINK = lazy_compile(r"\[([^\[\]]+)\]\((?:#|\.{0,2}/|https?://|[\w./-]+\.mdx?\b)[^()]*\)")
_TAG = lazy_compile(r"<(/?)([A-Za-z][\w.-]*)\s*(/?)>")


def read_markdown(text: str) -> ParsedDocument:
    fields, body = split_front_matter(text)
    markup = _markdown_parser().render(body)
    revision = first_field(fields, REVISION_FIELDS)
    stated = stated_fields(fields, DATE_FIELDS)
    return ParsedDocument(
        items=tuple(table_rows.restore_pipe_tables(html_tree.read_html(markup))) if markup.strip() else (),
        title=" ".join(str(fields.get("title") or "").split()),
        date=next(filter(None, map(value_parsers.parse_date, stated)), None),
        dated=bool(stated),
        revision="" if revision is None else str(revision),
        language=_language_field(fields),
    )


def read_mdx(text: str) -> ParsedDocument:
    """Read Markdown with components: the statements of its script are left out."""
    return read_markdown(_MDX_STATEMENT.sub("", text))


def _language_field(fields: Any) -> str:
    language = str(first_field(fields, ("language", "lang", "locale")) or "")
    return language[:2].lower() if re.fullmatch(r"[A-Za-z]{2}([-_].*)?", language) else ""


@functools.cache
def _markdown_parser() -> MarkdownIt:
    # The presets stop at 20 levels and drop what lies deeper.
    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": 100}).enable(["table", "strikethrough"])
    parser.inline.ruler.before("link", "junk", _skip_junk)
    parser.block.ruler.before("reference", "footnote", _open_footnote, {"alt": ["paragraph", "reference"]})
    parser.add_render_rule("text", _render_text)
    parser.add_render_rule("softbreak", _render_break)
    parser.add_render_rule("html_inline", _render_html)
    parser.add_render_rule("html_block", _render_html)
    return parser


def _skip_junk(state: StateInline, silent: bool) -> bool:  # noqa: ARG001, FBT001 - the parser's own signature
    if state.src[state.pos] not in _JUNK_BEGINS:
        return False
    match = _JUNK.match(state.src, state.pos, state.posMax)
    if not match or match.end() == state.pos:
        return False
    state.pos = match.end()
    return True


def _open_footnote(state: StateBlock, line: int, _end: int, silent: bool) -> bool:  # noqa: FBT001 - see above
    """Take the mark off a footnote's first line; what follows is read as the paragraph that it is."""
    match = _FOOTNOTE.match(state.src, state.bMarks[line] + state.tShift[line], state.eMarks[line])
    if not match or silent:
        return bool(match)
    state.bMarks[line], state.tShift[line] = match.end(), 0
    return False


def _render_text(_renderer: Any, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    """Take off the marks that their writer meant as markup, though a space too many made them text."""
    content = tokens[at].content
    if any(mark in content for mark in ("**", "](", "`")):
        content = _STRAY.sub("", _BROKEN_LINK.sub(r"\1", content))
    return escapeHtml(content)


def _render_break(_renderer: Any, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    return "<br>" if tokens[at + 1 : at + 2] and tokens[at + 1].content.startswith("|") else "\n"


def _render_html(_renderer: Any, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    """Pass HTML on, but show a placeholder such as <your-name> as the text that its writer meant."""
    content = tokens[at].content

    def shown(tag: re.Match[str]) -> str:
        if tag[1] or tag[3] or tag[2].lower() in value_parsers.HTML_NAMES or f"</{tag[2]}>" in content:
            return tag[0]
        return f"&lt;{tag[2]}&gt;"

    return _TAG.sub(shown, content)


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
