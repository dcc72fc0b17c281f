"""Markdown (CommonMark, GitHub's tables and strikethrough, front matter) -> a reading, by way of HTML.

What site generators add to Markdown (shortcodes, attributes of headings, footnotes, marks of call-outs) is taken off,
but never inside code.
"""

import functools
import re
from collections.abc import Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.rules_block import StateBlock
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from ingest.formats import dates, elements, frontmatter, pipes, tree
from ingest.formats.reading import Reading

_JUNK = re.compile(
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
_FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]:[ \t]*")
_MDX_STATEMENT = re.compile(r"^(?:import\s.+?\sfrom\s+['\"].+|import\s+['\"].+|export\s.+)$", re.MULTILINE)
_STRAY = re.compile(r"(?<![/\d])\*\*(?![/\d])|`")
_BROKEN_LINK = re.compile(r"\[([^\[\]]+)\]\((?:#|\.{0,2}/|https?://|[\w./-]+\.mdx?\b)[^()]*\)")
_TAG = re.compile(r"<(/?)([A-Za-z][\w.-]*)\s*(/?)>")


def read(text: str) -> Reading:
    """Read a Markdown file's text."""
    fields, body = frontmatter.split(text)
    markup = _parser().render(body)
    revision = frontmatter.first(fields, frontmatter.REVISIONS)
    stated = frontmatter.stated(fields, frontmatter.DATES)
    return Reading(
        items=tuple(pipes.mended(tree.items(markup))) if markup.strip() else (),
        title=" ".join(str(fields.get("title") or "").split()),
        date=next(filter(None, map(dates.parsed, stated)), None),
        dated=bool(stated),
        revision="" if revision is None else str(revision),
        language=_language(fields),
    )


def read_mdx(text: str) -> Reading:
    """Read Markdown with components: the statements of its script are left out."""
    return read(_MDX_STATEMENT.sub("", text))


def _language(fields: Any) -> str:
    said = str(frontmatter.first(fields, ("language", "lang", "locale")) or "")
    return said[:2].lower() if re.fullmatch(r"[A-Za-z]{2}([-_].*)?", said) else ""


@functools.cache
def _parser() -> MarkdownIt:
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
        if tag[1] or tag[3] or tag[2].lower() in elements.NAMES or f"</{tag[2]}>" in content:
            return tag[0]
        return f"&lt;{tag[2]}&gt;"

    return _TAG.sub(shown, content)
