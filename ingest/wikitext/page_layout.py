"""Read lines of wikitext whose nested markup is already replaced: headings, paragraphs, lists and tables."""

import re
from dataclasses import dataclass

from ingest.wikitext.infoboxes import flatten_value
from ingest.wikitext.markup_cleanup import BREAK, CODE, ROW, decode_entities
from ingest.wikitext.wiki_site import load_other_names
from storage.language.lazy_pattern import lazy_compile

_SPAN = lazy_compile(r"(row|col)span\s*+=\s*+(?:[\"']\s*+)?(\d{1,3})")
_ATTRIBUTES = lazy_compile(
    r"(?:(?:(?:col|row)span|style|class|bgcolor|v?align|width|height|scope|nowrap)\s*+=\s*+(?:\"[^\"]*+\"|[^\s\"]++)\s*+)++",
    re.IGNORECASE,
)
"""Attributes at the beginning of a cell that has no pipe, because a template would have supplied it."""
_NUMBER = lazy_compile(r"[-+−–±~<>$€£]?\s*\d")
_MOST_COLUMNS = 60
_MOST_ROWS = 500  # rows that a cell may span: mistyped numbers must not inflate a page


@dataclass(slots=True)
class _TableCell:
    lines: list[str]
    header: bool
    text: str = ""  # all its lines joined, once the table is complete
    spans: bool = False
    down: int = 1
    across: int = 1


class WikiTable:
    """Reads a table: pass the lines between `{|` and `|}` to `feed`, then call `rows`."""

    def __init__(self) -> None:
        self._caption: list[str] = []
        self._rows: list[list[_TableCell]] = [[]]
        self._in_caption = False

    def feed(self, line: str) -> None:
        if line.startswith("|-"):
            self._rows.append([])
        elif line.startswith("|+"):
            self._caption, self._in_caption = [_strip_attributes(line[2:])], True
            return
        elif line[:1] in ("|", "!"):
            header, cells = line[0] == "!", line[1:]
            for part in (cells.replace("!!", "||") if header else cells).split("||"):
                self._rows[-1].append(_parse_cell(part, header=header))
        elif self._in_caption:
            self._caption.append(line)
            return
        elif self._rows[-1]:
            self._rows[-1][-1].lines.append(line)
        self._in_caption = False

    def rows(self) -> list[str]:
        """Return the caption, then each row of data with the headers of its columns."""
        headers: dict[int, str] = {}
        out = [flatten_value(" ".join(self._caption))]
        for cell in (cell for row in self._rows for cell in row):
            cell.text = flatten_value("\n".join(cell.lines))
        rows = [row for row in self._rows if row]
        _mark_headers(rows)
        for cells in _lay_out_rows(rows):
            shown = {column: cell for column, cell in cells.items() if cell.text}
            if len(shown) > 1 and len({id(cell) for cell in shown.values()}) == 1:
                out.append(next(iter(shown.values())).text)  # one cell across all columns titles the rows below
            elif shown and all(cell.header for cell in shown.values()):
                headers = _column_headers(headers, shown, new=bool(out[1:]) and len(shown) > 1)
            else:
                out.append(_render_row(shown, headers))
        return [row for row in out if row]


def _mark_headers(rows: list[list[_TableCell]]) -> None:
    """If no cell is marked as a header, mark the first row if it has words above numbers."""
    first, *others = rows or [[]]
    if len(first) < 3 or not others or any(cell.header for row in rows for cell in row):  # noqa: PLR2004 - two are a pair
        return
    words = all(cell.text and not _NUMBER.match(cell.text) for cell in first)
    if words and any(_NUMBER.match(cell.text) for row in others for cell in row):
        for cell in first:
            cell.header = True


def _column_headers(before: dict[int, str], cells: dict[int, _TableCell], *, new: bool) -> dict[int, str]:
    """Return the headers of the columns after a row of headers; a second such row is appended to the first."""
    headers = {} if new else dict(before)
    for column, cell in cells.items():
        above = headers.get(column, "")
        headers[column] = cell.text if above in ("", cell.text) else f"{above} {cell.text}"
    return headers


def _render_row(cells: dict[int, _TableCell], headers: dict[int, str]) -> str:
    values: list[str] = []
    seen: set[int] = set()
    for column, cell in cells.items():
        if id(cell) in seen:
            continue
        seen.add(id(cell))
        label = headers.get(column, "")
        values.append(f"{label}: {cell.text}" if label and label != cell.text else cell.text)
    if not headers and len(values) == 2:  # noqa: PLR2004 - two cells are a label and its value
        return ": ".join(text.rstrip(":") for text in values)
    return "; ".join(values)


def _lay_out_rows(rows: list[list[_TableCell]]) -> list[dict[int, _TableCell]]:
    """Return the cells of each row by column. A cell that spans rows or columns is at each of its positions."""
    hanging: dict[int, tuple[int, _TableCell]] = {}
    out: list[dict[int, _TableCell]] = []
    for row in rows:
        if not hanging and not any(cell.spans for cell in row):  # nearly all rows
            out.append(dict(enumerate(row)))
            continue
        places: dict[int, _TableCell] = {column: cell for column, (_, cell) in hanging.items()}
        below = {column: (left - 1, cell) for column, (left, cell) in hanging.items() if left > 1}
        column = 0
        for cell in row:
            while column in places:
                column += 1
            for covered in range(column, column + cell.across):
                places[covered] = cell
                if cell.down > 1 and covered < _MOST_COLUMNS:
                    below[covered] = (cell.down - 1, cell)
            column += cell.across
        hanging = below
        out.append(dict(sorted(places.items())))
    return out


