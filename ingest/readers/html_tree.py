"""Parse HTML, and turn its tree into headings and blocks."""

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, islice

import lxml.html  # type: ignore[import-untyped]  # lxml ships no types
from lxml.html import defs

from ingest.readers import parsed_document, table_rows
from ingest.readers.parsed_document import ContentItem, Heading
from ingest.readers.template_tags import GAP, Need
from ingest.readers.value_parsers import Element
from ingest.types import Block
from storage.language.lazy_pattern import lazy_compile
from storage.types import PassageKind

_TASK_BOX = lazy_compile(r"\[([ xX])\]\s+")


def render_list(element: Element, children: Sequence[tuple[Element, list[ContentItem]]]) -> list[ContentItem]:
    """Render a list as lines, split into blocks at code and tables. `children` are its elements with their content."""
    rendered: list[ContentItem] = []
    lines: list[str] = []
    number = int(start) if (start := element.get("start", "1")).isdigit() else 1
    for child, inside in children:
        if any(isinstance(item, Heading) for item in inside):
            # A list of whole articles is not read as a list.
            rendered += [Block("\n".join(lines)), *inside] if lines else inside
            lines = []
            continue
        mark = f"{number}. " if element.tag == "ol" else "- "
        number += child.tag == "li"
        for item in inside:
            if isinstance(item, Block) and item.kind is not PassageKind.PROSE:
                rendered += [Block("\n".join(lines)), item] if lines else [item]
                lines = []
            else:
                lines += _with_mark(item.text, mark if child.tag == "li" else "")
                mark = "  "
    return [*rendered, Block("\n".join(lines))] if lines else rendered


def _with_mark(text: str, mark: str) -> list[str]:
    task = _TASK_BOX.match(text)
    if task:
        text = ("✓ " if task[1] in "xX" else "") + text[task.end() :]
    first, *rest = text.split("\n")
    return [mark + first, *("  " + line for line in rest)]


def render_definition(term: str, inside: Sequence[ContentItem]) -> list[ContentItem]:
    """Join a term with the content of its definition, as "term: definition"."""
    if not term:
        return list(inside)
    if inside and isinstance(inside[0], Block) and inside[0].kind is PassageKind.PROSE:
        return [Block(f"{term}: {inside[0].text}"), *inside[1:]]
    return [Block(term), *inside]


MARK = "[…]"
"""Replaces a part of a sentence that is not text."""

