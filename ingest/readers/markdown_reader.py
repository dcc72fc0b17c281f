"""Read Markdown and MDX by converting it to HTML: CommonMark, GitHub's tables and strikethrough, and front matter.

Syntax that site generators add is read as the text that the readers of the site see.
"""

import re
from collections.abc import Sequence
from functools import cache, partial
from html import escape
from itertools import takewhile
from types import SimpleNamespace
from typing import Any

from markdown_it import MarkdownIt, helpers
from markdown_it.rules_block import StateBlock
from markdown_it.rules_core import StateCore
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from ingest.readers import front_matter, html_tree, table_rows, template_tags
from ingest.readers.parsed_document import ParsedDocument
from ingest.readers.template_tags import COMPONENT, HIDDEN_PIPE, TAG, make_gap
from storage.language.lazy_pattern import lazy_compile

_JUNK = lazy_compile(
    rf"""(?P<raw>\{{%-?\s*raw\s*-?%\}}(?P<text>.*?)\{{%-?\s*endraw\s*-?%\}})
    | (?P<comment>\{{%-?\s*comment\b[^{{}}%]*-?%\}}.*?\{{%-?\s*endcomment\s*-?%\}})
    | (?P<tag>{TAG} | \{{/\*.{{0,1000}}?\*/\}})
    | \s*\{{:?\s*[#.]\w[^{{}}\n]*\}}     # {{#anchor}} {{: .class}}
    | \[\^[^\]\s]{{1,200}}\](?!\()      # a reference to a footnote
    | (?:^|(?<=\n))(?:
        :::+[ \t]*[\w-]*(?:\[(?P<box>[^\[\]\n]{{0,200}})\])?  # :::note[Title]
      | \[!\w+\][-+]?[ \t]*          # [!NOTE]
      | \[\[?_?TOC_?\]?\][ \t]*$     # [TOC]
    )""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_JUNK_BEGINS = frozenset("{[: \n\t")
_EXPRESSION = lazy_compile(r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*+\})*+\})*+\}")
_LONGEST_EXPRESSION = 1000
_ADDRESS_TAG = lazy_compile(rf"(?:{TAG})", re.VERBOSE | re.DOTALL)
_ADDRESS_ENDS = frozenset("() \t\n<")
_TAGGED_ADDRESS = "tag:"
_AUTOLINK = lazy_compile(r"<(?P<tag>\{\{[^{}\n]{1,200}\}\})(?P<path>[^\s<>]{0,500})>")
_TAGGED_ELEMENT = lazy_compile(
    rf"""</?[a-z][\w-]*(?=\s[^<>]{{0,500}}?\{{[{{%])(?:[^<>"'{{]|"[^"]*"|'[^']*'|{TAG}|\{{)*+>""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_FOOTNOTE = lazy_compile(r"\[\^[^\]\s]+\]:[ \t]*")
_STATEMENT = lazy_compile(
    r"import\s.+?\sfrom\s+['\"]|import\s+['\"]|export\s+(?:const|let|var|default|function|async|class|\{|\*)"
)
_STATEMENT_ENDS = lazy_compile(r".*[;}\])]\s*|import\s.*['\"]\s*")
_STRAY = lazy_compile(r"(?<![/\d])\*\*(?![/\d])|`")
_UNDEFINED_LINK = lazy_compile(r"(?<!\w)\[([^\[\]]{0,200}[^\W\d_]{2}[^\[\]]{0,200})\]\[[^\[\]\s]*\](?![\w\[(])")
_BROKEN_LINK = lazy_compile(r"\[([^\[\]]+)\]\((?:#|\.{0,2}/|https?://|[\w./-]+\.mdx?\b)[^()]*\)")
_COMPONENT = lazy_compile(COMPONENT, re.VERBOSE)
_LONE_COMPONENT = lazy_compile(rf"{COMPONENT}\s*", re.VERBOSE)
_LOWER_COMPONENT = lazy_compile(r"<([a-z][\w.:-]*)((?:\s[^<>]*)?)/>")
_PLACEHOLDER = lazy_compile(r"<([A-Za-z][\w.-]*)((?: [A-Za-z][\w'-]*){0,9})\s*>")
_ADMONITION = lazy_compile(
    r"(?:(?:!!!|\?\?\?)\+?[ \t]+[\w -]{1,60}?|===[!+]?)(?:[ \t]+\"(?P<title>[^\"\n]{0,200})\")?[ \t]*"
)
_COMMENT = lazy_compile(r"\{%-?\s*comment\b[^{}%]*%\}|(?P<jinja>\{\#-?(?!\S))|(?P<hugo>\{\{-?\s*/\*)|(?P<bars>\{\{!--)")
_COMMENT_ENDS = {
    "liquid": lazy_compile(r"\{%-?\s*end_?comment\s*-?%\}"),
    "jinja": lazy_compile(r"\#\}"),
    "hugo": lazy_compile(r"\*/\s*-?\}\}"),
    "bars": lazy_compile(r"--\}\}"),
}
_FENCE = lazy_compile(r"^\s{0,3}(?:```|~~~)", re.MULTILINE)
_LONE_TAG = lazy_compile(r"(\{%(?:(?!%\}).)*+%\}|\{\{[<%](?:(?![%>]\}\}).)*+[%>]\}\})\s*")
_LONG_TEXT = 1 << 14
"""Characters of a paragraph above which it is parsed in pieces: an unclosed mark is searched for in the whole text."""
_PIECE = 1 << 8  # characters


def read_markdown(text: str, *, mdx: bool = False) -> ParsedDocument:
    return front_matter.read_with_fields(text, partial(read_body, mdx=mdx), date_line=True)


def read_mdx(text: str) -> ParsedDocument:
    """Read MDX: Markdown with components and expressions. The statements of its scripts are skipped."""
    return read_markdown(text, mdx=True)


def read_body(text: str, *, mdx: bool = False) -> ParsedDocument:
    """Read Markdown below its front matter."""
    tagged = "{" in text or "<" in text
    paired = template_tags.find_pairs(text) if tagged else frozenset[str]()
    source = template_tags.hide_pipes(text) if tagged else text
    markup: str = _make_parser(mdx).render(source, {"mdx": mdx, "paired": paired, "raw": []})
    items = html_tree.read_html(markup.replace(HIDDEN_PIPE, "|")) if markup.strip() else ()
    if any(item.text.startswith("|") for item in items):
        items = tuple(table_rows.restore_pipe_tables(items))
    return ParsedDocument(items)


@cache
def _make_parser(mdx: bool) -> MarkdownIt:  # noqa: FBT001 - a key of the cache
    # The presets drop text nested deeper than 20 levels.
    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": 100}).enable(["table", "strikethrough"])
    parser.helpers = SimpleNamespace(**{**vars(helpers), "parseLinkDestination": _parse_destination})  # type: ignore[assignment]
    parser.core.ruler.at("inline", _parse_inline)
    parser.inline.ruler.before("link", "junk", _skip_junk)
    parser.inline.ruler.before("autolink", "tagged_element", _read_element)
    within: Any = {"alt": ["paragraph", "reference"]}
    parser.block.ruler.before("reference", "footnote", _open_footnote, within)
    parser.block.ruler.before("code", "admonition", _read_admonition, within)
    parser.block.ruler.before("html_block", "comment", _skip_comment, within)
    parser.block.ruler.before("html_block", "lone_tag", _read_lone_tag, within)
    parser.block.ruler.before("html_block", "lone_component", _read_lone_component, within)
    if mdx:
        parser.disable("code")
        parser.block.ruler.before("html_block", "statement", _skip_statement)
    parser.add_render_rule("text", _render_text)
    parser.add_render_rule("image", _render_image)
    parser.add_render_rule("softbreak", _render_break)
    parser.add_render_rule("html_inline", _render_html)
    parser.add_render_rule("html_block", _render_html)
    return parser


def _parse_inline(state: StateCore) -> None:
    """Parse the inline text of each block. Template tags between `raw` tags remain text."""
    for token in state.tokens:
        if token.type != "inline":
            continue
        line = token.map[0] if token.map else -1
        state.env["verbatim"] = any(first < line < last for first, last in state.env["raw"])
        token.children = []
        for piece in _split_text(token.content):
            parsed: list[Token] = []  # a list of its own, as the parser searches all of it at the end
            state.md.inline.parse(piece, state.md, state.env, parsed)
            token.children += parsed


def _split_text(text: str) -> list[str]:
    if len(text) <= _LONG_TEXT:
        return [text]
    pieces, at = list[str](), 0
    while at < len(text):
        end = max(text.rfind(sign, at + 1, at + _PIECE) for sign in ("\n", " ")) + 1 if len(text) - at > _PIECE else 0
        pieces.append(text[at : end or at + _PIECE])
        at += len(pieces[-1])
    return pieces


def _parse_destination(text: str, at: int, end: int) -> Any:
    """Parse the address of a link or reference; the address may contain template tags."""
    destination = helpers.parseLinkDestination(text, at, end)
    rest, tagged = at, False
    while rest < end:
        if tag := _ADDRESS_TAG.match(text, rest, end) if text[rest] == "{" else None:
            rest, tagged = tag.end(), True
        elif text[rest] in _ADDRESS_ENDS:
            break
        else:
            rest += 1
    if tagged:
        destination.ok, destination.pos, destination.str = True, rest, _TAGGED_ADDRESS
    return destination


def _skip_junk(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - the parser's own signature
    """Skip markup that is not text. The output of a template or script becomes a gap."""
    if state.src[state.pos] not in _JUNK_BEGINS or (state.env["verbatim"] and state.src[state.pos] == "{"):
        return False
    match = _JUNK.match(state.src, state.pos, state.posMax)
    tag = match["tag"] if match else None
    if not match and state.env["mdx"] and state.src[state.pos] == "{":
        match = _EXPRESSION.match(state.src, state.pos, min(state.pos + _LONGEST_EXPRESSION, state.posMax))
        tag = match and f"{{{match[0]}}}"
    if not match or match.end() == state.pos:
        return False
    if not silent and tag:
        tag = tag.replace(HIDDEN_PIPE, "|")
        reading = template_tags.read_tag(tag, state.env["paired"], state.src[match.end() : match.end() + 2])
        state.push("html_inline", "", 0).content = reading.gap
    elif not silent and (text := (match["text"] if match["raw"] else match["box"]) or "").strip():
        state.push("text", "", 0).content = text
    elif not silent and (match["raw"] or match["comment"]):
        state.push("html_inline", "", 0).content = make_gap(need="optional")
    state.pos = match.end()
    return True


def _read_element(state: StateInline, silent: bool) -> bool:  # noqa: FBT001 - see above
    """Read a component, an address that begins with a template tag, or an HTML element with tags in attributes."""
    if state.src[state.pos] != "<":
        return False
    tag = _COMPONENT.match(state.src, state.pos, state.posMax)
    if tag and _is_component(tag, state.env["paired"]):
        content = "" if tag["close"] or not tag["alone"] else _component_gap(tag)
    elif tag := _AUTOLINK.match(state.src, state.pos, state.posMax):
        content = f"{template_tags.read_tag(tag['tag'], after=tag['path'][:2]).gap}{escape(tag['path'])}"
    elif tag := _TAGGED_ELEMENT.match(state.src, state.pos, state.posMax):
        content = _ADDRESS_TAG.sub(_TAGGED_ADDRESS, tag[0])
    else:
        return False
    if not silent:
        state.push("html_inline", "", 0).content = content
    state.pos = tag.end()
    return True


def _is_component(found: re.Match[str], paired: frozenset[str]) -> bool:
    """Return whether a tag is a component, and not HTML in capitals or a placeholder such as <Your Name>."""
    if found["name"].isupper() and found["name"].lower() in html_tree.HTML_NAMES:
        return False
    return bool(found["close"] or found["alone"] or found["name"] in paired or re.search(r"[={]", found["props"]))


def _component_gap(found: re.Match[str]) -> str:
    return make_gap(template_tags.read_component(found["name"], found["props"]))


def _open_footnote(state: StateBlock, line: int, _end: int, silent: bool) -> bool:  # noqa: FBT001 - see above
    """Remove the footnote mark from the first line of a footnote, so that the footnote becomes a paragraph."""
    match = _FOOTNOTE.match(state.src, state.bMarks[line] + state.tShift[line], state.eMarks[line])
    if not match or silent:
        return bool(match)
    state.bMarks[line], state.tShift[line] = match.end(), 0
    return False


def _skip_comment(state: StateBlock, line: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - see above
    start = state.bMarks[line] + state.tShift[line]
    if state.src[start : start + 1] != "{" or (state.sCount[line] < state.blkIndent and not silent):
        return False
    comment = _COMMENT.match(state.src, start, state.eMarks[line])
    if not comment or any(first < line < last for first, last in state.env["raw"]):
        return False
    kind = comment.lastgroup or "liquid"
    missing = state.env.setdefault("uncommented", set())
    for last in range(line, end) if (kind, end) not in missing else ():
        first = comment.end() if last == line else state.bMarks[last]
        if ends := _COMMENT_ENDS[kind].search(state.src, first, state.eMarks[last]):
            break
    else:
        missing.add((kind, end))
        return False
    if last > line and not silent:
        # Text after the end of the comment is read as a separate line.
        at = ends.end()
        while at < state.eMarks[last] and state.src[at] in " \t":
            at += 1
        state.bMarks[last], state.tShift[last], state.line = at, 0, last
    return last > line


def _read_lone_tag(state: StateBlock, line: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - see above
    """Read a template tag that is alone on its line and so ends a paragraph.

    Only tags that print nothing, or that open or close a block, are read here.
    """
    start = state.bMarks[line] + state.tShift[line]
    if state.src[start : start + 1] != "{" or state.sCount[line] < state.blkIndent:
        return False
    match = _LONE_TAG.fullmatch(state.src, start, state.eMarks[line])
    if not match or any(first < line < last for first, last in state.env["raw"]):
        return False
    tag, paired = match[1].replace(HIDDEN_PIPE, "|"), state.env["paired"]
    name, reading = template_tags.tag_name(tag), template_tags.read_tag(tag, paired)
    if not reading.need and name not in paired:
        return False
    if silent:
        return True
    last = _find_end(state, name, line, end) if name in {"raw", *template_tags.CODE} else 0
    state.line = line + 1
    if name == "raw" and last:
        state.env["raw"].append((line, last))
    elif last and not _FENCE.search(code := state.getLines(line + 1, last, state.blkIndent, keepLastLF=True)):
        state.push("code_block", "code", 0).content = code
        state.line = last + 1
    elif reading.text and reading.need != "optional":
        state.push("html_block", "", 0).content = f"<p>{escape(reading.text)}</p>\n"
    return True


def _read_admonition(state: StateBlock, line: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - see above
    """Read a box or tab of MkDocs: its title becomes a paragraph, and the indented lines below are Markdown."""
    start = state.bMarks[line] + state.tShift[line]
    if state.src[start : start + 1] not in {"!", "?", "="}:
        return False
    box = _ADMONITION.fullmatch(state.src, start, state.eMarks[line])
    if not box:
        return False
    indent = state.sCount[line] + 4
    indented = takewhile(lambda at: state.isEmpty(at) or state.sCount[at] >= indent, range(line + 1, end))
    inside = [at for at in indented if not state.isEmpty(at)]
    if not inside:
        return False
    if silent:
        return True
    if box["title"]:
        state.push("html_block", "", 0).content = f"<p>{escape(box['title'])}</p>\n"
    before = state.blkIndent, state.lineMax
    state.blkIndent, state.lineMax = indent, inside[-1] + 1
    state.level += 1
    state.md.block.tokenize(state, line + 1, state.lineMax)
    state.level -= 1
    state.line = state.lineMax
    state.blkIndent, state.lineMax = before
    return True


def _find_end(state: StateBlock, name: str, line: int, end: int) -> int:
    """Return the line of the closing tag; 0 if there is none."""
    missing = state.env.setdefault("missing", set())
    ends = re.compile(rf"\{{%-?\s*end_?{re.escape(name)}\b|\{{\{{[<%]\s*/\s*{re.escape(name)}\b")
    for at in range(line + 1, end) if name not in missing else ():
        if ends.search(state.src, state.bMarks[at], state.eMarks[at]):
            return at
    missing.add(name)
    return 0


def _read_lone_component(state: StateBlock, line: int, _end: int, silent: bool) -> bool:  # noqa: FBT001 - see above
    """Read a component's tag that is alone on its lines. The content of the component is read as Markdown."""
    start = state.bMarks[line] + state.tShift[line]
    if state.src[start : start + 1] != "<" or state.sCount[line] < state.blkIndent:
        return False
    tag = _LONE_COMPONENT.match(state.src, start, min(start + _LONGEST_EXPRESSION, state.eMarks[state.lineMax - 1]))
    if not tag or not _is_component(tag, state.env["paired"]):
        return False
    last = next((at for at in range(line, state.lineMax) if state.eMarks[at] >= start + len(tag[0].rstrip())), line)
    if state.src[start + len(tag[0].rstrip()) : state.eMarks[last]].strip():
        return False
    if silent:
        return True
    text = template_tags.read_component(tag["name"], tag["props"])
    if content := make_gap(text) if tag["alone"] else "" if tag["close"] else escape(text):
        state.push("html_block", "", 0).content = f"<p>{content}</p>\n"
    state.line = last + 1
    return True


def _skip_statement(state: StateBlock, line: int, end: int, silent: bool) -> bool:  # noqa: FBT001 - see above
    """Skip an import or export of MDX, to the end of its statement or the next blank line."""
    if silent or state.level or not _STATEMENT.match(state.src, state.bMarks[line], state.eMarks[line]):
        return False
    last = line
    while (
        last + 1 < end
        and not state.isEmpty(last + 1)
        and (
            not _STATEMENT_ENDS.fullmatch(state.src, state.bMarks[last], state.eMarks[last])
            or _STATEMENT.match(state.src, state.bMarks[last + 1], state.eMarks[last + 1])
            or state.src[state.bMarks[last + 1]] in "})] \t"
        )
    ):
        last += 1
    state.line = last + 1
    return True


def _render_text(_renderer: Any, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    """Render text. Remove marks of emphasis and links that a misplaced space has kept from being parsed."""
    content = tokens[at].content
    if any(mark in content for mark in ("**", "](", "][", "`")):
        content = _STRAY.sub("", _UNDEFINED_LINK.sub(r"\1", _BROKEN_LINK.sub(r"\1", content)))
    return escape(content)


def _render_break(_renderer: Any, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    return "<br>" if tokens[at + 1 : at + 2] and tokens[at + 1].content.startswith("|") else "\n"


def _render_image(_renderer: Any, tokens: Sequence[Token], at: int, _options: Any, _env: Any) -> str:
    """Render a picture as its caption, except at the start of a line, where it is not part of a sentence."""
    before = next((token for token in reversed(tokens[:at]) if token.type not in {"link_open", "html_inline"}), None)
    alone = not before or before.type in {"softbreak", "hardbreak"}
    return f'<img alt="{"" if alone else escape(tokens[at].content or html_tree.MARK)}">'


def _render_html(_renderer: Any, tokens: Sequence[Token], at: int, _options: Any, env: Any) -> str:
    """Pass HTML on unchanged, but render a placeholder such as <your-name> as text."""
    content = tokens[at].content
    if tokens[at].type == "html_block":
        content = template_tags.replace_tags(content)

    def shown(tag: re.Match[str]) -> str:
        if tag[1].lower() in html_tree.HTML_NAMES or tag[1] in env["paired"] or tag[1] == template_tags.GAP:
            return tag[0]
        return f"&lt;{tag[1]}{tag[2]}&gt;"

    def replaced(tag: re.Match[str]) -> str:
        if tag[1] in html_tree.HTML_NAMES:
            return tag[0]
        return make_gap(template_tags.read_component(tag[1], tag[2]))

    def rendered(tag: re.Match[str]) -> str:
        if not _is_component(tag, env["paired"]):
            return tag[0]
        return _component_gap(tag) if tag["alone"] else ""

    return _LOWER_COMPONENT.sub(replaced, _PLACEHOLDER.sub(shown, _COMPONENT.sub(rendered, content)))
