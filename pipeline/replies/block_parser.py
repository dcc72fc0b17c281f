"""Split a reply into blocks as it arrives: running text, list items, rows of tables, fenced code. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from pipeline.replies.markup import is_link_definition, strip_invisible
from storage.language.lazy_pattern import lazy_compile
from storage.language.scripts import is_unspaced
from storage.language.words import load_word_lists

_MarkerKind = Literal["item", "quote", "heading"]
_BULLET_SIGN = lazy_compile(
    r"(?:[-*+–—―·∙✓✔✗※](?=\s|\Z)|[•‣⁃◦▪▫●○■□◆◇◉➢➤➔►▶❖⮚])\s*(?:\[[ xX✓]\]\s)?|\d\ufe0f?\u20e3\s*|[①-⑳❶-❿]\s*"
)
_QUOTE_SIGN = lazy_compile(r">(?!=)\s?")
_HEADING_SIGN = lazy_compile(r"#{1,6}\s+")
_ENCLOSED_COUNT = lazy_compile(
    r"(?P<bold>\*\*)?(?P<opened>[(（])?(?P<count>\d{1,3}|[^\W\d_]|[ivx]{1,4}|(?(opened)[一二三四五六七八九十]{1,3}|(?!)))[)）]"
    r"(?P<closed>\*\*)?(?:\s+|\Z|(?<=）))"
)
_LETTER_COUNT = lazy_compile(
    r"(?:[\u05d0-\u05ea]\.|[\u0621-\u064a]\s?[.-]|[٠-٩۰-۹०-९]{1,2}\s?[-–])\s+"
    r"|[一二三四五六七八九十]{1,3}[、．.]\s*"
)
_NUMBER_COUNT = lazy_compile(
    r"(?P<bold>\*\*)?(?P<count>\d{1,3}|[a-z])(?:[.．](?P<closed>\*\*)?(?:\s+|\Z)|、\s*)(?P<next>[^\W\d_]*)"
)


@dataclass(frozen=True, slots=True)
class LineMarker:
    """The marker at the start of a line, and its length.

    `bold`: whether a `**` before the marker begins bold text that continues after it.
    """

    kind: _MarkerKind
    length: int
    number: int = 0  # of a numbered item
    bold: bool = False


def parse_line_marker(line: str, last: int) -> LineMarker | None:
    """Return the marker at the start of a line, or None. `last` is the largest item number so far, or 0."""
    if marker := _QUOTE_SIGN.match(line):
        return LineMarker("quote", marker.end())
    if marker := _HEADING_SIGN.match(line):
        return LineMarker("heading", marker.end())
    if marker := _BULLET_SIGN.match(line) or _LETTER_COUNT.match(line):
        return LineMarker("item", marker.end())
    if marker := _ENCLOSED_COUNT.match(line):
        return _item_marker(marker, marker.end())
    marker = _NUMBER_COUNT.match(line)
    if not marker or marker["next"].casefold() in load_word_lists("abbreviations")["month"]:
        return None
    return _item_marker(marker, marker.start("next")) if _item_number(marker["count"]) <= last + 1 else None


def _item_marker(found: re.Match[str], length: int) -> LineMarker:
    return LineMarker("item", length, _item_number(found["count"]), bold=bool(found["bold"]) and not found["closed"])


def _item_number(written: str) -> int:
    if written.isdecimal():
        return int(written)
    return "abcdefghijklmnopqrstuvwxyz".find(written.lower()) + 1


_CELL_BAR = lazy_compile(r"(?<!\\)\|")
_TABLE_RULE = lazy_compile(r"[\s|:+=-]*-[\s|:+=-]*")


@dataclass(slots=True)
class TableSentences:
    _columns: list[str] = field(default_factory=list)
    _held: list[str] = field(default_factory=list)
    """A row that is held back: the next line may show that it names the columns."""

    def row(self, line: str) -> list[str]:
        if _TABLE_RULE.fullmatch(line):
            self._columns = self._held or self._columns
            return []
        row = [cell.strip() for cell in _CELL_BAR.split(line.strip().removeprefix("|"))]
        held, self._held = self._held, row[:-1] if row and not row[-1] else row
        if not self._columns:
            return [" | ".join(held)] if held else []
        cells, self._held = self._held, []
        if len(cells) != len(self._columns):
            return [" | ".join(filter(None, cells))]
        named = [f"{name}: {cell}" if name else cell for name, cell in zip(self._columns, cells, strict=True) if cell]
        return ["; ".join(named)]

    def end(self) -> list[str]:
        """Return the row that is still held back when the table ends: the header, if no other row followed."""
        left = self._held
        self._columns = []
        self._held = []
        return [" | ".join(left)] if left else []


@dataclass(frozen=True, slots=True)
class ProseText:
    """The next piece of running text; white space at its ends is part of it."""

    text: str


@dataclass(frozen=True, slots=True)
class ProseEnded:
    """The end of running text: the next event begins a paragraph, an item or a heading."""


@dataclass(frozen=True, slots=True)
class TableRow:
    line: str


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """A whole fenced code block. Its fence is longer than any fence inside."""

    text: str


BlockEvent = ProseText | ProseEnded | TableRow | CodeBlock

_LINE_BREAKS = lazy_compile("[\x0b\x0c\x85\u2028\u2029]")
_INDENT_SPACES = " \t\u00a0\u3000"
_MAX_LINE_HEAD = 48  # characters that identify the kind of a line
_WRAP_WIDTHS = range(60, 121)  # lengths of lines that were wrapped
_FENCE_LINE = lazy_compile(r"(`{3,}|~{3,})([^`\n]*)\Z")
_MAY_DEFINE = lazy_compile(r"\[[^\]]*(?:\]:|\Z)")
_LONE_MARKS = lazy_compile(r"\s*((?:[\[【［][^\[\]【】［］\n]{0,60}[\]】］]\s*)*)\Z")
_LINE_TICKS = lazy_compile("`+")


class BlockParser:
    """Parses one reply. How the reply is cut into pieces affects only how running text is divided into events."""

    def __init__(self) -> None:
        self._rest = ""
        self._fresh = True  # whether the unread text begins a line
        self._open = False  # whether running text came since the last end
        self._heading = False
        self._length = 0
        self._last = ""  # the length and the last character of the previous line
        self._quoted = self._was_quoted = False
        self._item = 0  # the largest number of an item under this heading
        self._fence = ""
        self._code: list[str] = []
        self._closed = False

    def feed(self, piece: str) -> Iterator[BlockEvent]:
        self._rest += _LINE_BREAKS.sub("\n", strip_invisible(piece.replace("\r", " ")))
        yield from self._events()

    def close(self) -> Iterator[BlockEvent]:
        self._closed = True
        yield from self._events()
        if self._fence:
            yield self._close_fence()
        yield ProseEnded()

    def _events(self) -> Iterator[BlockEvent]:
        while self._rest:
            if self._fence or self._fresh:
                events = self._in_fence() if self._fence else self._at_start()
            else:
                text, newline, self._rest = self._rest.partition("\n")
                events = self._prose(text, ends=bool(newline))
            if events is None:
                return
            yield from events

    def _prose(self, text: str, *, ends: bool) -> list[BlockEvent]:
        self._fresh = ends
        self._length += len(text)
        self._last = text.rstrip()[-1:] or self._last
        return [ProseText(text)]

    def _at_start(self) -> list[BlockEvent] | None:
        """Return the events for the start of a line; None until enough of the line has arrived to decide."""
        self._rest = self._rest.lstrip(_INDENT_SPACES)
        head, newline, _ = self._rest[:_MAX_LINE_HEAD].partition("\n")
        if not (newline or self._closed) and len(head) < _MAX_LINE_HEAD:
            return None
        if not head:
            self._rest = self._rest[1:]
            return self._end_prose()
        if found := parse_line_marker(head, self._item):
            self._rest = "**" * found.bold + self._rest[found.length :]
            return self._apply_marker(found)
        if head.startswith(("|", "```", "~~~")) or _MAY_DEFINE.match(head):
            line = self._line()
            return None if line is None else self._classify_line(line)
        return self._begin_line(head)

    def _apply_marker(self, found: LineMarker) -> list[BlockEvent]:
        if found.kind == "quote":
            self._quoted = True
            return []
        self._item = 0 if found.kind == "heading" else max(self._item, found.number)
        ended = self._end_prose()
        self._heading = found.kind == "heading"
        return ended

    def _classify_line(self, line: str) -> list[BlockEvent]:
        if fence := _FENCE_LINE.match(line):
            self._fence, self._code = fence[1], [fence[2]]
            return self._end_prose()
        if line.startswith("|"):
            return [*(self._end_prose() if self._open else []), TableRow(line)]
        if is_link_definition(line):
            return self._end_prose()
        return [*self._begin_line(line), *self._prose(line, ends=True)]

    def _begin_line(self, head: str) -> list[BlockEvent]:
        """Return the events for the start of a line that continues a paragraph of running text or begins a new one."""
        joins = self._open and not self._heading and self._quoted == self._was_quoted and self._is_wrapped(head[0])
        spaced = not (is_unspaced(head[0]) and is_unspaced(self._last or " "))
        before: list[BlockEvent] = [ProseText(" " * spaced)] if joins else [ProseEnded()]
        self._heading = self._heading and not self._open
        self._open, self._fresh, self._length = True, False, 0
        self._quoted, self._was_quoted = False, self._quoted
        return before

    def _is_wrapped(self, first: str) -> bool:
        """Return whether the line break only wrapped a line; `first` is the next line's first character."""
        return (
            first.islower() or self._last in {",", ";"} or (self._length in _WRAP_WIDTHS and self._last not in "]】］:")
        )

    def _end_prose(self) -> list[BlockEvent]:
        self._open = self._heading = self._quoted = False
        return [ProseEnded()]

    def _line(self) -> str | None:
        line, newline, rest = self._rest.partition("\n")
        if not (newline or self._closed):
            return None
        self._rest = rest
        return line

    def _in_fence(self) -> list[BlockEvent] | None:
        line = self._line()
        if line is None:
            return None
        bare = line.strip()
        marks = _LONE_MARKS.fullmatch(bare.lstrip(self._fence[0])) if bare.startswith(self._fence) else None
        if marks is None:
            self._code.append(line)
            return []
        return [self._close_fence(), ProseText(marks[1]), ProseEnded()]

    def _close_fence(self) -> CodeBlock:
        inside = max(map(len, _LINE_TICKS.findall("\n".join(self._code))), default=0)
        ticks = "`" * max(3, inside + 1)
        self._fence, lines = "", self._code
        return CodeBlock("\n".join([ticks + lines[0], *lines[1:], ticks]))
