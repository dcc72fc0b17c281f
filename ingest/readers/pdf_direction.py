"""Put the characters of a right-to-left line of a PDF into reading order.

Files draw characters in any order. So the characters of a line are sorted by position and marks are joined to their
letters. Runs that are read from left to right (Latin words, numbers) keep their direction.
"""

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import NamedTuple

from storage.language.lazy_pattern import lazy_compile

_RIGHT_TO_LEFT = lazy_compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
_PRESENTATION = lazy_compile("[\ufb1d-\ufdff\ufe70-\ufefc]")
_STRONG = {"L": "L", "R": "R", "AL": "R", "EN": "N", "AN": "N"}
_ARABIC = lazy_compile("[\u0600-\u08ff]")
_JOINS_DIGITS = ".,:/\u066b\u066c"
_JOINS_BUT_IN_ARABIC = "-+"
_OF_A_NUMBER_BUT_IN_ARABIC = "%$€£¥₪₺#°"
"""As in Unicode's bidirectional algorithm, which the program that wrote the file followed."""
_BRACKETS = {"(": "()", ")": "()", "[": "[]", "]": "[]", "{": "{}", "}": "{}", "«": "«»", "»": "«»"}
_ON_ONE_LINE = 0.5
"""Vertical overlap of two characters of a line, in heights of the lower one."""
_SPACE = 0.12
"""Narrowest drawn space, in heights of a character."""
_TOUCHES = 0.4
"""Farthest distance of a mark from the preceding letter in the file, in heights of the mark."""
_GAP = 0.3
"""Narrowest gap that counts as a space that was not drawn, in heights of a character."""


class PdfChar(NamedTuple):
    at: int
    char: str
    left: float
    bottom: float
    right: float
    top: float

    @property
    def height(self) -> float:
        return self.top - self.bottom


@dataclass(frozen=True, slots=True)
class _Cluster:
    """A letter with its marks, or a sign. Its `kind` is L or R, the direction of a letter, N for a digit, or empty."""

    chars: tuple[PdfChar, ...]
    text: str
    kind: str

    @property
    def left(self) -> float:
        return min(char.left for char in self.chars)

    @property
    def right(self) -> float:
        return max(char.right for char in self.chars)


def has_rtl_letters(chars: Iterable[PdfChar]) -> bool:
    return bool(_RIGHT_TO_LEFT.search("".join(char.char for char in chars)))


def is_rtl(letters: Iterable[str]) -> bool:
    """Return whether most letters belong to right-to-left scripts."""
    kinds = list(map(_kind, letters))
    return kinds.count("R") > kinds.count("L")


def split_rows(chars: Sequence[PdfChar]) -> Iterator[list[PdfChar]]:
    """Split characters into lines; the characters come in the order of the file."""
    row: list[PdfChar] = []
    marks: list[PdfChar] = []  # marks before the first letter of their line
    ended = True
    for char in chars:
        if char.char in "\r\n":
            ended = True
        elif unicodedata.combining(char.char):
            (marks if ended else row).append(char)
        elif char.char.isspace():
            row.append(char)
        else:
            if row and not _is_on_line(row, char):
                yield row
                row = []
            row += [*marks, char]
            marks, ended = [], False
    if row:
        yield row


def read_cells(row: Sequence[PdfChar], widest: float, *, rtl: bool) -> list[tuple[list[PdfChar], str]]:
    """Return the cells of a row in reading order.

    A gap wider than `widest` times the characters' height separates cells. Each cell is a pair: its characters from
    left to right, and its text in reading order.
    """
    clusters = _make_clusters(row)
    cells: list[list[_Cluster]] = []
    for cluster in clusters:
        last = cells[-1][-1] if cells else None
        if last and cluster.left - last.right < widest * max(cluster.chars[0].height, last.chars[0].height):
            cells[-1].append(cluster)
        else:
            cells.append([cluster])
    runs = [
        ([char for cluster in cell for char in cluster.chars], read_clusters(_space(cell), rtl=rtl)) for cell in cells
    ]
    return runs[::-1] if rtl else runs


def read_clusters(visual: Sequence[tuple[str, str]], *, rtl: bool) -> str:
    """Return the text of clusters in reading order. `visual` has each cluster's text and kind from left to right."""
    parts: list[str] = []
    for runs_rtl, run in _directed_runs(visual, rtl=rtl):
        parts += [text for text, _ in run] if not runs_rtl else _read_rtl(run)
    return "".join(parts)


def _kind(char: str) -> str:
    return _STRONG.get(unicodedata.bidirectional(char[:1] or " "), "")


def _is_on_line(row: Sequence[PdfChar], char: PdfChar) -> bool:
    letters = (char for char in row if not char.char.isspace() and not unicodedata.combining(char.char))
    other = next(letters, None)
    if other is None:
        return True
    shared = min(other.top, char.top) - max(other.bottom, char.bottom)
    return shared > _ON_ONE_LINE * min(other.height, char.height)


def _make_clusters(row: Sequence[PdfChar]) -> list[_Cluster]:
    """Sort the letters of a row from left to right, each with its marks, and drop spaces that are too narrow."""
    letters = [char for char in row if not char.char.isspace() and not unicodedata.combining(char.char)]
    marks: dict[int, list[PdfChar]] = {}
    last: PdfChar | None = None
    for char in row:
        if unicodedata.combining(char.char) and letters:
            near = last if last and _measure_overlap(last, char) > -_TOUCHES * char.height else None
            marks.setdefault((near or max(letters, key=partial(_measure_overlap, char))).at, []).append(char)
        elif not char.char.isspace():
            last = char
    spaces = [
        _Cluster((char,), " ", "")
        for char in row
        if char.char.isspace() and char.right - char.left > _SPACE * max(char.height, 1.0)
    ]
    clusters = [_cluster(letter, marks.get(letter.at, [])) for letter in letters]
    return _trim(sorted([*clusters, *spaces], key=_place))


