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
from markdown_it.common.utils import escapeHtml, normalizeReference
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


_TEMPLATE_TAG = r"""\{\{[<%].{0,500}?[%>]\}\}    # Hugo: {{< figure >}}
    | \{%.{0,500}?%\}                # Liquid, Jinja: {% include %}
    | \{\{(?![\s{}]{0,200}\}).{1,200}?\}\}  # {{ site.name }}, {{generator:team_members}}
"""
_TAG_OF_TEMPLATE = lazy_compile(_TEMPLATE_TAG, re.VERBOSE | re.DOTALL)
_JUNK = lazy_compile(
    rf"""(?P<template>{_TEMPLATE_TAG})
    | \{{/\*.{{0,500}}?\*/\}} | \{{\#.{{0,500}}?\#\}}    # MDX, Jinja: a comment
    | \s*\{{:?\s*[#.]\w[^{{}}\n]*\}}     # {{#anchor}} {{: .class}}
    | \[\^[^\]\s]{{1,200}}\](?!\()      # a reference to a footnote
    | (?:^|(?<=\n))(?:
        :::+[ \t]*[\w-]*             # :::note
      | \[!\w+\][-+]?[ \t]*          # [!NOTE]
      | \[\[?_?TOC_?\]?\][ \t]*$     # [TOC]
    )""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_JUNK_BEGINS = frozenset("{[: \n\t")
_LONGEST_PAIR = 2000  # characters between a tag and the one that closes it
_EXPRESSION = lazy_compile(r"\{[^{}\n]{1,200}\}")
_SAYS_NOTHING = lazy_compile(
    r"[-~\s]*(?:[/#]|(?:end\w*|if|unless|else|elsif|elif|case|when|for|raw|comment|assign|set|capture|import|from|extends|"
    r"block|macro|with|call|filter|autoescape|break|continue|increment|decrement|layout|toc)\b)"
)
_QUOTED = lazy_compile(r"[-~\s]*([\"'`])([^\"'`<>{}/]*)\1\s*(?:\|.*|[-~])?\s*", re.DOTALL)
_FOOTNOTE = lazy_compile(r"\[\^[^\]\s]+\]:[ \t]*")
_MDX_STATEMENT = lazy_compile(r"^(?:import\s.+?\sfrom\s+['\"].+|import\s+['\"].+|export\s.+)$", re.MULTILINE)
_STRAY = lazy_compile(r"(?<![/\d])\*\*(?![/\d])|`")
_TAGGED_LINK = lazy_compile(
    r"(!?)\[([^\[\]\n]{0,300})\]\((?=[^()\n]{0,300}\{[{%])(?:\{[{%](?:(?![%}]\}).){0,300}[%}]\}|[^(){}\n])*+\)"
)
_TAGGED_REFERENCE = lazy_compile(r"\[([^\[\]\n]+)\]:[ \t]*\S*\{[{%].*")
_UNDEFINED_LINK = lazy_compile(r"(?<!\w)\[([^\[\]]{0,200}[^\W\d_]{2}[^\[\]]{0,200})\]\[[^\[\]\s]*\](?![\w\[(])")
_COMPONENT = lazy_compile(r"<([A-Za-z][\w.:-]*)((?:\s[^<>]*)?)/>")
_CAPTION = lazy_compile(r"\b(?:label|text|title|alt|name)=[\"']([^\"'<>]*)[\"']")
_LITERAL = lazy_compile(r"<(?:pre|code|script|style|textarea)\b", re.IGNORECASE)
_BROKEN_LINK = lazy_compile(r"\[([^\[\]]+)\]\((?:#|\.{0,2}/|https?://|[\w./-]+\.mdx?\b)[^()]*\)")
_TAG = lazy_compile(r"<(/?)([A-Za-z][\w.-]*)((?: [A-Za-z][\w'-]*){0,9})\s*(/?)>")


def read_markdown(text: str, *, mdx: bool = False) -> ParsedDocument:
    fields, body = split_front_matter(text)
    markup = _markdown_parser().render(body, {"mdx": mdx})
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
    return read_markdown(_MDX_STATEMENT.sub("", text), mdx=True)


def _language_field(fields: Any) -> str:
    language = str(first_field(fields, ("language", "lang", "locale")) or "")
    return language[:2].lower() if re.fullmatch(r"[A-Za-z]{2}([-_].*)?", language) else ""


@functools.cache
def _markdown_parser() -> MarkdownIt:
    # The presets stop at 20 levels and drop what lies deeper.
    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": 100}).enable(["table", "strikethrough"])
    parser.inline.ruler.before("link", "junk", _skip_junk)
    parser.inline.ruler.before("link", "tagged_link", _open_tagged_link)
    parser.block.ruler.before("reference", "tagged_reference", _define_tagged, {"alt": ["paragraph", "reference"]})
    parser.block.ruler.before("reference", "footnote", _open_footnote, {"alt": ["paragraph", "reference"]})
    parser.add_render_rule("text", _render_text)
    parser.add_render_rule("image", _render_image)
    parser.add_render_rule("softbreak", _render_break)
    parser.add_render_rule("html_inline", _render_html)
    parser.add_render_rule("html_block", _render_html)
    return parser


def _skip_junk(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's own signature
    """Pass over what is no text, and leave a gap where a template or a script would have said something."""
    if state.src[state.pos] not in _JUNK_BEGINS:
        return False
    match = _JUNK.match(state.src, state.pos, state.posMax)
    said = match["template"] if match else None
    if not match and state.env.get("mdx"):
        match = _EXPRESSION.match(state.src, state.pos, state.posMax)
        said = match and f"{{{match[0]}}}"
    if not match or match.end() == state.pos:
        return False
    if said and not silent:
        state.push("html_inline", "", 0).content = _make_gap(said, state.src[match.end() : match.end() + _LONGEST_PAIR])
    state.pos = match.end()
    return True


def _make_gap(tag: str, after: str) -> str:
    """Return the element for a template's tag: empty if it prints what is not known, none if it prints nothing."""
    inside = tag[2:-2].strip("<>% \n")
    name = inside.split(None, 1)[0] if inside else ""
    if _SAYS_NOTHING.match(inside) or any(f"{end}{name}" in after for end in ("/", "/ ", "end", "end_")):
        return ""
    quoted = _QUOTED.fullmatch(inside)
    return html_tree.make_gap(quoted[2] if quoted and not tag.startswith("{%") else "")


def _open_tagged_link(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - see above
    """Read the label of a link or picture whose address a template makes."""
    match = _TAGGED_LINK.match(state.src, state.pos, state.posMax) if state.src[state.pos] in "![" else None
    if not match:
        return False
    picture, label = match.groups()
    if not silent and (picture or not label.strip()):
        state.push("html_inline", "", 0).content = (
            f'<img alt="{escapeHtml(label)}">' if picture else html_tree.make_gap()
        )
    elif not silent:
        end, (state.pos, state.posMax) = state.posMax, match.span(2)
        state.md.inline.tokenize(state)
        state.posMax = end
    state.pos = match.end()
    return True


def _define_tagged(state: StateBlock, line: int, _end: int, silent: bool) -> bool:  # noqa: FBT001 - see above
    """Take the definition of a reference whose address a template makes as one without an address."""
    match = _TAGGED_REFERENCE.match(state.src, state.bMarks[line] + state.tShift[line], state.eMarks[line])
    if match and not silent:
        state.env.setdefault("references", {})[normalizeReference(match[1])] = {"title": "", "href": "#"}
        state.line = line + 1
    return bool(match)


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
    if any(mark in content for mark in ("**", "](", "][", "`")):
        content = _STRAY.sub("", _UNDEFINED_LINK.sub(r"\1", _BROKEN_LINK.sub(r"\1", content)))
    return escapeHtml(content)


def _render_break(_renderer: Any, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    return "<br>" if tokens[at + 1 : at + 2] and tokens[at + 1].content.startswith("|") else "\n"


def _render_image(_renderer: Any, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    """Render what stands in a line of text; a picture that begins a line is none of its words."""
    before = next((token for token in reversed(tokens[:at]) if token.type not in {"link_open", "html_inline"}), None)
    alone = not before or before.type in {"softbreak", "hardbreak"}
    return f'<img alt="{"" if alone else escapeHtml(tokens[at].content or html_tree.MARK)}">'


def _render_html(_renderer: Any, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    """Pass HTML on, but show a placeholder such as <your-name> as the text that its writer meant."""
    content = tokens[at].content
    if tokens[at].type == "html_block" and not _LITERAL.search(content):
        content = _TAG_OF_TEMPLATE.sub(lambda tag: _make_gap(tag[0], ""), content)

    def shown(tag: re.Match[str]) -> str:
        if tag[1] or tag[4] or tag[2].lower() in value_parsers.HTML_NAMES or f"</{tag[2]}>" in content:
            return tag[0]
        return f"&lt;{tag[2]}{tag[3]}&gt;"

    def replaced(tag: re.Match[str]) -> str:
        if tag[1].lower() in value_parsers.HTML_NAMES and (tag[1].islower() or tag[1].isupper()):
            return tag[0]
        caption = _CAPTION.search(tag[2])
        return html_tree.make_gap(caption[1] if caption else "")

    return _COMPONENT.sub(replaced, _TAG.sub(shown, content))


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
