"""Read LaTeX: headings, paragraphs, lists, tables and code; equations remain LaTeX."""

import re
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ingest.readers import table_rows, value_parsers
from ingest.readers.parsed_document import ContentItem, Heading, ParsedDocument
from ingest.types import Block
from storage.language.lazy_pattern import lazy_compile
from storage.types import PassageKind

_LEVELS = {
    "part": 1,
    "chapter": 2,
    "section": 3,
    "subsection": 4,
    "subsubsection": 5,
    "paragraph": 6,
    "subparagraph": 6,
}
_TOKEN = lazy_compile(
    r"%[^\n]*(?:\n[ \t]*)?|\\(?:begin|end)[ \t]*\{([^{}\n]{1,60})\}|\\([a-zA-Z@]+)\*?[ \t]*|\\(.)|\n[ \t]*\n\s*|[{}&~$]"
    r"|``|''|---?|[^\\%{}&~$`'\n-]+|.|\n",
    re.DOTALL,
)
_VERBATIM = frozenset({"verbatim", "Verbatim", "lstlisting", "minted", "alltt"})
_TABLES = frozenset({"tabular", "tabularx", "tabular*", "longtable", "tabulary"})
_LISTS = frozenset({"itemize", "enumerate", "description"})
_EQUATIONS = frozenset(
    {"equation", "align", "gather", "multline", "eqnarray", "displaymath", "math", "alignat", "flalign"}
)
_UNSEEN_ENVIRONMENTS = frozenset({"tikzpicture", "comment", "thebibliography", "filecontents", "pgfpicture"})
_ONE_UNSEEN = (
    "label pagestyle thispagestyle vspace hspace input include includegraphics usepackage documentclass bibliography "
    "bibliographystyle index setcounter hypersetup pagenumbering graphicspath vskip hskip fontsize rule color"
)
_TWO_UNSEEN = (
    "setlength addtolength renewcommand newcommand providecommand def let addcontentsline "
    "multicolumn multirow resizebox"
)
_CITATIONS = "cite citep nocite parencite autocite footcite"
_REFERENCES = "citet citeauthor textcite ref eqref pageref autoref cref Cref nameref"
_FIRST_UNSEEN = "textcolor colorbox parbox raisebox scalebox href"
_REFERENCE_MARKS = {**dict.fromkeys(_CITATIONS.split(), ""), **dict.fromkeys(_REFERENCES.split(), "[…]")}
_ARGUMENTS_UNSEEN = f"{_ONE_UNSEEN} {_CITATIONS} {_REFERENCES} {_FIRST_UNSEEN}".split()
_UNSEEN_ARGUMENTS = {**dict.fromkeys(_ARGUMENTS_UNSEEN, 1), **dict.fromkeys(_TWO_UNSEEN.split(), 2)}
_DEEPEST = " " * 20  # deepest indentation of nested lists
_LONGEST_FORMULA = 2000  # characters
_OPTIONS = lazy_compile(r"[ \t]*\[([^\[\]]{0,500})\]")
_LABEL = lazy_compile(r"\\(?:label\{[^{}]*\}|nonumber\b)")
_COLUMNS = lazy_compile(r"\s*(?:\[[^\[\]]*\])?\s*(?:\{[^{}]*\}\s*)?\{(?:[^{}]|\{[^{}]*\})*\}")
_RULE = lazy_compile(
    r"\\(?:hline|toprule|midrule|bottomrule|endhead|endfoot|c(?:mid|)line(?:\([lr]*\))?\{[^{}]*\})|%[^\n]*"
)
_MACRO = lazy_compile(
    r"\\(?:(?:re)?newcommand|providecommand|def)\*?[ \t]*\{?\\([A-Za-z@]+)\}?[ \t]*\{((?:[^{}]|\{[^{}]*+\})*+)\}"
)
_SPAN = lazy_compile(r"\s*\\multicolumn[ \t]*\{(\d{1,2})\}")
_CELL_BORDER = lazy_compile(r"(?<!\\)&")
_SIGNS = {
    "ldots": "…", "dots": "…", "textellipsis": "…", "ss": "ß", "ae": "æ", "AE": "Æ", "oe": "œ", "OE": "Œ", "o": "ø",
    "O": "Ø", "aa": "å", "AA": "Å", "l": "ł", "L": "Ł", "i": "ı", "S": "§", "P": "¶", "copyright": "©", "pounds": "£",
    "textdegree": "°", "degree": "°", "euro": "€", "texteuro": "€", "LaTeX": "LaTeX", "TeX": "TeX",
    "textbackslash": "\\", "textasciitilde": "~", "textbar": "|", "textless": "<", "textgreater": ">", "quad": " ",
    "qquad": " ", "newline": "\n", "par": "\n\n", "textendash": "–", "textemdash": "—", "textquotesingle": "'",
    "today": "", "checkmark": "✓", "times": "×", "cdot": "·", "pm": "±", "leq": "≤", "geq": "≥", "rightarrow": "→",
}  # fmt: skip
_ACCENTS = {
    "`": "\u0300", "'": "\u0301", "^": "\u0302", "~": "\u0303", "=": "\u0304", "u": "\u0306", ".": "\u0307",
    '"': "\u0308", "r": "\u030a", "H": "\u030b", "v": "\u030c", "c": "\u0327", "k": "\u0328", "d": "\u0323",
}  # fmt: skip