def _place(cluster: _Cluster) -> tuple[float, int]:
    """Return a sort key: the position, then the order in the file, as the letters of a ligature share a position."""
    first = cluster.chars[0]
    return first.left + first.right, first.at if cluster.kind == "L" else -first.at


def _measure_overlap(char: PdfChar, other: PdfChar) -> float:
    """Return how far two characters overlap horizontally; if they do not, the negative of their distance."""
    return min(char.right, other.right) - max(char.left, other.left)


def _cluster(letter: PdfChar, marks: Sequence[PdfChar]) -> _Cluster:
    text = letter.char
    if _PRESENTATION.match(text):
        text = "".join(unicodedata.normalize("NFKC", text).split())
    return _Cluster((letter, *marks), text + "".join(mark.char for mark in marks), _kind(text))


def _trim(clusters: list[_Cluster]) -> list[_Cluster]:
    filled = [at for at, cluster in enumerate(clusters) if cluster.text != " "]
    return clusters[filled[0] : filled[-1] + 1] if filled else []


def _space(cell: Sequence[_Cluster]) -> list[tuple[str, str]]:
    spaced: list[tuple[str, str]] = []
    for at, cluster in enumerate(cell):
        before = cell[at - 1] if at else None
        if (
            before
            and cluster.left - before.right > _GAP * cluster.chars[0].height
            and " " not in (before.text, cluster.text)
        ):
            spaced.append((" ", ""))
        if cluster.text != " " or (spaced and spaced[-1][0] != " "):
            spaced.append((cluster.text, cluster.kind))
    return spaced


def _directed_runs(visual: Sequence[tuple[str, str]], *, rtl: bool) -> Iterator[tuple[bool, Sequence[tuple[str, str]]]]:
    """Yield each run of one direction, and whether it is right to left. A right-to-left line is a single run."""
    if rtl:
        yield True, visual
        return
    directions = ["R" if kind == "R" else "L" for _, kind in visual]
    # Spaces and signs between two right-to-left words have their direction.
    last = None
    for at, (_, kind) in enumerate(visual):
        if kind == "R":
            if last is not None:
                directions[last:at] = ["R"] * (at - last)
            last = at
        elif kind == "L":
            last = None
    for direction, run in groupby(range(len(visual)), key=directions.__getitem__):
        yield direction == "R", [visual[at] for at in run]


def _read_rtl(visual: Sequence[tuple[str, str]]) -> list[str]:
    """Return the texts of a right-to-left run in reading order. Foreign words and numbers keep their own order."""
    texts: list[str] = []
    outside: list[int] = []
    signs = _NumberSigns(_JOINS_DIGITS, "")
    if not any(_ARABIC.match(text) for text, _ in visual):
        signs = _NumberSigns(_JOINS_DIGITS + _JOINS_BUT_IN_ARABIC, _OF_A_NUMBER_BUT_IN_ARABIC)
    for is_rtl_run, run in groupby(visual[::-1], key=lambda cluster: cluster[1] == "R"):
        if is_rtl_run:
            texts += [text for text, _ in run]
            continue
        for keeps, piece in _split_foreign(list(run)[::-1], signs):
            if not keeps:
                outside += range(len(texts), len(texts) + len(piece))
            texts += piece
    _turn_brackets(texts, outside)
    return texts


class _NumberSigns(NamedTuple):
    within: str
    adjacent: str


def _split_foreign(run: Sequence[tuple[str, str]], signs: _NumberSigns) -> Iterator[tuple[bool, list[str]]]:
    """Yield the pieces of a run without right-to-left letters, in the order of the right-to-left line around it.

    Each piece is a pair: whether it is read from left to right, as numbers and foreign words are, and its texts.
    """
    strong = [at for at, (_, kind) in enumerate(run) if kind]
    if not strong:
        yield False, [text for text, _ in run[::-1]]
        return
    if any(kind == "L" for _, kind in run):
        pieces = [(strong[0], strong[-1] + 1)]
    else:
        pieces = list(_numbers([text for text, _ in run], strong, signs))
    end = len(run)
    for start, stop in reversed(pieces):
        yield False, [text for text, _ in run[stop:end][::-1]]
        yield True, [text for text, _ in run[start:stop]]
        end = start
    yield False, [text for text, _ in run[:end][::-1]]


def _numbers(texts: Sequence[str], digits: Sequence[int], signs: _NumberSigns) -> Iterator[tuple[int, int]]:
    """Yield start and end of each number, such as `12/05` or `30%`, from left to right on the page."""
    start = stop = digits[0]
    found: list[tuple[int, int]] = []
    for at in digits:
        if at > stop and not (at == stop + 1 and texts[stop] in signs.within):
            found.append((start, stop))
            start = at
        stop = at + 1
    found.append((start, stop))
    for first, end in found:
        begin = first - 1 if first and texts[first - 1] in signs.adjacent else first
        yield begin, end + 1 if end < len(texts) and texts[end] in signs.adjacent else end


def _turn_brackets(texts: list[str], outside: Sequence[int]) -> None:
    """Make each bracket at positions `outside` an opening or closing one, as files often contain the mirrored sign."""
    opened = 0
    for at in outside:
        pair = _BRACKETS.get(texts[at])
        if pair is None:
            continue
        before = texts[at - 1] if at else " "
        after = texts[at + 1] if at + 1 < len(texts) else " "
        opens = not opened
        if before.isspace() != (after.isspace() or after in ".,;:!?،؛؟"):
            opens = before.isspace()
        opened += 1 if opens else -min(opened, 1)
        texts[at] = pair[0] if opens else pair[1]