def _parse_cell(part: str, *, header: bool) -> _TableCell:
    attributes, pipe, text = part.partition("|")
    if not pipe:
        text = part.strip()
        return _TableCell([_ATTRIBUTES.sub("", text, 1) if "=" in text else text], header)
    cell = _TableCell([text.strip()], header)
    if "span" in attributes:
        cell.spans = True
        for which, number in _SPAN.findall(attributes):
            if which == "row":
                cell.down = min(max(int(number), 1), _MOST_ROWS)
            else:
                cell.across = min(max(int(number), 1), _MOST_COLUMNS)
    return cell


def _strip_attributes(text: str) -> str:
    attributes, pipe, rest = text.partition("|")
    return (rest if pipe and "=" in attributes else text).strip()


PageOutline = tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]
"""The path of each section, and its blocks; a table row begins with the mark `ROW`, code with `CODE`."""

_ORPHAN = lazy_compile(r"^[.,;:](?:\s+|$)")
"""A sign that begins an item because the citation before it was removed."""
_LINE_STARTS = frozenset("=*#:;|!{ \t-" + ROW + CODE)
_WIDE = 0x2E80  # from here on, scripts have no spaces between words


def read_layout(text: str) -> PageOutline:
    """Read the sections of a page. Its tags, templates and links must already be replaced by text."""
    page = _PageReader()
    for line in text.split("\n"):
        if not line:
            page.end_paragraph()
        elif page.table and line[0] in "|!":
            page.in_table(line.strip())
        elif line[0] in _LINE_STARTS:
            page.special(line)
        elif page.table:
            page.in_table(line.strip())
        else:
            page.paragraph.append(line)
    return page.end()


class _PageReader:
    def __init__(self) -> None:
        self.table: list[WikiTable] = []  # the tables that are open, the innermost last
        self.paragraph: list[str] = []
        self._sections: list[tuple[tuple[str, ...], tuple[str, ...]]] = []
        self._blocks: list[str] = []
        self._path: list[tuple[int, str]] = []
        self._appendix = 0
        """Heading level of the current appendix (references, links), whose lists are skipped; 0 outside of one."""
        self._term = ""

    def special(self, line: str) -> None:
        stripped = line.strip()
        match line[:1]:
            case "\x02":
                self._row(line)
            case "\x03":
                self.end_paragraph()
                self._add(CODE + decode_entities(line[1:].replace(BREAK, "\n")))
            case "=" if heading := _parse_heading(line):
                self._heading(heading[0], decode_entities(heading[1]))
            case _ if stripped.lstrip(":").startswith("{|"):
                self.end_paragraph()
                self.table.append(WikiTable())
            case _ if self.table:
                self.in_table(stripped)
            case "*" | "#" | ":" | ";":
                self._item(stripped)
            case " " | "\t" | "=" if stripped:
                self.paragraph.append(stripped)
            case "-" if not stripped.startswith("----"):
                self.paragraph.append(line)
            case _:  # a rule, or the rest of an incomplete table or template
                self.end_paragraph()

    def in_table(self, line: str) -> None:
        if line.startswith("|}"):
            for row in self.table.pop().rows():
                self._row(ROW + row)
        elif line:
            self.table[-1].feed(line)

    def end_paragraph(self) -> None:
        if self._term:
            self._flush_term()
        if self.paragraph:
            self._add(_join_lines(self.paragraph))
            self.paragraph = []

    def _row(self, line: str) -> None:
        self.end_paragraph()
        if not self._appendix:
            self._add(ROW + decode_entities(line[1:].replace(BREAK, " ")))

    def _item(self, line: str) -> None:
        if self.paragraph:
            self.end_paragraph()
        text = _ORPHAN.sub("", line.lstrip("*#:;").strip())
        signs = line[: len(line) - len(line.lstrip("*#:;"))]
        if not text or (self._appendix and signs[0] != ":"):
            return
        if signs[-1] == ";":
            term, colon, definition = text.partition(" : ")
            self._flush_term()
            self._term = term.strip()
            text = definition.strip() if colon else ""
            signs = ":"
        if signs[-1] == ":":
            if self._term and text:
                text, self._term = f"{self._term}: {text}", ""
            if text:
                self._add(text)
        else:
            self._flush_term()
            self._add(f"- {text}")

    def _flush_term(self) -> None:
        if self._term:
            term, self._term = self._term, ""
            self._add(term)

    def _add(self, block: str) -> None:
        if BREAK in block:
            block = block.replace(BREAK, "\n").strip()
        block = decode_entities(block) if block[:1] not in (CODE, ROW) else block
        if block.strip():
            self._blocks.append(block)

    def _heading(self, level: int, title: str) -> None:
        self._end_section()
        while self._path and self._path[-1][0] >= level:
            self._path.pop()
        self._path.append((level, title))
        if not self._appendix or level <= self._appendix:
            self._appendix = level if title.strip(" .:").casefold() in load_other_names("appendix") else 0

    def _end_section(self) -> None:
        while self.table:
            self.in_table("|}")
        self.end_paragraph()
        if self._blocks:
            self._sections.append((tuple(title for _, title in self._path if title), tuple(self._blocks)))
            self._blocks = []

    def end(self) -> PageOutline:
        self._end_section()
        return tuple(self._sections)


def _join_lines(lines: list[str]) -> str:
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


def _parse_heading(line: str) -> tuple[int, str] | None:
    """Return the level and text of a heading such as `== Hours ==`; None if the line is not a heading."""
    ended = line.rstrip()
    text = ended.rstrip("=")
    if len(ended) == len(text) or len(ended) == 1:
        return None
    signs = len(text) - len(text.lstrip("=")) if text else len(ended) - 1
    level = min(signs, 6)
    return level, text[level:].strip()