def read_latex(text: str) -> ParsedDocument:
    # The text of commands without arguments that the author defined.
    macros = {macro[1]: _cell(macro[2], {}) for macro in _MACRO.finditer(text)}
    reader = _Reader(text, macros)
    reader.read()
    return ParsedDocument(
        items=tuple(reader.items),
        title=reader.title,
        date=value_parsers.parse_date(reader.date),
        dated=bool(reader.date),
    )


@dataclass
class _List:
    tag: str
    lines: list[str] = field(default_factory=list)
    number: int = 0
    mark: str = ""  # of an item without text so far


class _Reader:
    def __init__(self, text: str, macros: Mapping[str, str], *, cell: bool = False) -> None:
        self._text = text
        self._at = 0
        self._cell = cell
        self._macros = macros
        self._parts: list[str] = []  # of the current paragraph
        self._lists: list[_List] = []
        self._in_body = "\\begin{document}" not in text
        self.items: list[ContentItem] = []
        self.title = self.date = ""

    def read(self) -> None:
        while (token := self._next()) is not None:
            if token[1]:
                self._environment(token[0], token[1])
            elif token[2]:
                self._command(token[2])
            elif not token[0].strip() and token[0].count("\n") > 1:
                self._end_paragraph()
            elif self._in_body:
                self._parts.append(self._plain(token))
        self._end_paragraph()
        while self._lists:
            self._end_list()

    def _next(self) -> re.Match[str] | None:
        token = _TOKEN.match(self._text, self._at)
        self._at = token.end() if token else self._at
        return token

    def _plain(self, token: re.Match[str]) -> str:
        """Return the text of a token that is neither an environment nor a command named by several letters."""
        written, sign = token[0], token[3]
        if written[0] == "%" or written in "{}":
            return ""
        if sign is not None:
            if sign in _ACCENTS and not sign.isspace():
                return self._accented(sign)
            if sign == "\\":
                self._skip_options()
                return "\n"
            return {"(": "", ")": "", "[": "", "]": "", ",": " ", ";": " ", "!": "", "/": "", "-": "", "@": ""}.get(
                sign, sign
            )
        if written == "$":
            return self._until("$" if self._text[self._at : self._at + 1] != "$" else "$$")
        return {"~": " ", "&": " ", "``": "“", "''": "”", "---": "—", "--": "–"}.get(written, written)

    def _until(self, mark: str) -> str:
        """Return the source up to `mark`, and move behind the mark; empty if the paragraph ends before it."""
        start = self._at + (len(mark) - 1 if mark == "$$" else 0)
        most = start + _LONGEST_FORMULA
        found = self._text.find(mark, start, most)
        blank = self._text.find("\n\n", start, most)
        end = found if found >= 0 and (blank < 0 or found < blank) else start
        self._at = end + len(mark) if end == found else end
        return self._text[start:end]

    def _accented(self, accent: str) -> str:
        letter = self._argument().strip() or " "
        letter = {"ı": "i", "\\i": "i"}.get(letter, letter)
        return unicodedata.normalize("NFC", letter[0] + _ACCENTS[accent]) + letter[1:]

    def _argument(self) -> str:
        """Read the next argument as text: a group in braces, or else a single character or command."""
        while self._text[self._at : self._at + 1].isspace():
            self._at += 1
        if self._text[self._at : self._at + 1] != "{":
            token = self._next()
            if token is None:
                return ""
            if token[2]:
                return _SIGNS.get(token[2], self._macros.get(token[2], ""))
            first = token[0][:1]
            self._at = token.start() + 1 if not token[3] else token.end()
            return token[3] or first
        depth, outer, self._parts = 0, self._parts, []
        while (token := self._next()) is not None:
            depth += {"{": 1, "}": -1}.get(token[0], 0)
            if not depth:
                break
            if token[2]:
                self._inline(token[2])
            elif not token[1]:
                self._parts.append(self._plain(token))
        text, self._parts = "".join(self._parts), outer
        return text

    def _skip_options(self) -> str:
        options = _OPTIONS.match(self._text, self._at)
        self._at = options.end() if options else self._at
        return options[1] if options else ""

    def _command(self, name: str) -> None:
        if name in _LEVELS:
            self._skip_options()
            self._end_paragraph()
            self.items.append(Heading(_LEVELS[name], " ".join(self._argument().split())))
        elif name in ("title", "date", "author"):
            self._skip_options()
            text = " ".join(self._argument().split())
            if name == "title":
                self.title = text
            elif name == "date":
                self.date = text
            elif text:
                self.items.append(Block(text))
        elif name == "caption":
            self._skip_options()
            self._end_paragraph()
            self._parts.append(self._argument())
            self._end_paragraph()
        elif name == "item" and self._lists:
            self._end_paragraph()
            label, last = self._skip_options(), self._lists[-1]
            last.number += 1
            last.mark = f"- {label}: " if label else f"{last.number}. " if last.tag == "enumerate" else "- "
        else:
            self._inline(name)

    def _inline(self, name: str) -> None:
        text = self._render(name)
        if self._in_body:
            self._parts.append(text)

    def _render(self, name: str) -> str:
        """Return the text of a command in a paragraph. The arguments of an unknown command stay, to be read as text."""
        if name in _SIGNS:
            return _SIGNS[name]
        if name in self._macros:
            return self._macros[name]
        if name in _ACCENTS and len(name) == 1:
            return self._accented(name)
        if name == "footnote":
            return f" ({self._argument().strip()})"
        if name == "verb" and self._at < len(self._text):
            self._at += 1
            return self._until(self._text[self._at - 1])
        if name in _REFERENCE_MARKS and not _REFERENCE_MARKS[name]:
            while self._parts and self._parts[-1].isspace():
                self._parts.pop()
        for _ in range(_UNSEEN_ARGUMENTS.get(name, 0)):
            self._skip_options()
            self._argument()
        self._skip_options()
        return _REFERENCE_MARKS.get(name, "")

    def _environment(self, written: str, name: str) -> None:
        begins = written.startswith("\\begin")
        base = name.rstrip("*")
        if name == "document":
            self._end_paragraph()
            self._in_body = begins
            self._parts = []
        elif begins and base in _EQUATIONS:
            self._parts.append(f" {' '.join(_LABEL.sub('', self._raw(name)).split())} ")
        elif begins and not self._cell and (name in _VERBATIM or name in _TABLES or base in _UNSEEN_ENVIRONMENTS):
            self._end_paragraph()
            inside = self._raw(name)
            if name in _VERBATIM and inside.strip():
                self.items.append(Block(_OPTIONS.sub("", inside, count=1).strip("\n"), PassageKind.CODE))
            elif name in _TABLES:
                self.items += _read_table(inside, self._macros)
        elif base in _LISTS:
            self._end_paragraph()
            if begins:
                self._lists.append(_List(base))
            elif self._lists:
                self._end_list()
            self._skip_options()
        else:
            self._end_paragraph()
            self._skip_options()
            if begins and name == "abstract":
                self.items.append(Heading(_LEVELS["section"], "Abstract"))

    def _raw(self, name: str) -> str:
        end = self._text.find(f"\\end{{{name}}}", self._at)
        start, end = self._at, end if end >= 0 else len(self._text)
        self._at = end + len(f"\\end{{{name}}}")
        return self._text[start:end]

    def _end_paragraph(self) -> None:
        text, self._parts = " ".join("".join(self._parts).split()), []
        if not text or not self._in_body:
            return
        if not self._lists:
            self.items.append(Block(text))
            return
        last = self._lists[-1]
        last.lines.append((last.mark or "  ") + text)
        last.mark = ""

    def _end_list(self) -> None:
        ended = self._lists.pop()
        if self._lists:
            self._lists[-1].lines += [line if line.startswith(_DEEPEST) else f"  {line}" for line in ended.lines]
        elif ended.lines:
            self.items.append(Block("\n".join(ended.lines)))


def _read_table(inside: str, macros: Mapping[str, str]) -> Iterator[Block]:
    """Read the source inside of a table: the description of its columns, then its rows."""
    described = _COLUMNS.match(inside)
    body = _RULE.sub("", inside[described.end() :] if described else inside)
    cells = [[(cell, _count_columns(cell)) for cell in _CELL_BORDER.split(line)] for line in body.split("\\\\")]
    read = [[(_cell(cell, macros), columns) for cell, columns in line] for line in cells]
    rows = [[text for cell, columns in line for text in (cell, *[""] * (columns - 1))] for line in read]
    spread = [[text for text, columns in line for _ in range(columns)] for line in read]
    filled = [at for at, row in enumerate(rows) if any(row)]
    header = table_rows.split_header([rows[at] for at in filled], [spread[at] for at in filled])
    yield from table_rows.make_row_blocks(*header)


def _count_columns(cell: str) -> int:
    spans = _SPAN.match(cell)
    return max(int(spans[1]), 1) if spans else 1


def _cell(written: str, macros: Mapping[str, str]) -> str:
    reader = _Reader(written, macros, cell=True)
    reader.read()
    return " ".join(" ".join(item.text for item in reader.items).split())
