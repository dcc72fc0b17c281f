"""The lines of wikitext, once nothing in them is nested: headings, paragraphs, lists, tables and rows.

Its result is an outline of plain tuples and strings, which travels between processes at a tenth of the cost of
sections; `reading` makes sections of it.
"""

import re

from ingest.wikitext.marks import BREAK, CODE, ROW
from ingest.wikitext.mending import decoded
from ingest.wikitext.names import appendices
from ingest.wikitext.tables import Table

Outline = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
"""The path of each section, and its blocks; a table row begins with the mark `ROW`, code with `CODE`."""

_HEADING = re.compile(r"(={1,6})\s*(.*?)\s*=+\s*$")
_ORPHAN = re.compile(r"^[.,;:](?:\s+|$)")
"""A sign that begins an item because the citation before it is gone."""
_STARTS = frozenset("=*#:;|!{ \t-" + ROW + CODE)
_WIDE = 0x2E80
"""From here on scripts are written without spaces between words."""


def outlined(text: str) -> Outline:
    """The sections of a page whose tags, templates and links are text already."""
    page = _Page()
    for line in text.split("\n"):
        if not line:
            page.end_paragraph()
        elif page.table and line[0] in "|!":
            page.in_table(line.strip())
        elif line[0] in _STARTS:
            page.special(line)
        elif page.table:
            page.in_table(line.strip())
        else:
            page.paragraph.append(line)
    return page.end()


class _Page:
    """What was read so far."""

    def __init__(self) -> None:
        self.table: list[Table] = []
        """The tables that are open, the innermost last."""
        self.paragraph: list[str] = []
        self._sections: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        self._blocks: list[str] = []
        self._path: list[tuple[int, str]] = []
        self._appendix = 0
        """The level of the heading of an appendix that we are in (references, links), whose lists say nothing."""
        self._term = ""

    def special(self, line: str) -> None:
        """Read a line that begins with a sign that may be markup."""
        stripped = line.strip()
        match line[:1]:
            case "\x02":
                self._row(line)
            case "\x03":
                self.end_paragraph()
                self._add(CODE + decoded(line[1:].replace(BREAK, "\n")))
            case "=" if match := _HEADING.match(line):
                self._heading(len(match[1]), decoded(match[2]))
            case _ if stripped.lstrip(":").startswith("{|"):
                self.end_paragraph()
                self.table.append(Table())
            case _ if self.table:
                self.in_table(stripped)
            case "*" | "#" | ":" | ";":
                self._item(stripped)
            case " " | "\t" | "=" if stripped:
                self.paragraph.append(stripped)
            case "-" if not stripped.startswith("----"):
                self.paragraph.append(line)
            case _:  # a rule, or what is left of a table or template that is not whole
                self.end_paragraph()

    def in_table(self, line: str) -> None:
        """Read a line of the innermost table."""
        if line.startswith("|}"):
            for row in self.table.pop().rows():
                self._row(ROW + row)
        elif line:
            self.table[-1].feed(line)

    def end_paragraph(self) -> None:
        """What was gathered is a paragraph."""
        if self._term:
            self._say_term()
        if self.paragraph:
            self._add(_joined(self.paragraph))
            self.paragraph = []

    def _row(self, line: str) -> None:
        self.end_paragraph()
        if not self._appendix:
            self._add(ROW + decoded(line[1:].replace(BREAK, " ")))

    def _item(self, line: str) -> None:
        if self.paragraph:
            self.end_paragraph()
        text = _ORPHAN.sub("", line.lstrip("*#:;").strip())
        signs = line[: len(line) - len(line.lstrip("*#:;"))]
        if not text or (self._appendix and signs[0] != ":"):
            return
        if signs[-1] == ";":
            term, colon, said = text.partition(" : ")
            self._say_term()
            self._term = term.strip()
            text = said.strip() if colon else ""
            signs = ":"
        if signs[-1] == ":":
            if self._term and text:
                text, self._term = f"{self._term}: {text}", ""
            if text:
                self._add(text)
        else:
            self._say_term()
            self._add(f"- {text}")

    def _say_term(self) -> None:
        if self._term:
            term, self._term = self._term, ""
            self._add(term)

    def _add(self, block: str) -> None:
        if BREAK in block:
            block = block.replace(BREAK, "\n").strip()
        block = decoded(block) if block[:1] not in (CODE, ROW) else block
        if block.strip():
            self._blocks.append(block)

    def _heading(self, level: int, title: str) -> None:
        self._end_section()
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        self._path.append((level, title))
        if not self._appendix or level <= self._appendix:
            self._appendix = level if title.strip(" .:").casefold() in appendices() else 0

    def _end_section(self) -> None:
        while self.table:
            self.in_table("|}")
        self.end_paragraph()
        if self._blocks:
            self._sections.append((tuple(title for _, title in self._path if title), tuple(self._blocks)))
            self._blocks = []

    def end(self) -> Outline:
        """All sections that hold anything."""
        self._end_section()
        return tuple(self._sections)


def _joined(lines: list[str]) -> str:
    """The lines of a paragraph as one; no space where the script has none."""
    if len(lines) == 1:
        return lines[0].strip()
    text = lines[0].strip()
    parts = [text]
    for line in lines[1:]:
        stripped = line.strip()
        if stripped:
            wide = ord(parts[-1][-1:] or " ") >= _WIDE and ord(stripped[0]) >= _WIDE
            parts += ("" if wide or stripped[0] in ".,;)" else " ", stripped)
    return "".join(parts)
