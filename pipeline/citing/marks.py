"""Citation marks in a reply's text: where they stand, and the numbers they name.

In square brackets of any script, or raised digits behind a word or a stop. Which brackets are marks:

- Numbers and ranges of them, with or without a word such as `source`, are a mark. Numbers outside 1..count are
  inventions and name nothing; the mark goes all the same.
- A number of four digits or more is a year or the like, and 0 beside other numbers is an interval: both are text.
- So is an index (`a[1] = 5`), what an array or a vector in the midst of a sentence holds, and every number in round
  brackets, which running text has too many of.
- Raised digits behind a short word or a measure (`km²`, `10⁵`) are text.

Code and mathematics are taken out beforehand (see `verbatim`).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from storage.language.scripts import is_unspaced
from storage.types import Span

_AND = r"and|und|et|og|och|en|y|e|i|и|و|和|与|及|と"
_WORD = (
    r"sources?|refs?\.?|references?|citations?|cited?|notes?|footnotes?|passages?|evidence|documents?|docs?"
    r"|quellen?|fuentes?|fonti?|источники?|来源|出典|المصدر"
)
_DASH = r"(?:[-–—‐‑−~〜～]|to|bis)"
_ITEM = rf"[\^#№]?\s?\d{{1,9}}(?:\s?{_DASH}\s?[\^#№]?\s?\d{{1,9}})?"
_BETWEEN = rf"(?:\s?[,;，、；؛،·&+/]\s?(?:(?:{_AND})\s)?|\s(?:{_AND})\s|\s)"
_MARK = re.compile(
    rf"\\?[\[【［〔]{{1,2}}\s?(?:(?:{_WORD})\s?[:：.#]?\s?)?(?P<numbers>{_ITEM}(?:{_BETWEEN}{_ITEM}){{0,40}})"
    r"(?:\s?[,:]\s?(?:pp?\.|page|§)\s?[\d–-]{1,9})?(?:\s?[†‡][^\[\]【】［］\n]{0,99})?\s?\\?[\]】］〕]{1,2}"
    r"(?:\((?:https?:|www\.|[#/])[^()\s]{0,500}\))?"
    # What names no number of ours: a place in a message, a footnote with a name.
    r"|【\d{1,4}:\d{1,4}[†‡][^】\n]{0,99}】|\[\^[\w-]{1,30}\]"
    r"|(?:(?<=[.!?…,;:)\]\"'”’»。！？، ])|(?<=[^\W\d_]{4}))"
    r"(?<!metre)(?<!meter)(?<!etres)(?<!eters)(?<!feet)(?<!inch)(?<!mile)"
    r"(?P<raised>[⁰¹²³⁴-⁹]{1,6}+(?:[,˒⸴\u202f ][⁰¹²³⁴-⁹]{1,3}+){0,9}+)(?![⁻⁰¹²³⁴-⁹\w])",
    re.IGNORECASE,
)
_MAY_BEGIN = re.compile(r"\\?[\[【［〔]|[⁰¹²³⁴-⁹]")
_NUMBER = re.compile(r"\d+")
_RANGE = re.compile(rf"(\d+)\s?{_DASH}\s?[\^#№]?\s?(\d+)|(\d+)", re.IGNORECASE)
_INDEX = re.compile(r"\s{0,3}[-+*/]?=(?!=)")
_HOLDS = re.compile(r"\b(?:array|vector|tuple|matrix|interval)s?\s\Z", re.IGNORECASE)
_LONGEST_HOLDER = 12
_GOES_ON = re.compile(r",?\s+[a-z]")
_GAP = re.compile(rf"\s*(?:[,;،、&]\s*|(?:{_AND})\s+)?", re.IGNORECASE)
_TO = re.compile(rf"\s?{_DASH}\s?", re.IGNORECASE)
_LEAD = re.compile(r"[(（]\s?(?:(?:see also|see|cf\.?|vgl\.|siehe|sources?:?|refs?\.?:?)\s)?\s?\Z", re.IGNORECASE)
_LONGEST_LEAD = 16
_TRAIL = re.compile(r"\s{0,3}[)）]")
_LARGEST = 999
"""Longer numbers than this are no footnotes, unless so many pieces of evidence were offered."""
_CLOSING = frozenset(".,;:!?)]}…”’»%。，、；：！？）】」』؟،؛۔।")
_OPENING = frozenset("([{“„«\"'")


@dataclass(frozen=True, slots=True)
class Mark:
    """One mark, or several with nothing but a comma between, and what of 1..count it names, in order."""

    span: Span
    numbers: tuple[int, ...]


def marks(text: str, count: int) -> Iterator[Mark]:
    """Yield the marks of a text in order; marks side by side are one, round brackets around nothing else included."""
    last: Mark | None = None
    for mark in _single(text, count):
        if last and (numbers := _together(text, last, mark)) is not None:
            last = Mark((last.span[0], mark.span[1]), numbers)
            continue
        if last:
            yield _bracketed(text, last)
        last = mark
    if last:
        yield _bracketed(text, last)


def unmarked(text: str, count: int) -> tuple[str, tuple[int, ...]]:
    """Return the text without its marks, and the numbers that they name, each once, in order."""
    pieces: list[str] = []
    numbers: dict[int, None] = {}
    at = 0
    for mark in marks(text, count):
        start, end = mark.span
        before = text[at:start].rstrip()
        pieces += [before, _joint(text, (before or "".join(pieces[-1:]))[-1:], start, end)]
        numbers.update(dict.fromkeys(mark.numbers))
        at = end
    return "".join([*pieces, text[at:]]), tuple(numbers)


def _single(text: str, count: int) -> Iterator[Mark]:
    at = 0
    while begin := _MAY_BEGIN.search(text, at):
        found = _MARK.match(text, begin.start())
        at = found.end() if found else begin.end()
        if found and (named := _named(found, count)) is not None:
            yield Mark(found.span(), named)


def _together(text: str, first: Mark, second: Mark) -> tuple[int, ...] | None:
    """Return what two marks name that stand side by side, or from which to which; None for two apart."""
    gap = (first.span[1], second.span[0])
    if _GAP.fullmatch(text, *gap):
        return first.numbers + second.numbers
    if not _TO.fullmatch(text, *gap):
        return None
    between = range(first.numbers[-1], second.numbers[0]) if first.numbers and second.numbers else ()
    return (*first.numbers[: -1 if between else None], *between, *second.numbers)


def _named(found: re.Match[str], count: int) -> tuple[int, ...] | None:
    """Return the numbers in 1..count that a mark names; None if it is none."""
    if found["raised"]:
        return _raised(found["raised"], count)
    if not found["numbers"]:
        return ()
    values = [int(number) for number in _NUMBER.findall(found["numbers"])]
    if max(values) > max(count, _LARGEST) or (0 in values and len(values) > 1):
        return None
    before = found.string[found.start() - 1 : found.start()]
    if (before.isalnum() or before == "_") and _INDEX.match(found.string, found.end()):
        return None
    held = _HOLDS.search(found.string[max(0, found.start() - _LONGEST_HOLDER) : found.start()])
    if held and _GOES_ON.match(found.string, found.end()):
        return None
    return tuple(number for item in _RANGE.finditer(found["numbers"]) for number in _expanded(item, count))


def _expanded(item: re.Match[str], count: int) -> Iterator[int]:
    first, last = (int(item[3]), int(item[3])) if item[3] else sorted((int(item[1]), int(item[2])))
    yield from range(max(first, 1), min(last, count) + 1)


def _raised(digits: str, count: int) -> tuple[int, ...]:
    """Read raised digits as one number where that was offered, else each as one."""
    runs = [str(int(run)) for run in re.split(r"[^⁰¹²³⁴-⁹]+", digits) for run in [_plain(run)] if run]
    values = [int(run) for run in runs]
    if any(value > count for value in values):
        values = [int(digit) for run in runs for digit in run]
    return tuple(value for value in values if 1 <= value <= count)


def _plain(raised: str) -> str:
    return raised.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))


def _bracketed(text: str, mark: Mark) -> Mark:
    start, end = mark.span
    lead = _LEAD.search(text[max(0, start - _LONGEST_LEAD) : start])
    trail = _TRAIL.match(text, end)
    if lead and trail:
        return Mark((start - len(lead[0]), trail.end()), mark.numbers)
    return mark


def _joint(text: str, before: str, start: int, end: int) -> str:
    """Return the space that keeps apart what a mark stood between."""
    after = text[end : end + 1]
    if not before or not after or after.isspace() or after in _CLOSING:
        return ""
    if text[start - 1].isspace():
        return " "
    joins = before in _OPENING or is_unspaced(after) or is_unspaced(before)
    return " " if (after.isalnum() or after in _OPENING) and not joins else ""
