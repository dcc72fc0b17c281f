"""Find citation marks in a reply's text, and the numbers they name. Pure.

Some marks and addresses are part of their sentence's grammar; they are distinguished from those that can be removed.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.replies.markup import find_addresses
from storage.language.lazy_pattern import lazy_compile
from storage.language.scripts import is_unspaced
from storage.types import Span

_AND_WORDS = r"and|und|et|og|och|en|y|e|i|и|و|和|与|及|と"
_SOURCE_WORD = (
    r"sources?|refs?\.?|references?|citations?|cited?|notes?|footnotes?|passages?|evidence|documents?|docs?"
    r"|quellen?|fuentes?|fonti?|источники?|来源|出典|المصدر"
)
_DASH = r"(?:[-–—‐‑−~〜～]|to|bis)"
_MARK_ITEM = rf"[\^#№]?\s?\d{{1,9}}(?:\s?{_DASH}\s?[\^#№]?\s?\d{{1,9}})?"
_MARK_SEPARATOR = rf"(?:\s?[,;，、；؛،·&+/]\s?(?:(?:{_AND_WORDS})\s)?|\s(?:{_AND_WORDS})\s|\s)"
_MARK = lazy_compile(
    rf"\\?[\[【［〔]{{1,2}}\s?(?:(?:{_SOURCE_WORD})\s?[:：.#]?\s?)?(?P<numbers>{_MARK_ITEM}(?:{_MARK_SEPARATOR}{_MARK_ITEM}){{0,40}})"
    r"(?:\s?[,:]\s?(?:pp?\.|page|§)\s?[\d–-]{1,9})?(?:\s?[†‡][^\[\]【】［］\n]{0,99})?\s?\\?[\]】］〕]{1,2}"
    r"(?:\((?:https?:|www\.|[#/])[^()\s]{0,500}\))?"
    # Marks that name none of our numbers: a place in a message, a named footnote.
    r"|【\d{1,4}:\d{1,4}[†‡][^】\n]{0,99}】|\[\^[\w-]{1,30}\]"
    r"|(?:(?<=[.!?…,;:)\]\"'”’»。！？، ])|(?<=[^\W\d_]{4}))"
    r"(?<!metre)(?<!meter)(?<!etres)(?<!eters)(?<!feet)(?<!inch)(?<!mile)"
    r"(?P<raised>[⁰¹²³⁴-⁹]{1,6}+(?:[,˒⸴\u202f ][⁰¹²³⁴-⁹]{1,3}+){0,9}+)(?![⁻⁰¹²³⁴-⁹\w])",
    re.IGNORECASE,
)
_MAY_BEGIN = lazy_compile(r"\\?[\[【［〔]|[⁰¹²³⁴-⁹]")
_DIGITS = lazy_compile(r"\d+")
_MARK_RANGE = lazy_compile(rf"(\d+)\s?{_DASH}\s?[\^#№]?\s?(\d+)|(\d+)", re.IGNORECASE)
_INDEX = lazy_compile(r"\s{0,3}[-+*/]?=(?!=)")
_ARRAY_WORD = lazy_compile(r"\b(?:array|vector|tuple|matrix|interval)s?\s\Z", re.IGNORECASE)
_MAX_ARRAY_WORD = 12
_GOES_ON = lazy_compile(r",?\s+[a-z]")
_MARK_GAP = lazy_compile(rf"\s*(?:[,;،、&]\s*|(?:{_AND_WORDS})\s+)?", re.IGNORECASE)
_MARK_TO = lazy_compile(rf"\s?{_DASH}\s?", re.IGNORECASE)
_MARK_LEAD = lazy_compile(
    r"[(（]\s?(?:(?:see also|see|cf\.?|vgl\.|siehe|sources?:?|refs?\.?:?)\s)?\s?\Z", re.IGNORECASE
)
_MAX_MARK_LEAD = 16
_MARK_TRAIL = lazy_compile(r"\s{0,3}[)）]")
_MAX_NUMBER = 999  # larger numbers are not footnotes, unless that many pieces of evidence were offered
_CLOSING_SIGNS = frozenset(".,;:!?)]}…”’»%。，、；：！？）】」』؟،؛۔।")
_OPENING_SIGNS = frozenset("([{“„«\"'")


@dataclass(frozen=True, slots=True)
class CitationMark:
    """One citation mark, or several separated only by commas, with the numbers in 1..count that they name, in order."""

    span: Span
    numbers: tuple[int, ...]


def find_marks(text: str, count: int) -> Iterator[CitationMark]:
    """Yield the marks in order. Adjacent ones count as one, with round brackets that contain nothing but marks."""
    last: CitationMark | None = None
    for mark in _find_single_marks(text, count):
        numbers = _join_marks(text, last, mark) if last else None
        if last and numbers is None:
            yield _include_brackets(text, last)
        last = mark if last is None or numbers is None else CitationMark((last.span[0], mark.span[1]), numbers)
    if last:
        yield _include_brackets(text, last)


def strip_marks(text: str, count: int) -> tuple[str, tuple[int, ...]]:
    """Return the text without its marks, and the numbers that they name, each once, in order."""
    pieces: list[str] = []
    numbers: dict[int, None] = {}
    at = 0
    for mark in find_marks(text, count):
        start, end = mark.span
        before = text[at:start].rstrip()
        pieces += [before, _joining_space(text, (before or "".join(pieces[-1:]))[-1:], start, end)]
        numbers.update(dict.fromkeys(mark.numbers))
        at = end + (before.endswith((".", "!", "?")) and text.startswith(".", end))  # “It does. [1].”
    return "".join([*pieces, text[at:]]), tuple(numbers)


def _find_single_marks(text: str, count: int) -> Iterator[CitationMark]:
    at = 0
    while begin := _MAY_BEGIN.search(text, at):
        mark = _MARK.match(text, begin.start())
        at = mark.end() if mark else begin.end()
        if mark and (named := _parse_mark_numbers(mark, count)) is not None:
            yield CitationMark(mark.span(), named)


def _join_marks(text: str, first: CitationMark, second: CitationMark) -> tuple[int, ...] | None:
    """Return the numbers that two adjacent marks name, singly or as a range; None if text separates the marks."""
    gap = (first.span[1], second.span[0])
    if _MARK_GAP.fullmatch(text, *gap):
        return first.numbers + second.numbers
    if not _MARK_TO.fullmatch(text, *gap):
        return None
    between = range(first.numbers[-1], second.numbers[0]) if first.numbers and second.numbers else ()
    return (*first.numbers[: -1 if between else None], *between, *second.numbers)


def _parse_mark_numbers(found: re.Match[str], count: int) -> tuple[int, ...] | None:
    """Return the numbers in 1..count that a mark names; None if it is not a mark."""
    if found["raised"]:
        return _parse_superscript(found["raised"], count)
    if not found["numbers"]:
        return ()
    values = [int(number) for number in _DIGITS.findall(found["numbers"])]
    if max(values) > max(count, _MAX_NUMBER) or (0 in values and len(values) > 1):
        return None
    before = found.string[found.start() - 1 : found.start()]
    if (before.isalnum() or before == "_") and _INDEX.match(found.string, found.end()):
        return None
    array_word = _ARRAY_WORD.search(found.string[max(0, found.start() - _MAX_ARRAY_WORD) : found.start()])
    if array_word and _GOES_ON.match(found.string, found.end()):
        return None
    named: list[int] = []
    for item in _MARK_RANGE.finditer(found["numbers"]):
        first, last = sorted((int(item[1] or item[3]), int(item[2] or item[3])))
        named += range(max(first, 1), min(last, count) + 1)
    return tuple(named)


def _parse_superscript(digits: str, count: int) -> tuple[int, ...]:
    """Return the numbers in 1..count that superscripts name. If one is larger, each digit counts as a number."""
    plain = digits.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789"))
    runs = [str(int(run)) for run in re.findall(r"[0-9]+", plain)]
    values = [int(run) for run in runs]
    if any(value > count for value in values):
        values = [int(digit) for run in runs for digit in run]
    return tuple(value for value in values if 1 <= value <= count)


def _include_brackets(text: str, mark: CitationMark) -> CitationMark:
    start, end = mark.span
    lead = _MARK_LEAD.search(text[max(0, start - _MAX_MARK_LEAD) : start])
    trail = _MARK_TRAIL.match(text, end)
    if lead and trail:
        return CitationMark((start - len(lead[0]), trail.end()), mark.numbers)
    return mark


def _joining_space(text: str, before: str, start: int, end: int) -> str:
    after = text[end : end + 1]
    if not before or not after or after.isspace() or after in _CLOSING_SIGNS:
        return ""
    if text[start - 1].isspace():
        return " "
    joins = before in _OPENING_SIGNS or is_unspaced(after) or is_unspaced(before)
    return " " if (after.isalnum() or after in _OPENING_SIGNS) and not joins else ""


_NUMBERED_NOUN = lazy_compile(
    r"(?<!\bthe )(?<!\bthis )(?<!\bthat )(?<!\ban )(?<!\beach )(?<!\bits )(?<!\bour )(?<!\btheir )"
    r"\b(sections?|articles?|chapters?|figures?|figs?\.|pages?|tables?|steps?|items?|clauses?|equations?|appendix)"
    r" \[(\d{1,3})\](?=,?\s+(?-i:[a-z]))",
    re.IGNORECASE,
)
_OPENING_PHRASE = lazy_compile(
    r"(?:according to|based on|as per|per|in|from|as (?:stated|shown|described|reported|noted|mentioned|explained|seen)"
    r" (?:in|by))(?: (?:sources?|passages?|notes?|documents?))?\s",
    re.IGNORECASE,
)
_DANGLING_WORD = lazy_compile(r"\b(?:to|in|from|by|of|see|per|via|with|than)\s\Z", re.IGNORECASE)
_REPORTING_VERB = lazy_compile(
    r"\s+(?:(?:also|further) )?"
    r"(?:says?|states?|reports?|notes?|shows?|describes?|mentions?|explains?|claims?|argues?|confirms?)\b"
)
_LEADING_AWAY = lazy_compile(
    r"\b(?:see|visit|at|on|to|in|from|by|of|via|with|under|and|or|is|are|called)\s+[\[<(]?\Z", re.IGNORECASE
)
_NEAR_CHARACTERS = 16  # characters of context before a mark or an address


def detach_marks(text: str, count: int) -> str:
    """Rewrite marks that are part of the grammar, such as "According to [1], …", so that they can be removed."""
    text = _NUMBERED_NOUN.sub(r"\1 \2", text)
    first = next(find_marks(text, count), None)
    if first is None or not _OPENING_PHRASE.fullmatch(text[: first.span[0]].lstrip()):
        return text
    start, end = first.span
    rest = text[end:].lstrip()
    if not rest.startswith(",") or not rest[1:].strip():
        return text
    rest = rest[1:].lstrip()
    word = re.match(r"[^\W\d_]+", rest)
    if word and word[0].islower():  # a word with capitals keeps its spelling
        rest = rest[0].upper() + rest[1:]
    return f"{text[start:end]} {rest}"


def is_incomplete(text: str, count: int) -> bool:
    """Return whether a sentence would lose a part of its grammar if its marks and addresses were removed."""
    hanging = (
        _DANGLING_WORD.search(text[max(0, mark.span[0] - _NEAR_CHARACTERS) : mark.span[0]])
        and _continues(text[mark.span[1] :])
        for mark in find_marks(text, count)
    )
    first = next(find_marks(text, count), None)
    reported = first and not text[: first.span[0]].strip() and _REPORTING_VERB.match(text, first.span[1])
    led = (_LEADING_AWAY.search(text[max(0, start - _NEAR_CHARACTERS) : start]) for start, _ in find_addresses(text))
    return bool(reported) or any(hanging) or any(led)


def _continues(after: str) -> bool:
    next_char = after.lstrip()[:1]
    return next_char == "," or (after[:1].isspace() and next_char.islower())