_DROPPED = frozenset({
    "head", "script", "style", "noscript", "template", "map", "source", "track", "select", "textarea", "datalist",
    "nav", "dialog", "rp", "rt",
})  # fmt: skip
_SEEN = frozenset({
    "iframe", "object", "embed", "video", "audio", "canvas", "svg", "math", "img", "picture", "button", "del", "s",
    "strike", GAP,
})  # fmt: skip
"""Pictures, media and controls; a mark replaces them if their sentence would be incomplete."""
_BLOCKS = frozenset({
    "html", "body", "p", "div", "section", "article", "main", "aside", "header", "footer", "address",
    "blockquote", "center", "details", "summary", "fieldset", "form", "legend", "figure", "figcaption", "hr",
    "hgroup", "search", "dl", "dt", "dd", "li", "tr", "td", "th", "tbody", "thead", "tfoot", "caption", "menu",
})  # fmt: skip
_HIDING_STYLE = lazy_compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SUPERSCRIPT = str.maketrans("0123456789+-", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻")
_LINE_ENDS = lazy_compile(r"[:.]?[ \t]*\n[ \t]*\S")
_SPACES = lazy_compile(r"\s+")
_UNSEEN = dict.fromkeys(map(ord, "\u00ad\u200b\u2060\ufeff\ue000\ue001"))
"""Characters without width: soft hyphens, zero-width spaces, word joiners; and our own marks of gaps."""
_GAP_BEGINS, _GAP_ENDS = "\ue000", "\ue001"
"""Enclose the text of a gap. Two `_GAP_BEGINS` mark an optional gap, three a closing one (see `Need`)."""
_LEVELS: dict[Need, int] = {"": 1, "optional": 2, "closing": 3}
_GAPS = lazy_compile("(?<![\ue000\\s])\\s*+(?:\ue000++[^\ue000\ue001]*\ue001\\s*)+")
_SPACED = lazy_compile("(?:\ue000++\ue001)*+\\s")
_GAP = lazy_compile("(?<!\ue000)\ue000++([^\ue000\ue001]*)\ue001")
_ENDED = lazy_compile(r"(?:^|[.!?…;])[\"'”’»)\]]*\s*\Z")
_GOES_ON = lazy_compile(r"\s*[a-zà-ÿ.,;:!?)]")
_OPENERS, _CLOSERS = frozenset("([{“„«"), frozenset(")]}”»")
_STOPS = lazy_compile(r"\s*(?:[.,;:!?)]|'s\b)")
_NO_CAPTION = lazy_compile(
    r"(?:enter )?(?:an? )?(?:image|img|icon|picture|photo|screenshot|logo|badge)\b.*|[^@]*\.\w{3,4}", re.IGNORECASE
)
_PLAIN_WORD = lazy_compile(r"[\"'“‘(]*[^\W\d_][^\W_]*(?:[-'’][^\W_]+)*[\"'”’).,;:!?]*")
_READ_AROUND = 200
"""Characters around a gap that decide whether a sentence continues across it."""
_PLAIN_SHARE = 0.9
_LEAST_PROSE = 8  # words
_DEEPEST = 150
"""Nesting of elements, below which only text is read, so that no page can exhaust the stack."""

_MOST_TABLES = 8
"""Nesting of tables, below which only text is read, as each table is searched for those in it."""


HTML_NAMES: frozenset[str] = defs.tags | {"main", "picture", "slot", "template", "dialog"}
"""Names of HTML elements; other tags are placeholders such as <your-name>."""


def parse_html(markup: str | bytes) -> Element | None:
    """Parse HTML, valid or not; None if it has no element. Bytes are decoded as they declare."""
    content = markup.encode("utf-8", "replace") if isinstance(markup, str) else markup
    parser = lxml.html.HTMLParser(
        encoding="utf-8" if isinstance(markup, str) else None, huge_tree=True, remove_comments=True, remove_pis=True
    )
    try:
        return lxml.html.document_fromstring(content, parser=parser)
    except lxml.etree.ParserError:
        return None


def read_html(markup: str) -> tuple[ContentItem, ...]:
    root = parse_html(markup)
    return () if root is None else read_element(root)


def read_element(element: Element) -> tuple[ContentItem, ...]:
    flow = _Flow()
    flow.walk(element, 0)
    flow.end()
    return tuple(flow.items)


def get_element_text(element: Element) -> str:
    return _one_line(item.text for item in read_element(element))


class _Flow:
    """Collects inline text until a block ends it."""

    def __init__(self) -> None:
        self.items: list[ContentItem] = []
        self._line: list[str] = []

    def add_text(self, text: str | None) -> None:
        if text:
            self._line.append(_SPACES.sub(" ", text.translate(_UNSEEN)))

    def add_gap(self, text: str, need: Need) -> None:
        """Add a gap, the place of removed markup, to the line; `_fill_gap` decides later whether its text is shown."""
        plain = _SPACES.sub(" ", text.translate(_UNSEEN)).strip()
        self._line.append(f"{_LEVELS[need] * _GAP_BEGINS}{plain}{_GAP_ENDS}")

    def end(self) -> None:
        whole = "".join(self._line)
        lines = (" ".join(_GAPS.sub(_fill_gap, line).split()) for line in whole.split("\n"))
        text = "\n".join(line for line in lines if line)
        self._line.clear()
        if text:
            self.items.append(Block(text))
        elif _GAP_BEGINS in whole and 2 * _GAP_BEGINS not in whole and self.items:
            last = self.items[-1]
            if isinstance(last, Block) and last.kind is PassageKind.PROSE and last.text.endswith(":"):
                self.items[-1] = Block(f"{last.text} {MARK}")

    def add(self, items: Iterable[ContentItem]) -> None:
        self.end()
        self.items.extend(items)

    def walk(self, element: Element, depth: int) -> None:
        tag = element.tag
        if not isinstance(tag, str) or tag in _DROPPED or _is_hidden(element):
            return
        if tag in _SEEN:
            if not _is_decoration(element):
                self.add_gap(_caption(element), _find_need(element))
        elif depth > _DEEPEST:
            self.add_text(" ".join(element.itertext()))
        elif handler := _HANDLERS.get(tag):
            handler(self, element, depth)
        else:
            self._inside(element, depth)

    def _inside(self, element: Element, depth: int) -> None:
        block = element.tag in _BLOCKS
        if block:
            self.end()
        self.add_text(element.text)
        for child in element:
            self.walk(child, depth + 1)
            self.add_text(child.tail)
        if block:
            self.end()

    def read_items(self, element: Element, depth: int) -> list[ContentItem]:
        flow = _Flow()
        flow.add_text(element.text)
        for child in element:
            flow.walk(child, depth + 1)
            flow.add_text(child.tail)
        flow.end()
        return flow.items

    def link(self, element: Element, depth: int) -> None:
        label = "".join(element.itertext()).strip()
        if not label and not len(element) and not element.get("href", "#").startswith("#"):
            self.add_gap(_caption(element), "")
        elif label not in {"¶", "#", "§", "🔗", "↩", "↩︎"}:
            self._inside(element, depth)

    def superscript(self, element: Element, _depth: int) -> None:
        text = "".join(element.itertext()).strip()
        if element.find(".//a") is not None or not text:
            return
        self._line.append(text.translate(_SUPERSCRIPT) if text.isascii() and text.isdigit() else text)

    def strong(self, element: Element, depth: int) -> None:
        """Read bold text. If it is the whole first line of a paragraph, a line break follows it, as after a heading."""
        opens = not "".join(self._line).strip()
        self._inside(element, depth)
        if opens and _LINE_ENDS.match(element.tail or ""):
            self._line.append("\n")

    def quotation(self, element: Element, depth: int) -> None:
        self._line.append("“")
        self._inside(element, depth)
        self._line.append("”")

    def line_break(self, _element: Element, _depth: int) -> None:
        self._line.append("\n")

    def heading(self, element: Element, depth: int) -> None:
        text = _one_line(item.text for item in self.read_items(element, depth)).removesuffix(f" {MARK}")
        self.add([Heading(int(element.tag[1]), text)] if text else [])

    def code(self, element: Element, _depth: int) -> None:
        for line_break in element.iter("br"):
            line_break.tail = "\n" + (line_break.tail or "")
        text = "".join(element.itertext()).expandtabs(4).strip("\n").rstrip()
        if _is_prose(text):
            self.add(Block(" ".join(part.split())) for part in text.split("\n\n") if part.strip())
        elif text.strip():
            self.add([Block(text, PassageKind.CODE)])

    def listing(self, element: Element, depth: int) -> None:
        self.add(render_list(element, [(child, self.read_items(child, depth + 1)) for child in element]))

    def definitions(self, element: Element, depth: int) -> None:
        self.end()
        term = ""
        for child in element.iter("dt", "dd"):
            inside = self.read_items(child, depth + 1)
            if child.tag == "dt":
                self.add([Block(term)] if term else [])
                term = _one_line(item.text for item in inside)
            else:
                self.add(render_definition(term, inside))
                term = ""
        self.add([Block(term)] if term else [])

    def table(self, element: Element, depth: int) -> None:
        if sum(1 for _ in islice(element.iterancestors("table"), _MOST_TABLES)) == _MOST_TABLES:
            self._inside(element, depth)
            return
        grid = table_rows.build_grid(element)
        if table_rows.is_layout_table(element, grid):
            for cell in table_rows.find_cells(element):
                self.add(self.read_items(cell, depth + 1))
            return
        for caption in element.iterchildren("caption"):
            self.add(self.read_items(caption, depth + 1))
        inside = {cell: self.read_items(cell, depth + 1) for line in grid for cell in line}
        texts = {cell: _cell_text(items) for cell, items in inside.items()}
        if table_rows.has_long_text(texts.values()):
            self.add(table_rows.make_text_blocks(grid, texts, inside))
        else:
            self.add(table_rows.make_table_blocks(grid, texts))


def _is_decoration(element: Element) -> bool:
    """Return whether a picture is mere decoration: it has an empty `alt`, or is an SVG drawing without a caption."""
    return element.get("alt") == "" or (element.tag == "svg" and not _caption(element))


def _caption(element: Element) -> str:
    """Return the caption of a picture or control; empty if it has none, or one that is useless to readers."""
    named = (element.get(name) for name in ("alt", "aria-label", "title"))
    caption = element.text_content() if element.tag in {GAP, "button"} else next(filter(None, named), "")
    return "" if _NO_CAPTION.fullmatch(caption.strip()) else caption


def _find_need(element: Element) -> Need:
    need = element.get("need", "") if element.tag == GAP else "" if element.tag == "math" else "optional"
    return need if need in _LEVELS else ""


def _fill_gap(gaps: re.Match[str]) -> str:
    """Return what replaces adjacent gaps of removed markup: their text, `MARK`, or white space.

    `MARK` shows that something is missing. It is used if the sentence would be incomplete without the gap.
    """
    before = gaps.string[max(gaps.start() - _READ_AROUND, 0) : gaps.start()]
    after = _GAPS.sub("", gaps.string[gaps.end() : gaps.end() + _READ_AROUND])
    filling = _join_gaps(gaps[0], begins=bool(_ENDED.search(before)))
    # Space between two gaps precedes the text of the second.
    lead = " " if _SPACED.match(gaps[0]) else ""
    space = " " if gaps[0][-1].isspace() else ""
    level = min(len(gap[0]) - len(gap[0].lstrip(_GAP_BEGINS)) for gap in _GAP.finditer(gaps[0]))
    within = not _ENDED.search(before)
    if filling and (level == 1 or (within and after)):
        return lead + filling + space
    if level == 1:
        slipped = after[:1].isalpha() and not space  # its content follows it
        return lead + MARK + space if not slipped and (within or _GOES_ON.match(after)) else lead or space
    if level == _LEVELS["closing"]:
        return "" if _STOPS.match(after) else lead or space
    empty = before[-1:] in _OPENERS and after[:1] in _CLOSERS
    return lead + MARK + space if (_STOPS.match(after) and (not before or lead)) or empty else lead or space


def _join_gaps(gaps: str, *, begins: bool) -> str:
    """Join the texts of adjacent gaps, with `MARK` for required gaps without text; empty if no gap has text."""
    texts = [(gap[1], len(gap[0]) - len(gap[0].lstrip(_GAP_BEGINS))) for gap in _GAP.finditer(gaps)]
    if not any(text for text, _ in texts):
        return ""
    parts = [part for part, _ in groupby(text or (MARK if level == 1 else "") for text, level in texts) if part]
    return " ".join(parts[1:] if begins and not texts[0][0] and parts[0] == MARK else parts)


def _is_hidden(element: Element) -> bool:
    attributes = element.attrib
    return bool(attributes) and (
        "hidden" in attributes
        or attributes.get("aria-hidden") == "true"
        or ("style" in attributes and bool(_HIDING_STYLE.search(attributes["style"])))
    )


def _one_line(texts: Iterable[str]) -> str:
    return " ".join(" ".join(texts).split())


def _is_prose(code: str) -> bool:
    """Return whether preformatted text is prose, such as a letter or a message to copy."""
    words = code.split()
    plain_words = sum(1 for word in words if _PLAIN_WORD.fullmatch(word))
    return (
        len(words) >= _LEAST_PROSE
        and code.lstrip()[0].isupper()
        and plain_words >= _PLAIN_SHARE * len(words)
        and any(word.endswith((".", "!", "?")) for word in words)
    )


def _cell_text(inside: Iterable[ContentItem]) -> str:
    """Return the content of a table cell on one line, with commas between list items."""
    lines = [parsed_document.strip_list_mark(line) for item in inside for line in item.text.split("\n")]
    ends = [line + ("" if line.endswith((".", ",", ";", ":", "!", "?")) else ",") for line in lines[:-1]]
    return _one_line([*ends, *lines[-1:]])


_HANDLERS: dict[str, Callable[[_Flow, Element, int], None]] = {
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), _Flow.heading),
    **dict.fromkeys(("pre", "listing", "xmp"), _Flow.code),
    **dict.fromkeys(("strong", "b"), _Flow.strong),
    **dict.fromkeys(("ul", "ol", "menu"), _Flow.listing),
    "dl": _Flow.definitions,
    "table": _Flow.table,
    "a": _Flow.link,
    "sup": _Flow.superscript,
    "q": _Flow.quotation,
    "br": _Flow.line_break,
}
