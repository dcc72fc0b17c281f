"""Read AsciiDoc: headings, paragraphs, lists, tables and code. The official processor needs Ruby."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping

from ingest.readers import front_matter, table_rows, value_parsers
from ingest.readers.parsed_document import ContentItem, Heading, ParsedDocument
from ingest.types import Block
from storage.language.lazy_pattern import lazy_compile
from storage.types import PassageKind

_HEADING = lazy_compile(r"(={1,6}|#{1,6})\s+(\S.*?)(?:\s+\1)?\s*")
_ATTRIBUTE = lazy_compile(r":([\w-]+)!?:(?:\s+(.*))?")
_REVISION = lazy_compile(
    r"(?:v([\d.]{1,20}),?)?\s*(\d{4}-\d\d-\d\d|\d{1,2} \w{3,9} \d{4}|\w{3,9} \d{1,2}, \d{4})(?::.*)?"
)
_REFERENCE = lazy_compile(r"\{([\w-]{1,60})\}")
_FENCE = lazy_compile(r"(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|```)\s*\S*\s*")
_TABLE = "|==="
_LIST_ITEM = lazy_compile(r"\s*(\*{1,5}|-|\.{1,5}|\d{1,3}\.)\s+(\S.*)")
_TERM = lazy_compile(r"\s*(\S.*?):{2,4}(?:\s+(.*))?")
_BLOCK_TITLE = lazy_compile(r"\.(?![\s.])(.+)")
_COLUMNS = lazy_compile(r"^\[.*\bcols=[\"']?([\w*,<>^.%]{1,100})")
_NOT_TEXT = lazy_compile(
    r"\[[^\[\]]*\]\s*|//(?!/).*|'{3,}|<{3,}|\[\[.*\]\]|(?:include|ifdef|ifndef|ifeval|endif|toc|video|audio)::.*"
)
_PICTURE = lazy_compile(r"image::?[^\s\[\]]*\[([^\[\]]*)\]")
_LINK = lazy_compile(r"(?:link:|xref:|mailto:|(?=https?://))[^\s\[\]<>]{1,2000}\[([^\[\]]*)\]")
_CROSS = lazy_compile(r"<<([^<>,]*)(?:,([^<>]*))?>>")
_MACRO = lazy_compile(
    r"(?:kbd|btn|menu|footnote|stem|latexmath|asciimath|pass|indexterm\d?):[^\s\[\]]{0,200}\[([^\[\]]*)\]"
)
_QUOTED = lazy_compile(r"(?<![\w*_`#])(\*\*?|__?|``?|##?|\^|~)(?=\S)([^\n*_`#^~]{1,500})(?<=\S)\1(?!\w)")
_ROLE = lazy_compile(r"\[\.[\w.-]*\](?=[#*_`])")
_CALLOUT = lazy_compile(r"\s*<[\d.]{1,3}>")
_CODE_FENCES = ("-", ".", "`", "+")


def read_asciidoc(text: str) -> ParsedDocument:
    return front_matter.read_with_fields(text, _read_body, any_fields=False)


def _read_body(text: str) -> ParsedDocument:
    reader = _Reader(text.split("\n"))
    items = tuple(reader.read())
    stated = [reader.attributes[name] for name in ("revdate", "docdate", "date") if reader.attributes.get(name)]
    return ParsedDocument(
        items=items,
        title=reader.attributes.get("doctitle", ""),
        date=value_parsers.parse_first_date(stated),
        dated=bool(stated),
        revision=reader.attributes.get("revnumber", ""),
    )


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0
        self._titled = False
        self._in_head = False  # whether the lines of authors and revision follow
        self._waiting: list[str] = []  # lines of the current paragraph or list
        self._columns = 0  # of the next table, if its attributes state it
        self.attributes: dict[str, str] = {}

    def read(self) -> Iterator[ContentItem]:
        while self._at < len(self._lines):
            line = self._lines[self._at].rstrip()
            self._at += 1
            if line.startswith(_TABLE):
                yield from self._end()
                yield from self._table()
            elif fence := _FENCE.fullmatch(line):
                yield from self._end()
                yield from self._fenced(line.split()[0], fence[1])
            elif heading := _HEADING.fullmatch(line):
                yield from self._end()
                yield Heading(len(heading[1]), self._text(heading[2]))
                self._in_head = not self._titled and len(heading[1]) == 1
                self._titled = True
            else:
                yield from self._line(line)
        yield from self._end()

    def _line(self, line: str) -> Iterator[ContentItem]:
        if not line.strip() or line == "+":
            yield from self._end()
            self._in_head = False
        elif self._in_head and (revision := _REVISION.fullmatch(line)):
            self.attributes |= {"revnumber": revision[1] or "", "revdate": revision[2].strip()}
        elif attribute := _ATTRIBUTE.fullmatch(line):
            if len(self.attributes) < 1000:  # noqa: PLR2004 - more than any document has
                self.attributes[attribute[1]] = (attribute[2] or "").strip()
        elif title := _BLOCK_TITLE.fullmatch(line):
            yield from self._end()
            yield Block(self._text(title[1]).rstrip(":") + ":")
        elif line.startswith("image::"):
            yield from self._end()
            yield from [Block(caption)] if (caption := self._text(line)) else []
        elif columns := _COLUMNS.search(line):
            times = columns[1].partition("*")[0]
            self._columns = int(times) if times.isdecimal() and "*" in columns[1] else columns[1].count(",") + 1
        elif not _NOT_TEXT.fullmatch(line):
            self._waiting.append(line)

    def _end(self) -> Iterator[ContentItem]:
        lines, self._waiting = self._waiting, []
        parts_by_line: list[list[str]] = []
        numbers = Counter[int]()
        for line in lines:
            if item := _LIST_ITEM.fullmatch(line):
                depth = len(item[1]) - 1 if item[1][0] in "*." else 0
                numbers = Counter({deep: count for deep, count in numbers.items() if deep <= depth})
                numbers[depth] += item[1][0] == "."
                mark = "-" if item[1][0] in "*-" else f"{numbers[depth]}." if item[1][0] == "." else item[1]
                parts_by_line.append([f"{'  ' * depth}{mark} {item[2]}"])
            elif term := _TERM.fullmatch(line):
                parts_by_line.append([f"{term[1]}: {term[2] or ''}".rstrip()])
            elif parts_by_line and not parts_by_line[-1][-1].endswith(" +"):
                parts_by_line[-1].append(line.strip())
            else:
                parts_by_line.append([line.strip()])
        if text := "\n".join(filter(None, (self._text(" ".join(parts)) for parts in parts_by_line))):
            yield Block(text)

    def _fenced(self, fence: str, kind: str) -> Iterator[ContentItem]:
        closing = "```" if kind == "```" else fence
        if kind[0] in "=*_" or kind == "--":
            return  # an example, a sidebar or a quotation is ordinary text
        inside: list[str] = []
        while self._at < len(self._lines) and self._lines[self._at].rstrip() != closing:
            inside.append(_CALLOUT.sub("", self._lines[self._at].rstrip()) if kind[0] == "-" else self._lines[self._at])
            self._at += 1
        self._at += 1
        code = "\n".join(inside).strip("\n")
        if code.strip() and kind[0] in _CODE_FENCES:
            yield Block(code, PassageKind.CODE)

    def _table(self) -> Iterator[ContentItem]:
        width, self._columns = self._columns, 0
        cells: list[str] = []
        while self._at < len(self._lines) and not (line := self._lines[self._at].strip()).startswith(_TABLE):
            self._at += 1
            added = [self._text(cell.strip()) for cell in line.split("|")[1:]]
            if len(added) > 1 or (cells and not line):
                # The first row is on one line, or ends at the first empty line.
                width = width or len(added) or len(cells)
            if added:
                cells += added
            elif line and cells:
                cells[-1] = f"{cells[-1]} {self._text(line)}".strip()
        self._at += 1
        width = width or 1
        rows = [cells[at : at + width] for at in range(0, len(cells), width)]
        yield from table_rows.make_row_blocks(*table_rows.split_header(rows))

    def _text(self, text: str) -> str:
        """Return the text of a line: an attribute becomes its value, and a link or reference its label."""
        text = _REFERENCE.sub(lambda name: _NAMED_SIGNS.get(name[1]) or self.attributes.get(name[1]) or name[0], text)
        text = _ROLE.sub("", text)
        text = _PICTURE.sub(lambda match: match[1].split(",")[0].strip('"'), text)
        text = _LINK.sub(_label, text)
        text = _CROSS.sub(lambda match: (match[2] or match[1]).strip(), text)
        text = _MACRO.sub(lambda match: match[1], text)
        for _ in range(2):  # nested marks
            text = _QUOTED.sub(lambda match: match[2], text)
        indent = " " * (len(text) - len(text.lstrip(" ")))
        return indent + " ".join((text if indent else text.removesuffix(" +")).split())


_NAMED_SIGNS: Mapping[str, str] = {
    "nbsp": " ", "sp": " ", "empty": "", "plus": "+", "amp": "&", "lt": "<", "gt": ">", "apos": "'", "quot": '"',
    "vbar": "|", "asterisk": "*", "tilde": "~", "backtick": "`", "startsb": "[", "endsb": "]", "cpp": "C++",
}  # fmt: skip


def _label(link: re.Match[str]) -> str:
    label = link[1].removesuffix("^").strip().strip('"')
    address = link[0].partition("[")[0]
    return label or (address if address.startswith("http") else address.partition(":")[2])
